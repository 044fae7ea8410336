// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// indexNamed returns the position of the object with a name, -1 when there is
// none. Should the caller have listed an object twice, the one with the lowest
// UID is taken whatever the order.
func indexNamed[T metav1.Object](items []T, namespace, name string) int {
	found := -1
	for i, item := range items {
		if item.GetName() == name && item.GetNamespace() == namespace && (found < 0 || item.GetUID() < items[found].GetUID()) {
			found = i
		}
	}
	return found
}

// isCSVReference compares group and kind and leaves the version out: the owner
// is the same object whatever version the reference was written with.
func isCSVReference(r *metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return r.Kind == v1alpha1.ClusterServiceVersionKind && group == v1alpha1.GroupName
}

func isCopied(c *v1alpha1.ClusterServiceVersion) bool {
	return c.Status.Reason == v1alpha1.CSVReasonCopied || v1alpha1.IsCopied(c)
}
