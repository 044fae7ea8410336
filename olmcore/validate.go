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
