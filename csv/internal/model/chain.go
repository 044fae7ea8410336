// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"

	semver "github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Chain is the position of a CSV in its upgrade chain. The CSVs of a namespace form a forest, in which each has at most
// one predecessor. A CSV that replaces itself is treated as if it replaced nothing. In a cycle, spec.replaces of the
// oldest CSV is ignored. So every walk ends, and the newest CSV of a cycle is its head.
type Chain struct {
	// Predecessor is the CSV that this CSV replaces, or nil if there is none.
	Predecessor *CSV
	// Successor is the CSV that replaces this CSV, or nil if there is none. A CSV that is being deleted is a Successor
	// only if it is Succeeded, and if a Succeeded CSV that is not being deleted replaces it.
	Successor *CSV
	// TakenOver is a live direct or indirect successor whose installation has started, or nil if there is none. If
	// TakenOver is set, the CSV must not install anything.
	TakenOver *CSV
	// Followed is true if a live direct or indirect successor is Succeeded.
	Followed bool
	// InCycle is true if the chain of spec.replaces leads from the CSV back to the CSV.
	InCycle bool
	// Descendants contains the direct and indirect successors of the CSV, nearest first. Relatives contains the
	// Descendants, and the direct and indirect predecessors of the CSV.
	Descendants []*CSV
	Relatives   sets.Set[*CSV]
}

// IsNeighbour reports whether self and other are different CSVs of the same namespace, and other is not a copied CSV.
func IsNeighbour(self, other *CSV) bool {
	return other.Namespace == self.Namespace && other.Name != self.Name && !other.IsCopied()
}

// ChainOf returns the position of a CSV in its upgrade chain. others may contain any CSVs. CSVs that are not neighbours
// of self are ignored.
func ChainOf(self *CSV, others []*CSV) Chain {
	members := []*CSV{self}
	for _, o := range others {
		if IsNeighbour(self, o) {
			members = append(members, o)
		}
	}
	if len(members) == 1 {
		return Chain{}
	}
	predecessor, inCycle := predecessors(self, members)
	successors := successorsOf(members, predecessor)
	c := Chain{Predecessor: predecessor[self], InCycle: inCycle, Descendants: slices.Clone(successors[self])}
	for i := 0; i < len(c.Descendants); i++ {
		c.Descendants = append(c.Descendants, successors[c.Descendants[i]]...)
	}
	c.Relatives = sets.New(c.Descendants...)
	for p := c.Predecessor; p != nil; p = predecessor[p] {
		c.Relatives.Insert(p)
	}
	c.Followed = slices.ContainsFunc(c.Descendants, isLiveSucceeded)
	c.TakenOver = firstCSV(c.Descendants, hasBegun)
	c.Successor = firstCSV(successors[self], func(s *CSV) bool {
		return s.DeletionTimestamp == nil || isSucceeded(s) && slices.ContainsFunc(successors[s], isLiveSucceeded)
	})
	return c
}

// firstCSV returns the first CSV that passes a test, or nil.
func firstCSV(list []*CSV, test func(*CSV) bool) *CSV {
	if i := slices.IndexFunc(list, test); i >= 0 {
		return list[i]
	}
	return nil
}

// predecessors returns the CSV that each member replaces, without cycles, and whether self was part of a cycle.
func predecessors(self *CSV, members []*CSV) (predecessor map[*CSV]*CSV, inCycle bool) {
	named := make(map[string]*CSV, len(members))
	for _, v := range members {
		named[v.Name] = v
	}
	predecessor = map[*CSV]*CSV{}
	for _, v := range members {
		p := named[v.Spec.Replaces]
		if p != nil && p != v {
			predecessor[v] = p
		}
	}
	inCycle = cutCycles(self, members, predecessor)
	return predecessor, inCycle
}

// successorsOf returns the CSVs that replace each member, the preferred one first.
func successorsOf(members []*CSV, predecessor map[*CSV]*CSV) map[*CSV][]*CSV {
	successors := map[*CSV][]*CSV{}
	for _, v := range members {
		if p := predecessor[v]; p != nil {
			successors[p] = append(successors[p], v)
		}
	}
	for _, list := range successors {
		slices.SortFunc(list, comparePreference)
	}
	return successors
}

// cutCycles removes the edge of the oldest CSV from each cycle, and reports whether self is part of one.
func cutCycles(self *CSV, members []*CSV, predecessor map[*CSV]*CSV) (inCycle bool) {
	seen := make(map[*CSV]int, len(members)) // number of the walk, by CSV
	for i, v := range members {
		for ; v != nil && seen[v] == 0; v = predecessor[v] {
			seen[v] = i + 1
		}
		if v == nil || seen[v] != i+1 {
			continue
		}
		cycle := []*CSV{v}
		for o := predecessor[v]; o != v; o = predecessor[o] {
			cycle = append(cycle, o)
		}
		inCycle = inCycle || slices.Contains(cycle, self)
		delete(predecessor, slices.MinFunc(cycle, func(a, b *CSV) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), compareVersions(a, b), strings.Compare(a.Name, b.Name))
		}))
	}
	return inCycle
}

// comparePreference sorts CSVs that replace the same CSV. The preferred one comes first.
func comparePreference(a, b *CSV) int {
	return cmp.Or(
		CompareSucceeded(a, b),
		compareVersions(b, a),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		strings.Compare(b.Name, a.Name),
	)
}

// CompareSucceeded orders Succeeded CSVs before other CSVs. It returns 0 if both CSVs are Succeeded, or neither is.
func CompareSucceeded(a, b *CSV) int {
	switch {
	case isSucceeded(a) == isSucceeded(b):
		return 0
	case isSucceeded(a):
		return -1
	}
	return 1
}

func compareVersions(a, b *CSV) int {
	return cmp.Or(
		a.Spec.Version.Compare(b.Spec.Version.Version),
		slices.CompareFunc(a.Spec.Release.Release, b.Spec.Release.Release, semver.PRVersion.Compare),
	)
}

// hasBegun reports whether a live CSV has begun to install.
func hasBegun(v *CSV) bool {
	switch v.Status.Phase {
	case v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseReplacing:
		return v.DeletionTimestamp == nil
	}
	return false
}

func isSucceeded(v *CSV) bool { return v.Status.Phase == v1alpha1.CSVPhaseSucceeded }

func isLiveSucceeded(v *CSV) bool { return v.DeletionTimestamp == nil && isSucceeded(v) }
