// SPDX-License-Identifier: Apache-2.0

package resolution

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

// gvk is an API.
type gvk struct{ group, version, kind string }

func (g gvk) String() string { return g.kind + " (" + g.group + "/" + g.version + ")" }

// packageFact is one valid olm.package property. Versions that are not strict
// semver are in no range.
type packageFact struct {
	name    string
	version semver.Version
	strict  bool
}

// compare is the order of the APIs' JSON forms.
func (g gvk) compare(h gvk) int {
	return cmp.Or(strings.Compare(g.group, h.group), strings.Compare(g.kind, h.kind), strings.Compare(g.version, h.version))
}

// facts is what resolution knows of a bundle or an installed
// ClusterServiceVersion: its properties, parsed once.
type facts struct {
	packages     []packageFact
	provides     []gvk
	labels       []string
	requirements []*requirement
	deprecated   bool
	// invalid is why it must not be selected: a requirement that cannot be read.
	invalid string
	// properties are the source, for CEL rules and for the result.
	properties []olmcore.Property
}

// parser turns properties into facts. What equal texts have in common is shared,
// so that a catalog holds each requirement, range and string once.
type parser struct {
	strings      map[string]string
	ranges       map[string]*versionRange
	requirements map[string]*requirement
	apis         map[gvk]gvk
}

// newParser returns a parser for a catalog, or, without sharing strings, for a
// few bundles that are soon forgotten.
func newParser(share bool) *parser {
	p := &parser{ranges: map[string]*versionRange{}, requirements: map[string]*requirement{}}
	if share {
		p.strings, p.apis = map[string]string{}, map[gvk]gvk{}
	}
	return p
}

func (p *parser) intern(s string) string {
	if p.strings == nil {
		return s
	}
	if shared, ok := p.strings[s]; ok {
		return shared
	}
	p.strings[s] = s
	return s
}

func (p *parser) parseRange(text string) (*versionRange, error) {
	if r, ok := p.ranges[text]; ok {
		return r, nil
	}
	r, err := parseRange(text)
	if err != nil {
		return nil, err
	}
	p.ranges[text] = r
	return r, nil
}

// facts parses the properties of one bundle. ignored gets a sentence for each
// property that is broken and does not matter enough to forbid the bundle.
func (p *parser) facts(properties []olmcore.Property, ignored func(string)) facts {
	f := facts{properties: properties}
	apis := 0
	for i := range properties {
		if properties[i].Type == PropertyGVK {
			apis++
		}
	}
	f.provides = make([]gvk, 0, apis)
	for i := range properties {
		p.fact(&f, &properties[i], ignored)
	}
	if len(f.provides) == 0 {
		f.provides = nil
	}
	return f
}

func (p *parser) fact(f *facts, property *olmcore.Property, ignored func(string)) {
	switch property.Type {
	case PropertyPackage:
		if fact, err := p.packageFact(property.Value); err != nil {
			ignored(fmt.Sprintf("property olm.package is ignored: %v", err))
		} else if !slices.ContainsFunc(f.packages, func(have packageFact) bool { return samePackage(have, fact) }) {
			f.packages = append(f.packages, fact)
		}
	case PropertyGVK:
		if g, err := p.gvk(property.Value); err != nil {
			ignored(fmt.Sprintf("property olm.gvk is ignored: %v", err))
		} else if !slices.Contains(f.provides, g) {
			f.provides = append(f.provides, g)
		}
	case PropertyLabel:
		if label, err := parseLabel(property.Value); err != nil {
			ignored(fmt.Sprintf("property olm.label is ignored: %v", err))
		} else if label = p.intern(label); !slices.Contains(f.labels, label) {
			f.labels = append(f.labels, label)
		}
	case PropertyDeprecated:
		f.deprecated = true
	case PropertyGVKRequired, PropertyPackageRequired, PropertyLabelRequired, PropertyConstraint:
		r, err := p.requirement(property)
		if err != nil {
			if f.invalid == "" {
				f.invalid = err.Error()
			}
		} else if !slices.Contains(f.requirements, r) {
			f.requirements = append(f.requirements, r)
		}
	}
}

