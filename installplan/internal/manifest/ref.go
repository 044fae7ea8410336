// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"strings"
)

// Source is where the object of a Ref is, in the form that OLM writes: the
// ConfigMap of an unpacked bundle.
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
func ParseRef(text string) (ref Ref, ok bool) {
	if !strings.Contains(text, `"catalogSourceName`) || json.Unmarshal([]byte(text), &ref) != nil {
		return Ref{}, false
	}
	ok = ref.Kind == "ConfigMap" && ref.Name != "" && ref.Namespace != "" &&
		ref.CatalogSourceName != "" && ref.CatalogSourceNamespace != ""
	return ref, ok
}
