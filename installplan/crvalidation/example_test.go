// SPDX-License-Identifier: Apache-2.0

package crvalidation_test

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore"
)

// A new version of a definition allows fewer replicas than a resource has.
func ExampleJudge() {
	version := func(maximum float64) *apiextensionsv1.CustomResourceDefinition {
		replicas := apiextensionsv1.JSONSchemaProps{Type: "integer", Maximum: &maximum}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name, crd.Spec.Group, crd.Spec.Names.Kind = "crons.example.com", "example.com", "Cron"
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": replicas}},
				},
			}}}}
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		return crd
	}
	resource := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Cron", "metadata": map[string]any{"namespace": "ops", "name": "mine"},
		"spec": map[string]any{"replicas": int64(10)},
	}}
	reader, err := olmcore.NewSnapshot([]olmcore.Object{resource}, olmcore.Everything)
	if err != nil {
		fmt.Println(err)
		return
	}
	change := installplan.SchemaChange{Before: version(10), After: version(9), Versions: []string{"v1"}}
	verdicts, err := crvalidation.Judge(context.Background(), reader, []installplan.SchemaChange{change})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range verdicts {
		fmt.Println(v.Version, v.Namespace+"/"+v.Name, v.New)
	}
	// Output:
	// v1 ops/mine [[].spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9]
}
