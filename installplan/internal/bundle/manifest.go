// SPDX-License-Identifier: Apache-2.0

package bundle

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

// ErrEmpty is the error for an empty manifest. OLM retries to read it.
var ErrEmpty = errors.New("it is empty")

// Manifest is the parsed manifest of a step, as JSON values.
type Manifest struct {
	Object map[string]any
	// GVK is the kind that the manifest names. GVK is empty if the manifest names none, as in manifests that OLM encodes
	// from typed objects.
	GVK  schema.GroupVersionKind
	Name string
	// Extra is true if more YAML documents follow the parsed document.
	Extra bool
}

// ParseManifest parses the first YAML or JSON document of a manifest. It removes the status and the metadata fields that an API
// server sets.
func ParseManifest(text string) (m Manifest, err error) {
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

// Metadata returns the metadata of the object, or nil if there is none.
func (m Manifest) Metadata() map[string]any { return Fields(m.Object, "metadata") }

// Fields returns the value of a field if it is a JSON object, and otherwise nil.
func Fields(object map[string]any, field string) map[string]any {
	fields, _ := object[field].(map[string]any)
	return fields
}

// Strings returns a copy of a map in the metadata, for example of the labels or annotations. Values that are not
// strings are omitted. The result is never nil.
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

// EncodeManifest returns a manifest as OLM writes it: JSON, followed by a newline.
func EncodeManifest(object map[string]any) (string, error) {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(object); err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	return buf.String(), nil
}

// Identity contains the fields of a manifest that identify its object.
type Identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// Identify returns the identity of a manifest. It returns the zero value if the manifest cannot be parsed or is a Reference.
func Identify(text string) Identity {
	var id Identity
	if _, ok := ParseReference(text); ok {
		return id
	}
	if err := utiljson.Unmarshal([]byte(text), &id); err == nil {
		return id
	}
	m, err := ParseManifest(text)
	if err != nil {
		return Identity{}
	}
	id.APIVersion, id.Kind = m.GVK.ToAPIVersionAndKind()
	id.Metadata.Name = m.Name
	return id
}

// NameOfStep returns the name of the object in a step's manifest. It returns an empty string if there is none or the
// manifest is a Reference.
func NameOfStep(s *v1alpha1.Step) string { return Identify(s.Resource.Manifest).Metadata.Name }

// GVKOfStep returns the kind in a step's manifest, or the kind of the step's resource if the manifest has none.
func GVKOfStep(s *v1alpha1.Step) schema.GroupVersionKind {
	if id := Identify(s.Resource.Manifest); id.Kind != "" {
		return schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
	}
	return schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
}

// NeedsDefinition reports whether the kind of a step must be defined by a CustomResourceDefinition.
func NeedsDefinition(s *v1alpha1.Step) bool {
	return kinds.IsGeneric(s) && !kinds.LookUp(GVKOfStep(s), nil).Kind
}

// FirstDocument returns the first YAML document that is not empty, as JSON. extra is true if another document follows.
// A JSON object is returned unchanged.
func FirstDocument(text string) (first []byte, extra bool, err error) {
	data := []byte(text)
	if looksLikeJSON(text) && json.Valid(data) {
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

// Source references the ConfigMap of an unpacked bundle, in the form that OLM writes.
type Source struct {
	Kind                   string `json:"kind"`
	Name                   string `json:"name"`
	Namespace              string `json:"namespace"`
	CatalogSourceName      string `json:"catalogSourceName"`
	CatalogSourceNamespace string `json:"catalogSourceNamespace"`
	Replaces               string `json:"replaces"`
	Properties             string `json:"properties"`
}

// Reference is a manifest that references an object in an unpacked bundle.
type Reference struct {
	Source
	// Digest is the digest of the planned content. Digest is empty if OLM wrote the manifest.
	Digest string `json:"digest,omitempty"`
}

// ParseReference parses a manifest that is a Reference. It returns false for any other manifest.
func ParseReference(text string) (Reference, bool) {
	if !strings.Contains(text, `"catalogSourceName`) {
		return Reference{}, false
	}
	var ref Reference
	if json.Unmarshal([]byte(text), &ref) != nil {
		return Reference{}, false
	}
	return ref, ref.Kind == "ConfigMap" && ref.Name != "" && ref.Namespace != "" && ref.CatalogSourceName != "" && ref.CatalogSourceNamespace != ""
}
