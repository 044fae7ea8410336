// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/nilcheck"
	"github.com/olmcore/olm/olmcore"
)

// Action returns the action that a Record describes. It is the inverse of olmcore.RecordOf. For update and
// updateStatus, current is the object that the patch starts from, as observed now: Before is current, and After is a
// patched copy of the same Go type. For create and delete, current is ignored. The error is an *olmcore.InputError:
// current is nil or is not the target of the Record, or the content of the Record does not fit current.
func Action(r olmcore.Record, current olmcore.Object) (olmcore.Action, error) {
	switch r.Verb {
	case olmcore.VerbCreate:
		o, err := Decode(r.Object)
		if err != nil {
			return nil, err
		}
		return olmcore.Create{Target: r.Target, Object: o, Cause: r.Cause, As: r.As}, nil
	case olmcore.VerbUpdate, olmcore.VerbUpdateStatus:
		after, err := patched(r, current)
		if err != nil {
			return nil, err
		}
		if r.Verb == olmcore.VerbUpdate {
			return olmcore.Update{Target: r.Target, Before: current, After: after, Cause: r.Cause, As: r.As}, nil
		}
		return olmcore.UpdateStatus{Target: r.Target, Before: current, After: after, Cause: r.Cause, As: r.As}, nil
	case olmcore.VerbDelete:
		a := olmcore.Delete{Target: r.Target, Cause: r.Cause, As: r.As}
		if o := r.DeleteOptions; o != nil {
			a.GracePeriodSeconds = o.GracePeriodSeconds
			if o.PropagationPolicy != nil {
				a.PropagationPolicy = *o.PropagationPolicy
			}
		}
		return a, nil
	default:
		problem := fmt.Sprintf("is %q, which is none of create, update, updateStatus, delete", r.Verb)
		return nil, &olmcore.InputError{Field: "verb", Problem: problem}
	}
}

// patched returns a copy of current with the patch of a Record.
func patched(r olmcore.Record, current olmcore.Object) (olmcore.Object, error) {
	if nilcheck.IsNil(current) {
		return nil, &olmcore.InputError{Field: "current", Problem: "is nil, but a patch needs an object to start from"}
	}
	key := olmcore.KeyOf(current)
	if key != r.Target.Key() {
		return nil, &olmcore.InputError{Field: "current", Problem: fmt.Sprintf("is %s, not %s as the target", key, r.Target)}
	}
	patch, err := r.MergePatch()
	if err != nil {
		return nil, err
	}
	m, err := olmcore.ToMap(current)
	if err != nil {
		return nil, err
	}
	after := newLike(current)
	if err := FromMap(mergePatch(m, patch), after); err != nil {
		return nil, &olmcore.InputError{Field: "patch", Problem: "does not fit " + r.Target.Kind + ": " + err.Error()}
	}
	after.GetObjectKind().SetGroupVersionKind(current.GetObjectKind().GroupVersionKind())
	if olmcore.KeyOf(after) != key {
		return nil, &olmcore.InputError{Field: "patch", Problem: "makes another object of " + key.String()}
	}
	return after, nil
}

// mergePatch applies a JSON merge patch to target and returns target.
func mergePatch(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			sub, ok := target[key].(map[string]any)
			if !ok {
				sub = map[string]any{}
			}
			target[key] = mergePatch(sub, v)
		default:
			target[key] = value
		}
	}
	return target
}

func newLike(o olmcore.Object) olmcore.Object {
	if _, ok := o.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{}
	}
	return reflect.New(reflect.TypeOf(o).Elem()).Interface().(olmcore.Object)
}

// Apply returns the object after the write that a Record describes, for Executors that keep objects themselves.
// current is the target of the Record as it is now, or nil if it does not exist. The result is a changed copy of
// current, or nil if the object was deleted. The errors are those of an API server: AlreadyExists, NotFound (also for
// another UID), and Conflict for another resourceVersion. If the Record is invalid, the error is an
// *olmcore.InputError. The caller assigns UIDs and resourceVersions, and handles finalizers and dependants.
func Apply(r olmcore.Record, current olmcore.Object) (olmcore.Object, error) {
	resource := schema.GroupResource{Group: r.Target.GVK().Group, Resource: r.Target.Kind}
	switch {
	case r.Verb == olmcore.VerbCreate:
		if !nilcheck.IsNil(current) {
			return nil, apierrors.NewAlreadyExists(resource, r.Target.Name)
		}
	case nilcheck.IsNil(current), r.Target.UID != "" && r.Target.UID != current.GetUID():
		return nil, apierrors.NewNotFound(resource, r.Target.Name)
	case r.Target.ResourceVersion != "" && r.Target.ResourceVersion != current.GetResourceVersion():
		return nil, apierrors.NewConflict(resource, r.Target.Name, errors.New("it changed since it was observed"))
	}
	a, err := Action(r, current)
	if err != nil {
		return nil, err
	}
	switch a := a.(type) {
	case olmcore.Create:
		return a.Object, nil
	case olmcore.Update:
		return a.After, nil
	case olmcore.UpdateStatus:
		return a.After, nil
	default:
		return nil, nil // a Delete
	}
}
