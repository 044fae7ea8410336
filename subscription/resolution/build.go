// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/olmcore"
)

// Build indexes the content of one catalog. Of what OLM checks before it serves a
// catalog it checks what an answer depends on, piece by piece: what is unusable is
// left out or marked, with a Diagnostic whose Path names package, channel and bundle,
// and the rest works. Build panics on no input. It keeps references into packages,
// which must not be changed any more.
//
// Source: operator-registry alpha/declcfg, ConvertToModel, and alpha/model, Validate.
// Differs: one broken package does not take the whole catalog down.
func Build(packages []Package) (*Catalog, []olmcore.Diagnostic) {
	b := &builder{parser: newParser(true), catalog: &Catalog{
		packages:  make(map[string]*catalogPackage, len(packages)),
		byLabel:   map[string][]*entry{},
		byPackage: make(map[string][]*entry, len(packages)),
	}}
	var content digester
	for i := range packages {
		b.addPackage(&packages[i])
		content.add(&packages[i])
	}
	b.catalog.digest = content.total
	b.catalog.index()
	slices.SortStableFunc(b.diagnostics, func(x, y olmcore.Diagnostic) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Message, y.Message))
	})
	return b.catalog, b.diagnostics
}

type builder struct {
	parser      *parser
	catalog     *Catalog
	diagnostics []olmcore.Diagnostic
}

// contentPath names a place in a catalog's content.
func contentPath(pkg, channel, bundle string) string {
	path := fmt.Sprintf("packages[%q]", pkg)
	if channel != "" {
		path += fmt.Sprintf(".channels[%q]", channel)
	}
	if bundle != "" {
		path += fmt.Sprintf(".bundles[%q]", bundle)
	}
	return path
}

// maxDiagnostic bounds what is said of one piece, in bytes: it quotes content.
const maxDiagnostic = 4 << 10

func (b *builder) report(severity olmcore.Severity, reason, path, format string, args ...any) {
	b.diagnostics = append(b.diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Path: path, Message: cut(fmt.Sprintf(format, args...), maxDiagnostic),
	})
}

