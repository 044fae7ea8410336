// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Narrowed returns the first field in which a CustomResourceDefinition that
// becomes to takes something away from users of from: a served version, a value
// that was valid, kept or left alone, or the way objects are stored and
// converted. Empty when whoever worked with from works with to as before.
// Who may be notified of what (conversion webhooks) is not compared here.
func Narrowed(from, to *apiextensionsv1.CustomResourceDefinition) string {
	a, b := &from.Spec, &to.Spec
	switch {
	case a.Group != b.Group:
		return "spec.group"
	case a.Scope != b.Scope:
		return "spec.scope"
	case !sameNames(a.Names, b.Names):
		return "spec.names"
	case a.PreserveUnknownFields != b.PreserveUnknownFields:
		return "spec.preserveUnknownFields"
	}
	for i := range a.Versions {
		old := &a.Versions[i]
		if !old.Served && !old.Storage {
			continue
		}
		if field := narrowedVersion(old, versionOf(to, old.Name)); field != "" {
			return "spec.versions[" + old.Name + "]" + field
		}
	}
	return narrowedStorage(a, b)
}

func sameNames(a, b apiextensionsv1.CustomResourceDefinitionNames) bool {
	whole := func(n apiextensionsv1.CustomResourceDefinitionNames) apiextensionsv1.CustomResourceDefinitionNames {
		n.Singular = cmp.Or(n.Singular, strings.ToLower(n.Kind))
		n.ListKind = cmp.Or(n.ListKind, n.Kind+"List")
		n.ShortNames = slices.Sorted(slices.Values(n.ShortNames))
		n.Categories = slices.Sorted(slices.Values(n.Categories))
		return n
	}
	return apiequality.Semantic.DeepEqual(whole(a), whole(b))
}

func narrowedVersion(old, next *apiextensionsv1.CustomResourceDefinitionVersion) string {
	switch {
	case next == nil:
		return " (removed)"
	case old.Served && !next.Served:
		return ".served"
	case !apiequality.Semantic.DeepEqual(old.Subresources, next.Subresources):
		return ".subresources"
	}
	for _, f := range old.SelectableFields {
		if !slices.Contains(next.SelectableFields, f) {
			return ".selectableFields"
		}
	}
	return narrowedSchema(".schema.openAPIV3Schema", schemaOf(old), schemaOf(next))
}

// narrowedStorage compares what becomes of stored objects when another version
// is stored: it must keep what the former one kept.
func narrowedStorage(a, b *apiextensionsv1.CustomResourceDefinitionSpec) string {
	stored := func(versions []apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinitionVersion {
		i := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		if i < 0 {
			return nil
		}
		return &versions[i]
	}
	old, next := stored(a.Versions), stored(b.Versions)
	switch {
	case old == nil || next != nil && old.Name == next.Name:
		return ""
	case next == nil:
		return "spec.versions[" + old.Name + "].storage"
	case Converts(a.Conversion):
		return "spec.versions[" + next.Name + "].storage" // the webhook may not know it
	}
	if field := narrowedSchema(".schema.openAPIV3Schema", schemaOf(old), schemaOf(next)); field != "" {
		return "spec.versions[" + next.Name + "]" + field + " (stored instead of " + old.Name + ")"
	}
	return ""
}

func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// narrowedSchema returns the first field of old below which next may refuse,
// drop or default a value that old took as it was. What cannot be compared
// simply counts as narrower when it differs.
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
		was := old.Properties[name]
		is, has := next.Properties[name]
		if !has {
			return path + ".properties[" + name + "]"
		}
		if field := narrowedSchema(path+".properties["+name+"]", &was, &is); field != "" {
			return field
		}
	}
	if len(next.Properties) > len(old.Properties) && keepsUnknown(old) {
		return path + ".properties"
	}
	switch {
	case (old.Items == nil) != (next.Items == nil):
		return path + ".items"
	case old.Items != nil:
		if !apiequality.Semantic.DeepEqual(old.Items.JSONSchemas, next.Items.JSONSchemas) {
			return path + ".items"
		}
		if field := narrowedSchema(path+".items", old.Items.Schema, next.Items.Schema); field != "" {
			return field
		}
	}
	switch {
	case (old.AdditionalProperties == nil) != (next.AdditionalProperties == nil):
		return path + ".additionalProperties"
	case old.AdditionalProperties != nil:
		was, is := old.AdditionalProperties, next.AdditionalProperties
		switch takesAny := is.Schema == nil && is.Allows; {
		case takesAny || was.Schema == nil && !was.Allows:
			return ""
		case is.Schema == nil:
			return path + ".additionalProperties"
		}
		return narrowedSchema(path+".additionalProperties", was.Schema, is.Schema)
	}
	return ""
}

func keepsUnknown(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// narrowedValue compares what two schemas say of a value itself, leaving out its
// fields and entries.
func narrowedValue(old, next *apiextensionsv1.JSONSchemaProps) string {
	for _, name := range next.Required {
		if !slices.Contains(old.Required, name) {
			return ".required"
		}
	}
	if len(next.Enum) > 0 && (len(old.Enum) == 0 || slices.ContainsFunc(old.Enum, func(v apiextensionsv1.JSON) bool {
		return !slices.ContainsFunc(next.Enum, func(w apiextensionsv1.JSON) bool { return string(v.Raw) == string(w.Raw) })
	})) {
		return ".enum"
	}
	for _, rule := range next.XValidations {
		if !slices.ContainsFunc(old.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
			return ".x-kubernetes-validations"
		}
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
	if b.Nullable {
		a.Nullable = true
	}
	for _, s := range [...]*apiextensionsv1.JSONSchemaProps{&a, &b} {
		s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
		s.Required, s.Enum, s.XValidations = nil, nil, nil
		s.Properties, s.Items, s.AdditionalProperties = nil, nil, nil
	}
	if apiequality.Semantic.DeepEqual(a, b) {
		return ""
	}
	if !apiequality.Semantic.DeepEqual(a.Default, b.Default) {
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
