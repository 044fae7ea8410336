// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
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
	return indexed(g, "", terms, func(o *operatorsv1.OperatorGroup) []string {
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
	return indexed(g, "", bindingTerms(namespace, accounts, names), func(b *rbacv1.ClusterRoleBinding) []string {
		return termsOfBinding(b.Name, "", b.Subjects)
	})
}

// localBindingsNaming is bindingsNaming for the RoleBindings of the namespace.
func (g *gatherer) localBindingsNaming(namespace string, accounts, names []string) olmcore.Observed[*rbacv1.RoleBinding] {
	return indexed(g, namespace, bindingTerms(namespace, accounts, names), func(b *rbacv1.RoleBinding) []string {
		return termsOfBinding(b.Name, b.Namespace, b.Subjects)
	})
}

const accountUser, accountGroup = "system:serviceaccount:", "system:serviceaccounts"

func bindingTerms(namespace string, accounts, names []string) []string {
	terms := []string{accountGroup, accountGroup + ":" + namespace, "system:authenticated"}
	for _, name := range accounts {
		terms = append(terms, accountUser+namespace+":"+name)
	}
	for _, name := range names {
		terms = append(terms, "/"+name)
	}
	return terms
}

func termsOfBinding(name, namespace string, subjects []rbacv1.Subject) []string {
	terms := []string{"/" + name}
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			terms = append(terms, accountUser+cmp.Or(s.Namespace, namespace)+":"+s.Name)
		} else {
			terms = append(terms, s.Name)
		}
	}
	return terms
}

// subscriptionsNaming lists the Subscriptions of a namespace, or at least those whose
// status names a CSV.
func (g *gatherer) subscriptionsNaming(namespace, name string) olmcore.Observed[*v1alpha1.Subscription] {
	return indexed(g, namespace, []string{name}, func(s *v1alpha1.Subscription) []string {
		return []string{s.Status.InstalledCSV, s.Status.CurrentCSV}
	})
}

// Terms of CSVs: what stands in front of a name says of what it is one.
const (
	termName       = "name/" // its own name, and that of the CSV which it replaces
	termDeployment = "deployment/"
	termCRD        = "crd/"
	termAPI        = "api/"
)

func termsOfVersion(c *version) []string {
	terms := []string{termName + c.Name}
	if c.Spec.Replaces != "" {
		terms = append(terms, termName+c.Spec.Replaces)
	}
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		terms = append(terms, termDeployment+d.Name)
	}
	for i := range c.Spec.CustomResourceDefinitions.Owned {
		terms = append(terms, termCRD+c.Spec.CustomResourceDefinitions.Owned[i].Name)
	}
	return append(terms, apiTerms(c)...)
}

func apiTerms(c *version) []string {
	terms := make([]string, providedCount(c))
	for i := range terms {
		terms[i] = termAPI + provided(c, i).String()
	}
	return terms
}

// providersIn lists the CSVs of a namespace, or at least those that provide an API which
// c provides.
func (g *gatherer) providersIn(namespace string, c *version) olmcore.Observed[*version] {
	return indexed(g, namespace, apiTerms(c), termsOfVersion)
}

// near lists the CSVs of the namespace of c, or at least those that share a Deployment, a
// definition or an API with it, those that have one of the names, and those that
// spec.replaces connects with c, however far.
func (g *gatherer) near(c *version, names []string) olmcore.Observed[*version] {
	terms := termsOfVersion(c)
	for _, name := range names {
		terms = append(terms, termName+name)
	}
	if _, ok := g.r.(olmcore.Indexer); ok {
		terms = append(terms, g.lineTerms(c)...)
	}
	return indexed(g, c.Namespace, terms, termsOfVersion)
}

// lineTerms returns the names that spec.replaces connects with c.
func (g *gatherer) lineTerms(c *version) []string {
	queue, known := []string{termName + c.Name, termName + c.Spec.Replaces}, map[string]bool{"": true, c.Name: true, c.Spec.Replaces: true}
	for i := 0; i < len(queue); i++ {
		for _, o := range indexed(g, c.Namespace, queue[i:i+1], termsOfVersion).Items {
			for _, name := range [...]string{o.Name, o.Spec.Replaces} {
				if !known[name] {
					known[name] = true
					queue = append(queue, termName+name)
				}
			}
		}
	}
	return queue
}

// index is the objects of a kind by their terms, as positions in the list.
type index[T olmcore.Object] struct {
	all    olmcore.Observed[T]
	byTerm map[string][]int
	err    error
}

// indexed lists the objects of a namespace or, when it is empty, of all; where the Reader
// keeps an index, those that have one of the terms. Callers look at each of them. All
// calls for one kind have the same termsOf: it has one index.
func indexed[T olmcore.Object](g *gatherer, namespace string, terms []string, termsOf func(T) []string) olmcore.Observed[T] {
	keeper, ok := g.r.(olmcore.Indexer)
	if !ok || g.err != nil {
		return list[T](g, namespace, nil)
	}
	var kind T
	kept := keeper.Index(fmt.Sprintf("csv %T %s", kind, namespace), func() any {
		x := &index[T]{all: list[T](g, namespace, nil), err: g.err, byTerm: map[string][]int{}}
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
