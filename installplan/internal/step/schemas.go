// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// maxVerdicts limits the custom resources that a message names.
const maxVerdicts = 100

// SchemaChange requests the validation of custom resources against a changed schema. Its fields are those of
// installplan.SchemaChange.
type SchemaChange struct {
	Before, After *apiextensionsv1.CustomResourceDefinition
	Versions      []string
}

// ResourceVerdict is the result of validating one custom resource. Its fields are those of installplan.ResourceVerdict.
type ResourceVerdict struct {
	CustomResourceDefinition, Version string
	Namespace, Name                   string
	Old, New                          []string
	ReadError                         string
	Unread                            int
}

// judgeResources returns the Decision about custom resources that the new schema would make invalid, and the change for
// which they must be validated. Versions with an unchanged schema are ignored, and so are custom resources that are
// invalid already.
func (d definition) judgeResources() Decision {
	have := d.have
	changed := changedVersions(have, d.desired)
	if len(changed) == 0 {
		return Decision{}
	}
	var problems, already, converted []string
	var unread []olmcore.Diagnostic
	for _, r := range d.verdicts(changed) {
		text := have.Spec.Names.Kind + " " + r.id()
		switch {
		case r.ReadError != "":
			problems = append(problems, r.ReadError)
		case r.Unread > 0:
			unread = append(unread, d.w.about(ofPlan, olmcore.Warning, reasons.Truncated,
				"%d custom resources of %s were not validated against the schema of version %s", r.Unread, have.Name, r.Version))
		case len(r.New) == 0:
		case len(r.Old) > 0:
			already = append(already, text+" is invalid already: "+aggregate(r.Old))
		case Converts(d.desired.Spec.Conversion):
			converted = append(converted, text+" is invalid under the new schema: "+aggregate(r.New))
		default:
			gvk := fmt.Sprintf("%s/%s, Kind=%s", have.Spec.Group, r.Version, have.Spec.Names.Kind)
			problems = append(problems, fmt.Sprintf("error validating %s %q: updated validation is too restrictive: %s",
				gvk, r.id(), aggregate(r.New)))
		}
	}
	v := Decision{Change: &SchemaChange{Before: have, After: d.desired, Versions: changed}, Diagnostics: unread}
	v = v.with(d.reportInvalid(olmcore.Info, already)...).with(d.reportInvalid(olmcore.Warning, converted)...)
	if len(problems) == 0 {
		return v
	}
	v.Outcome = Blocked
	v.Message = fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s",
		have.Name, strings.Join(firstVerdicts(problems), "; "))
	return v.with(d.reportTruncated(problems)...)
}

// id returns the namespace and name of the custom resource, for messages.
func (r ResourceVerdict) id() string { return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") }

// firstVerdicts returns the texts about custom resources that are named, at most maxVerdicts.
func firstVerdicts(texts []string) []string { return texts[:min(len(texts), maxVerdicts)] }

// reportTruncated reports that not all texts about custom resources are named.
func (d definition) reportTruncated(texts []string) []olmcore.Diagnostic {
	if len(texts) <= maxVerdicts {
		return nil
	}
	return []olmcore.Diagnostic{d.w.about(ofPlan, olmcore.Info, reasons.Truncated,
		"%d of %d findings about custom resources of %s are named", maxVerdicts, len(texts), d.have.Name)}
}

// reportInvalid reports invalid custom resources.
func (d definition) reportInvalid(severity olmcore.Severity, texts []string) []olmcore.Diagnostic {
	diagnostics := d.reportTruncated(texts)
	for _, text := range firstVerdicts(texts) {
		diagnostics = append(diagnostics, d.w.about(ofPlan, severity, reasons.ExistingResourceInvalid, "%s", printable.Clip(text)))
	}
	return diagnostics
}

// verdicts returns the sorted verdicts about custom resources of the definition in some versions. The verdicts of a
// plan that runs as a ServiceAccount do not name custom resources of other namespaces and do not contain their values,
// because readers of the plan may not be allowed to read them.
func (d definition) verdicts(versions []string) []ResourceVerdict {
	found := slices.DeleteFunc(slices.Clone(d.w.in.CustomResources), func(v ResourceVerdict) bool {
		return v.CustomResourceDefinition != d.have.Name || !slices.Contains(versions, v.Version)
	})
	slices.SortFunc(found, func(a, b ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ReadError, b.ReadError), cmp.Compare(a.Unread, b.Unread))
	})
	for i := range found {
		v := &found[i]
		if d.w.in.Plan.Status.AttenuatedServiceAccountRef != nil && v.Namespace != d.w.in.Plan.Namespace {
			v.Namespace, v.Name = "", "of another namespace"
			v.Old, v.New = hidden(v.Old), hidden(v.New)
		}
	}
	return found
}

