// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// errEmpty: OLM tries again to read what holds nothing.
var errEmpty = errors.New("it is empty")

// manifest is what a step's manifest says, as JSON values.
type manifest struct {
	object map[string]any
	// gvk is empty where the manifest does not say, as in those that OLM makes of
	// typed objects.
	gvk   schema.GroupVersionKind
	name  string
	extra bool // more YAML documents follow
}

// parseManifest reads the first YAML or JSON document of a manifest. What only
// a cluster can know of an object is dropped.
func parseManifest(text string) (manifest, error) {
	var m manifest
	err := utiljson.Unmarshal([]byte(text), &m.object)
	if err != nil {
		// It may be YAML, even where it begins as JSON does.
		data, extra, yamlErr := firstDocument(text)
		if yamlErr == nil {
			m.extra, yamlErr = extra, utiljson.Unmarshal(data, &m.object)
		}
		switch {
		case yamlErr == nil:
		case strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{"):
			return m, err
		default:
			return m, yamlErr
		}
	}
	if m.object == nil {
		return m, errEmpty
	}
	apiVersion, _ := m.object["apiVersion"].(string)
	kind, _ := m.object["kind"].(string)
	m.gvk = schema.FromAPIVersionAndKind(apiVersion, kind)
	metadata, ok := m.object["metadata"].(map[string]any)
	if !ok {
		return m, errors.New("it has no metadata")
	}
	m.name, _ = metadata["name"].(string)
	for _, field := range [...]string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(metadata, field)
	}
	delete(m.object, "status")
	return m, nil
}

// bundleRef is a manifest that stands for an object of an unpacked bundle.
type bundleRef struct {
	Kind                   string `json:"kind"`
	Name                   string `json:"name"`
	Namespace              string `json:"namespace"`
	CatalogSourceName      string `json:"catalogSourceName"`
	CatalogSourceNamespace string `json:"catalogSourceNamespace"`
	Replaces               string `json:"replaces"`
	Properties             string `json:"properties"`
}

// pinnedRef is a bundleRef with the digest of the content that was planned;
// empty in those that OLM wrote.
type pinnedRef struct {
	bundleRef
	Digest string `json:"digest,omitempty"`
}

// parseBundleRef reads such a manifest; ok is false for every other one.
func parseBundleRef(text string) (ref pinnedRef, ok bool) {
	if !strings.Contains(text, `"catalogSourceName`) || json.Unmarshal([]byte(text), &ref) != nil {
		return pinnedRef{}, false
	}
	ok = ref.Kind == "ConfigMap" && ref.Name != "" && ref.Namespace != "" &&
		ref.CatalogSourceName != "" && ref.CatalogSourceNamespace != ""
	return ref, ok
}

// identity is the little of a manifest that tells which object it means.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// identify reads a manifest's identity; the zero identity when it has none, or
// only stands for another.
func identify(text string) identity {
	var id identity
	if _, ok := parseBundleRef(text); ok {
		return id
	}
	if err := utiljson.Unmarshal([]byte(text), &id); err == nil {
		return id
	}
	m, err := parseManifest(text)
	if err != nil {
		return identity{}
	}
	id.APIVersion, id.Kind = m.gvk.ToAPIVersionAndKind()
	id.Metadata.Name = m.name
	return id
}

func (m manifest) metadata() map[string]any {
	metadata, _ := m.object["metadata"].(map[string]any)
	return metadata
}

// stringsOf returns a map of strings at a metadata field, leaving out what is
// none.
func stringsOf(metadata map[string]any, field string) map[string]any {
	values, _ := metadata[field].(map[string]any)
	out := make(map[string]any, len(values)+4)
	for key, value := range values {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// encode is a manifest as OLM writes it: JSON and one newline.
func encode(object map[string]any) (string, error) {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(object); err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	return buf.String(), nil
}
