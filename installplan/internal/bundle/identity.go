// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// apiVersionOf returns the apiVersion of a manifest. If the manifest names none, or no group, and steps of its kind are
// known, the apiVersion follows from the kind. A CustomResourceDefinition keeps its version. That of a
// ClusterServiceVersion always follows: OLM recognizes one by its kind.
func apiVersionOf(apiVersion, kind string) string {
	known, ok := kinds.Known[kind]
	switch {
	case kind == kinds.CSV:
		return known.GVK.GroupVersion().String()
	case !ok || strings.Contains(apiVersion, "/") || known.GVK.Group == "" && apiVersion != "":
		return apiVersion
	case kind == kinds.CRD && apiVersion != "":
		return known.GVK.Group + "/" + apiVersion
	}
	return known.GVK.GroupVersion().String()
}

// identified returns an object of a bundle as its Go type, with an apiVersion. The APIVersion of a
// ClusterServiceVersion that names none stays empty: Version refuses it, as OLM does. The error says that the object
// has no apiVersion or cannot be decoded.
//
// Differs: OLM applies the object as the kind that it names, whatever its group.
func identified(object olmcore.Object) (olmcore.Object, error) {
	u, untyped := object.(*unstructured.Unstructured)
	if !untyped || u == nil || u.GetKind() == "" {
		return object, nil
	}
	apiVersion := apiVersionOf(u.GetAPIVersion(), u.GetKind())
	if apiVersion == "" {
		return nil, fmt.Errorf("%s %s of its bundle has no apiVersion", u.GetKind(), u.GetName())
	}
	if _, known := kinds.Known[u.GetKind()]; !known || apiVersion == u.GetAPIVersion() && u.GetKind() != kinds.CSV {
		return object, nil // a field that the Go type does not have stays
	}
	values := maps.Clone(u.Object)
	values["apiVersion"] = apiVersion
	data, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", olmcore.KeyOf(object), err)
	}
	decoded, err := olmcore.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s %s of its bundle cannot be decoded: %w", u.GetKind(), u.GetName(), err)
	}
	if csv, ok := decoded.(*v1alpha1.ClusterServiceVersion); ok && u.GetAPIVersion() == "" {
		csv.APIVersion = ""
	}
	return decoded, nil
}

func identifiedAll(objects []olmcore.Object) ([]olmcore.Object, error) {
	all := make([]olmcore.Object, len(objects))
	for i, object := range objects {
		var err error
		if all[i], err = identified(object); err != nil {
			return nil, err
		}
	}
	return all, nil
}
