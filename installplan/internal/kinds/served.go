// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// GVKOf returns the kind of the object that a step names, going by its resource alone.
func (t Table) GVKOf(s *v1alpha1.Step) schema.GroupVersionKind {
	if k, known := t[s.Resource.Kind]; known {
		return k.GVK
	}
	return schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
}

// KeyOf returns the object that a step of a plan in a namespace names, going by its
// resource alone. ok is false when its kind is not served.
func (t Table) KeyOf(s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition) (key olmcore.Key, ok bool) {
	gvk := t.GVKOf(s)
	k, known := t[s.Resource.Kind]
	if !known {
		api := LookUp(gvk, crds)
		k.Namespaced, known = api.Namespaced, api.Kind
	}
	key = olmcore.Key{Group: gvk.Group, Kind: gvk.Kind, Name: s.Resource.Name}
	if k.Namespaced {
		key.Namespace = namespace
	}
	return key, known
}

// Served is what is known about the API of a kind that is no row of Known.
type Served struct {
	Version, Kind, Namespaced bool
}

// LookUp says whether the API server serves a kind: kinds of its own, and those
// that a CustomResourceDefinition defines. An aggregated API that no
// CustomResourceDefinition describes is not seen.
func LookUp(gvk schema.GroupVersionKind, crds []*apiextensionsv1.CustomResourceDefinition) Served {
	if k, ok := Supported[gvk.Kind]; ok && k.GVK == gvk {
		return Served{Version: true, Kind: true, Namespaced: k.Namespaced}
	}
	var answer Served
	for _, k := range Supported {
		answer.Version = answer.Version || k.GVK.Kind != "" && k.GVK.GroupVersion() == gvk.GroupVersion()
	}
	for _, crd := range crds {
		if crd == nil || crd.Spec.Group != gvk.Group {
			continue
		}
		live := crd.DeletionTimestamp == nil && Established(crd) && slices.ContainsFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served })
		answer.Version = answer.Version || live
		if crd.Spec.Names.Kind == gvk.Kind {
			answer.Namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			answer.Kind = answer.Kind || live
		}
	}
	return answer
}

// Established reports whether the API of a definition is served.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	var up, named bool
	for _, c := range crd.Status.Conditions {
		switch c.Type {
		case apiextensionsv1.Established:
			up = c.Status == apiextensionsv1.ConditionTrue
		case apiextensionsv1.NamesAccepted:
			named = c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return up && named
}

// Of returns the row of a kind that every API server serves, of those that steps have.
func Of(gvk schema.GroupVersionKind) (k Kind, served bool) {
	for _, table := range [...]Table{Known, Supported} {
		for _, k := range table {
			if k.GVK == gvk {
				return k, true
			}
		}
	}
	return Kind{}, false
}

// IsSupported reports whether steps may have a kind that is no row of Known: one of
// supported, where that is nil a row of Supported.
func IsSupported(supported []string, kind string) bool {
	if supported == nil {
		_, known := Supported[kind]
		return known
	}
	return slices.Contains(supported, kind)
}
