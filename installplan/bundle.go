// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/olmcore"
)

const annotationProperties = "operatorframework.io/properties"

// StepsFromBundle returns the steps that install one operator into a namespace:
// its ClusterServiceVersion, the other objects of its bundle in their order, and
// the permission objects that the ClusterServiceVersion asks for. Every step is
// Unknown and resolves to the operator. A bundle that cannot be installed, or
// whose objects are not there, gives no steps and a Diagnostic that says why. The
// operator is not changed. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, NewStepsFromBundle.
func StepsFromBundle(o olmcore.Operator, namespace string) ([]*v1alpha1.Step, []olmcore.Diagnostic, error) {
	return bundleSteps(o, namespace, literalManifest)
}

// manifestOf returns the manifest of a step for an object of a bundle; bare leaves its
// kind out, as OLM does for the permission objects.
type manifestOf func(object olmcore.Object, bare bool) (string, error)

// bundleSteps is StepsFromBundle with manifests of the caller's choice.
func bundleSteps(o olmcore.Operator, namespace string, manifest manifestOf) ([]*v1alpha1.Step, []olmcore.Diagnostic, error) {
	switch {
	case o.Name == "":
		return nil, nil, &olmcore.InputError{Field: "Operator.Name", Problem: "is empty"}
	case namespace == "":
		return nil, nil, &olmcore.InputError{Field: "namespace", Problem: "is empty"}
	}
	if len(o.Bundle.Objects) == 0 {
		if o.Bundle.Image == "" {
			return nil, []olmcore.Diagnostic{*invalidBundle(o.Name, "its bundle has neither objects nor an image")}, nil
		}
		return nil, []olmcore.Diagnostic{{
			Severity: olmcore.Warning, Reason: ReasonBundleNotUnpacked,
			Message: fmt.Sprintf("operator %s: the objects of bundle image %s are not known", o.Name, o.Bundle.Image),
		}}, nil
	}
	csv, problem := bundleCSV(o, namespace)
	if problem != nil {
		return nil, []olmcore.Diagnostic{*problem}, nil
	}
	b := stepBuilder{operator: o, manifest: manifest}
	b.add(csv, false)
	for _, object := range o.Bundle.Objects {
		if olmcore.GVKOf(object).Kind != kindCSV {
			b.add(object, false)
		}
	}
	permissions, err := PermissionObjects(csv)
	if err != nil {
		return nil, []olmcore.Diagnostic{*invalidBundle(o.Name, "%s", err)}, nil
	}
	for _, object := range permissions {
		b.add(object, true)
	}
	if b.err != nil {
		return nil, []olmcore.Diagnostic{*invalidBundle(o.Name, "%s", b.err)}, nil
	}
	return b.steps, nil, nil
}

// bundleCSV returns the bundle's ClusterServiceVersion as it is to be created.
func bundleCSV(o olmcore.Operator, namespace string) (*v1alpha1.ClusterServiceVersion, *olmcore.Diagnostic) {
	var found *v1alpha1.ClusterServiceVersion
	for i, object := range o.Bundle.Objects {
		if olmcore.KeyOf(object) == (olmcore.Key{}) {
			return nil, invalidBundle(o.Name, "object %d of its bundle is nil or has no kind", i)
		}
		if olmcore.GVKOf(object).Kind != kindCSV {
			continue
		}
		csv, ok := object.(*v1alpha1.ClusterServiceVersion)
		switch {
		case !ok:
			return nil, invalidBundle(o.Name, "its ClusterServiceVersion is a %T", object)
		case found != nil:
			return nil, invalidBundle(o.Name, "its bundle has more than one ClusterServiceVersion")
		}
		found = csv
	}
	switch {
	case found == nil:
		return nil, invalidBundle(o.Name, "its bundle has no ClusterServiceVersion")
	case found.APIVersion == "" && found.Kind != "":
		return nil, invalidBundle(o.Name, "bundle CSV %s missing APIVersion", found.Name)
	case found.Name != o.Name:
		return nil, invalidBundle(o.Name, "its bundle's ClusterServiceVersion is named %q", found.Name)
	}
	properties, err := propertiesOf(o.Bundle.Properties)
	if err != nil {
		return nil, invalidBundle(o.Name, "failed to load bundle properties for %q: %s", o.Name, err)
	}
	csv := found.DeepCopy()
	csv.Namespace = namespace
	csv.Spec.Replaces = o.Replaces
	csv.Annotations, _ = olmcore.MergeLabels(csv.Annotations, map[string]string{annotationProperties: properties})
	csv.Status = v1alpha1.ClusterServiceVersionStatus{}
	return csv, nil
}

