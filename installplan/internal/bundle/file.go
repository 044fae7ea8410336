// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// file is what a file of a bundle describes.
type file struct {
	object olmcore.Object    // nil when the file is well formed and describes none
	keys   []olmcore.KeyCase // that are spelt in another case
	extra  bool              // more documents follow
}

func decode(data []byte) (f file, err error) {
	first, extra, err := manifest.FirstDocument(string(data))
	if err != nil {
		return file{}, err
	}
	var values map[string]any
	if err := utiljson.Unmarshal(first, &values); err != nil {
		return file{}, err
	}
	id, err := identityOf(values)
	if err != nil {
		return file{}, err
	}
	f.extra = extra
	if id.Kind == "" {
		return f, nil
	}
	renamed, err := setIdentity(values, id)
	if err != nil {
		return file{}, err
	}
	if first, err = json.Marshal(values); err != nil {
		return file{}, err
	}
	f.object, f.keys, err = olmcore.DecodeKeys(first)
	f.keys = append(renamed, f.keys...)
	if csv, ok := f.object.(*v1alpha1.ClusterServiceVersion); ok && id.APIVersion == "" {
		csv.APIVersion = "" // which Steps refuses, as OLM does
	}
	return f, err
}

// identityOf reads the identity of a manifest; keys in any case count.
func identityOf(values map[string]any) (id manifest.Identity, err error) {
	own := map[string]any{}
	for key, value := range values {
		for _, field := range [...]string{"apiVersion", "kind", "metadata"} {
			if strings.EqualFold(key, field) {
				own[key] = value
			}
		}
	}
	data, err := json.Marshal(own)
	if err != nil {
		return id, err
	}
	return id, json.Unmarshal(data, &id)
}

// setIdentity gives a manifest apiVersion and kind as they are read: an apiVersion that
// is missing, or lacks the group of a ClusterServiceVersion, follows from the kind where
// steps of that kind are known. The error says that it does not.
func setIdentity(values map[string]any, id manifest.Identity) (keys []olmcore.KeyCase, err error) {
	kind, known := kinds.Known[id.Kind]
	if known && (id.APIVersion == "" || id.Kind == kinds.CSV && !strings.Contains(id.APIVersion, "/")) {
		id.APIVersion = kind.GVK.GroupVersion().String()
	}
	if id.APIVersion == "" {
		return nil, fmt.Errorf("%s has no apiVersion", id.Kind)
	}
	if values["apiVersion"] == id.APIVersion && values["kind"] == id.Kind {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, field := range [...]string{"apiVersion", "kind"} {
			if key != field && strings.EqualFold(key, field) {
				keys = append(keys, olmcore.KeyCase{Path: key, Field: field})
				delete(values, key)
			}
		}
	}
	values["apiVersion"], values["kind"] = id.APIVersion, id.Kind
	return keys, nil
}
