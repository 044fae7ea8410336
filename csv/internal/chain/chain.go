// SPDX-License-Identifier: Apache-2.0

// Package chain is the upgrade chain of ClusterServiceVersions: which replaces which.
// The CSVs of a namespace form a forest, in which each has at most one predecessor. A
// CSV that replaces itself replaces nothing, and every cycle loses the edge whose
// replacing CSV is the oldest, so that walks end and the newest CSV of a cycle is its
// head.
package chain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/owned"
)

// Chain is a CSV among those of its namespace.
type Chain struct {
	self      *owned.CSV
	named     map[string]*owned.CSV   // of several with one name the one with the lowest UID
	replacing map[string][]*owned.CSV // those that name a CSV in spec.replaces
	cut       map[*owned.CSV]bool     // those whose edge a cycle loses
}

// Of returns the chain of a CSV. Of the others, copies and CSVs of other namespaces
// count for nothing, nor does another one of its name.
func Of(self *owned.CSV, others []*owned.CSV) Chain {
	members := []*owned.CSV{self}
	for _, o := range others {
		if IsNeighbour(self, o) {
			members = append(members, o)
		}
	}
	l := Chain{self: self, named: make(map[string]*owned.CSV, len(members)), replacing: map[string][]*owned.CSV{}, cut: map[*owned.CSV]bool{}}
	for _, v := range members {
		if have := l.named[v.Name]; have == nil || v.UID < have.UID {
			l.named[v.Name] = v
		}
		if r := v.Spec.Replaces; r != "" && r != v.Name {
			l.replacing[r] = append(l.replacing[r], v)
		}
	}
	seen := make(map[*owned.CSV]int, len(members))
	for i, v := range members {
		for ; v != nil && seen[v] == 0; v = l.replaced(v) {
			seen[v] = i + 1
		}
		if v != nil && seen[v] == i+1 {
			l.cut[l.oldestOfCycle(v)] = true
		}
	}
	return l
}

// IsNeighbour reports whether another CSV can have to do with one: it is of the same
// namespace, has another name, and is no copy.
func IsNeighbour(self, other *owned.CSV) bool {
	return other.Namespace == self.Namespace && other.Name != self.Name && !other.IsCopied()
}

// Predecessor returns the CSV that self replaces, nil when there is none.
func (l Chain) Predecessor() *owned.CSV { return l.predecessor(l.self) }

// Descendants returns all direct and indirect successors of self, nearest first. They
// form a tree, so none comes twice.
func (l Chain) Descendants() []*owned.CSV {
	found := l.successors(l.self)
	for i := 0; i < len(found); i++ {
		found = append(found, l.successors(found[i])...)
	}
	return found
}

// Successor returns the CSV that takes over from self, nil when there is none. One
// that is being deleted counts only while it is Succeeded and has a live Succeeded
// successor itself.
func (l Chain) Successor() *owned.CSV {
	for _, s := range l.successors(l.self) {
		if s.DeletionTimestamp == nil {
			return s
		}
		if s.Status.Phase == v1alpha1.CSVPhaseSucceeded && slices.ContainsFunc(l.successors(s), isLiveSucceeded) {
			return s
		}
	}
	return nil
}

// IsFollowed reports whether a later version is installed: a live successor, direct or
// not, that is Succeeded.
func (l Chain) IsFollowed() bool { return slices.ContainsFunc(l.Descendants(), isLiveSucceeded) }

// TakenOver returns a live successor, direct or not, that has begun to install, nil
// when there is none: from then on self must not install anything any more.
func (l Chain) TakenOver() *owned.CSV {
	for _, s := range l.Descendants() {
		if s.DeletionTimestamp != nil {
			continue
		}
		switch s.Status.Phase {
		case v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseReplacing:
			return s
		}
	}
	return nil
}

// InCycle reports whether following spec.replaces from self leads back to it.
func (l Chain) InCycle() bool {
	o := l.replaced(l.self)
	for steps := 0; o != nil && o != l.self && steps < len(l.named); steps++ {
		o = l.replaced(o)
	}
	return o == l.self
}

// Relatives are the CSVs that self replaces, directly or not, and its descendants.
func (l Chain) Relatives() map[*owned.CSV]bool {
	relatives := map[*owned.CSV]bool{}
	for p := l.predecessor(l.self); p != nil; p = l.predecessor(p) {
		relatives[p] = true
	}
	for _, s := range l.Descendants() {
		relatives[s] = true
	}
	return relatives
}

// replaced follows spec.replaces without regard to cycles.
func (l Chain) replaced(v *owned.CSV) *owned.CSV {
	if v.Spec.Replaces == "" || v.Spec.Replaces == v.Name {
		return nil
	}
	return l.named[v.Spec.Replaces]
}

func (l Chain) predecessor(v *owned.CSV) *owned.CSV {
	if l.cut[v] {
		return nil
	}
	return l.replaced(v)
}

// successors returns the CSVs that replace v, the preferred one first.
func (l Chain) successors(v *owned.CSV) []*owned.CSV {
	var found []*owned.CSV
	for _, s := range l.replacing[v.Name] {
		if s != v && l.predecessor(s) == v {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *owned.CSV) int {
		return cmp.Or(
			CompareSucceeded(a, b),
			compareVersions(b, a),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			strings.Compare(b.Name, a.Name),
		)
	})
	return found
}

// oldestOfCycle returns the oldest CSV of the cycle that v is on.
func (l Chain) oldestOfCycle(v *owned.CSV) *owned.CSV {
	oldest := v
	for o := l.replaced(v); o != v; o = l.replaced(o) {
		older := cmp.Or(o.CreationTimestamp.Compare(oldest.CreationTimestamp.Time), compareVersions(o, oldest), strings.Compare(o.Name, oldest.Name))
		if older < 0 {
			oldest = o
		}
	}
	return oldest
}

// CompareSucceeded orders CSVs that are Succeeded before others.
func CompareSucceeded(a, b *owned.CSV) int {
	rank := func(v *owned.CSV) int {
		if v.Status.Phase == v1alpha1.CSVPhaseSucceeded {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

func compareVersions(a, b *owned.CSV) int {
	if c := a.Spec.Version.Compare(b.Spec.Version.Version); c != 0 {
		return c
	}
	ra, rb := a.Spec.Release.Release, b.Spec.Release.Release
	for i := range min(len(ra), len(rb)) {
		if c := ra[i].Compare(rb[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(ra), len(rb))
}

func isLiveSucceeded(v *owned.CSV) bool {
	return v.DeletionTimestamp == nil && v.Status.Phase == v1alpha1.CSVPhaseSucceeded
}
