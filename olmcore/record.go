// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Record is an Action as JSON: what audit logs keep, what tools print, and what a client without Go types can run.
// Exactly one of Object (create), Patch (update, updateStatus) and DeleteOptions (delete) is set. What is written to a
// Secret stands in it: leave Object and Patch of a Secret out of logs.
type Record struct {
	Verb   Verb  `json:"verb"`
	Target Ref   `json:"target"`
	Cause  Cause `json:"cause"`
	// Object is the whole object to create.
	Object json.RawMessage `json:"object,omitempty"`
	// Patch is the JSON merge patch (RFC 7386) from Before to After. To run it, send ConditionalPatch: a merge patch
	// replaces whole lists, and only the precondition keeps another writer's entries.
	Patch json.RawMessage `json:"patch,omitempty"`
	// DeleteOptions carries Target's UID and resourceVersion as preconditions.
	DeleteOptions *metav1.DeleteOptions `json:"deleteOptions,omitempty"`
	// As is the ServiceAccount to run under; nil means the controller.
	As *corev1.ObjectReference `json:"as,omitempty"`
}

// RecordOf returns the JSON form of an action. The error names an action that breaks the contract: one without an
// object, an Update that changes the status, or an UpdateStatus that changes anything else. A field that is null in
// After is one that is not there: a merge patch cannot say null.
func RecordOf(a Action) (Record, error) {
	if isNil(a) {
		return Record{}, &InputError{Field: "action", Problem: "is nil"}
	}
	verb, target, cause := a.Describe()
	r := Record{Verb: verb, Target: target, Cause: cause, As: a.Identity()}
	var err error
	switch a := a.(type) {
	case Create:
		r.Object, err = encodeObject(a.Object)
	case Update:
		r.Patch, err = encodePatch(a.Before, a.After, false)
	case UpdateStatus:
		r.Patch, err = encodePatch(a.Before, a.After, true)
	case Delete:
		r.DeleteOptions = deleteOptions(a)
	default:
		err = &InputError{Field: "action", Problem: fmt.Sprintf("has the unknown type %T", a)}
	}
	if err != nil {
		return Record{}, fmt.Errorf("record %s of %s: %w", verb, target, err)
	}
	return r, nil
}

