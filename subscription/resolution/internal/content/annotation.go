// SPDX-License-Identifier: Apache-2.0

package content

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// PropertiesAnnotation holds the properties of an installed bundle.
const PropertiesAnnotation = "operatorframework.io/properties"

// ParseAnnotation returns the properties of an installed bundle.
func ParseAnnotation(text string) ([]olmcore.Property, error) {
	var list struct {
		Properties []olmcore.Property `json:"properties"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}

// Projects reports whether an annotation is the JSON form of a bundle's properties as OLM writes it, without those
// that are not projected. Then what was parsed of the bundle is what the annotation says. It compares text: a false
// no costs time alone.
func Projects(text string, properties []olmcore.Property) bool {
	rest, ok := strings.TrimSpace(text), true
	next := func(part string) {
		if ok {
			rest, ok = strings.CutPrefix(rest, part)
		}
	}
	separator := `{"properties":[`
	for i := range properties {
		p := &properties[i]
		if p.Type == PropertyBundleObject || p.Type == PropertyCSVMetadata {
			continue
		}
		next(separator)
		next(`{"type":"`)
		next(p.Type)
		next(`","value":`)
		n := len(p.Value)
		if !ok || len(rest) < n || rest[:n] != string(p.Value) {
			return false
		}
		rest = rest[n:]
		next("}")
		separator = ","
	}
	return ok && separator == "," && rest == "]}"
}
