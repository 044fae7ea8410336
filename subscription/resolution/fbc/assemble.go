// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// assembly puts documents together, whatever file and order they come in.
type assembly struct {
	options   Options
	documents int
	// bytes were read, once inflated; converted is what became of them as JSON.
	bytes, converted int64
	packages         map[string]*pending
	diagnostics      []olmcore.Diagnostic
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

// add adds one document. An error refuses the catalog.
func (a *assembly) add(at Error, document yamljson.Document) error {
	a.documents++
	a.converted += int64(len(document.JSON))
	switch {
	case a.documents > a.options.maxDocuments():
		at.Err = errTooMany
		return &at
	case a.converted > a.options.maxBytes():
		at.Err = errTooBig
		return &at
	}
	b, odd, problem := decode(document)
	if problem == nil && b.Schema != "" {
		problem = a.take(&b, at)
	}
	for _, o := range odd {
		at.Field, at.Err = o.field, errors.New(o.text)
		if a.options.Strict && o.reason == ReasonLooseVersion {
			return &at
		}
		a.report(o.reason, olmcore.Warning, at.Error())
	}
	if problem == nil {
		return nil
	}
	problem.File, problem.Document = at.File, at.Document
	return a.refuse(ReasonInvalidDocument, problem)
}

func (a *assembly) packageOf(name string, at Error) *pending {
	p := a.packages[name]
	if p == nil {
		p = &pending{Package: resolution.Package{Name: strings.Clone(name)}, first: at}
		a.packages[p.Name] = p
	}
	return p
}

func (a *assembly) take(b *blob, at Error) *Error {
	if b.Schema == schemaPackage {
		p := a.packageOf(b.Name, at)
		if p.described {
			return fault("name", "package %q is described twice; the first counts", b.Name)
		}
		p.described, p.DefaultChannel, p.Properties = true, b.DefaultChannel, b.Properties
		return nil
	}
	p := a.packageOf(b.Package, at)
	switch b.Schema {
	case schemaChannel:
		channel := resolution.Channel{Name: b.Name, Properties: b.Properties}
		for _, e := range b.Entries {
			channel.Entries = append(channel.Entries, e.ChannelEntry)
		}
		p.Channels = append(p.Channels, channel)
	case schemaBundle:
		omitted := func(p olmcore.Property) bool { return slices.Contains(a.options.OmitProperties, p.Type) }
		bundle := resolution.Bundle{Name: b.Name, RelatedImages: b.RelatedImages}
		bundle.Image, bundle.Properties = b.Image, slices.Clip(slices.DeleteFunc(b.Properties, omitted))
		p.Bundles = append(p.Bundles, bundle)
	case schemaDeprecations:
		for _, e := range b.Entries {
			d := resolution.Deprecation{Message: e.deprecationEntry.Message}
			switch e.Reference.Schema {
			case schemaChannel:
				d.Channel = e.Reference.Name
			case schemaBundle:
				d.Bundle = e.Reference.Name
			}
			p.Deprecations = append(p.Deprecations, d)
		}
	}
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
