// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmcore/olm/internal/printable"
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
	Kind predicateKind
	API  API
	// Name is the name of a package or a label.
	Name  string
	In    *VersionRange
	Parts []*Predicate
	// Rule is the text of a CEL rule.
	Rule string
	// Message is the failureMessage that the author of the bundle wrote.
	Message string
}

// Requirement is a Predicate that a selected entry must satisfy. Equal requirements of one catalog share one pointer.
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

func (p *Parser) predicate(property *olmcore.Property) (*Predicate, error) {
	var c constraintJSON
	var err error
	switch property.Type {
	case PropertyGVKRequired:
		c.GVK = &API{}
		err = unmarshalObject(property.Value, c.GVK)
	case PropertyPackageRequired:
		c.Package = &packageJSON{}
		err = unmarshalObject(property.Value, c.Package)
	case PropertyLabelRequired:
		label, err := parseLabel(property.Value)
		return &Predicate{Kind: IsLabel, Name: label}, err
	default:
		return p.constraint(property.Value)
	}
	if err != nil {
		return nil, err
	}
	return p.convert(&c, 1)
}

type constraintJSON struct {
	FailureMessage string           `json:"failureMessage"`
	GVK            *API             `json:"gvk"`
	Package        *packageJSON     `json:"package"`
	All            *constraintsJSON `json:"all"`
	Any            *constraintsJSON `json:"any"`
	Not            *constraintsJSON `json:"not"`
	CEL            *struct {
		Rule string `json:"rule"`
	} `json:"cel"`
}

type packageJSON struct{ PackageName, VersionRange string }

type constraintsJSON struct {
	Constraints []constraintJSON `json:"constraints"`
}

// Source: operator-framework/api pkg/constraints, Parse.
// Differs: several kinds in one constraint, data behind the value and more than 64 levels are errors, instead of being
// ignored.
func (p *Parser) constraint(value json.RawMessage) (*Predicate, error) {
	if len(value) > maxConstraintSize {
		return nil, fmt.Errorf("parse olm.constraint: olm.constraint value is greater than max constraint size %d bytes", maxConstraintSize)
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
	q := &Predicate{Message: c.FailureMessage}
	var err error
	var nested []constraintJSON
	kinds := 0
	if c.GVK != nil {
		kinds++
		q.Kind, q.API = IsGVK, *c.GVK
	}
	if c.Package != nil {
		kinds++
		q.Kind, q.Name = IsPackage, p.intern(c.Package.PackageName)
		q.In, err = p.parseRange(c.Package.VersionRange)
	}
	for i, list := range [...]*constraintsJSON{c.All, c.Any, c.Not} {
		if list != nil {
			kinds++
			q.Kind, nested = IsAll+predicateKind(i), list.Constraints
		}
	}
	if c.CEL != nil {
		kinds++
		q.Kind, q.Rule = IsCEL, c.CEL.Rule
		p.hasRules = true
	}
	switch {
	case kinds == 0:
		return nil, errors.New("constraint is empty")
	case kinds > 1:
		return nil, errors.New("constraint has more than one kind")
	case depth > maxConstraintDepth:
		return nil, fmt.Errorf("more than %d nested constraints", maxConstraintDepth)
	case err != nil:
		return nil, err
	}
	for i := range nested {
		part, err := p.convert(&nested[i], depth+1)
		if err != nil {
			return nil, err
		}
		q.Parts = append(q.Parts, part)
	}
	return q, nil
}

// canonicalJSON has sorted keys and no blanks; text that is not JSON stays.
func canonicalJSON(value json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	err := decoder.Decode(&v)
	out, failed := json.Marshal(v)
	if err == nil && failed == nil {
		return string(out)
	}
	return string(value)
}

// Size returns the number of conditions in the predicate. The predicate itself is one of them.
func (q *Predicate) Size() int {
	size := 1
	for _, part := range q.Parts {
		size += part.Size()
	}
	return size
}

// Text returns OLM's text for the predicate.
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

// Words returns a description of the predicate for users.
func (q *Predicate) Words() string {
	switch q.Kind {
	case IsGVK:
		return "an operator that provides " + q.API.String()
	case IsPackage:
		version := strings.TrimLeft(q.In.Text, "= ")
		if _, err := semver.Parse(version); err == nil {
			return fmt.Sprintf("exactly version %s of package %s", version, printable.Name(q.Name))
		}
		return fmt.Sprintf("an operator of package %s in version %s", printable.Name(q.Name), q.In.Text)
	case IsLabel:
		return "an operator with the label " + printable.Name(q.Name)
	case IsCEL:
		if q.Message != "" {
			return fmt.Sprintf("an operator for which %s holds (%q)", q.Rule, q.Message)
		}
		return fmt.Sprintf("an operator for which %s holds", q.Rule)
	}
	return q.compoundWords()
}

// compoundWords returns the description of a predicate that consists of others.
func (q *Predicate) compoundWords() string {
	parts := make([]string, len(q.Parts))
	for i, part := range q.Parts {
		parts[i] = part.Words()
		if part.isCompound() && len(q.Parts) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	switch {
	case q.Kind == IsNot:
		return "an operator that is not " + Enumerate(parts, " or ")
	case len(parts) == 0 && q.Kind == IsAll:
		return "any operator"
	case len(parts) == 0:
		return "an operator that cannot exist (an empty list of alternatives)"
	case q.Kind == IsAll:
		return Enumerate(parts, " that is at the same time ")
	}
	return Enumerate(parts, " or ")
}

func (q *Predicate) isCompound() bool { return q.Kind == IsAll || q.Kind == IsAny || q.Kind == IsNot }
