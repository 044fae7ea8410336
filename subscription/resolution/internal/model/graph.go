// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// ExistingSource is the Source of existing ClusterServiceVersions.
const ExistingSource = -1

// Ref identifies an entry of a catalog, or an existing ClusterServiceVersion.
type Ref struct {
	Source int32
	Entry  *Entry
}

// Segment contains candidates of one source, in order of preference.
type Segment struct {
	Source  int32
	Entries []*Entry
}

// Offer contains the candidates that can meet a requirement, in order of preference.
type Offer struct {
	// ID is the number of the Offer among the Offers for requirements of nodes. It is not set in Offers for Subscriptions
	// and existing ClusterServiceVersions.
	ID       int32
	Segments []Segment
	Total    int
	// Group is the number of a Group that contains all candidates. It is -1 if no such Group is known.
	Group       int32
	nodes       []*Node  // those that were looked at
	identifiers []string // of all, once they were asked for
}

// Candidate returns the node of the i-th candidate of c. It returns nil if c has fewer candidates.
func (p *Problem) Candidate(c *Choice, i int) *Node {
	o := c.Offer
	if i < len(o.nodes) {
		return o.nodes[i]
	}
	at := i
	for _, s := range o.Segments {
		if at < len(s.Entries) {
			o.nodes = append(o.nodes, p.Node(Ref{s.Source, s.Entries[at]}, c.Owner))
			return o.nodes[i]
		}
		at -= len(s.Entries)
	}
	return nil
}

// First returns the preferred candidate. The Offer must not be empty.
func (o *Offer) First() Ref { return Ref{o.Segments[0].Source, o.Segments[0].Entries[0]} }

// Refs calls yield for each candidate until yield returns false.
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

// Named returns the candidates with the given name, in order of preference.
func (o *Offer) Named(name string) (list []Ref) {
	for r := range o.Refs {
		if r.Entry.Name == name {
			list = append(list, r)
		}
	}
	return list
}

// Precedes reports whether candidate a is preferred to candidate b.
func (o *Offer) Precedes(a, b Ref) bool {
	for r := range o.Refs {
		if r == a || r == b {
			return r == a && a != b
		}
	}
	return false
}

func (o *Offer) add(source int32, entries []*Entry) {
	if len(entries) > 0 {
		o.Segments = append(o.Segments, Segment{source, entries})
		o.Total += len(entries)
	}
}

// Identifiers returns OLM's identifiers of the candidates of an Offer.
func (p *Problem) Identifiers(o *Offer) []string {
	if len(o.identifiers) < o.Total {
		o.identifiers = make([]string, 0, o.Total)
		for r := range o.Refs {
			o.identifiers = append(o.identifiers, p.Identifier(r))
		}
		p.work += 8 * o.Total
	}
	return o.identifiers
}

// Choice contains a requirement and the candidates that can meet the requirement. The search selects the first possible
// candidate.
type Choice struct {
	// Exactly one of Sub, CSV and Parent is set: the object that has the requirement.
	Sub    *Subscription
	CSV    *CSV
	Parent *Node
	// Index is the index of the requirement among the requirements of Parent.
	Index int
	// Offer contains the candidates. Choices with the same candidates share one Offer.
	*Offer
	// Last is the candidate that was selected most recently for the Choice.
	Last *Node
	// Owner is the Index of the Subscription that needs the Choice. A higher number stands for an existing
	// ClusterServiceVersion.
	Owner int32
}

// Node is an entry that the current resolution has examined.
type Node struct {
	Ref
	ID int32
	// Owner is the Index of the Subscription for which the entry was examined. A higher number stands for an existing
	// ClusterServiceVersion.
	Owner int32
	// Groups contains the numbers of the Groups to which the entry belongs: for its packages, for its APIs and, for an
	// entry of a catalog, for its name.
	Groups []int32
	// Over contains the existing ClusterServiceVersions that a catalog entry would replace. For the node of an existing
	// ClusterServiceVersion, Over contains the entries that would replace it.
	Over []*Node
	// Blocked is the kind of the rule that always excludes the entry. It is empty if there is no such rule. BlockedText
	// contains details of the rule, and may be empty.
	Blocked     RuleKind
	BlockedText string
	// Choices contains the requirements of the entry. Expand sets Choices and Dead. Dead is the index of the first
	// requirement without candidates, or -1.
	Choices  []Choice
	Dead     int
	expanded bool
}

// Eligible reports whether the entry can meet requirements. A catalog entry can meet requirements only if it is in the
// Chain of its channel.
func (n *Node) Eligible() bool { return n.Source == ExistingSource || n.Entry.Position >= 0 }

// Group is a set of entries of which at most one may be installed.
type Group struct {
	// Kind is OnePerPackage, OnePerAPI or OnePerName.
	Kind RuleKind
	// Name is the name of the package or of the ClusterServiceVersion. It is set only if Kind is OnePerPackage or
	// OnePerName.
	Name string
	// API is the provided API. It is set only if Kind is OnePerAPI.
	API *API
}

// graph holds the entries that one call has looked at.
type graph struct {
	nodes map[Ref]*Node
	Nodes []*Node // by number
	store []Node
	// groupStore is where the lists of groups of nodes are.
	groupStore []int32
	Groups     []Group          // by number
	packages   map[string]int32 // the numbers of groups
	apis       map[API]int32
	names      map[string]int32
	offers     map[offerKey]*Offer
	programs   map[string]CELProgram
	closure    []*Node
	// work counts what was done since the last TakeSteps.
	work  int
	Rules RuleTable
}

