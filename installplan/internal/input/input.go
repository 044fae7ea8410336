// SPDX-License-Identifier: Apache-2.0

// Package input checks and reads what the Inputs of package installplan and those below it hold.
package input

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// VisibilityGrace is how long something that another object proves to exist may be missing in an Input, as it comes
// from a stale cache.
const VisibilityGrace = 10 * time.Second

// Now returns an *olmcore.InputError for a time that is not set.
func Now(now time.Time) error {
	if now.IsZero() {
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return nil
}

// NotEmpty returns an *olmcore.InputError for a text that is not set.
func NotEmpty(field, text string) error {
	if text == "" {
		return &olmcore.InputError{Field: field, Problem: "is empty"}
	}
	return nil
}

// Terminating reports whether one of some Namespaces is being deleted.
func Terminating(list olmcore.Observed[*corev1.Namespace]) bool {
	return slices.ContainsFunc(list.Items, func(n *corev1.Namespace) bool {
		return n != nil && (n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating)
	})
}

// ByName returns the objects of a list, sorted by name.
func ByName[O olmcore.Object](list []O) []O {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b O) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}
