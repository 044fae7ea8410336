// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// written are the fields of OLM's kinds that are written, and to which depth a schema must know them: what it does not
// know is dropped without a word.
var written = []struct {
	kind  schema.GroupVersionKind
	field string
	depth int
}{
	{catalogKind, "Status", wholly},
	{subscriptionKind, "Spec", 1}, // of dependencies, and of this without a config
	{subscriptionKind, "Status", wholly},
	{installPlanKind, "Spec", wholly},
	{installPlanKind, "Status", wholly},
	{csvKind, "Spec", 1}, // as bundles have it; below stand Pods, whose fields come with Kubernetes
	{csvKind, "Status", wholly},
	{groupKind, "Status", wholly},
	{operatorKind, "Status", wholly},
	{conditionKind, "Spec", wholly},
	{conditionKind, "Status", wholly},
	{configKind, "Status", wholly},
}

// wholly is deeper than any of the types.
const wholly = 100

// definitions compares OLM's CustomResourceDefinitions with what is read and written.
func (p Preflight) definitions(ctx context.Context) (string, error) {
	var problems []string
	for _, k := range olmcore.Kinds() {
		if k.Group != operators {
			continue
		}
		name := k.Plural + "." + k.Group
		crd, err := olmcore.Get[*apiextensionsv1.CustomResourceDefinition](ctx, p.Reader, "", name)
		switch {
		case err != nil:
			return "", reading(err)
		case crd == nil:
			problems = append(problems, name+" is missing")
		default:
			if problem := lacks(crd, k.GroupVersionKind); problem != "" {
				problems = append(problems, name+" "+problem)
			}
		}
	}
	if len(problems) == 0 {
		return "", nil
	}
	return "the CustomResourceDefinitions of OLM are not of the version that is needed: " + listed(problems, "; ") +
		": install those of examples/controllerruntime/config/crds", nil
}

// lacks says what a definition lacks for the objects of a kind; "" for nothing.
func lacks(crd *apiextensionsv1.CustomResourceDefinition, gvk schema.GroupVersionKind) string {
	i := slices.IndexFunc(
		crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served },
	)
	if i < 0 {
		return "does not serve " + gvk.Version
	}
	v := crd.Spec.Versions[i]
	if v.Subresources == nil || v.Subresources.Status == nil {
		return "has no status subresource in " + gvk.Version
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return "" // it keeps everything
	}
	object := reflect.TypeOf(olmcore.NewObject(gvk)).Elem()
	var missing []string
	for _, w := range written {
		field, _ := object.FieldByName(w.field)
		if w.kind == gvk {
			name := strings.ToLower(w.field)
			missing = append(missing, unknownFields(field.Type, v.Schema.OpenAPIV3Schema.Properties[name], name, w.depth)...)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("does not know %s in %s", listed(missing, ", "), gvk.Version)
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// unknownFields returns the paths of the fields of a Go type that a schema drops.
func unknownFields(t reflect.Type, s apiextensionsv1.JSONSchemaProps, path string, depth int) []string {
	keeps := s.XPreserveUnknownFields
	if keeps != nil && *keeps {
		return nil
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return unknownFields(t.Elem(), s, path, depth)
	case depth == 0 || reflect.PointerTo(t).Implements(marshaler):
		return nil
	case t.Kind() == reflect.Slice && s.Items != nil && s.Items.Schema != nil:
		return unknownFields(t.Elem(), *s.Items.Schema, path, depth)
	case t.Kind() == reflect.Map && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return unknownFields(t.Elem(), *s.AdditionalProperties.Schema, path, depth)
	case t.Kind() != reflect.Struct:
		return nil
	}
	var missing []string
	for i := range t.NumField() {
		missing = append(missing, unknownField(t.Field(i), s, path, depth)...)
	}
	return missing
}

func unknownField(f reflect.StructField, s apiextensionsv1.JSONSchemaProps, path string, depth int) []string {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	property, isKnown := s.Properties[name]
	switch {
	case name == "-":
		return nil
	case options == "inline" || name == "" && f.Anonymous:
		return unknownFields(f.Type, s, path, depth)
	case !isKnown:
		return []string{path + "." + name}
	}
	return unknownFields(f.Type, property, path+"."+name, depth-1)
}