func newGraph() graph {
	return graph{
		nodes: map[Ref]*Node{}, packages: map[string]int32{}, apis: map[API]int32{}, names: map[string]int32{},
		offers: map[offerKey]*Offer{}, programs: map[string]CELProgram{},
	}
}

// number returns the number of a group, a new one when it has none.
func number[K comparable](p *Problem, ids map[K]int32, key K, g Group) int32 {
	id, ok := ids[key]
	if !ok {
		id = int32(len(p.Groups))
		ids[key] = id
		p.Groups = append(p.Groups, g)
	}
	return id
}

// Known returns the node of an entry, or nil if the entry was not examined.
func (p *Problem) Known(r Ref) *Node { return p.nodes[r] }

// Node returns the node of an entry and creates it if necessary. owner is used for a new node only.
func (p *Problem) Node(r Ref, owner int32) *Node {
	if n, ok := p.nodes[r]; ok {
		return n
	}
	if len(p.store) == cap(p.store) {
		p.store = make([]Node, 0, max(8, min(256, 2*len(p.Nodes))))
	}
	p.store = append(p.store, Node{Ref: r, ID: int32(len(p.Nodes)), Owner: owner, Dead: -1})
	n := &p.store[len(p.store)-1]
	p.nodes[r] = n
	p.Nodes = append(p.Nodes, n)
	n.Groups = groupsOf(p, r)
	p.work += workPerNode + 2*len(n.Groups)
	n.Blocked, n.BlockedText = blocked(p, r)
	if r.Source != ExistingSource {
		findReplaced(p, n)
	}
	return n
}

func groupsOf(p *Problem, r Ref) []int32 {
	e := r.Entry
	if need := len(e.Packages) + len(e.Provides) + 1; len(p.groupStore)+need > cap(p.groupStore) {
		p.groupStore = make([]int32, 0, max(need, min(1024, 4*len(p.Nodes)+16)))
	}
	list := p.groupStore[len(p.groupStore):]
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
	p.groupStore = p.groupStore[:len(p.groupStore)+len(list)]
	return slices.Clip(list)
}

// findReplaced finds the existing operators that a catalog entry cannot stay beside: what it would upgrade, and what
// has its name.
//
// Differs: OLM looks at names only within a package.
func findReplaced(p *Problem, n *Node) {
	add := func(c *CSV, owner int32) {
		old := p.Node(Ref{ExistingSource, c.Entry}, owner)
		if !c.LeftOut && !slices.Contains(n.Over, old) {
			n.Over, old.Over = append(n.Over, old), append(old.Over, n)
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

// Unreadable returns the reason why a requirement of an entry cannot be read or compiled. It returns "" if all
// requirements are valid.
func (p *Problem) Unreadable(e *Entry) string {
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

// Operator returns a catalog entry in the form that an Excluder and the Result use.
func (p *Problem) Operator(r Ref) olmcore.Operator {
	e := r.Entry
	return olmcore.Operator{
		Name: e.Name, Package: e.Channel.Pkg.Name, Channel: e.Channel.Name, Version: e.VersionText,
		Catalog: p.Sources[r.Source].Key, Replaces: e.Replaces,
		Bundle: olmcore.Bundle{Image: e.Image, Properties: e.Properties, Objects: e.Objects},
	}
}

// Expand sets the Choices of a node. Only the first call for a node has an effect.
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
	p.work += 4 * len(requirements)
	for i, q := range requirements {
		n.Choices[i] = Choice{Parent: n, Index: i, Offer: offerFor(p, q, n.Source), Owner: n.Owner}
		if n.Choices[i].Total == 0 && n.Dead < 0 {
			n.Dead = i
		}
	}
}

const (
	// workPerStep is how much work is a step: what takes a few nanoseconds counts one.
	workPerStep = 16
	// Looking at an entry for the first time, a call without anything, and reading an object.
	workPerNode, workPerCall, workPerSubscription, workPerCSV = 12, 128, 40, 60
)

// Count adds units of work that another package did. 16 units of work are one step.
func (p *Problem) Count(work int) { p.work += work }

// TakeSteps adds the given units of work, and returns the number of steps since its last call.
func (p *Problem) TakeSteps(more int) int {
	p.work += more
	steps := p.work / workPerStep
	p.work %= workPerStep
	return steps
}

// Considered returns the nodes of all entries that may be part of a solution: existing operators, the candidates of
// Subscriptions, and the candidates for the requirements of all these nodes.
func (p *Problem) Considered() []*Node {
	if p.closure != nil {
		return p.closure
	}
	seen, offered := map[*Node]bool{}, map[*Offer]bool{}
	list := []*Node{}
	add := func(c *Choice, owner int32) {
		c.Owner = owner
		if offered[c.Offer] {
			return
		}
		offered[c.Offer] = true
		for i := range c.Total {
			if n := p.Candidate(c, i); !seen[n] {
				seen[n] = true
				n.Owner = owner // whatever search met it first
				list = append(list, n)
			}
		}
	}
	for _, c := range p.Existing {
		if !c.LeftOut {
			add(&c.Choice, c.Choice.Owner)
		}
	}
	for _, s := range p.Subs {
		if s.Impossible == "" {
			add(s.Choice, s.Index)
		}
	}
	for i := 0; i < len(list); i++ {
		p.Expand(list[i])
		for j := range list[i].Choices {
			add(&list[i].Choices[j], list[i].Owner)
		}
	}
	p.closure = list
	return list
}
