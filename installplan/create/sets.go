// SPDX-License-Identifier: Apache-2.0

package create

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Set is the part of a Resolution for Subscriptions that depend on each other. Each Set gets its own InstallPlan if
// installplan.Config.SeparatePlans is set.
type Set struct {
	// Resolution contains the Operators and the Generated Subscriptions of the set. Its Observed and Decisions are
	// those of the whole namespace.
	Resolution olmcore.Resolution
	// Subscriptions contains the sorted names of the Subscriptions of the set. If it is nil, the set contains all
	// Subscriptions of the namespace.
	Subscriptions []string
}

// Sets splits a Resolution into sets of Subscriptions that depend on each other, sorted by their first operator. Each
// operator is in exactly one set. Two operators are in the same set if:
//
//   - one requires the other, or an installed operator requires both;
//   - they satisfy the same Subscription, replace the same version, or are of the same package.
//
// A Subscription is in the set of the operators that satisfy it and of the version that it follows. If its installed
// version requires operators, it is also in their set. A generated Subscription is in the set of its version. A
// Subscription for which the resolution installs nothing is in no set. If an operator belongs to no Subscription, any
// Subscription may need it. Then there is only one set, which contains the whole resolution. A failed resolution has no
// sets.
func Sets(r olmcore.Resolution) []Set {
	if r.Failure != nil {
		return nil
	}
	links := linksOf(r)
	var sets []Set
	index := map[int]int{} // positions in sets, by the root of their links
	setOf := func(version string) *Set {
		root := links.root(links.node(version))
		i, known := index[root]
		if !known {
			i = len(sets)
			index[root], sets = i, append(sets, Set{Resolution: olmcore.Resolution{Observed: r.Observed, Decisions: r.Decisions}})
		}
		return &sets[i]
	}
	operators, generated := slices.Clone(r.Operators), slices.Clone(r.Generated)
	slices.SortStableFunc(operators, func(a, b olmcore.Operator) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(generated, func(a, b *v1alpha1.Subscription) int { return strings.Compare(startingCSV(a), startingCSV(b)) })
	for _, o := range operators {
		s := setOf(versionNode(o.Name))
		s.Resolution.Operators = append(s.Resolution.Operators, o)
	}
	for _, g := range generated {
		s := setOf(versionNode(startingCSV(g)))
		s.Resolution.Generated = append(s.Resolution.Generated, g)
	}
	names := subscriptionsOf(r)
	for _, name := range names {
		if i, known := index[links.root(links.node(subscriptionNode(name)))]; known {
			sets[i].Subscriptions = append(sets[i].Subscriptions, name)
		}
	}
	if slices.ContainsFunc(sets, func(s Set) bool { return len(s.Subscriptions) == 0 }) {
		if len(names) == 0 {
			return nil // no Subscription can refer to a plan
		}
		return []Set{{Resolution: r}}
	}
	return sets
}

// subscriptionsOf returns the names of the Subscriptions that a Resolution is about, sorted.
func subscriptionsOf(r olmcore.Resolution) (names []string) {
	for _, f := range r.Observed {
		names = append(names, f.Name)
	}
	for _, d := range r.Decisions {
		names = append(names, d.Name)
	}
	for _, o := range r.Operators {
		names = append(names, o.For...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// startingCSV returns spec.startingCSV of a Subscription, or an empty string.
func startingCSV(s *v1alpha1.Subscription) string {
	if s == nil || s.Spec == nil {
		return ""
	}
	return s.Spec.StartingCSV
}

// links joins versions, packages and Subscriptions into sets.
type links struct {
	nodes  map[string]int
	parent []int
}

func versionNode(name string) string      { return "version/" + name }
func subscriptionNode(name string) string { return "subscription/" + name }

// linksOf returns the links of a Resolution.
func linksOf(r olmcore.Resolution) *links {
	l := &links{nodes: map[string]int{}}
	for _, o := range r.Operators {
		version := versionNode(o.Name)
		if l.node(version); o.Package != "" {
			l.join(version, "package/"+o.Package)
		}
		for _, other := range append([]string{o.Replaces}, o.RequiredBy...) {
			l.joinVersion(version, other)
		}
		for _, name := range o.For {
			l.join(version, subscriptionNode(name))
		}
	}
	for _, f := range r.Observed {
		l.joinVersion(subscriptionNode(f.Name), f.InstalledCSV)
		l.joinVersion(subscriptionNode(f.Name), f.CurrentCSV)
	}
	for _, d := range r.Decisions {
		l.joinVersion(subscriptionNode(d.Name), d.CurrentCSV)
	}
	return l
}

// joinVersion joins a node to a version, if there is one.
func (l *links) joinVersion(node, version string) {
	if version != "" {
		l.join(node, versionNode(version))
	}
}

// node returns the number of a node. A new node is not joined to any other.
func (l *links) node(name string) int {
	i, known := l.nodes[name]
	if !known {
		i = len(l.parent)
		l.nodes[name], l.parent = i, append(l.parent, i)
	}
	return i
}

// root returns the node that represents the set of a node.
func (l *links) root(i int) int {
	for l.parent[i] != i {
		l.parent[i] = l.parent[l.parent[i]]
		i = l.parent[i]
	}
	return i
}

// join joins two nodes, and the sets that they are in.
func (l *links) join(a, b string) {
	l.parent[l.root(l.node(a))] = l.root(l.node(b))
}
