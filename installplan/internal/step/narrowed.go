// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// narrowed returns the first field in which a CustomResourceDefinition that becomes to takes something away from users
// of from: a served version, a value that was valid, kept or left alone, or the way objects are stored and converted.
// Empty when whoever worked with from works with to as before. Who may be notified of what (conversion webhooks) is not
// compared.
func narrowed(from, to *apiextensionsv1.CustomResourceDefinition) string {
	a, b := &from.Spec, &to.Spec
	switch {
	case a.Group != b.Group:
		return "spec.group"
	case a.Scope != b.Scope:
		return "spec.scope"
	case !apiequality.Semantic.DeepEqual(fullNames(a.Names), fullNames(b.Names)):
		return "spec.names"
	case a.PreserveUnknownFields != b.PreserveUnknownFields:
		return "spec.preserveUnknownFields"
	}
	var stored *apiextensionsv1.CustomResourceDefinitionVersion
	for i := range a.Versions {
		old := &a.Versions[i]
		if old.Storage && stored == nil {
			stored = old
		}
		if !old.Served && !old.Storage {
			continue
		}
		if field := narrowedVersion(old, versionOf(to, old.Name)); field != "" {
			return "spec.versions[" + old.Name + "]" + field
		}
	}
	if stored == nil {
		return ""
	}
	// Another version that is stored must keep what the former one kept.
	i := slices.IndexFunc(b.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	switch {
	case i < 0:
		return "spec.versions[" + stored.Name + "].storage"
	case b.Versions[i].Name == stored.Name:
		return ""
	case Converts(a.Conversion):
		return "spec.versions[" + b.Versions[i].Name + "].storage" // the webhook may not know it
	}
	if field := narrowedSchema(".schema.openAPIV3Schema", schemaOf(stored), schemaOf(&b.Versions[i])); field != "" {
		return "spec.versions[" + b.Versions[i].Name + "]" + field + " (stored instead of " + stored.Name + ")"
	}
	return ""
}

// fullNames fills in what the API server does.
func fullNames(n apiextensionsv1.CustomResourceDefinitionNames) apiextensionsv1.CustomResourceDefinitionNames {
	n.Singular = cmp.Or(n.Singular, strings.ToLower(n.Kind))
	n.ListKind = cmp.Or(n.ListKind, n.Kind+"List")
	n.ShortNames = slices.Sorted(slices.Values(n.ShortNames))
	n.Categories = slices.Sorted(slices.Values(n.Categories))
	return n
}

func narrowedVersion(old, next *apiextensionsv1.CustomResourceDefinitionVersion) string {
	switch {
	case next == nil:
		return " (removed)"
	case old.Served && !next.Served:
		return ".served"
	case !apiequality.Semantic.DeepEqual(old.Subresources, next.Subresources):
		return ".subresources"
	case lacks(next.SelectableFields, old.SelectableFields, func(f apiextensionsv1.SelectableField) string { return f.JSONPath }):
		return ".selectableFields"
	}
	return narrowedSchema(".schema.openAPIV3Schema", schemaOf(old), schemaOf(next))
}

// lacks reports that an entry of wanted is not in list, by what identifies it.
func lacks[T any](list, wanted []T, id func(T) string) bool {
	return slices.ContainsFunc(wanted, func(w T) bool {
		return !slices.ContainsFunc(list, func(have T) bool { return id(have) == id(w) })
	})
}

func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// narrowedSchema returns the first field of old below which next may refuse, drop or default a value that old took as
// it was. What cannot be compared simply counts as narrower when it differs.
func narrowedSchema(path string, old, next *apiextensionsv1.JSONSchemaProps) string {
	if old == nil || next == nil {
		if old == next {
			return ""
		}
		return path
	}
	if field := narrowedValue(old, next); field != "" {
		return path + field
	}
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was, below := old.Properties[name], path+".properties["+name+"]"
		is, has := next.Properties[name]
		if !has {
			return below
		}
		if field := narrowedSchema(below, &was, &is); field != "" {
			return field
		}
	}
	if len(next.Properties) > len(old.Properties) && old.XPreserveUnknownFields != nil && *old.XPreserveUnknownFields {
		return path + ".properties"
	}
	if was, is := old.Items, next.Items; was != nil || is != nil {
		if was == nil || is == nil || !apiequality.Semantic.DeepEqual(was.JSONSchemas, is.JSONSchemas) {
			return path + ".items"
		}
		if field := narrowedSchema(path+".items", was.Schema, is.Schema); field != "" {
			return field
		}
	}
	switch was, is := old.AdditionalProperties, next.AdditionalProperties; {
	case was == nil && is == nil:
		return ""
	case was == nil || is == nil:
		return path + ".additionalProperties"
	case is.Schema == nil && is.Allows || was.Schema == nil && !was.Allows: // any is taken, or none was
		return ""
	case is.Schema == nil:
		return path + ".additionalProperties"
	default:
		return narrowedSchema(path+".additionalProperties", was.Schema, is.Schema)
	}
}

// narrowedValue compares what two schemas say of a value itself, leaving out its fields and entries.
func narrowedValue(old, next *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case lacks(old.Required, next.Required, func(name string) string { return name }):
		return ".required"
	case len(next.Enum) > 0 && (len(old.Enum) == 0 || lacks(next.Enum, old.Enum, func(v apiextensionsv1.JSON) string { return string(v.Raw) })):
		return ".enum"
	case lacks(old.XValidations, next.XValidations, func(r apiextensionsv1.ValidationRule) string { return r.Rule }):
		return ".x-kubernetes-validations"
	}
	a, b := *old, *next
	relax(&a.Maximum, &b.Maximum, 1)
	relax(&a.Minimum, &b.Minimum, -1)
	relax(&a.MaxLength, &b.MaxLength, 1)
	relax(&a.MinLength, &b.MinLength, -1)
	relax(&a.MaxItems, &b.MaxItems, 1)
	relax(&a.MinItems, &b.MinItems, -1)
	relax(&a.MaxProperties, &b.MaxProperties, 1)
	relax(&a.MinProperties, &b.MinProperties, -1)
	if b.Pattern == "" {
		a.Pattern = ""
	}
	a.Nullable = a.Nullable || b.Nullable
	for _, s := range [...]*apiextensionsv1.JSONSchemaProps{&a, &b} {
		s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
		s.Required, s.Enum, s.XValidations = nil, nil, nil
		s.Properties, s.Items, s.AdditionalProperties = nil, nil, nil
	}
	switch {
	case apiequality.Semantic.DeepEqual(a, b):
		return ""
	case !apiequality.Semantic.DeepEqual(a.Default, b.Default):
		return ".default"
	}
	return " (validation)"
}

// relax forgets a bound that next does not have, or has farther in direction.
func relax[T int64 | float64](old, next **T, direction T) {
	if *next == nil || *old != nil && (**next-**old)*direction >= 0 {
		*old, *next = nil, nil
	}
}
