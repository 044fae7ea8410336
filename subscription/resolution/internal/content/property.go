// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/olmcore"
)

// API is what a CustomResourceDefinition or an APIService provides.
type API struct{ Group, Version, Kind string }

// String is the API for people.
func (g API) String() string { return g.Kind + " (" + g.Group + "/" + g.Version + ")" }

// PackageFact is one valid olm.package property. Versions that are not strict semver are in no range.
type PackageFact struct {
	Name    string
	Version semver.Version
	Strict  bool
}

// Compare is the order of the APIs' JSON forms.
func (g API) Compare(h API) int {
	return cmp.Or(strings.Compare(g.Group, h.Group), strings.Compare(g.Kind, h.Kind), strings.Compare(g.Version, h.Version))
}

// Facts is what resolution knows of a bundle or an installed ClusterServiceVersion: its properties, parsed once.
type Facts struct {
	Packages     []PackageFact
	Provides     []API
	Labels       []string
	Requirements []*Requirement
	Deprecated   bool
	// invalid is why it must not be selected: a requirement that cannot be read.
	Invalid string
	// properties are the source, for CEL rules and for the result.
	Properties []olmcore.Property
}

// Parser turns properties into facts. What equal texts have in common is shared, so that a catalog holds each
// requirement, range and string once.
type Parser struct {
	strings      map[string]string
	ranges       map[string]*VersionRange
	requirements map[string]*Requirement
	apis         map[string]API // by the text of the property
	hasRules     bool           // a CEL rule was seen
}

// NewParser returns a parser for a catalog, or, without sharing strings, for a few bundles that are soon forgotten.
func NewParser(share bool) *Parser {
	p := &Parser{ranges: map[string]*VersionRange{}, requirements: map[string]*Requirement{}, apis: map[string]API{}}
	if share {
		p.strings = map[string]string{}
	}
	return p
}

func (p *Parser) intern(s string) string {
	if p.strings == nil {
		return s
	}
	if shared, ok := p.strings[s]; ok {
		return shared
	}
	p.strings[s] = s
	return s
}

func (p *Parser) parseRange(text string) (*VersionRange, error) {
	if r, ok := p.ranges[text]; ok {
		return r, nil
	}
	r, err := ParseRange(text)
	if err != nil {
		return nil, err
	}
	p.ranges[text] = r
	return r, nil
}

// Facts parses the properties of one bundle. ignored gets a sentence for each property that is broken and does not
// matter enough to forbid the bundle.
func (p *Parser) Facts(properties []olmcore.Property, ignored func(string)) Facts {
	f := Facts{Properties: properties}
	known := make(map[any]bool, len(properties))
	for i := range properties {
		p.fact(&f, known, &properties[i], ignored)
	}
	return f
}

// fact adds what a property says, but for what is known already.
func (p *Parser) fact(f *Facts, known map[any]bool, property *olmcore.Property, ignored func(string)) {
	switch property.Type {
	case PropertyPackage:
		if fact, err := p.packageFact(property.Value); err != nil {
			ignored(fmt.Sprintf("property olm.package is ignored: %v", err))
		} else if !slices.ContainsFunc(f.Packages, func(have PackageFact) bool { return samePackage(have, fact) }) {
			f.Packages = append(f.Packages, fact)
		}
	case PropertyGVK:
		if g, err := p.gvk(property.Value); err != nil {
			ignored(fmt.Sprintf("property olm.gvk is ignored: %v", err))
		} else if addKey(known, g) {
			f.Provides = append(f.Provides, g)
		}
	case PropertyLabel:
		if label, err := parseLabel(property.Value); err != nil {
			ignored(fmt.Sprintf("property olm.label is ignored: %v", err))
		} else if label = p.intern(label); addKey(known, label) {
			f.Labels = append(f.Labels, label)
		}
	case PropertyDeprecated:
		f.Deprecated = true
	case PropertyGVKRequired, PropertyPackageRequired, PropertyLabelRequired, PropertyConstraint:
		r, err := p.requirement(property)
		if err != nil {
			if f.Invalid == "" {
				f.Invalid = err.Error()
			}
		} else if addKey(known, r) {
			f.Requirements = append(f.Requirements, r)
		}
	}
}

// addKey adds a key, and reports whether it is new.
func addKey(known map[any]bool, key any) bool {
	if known[key] {
		return false
	}
	known[key] = true
	return true
}

func samePackage(a, b PackageFact) bool {
	return a.Name == b.Name && a.Strict == b.Strict && a.Version.Equals(b.Version)
}

// SpellOut returns provided and required APIs and packages as properties.
func (f *Facts) SpellOut() []olmcore.Property {
	var list []olmcore.Property
	add := func(kind string, value any) {
		if text, err := json.Marshal(value); err == nil {
			list = append(list, olmcore.Property{Type: kind, Value: text})
		}
	}
	type api struct {
		Group   string `json:"group"`
		Kind    string `json:"kind"`
		Version string `json:"version"`
	}
	for _, g := range f.Provides {
		add(PropertyGVK, api{g.Group, g.Kind, g.Version})
	}
	for _, q := range f.Requirements {
		add(PropertyGVKRequired, api{q.API.Group, q.API.Kind, q.API.Version})
	}
	for _, fact := range f.Packages {
		version := ""
		if fact.Strict {
			version = fact.Version.String()
		}
		add(PropertyPackage, map[string]string{"packageName": fact.Name, "version": version})
	}
	return list
}

var errNotObject = errors.New("its value is not a JSON object")

func (p *Parser) packageFact(value json.RawMessage) (PackageFact, error) {
	v := struct{ PackageName, Version string }{}
	if err := unmarshalObject(value, &v); err != nil {
		return PackageFact{}, err
	}
	if v.PackageName == "" {
		return PackageFact{}, errors.New("it has no packageName")
	}
	fact := PackageFact{Name: p.intern(v.PackageName)}
	if version, err := semver.Parse(v.Version); err == nil {
		fact.Version, fact.Strict = version, true
	}
	return fact, nil
}

func (p *Parser) gvk(value json.RawMessage) (API, error) {
	if known, ok := p.apis[string(value)]; ok {
		return known, nil
	}
	v := struct{ Group, Version, Kind string }{}
	if err := unmarshalObject(value, &v); err != nil {
		return API{}, err
	}
	api := API{p.intern(v.Group), p.intern(v.Version), p.intern(v.Kind)}
	p.apis[string(value)] = api
	return api, nil
}

func parseLabel(value json.RawMessage) (string, error) {
	v := struct{ Label string }{}
	if err := unmarshalObject(value, &v); err != nil {
		return "", err
	}
	if v.Label == "" {
		return "", errors.New("it has no label")
	}
	return v.Label, nil
}

// unmarshalObject refuses what encoding/json would take for an empty struct.
func unmarshalObject(value json.RawMessage, into any) error {
	if trimmed := bytes.TrimLeft(value, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errNotObject
	}
	return json.Unmarshal(value, into)
}
