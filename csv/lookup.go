// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// indexNamed returns the position of the object with a name, -1 when there is
// none.
func indexNamed[T metav1.Object](items []T, namespace, name string) int {
	return slices.IndexFunc(items, func(item T) bool { return item.GetName() == name && item.GetNamespace() == namespace })
}

// finder finds objects by name as indexNamed does; of many at the cost of few.
type finder[T metav1.Object] struct {
	items []T
	at    map[types.NamespacedName]int // nil when there are few
}

// few is the number of objects up to which going through them needs no index.
const few = 32

func finderOf[T metav1.Object](items []T) finder[T] {
	f := finder[T]{items: items}
	if len(items) <= few {
		return f
	}
	f.at = make(map[types.NamespacedName]int, len(items))
	for i, item := range items {
		f.at[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = i
	}
	return f
}

// find returns a position, -1 when there is none.
func (f finder[T]) find(namespace, name string) int {
	if f.at == nil {
		return indexNamed(f.items, namespace, name)
	}
	if i, ok := f.at[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return i
	}
	return -1
}

// repeated returns the first of n names that stands twice, as its position, -1
// when none does.
func repeated(n int, name func(i int) string) int {
	var seen map[string]bool
	if n > few {
		seen = make(map[string]bool, n)
	}
	for i := range n {
		if n > few {
			if seen[name(i)] {
				return i
			}
			seen[name(i)] = true
			continue
		}
		for j := range i {
			if name(j) == name(i) {
				return i
			}
		}
	}
	return -1
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