func hidden(findings []string) []string {
	if len(findings) == 0 {
		return nil
	}
	return []string{"(not shown)"}
}

// changedVersions returns the sorted versions that are served before and after, with different schemas.
func changedVersions(have, desired *apiextensionsv1.CustomResourceDefinition) (names []string) {
	for _, before := range have.Spec.Versions {
		after := versionOf(desired, before.Name)
		if before.Served && after != nil && after.Served && !apiequality.Semantic.DeepEqual(before.Schema, after.Schema) {
			names = append(names, before.Name)
		}
	}
	slices.Sort(names)
	return names
}

// aggregate formats several findings as Kubernetes does.
func aggregate(findings []string) string {
	if len(findings) == 1 {
		return findings[0]
	}
	return "[" + strings.Join(findings, ", ") + "]"
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// narrowed returns the first field of Narrowings, or an empty string.
func narrowed(from, to *apiextensionsv1.CustomResourceDefinition) string {
	for field := range Narrowings(from, to) {
		return field
	}
	return ""
}

// Narrowings returns the fields in which a change of a CustomResourceDefinition takes something away from its users.
// from is the definition before the change, and to is the one after it. See installplan.Narrowings. It returns none
// if clients of the former definition can use the new one unchanged. Conversion webhooks are not compared.
func Narrowings(from, to *apiextensionsv1.CustomResourceDefinition) iter.Seq[string] {
	return func(yield func(string) bool) { narrowings(from, to, yield) }
}

func narrowings(from, to *apiextensionsv1.CustomResourceDefinition, yield func(string) bool) bool {
	a, b := &from.Spec, &to.Spec
	switch {
	case a.Group != b.Group:
		return yield("spec.group")
	case a.Scope != b.Scope:
		return yield("spec.scope")
	case !apiequality.Semantic.DeepEqual(fullNames(a.Names), fullNames(b.Names)):
		return yield("spec.names")
	case a.PreserveUnknownFields != b.PreserveUnknownFields:
		return yield("spec.preserveUnknownFields")
	}
	for i := range a.Versions {
		old := &a.Versions[i]
		if !old.Served && !old.Storage {
			continue
		}
		if !narrowedVersion(old, versionOf(to, old.Name), func(field string) bool { return yield("spec.versions[" + old.Name + "]" + field) }) {
			return false
		}
	}
	return narrowedStorage(a, b, yield)
}

// narrowedStorage compares the stored versions of two definitions. If another version is stored afterwards, it must
// keep all fields that the former one kept.
func narrowedStorage(a, b *apiextensionsv1.CustomResourceDefinitionSpec, yield func(string) bool) bool {
	isStored := func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage }
	former := slices.IndexFunc(a.Versions, isStored)
	if former < 0 {
		return true
	}
	stored := &a.Versions[former]
	i := slices.IndexFunc(b.Versions, isStored)
	switch {
	case i < 0:
		return yield("spec.versions[" + stored.Name + "].storage")
	case b.Versions[i].Name == stored.Name:
		return true
	case Converts(a.Conversion):
		return yield("spec.versions[" + b.Versions[i].Name + "].storage") // the webhook may not know it
	}
	return narrowedSchema(schemaField, schemaOf(stored), schemaOf(&b.Versions[i]), func(field string) bool {
		return yield("spec.versions[" + b.Versions[i].Name + "]" + field + " (stored instead of " + stored.Name + ")")
	})
}

// fullNames sets the defaults that the API server sets.
func fullNames(n apiextensionsv1.CustomResourceDefinitionNames) apiextensionsv1.CustomResourceDefinitionNames {
	n.Singular = cmp.Or(n.Singular, strings.ToLower(n.Kind))
	n.ListKind = cmp.Or(n.ListKind, n.Kind+"List")
	n.ShortNames = slices.Sorted(slices.Values(n.ShortNames))
	n.Categories = slices.Sorted(slices.Values(n.Categories))
	return n
}

const schemaField = ".schema.openAPIV3Schema"

