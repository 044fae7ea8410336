// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

type (
	version = v1alpha1.ClusterServiceVersion
	phase   = v1alpha1.ClusterServiceVersionPhase
)

// chain is the forest that spec.replaces makes of the CSVs of a namespace: each
// has at most one predecessor. Self references count for nothing, and every
// cycle loses the edge whose replacing CSV is the oldest, so that walks end and
// the newest CSV of a cycle is its head.
type chain struct {
	self   *version
	others []*version
}

func chainOf(in *Input) chain {
	return chain{self: in.ClusterServiceVersion, others: in.Neighbours.Items}
}

// at enumerates the CSVs of the chain: self, then the others; nil for those
// that do not count.
func (c chain) at(i int) *version {
	if i == 0 {
		return c.self
	}
	o := c.others[i-1]
	if o.Namespace != c.self.Namespace || o.Name == c.self.Name || isCopied(o) {
		return nil
	}
	return o
}

func (c chain) len() int { return 1 + len(c.others) }

// replaced follows spec.replaces without regard to cycles.
func (c chain) replaced(v *version) *version {
	if v.Spec.Replaces == "" || v.Spec.Replaces == v.Name {
		return nil
	}
	var found *version
	for i := range c.len() {
		if o := c.at(i); o != nil && o.Name == v.Spec.Replaces && (found == nil || o.UID < found.UID) {
			found = o
		}
	}
	return found
}

// predecessor returns the CSV that v replaces, nil when there is none.
func (c chain) predecessor(v *version) *version {
	p := c.replaced(v)
	if p == nil || c.startsCycle(v) {
		return nil
	}
	return p
}

// startsCycle reports whether v is on a cycle and its edge is the one to drop.
func (c chain) startsCycle(v *version) bool {
	oldest := v
	for o, steps := c.replaced(v), 0; o != nil && steps < c.len(); o, steps = c.replaced(o), steps+1 {
		if o == v {
			return oldest == v
		}
		if olderThan(o, oldest) < 0 {
			oldest = o
		}
	}
	return false
}

// inCycle reports whether following spec.replaces from v leads back to it.
func (c chain) inCycle(v *version) bool {
	o := c.replaced(v)
	for steps := 0; o != nil && o != v && steps < c.len(); steps++ {
		o = c.replaced(o)
	}
	return o == v
}

func olderThan(a, b *version) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		compareVersions(a, b),
		strings.Compare(a.Name, b.Name),
	)
}

func compareVersions(a, b *version) int {
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

// successors returns the CSVs that replace v, the preferred one first.
func (c chain) successors(v *version) []*version {
	var found []*version
	for i := range c.len() {
		if s := c.at(i); s != nil && s != v && s.Spec.Replaces == v.Name && c.predecessor(s) == v {
			found = append(found, s)
		}
	}
	if len(found) > 1 {
		slices.SortFunc(found, func(a, b *version) int {
			return cmp.Or(
				cmp.Compare(rank(b), rank(a)),
				compareVersions(b, a),
				b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
				strings.Compare(b.Name, a.Name),
			)
		})
	}
	return found
}

func rank(v *version) int {
	if v.Status.Phase == v1alpha1.CSVPhaseSucceeded {
		return 1
	}
	return 0
}

// descendants returns all transitive successors of v, nearest first. They form
// a tree, so none comes twice.
func (c chain) descendants(v *version) []*version {
	found := c.successors(v)
	for i := 0; i < len(found); i++ {
		found = append(found, c.successors(found[i])...)
	}
	return found
}

// successor returns the CSV that takes over from self, nil when there is none.
// One that is being deleted counts only while it is Succeeded and has a live
// Succeeded successor itself.
func (c chain) successor() *version {
	if c.isHead() {
		return nil
	}
	for _, s := range c.successors(c.self) {
		if s.DeletionTimestamp == nil {
			return s
		}
		if s.Status.Phase == v1alpha1.CSVPhaseSucceeded && slices.ContainsFunc(c.successors(s), isLiveSucceeded) {
			return s
		}
	}
	return nil
}

// isHead reports whether nothing claims to replace self. It costs one pass over
// the neighbours and no memory.
func (c chain) isHead() bool {
	for _, o := range c.others {
		if o.Spec.Replaces == c.self.Name {
			return false
		}
	}
	return true
}

func isLiveSucceeded(v *version) bool {
	return v.DeletionTimestamp == nil && v.Status.Phase == v1alpha1.CSVPhaseSucceeded
}

// takenOver returns a live transitive successor that has begun to install, nil
// when there is none: from then on self must not install anything any more.
func (c chain) takenOver() *version {
	if c.isHead() {
		return nil
	}
	for _, s := range c.descendants(c.self) {
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

// related reports whether v and self are on one line of replacements.
func (c chain) related(v *version) bool {
	for p, steps := c.predecessor(c.self), 0; p != nil && steps < c.len(); p, steps = c.predecessor(p), steps+1 {
		if p == v {
			return true
		}
	}
	return slices.Contains(c.descendants(c.self), v)
}
