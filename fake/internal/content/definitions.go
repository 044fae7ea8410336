// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definition checks the names, the versions and the conversion of a CustomResourceDefinition, and that its schemas are
// structural.
//
// Source: apiextensions-apiserver pkg/apis/apiextensions/validation, ValidateCustomResourceDefinition.
func definition(crd *apiextensionsv1.CustomResourceDefinition) (problems field.ErrorList) {
	spec := field.NewPath("spec")
	scopes := []apiextensionsv1.ResourceScope{apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped}
	if scope := crd.Spec.Scope; scope != "" && scope != scopes[0] && scope != scopes[1] {
		problems = append(problems, field.NotSupported(spec.Child("scope"), scope, scopes))
	}
	names := &crd.Spec.Names
	for name, value := range map[string]string{
		"kind": names.Kind, "listKind": names.ListKind, "singular": names.Singular, "plural": names.Plural,
	} {
		if value == "" {
			continue
		}
		for _, problem := range utilvalidation.IsDNS1035Label(strings.ToLower(value)) {
			problems = append(problems, field.Invalid(spec.Child("names", name), value, problem))
		}
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		problems = append(problems, field.Invalid(spec.Child("names", "listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	if crd.Spec.PreserveUnknownFields {
		problems = append(problems, field.Invalid(spec.Child("preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		at := spec.Child("conversion")
		if c.Webhook == nil || c.Webhook.ClientConfig == nil {
			problems = append(problems, field.Required(at.Child("webhookClientConfig"), "required when strategy is set to Webhook"))
		}
		if c.Webhook == nil || len(c.Webhook.ConversionReviewVersions) == 0 {
			problems = append(problems, field.Required(at.Child("conversionReviewVersions"), ""))
		}
	}
	return append(problems, versions(crd.Spec.Versions, spec.Child("versions"))...)
}

func versions(list []apiextensionsv1.CustomResourceDefinitionVersion, at *field.Path) (problems field.ErrorList) {
	names := sets.New[string]()
	for i, v := range list {
		for _, problem := range utilvalidation.IsDNS1035Label(v.Name) {
			problems = append(problems, field.Invalid(at.Index(i).Child("name"), v.Name, problem))
		}
		if names.Has(v.Name) {
			problems = append(problems, field.Invalid(at, v.Name, "must contain unique version names"))
		}
		names.Insert(v.Name)
		root := at.Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case v.Schema == nil || v.Schema.OpenAPIV3Schema == nil: // see Problems
		case v.Schema.OpenAPIV3Schema.Type == "":
			problems = append(problems, field.Required(root.Child("type"), "must not be empty at the root"))
		case v.Schema.OpenAPIV3Schema.Type != "object":
			problems = append(problems, field.Invalid(root.Child("type"), v.Schema.OpenAPIV3Schema.Type, "must be object at the root"))
		default:
			problems = append(problems, structural(v.Schema.OpenAPIV3Schema, root)...)
		}
	}
	return problems
}

// structural checks that each specified field below a schema has a type.
func structural(s *apiextensionsv1.JSONSchemaProps, at *field.Path) (problems field.ErrorList) {
	check := func(below *apiextensionsv1.JSONSchemaProps, at *field.Path, what string) {
		isAny := below.XIntOrString || below.XPreserveUnknownFields != nil && *below.XPreserveUnknownFields
		if below.Type == "" && !isAny {
			problems = append(problems, field.Required(at.Child("type"), fmt.Sprintf("must not be empty for specified %s", what)))
		}
		problems = append(problems, structural(below, at)...)
	}
	for name, below := range s.Properties {
		check(&below, at.Child("properties").Key(name), "object fields")
	}
	if s.Items != nil && s.Items.Schema != nil {
		check(s.Items.Schema, at.Child("items"), "array items")
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		check(s.AdditionalProperties.Schema, at.Child("additionalProperties"), "object fields")
	}
	return problems
}
