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
type API struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// String is the API for people.
func (g API) String() string { return g.Kind + " (" + g.Group + "/" + g.Version + ")" }

// Compare is the order of the APIs' JSON forms.
func (g API) Compare(h API) int {
	return cmp.Or(strings.Compare(g.Group, h.Group), strings.Compare(g.Kind, h.Kind), strings.Compare(g.Version, h.Version))
}

// PackageFact is one valid olm.package property. Versions that are not strict semver are in no range.
type PackageFact struct {
	Name    string
	Text    string // the version as written
	Version semver.Version
	Strict  bool
}

// Facts is what resolution knows of a bundle or an installed ClusterServiceVersion: its properties, parsed once.
type Facts struct {
	Packages     []PackageFact
	Provides     []API    // sorted
	Labels       []string // sorted
	Requirements []*Requirement
	Deprecated   bool
	// Invalid is why it must not be selected: a requirement that cannot be read.
	Invalid string
	// Properties are the source, for CEL rules and for the result.
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

// NewParser returns a parser for the bundles of a catalog or of a namespace.
func NewParser() *Parser {
	return &Parser{strings: map[string]string{}, ranges: map[string]*VersionRange{}, requirements: map[string]*Requirement{}, apis: map[string]API{}}
}

func (p *Parser) intern(s string) string {
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
	required := map[*Requirement]bool{}
	for i := range properties {
		if err := p.fact(&f, required, &properties[i]); err != nil {
			ignored(fmt.Sprintf("property %s is ignored: %v", properties[i].Type, err))
		}
	}
	slices.SortFunc(f.Provides, API.Compare)
	f.Provides = slices.Compact(f.Provides)
	slices.Sort(f.Labels)
	f.Labels = slices.Compact(f.Labels)
	return f
}

func (p *Parser) fact(f *Facts, required map[*Requirement]bool, property *olmcore.Property) error {
	switch property.Type {
	case PropertyPackage:
		fact, err := p.packageFact(property.Value)
		if err != nil {
			return err
		}
		for _, g := range f.Packages {
			if g.Name == fact.Name && g.Strict == fact.Strict && g.Version.Equals(fact.Version) {
				return nil
			}
		}
		f.Packages = append(f.Packages, fact)
	case PropertyGVK:
		api, err := p.api(property.Value)
		if err != nil {
			return err
		}
		f.Provides = append(f.Provides, api)
	case PropertyLabel:
		label, err := parseLabel(property.Value)
		if err != nil {
			return err
		}
		f.Labels = append(f.Labels, p.intern(label))
	case PropertyDeprecated:
		f.Deprecated = true
	case PropertyGVKRequired, PropertyPackageRequired, PropertyLabelRequired, PropertyConstraint:
		r, err := p.requirement(property)
		if err != nil {
			f.Invalid = cmp.Or(f.Invalid, err.Error())
		} else if !required[r] {
			required[r] = true
			f.Requirements = append(f.Requirements, r)
		}
	}
	return nil
}

func (p *Parser) packageFact(value json.RawMessage) (PackageFact, error) {
	v := struct{ PackageName, Version string }{}
	if err := unmarshalObject(value, &v); err != nil {
		return PackageFact{}, err
	}
	if v.PackageName == "" {
		return PackageFact{}, errors.New("it has no packageName")
	}
	version, err := semver.Parse(v.Version)
	return PackageFact{Name: p.intern(v.PackageName), Text: v.Version, Version: version, Strict: err == nil}, nil
}

func (p *Parser) api(value json.RawMessage) (API, error) {
	if known, ok := p.apis[string(value)]; ok {
		return known, nil
	}
	var g API
	if err := unmarshalObject(value, &g); err != nil {
		return API{}, err
	}
	g = API{Group: p.intern(g.Group), Kind: p.intern(g.Kind), Version: p.intern(g.Version)}
	p.apis[string(value)] = g
	return g, nil
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
		return errors.New("its value is not a JSON object")
	}
	return json.Unmarshal(value, into)
}

// ParseAnnotation returns the properties of an installed bundle.
func ParseAnnotation(text string) ([]olmcore.Property, error) {
	var list struct{ Properties []olmcore.Property }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}

// Projects reports whether an annotation is the JSON form of a bundle's properties as OLM writes it, without those that
// only carry manifests. Then what was parsed of the bundle is what the annotation says. It compares text: a false no
// costs time alone.
func Projects(text string, properties []olmcore.Property) bool {
	var b strings.Builder
	b.Grow(len(text) + 1)
	separator := `{"properties":[`
	for _, p := range properties {
		if p.Type != PropertyBundleObject && p.Type != PropertyCSVMetadata {
			b.WriteString(separator)
			b.WriteString(`{"type":"`)
			b.WriteString(p.Type)
			b.WriteString(`","value":`)
			b.Write(p.Value)
			b.WriteByte('}')
			separator = ","
		}
	}
	b.WriteString("]}")
	return strings.TrimSpace(text) == b.String()
}

// VersionRange is a parsed range with its text.
type VersionRange struct {
	Text string
	in   semver.Range
}

// Contains reports whether v is in the range. The range functions of the semver library call nil for texts with an
// empty alternative, such as ">1.0.0 || || <0.1.0", when no other alternative matches; nothing is in that part.
func (r *VersionRange) Contains(v semver.Version) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return r.in(v)
}

// maxRangeSize bounds the text of a range in bytes: the functions of the library nest as deep as a range has
// alternatives.
const maxRangeSize = 16 << 10

// ParseRange parses a version range. It never panics.
func ParseRange(text string) (r *VersionRange, err error) {
	if len(text) > maxRangeSize {
		return nil, fmt.Errorf("version range is longer than %d bytes", maxRangeSize)
	}
	in, err := semver.ParseRange(text)
	if err != nil {
		return nil, err
	}
	return &VersionRange{Text: text, in: in}, nil
}