func samePackage(a, b packageFact) bool {
	return a.name == b.name && a.strict == b.strict && a.version.Equals(b.version)
}

// spellOut returns provided and required APIs and packages as properties.
func (f *facts) spellOut() []olmcore.Property {
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
	for _, g := range f.provides {
		add(PropertyGVK, api{g.group, g.kind, g.version})
	}
	for _, q := range f.requirements {
		add(PropertyGVKRequired, api{q.api.group, q.api.kind, q.api.version})
	}
	for _, fact := range f.packages {
		version := ""
		if fact.strict {
			version = fact.version.String()
		}
		add(PropertyPackage, map[string]string{"packageName": fact.name, "version": version})
	}
	return list
}

var errNotObject = errors.New("its value is not a JSON object")

func (p *parser) packageFact(value json.RawMessage) (packageFact, error) {
	v := struct{ PackageName, Version string }{}
	if fields, ok := scanFields(value, packageKeys); ok {
		v.PackageName, v.Version = string(fields[0]), string(fields[1])
	} else if err := unmarshalObject(value, &v); err != nil {
		return packageFact{}, err
	}
	if v.PackageName == "" {
		return packageFact{}, errors.New("it has no packageName")
	}
	fact := packageFact{name: p.intern(v.PackageName)}
	if version, err := semver.Parse(v.Version); err == nil {
		fact.version, fact.strict = version, true
	}
	return fact, nil
}

func (p *parser) gvk(value json.RawMessage) (gvk, error) {
	var g gvk
	if fields, ok := scanFields(value, apiKeys); ok {
		if shared, ok := p.apis[gvk{string(fields[0]), string(fields[1]), string(fields[2])}]; ok {
			return shared, nil
		}
		g = gvk{string(fields[0]), string(fields[1]), string(fields[2])}
	} else {
		v := struct{ Group, Version, Kind string }{}
		if err := unmarshalObject(value, &v); err != nil {
			return gvk{}, err
		}
		g = gvk{v.Group, v.Version, v.Kind}
	}
	if p.apis == nil {
		return g, nil
	}
	if shared, ok := p.apis[g]; ok {
		return shared, nil
	}
	shared := gvk{p.intern(g.group), p.intern(g.version), p.intern(g.kind)}
	p.apis[shared] = shared
	return shared, nil
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

// Keys of the values that nearly all properties have.
var (
	apiKeys     = []string{"group", "version", "kind"}
	packageKeys = []string{"packageName", "version"}
)

// scanFields reads an object of exactly these keys, at most three, in any order,
// with plain strings that are not empty. Anything else is left to encoding/json.
func scanFields(value []byte, keys []string) (fields [3][]byte, ok bool) {
	if len(value) < 2 || value[0] != '{' {
		return fields, false
	}
	rest := value[1:]
	for n := range keys {
		var key, text []byte
		if key, rest, ok = scanString(rest); !ok || len(rest) == 0 || rest[0] != ':' {
			return fields, false
		}
		if text, rest, ok = scanString(rest[1:]); !ok || len(rest) == 0 || len(text) == 0 {
			return fields, false
		}
		i := slices.Index(keys, string(key))
		if i < 0 || fields[i] != nil {
			return fields, false
		}
		fields[i] = text
		end := byte(',')
		if n == len(keys)-1 {
			end = '}'
		}
		if rest[0] != end {
			return fields, false
		}
		rest = rest[1:]
	}
	return fields, len(rest) == 0
}

func scanString(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[1:i], b[i+1:], true
		case c == '\\' || c < ' ' || c >= 0x80:
			return nil, nil, false
		}
	}
	return nil, nil, false
}
