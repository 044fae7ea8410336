// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Now returns an *olmcore.InputError if now is zero, else nil.
func Now(now time.Time) error {
	if now.IsZero() {
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return nil
}

// NotEmpty returns an *olmcore.InputError for a field if its text is empty, else nil.
func NotEmpty(field, text string) error {
	if text == "" {
		return &olmcore.InputError{Field: field, Problem: "is empty"}
	}
	return nil
}

// Terminating reports whether a Namespace in the list is being deleted.
func Terminating(list olmcore.Observed[*corev1.Namespace]) bool {
	return slices.ContainsFunc(list.Items, func(n *corev1.Namespace) bool {
		return n != nil && (n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating)
	})
}

// ByName returns a copy of a list, sorted by name.
func ByName[O olmcore.Object](list []O) []O {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b O) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}
