// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Schemas that a catalog's documents have.
const (
	schemaPackage      = "olm.package"
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
)

// assembly puts documents together, whatever file and order they come in.
type assembly struct {
	options     Options
	documents   int
	bytes       int64 // read, once inflated
	packages    map[string]*pending
	diagnostics []olmcore.Diagnostic
}

// pending is a package whose documents may not all have been seen.
type pending struct {
	resolution.Package
	described bool
	// first is where its first document stands.
	first Error
}

func newAssembly(o Options) *assembly { return &assembly{options: o, packages: map[string]*pending{}} }

func (a *assembly) report(reason string, severity olmcore.Severity, message string) {
	a.diagnostics = append(a.diagnostics, olmcore.Diagnostic{Severity: severity, Reason: reason, Message: message})
}

// blob has the fields of all schemas that matter.
type blob struct {
	Schema         *string                   `json:"schema"`
	Name           string                    `json:"name"`
	Package        string                    `json:"package"`
	DefaultChannel string                    `json:"defaultChannel"`
	Image          string                    `json:"image"`
	Properties     []olmcore.Property        `json:"properties"`
	RelatedImages  []resolution.RelatedImage `json:"relatedImages"`
	Entries        json.RawMessage           `json:"entries"`
}

type deprecationEntry struct {
	Reference struct {
		Schema string `json:"schema"`
		Name   string `json:"name"`
	} `json:"reference"`
	Message string `json:"message"`
}

// add takes one document. An error refuses the catalog.
func (a *assembly) add(file string, number int, document []byte) error {
	problem := a.take(file, number, document)
	if problem == nil {
		return nil
	}
	problem.File, problem.Document = file, number
	if a.options.Strict {
		return problem
	}
	a.report(ReasonInvalidDocument, olmcore.Warning, problem.Error())
	return nil
}

func fault(field, format string, args ...any) *Error {
	return &Error{Field: field, Err: fmt.Errorf(format, args...)}
}

func (a *assembly) take(file string, number int, document []byte) *Error {
	if problem := checkShape(document, a.options.maxDepth()); problem != nil {
		return problem
	}
	var b blob
	if err := json.Unmarshal(document, &b); err != nil {
		return describe(err)
	}
	switch {
	case b.Schema == nil:
		return fault("schema", "object '%.200s' is missing root schema field", document)
	case *b.Schema == schemaPackage && b.Name == "":
		return fault("name", "is empty")
	case *b.Schema != schemaPackage && b.Package == "" && knownSchema(*b.Schema):
		return fault("package", "is empty")
	}
	for i, p := range b.Properties {
		if p.Type == "" {
			return fault(fmt.Sprintf("properties[%d].type", i), "is empty")
		}
		if len(p.Value) == 0 {
			return fault(fmt.Sprintf("properties[%d].value", i), "is missing")
		}
	}
	at := Error{File: file, Document: number}
	switch *b.Schema {
	case schemaPackage:
		return a.addPackage(&b, at)
	case schemaChannel:
		return a.addChannel(&b, at)
	case schemaBundle:
		return a.addBundle(&b, at)
	case schemaDeprecations:
		return a.addDeprecations(&b, at)
	}
	return nil // other schemas are somebody else's
}

func knownSchema(schema string) bool {
	return schema == schemaChannel || schema == schemaBundle || schema == schemaDeprecations
}

// describe finds the field in an error of encoding/json.
func describe(err error) *Error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fault(wrong.Field, "is a JSON %s, not a %s", wrong.Value, wrong.Type)
	}
	return &Error{Err: err}
}

func (a *assembly) packageOf(name string, at Error) *pending {
	p := a.packages[name]
	if p == nil {
		p = &pending{Package: resolution.Package{Name: strings.Clone(name)}, first: at}
		a.packages[p.Name] = p
	}
	return p
}

func (a *assembly) addPackage(b *blob, at Error) *Error {
	p := a.packageOf(b.Name, at)
	if p.described {
		return fault("name", "package %q is described twice; the first counts", b.Name)
	}
	p.described = true
	p.DefaultChannel, p.Properties = b.DefaultChannel, b.Properties
	return nil
}

func (a *assembly) addChannel(b *blob, at Error) *Error {
	var entries []resolution.ChannelEntry
	if len(b.Entries) > 0 {
		if err := json.Unmarshal(b.Entries, &entries); err != nil {
			problem := describe(err)
			problem.Field = strings.TrimSuffix("entries."+problem.Field, ".")
			return problem
		}
	}
	for i, e := range entries {
		if e.Name == "" {
			return fault(fmt.Sprintf("entries[%d].name", i), "is empty")
		}
		if slices.Contains(e.Skips, "") {
			return fault(fmt.Sprintf("entries[%d].skips", i), "has an empty name")
		}
	}
	p := a.packageOf(b.Package, at)
	p.Channels = append(p.Channels, resolution.Channel{Name: b.Name, Entries: entries, Properties: b.Properties})
	return nil
}

func (a *assembly) addBundle(b *blob, at Error) *Error {
	if b.Name == "" {
		return fault("name", "is empty")
	}
	properties := slices.DeleteFunc(b.Properties, func(p olmcore.Property) bool { return slices.Contains(a.options.OmitProperties, p.Type) })
	p := a.packageOf(b.Package, at)
	bundle := resolution.Bundle{Name: b.Name, RelatedImages: b.RelatedImages}
	bundle.Image, bundle.Properties = b.Image, slices.Clip(properties)
	p.Bundles = append(p.Bundles, bundle)
	return nil
}

func (a *assembly) addDeprecations(b *blob, at Error) *Error {
	var entries []deprecationEntry
	if len(b.Entries) > 0 {
		if err := json.Unmarshal(b.Entries, &entries); err != nil {
			problem := describe(err)
			problem.Field = strings.TrimSuffix("entries."+problem.Field, ".")
			return problem
		}
	}
	list := make([]resolution.Deprecation, 0, len(entries))
	for i, e := range entries {
		d := resolution.Deprecation{Message: e.Message}
		switch e.Reference.Schema {
		case schemaPackage:
		case schemaChannel:
			d.Channel = e.Reference.Name
		case schemaBundle:
			d.Bundle = e.Reference.Name
		default:
			return fault(fmt.Sprintf("entries[%d].reference.schema", i), "is %q, not one of %s, %s and %s", e.Reference.Schema, schemaPackage, schemaChannel, schemaBundle)
		}
		if e.Message == "" {
			return fault(fmt.Sprintf("entries[%d].message", i), "is empty")
		}
		list = append(list, d)
	}
	p := a.packageOf(b.Package, at)
	p.Deprecations = append(p.Deprecations, list...)
	return nil
}

// result returns the packages that a document describes.
func (a *assembly) result() ([]resolution.Package, []olmcore.Diagnostic, error) {
	var list []*pending
	for _, p := range a.packages {
		list = append(list, p)
	}
	slices.SortFunc(list, func(x, y *pending) int { return cmp.Compare(x.Name, y.Name) })
	packages := make([]resolution.Package, 0, len(list))
	for _, p := range list {
		if !p.described {
			problem := p.first
			problem.Field, problem.Err = "package", fmt.Errorf("no document describes package %q", p.Name)
			if a.options.Strict {
				return nil, nil, &problem
			}
			a.report(ReasonUnknownPackage, olmcore.Warning, problem.Error())
			continue
		}
		packages = append(packages, p.Package)
	}
	return packages, a.diagnostics, nil
}
