// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/olmcore"
)

// Build indexes the content of one catalog, as resolution.Build documents. Build performs only the catalog checks of
// OLM that affect a resolution. It checks each part of the catalog separately.
func Build(packages []Package) (*Catalog, []olmcore.Diagnostic) {
	b := &builder{parser: NewParser(), catalog: &Catalog{
		ByName: map[string]*PackageIndex{}, ByAPI: map[API][]*Entry{}, ByLabel: map[string][]*Entry{}, ByPackage: map[string][]*Entry{},
	}}
	var content Digester
	for i := range packages {
		var one Digester
		one.add(&packages[i])
		b.addPackage(&packages[i], one.Sum())
		content.merge(&one)
	}
	b.catalog.digest = content.Sum()
	b.catalog.HasRules = b.parser.hasRules
	b.catalog.index()
	slices.SortStableFunc(b.diagnostics, func(x, y olmcore.Diagnostic) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Message, y.Message))
	})
	return b.catalog, b.diagnostics
}

type builder struct {
	parser      *Parser
	catalog     *Catalog
	diagnostics []olmcore.Diagnostic
}

// contentPath is the package, and where it is known the channel and the bundle, that a Diagnostic is about.
type contentPath struct{ pkg, channel, bundle string }

// String returns the path as the Path of a Diagnostic.
func (p contentPath) String() string {
	path := fmt.Sprintf("packages[%q]", p.pkg)
	if p.channel != "" {
		path += fmt.Sprintf(".channels[%q]", p.channel)
	}
	if p.bundle != "" {
		path += fmt.Sprintf(".bundles[%q]", p.bundle)
	}
	return path
}

// MaxDiagnostic is the maximum length of the message of a Diagnostic in bytes. Messages quote content of the catalog,
// which may be long.
const MaxDiagnostic = 4 << 10

func (b *builder) report(severity olmcore.Severity, reason string, at contentPath, format string, args ...any) {
	b.diagnostics = append(b.diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Path: at.String(), Message: Cut(fmt.Sprintf(format, args...), MaxDiagnostic),
	})
}

func (b *builder) addPackage(in *Package, digest string) {
	at := contentPath{pkg: in.Name}
	if in.Name == "" {
		b.report(olmcore.Warning, ReasonInvalidContent, at, "a package without a name is left out")
		return
	}
	if b.catalog.ByName[in.Name] != nil {
		b.report(olmcore.Warning, ReasonDuplicateContent, at, "a second package %s is left out", in.Name)
		return
	}
	p := &PackageIndex{Name: in.Name, deprecations: in.Deprecations, Digest: digest}
	b.catalog.ByName[in.Name] = p
	b.catalog.Sorted = append(b.catalog.Sorted, p)

	bundles := b.bundles(in)
	used := make(map[*ParsedBundle]bool, len(bundles))
	seen := make(map[string]bool, len(in.Channels))
	for i := range in.Channels {
		ch := &in.Channels[i]
		if seen[ch.Name] {
			b.report(olmcore.Warning, ReasonDuplicateContent, contentPath{pkg: in.Name, channel: ch.Name},
				"a second channel %q is left out", ch.Name)
			continue
		}
		seen[ch.Name] = true
		p.Channels = append(p.Channels, b.channel(p, ch, in.DefaultChannel, bundles, used))
	}
	switch {
	case len(p.Channels) == 0:
		b.report(olmcore.Warning, ReasonInvalidContent, at, "package %s has no channels", in.Name)
	case !seen[in.DefaultChannel]:
		b.report(olmcore.Warning, ReasonInvalidContent, at,
			"package %s has no channel %q, its default channel; its channels are ordered by name", in.Name, in.DefaultChannel)
	}
	for name, bundle := range bundles {
		if !used[bundle] {
			b.report(olmcore.Info, ReasonInvalidContent, contentPath{pkg: in.Name, bundle: name},
				"bundle %s is in no channel and cannot be chosen", name)
		}
	}
	slices.SortFunc(p.Channels, compareChannels)
	for _, ch := range p.Channels {
		p.Chains = append(p.Chains, ch.Chain...)
	}
	p.Chains = slices.Clip(p.Chains)
}

func (b *builder) bundles(in *Package) map[string]*ParsedBundle {
	bundles := make(map[string]*ParsedBundle, len(in.Bundles))
	store := make([]ParsedBundle, len(in.Bundles))
	versions := make(map[string]string, len(in.Bundles))
	for i := range in.Bundles {
		source := &in.Bundles[i]
		at := contentPath{pkg: in.Name, bundle: source.Name}
		switch {
		case source.Name == "":
			b.report(olmcore.Warning, ReasonInvalidContent, at, "a bundle of package %s without a name is left out", in.Name)
			continue
		case bundles[source.Name] != nil:
			b.report(olmcore.Warning, ReasonDuplicateContent, at, "a second bundle %s is left out", source.Name)
			continue
		}
		out := &store[i]
		b.fill(out, in.Name, source, at)
		bundles[source.Name] = out
		first, twice := versions[out.VersionText]
		if twice && out.HasVersion {
			b.report(olmcore.Info, ReasonDuplicateContent, at, "bundles %s and %s have the same version %s", first, source.Name, out.VersionText)
		}
		versions[out.VersionText] = source.Name
	}
	return bundles
}

