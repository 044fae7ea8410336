// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// existingSource is the source of existing ClusterServiceVersions.
const existingSource = -1

// ref names an entry of a catalog, or an existing ClusterServiceVersion.
type ref struct {
	source int32
	entry  *entry
}

// segment is some candidates of one source.
type segment struct {
	source  int32
	entries []*entry
}

// choice is a demand that one of its candidates, the first possible, meets.
type choice struct {
	// Exactly one of the three says who demands it.
	sub    *subscription
	csv    *existing
	parent *node
	// index is the number of the parent's requirement.
	index    int
	segments []segment
	total    int
	// owner is the Subscription, or after them the existing CSV, that it serves.
	owner int32
}

func (c *choice) add(s segment) {
	if len(s.entries) > 0 {
		c.segments = append(c.segments, s)
		c.total += len(s.entries)
	}
}

func (c *choice) contains(r ref) bool {
	for _, s := range c.segments {
		if s.source == r.source && slices.Contains(s.entries, r.entry) {
			return true
		}
	}
	return false
}

// first returns the most preferred candidate; there must be one.
func (c *choice) first() ref { return ref{c.segments[0].source, c.segments[0].entries[0]} }

// node is an entry that was looked at in this call.
type node struct {
	ref
	id    int32
	owner int32
	// packages and apis are the numbers of what it excludes others from; name is
	// that of its own name, -1 for an existing one.
	packages, apis []int32
	name           int32
	// over are existing ClusterServiceVersions that it would replace.
	over []*node
	// blocked is why it must never be selected, with its text.
	blocked     RuleKind
	blockedText string
	// requirements, once expanded; dead is the first without any candidate, or -1.
	expanded bool
	choices  []choice
	dead     int
	// level is where the running search selected it, -1 when it is not.
	level int32
}

// graph holds what the searches of one call know already.
type graph struct {
	nodes    map[ref]*node
	byID     []*node
	store    []node
	packages numbering[string]
	names    numbering[string]
	apis     numbering[gvk]
	numbers  []int32 // room for the lists of nodes
	offers   map[offerKey]offer
	programs map[string]CELProgram
	rules    ruleTable
	closure  []*node // see considered
}

// numbering gives dense numbers to keys, and remembers for each number the last
// slot of the running search that occupies it.
type numbering[K comparable] struct {
	ids  map[K]int32
	keys []K
	head []int32
}

func (n *numbering[K]) id(key K) int32 {
	if id, ok := n.ids[key]; ok {
		return id
	}
	id := int32(len(n.keys))
	n.ids[key] = id
	n.keys = append(n.keys, key)
	n.head = append(n.head, -1)
	return id
}

func (g *graph) init() {
	g.nodes = map[ref]*node{}
	g.packages.ids = map[string]int32{}
	g.names.ids = map[string]int32{}
	g.apis.ids = map[gvk]int32{}
}

// node returns the node of an entry. owner counts when it is new.
func (p *problem) node(r ref, owner int32) *node {
	if n, ok := p.nodes[r]; ok {
		return n
	}
	if len(p.store) == cap(p.store) {
		p.store = make([]node, 0, max(8, min(256, 2*len(p.byID))))
	}
	p.store = append(p.store, node{ref: r, id: int32(len(p.byID)), owner: owner, name: -1, dead: -1, level: -1})
	n := &p.store[len(p.store)-1]
	p.nodes[r] = n
	p.byID = append(p.byID, n)

	n.packages = p.reserve(len(r.entry.packages))
	for i := range r.entry.packages {
		if id := p.packages.id(r.entry.packages[i].name); !slices.Contains(n.packages, id) {
			n.packages = append(n.packages, id)
		}
	}
	n.apis = p.reserve(len(r.entry.provides))
	for _, g := range r.entry.provides {
		n.apis = append(n.apis, p.apis.id(g))
	}
	n.blocked, n.blockedText = p.blocked(r)
	if r.source != existingSource {
		n.name = p.names.id(r.entry.name)
		p.over(n)
	}
	return n
}

// over finds the existing operators that a catalog entry cannot stay beside:
// what it would upgrade, and what has its name.
//
// Differs: OLM looks at names only within a package.
func (p *problem) over(n *node) {
	add := func(c *existing, owner int32) {
		if old := p.node(ref{existingSource, c.entry}, owner); !c.leftOut && !slices.Contains(n.over, old) {
			n.over = append(n.over, old)
		}
	}
	for _, s := range p.subsOver[n.entry.channel.pkg] {
		if s.source == n.source && slices.Contains(s.upgrades, n.entry) {
			add(s.current, s.index)
		}
	}
	if c := p.byName[n.entry.name]; c != nil {
		add(c, n.owner)
	}
}

// reserve returns an empty list with room for n numbers.
func (g *graph) reserve(n int) []int32 {
	const chunk = 256
	if len(g.numbers) < n {
		g.numbers = make([]int32, max(n, chunk))
	}
	list := g.numbers[:0:n]
	g.numbers = g.numbers[n:]
	return list
}

// blocked returns the rule that forbids an entry in any case.
func (p *problem) blocked(r ref) (RuleKind, string) {
	e := r.entry
	if e.deprecated {
		return BundleDeprecated, ""
	}
	if r.source == existingSource {
		return "", ""
	}
	if e.invalid != "" {
		return BundleInvalid, e.invalid
	}
	for _, q := range e.requirements {
		if err := p.compile(q.predicate); err != "" {
			return BundleInvalid, err
		}
	}
	if p.in.Exclude != nil {
		if reason := p.excluded(r); reason != "" {
			return BundleExcluded, reason
		}
	}
	return "", ""
}

// excluded asks the caller's Excluder, which may panic.
func (p *problem) excluded(r ref) (reason string) {
	defer func() {
		if recover() != nil {
			reason = "the check of this bundle panicked"
		}
	}()
	return p.in.Exclude.Exclude(p.operator(r))
}

// operator describes a catalog entry.
func (p *problem) operator(r ref) olmcore.Operator {
	e := r.entry
	return olmcore.Operator{
		Name: e.name, Package: e.channel.pkg.name, Channel: e.channel.name, Version: e.text,
		Catalog: p.sources[r.source].key, Replaces: e.replaces,
		Bundle: olmcore.Bundle{Image: e.image, Properties: e.properties, Objects: e.objects},
	}
}

// expand looks up who could meet a node's requirements.
func (p *problem) expand(n *node) {
	if n.expanded {
		return
	}
	n.expanded = true
	p.stats.Expanded++
	requirements := n.entry.requirements
	if len(requirements) == 0 {
		return
	}
	n.choices = make([]choice, len(requirements))
	for i, q := range requirements {
		found := p.offer(q, n.source)
		n.choices[i] = choice{parent: n, index: i, segments: found.segments, total: found.total, owner: n.owner}
		if found.total == 0 && n.dead < 0 {
			n.dead = i
		}
	}
}
