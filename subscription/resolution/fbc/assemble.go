// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
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
	first     Error // where its first document stands
}

// report reports what is wrong or odd, or returns it as an error with Strict, unless OLM serves it.
func (a *assembly) report(reason string, at Error) error {
	if a.options.Strict && reason != ReasonDuplicateKey && reason != ReasonKeyCase {
		return &at
	}
	a.diagnostics = append(a.diagnostics, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: reason, Message: at.Error()})
	return nil
}

// read adds the documents of one file, compressed with gzip or not.
func (a *assembly) read(file string, r io.Reader) error {
	buffered := bufio.NewReader(r)
	r = buffered
	if head, _ := buffered.Peek(2); string(head) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return &Error{File: file, Err: err}
		}
		r = unzipped
	}
	documents := yamljson.NewStream(&total{r, a}, a.options.MaxDocumentBytes)
	for at := (Error{File: file, Document: 1}); ; at.Document++ {
		document, err := documents.Next()
		problem := at
		problem.Err = err
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, new(*yamljson.DocumentError)):
			err = a.report(ReasonInvalidDocument, problem)
		case errors.As(err, new(*yamljson.SyntaxError)):
			problem.Err = fmt.Errorf("%w; nothing that follows in the file is read", err)
			return a.report(ReasonUnreadableFile, problem)
		case err != nil:
			return &problem
		case string(document.JSON) != "null": // it has more than comments
			err = a.add(at, document)
		}
		if err != nil {
			return err
		}
	}
}

// total counts what is read of all files of a catalog.
type total struct {
	r io.Reader
	*assembly
}

func (t *total) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if t.bytes += int64(n); t.bytes > t.options.MaxBytes {
		return 0, errTooBig
	}
	return n, err
}

// add adds one document. An error refuses the catalog.
func (a *assembly) add(at Error, d yamljson.Document) error {
	a.documents++
	a.converted += int64(len(d.JSON))
	switch {
	case a.documents > a.options.MaxDocuments:
		at.Err = errTooMany
		return &at
	case a.converted > a.options.MaxBytes:
		at.Err = errTooBig
		return &at
	}
	b, found := decode(d)
	if b.Schema != "" && !a.take(&b, at) {
		found = append(found, invalid("name", "package %q is described twice; the first counts", b.Name))
	}
	for _, f := range found {
		at.Field, at.Err = f.field, f.err
		if err := a.report(f.reason, at); err != nil {
			return err
		}
	}
	return nil
}

// take adds what a document says to its package. false: it describes a package that is described already.
func (a *assembly) take(d *document, at Error) bool {
	name := d.Package
	if d.Schema == schemaPackage {
		name = d.Name
	}
	p := a.packages[name]
	if p == nil {
		p = &pending{Package: resolution.Package{Name: strings.Clone(name)}, first: at}
		a.packages[p.Name] = p
	}
	switch d.Schema {
	case schemaPackage:
		if p.described {
			return false
		}
		p.described, p.DefaultChannel, p.Properties = true, d.DefaultChannel, d.Properties
		p.Description, p.Icon = d.Description.value, d.Icon.value
	case schemaChannel:
		channel := resolution.Channel{Name: d.Name, Properties: d.Properties}
		for _, e := range d.Entries {
			channel.Entries = append(channel.Entries, e.ChannelEntry)
		}
		p.Channels = append(p.Channels, channel)
	case schemaBundle:
		omitted := func(p olmcore.Property) bool {
			return !a.options.OmitNothingOf[d.Name] && slices.Contains(a.options.OmitProperties, p.Type)
		}
		bundle := resolution.Bundle{Name: d.Name, RelatedImages: d.RelatedImages}
		bundle.Image, bundle.Properties = d.Image, slices.Clip(slices.DeleteFunc(d.Properties, omitted))
		p.Bundles = append(p.Bundles, bundle)
	case schemaDeprecations:
		for _, e := range d.Entries {
			about := resolution.Deprecation{Message: e.deprecation.Message}
			switch e.Reference.Schema {
			case schemaChannel:
				about.Channel = e.Reference.Name
			case schemaBundle:
				about.Bundle = e.Reference.Name
			}
			p.Deprecations = append(p.Deprecations, about)
		}
	}
	return true
}

func (a *assembly) result() ([]resolution.Package, []olmcore.Diagnostic, error) {
	packages := make([]resolution.Package, 0, len(a.packages))
	for _, p := range slices.SortedFunc(maps.Values(a.packages), func(x, y *pending) int { return cmp.Compare(x.Name, y.Name) }) {
		if p.described {
			packages = append(packages, p.Package)
			continue
		}
		p.first.Field, p.first.Err = "package", fmt.Errorf("no document describes package %q", p.Name)
		if err := a.report(ReasonUnknownPackage, p.first); err != nil {
			return nil, nil, err
		}
	}
	return packages, a.diagnostics, nil
}
