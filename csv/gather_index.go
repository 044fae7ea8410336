// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// groupsNaming lists the OperatorGroups of all namespaces, or at least those that
// list one of the APIs.
func (g *gatherer) groupsNaming(apis []api) olmcore.Observed[*operatorsv1.OperatorGroup] {
	terms := make([]string, len(apis))
	for i, a := range apis {
		terms[i] = a.String()
	}
	return indexed(g, "csv.OperatorGroup", terms, func(o *operatorsv1.OperatorGroup) []string {
		entries := strings.Split(groupAPIs(o), ",")
		for i := range entries {
			entries[i] = strings.TrimSpace(entries[i])
		}
		return entries
	})
}

// bindingsNaming lists all ClusterRoleBindings, or at least those that bind an
// account of a namespace or have one of the names.
func (g *gatherer) bindingsNaming(namespace string, accounts, names []string) olmcore.Observed[*rbacv1.ClusterRoleBinding] {
	const user, group = "system:serviceaccount:", "system:serviceaccounts"
	terms := []string{group, group + ":" + namespace, "system:authenticated"}
	for _, name := range accounts {
		terms = append(terms, user+namespace+":"+name)
	}
	for _, name := range names {
		terms = append(terms, "/"+name)
	}
	return indexed(g, "csv.ClusterRoleBinding", terms, func(b *rbacv1.ClusterRoleBinding) []string {
		found := []string{"/" + b.Name}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				found = append(found, user+s.Namespace+":"+s.Name)
			} else {
				found = append(found, s.Name)
			}
		}
		return found
	})
}

// index is the objects of a kind by their terms, as positions in the list.
type index[T olmcore.Object] struct {
	all    olmcore.Observed[T]
	byTerm map[string][]int
	err    error
}

// indexed lists the objects of all namespaces, or, where the Reader keeps an index,
// those that have one of the terms. Callers look at each of them.
func indexed[T olmcore.Object](g *gatherer, key string, terms []string, termsOf func(T) []string) olmcore.Observed[T] {
	keeper, ok := g.r.(olmcore.Indexer)
	if !ok || g.err != nil {
		return list[T](g, "", nil)
	}
	kept := keeper.Index(key, func() any {
		x := &index[T]{all: list[T](g, "", nil), err: g.err, byTerm: map[string][]int{}}
		for i, o := range x.all.Items {
			for _, term := range termsOf(o) {
				x.byTerm[term] = append(x.byTerm[term], i)
			}
		}
		return x
	}).(*index[T])
	g.err = kept.err
	var positions []int
	for _, term := range terms {
		positions = append(positions, kept.byTerm[term]...)
	}
	slices.Sort(positions)
	found := olmcore.Observed[T]{Complete: kept.all.Complete}
	for _, i := range slices.Compact(positions) {
		found.Items = append(found.Items, kept.all.Items[i])
	}
	return found
}
