// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// The oracle answers the question of Resolve a second time, the slow way: it shares no code with the package, prunes
// nothing, and copies its state at each step. It knows default and upstream rules for skipRange and nothing of
// catalogs without content, transitions and broken input.
type oracle struct {
	n        *namespace
	backward bool
	catalogs []oracleCatalog // most preferred first
	existing []*oracleEntry
	subs     []*oracleSub
	steps    int
}

type oracleCatalog struct {
	spec     catalogSpec
	channels []oracleChannel // default channels first, then by package and channel
}

type oracleChannel struct {
	pkg, name string
	isDefault bool
	all       []*oracleEntry
	chain     []*oracleEntry
}

type oracleEntry struct {
	catalog        string // "" for an existing one
	pkg, channel   string
	name, replaces string
	skips          []string
	skipRange      string
	version        semver.Version
	provides       []string
	requires       []func(*oracleEntry) bool
	deprecated     bool
	skipped        bool
	position       int
}

type oracleSub struct {
	object     *v1alpha1.Subscription
	current    *oracleEntry
	candidates []*oracleEntry
}

func newOracle(n *namespace, backward bool) *oracle {
	o := &oracle{n: n, backward: backward}
	for _, c := range n.catalogs {
		o.catalogs = append(o.catalogs, readOracleCatalog(c))
	}
	slices.SortFunc(o.catalogs, func(a, b oracleCatalog) int {
		home := func(c oracleCatalog) int {
			if c.spec.key.Namespace == "ns" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.spec.priority, a.spec.priority), cmp.Compare(home(a), home(b)), cmp.Compare(a.spec.key.Name, b.spec.key.Name))
	})
	for _, c := range n.csvs {
		var list struct{ Properties []olmcore.Property }
		_ = json.Unmarshal([]byte(c.Annotations["operatorframework.io/properties"]), &list)
		e := oracleEntryOf(c.Name, list.Properties)
		e.version = c.Spec.Version.Version
		o.existing = append(o.existing, e)
	}
	slices.SortFunc(o.existing, func(a, b *oracleEntry) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name)) })
	subs := slices.Clone(n.subs)
	slices.SortStableFunc(subs, func(a, b *v1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range subs {
		o.subs = append(o.subs, o.readSub(s))
	}
	return o
}

func oracleEntryOf(name string, properties []olmcore.Property) *oracleEntry {
	e := &oracleEntry{name: name}
	for _, p := range properties {
		var v map[string]any
		_ = json.Unmarshal(p.Value, &v)
		switch p.Type {
		case resolution.PropertyPackage:
			e.pkg = v["packageName"].(string)
			e.version = semver.MustParse(v["version"].(string))
		case resolution.PropertyGVK:
			e.provides = append(e.provides, v["kind"].(string))
		case resolution.PropertyGVKRequired:
			e.requires = append(e.requires, oraclePredicate(map[string]any{"gvk": v}))
		case resolution.PropertyPackageRequired:
			e.requires = append(e.requires, oraclePredicate(map[string]any{"package": v}))
		case resolution.PropertyConstraint:
			e.requires = append(e.requires, oraclePredicate(v))
		case resolution.PropertyDeprecated:
			e.deprecated = true
		}
	}
	return e
}

func oraclePredicate(c map[string]any) func(*oracleEntry) bool {
	parts := func(kind string) (list []func(*oracleEntry) bool) {
		for _, part := range c[kind].(map[string]any)["constraints"].([]any) {
			list = append(list, oraclePredicate(part.(map[string]any)))
		}
		return list
	}
	switch {
	case c["gvk"] != nil:
		kind := c["gvk"].(map[string]any)["kind"].(string)
		return func(e *oracleEntry) bool { return slices.Contains(e.provides, kind) }
	case c["package"] != nil:
		v := c["package"].(map[string]any)
		in := semver.MustParseRange(v["versionRange"].(string))
		return func(e *oracleEntry) bool { return e.pkg == v["packageName"].(string) && in(e.version) }
	case c["all"] != nil:
		list := parts("all")
		return func(e *oracleEntry) bool {
			return !slices.ContainsFunc(list, func(f func(*oracleEntry) bool) bool { return !f(e) })
		}
	case c["any"] != nil:
		list := parts("any")
		return func(e *oracleEntry) bool {
			return slices.ContainsFunc(list, func(f func(*oracleEntry) bool) bool { return f(e) })
		}
	}
	list := parts("not")
	return func(e *oracleEntry) bool {
		return !slices.ContainsFunc(list, func(f func(*oracleEntry) bool) bool { return f(e) })
	}
}

func readOracleCatalog(c catalogSpec) oracleCatalog {
	out := oracleCatalog{spec: c}
	for _, p := range c.packages {
		for _, ch := range p.Channels {
			out.channels = append(out.channels, readOracleChannel(c.key.String(), p, ch))
		}
	}
	slices.SortFunc(out.channels, func(a, b oracleChannel) int {
		if a.isDefault != b.isDefault {
			if a.isDefault {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	return out
}

// readOracleChannel relies on the generator: its channels are one line of replacements, oldest first.
func readOracleChannel(catalog string, p resolution.Package, ch resolution.Channel) oracleChannel {
	out := oracleChannel{pkg: p.Name, name: ch.Name, isDefault: ch.Name == p.DefaultChannel}
	skipped := map[string]bool{}
	for _, e := range ch.Entries {
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	for i := len(ch.Entries) - 1; i >= 0; i-- {
		source := ch.Entries[i]
		b := slices.IndexFunc(p.Bundles, func(b resolution.Bundle) bool { return b.Name == source.Name })
		e := oracleEntryOf(source.Name, p.Bundles[b].Properties)
		e.catalog, e.channel, e.replaces, e.skips, e.skipRange = catalog, ch.Name, source.Replaces, source.Skips, source.SkipRange
		e.skipped, e.position = skipped[e.name], i
		out.all = append(out.all, e)
		if !e.skipped {
			out.chain = append(out.chain, e)
		}
	}
	return out
}

// readSub finds candidates; none is an impossible Subscription.
func (o *oracle) readSub(s *v1alpha1.Subscription) *oracleSub {
	out := &oracleSub{object: s}
	for _, e := range o.existing {
		if e.name == s.Status.InstalledCSV {
			out.current = e
		}
	}
	found := false
	for _, c := range o.catalogs {
		if c.spec.key.Name != s.Spec.CatalogSource || c.spec.key.Namespace != s.Spec.CatalogSourceNamespace {
			continue
		}
		for _, ch := range c.channels {
			if ch.pkg != s.Spec.Package || (s.Spec.Channel != "" && s.Spec.Channel != ch.name) {
				continue
			}
			found = true
			switch {
			case out.current != nil:
				for _, e := range ch.chain {
					if o.edge(out.current, e, ch) {
						out.candidates = append(out.candidates, e)
					}
				}
			case s.Spec.StartingCSV != "":
				for _, e := range ch.all {
					if e.name == s.Spec.StartingCSV {
						out.candidates = append(out.candidates, e)
					}
				}
			default:
				out.candidates = append(out.candidates, ch.chain...)
			}
		}
	}
	if out.current != nil && (found || !o.backward) {
		out.candidates = append(out.candidates, out.current)
	}
	return out
}

func (o *oracle) edge(current, e *oracleEntry, ch oracleChannel) bool {
	inRange := e.skipRange != "" && semver.MustParseRange(e.skipRange)(current.version)
	if o.backward {
		return e.replaces == current.name || slices.Contains(e.skips, current.name) || inRange
	}
	if e.name == current.name {
		return false
	}
	for _, x := range ch.chain {
		if x.name == current.name {
			if e.position <= x.position { // positions count from the oldest here
				return false
			}
			return e.replaces == current.name || slices.Contains(e.skips, current.name) || inRange
		}
	}
	return e.replaces == current.name || slices.Contains(e.skips, current.name) || (inRange && e.version.GT(current.version))
}

// candidatesFor is the order of preference for one requirement.
func (o *oracle) candidatesFor(owner *oracleEntry, q func(*oracleEntry) bool) []*oracleEntry {
	var list []*oracleEntry
	for _, e := range o.existing {
		if q(e) {
			list = append(list, e)
		}
	}
	add := func(own bool) {
		for _, c := range o.catalogs {
			if (owner.catalog == c.spec.key.String()) != own {
				continue
			}
			for _, ch := range c.channels {
				for _, e := range ch.chain {
					if q(e) {
						list = append(list, e)
					}
				}
			}
		}
	}
	add(true)
	add(false)
	return list
}

func (o *oracle) owned(e *oracleEntry) bool {
	return slices.ContainsFunc(o.subs, func(s *oracleSub) bool { return s.current == e })
}

// over reports whether b cannot stay beside an existing a.
func (o *oracle) over(a, b *oracleEntry) bool {
	if a.catalog != "" || b.catalog == "" {
		return false
	}
	return a.name == b.name || slices.ContainsFunc(o.subs, func(s *oracleSub) bool {
		return s.current == a && slices.Contains(s.candidates, b)
	})
}

func (o *oracle) fits(selected []*oracleEntry, e *oracleEntry) bool {
	if e.deprecated {
		return false
	}
	for _, x := range selected {
		if x.pkg == e.pkg || (x.catalog != "" && e.catalog != "" && x.name == e.name) || o.over(x, e) || o.over(e, x) ||
			slices.ContainsFunc(x.provides, func(k string) bool { return slices.Contains(e.provides, k) }) {
			return false
		}
	}
	return true
}

// solve returns the first leaf of the whole tree.
func (o *oracle) solve() ([]*oracleEntry, bool) {
	var choices [][]*oracleEntry
	byName := slices.SortedFunc(slices.Values(o.existing), func(a, b *oracleEntry) int { return strings.Compare(a.name, b.name) })
	for _, e := range byName {
		if !o.owned(e) {
			choices = append(choices, []*oracleEntry{e})
		}
	}
	for _, s := range o.subs {
		choices = append(choices, s.candidates)
	}
	return o.visit(nil, choices)
}

func (o *oracle) visit(selected []*oracleEntry, choices [][]*oracleEntry) ([]*oracleEntry, bool) {
	if len(choices) == 0 {
		return selected, true
	}
	for _, e := range choices[0] {
		if slices.Contains(selected, e) {
			return o.visit(selected, choices[1:])
		}
	}
	for _, e := range choices[0] {
		o.steps++
		if !o.fits(selected, e) {
			continue
		}
		next := slices.Clone(choices[1:])
		for _, q := range e.requires {
			next = append(next, o.candidatesFor(e, q))
		}
		if solution, ok := o.visit(append(slices.Clone(selected), e), next); ok {
			return solution, true
		}
	}
	return nil, false
}

// entries are all that could ever be selected.
func (o *oracle) entries() []*oracleEntry {
	list := slices.Clone(o.existing)
	for _, c := range o.catalogs {
		for _, ch := range c.channels {
			list = append(list, ch.all...)
		}
	}
	return list
}

// anyModel tries all subsets.
func (o *oracle) anyModel() bool {
	all := o.entries()
	for set := range 1 << len(all) {
		if o.isModel(all, set) {
			return true
		}
	}
	return false
}

func (o *oracle) isModel(all []*oracleEntry, set int) bool {
	var selected []*oracleEntry
	for i, e := range all {
		if set&(1<<i) != 0 {
			if !o.fits(selected, e) {
				return false
			}
			selected = append(selected, e)
		}
	}
	has := func(list []*oracleEntry) bool {
		return slices.ContainsFunc(list, func(e *oracleEntry) bool { return slices.Contains(selected, e) })
	}
	for _, e := range o.existing {
		if !o.owned(e) && !slices.Contains(selected, e) {
			return false
		}
	}
	for _, s := range o.subs {
		if !has(s.candidates) {
			return false
		}
	}
	for _, e := range selected {
		for _, q := range e.requires {
			if !has(o.candidatesFor(e, q)) {
				return false
			}
		}
	}
	return true
}
