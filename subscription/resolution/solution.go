// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// targets notes what a solution gives each Subscription.
func (p *problem) targets(s *search) {
	for _, sub := range p.subs {
		sub.target = ref{}
	}
	for level := range s.frames {
		c := s.queue[level]
		if c.sub == nil {
			continue
		}
		if n := s.frames[level].selected; n != nil {
			c.sub.target = n.ref
		} else {
			c.sub.target = p.selectedOf(c)
		}
	}
}

// selectedOf returns the candidate of a choice that is selected for another one.
func (p *problem) selectedOf(c *choice) ref {
	for _, segment := range c.segments {
		for _, e := range segment.entries {
			if n := p.nodes[ref{segment.source, e}]; n != nil && n.level >= 0 {
				return n.ref
			}
		}
	}
	return ref{}
}

// solution turns the selected entries into what must be done.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, ResolveSteps.
func (p *problem) solution(s *search) Result {
	res := Result{Outcome: Unchanged}
	changed := make(map[string]string, len(p.subs))
	var chosen []*node
	for level := range s.frames {
		if n := s.frames[level].selected; n != nil && n.source != existingSource {
			chosen = append(chosen, n)
		}
	}
	slices.SortFunc(chosen, func(a, b *node) int {
		return cmp.Or(strings.Compare(a.entry.name, b.entry.name), strings.Compare(a.entry.pkg, b.entry.pkg))
	})
	var orphans []*node
	for _, n := range chosen {
		matching := p.matching(n)
		if len(matching) > 0 && p.inPlace(n, matching) {
			continue
		}
		res.Operators = append(res.Operators, p.install(s, n, matching))
		for _, sub := range matching {
			if sub.object.Status.CurrentCSV != n.entry.name {
				changed[sub.object.Name] = n.entry.name
			} else if c := p.byName[n.entry.name]; c == nil {
				p.report(olmcore.Warning, ReasonMissingCSV, p.subscriptionRef(sub.object.Name), "status.currentCSV",
					"ClusterServiceVersion %s does not exist; it is installed again", n.entry.name)
			}
		}
		if len(matching) == 0 {
			orphans = append(orphans, n)
		}
	}
	res.Generated = p.generate(orphans, res.Operators)
	p.decide(&res, changed)
	if len(res.Operators) > 0 || len(changed) > 0 {
		res.Outcome = Resolved
	}
	return res
}

// matching returns the Subscriptions that follow a catalog entry, the ones that
// failed left out.
func (p *problem) matching(n *node) []*subscription {
	var list []*subscription
	for _, s := range p.subs {
		spec := s.object.Spec
		if !s.failed && s.source == n.source && spec.Package == n.entry.channel.pkg.name && (spec.Channel == "" || spec.Channel == n.entry.channel.name) {
			list = append(list, s)
		}
	}
	return list
}

// inPlace reports whether a selected entry is installed and known already.
func (p *problem) inPlace(n *node, matching []*subscription) bool {
	c := p.byName[n.entry.name]
	return c != nil && !c.deleting() && !slices.ContainsFunc(matching, func(s *subscription) bool { return s.object.Status.CurrentCSV != n.entry.name })
}

func (p *problem) install(s *search, n *node, matching []*subscription) olmcore.Operator {
	op := p.operator(n.ref)
	op.Replaces = p.replaces(n)
	op.Bundle = published(n.entry)
	for _, sub := range matching {
		op.For = append(op.For, sub.object.Name)
	}
	slices.Sort(op.For)
	op.RequiredBy = p.requiredBy(s, n)
	if c := p.byName[n.entry.name]; c != nil && c.deleting() {
		op.WaitFor = []types.NamespacedName{{Namespace: p.in.Namespace, Name: n.entry.name}}
	}
	p.checkInstallModes(n)
	return op
}

// replaces returns the current operator that an entry takes over from, else what
// the channel says. Of several the one that is nearer to the head.
func (p *problem) replaces(n *node) string {
	var over *subscription
	position := func(s *subscription) int32 {
		if e := n.entry.channel.byName[s.current.object.Name]; e != nil && e.position >= 0 {
			return e.position
		}
		return 1 << 30
	}
	for _, s := range p.subs {
		if s.failed || s.current == nil || s.target != n.ref {
			continue
		}
		if over == nil || position(s) <= position(over) {
			over = s
		}
	}
	if over != nil {
		return over.current.object.Name
	}
	return n.entry.replaces
}

// requiredBy returns the names of the selected entries whose requirements n
// meets.
func (p *problem) requiredBy(s *search, n *node) []string {
	var names []string
	if !eligible(n) {
		return nil
	}
	for level := range s.frames {
		m := s.frames[level].selected
		if m == nil || m == n {
			continue
		}
		for _, q := range m.entry.requirements {
			if p.satisfies(n.entry, q.predicate) {
				names = append(names, m.entry.name)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// decide says what becomes of each Subscription.
func (p *problem) decide(res *Result, changed map[string]string) {
	res.Decisions = make([]olmcore.SubscriptionDecision, 0, len(p.subs))
	res.Targets = make([]Target, 0, len(p.subs))
	for _, s := range p.subs {
		name := s.object.Name
		d := olmcore.SubscriptionDecision{Name: name, CurrentCSV: s.object.Status.CurrentCSV}
		t := Target{Subscription: name}
		if s.current != nil {
			t.Current = s.current.object.Name
		}
		switch {
		case s.failed:
			t.Target = t.Current
			d.Failure = p.failures[name]
		case s.target.entry != nil:
			t.Target = s.target.entry.name
			t.Adopt = s.current == nil && s.target.source == existingSource
		}
		if t.Adopt && d.CurrentCSV != t.Target {
			changed[name] = t.Target // package subscription takes what exists for installed
		}
		if csv, ok := changed[name]; ok {
			d.CurrentCSV, d.Changed = csv, true
		}
		res.Decisions = append(res.Decisions, d)
		res.Targets = append(res.Targets, t)
	}
}

// published is what of a bundle reaches the cluster: the properties without
// those that only carry manifests, and the manifests.
func published(e *entry) olmcore.Bundle {
	b := olmcore.Bundle{Image: e.image, Objects: e.objects}
	inline := func(property olmcore.Property) bool {
		return property.Type == PropertyBundleObject || property.Type == PropertyCSVMetadata
	}
	if !slices.ContainsFunc(e.properties, inline) {
		b.Properties = e.properties
		return b
	}
	for _, property := range e.properties {
		if !inline(property) {
			b.Properties = append(b.Properties, property)
		} else if property.Type == PropertyBundleObject && len(e.objects) == 0 {
			if o := bundleObject(property.Value); o != nil {
				b.Objects = append(b.Objects, o)
			}
		}
	}
	return b
}