func (b *builder) fill(out *ParsedBundle, pkg string, source *Bundle, at contentPath) {
	*out = ParsedBundle{Name: source.Name, Pkg: pkg, Image: source.Image, Objects: source.Objects}
	out.Facts = b.parser.Facts(source.Properties, func(problem string) {
		b.report(olmcore.Warning, ReasonInvalidContent, at, "%s: %s", source.Name, problem)
	})
	mine := slices.IndexFunc(out.Packages, func(f PackageFact) bool { return f.Name == pkg })
	switch {
	case len(out.Packages) == 0:
		b.report(olmcore.Warning, ReasonInvalidContent, at, "bundle %s has no valid olm.package property and no version", source.Name)
		out.Packages = []PackageFact{{Name: pkg}}
		// What is installed has to say which package it is of.
		value, _ := json.Marshal(map[string]string{"packageName": pkg, "version": ""})
		out.Properties = append(slices.Clone(out.Properties), olmcore.Property{Type: PropertyPackage, Value: value})
	case mine < 0:
		out.Invalid = cmp.Or(out.Invalid, fmt.Sprintf("its olm.package property names package %s", out.Packages[0].Name))
	default:
		b.version(out, &out.Packages[mine], at)
	}
	if out.Invalid != "" {
		b.catalog.Invalid++
		b.report(olmcore.Warning, ReasonInvalidBundle, at, "bundle %s cannot be chosen: %s", source.Name, out.Invalid)
	}
}

func (b *builder) version(out *ParsedBundle, fact *PackageFact, at contentPath) {
	if fact.Strict {
		out.Version, out.HasVersion = fact.Version, true
		out.VersionText = fact.Version.String()
		return
	}
	version, err := semver.ParseTolerant(fact.Text)
	out.Version, out.HasVersion = version, err == nil
	out.VersionText = fact.Text
	if err != nil {
		b.report(olmcore.Warning, ReasonInvalidContent, at,
			"bundle %s has the version %q, which is none: it is in no version range", out.Name, fact.Text)
	}
}

func (b *builder) channel(p *PackageIndex, in *Channel, defaultChannel string, bundles map[string]*ParsedBundle,
	used map[*ParsedBundle]bool) *ChannelIndex {
	ch := &ChannelIndex{Pkg: p, Name: b.parser.intern(in.Name), isDefault: in.Name == defaultChannel,
		ByName: make(map[string]*Entry, len(in.Entries))}
	at := contentPath{pkg: p.Name, channel: in.Name}
	entries := make([]*Entry, 0, len(in.Entries))
	store := make([]Entry, len(in.Entries))
	for i := range in.Entries {
		source := &in.Entries[i]
		content := bundles[source.Name]
		entryAt := contentPath{p.Name, in.Name, source.Name}
		switch {
		case ch.ByName[source.Name] != nil:
			b.report(olmcore.Warning, ReasonDuplicateContent, entryAt, "a second entry %s is left out", source.Name)
			continue
		case content == nil:
			// It keeps its place in the chain: the others must not change their order.
			b.report(olmcore.Warning, ReasonInvalidContent, entryAt, "entry %s has no bundle and cannot be chosen", source.Name)
			content = &ParsedBundle{Name: source.Name, Pkg: p.Name, Facts: Facts{Invalid: "the catalog has no bundle of this name"}}
			b.catalog.Invalid++
		}
		used[content] = true
		e := &store[i]
		*e = Entry{ParsedBundle: content, Channel: ch, Replaces: b.parser.intern(source.Replaces), Skips: source.Skips, Position: -1}
		b.edges(e, source, entryAt)
		ch.ByName[content.Name] = e
		entries = append(entries, e)
	}
	ch.Chain, ch.Malformed = sortChain(p.Name, in.Name, entries, ch.ByName)
	if ch.Malformed != "" {
		b.report(olmcore.Warning, ReasonMalformedChannel, at, "channel %q of package %s cannot be used: %s", in.Name, p.Name, ch.Malformed)
	}
	for _, e := range entries {
		if e.Stranded {
			b.report(olmcore.Warning, ReasonInvalidContent, contentPath{p.Name, in.Name, e.Name},
				"entry %s is stranded: the head of its channel does not lead to it, so it cannot be chosen", e.Name)
		}
	}
	if len(entries) == 0 {
		b.report(olmcore.Warning, ReasonInvalidContent, at, "channel %q of package %s has no usable entries", in.Name, p.Name)
	}
	return ch
}

func (b *builder) edges(e *Entry, source *ChannelEntry, at contentPath) {
	if source.Replaces == source.Name || slices.Contains(source.Skips, source.Name) {
		b.report(olmcore.Warning, ReasonInvalidContent, at, "entry %s replaces or skips itself; that edge is ignored", source.Name)
		if source.Replaces == source.Name {
			e.Replaces = ""
		}
	}
	if source.SkipRange == "" {
		return
	}
	in, err := b.parser.parseRange(source.SkipRange)
	if err != nil {
		b.report(olmcore.Warning, ReasonInvalidContent, at,
			"entry %s stays, but no version upgrades by its skipRange %q, which is no version range: %v",
			source.Name, Cut(source.SkipRange, 200), err)
		return
	}
	e.Skip = in
}

// Cut shortens a text to at most limit bytes. A shortened text ends with "…", which has 3 bytes, so limit must be at
// least 3.
func Cut(text string, limit int) string {
	const end = "…"
	if len(text) <= limit {
		return text
	}
	limit = max(limit-len(end), 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + end
}
