// SPDX-License-Identifier: Apache-2.0

package resolution

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
	isGVK predicateKind = iota
	isPackage
	isLabel
	isAll
	isAny
	isNot
	isCEL
)

// predicate is a condition on one entry.
type predicate struct {
	kind  predicateKind
	api   gvk
	name  string // package or label
	in    *versionRange
	parts []*predicate
	rule  string // CEL
	// message is the failureMessage that the author gave it.
	message string
}

// requirement is a predicate that some selected entry must satisfy. Equal
// requirements of one catalog are one pointer.
type requirement struct {
	*predicate
	key string
}

// Limits of olm.constraint properties.
const (
	maxConstraintSize  = 2 << 16
	maxConstraintDepth = 64
)

func (p *parser) requirement(property *olmcore.Property) (*requirement, error) {
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
		r = &requirement{predicate: parsed, key: canonical}
		p.requirements[canonical] = r
	}
	p.requirements[key] = r
	return r, nil
}

// apiRequirement is the requirement of an API, as its property would give it.
func (p *parser) apiRequirement(g gvk) *requirement {
	key := fmt.Sprintf("%s {%q,%q,%q}", PropertyGVKRequired, g.group, g.version, g.kind)
	r, ok := p.requirements[key]
	if !ok {
		r = &requirement{predicate: &predicate{kind: isGVK, api: g}, key: key}
		p.requirements[key] = r
	}
	return r
}

func (p *parser) predicate(property *olmcore.Property) (*predicate, error) {
	switch property.Type {
	case PropertyGVKRequired:
		v := struct{ Group, Version, Kind string }{}
		if err := unmarshalObject(property.Value, &v); err != nil {
			return nil, err
		}
		return &predicate{kind: isGVK, api: gvk{v.Group, v.Version, v.Kind}}, nil
	case PropertyPackageRequired:
		v := struct{ PackageName, VersionRange string }{}
		if err := unmarshalObject(property.Value, &v); err != nil {
			return nil, err
		}
		return p.packagePredicate(v.PackageName, v.VersionRange)
	case PropertyLabelRequired:
		label, err := parseLabel(property.Value)
		return &predicate{kind: isLabel, name: label}, err
	}
	return p.constraint(property.Value)
}

func (p *parser) packagePredicate(name, versions string) (*predicate, error) {
	in, err := p.parseRange(versions)
	if err != nil {
		return nil, err
	}
	return &predicate{kind: isPackage, name: p.intern(name), in: in}, nil
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
		VersionRange string `json:"versionRange"`
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
// Differs: several kinds in one constraint, data behind the value and more than
// 64 levels are errors, instead of being ignored.
func (p *parser) constraint(value json.RawMessage) (*predicate, error) {
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

func (p *parser) convert(c *constraintJSON, depth int) (*predicate, error) {
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
	var parsed *predicate
	var err error
	switch {
	case c.GVK != nil:
		parsed = &predicate{kind: isGVK, api: gvk{c.GVK.Group, c.GVK.Version, c.GVK.Kind}}
	case c.Package != nil:
		parsed, err = p.packagePredicate(c.Package.PackageName, c.Package.VersionRange)
	case c.All != nil:
		parsed, err = p.compound(isAll, c.All, depth)
	case c.Any != nil:
		parsed, err = p.compound(isAny, c.Any, depth)
	case c.Not != nil:
		parsed, err = p.compound(isNot, c.Not, depth)
	default:
		parsed = &predicate{kind: isCEL, rule: c.CEL.Rule}
	}
	if err != nil {
		return nil, err
	}
	parsed.message = c.FailureMessage
	return parsed, nil
}

func (p *parser) compound(kind predicateKind, c *constraintsJSON, depth int) (*predicate, error) {
	all := &predicate{kind: kind, parts: make([]*predicate, len(c.Constraints))}
	for i := range c.Constraints {
		part, err := p.convert(&c.Constraints[i], depth+1)
		if err != nil {
			return nil, err
		}
		all.parts[i] = part
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

// text is how OLM words the predicate.
func (q *predicate) text() string {
	switch q.kind {
	case isGVK:
		return fmt.Sprintf("providing an API with group: %s, version: %s, kind: %s", q.api.group, q.api.version, q.api.kind)
	case isPackage:
		return fmt.Sprintf("with package: %s and with version in range: %s", q.name, q.in.text)
	case isLabel:
		return "with label: " + q.name
	case isCEL:
		return fmt.Sprintf("with constraint: %q and message: %q", q.rule, q.message)
	}
	parts := make([]string, len(q.parts))
	for i, part := range q.parts {
		parts[i] = part.text()
	}
	return strings.Join(parts, map[predicateKind]string{isAll: " and ", isAny: " or ", isNot: " and not "}[q.kind])
}