// ConditionalPatch returns Patch with Target's UID and resourceVersion in its metadata, as an API server takes them for
// preconditions: the body of a request with the content type application/merge-patch+json. The error is an *InputError
// when there is no patch.
func (r Record) ConditionalPatch() ([]byte, error) {
	patch, err := r.patch()
	if err != nil {
		return nil, err
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	if r.Target.UID != "" {
		metadata["uid"] = string(r.Target.UID)
	}
	if r.Target.ResourceVersion != "" {
		metadata["resourceVersion"] = r.Target.ResourceVersion
	}
	return json.Marshal(patch)
}

// Action is the inverse of RecordOf. For update and updateStatus it needs the object that the patch starts from, as
// observed now; Before is that object and After a patched copy of the same Go type. For create and delete current is
// not looked at. The error is an *InputError: current is nil or not the object that Target names, or the record's
// content does not fit it.
func (r Record) Action(current Object) (Action, error) {
	switch r.Verb {
	case VerbCreate:
		o, err := Decode(r.Object)
		if err != nil {
			return nil, err
		}
		return Create{Target: r.Target, Object: o, Cause: r.Cause, As: r.As}, nil
	case VerbUpdate, VerbUpdateStatus:
		after, err := r.apply(current)
		if err != nil {
			return nil, err
		}
		if r.Verb == VerbUpdate {
			return Update{Target: r.Target, Before: current, After: after, Cause: r.Cause, As: r.As}, nil
		}
		return UpdateStatus{Target: r.Target, Before: current, After: after, Cause: r.Cause, As: r.As}, nil
	case VerbDelete:
		a := Delete{Target: r.Target, Cause: r.Cause, As: r.As}
		if o := r.DeleteOptions; o != nil {
			a.GracePeriodSeconds = o.GracePeriodSeconds
			if o.PropagationPolicy != nil {
				a.PropagationPolicy = *o.PropagationPolicy
			}
		}
		return a, nil
	default:
		return nil, &InputError{Field: "verb", Problem: fmt.Sprintf("is %q, which is none of create, update, updateStatus, delete", r.Verb)}
	}
}

func (r Record) apply(current Object) (Object, error) {
	if isNil(current) {
		return nil, &InputError{Field: "current", Problem: "is nil, but a patch needs an object to start from"}
	}
	key := KeyOf(current)
	if key != r.Target.Key() {
		return nil, &InputError{Field: "current", Problem: fmt.Sprintf("is %s, not %s as the target", key, r.Target)}
	}
	patch, err := r.patch()
	if err != nil {
		return nil, err
	}
	m, err := ToMap(current)
	if err != nil {
		return nil, err
	}
	after := newLike(current)
	if err := FromMap(mergePatch(m, patch), after); err != nil {
		return nil, &InputError{Field: "patch", Problem: "does not fit " + r.Target.Kind + ": " + err.Error()}
	}
	after.GetObjectKind().SetGroupVersionKind(current.GetObjectKind().GroupVersionKind())
	if KeyOf(after) != key {
		return nil, &InputError{Field: "patch", Problem: "makes another object of " + key.String()}
	}
	return after, nil
}

// patch decodes Patch and keeps whole numbers whole.
func (r Record) patch() (patch map[string]any, err error) {
	if err := utiljson.Unmarshal(r.Patch, &patch); err != nil {
		return nil, &InputError{Field: "patch", Problem: "is not a JSON object: " + err.Error()}
	}
	if patch == nil {
		return nil, &InputError{Field: "patch", Problem: "is null"}
	}
	return patch, nil
}

func encodeObject(o Object) (json.RawMessage, error) {
	if isNil(o) {
		return nil, &InputError{Field: "object", Problem: "is nil"}
	}
	m, err := ToMap(o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

func encodePatch(before, after Object, status bool) (json.RawMessage, error) {
	if isNil(before) || isNil(after) {
		return nil, &InputError{Field: "before and after", Problem: "must both be set"}
	}
	from, err := ToMap(before)
	if err != nil {
		return nil, err
	}
	to, err := ToMap(after)
	if err != nil {
		return nil, err
	}
	patch := mergeDiff(from, to)
	for _, field := range slices.Sorted(maps.Keys(patch)) {
		if (field == "status") != status {
			return nil, &InputError{Field: field, Problem: "is not changed by this verb: status and the rest travel apart"}
		}
	}
	return json.Marshal(patch)
}

func deleteOptions(a Delete) *metav1.DeleteOptions {
	o := &metav1.DeleteOptions{GracePeriodSeconds: a.GracePeriodSeconds}
	if a.PropagationPolicy != "" {
		o.PropagationPolicy = &a.PropagationPolicy
	}
	if a.Target.UID != "" || a.Target.ResourceVersion != "" {
		o.Preconditions = &metav1.Preconditions{}
		if a.Target.UID != "" {
			o.Preconditions.UID = &a.Target.UID
		}
		if a.Target.ResourceVersion != "" {
			o.Preconditions.ResourceVersion = &a.Target.ResourceVersion
		}
	}
	return o
}

// mergeDiff returns the JSON merge patch that turns from into to. The result shares values with to.
func mergeDiff(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, kept := to[key]; !kept {
			patch[key] = nil
		}
	}
	for key, want := range to {
		have, exists := from[key]
		wantMap, wantIsMap := want.(map[string]any)
		haveMap, haveIsMap := have.(map[string]any)
		switch {
		case exists && wantIsMap && haveIsMap:
			if sub := mergeDiff(haveMap, wantMap); len(sub) > 0 {
				patch[key] = sub
			}
		case !exists || !reflect.DeepEqual(have, want):
			patch[key] = want
		}
	}
	return patch
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

func newLike(o Object) Object {
	if _, ok := o.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{}
	}
	return reflect.New(reflect.TypeOf(o).Elem()).Interface().(Object)
}

// Apply returns what a write makes of an object, for Executors that keep objects themselves. current is the object that
// Target names as it is now, nil when there is none; the result is a changed copy, nil when the object is gone. The
// errors are those of an API server: AlreadyExists, NotFound, also of another UID, and Conflict of another
// resourceVersion; an *InputError is of a Record that does not fit. Versions and UIDs are the caller's to count,
// finalizers and dependants his to respect.
func (r Record) Apply(current Object) (Object, error) {
	resource := schema.GroupResource{Group: groupOf(r.Target.APIVersion), Resource: r.Target.Kind}
	switch {
	case r.Verb == VerbCreate:
		if !isNil(current) {
			return nil, apierrors.NewAlreadyExists(resource, r.Target.Name)
		}
	case isNil(current), r.Target.UID != "" && r.Target.UID != current.GetUID():
		return nil, apierrors.NewNotFound(resource, r.Target.Name)
	case r.Target.ResourceVersion != "" && r.Target.ResourceVersion != current.GetResourceVersion():
		return nil, apierrors.NewConflict(resource, r.Target.Name, errors.New("it changed since it was observed"))
	}
	a, err := r.Action(current)
	if err != nil {
		return nil, err
	}
	switch a := a.(type) {
	case Create:
		return a.Object, nil
	case Update:
		return a.After, nil
	case UpdateStatus:
		return a.After, nil
	default:
		return nil, nil // a Delete
	}
}
