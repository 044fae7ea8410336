// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// predicateKind says how a predicate is satisfied.
type predicateKind uint8

const (
	IsGVK predicateKind = iota
	IsPackage
	IsLabel
	IsAll
	IsAny
	IsNot
	IsCEL
)

// Predicate is a condition on one entry.
type Predicate struct {
	Kind  predicateKind
	API   API
	Name  string // package or label
	In    *VersionRange
	Parts []*Predicate
	Rule  string // CEL
	// message is the failureMessage that the author gave it.
	Message string
}

// Requirement is a predicate that some selected entry must satisfy. Equal requirements of one catalog are one
// pointer.
type Requirement struct {
	*Predicate
	Key string
}

// Limits of olm.constraint properties.
const (
	maxConstraintSize  = 2 << 16
	maxConstraintDepth = 64
)

func (p *Parser) requirement(property *olmcore.Property) (*Requirement, error) {
	key := property.Type + " " + string(property.Value)
	if r, ok := p.requirements[key]; ok {
		return r, nil
	}
	parsed, err := p.predicate(property)
	if err != nil {
		return nil, err
	}
	// The same requirement in another spelling is the same requirement.
	canonical := property.Type + " " + canonicalJSON(property.Value)
	r, ok := p.requirements[canonical]
	if !ok {
		r = &Requirement{Predicate: parsed, Key: canonical}
		p.requirements[canonical] = r
	}
	p.requirements[key] = r
	return r, nil
}

// APIRequirement is the requirement of an API, as its property would give it.
func (p *Parser) APIRequirement(g API) *Requirement {
	key := fmt.Sprintf("%s {%q,%q,%q}", PropertyGVKRequired, g.Group, g.Version, g.Kind)
	r, ok := p.requirements[key]
	if !ok {
		r = &Requirement{Predicate: &Predicate{Kind: IsGVK, API: g}, Key: key}
		p.requirements[key] = r
	}
	return r
}

func (p *Parser) predicate(property *olmcore.Property) (*Predicate, error) {
	switch property.Type {
	case PropertyGVKRequired:
		v := struct{ Group, Version, Kind string }{}
		if err := unmarshalObject(property.Value, &v); err != nil {
			return nil, err
		}
		return &Predicate{Kind: IsGVK, API: API{v.Group, v.Version, v.Kind}}, nil
	case PropertyPackageRequired:
		v := struct{ PackageName, VersionRange string }{}
		if err := unmarshalObject(property.Value, &v); err != nil {
			return nil, err
		}
		return p.packagePredicate(v.PackageName, v.VersionRange)
	case PropertyLabelRequired:
		label, err := parseLabel(property.Value)
		return &Predicate{Kind: IsLabel, Name: label}, err
	}
	return p.constraint(property.Value)
}

func (p *Parser) packagePredicate(name, versions string) (*Predicate, error) {
	in, err := p.parseRange(versions)
	if err != nil {
		return nil, err
	}
	return &Predicate{Kind: IsPackage, Name: p.intern(name), In: in}, nil
}

type constraintJSON struct {
	FailureMessage string `json:"failureMessage"`
	GVK            *struct {
		Group   string `json:"group"`
		Kind    string `json:"kind"`
		Version string `json:"version"`
	} `json:"gvk"`
	Package *struct {
		PackageName  string `json:"packageName"`
		VersionRange string `json:"VersionRange"`
	} `json:"package"`
	All *constraintsJSON `json:"all"`
	Any *constraintsJSON `json:"any"`
	Not *constraintsJSON `json:"not"`
	CEL *struct {
		Rule string `json:"rule"`
	} `json:"cel"`
}

type constraintsJSON struct {
	Constraints []constraintJSON `json:"constraints"`
}

