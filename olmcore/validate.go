// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Check says what is wrong with an object of an Input: the problem, and the field below the object, such as
// ".metadata.uid"; an empty problem for nothing.
type Check func(o Object) (field, problem string)

// ValidateList returns an *InputError for a list of an Input that breaks the contract which every list has: entries of
// a read that was not completed, an entry that is nil or has no name, an object that is there twice, and what checks
// find. Field is the name of the list, such as "Pods".
func ValidateList[O Object](field string, list Observed[O], checks ...Check) error {
	if !list.Complete && len(list.Items) > 0 {
		return &InputError{Field: field, Problem: "has items of a read that was not completed"}
	}
	var seen map[types.NamespacedName]int // nil as long as the list is sorted, as a Reader's is: then none is there twice
	for i, o := range list.Items {
		below, problem := validateEntry(o, checks)
		if problem == "" && i > 0 && seen == nil && !ascending(list.Items[i-1], o) {
			seen = positions(list.Items[:i], len(list.Items))
		}
		if problem == "" && seen != nil {
			if before, twice := seen[nameOf(o)]; twice {
				problem = fmt.Sprintf("is %s, as is %s[%d]", nameOf(o), field, before)
			}
			seen[nameOf(o)] = i
		}
		if problem != "" {
			return &InputError{Field: fmt.Sprintf("%s[%d]%s", field, i, below), Problem: problem}
		}
	}
	return nil
}

// ascending reports whether a comes before b by namespace and name.
func ascending(a, b Object) bool {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName())) < 0
}

// positions indexes the first objects of a list, with room for those of the whole list.
func positions[O Object](first []O, whole int) map[types.NamespacedName]int {
	index := make(map[types.NamespacedName]int, whole)
	for i, o := range first {
		index[nameOf(o)] = i
	}
	return index
}

func nameOf(o Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// validateObjects is ValidateList for objects of several kinds.
func validateObjects(field string, list Observed[Object]) error {
	if !list.Complete && len(list.Items) > 0 {
		return &InputError{Field: field, Problem: "has items of a read that was not completed"}
	}
	seen := make(map[Key]bool, len(list.Items))
	for i, o := range list.Items {
		key, problem := KeyOf(o), ""
		switch {
		case key == (Key{}):
			problem = "is nil or has no kind"
		case seen[key]:
			problem = "repeats " + key.String()
		}
		if problem != "" {
			return &InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: problem}
		}
		seen[key] = true
	}
	return nil
}

func validateEntry(o Object, checks []Check) (field, problem string) {
	switch {
	case isNil(o):
		return "", "is nil"
	case o.GetName() == "":
		return ".metadata.name", "is empty"
	}
	for _, check := range checks {
		if field, problem = check(o); problem != "" {
			return field, problem
		}
	}
	return "", ""
}

// InNamespace is the Check that an object is of a namespace.
func InNamespace(namespace string) Check {
	return func(o Object) (field, problem string) {
		if o.GetNamespace() == namespace {
			return "", ""
		}
		return ".metadata.namespace", fmt.Sprintf("is %q, not %q", o.GetNamespace(), namespace)
	}
}

// Writable is the Check that an object can be written safely: it has a UID and a resourceVersion.
func Writable(o Object) (field, problem string) {
	switch {
	case o.GetUID() == "":
		return ".metadata.uid", "is empty, so nothing could be written safely"
	case o.GetResourceVersion() == "":
		return ".metadata.resourceVersion", "is empty, so nothing could be written safely"
	}
	return "", ""
}

// ListVisit visits the lists of an Input. Every Input has one method that names each of its lists once:
//
//	func (in *Input) lists(v *olmcore.ListVisit) {
//		olmcore.VisitList(v, "Pods", &in.Pods, olmcore.Required)
//		olmcore.VisitList(v, "Nodes", &in.Nodes, olmcore.Optional)
//	}
//
// Validation, the coverage by a Checkpoint and the search for lists that were not read derive from that method. The
// zero value is not valid: use CoverLists, ValidateLists or UnreadLists.
type ListVisit struct {
	purpose  visitPurpose
	coverage Coverage
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
func CoverLists(c Coverage) ListVisit { return ListVisit{purpose: visitToCover, coverage: c} }

// ValidateLists returns a visit whose Err is an *InputError if a required list was not read, or if a list breaks the
// contract that ValidateList checks.
func ValidateLists() ListVisit { return ListVisit{purpose: visitToValidate} }

// UnreadLists returns a visit whose Unread names the lists that were not read.
func UnreadLists() ListVisit { return ListVisit{purpose: visitToFindUnread} }

// Coverage returns the Coverage after the visit.
func (v *ListVisit) Coverage() Coverage { return v.coverage }

// Err returns the first error of the visit.
func (v *ListVisit) Err() error { return v.err }

// Unread returns the names of the fields whose lists were not read, in the order of the visit.
func (v *ListVisit) Unread() []string { return v.unread }

// VisitList visits a list of objects. Field is the name of the field, such as "Pods". The checks apply to each object
// when the list is validated.
func VisitList[O Object](v *ListVisit, field string, list *Observed[O], need Need, checks ...Check) {
	switch v.purpose {
	case visitToCover: // every reconcile covers its lists, so this does nothing else
		CoverObjects(&v.coverage, *list)
		return
	case visitToValidate:
		v.validated(ValidateList(field, *list, checks...))
	}
	v.visitRead(field, list.Complete, need)
}

// VisitObjects visits a list of objects of several kinds.
func VisitObjects(v *ListVisit, field string, list *Observed[Object], need Need) {
	switch v.purpose {
	case visitToCover:
		CoverObjects(&v.coverage, *list)
		return
	case visitToValidate:
		v.validated(validateObjects(field, *list))
	}
	v.visitRead(field, list.Complete, need)
}

// VisitValues visits a list of values that are not objects, such as names.
func VisitValues[T comparable](v *ListVisit, field string, list *Observed[T], need Need) {
	switch {
	case v.purpose == visitToCover:
		CoverObserved(&v.coverage, *list)
		return
	case v.purpose == visitToValidate && !list.Complete && len(list.Items) > 0:
		v.validated(&InputError{Field: field, Problem: "has items of a read that was not completed"})
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
		v.err = &InputError{Field: field, Problem: "were not read"}
	}
}
