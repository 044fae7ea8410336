// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	kjson "sigs.k8s.io/json"

	"github.com/olmcore/olm/internal/yamljson"
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

var knownSchemas = []string{schemaPackage, schemaChannel, schemaBundle, schemaDeprecations}

// blob has the fields of all schemas that matter.
type blob struct {
	Schema         string                    `json:"schema"`
	Name           string                    `json:"name"`
	Package        string                    `json:"package"`
	DefaultChannel string                    `json:"defaultChannel"`
	Image          string                    `json:"image"`
	Properties     []olmcore.Property        `json:"properties"`
	RelatedImages  []resolution.RelatedImage `json:"relatedImages"`
	Entries        []blobEntry               `json:"entries"`
}

// blobEntry is an entry of a channel or of deprecations.
type blobEntry struct {
	resolution.ChannelEntry
	deprecationEntry
}

type deprecationEntry struct {
	Reference struct {
		Schema string `json:"schema"`
		Name   string `json:"name"`
	} `json:"reference"`
	Message string `json:"message"`
}

func fault(field, format string, args ...any) *Error {
	return &Error{Field: field, Err: fmt.Errorf(format, args...)}
}

// decode returns a document's fields, what is odd about its keys, and why it cannot be used. A schema that is not one
// of ours comes without all three.
func decode(document yamljson.Document) (b blob, odd []oddity, problem *Error) {
	if len(document.JSON) == 0 || document.JSON[0] != '{' {
		return blob{}, nil, fault("", "is not an object")
	}
	for _, path := range document.Repeated {
		odd = append(odd, oddity{ReasonDuplicateKey, strings.TrimPrefix(path, "."), "is there twice; the last one counts"})
	}
	strict, err := kjson.UnmarshalStrict(document.JSON, &b, kjson.DisallowDuplicateFields, kjson.DisallowUnknownFields)
	if err != nil || len(strict) > 0 {
		// What encoding/json makes of it is what OLM does.
		b = blob{}
		err = json.Unmarshal(document.JSON, &b)
		odd = append(odd, oddKeys(strict)...)
	}
	switch {
	case b.Schema == "":
		var schema struct{ Schema any }
		if json.Unmarshal(document.JSON, &schema) == nil && schema.Schema != nil && schema.Schema != "" {
			return blob{}, nil, fault("schema", "is not a text")
		}
		return blob{}, nil, fault("schema", "object '%.200s' is missing root schema field", document.JSON)
	case !slices.Contains(knownSchemas, b.Schema):
		return blob{}, nil, nil
	case err != nil:
		return blob{}, nil, describe(err)
	}
	if key := ambiguous(document.JSON, odd); key != "" {
		return blob{}, nil, fault(key, "is there twice")
	}
	if problem = b.check(); problem == nil && b.Schema == schemaBundle {
		odd = append(odd, looseVersion(b.Properties)...)
	}
	return b, odd, problem
}

// oddity is what is usable and yet not what its author may have meant.
type oddity struct{ reason, field, text string }

// fields are the keys that are read, without the places in lists.
var fields = strings.Fields(`schema name package defaultChannel image properties properties.type properties.value
	relatedImages relatedImages.name relatedImages.image entries entries.name entries.replaces entries.skips entries.skipRange
	entries.message entries.reference entries.reference.schema entries.reference.name`)

var index = regexp.MustCompile(`\[[0-9]+\]`)

// oddKeys picks what matters of what a strict decoder complains about.
func oddKeys(complaints []error) (odd []oddity) {
	for _, complaint := range complaints {
		kind, path, _ := strings.Cut(strings.TrimSuffix(complaint.Error(), `"`), ` "`)
		bare := index.ReplaceAllString(path, "")
		if kind == "duplicate field" {
			odd = append(odd, oddity{ReasonDuplicateKey, path, "is there twice; the last one counts"})
		} else if i := slices.IndexFunc(fields, func(f string) bool { return strings.EqualFold(f, bare) }); i >= 0 {
			odd = append(odd, oddity{ReasonKeyCase, path, fmt.Sprintf("is read as %s; where that is there, too, the last one counts", fields[i])})
		}
	}
	return odd
}

