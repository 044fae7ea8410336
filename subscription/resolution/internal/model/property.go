// SPDX-License-Identifier: Apache-2.0

package model

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

// API is the group, kind and version of an API that a CustomResourceDefinition or an APIService provides.
type API struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// String returns the API as "Kind (group/version)".
func (g API) String() string { return g.Kind + " (" + g.Group + "/" + g.Version + ")" }

// Compare compares two APIs by group, then by kind, then by version.
func (g API) Compare(h API) int {
	return cmp.Or(strings.Compare(g.Group, h.Group), strings.Compare(g.Kind, h.Kind), strings.Compare(g.Version, h.Version))
}

// PackageFact is one valid property olm.package. Strict means that Text is a semantic version. If Strict is false, the
// version is in no version range.
type PackageFact struct {
	Name string
	// Text is the version as the author wrote it.
	Text    string
	Version semver.Version
	Strict  bool
}

// sameVersion reports whether f and g name the same package and version.
func (f PackageFact) sameVersion(g PackageFact) bool {
	return f.Name == g.Name && f.Strict == g.Strict && f.Version.Equals(g.Version)
}

// Facts contains the parsed properties of a bundle or an installed ClusterServiceVersion.
type Facts struct {
	Packages []PackageFact
	// Provides contains the provided APIs, sorted.
	Provides []API
	// Labels contains the labels, sorted.
	Labels       []string
	Requirements []*Requirement
	Deprecated   bool
	// Invalid describes the first requirement that cannot be read. If Invalid is not empty, the bundle must not be
	// selected.
	Invalid string
	// Properties contains the unparsed properties. CEL rules and the result use them.
	Properties []olmcore.Property
}

// Parser parses properties into Facts. The Facts of one Parser share equal requirements, ranges and strings, which
// saves memory.
type Parser struct {
	strings      map[string]string
	ranges       map[string]*VersionRange
	requirements map[string]*Requirement
	apis         map[string]API // by the text of the property
	hasRules     bool           // a CEL rule was seen
}

// NewParser returns a Parser for the bundles of one catalog or namespace.
func NewParser() *Parser {
	return &Parser{strings: map[string]string{}, ranges: map[string]*VersionRange{}, requirements: map[string]*Requirement{},
		apis: map[string]API{}}
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

// Facts parses the properties of one bundle. It calls ignored with a message for each invalid property that does not
// make the bundle invalid.
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
		if !slices.ContainsFunc(f.Packages, fact.sameVersion) {
			f.Packages = append(f.Packages, fact)
		}
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
	trimmed := bytes.TrimLeft(value, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("its value is not a JSON object")
	}
	return json.Unmarshal(value, into)
}

// ParseAnnotation parses the annotation that contains the properties of an installed ClusterServiceVersion.
func ParseAnnotation(text string) ([]olmcore.Property, error) {
	var list struct{ Properties []olmcore.Property }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}

// Projects reports whether an annotation contains exactly the given properties of a bundle, in the JSON form that OLM
// writes, without PropertyBundleObject and PropertyCSVMetadata. The Facts of the annotation then equal the Facts of the
// bundle. Projects compares text, so it may return false although the properties are the same. If it returns false,
// parse the annotation.
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

// VersionRange is a parsed version range and its text.
type VersionRange struct {
	Text string
	in   semver.Range
}

// Contains reports whether v is in the range. For a range with an empty alternative, such as ">1.0.0 || || <0.1.0", it
// returns false, because the semver library panics.
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

// ParseRange parses a version range. It returns an error if the text is invalid or longer than 16 KiB.
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