func (b *builder) addPackage(in *Package) {
	path := contentPath(in.Name, "", "")
	if in.Name == "" {
		b.report(olmcore.Warning, ReasonInvalidContent, path, "a package without a name is left out")
		return
	}
	if b.catalog.packages[in.Name] != nil {
		b.report(olmcore.Warning, ReasonDuplicateContent, path, "a second package %s is left out", in.Name)
		return
	}
	p := &catalogPackage{name: in.Name, deprecations: in.Deprecations}
	b.catalog.packages[in.Name] = p
	b.catalog.sorted = append(b.catalog.sorted, p)

	bundles := b.bundles(in)
	used := make(map[*bundle]bool, len(bundles))
	seen := make(map[string]bool, len(in.Channels))
	for i := range in.Channels {
		ch := &in.Channels[i]
		if seen[ch.Name] {
			b.report(olmcore.Warning, ReasonDuplicateContent, contentPath(in.Name, ch.Name, ""), "a second channel %q is left out", ch.Name)
			continue
		}
		seen[ch.Name] = true
		p.channels = append(p.channels, b.channel(p, ch, in.DefaultChannel, bundles, used))
	}
	switch {
	case len(p.channels) == 0:
		b.report(olmcore.Warning, ReasonInvalidContent, path, "package %s has no channels", in.Name)
	case !seen[in.DefaultChannel]:
		b.report(olmcore.Warning, ReasonInvalidContent, path, "package %s has no channel %q, its default channel; its channels are ordered by name", in.Name, in.DefaultChannel)
	}
	for i := range in.Bundles {
		if name := in.Bundles[i].Name; bundles[name] != nil && !used[bundles[name]] {
			b.report(olmcore.Info, ReasonInvalidContent, contentPath(in.Name, "", name), "bundle %s is in no channel and cannot be chosen", name)
		}
	}
	slices.SortFunc(p.channels, func(x, y *channel) int {
		if x.isDefault != y.isDefault {
			if x.isDefault {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.name, y.name)
	})
	if len(p.channels) == 1 {
		p.chains = p.channels[0].chain
		return
	}
	for _, ch := range p.channels {
		p.chains = append(p.chains, ch.chain...)
	}
	p.chains = slices.Clip(p.chains)
}

func (b *builder) bundles(in *Package) map[string]*bundle {
	bundles := make(map[string]*bundle, len(in.Bundles))
	store := make([]bundle, len(in.Bundles))
	versions := make(map[string]string, len(in.Bundles))
	for i := range in.Bundles {
		source := &in.Bundles[i]
		path := contentPath(in.Name, "", source.Name)
		switch {
		case source.Name == "":
			b.report(olmcore.Warning, ReasonInvalidContent, path, "a bundle of package %s without a name is left out", in.Name)
			continue
		case bundles[source.Name] != nil:
			b.report(olmcore.Warning, ReasonDuplicateContent, path, "a second bundle %s is left out", source.Name)
			continue
		}
		out := &store[i]
		b.fill(out, in.Name, source, path)
		bundles[source.Name] = out
		if first, twice := versions[out.text]; twice && out.hasVersion {
			b.report(olmcore.Info, ReasonDuplicateContent, path, "bundles %s and %s have the same version %s", first, source.Name, out.text)
		}
		versions[out.text] = source.Name
	}
	return bundles
}

func (b *builder) fill(out *bundle, pkg string, source *Bundle, path string) {
	*out = bundle{name: source.Name, pkg: pkg, image: source.Image, objects: source.Objects}
	out.facts = b.parser.facts(source.Properties, func(problem string) {
		b.report(olmcore.Warning, ReasonInvalidContent, path, "%s: %s", source.Name, problem)
	})
	mine := slices.IndexFunc(out.packages, func(f packageFact) bool { return f.name == pkg })
	switch {
	case len(out.packages) == 0:
		b.report(olmcore.Warning, ReasonInvalidContent, path, "bundle %s has no valid olm.package property and no version", source.Name)
		out.packages = []packageFact{{name: pkg}}
		// What is installed has to say which package it is of.
		value, _ := json.Marshal(map[string]string{"packageName": pkg, "version": ""})
		out.properties = append(slices.Clone(out.properties), olmcore.Property{Type: PropertyPackage, Value: value})
	case mine < 0:
		out.invalid = cmp.Or(out.invalid, fmt.Sprintf("its olm.package property names package %s", out.packages[0].name))
	default:
		b.version(out, source, mine, path)
	}
	if out.invalid != "" {
		b.catalog.invalid++
		b.report(olmcore.Warning, ReasonInvalidBundle, path, "bundle %s cannot be chosen: %s", source.Name, out.invalid)
	}
}

func (b *builder) version(out *bundle, source *Bundle, mine int, path string) {
	if fact := out.packages[mine]; fact.strict {
		out.version, out.hasVersion = fact.version, true
		out.text = fact.version.String()
		return
	}
	out.text = packageVersionText(source.Properties, out.pkg)
	version, err := semver.ParseTolerant(out.text)
	if err != nil {
		b.report(olmcore.Warning, ReasonInvalidContent, path, "bundle %s has the version %q, which is none: it is in no version range", source.Name, out.text)
		return
	}
	out.version, out.hasVersion = version, true
}

func packageVersionText(properties []olmcore.Property, pkg string) string {
	for _, p := range properties {
		v := struct{ PackageName, Version string }{}
		if p.Type == PropertyPackage && unmarshalObject(p.Value, &v) == nil && v.PackageName == pkg {
			return v.Version
		}
	}
	return ""
}

func (b *builder) channel(p *catalogPackage, in *Channel, defaultChannel string, bundles map[string]*bundle, used map[*bundle]bool) *channel {
	ch := &channel{pkg: p, name: b.parser.intern(in.Name), isDefault: in.Name == defaultChannel, byName: make(map[string]*entry, len(in.Entries))}
	path := contentPath(p.name, in.Name, "")
	entries := make([]*entry, 0, len(in.Entries))
	store := make([]entry, len(in.Entries))
	for i := range in.Entries {
		source := &in.Entries[i]
		content := bundles[source.Name]
		entryPath := contentPath(p.name, in.Name, source.Name)
		switch {
		case ch.byName[source.Name] != nil:
			b.report(olmcore.Warning, ReasonDuplicateContent, entryPath, "a second entry %s is left out", source.Name)
			continue
		case content == nil:
			// It keeps its place in the chain: the others must not change their order.
			b.report(olmcore.Warning, ReasonInvalidContent, entryPath, "entry %s has no bundle and cannot be chosen", source.Name)
			content = &bundle{name: source.Name, pkg: p.name, facts: facts{invalid: "the catalog has no bundle of this name"}}
			b.catalog.invalid++
		}
		used[content] = true
		e := &store[i]
		*e = entry{bundle: content, channel: ch, replaces: b.parser.intern(source.Replaces), skips: source.Skips, position: -1}
		b.edges(e, source, entryPath)
		ch.byName[content.name] = e
		entries = append(entries, e)
	}
	if ch.chain, ch.malformed = sortChain(p.name, in.Name, entries, ch.byName); ch.malformed != "" {
		b.report(olmcore.Warning, ReasonMalformedChannel, path, "channel %q of package %s cannot be used: %s", in.Name, p.name, ch.malformed)
	}
	for _, e := range entries {
		if e.stranded {
			b.report(olmcore.Warning, ReasonInvalidContent, contentPath(p.name, in.Name, e.name), "entry %s is stranded: the head of its channel does not lead to it, so it cannot be chosen", e.name)
		}
	}
	if len(entries) == 0 {
		b.report(olmcore.Warning, ReasonInvalidContent, path, "channel %q of package %s has no usable entries", in.Name, p.name)
	}
	return ch
}

func (b *builder) edges(e *entry, source *ChannelEntry, path string) {
	if source.Replaces == source.Name || slices.Contains(source.Skips, source.Name) {
		b.report(olmcore.Warning, ReasonInvalidContent, path, "entry %s replaces or skips itself; that edge is ignored", source.Name)
		if source.Replaces == source.Name {
			e.replaces = ""
		}
	}
	if source.SkipRange == "" {
		return
	}
	in, err := b.parser.parseRange(source.SkipRange)
	if err != nil {
		b.report(olmcore.Warning, ReasonInvalidContent, path, "entry %s has the skipRange %q, which is none and is ignored: %v", source.Name, cut(source.SkipRange, 200), err)
		return
	}
	e.skip = in
}
