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
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
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

// document has the fields of all schemas that matter, in the order in which they are written.
type document struct {
	Schema         string                    `json:"schema"`
	Package        string                    `json:"package,omitempty"`
	Name           string                    `json:"name,omitempty"`
	DefaultChannel string                    `json:"defaultChannel,omitempty"`
	Description    ornament[string]          `json:"description,omitzero"`
	Icon           ornament[v1alpha1.Icon]   `json:"icon,omitzero"`
	Image          string                    `json:"image,omitempty"`
	Entries        []entry                   `json:"entries,omitempty"`
	Properties     []olmcore.Property        `json:"properties,omitempty"`
	RelatedImages  []resolution.RelatedImage `json:"relatedImages,omitempty"`
}

// ornament is for people alone: what is not of its type is as if it were not there.
type ornament[T any] struct{ value T }

func (o *ornament[T]) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &o.value) != nil {
		*o = ornament[T]{}
	}
	return nil
}

func (o ornament[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// entry is an entry of a channel or of deprecations.
type entry struct {
	resolution.ChannelEntry
	deprecation
}

type deprecation struct {
	Reference reference `json:"reference,omitzero"`
	Message   string    `json:"message,omitempty"`
}

type reference struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// finding is what keeps a document from being used, or what is odd about it.
type finding struct {
	reason, field string
	err           error
}

func invalid(field, format string, args ...any) finding {
	return finding{ReasonInvalidDocument, field, fmt.Errorf(format, args...)}
}

// decode returns a document's fields, none when it cannot be used or its schema is not one of ours, and what is to be
// said about it.
func decode(source yamljson.Document) (d document, found []finding) {
	if len(source.JSON) == 0 || source.JSON[0] != '{' {
		return document{}, []finding{invalid("", "is not an object")}
	}
	for _, path := range source.Repeated {
		found = append(found, repeated(strings.TrimPrefix(path, ".")))
	}
	strict, err := kjson.UnmarshalStrict(source.JSON, &d, kjson.DisallowDuplicateFields, kjson.DisallowUnknownFields)
	if err != nil || len(strict) > 0 {
		// What encoding/json makes of it is what OLM does.
		d = document{}
		err = json.Unmarshal(source.JSON, &d)
		found = append(found, oddKeys(strict)...)
	}
	var problem finding
	switch d.Schema {
	case "":
		problem = invalid("schema", "object '%.200s' is missing root schema field", source.JSON)
		var schema struct{ Schema any }
		if json.Unmarshal(source.JSON, &schema) == nil && schema.Schema != nil && schema.Schema != "" {
			problem = invalid("schema", "is not a text")
		}
		return document{}, []finding{problem}
	case schemaPackage, schemaChannel, schemaBundle, schemaDeprecations:
	default:
		return document{}, nil
	}
	if err != nil {
		return document{}, []finding{describe(err)}
	}
	if key := ambiguous(source.JSON, found); key != "" {
		return document{}, []finding{invalid(key, "is there twice")}
	}
	if problem = d.check(); problem.err != nil {
		return document{}, append(found, problem)
	}
	if d.Schema == schemaBundle {
		found = append(found, looseVersions(d.Properties)...)
	}
	return d, found
}

// fields are the keys that are read, without the places in lists.
var fields = strings.Fields(`schema name package defaultChannel description icon image properties properties.type properties.value
	relatedImages relatedImages.name relatedImages.image entries entries.name entries.replaces entries.skips entries.skipRange
	entries.message entries.reference entries.reference.schema entries.reference.name`)

var index = regexp.MustCompile(`\[[0-9]+\]`)

func repeated(path string) finding {
	return finding{ReasonDuplicateKey, path, errors.New("is there twice; the last one counts")}
}

// oddKeys picks what matters of what a strict decoder complains about.
func oddKeys(complaints []error) (odd []finding) {
	for _, complaint := range complaints {
		kind, path, _ := strings.Cut(strings.TrimSuffix(complaint.Error(), `"`), ` "`)
		bare := index.ReplaceAllString(path, "")
		if kind == "duplicate field" {
			odd = append(odd, repeated(path))
		} else if i := slices.IndexFunc(fields, func(f string) bool { return strings.EqualFold(f, bare) }); i >= 0 {
			odd = append(odd, finding{ReasonKeyCase, path, fmt.Errorf("is read as %s; where that is there, too, the last one counts", fields[i])})
		}
	}
	return odd
}

// ambiguous returns the key, of those that say what a document is, that is there twice, or in two spellings: readers
// that match keys with and without regard to case would take the document for another one.
func ambiguous(source []byte, odd []finding) string {
	if len(odd) == 0 {
		return ""
	}
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(source, &keys) // it was decoded before
	for _, key := range []string{"schema", "package", "name"} {
		spellings := 0
		for spelt := range keys {
			if strings.EqualFold(spelt, key) {
				spellings++
			}
		}
		if spellings > 1 || slices.ContainsFunc(odd, func(f finding) bool { return f.reason == ReasonDuplicateKey && f.field == key }) {
			return key
		}
	}
	return ""
}

// check says what keeps a document of a known schema from being used, whatever the other documents say.
func (d *document) check() finding {
	switch {
	case d.Schema != schemaPackage && d.Package == "":
		return invalid("package", "is empty")
	case d.Name == "" && (d.Schema == schemaPackage || d.Schema == schemaBundle):
		return invalid("name", "is empty")
	}
	inline, packages := false, 0
	for i, p := range d.Properties {
		if p.Type == "" {
			return invalid(fmt.Sprintf("properties[%d].type", i), "is empty")
		}
		if len(p.Value) == 0 {
			return invalid(fmt.Sprintf("properties[%d].value", i), "is missing")
		}
		inline = inline || p.Type == resolution.PropertyBundleObject
		if p.Type == resolution.PropertyPackage {
			packages++
		}
	}
	for i, e := range d.Entries {
		if f := e.check(d.Schema); f.err != nil {
			f.field = fmt.Sprintf("entries[%d].%s", i, f.field)
			return f
		}
	}
	switch {
	case d.Schema == schemaBundle && d.Image == "" && !inline:
		return invalid("image", "is empty, and there is no property of type %s: there is nothing to install", resolution.PropertyBundleObject)
	case d.Schema == schemaBundle && packages > 1:
		return invalid("properties", "has %d of type %s: which version it is cannot be told", packages, resolution.PropertyPackage)
	}
	return finding{}
}

func (e *entry) check(schema string) finding {
	switch {
	case schema == schemaChannel && e.Name == "":
		return invalid("name", "is empty")
	case schema == schemaChannel && slices.Contains(e.Skips, ""):
		return invalid("skips", "has an empty name")
	case schema != schemaDeprecations:
		return finding{}
	case e.Reference.Schema != schemaPackage && e.Reference.Schema != schemaChannel && e.Reference.Schema != schemaBundle:
		return invalid("reference.schema", "is %q, not one of %s, %s and %s", e.Reference.Schema, schemaPackage, schemaChannel, schemaBundle)
	case e.deprecation.Message == "":
		return invalid("message", "is empty")
	}
	return finding{}
}

// looseVersions returns the versions that are not as semver.org has them, but can be understood.
func looseVersions(properties []olmcore.Property) (odd []finding) {
	for i, p := range properties {
		if p.Type != resolution.PropertyPackage {
			continue
		}
		var value struct{ Version string }
		if json.Unmarshal(p.Value, &value) != nil {
			continue
		}
		if _, err := semver.Parse(value.Version); err == nil {
			continue
		}
		if version, err := semver.ParseTolerant(value.Version); err == nil {
			field := fmt.Sprintf("properties[%d].value.version", i)
			odd = append(odd, finding{ReasonLooseVersion, field, fmt.Errorf("%q is no semantic version; it is read as %s", value.Version, version)})
		}
	}
	return odd
}

// describe finds the field in an error of encoding/json.
func describe(err error) finding {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := strings.NewReplacer("ChannelEntry.", "", "deprecation.", "").Replace(wrong.Field)
		return invalid(field, "is a JSON %s, not a %s", wrong.Value, wrong.Type)
	}
	return finding{ReasonInvalidDocument, "", err}
}
