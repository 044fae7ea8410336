// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
)

// offerKey identifies who can meet a requirement: it depends on whose catalog
// comes first.
type offerKey struct {
	requirement string
	source      int32
}

type offer struct {
	segments []segment
	total    int
}

// offer returns the candidates for a requirement of an entry of a source, in
// order of preference: existing operators, the source's own catalog, the others.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, getBundleVariables and sortBundles.
// Differs: each existing ClusterServiceVersion is a candidate of its own.
func (p *problem) offer(q *requirement, own int32) offer {
	key := offerKey{q.key, own}
	if found, ok := p.offers[key]; ok && !p.slow.forgetful {
		return found
	}
	var found offer
	add := func(source int32, entries []*entry) {
		if len(entries) > 0 {
			found.segments = append(found.segments, segment{source, entries})
			found.total += len(entries)
		}
	}
	add(existingSource, p.existingOffers(q))
	if own != existingSource {
		add(own, p.catalogOffers(&p.sources[own], q))
	}
	for i := range p.sources {
		if int32(i) != own {
			add(int32(i), p.catalogOffers(&p.sources[i], q))
		}
	}
	if p.offers == nil {
		p.offers = map[offerKey]offer{}
	}
	p.offers[key] = found
	return found
}

func (p *problem) existingOffers(q *requirement) []*entry {
	var entries []*entry
	for _, c := range p.existing {
		if !c.leftOut && p.satisfies(c.entry, q.predicate) {
			entries = append(entries, c.entry)
		}
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		switch {
		case a.pkg < b.pkg:
			return -1
		case a.pkg > b.pkg:
			return 1
		}
		return 0 // they come sorted by name
	})
	return entries
}

func (p *problem) catalogOffers(s *source, q *requirement) []*entry {
	if q.kind == isGVK {
		return s.content.byAPI[q.api]
	}
	list, exact := s.content.lookup(q.predicate)
	if exact {
		return list
	}
	var entries []*entry
	for _, e := range list {
		if p.satisfies(e, q.predicate) {
			entries = append(entries, e)
		}
	}
	return entries
}

// lookup returns a superset of the entries that satisfy a predicate, in order of
// preference; exact: it is no more than those.
func (c *Catalog) lookup(q *predicate) (list []*entry, exact bool) {
	switch q.kind {
	case isGVK:
		return c.byAPI[q.api], true
	case isLabel:
		return c.byLabel[q.name], true
	case isPackage:
		return c.byPackage[q.name], false
	case isAll:
		best := c.all
		for _, part := range q.parts {
			if list, _ := c.lookup(part); len(list) < len(best) {
				best = list
			}
		}
		return best, false
	case isAny:
		for _, part := range q.parts {
			part, _ := c.lookup(part)
			if list = append(list, part...); len(list) > len(c.all) {
				return c.all, false
			}
		}
		slices.SortFunc(list, compareEntries)
		return slices.Compact(list), false
	}
	return c.all, false
}

// satisfies reports whether an entry meets a predicate.
func (p *problem) satisfies(e *entry, q *predicate) bool {
	switch q.kind {
	case isGVK:
		return slices.Contains(e.provides, q.api)
	case isPackage:
		return p.satisfiesPackage(e, q)
	case isLabel:
		return slices.Contains(e.labels, q.name)
	case isAll:
		for _, part := range q.parts {
			if !p.satisfies(e, part) {
				return false
			}
		}
		return true
	case isAny, isNot:
		for _, part := range q.parts {
			if p.satisfies(e, part) {
				return q.kind == isAny
			}
		}
		return q.kind == isNot
	}
	program := p.programs[q.rule]
	return program != nil && evaluate(program, e)
}

// satisfiesPackage compares name and version.
//
// Differs: unless the policy says otherwise, an entry with several packages must
// have name and version in one of them.
func (p *problem) satisfiesPackage(e *entry, q *predicate) bool {
	named, versioned := e.pkg == q.name, e.hasVersion && q.in.contains(e.version)
	if named && versioned && len(e.packages) < 2 {
		return true
	}
	for i := range e.packages {
		fact := &e.packages[i]
		mine, fits := fact.name == q.name, fact.strict && q.in.contains(fact.version)
		if mine && fits {
			return true
		}
		named, versioned = named || mine, versioned || fits
	}
	return named && versioned && (p.policy.IndependentPackageVersion || len(e.packages) < 2)
}

// compile prepares the CEL rules of a predicate and returns why it cannot.
func (p *problem) compile(q *predicate) (problem string) {
	if q.kind != isCEL {
		for _, part := range q.parts {
			if problem := p.compile(part); problem != "" {
				return problem
			}
		}
		return ""
	}
	if program, ok := p.programs[q.rule]; ok && program != nil {
		return ""
	}
	if p.in.CEL == nil {
		return "it has a CEL constraint, and there is nothing to evaluate it with"
	}
	program, err := compileCEL(p.in.CEL, q.rule)
	if err != nil {
		return fmt.Sprintf("convert olm.constraint to resolver predicate: %v", err)
	}
	if p.programs == nil {
		p.programs = map[string]CELProgram{}
	}
	p.programs[q.rule] = program
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

func evaluate(program CELProgram, e *entry) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return program.Satisfied(e.properties)
}
