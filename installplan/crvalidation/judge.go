// SPDX-License-Identifier: Apache-2.0

package crvalidation

import (
	"context"
	"fmt"
	"slices"

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

// judge holds resources against the schema of one version of a definition.
type judge struct {
	apiVersion, kind string
	// problem is why the schema cannot be used.
	problem string
	// keeps: unknown fields are not pruned.
	keeps bool
	// structural is nil where there is no schema, or one that the API server would
	// neither prune nor default by.
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
	// The conversion shares what it does not change, and defaulting hands it out.
	from := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.DeepCopy()
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &props, nil); err != nil {
		j.problem = "its schema cannot be read: " + err.Error()
		return j
	}
	var err error
	if j.schema, _, err = validation.NewSchemaValidator(&props); err != nil {
		j.problem = "its schema cannot be read: " + err.Error()
		return j
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil || len(structuralschema.ValidateStructural(nil, structural)) > 0 {
		return j
	}
	j.structural = structural
	j.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return j
}

// findings are what is wrong with an object, at most limit things; nothing when
// it is valid. The object is not changed.
func (j *judge) findings(ctx context.Context, object olmcore.Object, limit int) (found []string) {
	if j.problem != "" {
		return []string{j.problem}
	}
	values, err := olmcore.ToMap(object)
	if err != nil {
		return []string{err.Error()}
	}
	values["apiVersion"], values["kind"] = j.apiVersion, j.kind
	// Validators of schemas that nobody admitted panic on some of them.
	defer func() {
		if r := recover(); r != nil {
			found = []string{fmt.Sprintf("its schema cannot be used: %v", r)}
		}
	}()
	return words(j.validate(ctx, values), limit)
}

// validate judges an object as the API server would see it.
func (j *judge) validate(ctx context.Context, values map[string]any) field.ErrorList {
	root := field.NewPath("")
	if j.structural != nil {
		if !j.keeps {
			pruning.Prune(values, j.structural, true)
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(values, j.structural)
		defaulting.Default(values, j.structural)
	}
	var errs field.ErrorList
	if j.schema != nil {
		errs = validation.ValidateCustomResource(root, values, j.schema)
	}
	if j.structural == nil {
		return errs
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(root, j.structural, values)...)
	errs = append(errs, objectmeta.Validate(root, values, j.structural, false)...)
	if j.rules != nil && len(errs) == 0 { // rules may count on the types
		broken, _ := j.rules.Validate(ctx, root, j.structural, values, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs
}

// words are errors as text, each once.
func words(errs field.ErrorList, limit int) []string {
	var texts []string
	for _, err := range errs {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	if len(texts) > limit {
		texts = append(texts[:limit:limit], fmt.Sprintf("and %d more", len(texts)-limit))
	}
	return texts
}
