// SPDX-License-Identifier: Apache-2.0

package crvalidation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/olmcore/olm/olmcore"
)

// pairsIn returns the number of pairs of entries in the lists of a value. If all is false, lists that are neither sets
// nor maps in their schema are ignored. Short lists are always ignored.
func pairsIn(value any, s *structuralschema.Structural, all bool) (pairs int) {
	if s == nil {
		s = &structuralschema.Structural{}
	}
	switch x := value.(type) {
	case map[string]any:
		for key, entry := range x {
			var below *structuralschema.Structural
			if property, ok := s.Properties[key]; ok {
				below = &property
			} else if s.AdditionalProperties != nil {
				below = s.AdditionalProperties.Structural
			}
			pairs += pairsIn(entry, below, all)
		}
	case []any:
		n := len(x)
		if n > 100 && (all || s.XListType != nil && *s.XListType != "atomic") {
			pairs = n * n / 2
		}
		for _, entry := range x {
			pairs += pairsIn(entry, s.Items, all)
		}
	}
	return pairs
}

// judge validates custom resources against the schema of one version of a definition.
type judge struct {
	apiVersion, kind string
	// problem explains why the schema cannot be used.
	problem string
	// keeps is true if unknown fields are not pruned.
	keeps bool
	// compares is true if rules may compare the entries of any list with each other.
	compares bool
	// structural is nil if there is no schema, or if the API server would not use it to prune or default objects.
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newJudge(crd *apiextensionsv1.CustomResourceDefinition, version string) *judge {
	j := &judge{apiVersion: crd.Spec.Group + "/" + version, kind: crd.Spec.Names.Kind, keeps: crd.Spec.PreserveUnknownFields}
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 || crd.Spec.Versions[i].Schema == nil || crd.Spec.Versions[i].Schema.OpenAPIV3Schema == nil {
		return j
	}
	var props apiextensions.JSONSchemaProps
	// The converted schema shares parts with the original, and defaulting returns these parts.
	from := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.DeepCopy()
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &props, nil); err != nil {
		j.problem = "the schema of version " + version + " cannot be read: " + err.Error()
		return j
	}
	var err error
	if j.schema, _, err = validation.NewSchemaValidator(&props); err != nil {
		j.problem = "the schema of version " + version + " cannot be read: " + err.Error()
		return j
	}
	// An API server rejects such schemas.
	text, err := json.Marshal(from)
	j.compares = err != nil || bytes.Contains(text, []byte(`"uniqueItems":true`))
	structural, err := structuralschema.NewStructural(&props)
	if err != nil || len(structuralschema.ValidateStructural(nil, structural)) > 0 {
		return j
	}
	j.structural = structural
	j.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return j
}

// findings returns the problems of an object, or none if it is valid. judged is false if the limit of the work is
// reached. The object is not changed.
func (j *judge) findings(ctx context.Context, object olmcore.Object, left *limits) (found []string, judged bool) {
	if j.problem != "" {
		return []string{j.problem}, true
	}
	values, err := olmcore.ToMap(object)
	if err != nil {
		return []string{err.Error()}, true
	}
	values["apiVersion"], values["kind"] = j.apiVersion, j.kind
	// Validators panic on some schemas that no API server admitted.
	defer func() {
		if r := recover(); r != nil {
			found, judged = []string{fmt.Sprintf("its schema cannot be used: %v", r)}, true
		}
	}()
	errs, judged := j.validate(ctx, values, left)
	return words(errs, left.findings), judged
}

// validate validates an object as the API server would.
func (j *judge) validate(ctx context.Context, values map[string]any, left *limits) (errs field.ErrorList, judged bool) {
	root := field.NewPath("")
	if j.structural != nil {
		if !j.keeps {
			pruning.Prune(values, j.structural, true)
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(values, j.structural)
		defaulting.Default(values, j.structural)
	}
	left.pairs -= pairsIn(values, j.structural, j.compares)
	if left.pairs < 0 || left.rules <= 0 {
		return nil, false
	}
	if j.schema != nil {
		errs = validation.ValidateCustomResource(root, values, j.schema)
	}
	if j.structural == nil {
		return errs, true
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(root, j.structural, values)...)
	errs = append(errs, objectmeta.Validate(root, values, j.structural, false)...)
	if j.rules != nil && len(errs) == 0 { // rules may assume valid types
		broken, unused := j.rules.Validate(ctx, root, j.structural, values, nil, celconfig.RuntimeCELCostBudget)
		left.rules -= celconfig.RuntimeCELCostBudget - max(unused, 0)
		errs = append(errs, broken...)
	}
	return errs, true
}

// words returns the distinct texts of errors.
func words(errs field.ErrorList, limit int) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, clip(err.Error()))
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if len(texts) > limit {
		texts = append(texts[:limit:limit], fmt.Sprintf("and %d more", len(texts)-limit))
	}
	return texts
}

// clip cuts a text that quotes too much of a custom resource.
func clip(text string) string {
	const limit = 1 << 10
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " ..."
}
