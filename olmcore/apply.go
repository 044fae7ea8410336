// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Apply returns what a write makes of an object, for Executors that keep objects
// themselves. current is the object that Target names as it is now, nil when there
// is none; the result is a changed copy, nil when the object is gone. The errors are
// those of an API server: AlreadyExists, NotFound, also of another UID, and Conflict
// of another resourceVersion; an *InputError is of a Record that does not fit.
// Versions and UIDs are the caller's to count, finalizers and dependants his to
// respect.
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
