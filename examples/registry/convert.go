// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Types of dependencies, which some servers list beside the properties; the type of a property that asks for the same.
const (
	dependencyPackage = "olm.package"
	dependencyGVK     = "olm.gvk"
	dependencyLabel   = "olm.label"
)

// maxProblems bounds what is said about one catalog.
const maxProblems = 100

// assembly puts the bundles of a catalog together, whatever order they come in. What cannot be used is left out and
// told; its place in the upgrade graph stays.
type assembly struct {
	packages map[string]*pending
	problems []olmcore.Diagnostic
	// Bundles of a catalog have most of their texts in common.
	texts  map[string]string
	values map[string]json.RawMessage
	// size is how much memory all of it takes beside the bytes that were sent.
	size int64
	// places: of bundles no more is kept than their places in channels and their versions.
	places bool
}

// pending is a package whose description was not read yet.
type pending struct {
	resolution.Package
	channels map[string]*resolution.Channel
	bundles  map[string]bool // by name, the others cannot be used
}

func newAssembly() *assembly {
	return &assembly{packages: map[string]*pending{}, texts: map[string]string{}, values: map[string]json.RawMessage{}}
}

func (a *assembly) intern(text string) string {
	if known, ok := a.texts[text]; ok {
		return known
	}
	a.texts[text] = text
	a.size += textSize
	return text
}

// value is the value of a property of some type.
func (a *assembly) value(kind string, text []byte) json.RawMessage {
	if known, ok := a.values[string(text)]; ok {
		return known
	}
	a.size += valueSize(kind, text)
	value := json.RawMessage(bytes.Clone(text))
	a.values[string(value)] = value
	return value
}

func (a *assembly) report(pkg, bundle, format string, args ...any) {
	path := fmt.Sprintf("packages[%q]", quoted(pkg))
	if bundle != "" {
		path += fmt.Sprintf(".bundles[%q]", quoted(bundle))
	}
	d := olmcore.Diagnostic{Severity: olmcore.Warning, Reason: resolution.ReasonInvalidContent, Path: path, Message: fmt.Sprintf(format, args...)}
	if len(a.problems) <= maxProblems { // one more shows that there are more
		a.problems = append(a.problems, d)
	}
}

// add takes one bundle in one of its channels. A bundle comes once for each; what is said first of it counts.
func (a *assembly) add(b *api.Bundle) {
	name := a.intern(b.GetCsvName())
	if b.GetPackageName() == "" || name == "" {
		a.report(b.GetPackageName(), name, "a bundle without a name, or of a package without one, is left out")
		return
	}
	if !plain(b) {
		a.report(b.GetPackageName(), name, "bundle %s is left out: a name has characters that cannot be printed", quoted(name))
		return
	}
	p := a.packages[b.GetPackageName()]
	if p == nil {
		p = &pending{channels: map[string]*resolution.Channel{}, bundles: map[string]bool{}}
		p.Name = a.intern(b.GetPackageName())
		a.packages[p.Name] = p
		a.size += packageSize
	}
	channel := p.channels[b.GetChannelName()]
	if channel == nil {
		channel = &resolution.Channel{Name: a.intern(b.GetChannelName())}
		p.channels[channel.Name] = channel
		a.size += channelSize
	}
	channel.Entries = append(channel.Entries, a.entry(b))
	if _, known := p.bundles[name]; known {
		return
	}
	bundle, err := a.bundle(b)
	if p.bundles[name] = err == nil; err != nil {
		a.report(p.Name, name, "bundle %s is left out: %v", quoted(name), err)
		return
	}
	if a.places {
		bundle.Properties = slices.Clip(slices.DeleteFunc(bundle.Properties, func(p olmcore.Property) bool { return p.Type != resolution.PropertyPackage }))
		clear(a.values)
	}
	p.Bundles = append(p.Bundles, bundle)
	a.size += bundleSize + propertiesSize(bundle.Properties)
	if text := b.GetDeprecation().GetMessage(); text != "" {
		p.Deprecations = append(p.Deprecations, resolution.Deprecation{Bundle: name, Message: text})
		a.size += deprecationSize
	}
}

// entry is the place of a bundle in its channel.
func (a *assembly) entry(b *api.Bundle) resolution.ChannelEntry {
	skipRange, known := b.GetSkipRange(), len(a.texts)
	entry := resolution.ChannelEntry{Name: a.intern(b.GetCsvName()), Replaces: a.intern(b.GetReplaces()), SkipRange: a.intern(skipRange)}
	if len(a.texts) > known {
		a.size += partsOf(skipRange) * partSize
	}
	if len(b.GetSkips()) > 0 {
		entry.Skips = make([]string, 0, len(b.GetSkips()))
	}
	for _, skipped := range b.GetSkips() {
		if skipped != "" {
			entry.Skips = append(entry.Skips, a.intern(skipped))
		}
	}
	a.size += entrySize + int64(len(entry.Skips))*skipSize
	return entry
}

