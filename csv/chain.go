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

// predecessor returns the CSV that self replaces, nil when there is none.
func (c chain) predecessor() *version {
	if r := c.self.Spec.Replaces; r == "" || r == c.self.Name {
		return nil
	}
	l := c.links()
	return l.predecessor(c.self)
}

// inCycle reports whether following spec.replaces from self leads back to it.
func (c chain) inCycle() bool {
	if c.self.Spec.Replaces == "" || c.isHead() {
		return false
	}
	l := c.links()
	o := l.replaced(c.self)
	for steps := 0; o != nil && o != c.self && steps < c.len(); steps++ {
		o = l.replaced(o)
	}
	return o == c.self
}

// links are the replacements of a chain, indexed for one walk over it: a walk
// takes as many steps as there are CSVs.
type links struct {
	named map[string]*version   // of several with one name that with the lowest UID
	after map[string][]*version // those that name a CSV in spec.replaces
	cut   map[*version]bool     // those whose edge a circle loses
}

func (c chain) links() links {
	l := links{named: make(map[string]*version, c.len()), after: map[string][]*version{}, cut: map[*version]bool{}}
	for i := range c.len() {
		if v := c.at(i); v != nil {
			if have := l.named[v.Name]; have == nil || v.UID < have.UID {
				l.named[v.Name] = v
			}
			if r := v.Spec.Replaces; r != "" && r != v.Name {
				l.after[r] = append(l.after[r], v)
			}
		}
	}
	seen := make(map[*version]int, c.len())
	for i := range c.len() {
		at := c.at(i)
		for ; at != nil && seen[at] == 0; at = l.replaced(at) {
			seen[at] = i + 1
		}
		if at != nil && seen[at] == i+1 {
			l.cut[l.oldestAround(at)] = true
		}
	}
	return l
}

// oldestAround returns the oldest CSV of the circle that v is on.
func (l links) oldestAround(v *version) *version {
	oldest := v
	for o := l.replaced(v); o != v; o = l.replaced(o) {
		if olderThan(o, oldest) < 0 {
			oldest = o
		}
	}
	return oldest
}

// replaced follows spec.replaces without regard to cycles.
func (l links) replaced(v *version) *version {
	if v.Spec.Replaces == "" || v.Spec.Replaces == v.Name {
		return nil
	}
	return l.named[v.Spec.Replaces]
}

func (l links) predecessor(v *version) *version {
	if l.cut[v] {
		return nil
	}
	return l.replaced(v)
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
func (l links) successors(v *version) []*version {
	var found []*version
	for _, s := range l.after[v.Name] {
		if s != v && l.predecessor(s) == v {
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
func (l links) descendants(v *version) []*version {
	found := l.successors(v)
	for i := 0; i < len(found); i++ {
		found = append(found, l.successors(found[i])...)
	}
	return found
}

// descendants returns all transitive successors of self, nearest first.
func (c chain) descendants() []*version {
	if c.isHead() {
		return nil
	}
	l := c.links()
	return l.descendants(c.self)
}

// successor returns the CSV that takes over from self, nil when there is none.
// One that is being deleted counts only while it is Succeeded and has a live
// Succeeded successor itself.
func (c chain) successor() *version {
	if c.isHead() {
		return nil
	}
	l := c.links()
	for _, s := range l.successors(c.self) {
		if s.DeletionTimestamp == nil {
			return s
		}
		if s.Status.Phase == v1alpha1.CSVPhaseSucceeded && slices.ContainsFunc(l.successors(s), isLiveSucceeded) {
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
	for _, s := range c.descendants() {
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

// family are the CSVs on one line of replacements with self, before and after it.
func (c chain) family() map[*version]bool {
	l := c.links()
	family := map[*version]bool{}
	for p := l.predecessor(c.self); p != nil; p = l.predecessor(p) {
		family[p] = true
	}
	for _, s := range l.descendants(c.self) {
		family[s] = true
	}
	return family
}
