// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// entry is one line of a test catalog: a bundle and its place in a channel, "package/channel". The first channel of a
// package is its default.
type entry struct {
	in, name, version, replaces string
	skips                       []string
	skipRange                   string
	facts                       []olmcore.Property
}

// line makes an entry named like "a1" of version 1.0.0.
func line(in, name, replaces string, facts ...olmcore.Property) entry {
	return entry{in: in, name: name, version: strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz") + ".0.0", replaces: replaces, facts: facts}
}

// content builds a catalog from lines.
func content(lines ...entry) (*resolution.Catalog, []olmcore.Diagnostic) {
	return resolution.Build(packages(lines...))
}

func packages(lines ...entry) []resolution.Package {
	var list []resolution.Package
	for _, l := range lines {
		pkg, channel, _ := strings.Cut(l.in, "/")
		i := slices.IndexFunc(list, func(p resolution.Package) bool { return p.Name == pkg })
		if i < 0 {
			i = len(list)
			list = append(list, resolution.Package{Name: pkg, DefaultChannel: channel})
		}
		p := &list[i]
		c := slices.IndexFunc(p.Channels, func(c resolution.Channel) bool { return c.Name == channel })
		if c < 0 {
			c = len(p.Channels)
			p.Channels = append(p.Channels, resolution.Channel{Name: channel})
		}
		p.Channels[c].Entries = append(p.Channels[c].Entries, resolution.ChannelEntry{Name: l.name, Replaces: l.replaces, Skips: l.skips, SkipRange: l.skipRange})
		if !slices.ContainsFunc(p.Bundles, func(b resolution.Bundle) bool { return b.Name == l.name }) {
			p.Bundles = append(p.Bundles, bundle(l.name, append([]olmcore.Property{packageProperty(pkg, l.version)}, l.facts...)...))
		}
	}
	return list
}

// world is the input of a case: namespace ns, catalog global/cat unless said otherwise.
type world struct {
	in resolution.Input
}

func newWorld(lines ...entry) *world {
	w := &world{in: resolution.Input{Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns")}}
	if len(lines) > 0 {
		w.catalog("global/cat", 0, lines...)
	}
	return w
}

func (w *world) catalog(key string, priority int, lines ...entry) *world {
	namespace, name, _ := strings.Cut(key, "/")
	built, _ := content(lines...)
	w.in.Catalogs = append(w.in.Catalogs, resolution.CatalogState{Key: types.NamespacedName{Namespace: namespace, Name: name}, Priority: priority, Content: built})
	return w
}

func (w *world) broken(key string, priority int) *world {
	namespace, name, _ := strings.Cut(key, "/")
	w.in.Catalogs = append(w.in.Catalogs, resolution.CatalogState{Key: types.NamespacedName{Namespace: namespace, Name: name}, Priority: priority, Problem: "registry does not answer"})
	return w
}

// sub adds a Subscription named like its package: "package/channel", or "package".
func (w *world) sub(follows string, change ...func(*v1alpha1.Subscription)) *world {
	pkg, channel, _ := strings.Cut(follows, "/")
	s := subscription("ns", pkg, pkg, channel, "global/cat")
	for _, c := range change {
		c(s)
	}
	w.in.Subscriptions = append(w.in.Subscriptions, s)
	return w
}

func named(name string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Name = name }
}

func from(catalog string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Spec.CatalogSourceNamespace, s.Spec.CatalogSource, _ = strings.Cut(catalog, "/")
	}
}

func starting(csv string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = csv }
}

func has(csv string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.InstalledCSV, s.Status.CurrentCSV = csv, csv }
}

func aged(seconds int64) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.CreationTimestamp = metav1.Unix(seconds, 0) }
}

// csv adds an existing operator of a package, with its properties in the annotation.
func (w *world) csv(pkg, name string, facts []olmcore.Property, change ...func(*v1alpha1.ClusterServiceVersion)) *world {
	version := line("", name, "").version
	list := append([]olmcore.Property{packageProperty(pkg, version)}, facts...)
	var texts []string
	for _, p := range list {
		texts = append(texts, fmt.Sprintf(`{"type":%q,"value":%s}`, p.Type, p.Value))
	}
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{
		"operatorframework.io/properties": `{"properties":[` + strings.Join(texts, ",") + `]}`}}}
	c.Spec.Version.Version = semver.MustParse(version)
	c.Status.Phase = v1alpha1.CSVPhaseSucceeded
	for _, f := range change {
		f(c)
	}
	w.in.CSVs = append(w.in.CSVs, c)
	return w
}

func replacing(name string) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = name }
}

func phase(p v1alpha1.ClusterServiceVersionPhase) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = p }
}

func bare(c *v1alpha1.ClusterServiceVersion) { c.Annotations = nil }

func deleting(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = new(metav1.Unix(1, 0)) }

func (w *world) policy(p resolution.Policy) *world {
	w.in.Policy = p
	return w
}

// describe says what a result means, a line for each fact.
func describe(res resolution.Result) string {
	lines := []string{string(res.Outcome)}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, op := range res.Operators {
		text := fmt.Sprintf("install %s from %s %s/%s", op.Name, op.Catalog, op.Package, op.Channel)
		if op.Replaces != "" {
			text += " replacing " + op.Replaces
		}
		if len(op.For) > 0 {
			text += " for " + strings.Join(op.For, ",")
		}
		if len(op.RequiredBy) > 0 {
			text += " required by " + strings.Join(op.RequiredBy, ",")
		}
		if len(op.WaitFor) > 0 {
			text += " after " + op.WaitFor[0].Name
		}
		add("%s", text)
	}
	for _, s := range res.Generated {
		add("generate %s: %s/%s at %s", s.Name, s.Spec.Package, s.Spec.Channel, s.Spec.StartingCSV)
	}
	for i, d := range res.Decisions {
		t := res.Targets[i]
		text := fmt.Sprintf("%s: %s -> %s", d.Name, or(t.Current), or(t.Target))
		if d.Changed {
			text += ", currentCSV " + d.CurrentCSV
		}
		if t.Adopt {
			text += ", adopted"
		}
		if d.Failure != nil {
			text += ", failed"
		}
		add("%s", text)
	}
	for _, h := range res.HeldBack {
		add("held back %s: %s %s", h.Subscription, h.Code, h.Blocker)
	}
	for _, c := range res.Cores {
		add("core %v: %s", c.Subscriptions, c.Message)
	}
	if res.Failure != nil && len(res.Cores) == 0 {
		add("failure: %s", res.Failure.Message)
	}
	for _, d := range res.Diagnostics {
		add("%s %s", d.Reason, d.Target.Name)
	}
	return strings.Join(lines, "\n")
}

func or(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}