// plain: no name has control characters, which could forge a line wherever it is printed.
func plain(b *api.Bundle) bool {
	names := append([]string{b.GetPackageName(), b.GetChannelName(), b.GetCsvName(), b.GetReplaces(), b.GetSkipRange(), b.GetVersion()}, b.GetSkips()...)
	return !slices.ContainsFunc(names, func(name string) bool { return name != printable(name) })
}

// bundle converts what is the same in all channels.
func (a *assembly) bundle(b *api.Bundle) (resolution.Bundle, error) {
	properties, err := a.properties(b)
	if err != nil {
		return resolution.Bundle{}, err
	}
	if b.GetBundlePath() == "" {
		// What is not in an image comes inline.
		for i, o := range b.GetObject() {
			if !json.Valid([]byte(o)) {
				return resolution.Bundle{}, fmt.Errorf("object[%d] is no JSON", i)
			}
			value, err := json.Marshal(map[string][]byte{"data": []byte(o)})
			if err != nil {
				return resolution.Bundle{}, err
			}
			properties = append(properties, olmcore.Property{Type: resolution.PropertyBundleObject, Value: value})
			a.size += int64(len(value)-len(o)) + textSize
		}
		if len(b.GetObject()) == 0 {
			return resolution.Bundle{}, fmt.Errorf("it has neither an image nor objects: there is nothing to install")
		}
	}
	return resolution.Bundle{Name: a.intern(b.GetCsvName()), Bundle: olmcore.Bundle{Image: b.GetBundlePath(), Properties: slices.Clip(properties)}}, nil
}

// properties are those of a bundle, and what older servers say in other fields.
func (a *assembly) properties(b *api.Bundle) (list []olmcore.Property, err error) {
	own, versions, err := ownVersion(b)
	if err != nil {
		return nil, err
	}
	list = make([]olmcore.Property, 0, len(b.GetProperties())+1)
	for i, p := range b.GetProperties() {
		switch {
		case p.GetType() == "":
			return nil, fmt.Errorf("properties[%d].type is empty", i)
		case p.GetType() != printable(p.GetType()):
			return nil, fmt.Errorf("properties[%d].type has characters that cannot be printed", i)
		case !json.Valid([]byte(p.GetValue())):
			return nil, fmt.Errorf("properties[%d].value is no JSON", i)
		case p.GetType() == resolution.PropertyPackage && i != own:
			continue
		}
		list = append(list, olmcore.Property{Type: a.intern(p.GetType()), Value: a.value(p.GetType(), []byte(p.GetValue()))})
	}
	var known map[string]bool // what is there already, however it is written
	add := func(kind string, value any) {
		if known == nil {
			known = map[string]bool{}
			for _, p := range list {
				known[p.Type+" "+canonical(p.Value)] = true
			}
		}
		text, failed := marshal(value)
		if err = cmp.Or(err, failed); failed == nil && !known[kind+" "+canonical(text)] {
			known[kind+" "+canonical(text)] = true
			list = append(list, olmcore.Property{Type: kind, Value: a.value(kind, text)})
		}
	}
	if len(list) == 0 {
		for _, api := range b.GetProvidedApis() {
			add(resolution.PropertyGVK, gvkOf(api))
		}
		for _, api := range b.GetRequiredApis() {
			add(resolution.PropertyGVKRequired, gvkOf(api))
		}
	}
	for i, d := range b.GetDependencies() {
		kind, value, problem := requirement(d)
		if problem != nil {
			return nil, fmt.Errorf("dependencies[%d]: %w", i, problem)
		}
		if kind != "" {
			add(kind, value)
		}
	}
	if versions == 0 {
		add(resolution.PropertyPackage, map[string]string{"packageName": b.GetPackageName(), "version": b.GetVersion()})
	}
	return list, err
}

