// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb is what an Action does.
type Verb string

// The four verbs, one for each Action type.
const (
	VerbCreate       Verb = "create"
	VerbUpdate       Verb = "update"
	VerbUpdateStatus Verb = "updateStatus"
	VerbDelete       Verb = "delete"
)

// Action is one write that a reconcile function asks for: Create, Update, UpdateStatus or Delete. The set is closed. An
// action is a value: it can be compared, printed, stored (RecordOf) and run later. Its objects are read-only: they may
// share memory with what was observed. Who hands one to a client that decodes the answer into it copies it first.
//
//sumtype:decl
type Action interface {
	// Describe returns what is done, to which object, and why.
	Describe() (Verb, Ref, Cause)
	// Identity is the ServiceAccount the write must run under; nil means the controller itself.
	Identity() *corev1.ObjectReference
	sealed()
}

// Cause says why an action is asked for. Reason is a CamelCase constant of the package that asks, Message one sentence
// for a person.
type Cause struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Create asks for Object to exist. An object of that name that is there already counts as done: names are computed from
// content, so it is the answer to an earlier try.
type Create struct {
	Target Ref
	Object Object
	Cause  Cause
	As     *corev1.ObjectReference
}

// Update asks for a change of spec and metadata. Before is the observed object itself, After a changed copy; their
// status is equal. Target carries UID and resourceVersion. Executors choose how to write it: merge patch, PUT or apply.
type Update struct {
	Target        Ref
	Before, After Object
	Cause         Cause
	As            *corev1.ObjectReference
}

// UpdateStatus asks for a change of the status alone, through the status subresource. Before and After differ in
// nothing else.
type UpdateStatus struct {
	Target        Ref
	Before, After Object
	Cause         Cause
	As            *corev1.ObjectReference
}

// Delete asks for the deletion of the object that Target names. Target's UID and, if set, its resourceVersion are
// preconditions. GracePeriodSeconds nil and PropagationPolicy empty mean the API server's defaults. An object that is
// gone already counts as done.
type Delete struct {
	Target             Ref
	GracePeriodSeconds *int64
	PropagationPolicy  metav1.DeletionPropagation
	Cause              Cause
	As                 *corev1.ObjectReference
}

// Describe implements Action.
func (a Create) Describe() (Verb, Ref, Cause) { return VerbCreate, a.Target, a.Cause }

// Describe implements Action.
func (a Update) Describe() (Verb, Ref, Cause) { return VerbUpdate, a.Target, a.Cause }

// Describe implements Action.
func (a UpdateStatus) Describe() (Verb, Ref, Cause) { return VerbUpdateStatus, a.Target, a.Cause }

// Describe implements Action.
func (a Delete) Describe() (Verb, Ref, Cause) { return VerbDelete, a.Target, a.Cause }

// Identity implements Action.
func (a Create) Identity() *corev1.ObjectReference { return a.As }

// Identity implements Action.
func (a Update) Identity() *corev1.ObjectReference { return a.As }

// Identity implements Action.
func (a UpdateStatus) Identity() *corev1.ObjectReference { return a.As }

// Identity implements Action.
func (a Delete) Identity() *corev1.ObjectReference { return a.As }

func (Create) sealed()       {}
func (Update) sealed()       {}
func (UpdateStatus) sealed() {}
func (Delete) sealed()       {}

// CreateOf returns the Create of a new object.
func CreateOf(o Object, why Cause) Create {
	return Create{Target: RefOf(o), Object: o, Cause: why}
}

// UpdateOf returns the Update from an observed object to its changed copy, with the observed UID and resourceVersion as
// preconditions.
func UpdateOf(before, after Object, why Cause) Update {
	return Update{Target: RefOf(before), Before: before, After: after, Cause: why}
}

// UpdateStatusOf returns the UpdateStatus from an observed object to a copy with another status, with the observed UID
// and resourceVersion as preconditions.
func UpdateStatusOf(before, after Object, why Cause) UpdateStatus {
	return UpdateStatus{Target: RefOf(before), Before: before, After: after, Cause: why}
}

// DeleteOf returns the Delete of an observed object, with the observed UID and resourceVersion as preconditions. An
// object that changed after it was read is not deleted: the write fails with a Conflict, and the deletion is decided
// again.
func DeleteOf(o Object, why Cause) Delete {
	return Delete{Target: RefOf(o), Cause: why}
}

// StatusOf returns the object whose status the actions write, of type T: the typed view of a result's status.
//
//	sub, ok := olmcore.StatusOf[*v1alpha1.Subscription](res.Actions)
//
// The first UpdateStatus of that type wins; ok is false when there is none.
func StatusOf[T Object](actions []Action) (object T, ok bool) {
	for _, a := range actions {
		if u, isStatus := a.(UpdateStatus); isStatus {
			if object, ok = u.After.(T); ok {
				return object, true
			}
		}
	}
	return object, false
}