// constraint parses an olm.constraint value.
//
// Source: operator-framework/api pkg/constraints, Parse.
// Differs: several kinds in one constraint, data behind the value and more than 64 levels are errors, instead of
// being ignored.
func (p *Parser) constraint(value json.RawMessage) (*Predicate, error) {
	if len(value) > maxConstraintSize {
		return nil, fmt.Errorf("parse olm.constraint: olm.constraint value is greater than max constraint size %d bytes", maxConstraintSize)
	}
	if depthOf(value) > 3*maxConstraintDepth {
		return nil, fmt.Errorf("parse olm.constraint: more than %d nested constraints", maxConstraintDepth)
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	var c constraintJSON
	if err := decoder.Decode(&c); err != nil {
		return nil, fmt.Errorf("parse olm.constraint: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("parse olm.constraint: data behind the constraint")
	}
	parsed, err := p.convert(&c, 1)
	if err != nil {
		return nil, fmt.Errorf("convert olm.constraint to resolver predicate: %w", err)
	}
	return parsed, nil
}

func (p *Parser) convert(c *constraintJSON, depth int) (*Predicate, error) {
	kinds := 0
	for _, set := range [...]bool{c.GVK != nil, c.Package != nil, c.All != nil, c.Any != nil, c.Not != nil, c.CEL != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return nil, errors.New("constraint is empty")
	case kinds > 1:
		return nil, errors.New("constraint has more than one kind")
	case depth > maxConstraintDepth:
		return nil, fmt.Errorf("more than %d nested constraints", maxConstraintDepth)
	}
	var parsed *Predicate
	var err error
	switch {
	case c.GVK != nil:
		parsed = &Predicate{Kind: IsGVK, API: API{c.GVK.Group, c.GVK.Version, c.GVK.Kind}}
	case c.Package != nil:
		parsed, err = p.packagePredicate(c.Package.PackageName, c.Package.VersionRange)
	case c.All != nil:
		parsed, err = p.compound(IsAll, c.All, depth)
	case c.Any != nil:
		parsed, err = p.compound(IsAny, c.Any, depth)
	case c.Not != nil:
		parsed, err = p.compound(IsNot, c.Not, depth)
	default:
		p.hasRules = true
		parsed = &Predicate{Kind: IsCEL, Rule: c.CEL.Rule}
	}
	if err != nil {
		return nil, err
	}
	parsed.Message = c.FailureMessage
	return parsed, nil
}

func (p *Parser) compound(kind predicateKind, c *constraintsJSON, depth int) (*Predicate, error) {
	all := &Predicate{Kind: kind, Parts: make([]*Predicate, len(c.Constraints))}
	for i := range c.Constraints {
		part, err := p.convert(&c.Constraints[i], depth+1)
		if err != nil {
			return nil, err
		}
		all.Parts[i] = part
	}
	return all, nil
}

// depthOf returns the deepest nesting of brackets outside of strings.
func depthOf(value []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// canonicalJSON has sorted keys and no blanks; text that is not JSON stays.
func canonicalJSON(value json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return string(value)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(value)
	}
	return string(out)
}

// Size is of how many conditions the predicate consists.
func (q *Predicate) Size() int {
	size := 1
	for _, part := range q.Parts {
		size += part.Size()
	}
	return size
}

// Text is how OLM words the predicate.
func (q *Predicate) Text() string {
	switch q.Kind {
	case IsGVK:
		return fmt.Sprintf("providing an API with group: %s, version: %s, kind: %s", q.API.Group, q.API.Version, q.API.Kind)
	case IsPackage:
		return fmt.Sprintf("with package: %s and with version in range: %s", q.Name, q.In.Text)
	case IsLabel:
		return "with label: " + q.Name
	case IsCEL:
		return fmt.Sprintf("with constraint: %q and message: %q", q.Rule, q.Message)
	}
	parts := make([]string, len(q.Parts))
	for i, part := range q.Parts {
		parts[i] = part.Text()
	}
	return strings.Join(parts, map[predicateKind]string{IsAll: " and ", IsAny: " or ", IsNot: " and not "}[q.Kind])
}
