// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/internal/nilcheck"
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
	if nilcheck.IsNil(a) {
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
	patch, err := r.MergePatch()
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

// MergePatch returns Patch as JSON values. Integers are int64. The error is an *InputError if Patch is not a JSON object.
func (r Record) MergePatch() (patch map[string]any, err error) {
	if err := utiljson.Unmarshal(r.Patch, &patch); err != nil {
		return nil, &InputError{Field: "patch", Problem: "is not a JSON object: " + err.Error()}
	}
	if patch == nil {
		return nil, &InputError{Field: "patch", Problem: "is null"}
	}
	return patch, nil
}

func encodeObject(o Object) (json.RawMessage, error) {
	if nilcheck.IsNil(o) {
		return nil, &InputError{Field: "object", Problem: "is nil"}
	}
	m, err := ToMap(o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

func encodePatch(before, after Object, status bool) (json.RawMessage, error) {
	if nilcheck.IsNil(before) || nilcheck.IsNil(after) {
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