func propertiesOf(properties []olmcore.Property) (string, error) {
	if len(properties) == 0 {
		return "{}", nil
	}
	data, err := json.Marshal(struct {
		Properties []olmcore.Property `json:"properties"`
	}{properties})
	return string(data), err
}

type stepBuilder struct {
	operator olmcore.Operator
	manifest manifestOf
	steps    []*v1alpha1.Step
	err      error
}

// add appends the step of an object.
func (b *stepBuilder) add(object olmcore.Object, bare bool) {
	text, err := b.manifest(object, bare)
	if err != nil {
		b.err = err
		return
	}
	step, err := newStep(b.operator.Name, object, text)
	if err != nil {
		b.err = err
		return
	}
	step.Resource.CatalogSource, step.Resource.CatalogSourceNamespace = b.operator.Catalog.Name, b.operator.Catalog.Namespace
	b.steps = append(b.steps, step)
}

// literalManifest is the object itself.
func literalManifest(object olmcore.Object, bare bool) (string, error) {
	values, err := valuesOf(object)
	if err != nil {
		return "", err
	}
	if bare {
		delete(values, "apiVersion")
		delete(values, "kind")
	}
	return encode(values)
}

// valuesOf is olmcore.ToMap for objects that a caller made by hand, whose
// untyped values may be of any Go type that encodes.
func valuesOf(object olmcore.Object) (map[string]any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return olmcore.ToMap(object)
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", olmcore.KeyOf(object), err)
	}
	var values map[string]any
	err = utiljson.Unmarshal(data, &values)
	return values, err
}

func newStep(resolving string, object olmcore.Object, manifest string) (*v1alpha1.Step, error) {
	gvk := olmcore.GVKOf(object)
	kind := gvk.Kind
	if kind == "Secret" {
		kind = kindBundleSecret
	}
	name := or(object.GetName(), object.GetGenerateName())
	if name == "" {
		return nil, fmt.Errorf("a %s of its bundle has no name", gvk.Kind)
	}
	return &v1alpha1.Step{
		Resolving: resolving, Status: v1alpha1.StepStatusUnknown,
		Resource: v1alpha1.StepResource{Group: gvk.Group, Version: gvk.Version, Kind: kind, Name: name, Manifest: manifest},
	}, nil
}

// classes order the steps of a new plan.
var classes = map[string]int{
	kindCSV: 0, kindCRD: 1, "ServiceAccount": 2, kindPullSecret: 3, kindBundleSecret: 3, "ConfigMap": 4,
	"Role": 5, "ClusterRole": 5, "RoleBinding": 6, "ClusterRoleBinding": 6, "Service": 7, kindSubscription: 9,
}

func classOf(s *v1alpha1.Step) int {
	if class, ok := classes[s.Resource.Kind]; ok {
		return class
	}
	return 8
}

// orderSteps sorts the steps of a new plan by class and bundle; within a bundle
// their order stays.
func orderSteps(steps []*v1alpha1.Step) {
	slices.SortStableFunc(steps, func(a, b *v1alpha1.Step) int {
		return cmp.Or(cmp.Compare(classOf(a), classOf(b)), strings.Compare(a.Resolving, b.Resolving))
	})
}
