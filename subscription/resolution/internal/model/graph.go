// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// ExistingSource is the source of existing ClusterServiceVersions.
const ExistingSource = -1

// Ref names an entry of a catalog, or an existing ClusterServiceVersion.
type Ref struct {
	Source int32
	Entry  *content.Entry
}

// Segment is some candidates of one source.
type Segment struct {
	Source  int32
	Entries []*content.Entry
}

// Offer is who can meet a demand, in order of preference.
type Offer struct {
	Segments []Segment
	Total    int
}

// First returns the most preferred candidate; there must be one.
func (o *Offer) First() Ref { return Ref{o.Segments[0].Source, o.Segments[0].Entries[0]} }

// Refs calls yield for each candidate until it returns false.
func (o *Offer) Refs(yield func(Ref) bool) {
	for _, s := range o.Segments {
		for _, e := range s.Entries {
			if !yield(Ref{s.Source, e}) {
				return
			}
		}
	}
}

// Contains reports whether an entry is one of the candidates.
func (o *Offer) Contains(r Ref) bool {
	return slices.ContainsFunc(o.Segments, func(s Segment) bool { return s.Source == r.Source && slices.Contains(s.Entries, r.Entry) })
}

func (o *Offer) add(source int32, entries []*content.Entry) {
	if len(entries) > 0 {
		o.Segments = append(o.Segments, Segment{source, entries})
		o.Total += len(entries)
	}
}

// Choice is a demand that one of its candidates, the first possible, meets.
type Choice struct {
	// Exactly one of the three says who demands it.
	Sub    *Subscription
	CSV    *CSV
	Parent *Node
	// Index is the number of the parent's requirement.
	Index int
	// Offer is shared by all demands that the same candidates meet.
	*Offer
	// Owner is the Subscription, or after them the existing CSV, that it serves.
	Owner int32
}

// Node is an entry that was looked at in this call.
type Node struct {
	Ref
	ID int32
	// Owner is the Subscription, or after them the existing CSV, that it was looked
	// at for.
	Owner int32
	// Groups are the numbers of what only one operator can have: its packages, its
	// APIs and, for an entry of a catalog, its name.
	Groups []int32
	// Over are existing ClusterServiceVersions that it would replace.
	Over []*Node
	// Blocked is why it must never be selected, with its text.
	Blocked     RuleKind
	BlockedText string
	// Choices are its requirements, once expanded; Dead is the first of them without
	// any candidate, or -1.
	Choices  []Choice
	Dead     int
	expanded bool
}

// Group is something that only one operator can have.
type Group struct {
	// Kind is OnePerPackage, OnePerAPI or OnePerName.
	Kind RuleKind
	Name string       // of the package or the ClusterServiceVersion
	API  *content.API // of OnePerAPI
}

// graph holds the entries that one call has looked at.
type graph struct {
	nodes    map[Ref]*Node
	byID     []*Node
	store    []Node
	groups   []Group
	packages map[string]int32 // the numbers of groups
	apis     map[content.API]int32
	names    map[string]int32
	offers   map[offerKey]*Offer
	programs map[string]CELProgram
	closure  []*Node
	// evaluated counts the conditions that were looked at since the last TakeWork.
	evaluated int
	Rules     RuleTable
}

// PackageGroup returns the number of a package's group, APIGroup that of an API; -1 when
// nothing that was looked at is in it.
func (p *Problem) PackageGroup(name string) int32 { return numberOf(p.packages, name) }

// APIGroup returns the number of an API's group.
func (p *Problem) APIGroup(api content.API) int32 { return numberOf(p.apis, api) }

func numberOf[K comparable](ids map[K]int32, key K) int32 {
	if id, ok := ids[key]; ok {
		return id
	}
	return -1
}

// number returns the number of a group, a new one when it has none.
func number[K comparable](p *Problem, ids map[K]int32, key K, g Group) int32 {
	id, ok := ids[key]
	if !ok {
		id = int32(len(p.groups))
		ids[key] = id
		p.groups = append(p.groups, g)
	}
	return id
}

// GroupOf returns the group of a number.
func (p *Problem) GroupOf(id int32) Group { return p.groups[id] }

// Groups returns how many groups there are; their numbers begin at 0.
func (p *Problem) Groups() int { return len(p.groups) }

// Known returns the node of an entry, nil when it was not looked at.
func (p *Problem) Known(r Ref) *Node { return p.nodes[r] }

// NodeOf returns the node of a number.
func (p *Problem) NodeOf(id int32) *Node { return p.byID[id] }

// Nodes returns how many nodes there are; their numbers begin at 0.
func (p *Problem) Nodes() int { return len(p.byID) }

// Node returns the node of an entry. owner counts when it is new.
func (p *Problem) Node(r Ref, owner int32) *Node {
	if n, ok := p.nodes[r]; ok {
		return n
	}
	if len(p.store) == cap(p.store) {
		p.store = make([]Node, 0, max(8, min(256, 2*len(p.byID))))
	}
	p.store = append(p.store, Node{Ref: r, ID: int32(len(p.byID)), Owner: owner, Dead: -1})
	n := &p.store[len(p.store)-1]
	p.nodes[r] = n
	p.byID = append(p.byID, n)
	n.Groups = groupsOf(p, r)
	n.Blocked, n.BlockedText = blocked(p, r)
	if r.Source != ExistingSource {
		findReplaced(p, n)
	}
	return n
}

