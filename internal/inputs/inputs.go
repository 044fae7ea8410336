// SPDX-License-Identifier: Apache-2.0

// Package inputs visits the fields of the Input of a reconcile function. It validates lists, finds lists that were not
// read, and covers fields by a Checkpoint. It also names what a failed read leaves unknown.
package inputs

import (
	"time"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/olmcore"
)

// Checkpointed returns the Outcome of a reconcile function. It skips validate and decide if the Input has not changed
// since last was made, and the deadline of last has not passed. The Outcome then contains last, and the time until that
// deadline as RequeueAfter.
//
// Otherwise, the Outcome contains the Result of decide. It also contains a new Checkpoint if that Result is empty, and
// all objects have a UID and a resourceVersion. now is the Now of the Input. cover passes every field of the Input to
// the Cover functions, and returns the Coverage. An error of validate or decide is returned unchanged.
func Checkpointed(
	now time.Time, last *olmcore.Checkpoint, cover func(checkpoint.Coverage) checkpoint.Coverage,
	validate func() error, decide func() (olmcore.Result, error),
) (olmcore.Outcome, error) {
	if wait, same := cover(last.Compare(now)).Holds(); same {
		return olmcore.Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: last}, nil
	}
	if err := validate(); err != nil {
		return olmcore.Outcome{}, err
	}
	result, err := decide()
	if err != nil {
		return olmcore.Outcome{}, err
	}
	return olmcore.Outcome{Result: result, Checkpoint: cover(NewCoverage(now, result)).Checkpoint()}, nil
}

// NewCoverage starts a Checkpoint of an Input with this Now, for which a reconcile function returned r. No Checkpoint
// is made if r contains actions, transitions or diagnostics.
func NewCoverage(now time.Time, r olmcore.Result) checkpoint.Coverage {
	if !r.Empty() {
		return checkpoint.NoCoverage()
	}
	return checkpoint.NewCoverage(now, r.RequeueAfter)
}

// ListVisit visits the lists of an Input. Every Input has one method that names each of its lists once:
//
//	func (in *Input) lists(v *inputs.ListVisit) {
//		inputs.VisitList(v, "Pods", &in.Pods, inputs.Required)
//		inputs.VisitList(v, "Nodes", &in.Nodes, inputs.Optional)
//	}
//
// Validation, the coverage by a Checkpoint and the search for lists that were not read derive from that method. The
// zero value is not valid: use CoverLists, ValidateLists or UnreadLists.
type ListVisit struct {
	purpose  visitPurpose
	coverage checkpoint.Coverage
	err      error
	unread   []string
}

type visitPurpose int

const (
	visitToCover visitPurpose = iota + 1
	visitToValidate
	visitToFindUnread
)

// Need says whether a reconcile function can decide without a list.
type Need bool

// Needs of a list.
const (
	Required Need = true  // Reconcile returns an error without the list
	Optional Need = false // Reconcile draws no conclusions from the list if it was not read
)

// CoverLists returns a visit that covers every list, in addition to what c covers. Coverage returns the result.
func CoverLists(c checkpoint.Coverage) ListVisit {
	return ListVisit{purpose: visitToCover, coverage: c}
}

// ValidateLists returns a visit whose Err is an *olmcore.InputError if a required list was not read, or if a list
// breaks the contract that ValidateList checks.
func ValidateLists() ListVisit { return ListVisit{purpose: visitToValidate} }

// UnreadLists returns a visit whose Unread names the lists that were not read.
func UnreadLists() ListVisit { return ListVisit{purpose: visitToFindUnread} }

// Coverage returns the Coverage after the visit.
func (v *ListVisit) Coverage() checkpoint.Coverage { return v.coverage }

// Err returns the first error of the visit.
func (v *ListVisit) Err() error { return v.err }

// Unread returns the names of the fields whose lists were not read, in the order of the visit.
func (v *ListVisit) Unread() []string { return v.unread }

// VisitList visits a list of objects. Field is the name of the field, such as "Pods". The checks apply to each object
// when the list is validated.
func VisitList[O olmcore.Object](v *ListVisit, field string, list *olmcore.Observed[O], need Need, checks ...Check) {
	switch v.purpose {
	case visitToCover: // every reconcile covers its lists, so this does nothing else
		checkpoint.CoverObjects(&v.coverage, list.Items, list.Complete)
		return
	case visitToValidate:
		v.validated(ValidateList(field, *list, checks...))
	}
	v.visitRead(field, list.Complete, need)
}

// VisitObjects visits a list of objects of several kinds.
func VisitObjects(v *ListVisit, field string, list *olmcore.Observed[olmcore.Object], need Need) {
	switch v.purpose {
	case visitToCover:
		checkpoint.CoverObjects(&v.coverage, list.Items, list.Complete)
		return
	case visitToValidate:
		v.validated(validateObjects(field, *list))
	}
	v.visitRead(field, list.Complete, need)
}

// VisitValues visits a list of values that are not objects, such as names.
func VisitValues[T comparable](v *ListVisit, field string, list *olmcore.Observed[T], need Need) {
	switch {
	case v.purpose == visitToCover:
		checkpoint.CoverList(&v.coverage, list.Items, list.Complete)
		return
	case v.purpose == visitToValidate && !list.Complete && len(list.Items) > 0:
		v.validated(&olmcore.InputError{Field: field, Problem: "has items of a read that was not completed"})
	}
	v.visitRead(field, list.Complete, need)
}

// validated keeps the first error of the visit.
func (v *ListVisit) validated(err error) {
	if v.err == nil {
		v.err = err
	}
}

// visitRead reports a list that was not read, for the purposes that ask for it.
func (v *ListVisit) visitRead(field string, wasRead bool, need Need) {
	switch {
	case wasRead:
	case v.purpose == visitToFindUnread:
		v.unread = append(v.unread, field)
	case v.purpose == visitToValidate && v.err == nil && need == Required:
		v.err = &olmcore.InputError{Field: field, Problem: "were not read"}
	}
}
