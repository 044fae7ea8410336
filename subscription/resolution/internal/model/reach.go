// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// reach is the content that the answer for a namespace depends on: the packages that its Subscriptions follow, what
// these and the existing operators require, what that requires, and so on. A publication elsewhere changes no answer.
type reach struct {
	p *Problem
	// packages are those that are reached; whole are sources of which all is.
	packages map[place]bool
	whole    map[int]bool
	// met are the requirements that were followed, by their keys; pending are packages whose requirements were not.
	met     map[string]bool
	pending []*content.PackageIndex
}

// place is a package of a source: two sources may have the same content.
type place struct {
	source int
	pkg    *content.PackageIndex
}

// reached returns what an answer depends on; none of the content where nothing of it is looked at.
func reached(p *Problem) *reach {
	r := &reach{p: p, packages: map[place]bool{}, whole: map[int]bool{}, met: map[string]bool{}}
	switch {
	case p.Blocked != "":
		return r
	case p.Failure != "", p.Policy.FailOnMalformedChannel, p.Policy.FailOnInvalidBundle:
		for i := range p.Sources { // one piece anywhere may stop all
			r.whole[i] = true
		}
		return r
	}
	for _, s := range p.Subs {
		i := int(p.sourceOf(s.Object.Spec))
		switch {
		case i == NoSource:
		case s.Pkg == nil:
			r.all(i) // what may be followed instead is proposed, if it can be installed
		default:
			r.add(i, s.Pkg)
		}
	}
	for _, c := range p.Existing {
		r.follow(c.Entry)
	}
	for len(r.pending) > 0 {
		next := r.pending[0]
		r.pending = r.pending[1:]
		for _, ch := range next.Channels {
			for _, e := range ch.ByName {
				r.follow(e)
			}
		}
	}
	return r
}

func (r *reach) add(source int, pkg *content.PackageIndex) {
	if at := (place{source, pkg}); !r.packages[at] {
		r.packages[at] = true
		r.pending = append(r.pending, pkg)
	}
}

// all adds the whole of a source.
func (r *reach) all(source int) {
	r.whole[source] = true
	for _, pkg := range r.p.Sources[source].Content.Sorted {
		r.add(source, pkg)
	}
}

// follow adds what offers something for the requirements of an entry.
func (r *reach) follow(e *content.Entry) {
	for _, q := range e.Requirements {
		if r.met[q.Key] {
			continue
		}
		r.met[q.Key] = true
		for i := range r.p.Sources {
			r.offers(i, q.Predicate)
		}
	}
}

// offers adds what lookup may return for a predicate.
func (r *reach) offers(source int, q *content.Predicate) {
	c := r.p.Sources[source].Content
	switch {
	case !isIndexed(q):
		r.whole[source] = true // and of every other source: that the demand has no index is the same there
	case q.Kind == content.IsAll:
		for _, part := range q.Parts {
			if isIndexed(part) {
				r.offers(source, part)
			}
		}
	default:
		if named := c.ByName[q.Name]; q.Kind == content.IsPackage && named != nil {
			r.add(source, named) // also one that offers nothing
		}
		list, _ := lookup(c, q)
		for _, e := range list {
			r.add(source, e.Channel.Pkg)
		}
	}
}

// digest takes in the content that is reached.
func (r *reach) digest(d *content.Digester) {
	for i, s := range r.p.Sources {
		if r.whole[i] {
			d.Begin("content", s.Key.Namespace, s.Key.Name, s.Content.Digest())
			d.End()
		}
	}
	for at := range r.packages {
		if s := r.p.Sources[at.source]; !r.whole[at.source] {
			d.Begin("package", s.Key.Namespace, s.Key.Name, at.pkg.Digest)
			d.End()
		}
	}
}