func groupsOf(p *Problem, r Ref) []int32 {
	e := r.Entry
	list := make([]int32, 0, len(e.Packages)+len(e.Provides)+1)
	for i := range e.Packages {
		name := e.Packages[i].Name
		if id := number(p, p.packages, name, Group{Kind: OnePerPackage, Name: name}); !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	for i := range e.Provides {
		list = append(list, number(p, p.apis, e.Provides[i], Group{Kind: OnePerAPI, API: &e.Provides[i]}))
	}
	if r.Source != ExistingSource {
		list = append(list, number(p, p.names, e.Name, Group{Kind: OnePerName, Name: e.Name}))
	}
	return list
}

// findReplaced finds the existing operators that a catalog entry cannot stay
// beside: what it would upgrade, and what has its name.
//
// Differs: OLM looks at names only within a package.
func findReplaced(p *Problem, n *Node) {
	add := func(c *CSV, owner int32) {
		if old := p.Node(Ref{ExistingSource, c.Entry}, owner); !c.LeftOut && !slices.Contains(n.Over, old) {
			n.Over = append(n.Over, old)
		}
	}
	for _, s := range p.subsOver[n.Entry.Channel.Pkg] {
		if s.Source == n.Source && slices.Contains(s.Upgrades, n.Entry) {
			add(s.Current, s.Index)
		}
	}
	if c := p.ByName[n.Entry.Name]; c != nil {
		add(c, n.Owner)
	}
}

// blocked returns the rule that forbids an entry in any case.
func blocked(p *Problem, r Ref) (RuleKind, string) {
	e := r.Entry
	if e.Deprecated {
		return BundleDeprecated, ""
	}
	if r.Source == ExistingSource {
		return "", ""
	}
	if text := p.Unreadable(e); text != "" {
		return BundleInvalid, text
	}
	if reason := pinned(p, e); reason != "" {
		return BundleExcluded, reason
	}
	if p.In.Exclude != nil {
		if reason := excluded(p, r); reason != "" {
			return BundleExcluded, reason
		}
	}
	return "", ""
}

// Unreadable returns why a requirement of an entry cannot be read, "" when all can.
func (p *Problem) Unreadable(e *content.Entry) string {
	if e.Invalid != "" {
		return e.Invalid
	}
	for _, q := range e.Requirements {
		if problem := compile(p, q.Predicate); problem != "" {
			return problem
		}
	}
	return ""
}

// excluded asks the caller's Excluder, which may panic.
func excluded(p *Problem, r Ref) (reason string) {
	defer func() {
		if recover() != nil {
			reason = "the check of this bundle panicked"
		}
	}()
	return p.In.Exclude.Exclude(p.Operator(r))
}

// Operator describes a catalog entry.
func (p *Problem) Operator(r Ref) olmcore.Operator {
	e := r.Entry
	return olmcore.Operator{
		Name: e.Name, Package: e.Channel.Pkg.Name, Channel: e.Channel.Name, Version: e.VersionText,
		Catalog: p.Sources[r.Source].Key, Replaces: e.Replaces,
		Bundle: olmcore.Bundle{Image: e.Image, Properties: e.Properties, Objects: e.Objects},
	}
}

// Expand looks up who could meet a node's requirements.
func (p *Problem) Expand(n *Node) {
	if n.expanded {
		return
	}
	n.expanded = true
	p.Stats.Expanded++
	requirements := n.Entry.Requirements
	if len(requirements) == 0 {
		return
	}
	n.Choices = make([]Choice, len(requirements))
	for i, q := range requirements {
		n.Choices[i] = Choice{Parent: n, Index: i, Offer: offerFor(p, q, n.Source), Owner: n.Owner}
		if n.Choices[i].Total == 0 && n.Dead < 0 {
			n.Dead = i
		}
	}
}

// TakeWork returns the work since the last time in steps of a search.
func (p *Problem) TakeWork() int {
	const perStep = 16
	steps := p.evaluated / perStep
	p.evaluated %= perStep
	return steps
}

// Considered returns every entry that could take part: existing operators, the
// candidates of Subscriptions, and what their requirements lead to.
func (p *Problem) Considered() []*Node {
	if p.closure != nil {
		return p.closure
	}
	seen := map[*Node]bool{}
	list := []*Node{}
	add := func(offer *Offer, owner int32) {
		for r := range offer.Refs {
			if n := p.Node(r, owner); !seen[n] {
				seen[n] = true
				n.Owner = owner // whatever search met it first
				list = append(list, n)
			}
		}
	}
	for _, c := range p.Existing {
		if !c.LeftOut {
			add(c.Choice.Offer, c.Choice.Owner)
		}
	}
	for _, s := range p.Subs {
		if s.Impossible == "" {
			add(s.Choice.Offer, s.Index)
		}
	}
	for i := 0; i < len(list); i++ {
		p.Expand(list[i])
		for j := range list[i].Choices {
			list[i].Choices[j].Owner = list[i].Owner
			add(list[i].Choices[j].Offer, list[i].Owner)
		}
	}
	p.closure = list
	return list
}