// ownVersion returns the index of the olm.package property that counts for a bundle in the package of its message, and
// how many olm.package properties the bundle has. The only one counts, whatever package it names. A registry that
// serves a bundle under several packages sends one for each: of several, the one that names this package counts, which
// may be repeated. The error means that none of several names the package, or that two give it different versions.
func ownVersion(b *api.Bundle) (own, count int, err error) {
	own, only, version := -1, -1, ""
	for i, p := range b.GetProperties() {
		if p.GetType() != resolution.PropertyPackage {
			continue
		}
		count++
		only = i
		var value struct{ PackageName, Version string }
		if json.Unmarshal([]byte(p.GetValue()), &value) != nil || value.PackageName != b.GetPackageName() {
			continue
		}
		if own >= 0 && value.Version != version {
			return 0, 0, fmt.Errorf("its properties of type %s give two versions of package %s, %q and %q",
				resolution.PropertyPackage, quoted(b.GetPackageName()), quoted(version), quoted(value.Version))
		}
		if own < 0 {
			own, version = i, value.Version
		}
	}
	switch {
	case count == 1:
		return only, count, nil
	case count > 1 && own < 0:
		return 0, 0, fmt.Errorf("it has %d properties of type %s, none of them for package %s",
			count, resolution.PropertyPackage, quoted(b.GetPackageName()))
	}
	return own, count, nil
}

// gvk is the value of the properties about APIs.
type gvk struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

func gvkOf(a *api.GroupVersionKind) gvk {
	return gvk{Group: a.GetGroup(), Kind: a.GetKind(), Version: a.GetVersion()}
}

// requirement is the property that asks for the same as a dependency; no kind: it asks for nothing that is known.
func requirement(d *api.Dependency) (kind string, value any, err error) {
	switch d.GetType() {
	case dependencyPackage:
		var v struct{ PackageName, Version string }
		err = json.Unmarshal([]byte(d.GetValue()), &v)
		return resolution.PropertyPackageRequired, map[string]string{"packageName": v.PackageName, "versionRange": v.Version}, err
	case dependencyGVK:
		var v gvk
		err = json.Unmarshal([]byte(d.GetValue()), &v)
		return resolution.PropertyGVKRequired, v, err
	case dependencyLabel:
		var v struct{ Label string }
		err = json.Unmarshal([]byte(d.GetValue()), &v)
		return resolution.PropertyLabelRequired, map[string]string{"label": v.Label}, err
	case resolution.PropertyConstraint:
		var v json.RawMessage
		err = json.Unmarshal([]byte(d.GetValue()), &v)
		return resolution.PropertyConstraint, v, err
	}
	return "", nil, nil
}

// marshal leaves version ranges readable.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}

// canonical is JSON with sorted keys and without spaces.
func canonical(value []byte) string {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return string(value)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return string(value)
	}
	return string(text)
}

// names are those of the packages, sorted.
func (a *assembly) names() []string { return slices.Sorted(maps.Keys(a.packages)) }

// describe takes what a registry says of a package.
func (a *assembly) describe(name string, described *api.Package) {
	p := a.packages[name]
	p.DefaultChannel = a.intern(described.GetDefaultChannelName())
	if text := described.GetDeprecation().GetMessage(); text != "" {
		p.Deprecations = append(p.Deprecations, resolution.Deprecation{Message: text})
		a.size += deprecationSize
	}
	told := map[string]bool{}
	for _, channel := range described.GetChannels() {
		text := channel.GetDeprecation().GetMessage()
		if channel.GetName() == "" || text == "" || told[channel.GetName()] {
			continue // a deprecation without a channel would be that of the package
		}
		told[channel.GetName()] = true
		p.Deprecations = append(p.Deprecations, resolution.Deprecation{Channel: a.intern(channel.GetName()), Message: text})
		a.size += deprecationSize
	}
}

// leaveOut removes a package that the registry does not describe.
func (a *assembly) leaveOut(name, why string) {
	delete(a.packages, name)
	a.report(name, "", "package %s is left out: it has bundles, and is not described: %s", quoted(name), why)
}

// result returns the packages, sorted by name, and what was left out.
func (a *assembly) result() ([]resolution.Package, []olmcore.Diagnostic) {
	packages := make([]resolution.Package, 0, len(a.packages))
	for _, name := range a.names() {
		p := a.packages[name]
		for _, channel := range slices.Sorted(maps.Keys(p.channels)) {
			c := p.channels[channel]
			slices.SortStableFunc(c.Entries, func(x, y resolution.ChannelEntry) int { return cmp.Compare(x.Name, y.Name) })
			c.Entries = slices.Clip(c.Entries)
			p.Channels = append(p.Channels, *c)
		}
		slices.SortStableFunc(p.Bundles, func(x, y resolution.Bundle) int { return cmp.Compare(x.Name, y.Name) })
		p.Bundles = slices.Clip(p.Bundles)
		packages = append(packages, p.Package)
	}
	return packages, a.problems
}