// ambiguous returns the key, of those that say what a document is, that is there twice, or in two spellings: readers
// that match keys with and without regard to case would take the document for another one.
func ambiguous(document []byte, odd []oddity) string {
	if len(odd) == 0 {
		return ""
	}
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(document, &keys) // it was decoded before
	for _, key := range []string{"schema", "package", "name"} {
		spellings := 0
		for spelt := range keys {
			if strings.EqualFold(spelt, key) {
				spellings++
			}
		}
		if spellings > 1 || slices.ContainsFunc(odd, func(o oddity) bool { return o.reason == ReasonDuplicateKey && o.field == key }) {
			return key
		}
	}
	return ""
}

// check says what keeps a document of a known schema from being used, whatever the other documents say.
func (b *blob) check() *Error {
	switch {
	case b.Schema != schemaPackage && b.Package == "":
		return fault("package", "is empty")
	case b.Name == "" && (b.Schema == schemaPackage || b.Schema == schemaBundle):
		return fault("name", "is empty")
	}
	for i, p := range b.Properties {
		if p.Type == "" {
			return fault(fmt.Sprintf("properties[%d].type", i), "is empty")
		}
		if len(p.Value) == 0 {
			return fault(fmt.Sprintf("properties[%d].value", i), "is missing")
		}
	}
	switch b.Schema {
	case schemaChannel:
		return b.checkChannel()
	case schemaBundle:
		return b.checkBundle()
	case schemaDeprecations:
		return b.checkDeprecations()
	}
	return nil
}

func (b *blob) checkChannel() *Error {
	for i, e := range b.Entries {
		if e.Name == "" {
			return fault(fmt.Sprintf("entries[%d].name", i), "is empty")
		}
		if slices.Contains(e.Skips, "") {
			return fault(fmt.Sprintf("entries[%d].skips", i), "has an empty name")
		}
	}
	return nil
}

func (b *blob) checkBundle() *Error {
	inline, packages := false, 0
	for _, p := range b.Properties {
		switch p.Type {
		case resolution.PropertyBundleObject:
			inline = true
		case resolution.PropertyPackage:
			packages++
		}
	}
	switch {
	case b.Image == "" && !inline:
		return fault("image", "is empty, and there is no property of type %s: there is nothing to install", resolution.PropertyBundleObject)
	case packages > 1:
		return fault("properties", "has %d of type %s: which version it is cannot be told", packages, resolution.PropertyPackage)
	}
	return nil
}

func (b *blob) checkDeprecations() *Error {
	schemas := []string{schemaPackage, schemaChannel, schemaBundle}
	for i, e := range b.Entries {
		if !slices.Contains(schemas, e.Reference.Schema) {
			return fault(fmt.Sprintf("entries[%d].reference.schema", i), "is %q, not one of %s, %s and %s", e.Reference.Schema, schemaPackage, schemaChannel, schemaBundle)
		}
		if e.deprecationEntry.Message == "" {
			return fault(fmt.Sprintf("entries[%d].message", i), "is empty")
		}
	}
	return nil
}

// looseVersion returns a version that is not as semver.org has it, but can be understood.
func looseVersion(properties []olmcore.Property) (odd []oddity) {
	for i, p := range properties {
		var value struct{ Version string }
		if p.Type != resolution.PropertyPackage || json.Unmarshal(p.Value, &value) != nil {
			continue
		}
		if _, err := semver.Parse(value.Version); err == nil {
			continue
		}
		if version, err := semver.ParseTolerant(value.Version); err == nil {
			field := fmt.Sprintf("properties[%d].value.version", i)
			odd = append(odd, oddity{ReasonLooseVersion, field, fmt.Sprintf("%q is no semantic version; it is read as %s", value.Version, version)})
		}
	}
	return odd
}

// describe finds the field in an error of encoding/json.
func describe(err error) *Error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := strings.NewReplacer("ChannelEntry.", "", "deprecationEntry.", "").Replace(wrong.Field)
		return fault(field, "is a JSON %s, not a %s", wrong.Value, wrong.Type)
	}
	return &Error{Err: err}
}
