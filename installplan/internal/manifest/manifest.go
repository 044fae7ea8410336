// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and writes the manifests of InstallPlan steps.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/internal/yamljson"
)

// ErrEmpty is the error of a manifest that holds nothing, which OLM reads again.
var ErrEmpty = errors.New("it is empty")

// Manifest is what a step's manifest says, as JSON values.
type Manifest struct {
	Object map[string]any
	// GVK is empty where the manifest does not say, as in those that OLM makes of typed objects.
	GVK  schema.GroupVersionKind
	Name string
	// Extra: more YAML documents follow.
	Extra bool
}

// Parse reads the first YAML or JSON document of a manifest, without the fields that an API server sets.
func Parse(text string) (m Manifest, err error) {
	if err = utiljson.Unmarshal([]byte(text), &m.Object); err != nil {
		// It may be YAML, even where it begins as JSON does.
		data, extra, yamlErr := FirstDocument(text)
		if yamlErr == nil {
			m.Extra, yamlErr = extra, utiljson.Unmarshal(data, &m.Object)
		}
		if yamlErr != nil && looksLikeJSON(text) {
			return m, err
		} else if yamlErr != nil {
			return m, yamlErr
		}
	}
	if m.Object == nil {
		return m, ErrEmpty
	}
	apiVersion, _ := m.Object["apiVersion"].(string)
	kind, _ := m.Object["kind"].(string)
	m.GVK = schema.FromAPIVersionAndKind(apiVersion, kind)
	metadata, ok := m.Object["metadata"].(map[string]any)
	if !ok {
		return m, errors.New("it has no metadata")
	}
	m.Name, _ = metadata["name"].(string)
	for _, field := range [...]string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(metadata, field)
	}
	delete(m.Object, "status")
	return m, nil
}

func looksLikeJSON(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
}

// Metadata returns the metadata of the object; nil for none.
func (m Manifest) Metadata() map[string]any { return Fields(m.Object, "metadata") }

// Fields returns the fields of an object that is a field of another; nil for none.
func Fields(object map[string]any, field string) map[string]any {
	fields, _ := object[field].(map[string]any)
	return fields
}

// Strings returns a copy of a map of strings at a metadata field, without the values that are no strings; never nil.
func Strings(metadata map[string]any, field string) map[string]any {
	values := Fields(metadata, field)
	out := make(map[string]any, len(values))
	for key, value := range values {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// Encode returns a manifest as OLM writes it: JSON and one newline.
func Encode(object map[string]any) (string, error) {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(object); err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	return buf.String(), nil
}

// Identity tells which object a manifest describes.
type Identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// Identify returns the identity of a manifest; zero when it has none or is a Ref.
func Identify(text string) Identity {
	var id Identity
	if _, ok := ParseRef(text); ok {
		return id
	}
	if err := utiljson.Unmarshal([]byte(text), &id); err == nil {
		return id
	}
	m, err := Parse(text)
	if err != nil {
		return Identity{}
	}
	id.APIVersion, id.Kind = m.GVK.ToAPIVersionAndKind()
	id.Metadata.Name = m.Name
	return id
}

// NameOf returns the name of the object that a step's manifest describes; empty when it has none or is a Ref.
func NameOf(s *v1alpha1.Step) string { return Identify(s.Resource.Manifest).Metadata.Name }

// GVKOf returns the kind that a step's manifest describes, else the step's.
func GVKOf(s *v1alpha1.Step) schema.GroupVersionKind {
	if id := Identify(s.Resource.Manifest); id.Kind != "" {
		return schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
	}
	return schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
}

// NeedsDefinition reports whether a CustomResourceDefinition, if anything, defines the kind of a step.
func NeedsDefinition(s *v1alpha1.Step) bool {
	return kinds.IsGeneric(s) && !kinds.LookUp(GVKOf(s), nil).Kind
}

// FirstDocument returns the first YAML document that holds anything, as JSON, and whether there is another. What is a
// JSON object is that document as it is.
func FirstDocument(text string) (first []byte, extra bool, err error) {
	if data := []byte(text); looksLikeJSON(text) && json.Valid(data) {
		return data, false, nil
	}
	for _, doc := range strings.Split("\n"+text, "\n---") {
		// What follows the dashes on their line is part of the separator.
		if _, rest, ok := strings.Cut(doc, "\n"); ok {
			doc = rest
		}
		if strings.TrimSpace(doc) == "" {
			continue
		}
		if first != nil {
			return first, true, nil
		}
		data, err := yamljson.Convert([]byte(doc))
		if err != nil {
			return nil, false, err
		}
		if string(data) != "null" {
			first = data
		}
	}
	if first == nil {
		return nil, false, ErrEmpty
	}
	return first, false, nil
}

// Source is where the object of a Ref is, in the form that OLM writes: the ConfigMap of an unpacked bundle.
type Source struct {
	Kind                   string `json:"kind"`
	Name                   string `json:"name"`
	Namespace              string `json:"namespace"`
	CatalogSourceName      string `json:"catalogSourceName"`
	CatalogSourceNamespace string `json:"catalogSourceNamespace"`
	Replaces               string `json:"replaces"`
	Properties             string `json:"properties"`
}

// Ref is a manifest that stands for an object of an unpacked bundle.
type Ref struct {
	Source
	// Digest is that of the content that was planned; empty in those that OLM wrote.
	Digest string `json:"digest,omitempty"`
}

// ParseRef reads a manifest that is a Ref; ok is false for every other one.
func ParseRef(text string) (Ref, bool) {
	if !strings.Contains(text, `"catalogSourceName`) {
		return Ref{}, false
	}
	var ref Ref
	if json.Unmarshal([]byte(text), &ref) != nil {
		return Ref{}, false
	}
	return ref, ref.Kind == "ConfigMap" && ref.Name != "" && ref.Namespace != "" && ref.CatalogSourceName != "" && ref.CatalogSourceNamespace != ""
}
