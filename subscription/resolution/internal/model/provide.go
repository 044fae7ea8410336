// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
)

// offerKey identifies who can meet a requirement: it depends on whose catalog comes first.
type offerKey struct {
	requirement string
	source      int32
}

// offerFor returns the candidates for a requirement of an entry of a source, in order of preference: existing
// operators, the source's own catalog, the others.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, getBundleVariables and sortBundles.
// Differs: each existing ClusterServiceVersion is a candidate of its own.
func offerFor(p *Problem, q *Requirement, own int32) *Offer {
	key := offerKey{q.Key, own}
	if found, ok := p.offers[key]; ok {
		return found
	}
	found := &Offer{ID: int32(len(p.offers)), Group: -1}
	switch q.Kind {
	case IsGVK:
		found.Group = number(p, p.apis, q.API, Group{Kind: OnePerAPI, API: &q.API})
	case IsPackage:
		found.Group = number(p, p.packages, q.Name, Group{Kind: OnePerPackage, Name: q.Name})
	}
	found.add(ExistingSource, existingOffers(p, q))
	if own != ExistingSource {
		found.add(own, catalogOffers(p, &p.Sources[own], q))
	}
	for i := range p.Sources {
		if int32(i) != own {
			found.add(int32(i), catalogOffers(p, &p.Sources[i], q))
		}
	}
	p.offers[key] = found
	return found
}

func existingOffers(p *Problem, q *Requirement) []*Entry {
	var entries []*Entry
	for _, c := range p.Existing {
		if !c.LeftOut && p.Satisfies(c.Entry, q.Predicate) {
			entries = append(entries, c.Entry)
		}
	}
	slices.SortStableFunc(entries, func(a, b *Entry) int { return strings.Compare(a.Pkg, b.Pkg) }) // they come by name
	return entries
}

func catalogOffers(p *Problem, s *Source, q *Requirement) []*Entry {
	if q.Kind == IsGVK {
		return s.Content.ByAPI[q.API]
	}
	list, exact := lookup(s.Content, q.Predicate)
	if exact {
		return list
	}
	p.work += len(list) * q.Size()
	var entries []*Entry
	for _, e := range list {
		if p.Satisfies(e, q.Predicate) {
			entries = append(entries, e)
		}
	}
	return entries
}

// lookup returns a superset of the entries that satisfy a predicate, in order of preference; exact: it is no more than
// those.
func lookup(c *Catalog, q *Predicate) (list []*Entry, exact bool) {
	switch q.Kind {
	case IsGVK:
		return c.ByAPI[q.API], true
	case IsLabel:
		return c.ByLabel[q.Name], true
	case IsPackage:
		return c.ByPackage[q.Name], false
	case IsAll:
		best, found := c.All, false
		for _, part := range q.Parts {
			if !isIndexed(part) {
				continue
			}
			list, _ := lookup(c, part)
			if !found || len(list) < len(best) {
				best, found = list, true
			}
		}
		return best, false
	case IsAny:
		for _, part := range q.Parts {
			part, _ := lookup(c, part)
			if list = append(list, part...); len(list) > len(c.All) {
				return c.All, false
			}
		}
		slices.SortFunc(list, CompareEntries)
		return slices.Compact(list), false
	}
	return c.All, false
}

// isIndexed reports whether lookup finds the entries for a predicate by an index, whatever else there is in a catalog.
func isIndexed(q *Predicate) bool {
	switch q.Kind {
	case IsGVK, IsPackage, IsLabel:
		return true
	case IsAll:
		return slices.ContainsFunc(q.Parts, isIndexed)
	}
	return false
}

// Satisfies reports whether an entry satisfies a predicate.
func (p *Problem) Satisfies(e *Entry, q *Predicate) bool {
	switch q.Kind {
	case IsGVK:
		_, provides := slices.BinarySearchFunc(e.Provides, q.API, API.Compare)
		return provides
	case IsPackage:
		return satisfiesPackage(p, e, q)
	case IsLabel:
		_, labelled := slices.BinarySearch(e.Labels, q.Name)
		return labelled
	case IsAll:
		for _, part := range q.Parts {
			if !p.Satisfies(e, part) {
				return false
			}
		}
		return true
	case IsAny, IsNot:
		for _, part := range q.Parts {
			if p.Satisfies(e, part) {
				return q.Kind == IsAny
			}
		}
		return q.Kind == IsNot
	}
	program := p.programs[q.Rule]
	return program != nil && evaluate(program, e)
}

// satisfiesPackage compares name and version.
//
// Differs: unless the policy says otherwise, an entry with several packages must have name and version in one of them.
func satisfiesPackage(p *Problem, e *Entry, q *Predicate) bool {
	named, versioned := e.Pkg == q.Name, e.HasVersion && q.In.Contains(e.Version)
	if named && versioned && len(e.Packages) < 2 {
		return true
	}
	for i := range e.Packages {
		fact := &e.Packages[i]
		mine, fits := fact.Name == q.Name, fact.Strict && q.In.Contains(fact.Version)
		if mine && fits {
			return true
		}
		named, versioned = named || mine, versioned || fits
	}
	return named && versioned && (p.Policy.IndependentPackageVersion || len(e.Packages) < 2)
}

// noCompiler is said of CEL constraints when Input.CEL is nil. OLM always has one.
const noCompiler = "it has a CEL constraint, and there is nothing to evaluate it with"

// compile prepares the CEL rules of a predicate and returns why it cannot.
func compile(p *Problem, q *Predicate) (problem string) {
	if q.Kind != IsCEL {
		for _, part := range q.Parts {
			if problem := compile(p, part); problem != "" {
				return problem
			}
		}
		return ""
	}
	program, ok := p.programs[q.Rule]
	if ok && program != nil {
		return ""
	}
	if p.In.CEL == nil {
		return noCompiler
	}
	program, err := compileCEL(p.In.CEL, q.Rule)
	if err != nil {
		return fmt.Sprintf("convert olm.constraint to resolver predicate: %v", err)
	}
	p.programs[q.Rule] = program
	return ""
}

// compileCEL and evaluate survive a compiler or program that panics.
func compileCEL(c CELCompiler, rule string) (program CELProgram, err error) {
	defer func() {
		if r := recover(); r != nil {
			program, err = nil, fmt.Errorf("compiler panicked: %v", r)
		}
	}()
	program, err = c.Compile(rule)
	if program == nil && err == nil {
		err = fmt.Errorf("compiler returned nothing for %q", rule)
	}
	return program, err
}

func evaluate(program CELProgram, e *Entry) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return program.Satisfied(e.Properties)
}
