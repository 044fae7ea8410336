// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/nilcheck"
	"github.com/olmcore/olm/olmcore"
)

// Check returns the first problem of an object of an Input, and the field of the object that has the problem, such as
// ".metadata.uid". The problem is empty if the object is valid.
type Check func(o olmcore.Object) (field, problem string)

// ValidateList returns an *olmcore.InputError if a list of an Input is invalid: it has entries but was not read
// completely, an entry is nil or has no name, two entries have the same name, or a check reports a problem. field is
// the name of the list, such as "Pods".
func ValidateList[O olmcore.Object](field string, list olmcore.Observed[O], checks ...Check) error {
	if !list.Complete && len(list.Items) > 0 {
		return &olmcore.InputError{Field: field, Problem: "has items of a read that was not completed"}
	}
	var seen map[types.NamespacedName]int // nil while the entries are in ascending order, which excludes duplicates
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
			return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]%s", field, i, below), Problem: problem}
		}
	}
	return nil
}

// ascending reports whether a comes before b by namespace and name.
func ascending(a, b olmcore.Object) bool {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName())) < 0
}

// positions indexes the first objects of a list, with room for those of the whole list.
func positions[O olmcore.Object](first []O, whole int) map[types.NamespacedName]int {
	index := make(map[types.NamespacedName]int, whole)
	for i, o := range first {
		index[nameOf(o)] = i
	}
	return index
}

func nameOf(o olmcore.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// validateObjects is ValidateList for objects of several kinds.
func validateObjects(field string, list olmcore.Observed[olmcore.Object]) error {
	if !list.Complete && len(list.Items) > 0 {
		return &olmcore.InputError{Field: field, Problem: "has items of a read that was not completed"}
	}
	seen := make(map[olmcore.Key]bool, len(list.Items))
	for i, o := range list.Items {
		key, problem := olmcore.KeyOf(o), ""
		switch {
		case key == (olmcore.Key{}):
			problem = "is nil or has no kind"
		case seen[key]:
			problem = "repeats " + key.String()
		}
		if problem != "" {
			return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: problem}
		}
		seen[key] = true
	}
	return nil
}

func validateEntry(o olmcore.Object, checks []Check) (field, problem string) {
	switch {
	case nilcheck.IsNil(o):
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

// InNamespace returns a Check that an object belongs to a namespace.
func InNamespace(namespace string) Check {
	return func(o olmcore.Object) (field, problem string) {
		if o.GetNamespace() == namespace {
			return "", ""
		}
		return ".metadata.namespace", fmt.Sprintf("is %q, not %q", o.GetNamespace(), namespace)
	}
}

// Writable is a Check that an object has the UID and the resourceVersion that a safe write needs.
func Writable(o olmcore.Object) (field, problem string) {
	switch {
	case o.GetUID() == "":
		return ".metadata.uid", "is empty, so nothing could be written safely"
	case o.GetResourceVersion() == "":
		return ".metadata.resourceVersion", "is empty, so nothing could be written safely"
	}
	return "", ""
}