func narrowedVersion(old, next *apiextensionsv1.CustomResourceDefinitionVersion, yield func(string) bool) bool {
	switch {
	case next == nil:
		return yield(" (removed)")
	case old.Served && !next.Served:
		return yield(".served")
	case !apiequality.Semantic.DeepEqual(old.Subresources, next.Subresources):
		return yield(".subresources")
	case lacks(next.SelectableFields, old.SelectableFields, func(f apiextensionsv1.SelectableField) string { return f.JSONPath }):
		return yield(".selectableFields")
	}
	return narrowedSchema(schemaField, schemaOf(old), schemaOf(next), yield)
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

// narrowedSchema yields the fields of old below which next may reject, drop or default a value that old accepted
// unchanged. It reports whether to continue. Parts that cannot be compared count as narrower if they differ.
func narrowedSchema(path string, old, next *apiextensionsv1.JSONSchemaProps, yield func(string) bool) bool {
	if old == nil || next == nil {
		return old == next || yield(path)
	}
	field := narrowedValue(old, next)
	if field != "" && !yield(path+field) {
		return false
	}
	return narrowedProperties(path+".properties", old, next, yield) &&
		narrowedItems(path+".items", old.Items, next.Items, yield) &&
		narrowedRest(path+".additionalProperties", old.AdditionalProperties, next.AdditionalProperties, yield)
}

// narrowedProperties compares the fields that two schemas describe. A further field takes something away if old kept
// unknown fields.
func narrowedProperties(path string, old, next *apiextensionsv1.JSONSchemaProps, yield func(string) bool) bool {
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was, below := old.Properties[name], path+"["+name+"]"
		is, exists := next.Properties[name]
		switch {
		case exists && !narrowedSchema(below, &was, &is, yield), !exists && !yield(below):
			return false
		}
	}
	keepsUnknown := old.XPreserveUnknownFields != nil && *old.XPreserveUnknownFields
	return len(next.Properties) <= len(old.Properties) || !keepsUnknown || yield(path)
}

func narrowedItems(path string, was, is *apiextensionsv1.JSONSchemaPropsOrArray, yield func(string) bool) bool {
	switch {
	case was == nil && is == nil:
		return true
	case was == nil || is == nil || !apiequality.Semantic.DeepEqual(was.JSONSchemas, is.JSONSchemas):
		return yield(path)
	}
	return narrowedSchema(path, was.Schema, is.Schema, yield)
}

func narrowedRest(path string, was, is *apiextensionsv1.JSONSchemaPropsOrBool, yield func(string) bool) bool {
	switch {
	case was == nil && is == nil:
		return true
	case was == nil || is == nil:
		return yield(path)
	case is.Schema == nil && is.Allows || was.Schema == nil && !was.Allows: // any is taken, or none was
		return true
	case is.Schema == nil:
		return yield(path)
	}
	return narrowedSchema(path, was.Schema, is.Schema, yield)
}

// narrowedValue compares the constraints of two schemas on a value itself, without its fields and entries.
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
		s.Description, s.Title = "", ""
		s.Example, s.ExternalDocs = nil, nil
		s.Required, s.Enum = nil, nil
		s.XValidations = nil
		s.Properties, s.Items = nil, nil
		s.AdditionalProperties = nil
	}
	switch {
	case apiequality.Semantic.DeepEqual(a, b):
		return ""
	case !apiequality.Semantic.DeepEqual(a.Default, b.Default):
		return ".default"
	}
	return " (validation)"
}

// relax removes a bound that next does not have, or that is wider in next.
func relax[T int64 | float64](old, next **T, direction T) {
	if *next == nil || *old != nil && (**next-**old)*direction >= 0 {
		*old, *next = nil, nil
	}
}

// loosened returns the first field of an observed definition for which after accepts values that have rejects, or an
// empty string. Fields that after adds do not count. Versions that after adds or serves count, because custom resources
// of such a version pass only its own validation. The validation of a definition protects its operator, which may have
// more permissions than the authors of custom resources.
func loosened(have, after *apiextensionsv1.CustomResourceDefinition) string {
	known := after.DeepCopy()
	for i := range known.Spec.Versions {
		next := &known.Spec.Versions[i]
		old := versionOf(have, next.Name)
		path := "spec.versions[" + next.Name + "]"
		switch {
		case old == nil:
			return path + " (added)"
		case next.Served && !old.Served:
			return path + ".served"
		case next.Storage != old.Storage:
			return path + ".storage"
		case schemaOf(old) != nil && schemaOf(next) != nil:
			dropAdded(schemaOf(old), schemaOf(next))
		}
		next.SelectableFields = old.SelectableFields
	}
	return narrowed(known, have)
}

// dropAdded removes from a schema the fields that another schema does not have.
func dropAdded(old, next *apiextensionsv1.JSONSchemaProps) {
	maps.DeleteFunc(next.Properties, func(name string, _ apiextensionsv1.JSONSchemaProps) bool {
		_, known := old.Properties[name]
		return !known
	})
	for name, below := range next.Properties {
		was := old.Properties[name]
		dropAdded(&was, &below)
		next.Properties[name] = below
	}
	if old.Items != nil && next.Items != nil && old.Items.Schema != nil && next.Items.Schema != nil {
		dropAdded(old.Items.Schema, next.Items.Schema)
	}
	a, b := old.AdditionalProperties, next.AdditionalProperties
	if a != nil && b != nil && a.Schema != nil && b.Schema != nil {
		dropAdded(a.Schema, b.Schema)
	}
}
