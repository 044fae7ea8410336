// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// EncodeStep returns the text of a step's manifest for an object of a bundle. If bare is true, the text omits
// apiVersion and kind, as in the manifests that OLM writes for permission objects.
type EncodeStep = func(object olmcore.Object, bare bool) (string, error)

// Steps returns the steps that install one operator into a namespace. The error says why the bundle cannot be
// installed. Steps does not change the operator. The steps describe, in this order:
//   - the ClusterServiceVersion of the operator
//   - the other objects of its bundle, in their order
//   - the permission objects of the ClusterServiceVersion
func Steps(o olmcore.Operator, namespace string, of EncodeStep) (steps []*v1alpha1.Step, err error) {
	defer func() {
		if err != nil {
			steps, err = nil, About(o.Name, err)
		}
	}()
	if o.Bundle.Invalid != "" {
		return nil, errors.New(o.Bundle.Invalid)
	}
	if o.Bundle.Objects, err = identifiedAll(o.Bundle.Objects); err != nil {
		return nil, err
	}
	csv, err := Version(o, namespace)
	if err != nil {
		return nil, err
	}
	permissions, err := olmcore.PermissionObjects(csv)
	if err != nil {
		return nil, err
	}
	objects := []olmcore.Object{csv}
	for _, object := range o.Bundle.Objects {
		if olmcore.GVKOf(object).Kind != kinds.CSV {
			objects = append(objects, object)
		}
	}
	described := len(objects)
	for i, object := range append(objects, permissions...) {
		text, err := of(object, i >= described)
		if err != nil {
			return nil, err
		}
		step, err := NewStep(o.Name, object, text, o.Catalog)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// messageOfOLM is an error with the text of OLM.
type messageOfOLM string

// Error returns the message.
func (m messageOfOLM) Error() string { return string(m) }

// About returns err with the prefix "operator NAME: ". If err wraps an error whose message is copied from OLM, About
// returns that error without the prefix, because the message already names the ClusterServiceVersion.
func About(operator string, err error) error {
	var ofOLM messageOfOLM
	if errors.As(err, &ofOLM) {
		return ofOLM
	}
	return fmt.Errorf("operator %s: %w", operator, err)
}

// Version returns the ClusterServiceVersion of an operator's bundle as it is created in the namespace. The error says
// why the bundle cannot be installed.
func Version(o olmcore.Operator, namespace string) (*v1alpha1.ClusterServiceVersion, error) {
	var found *v1alpha1.ClusterServiceVersion
	for i, object := range o.Bundle.Objects {
		if olmcore.KeyOf(object).Kind == "" {
			return nil, fmt.Errorf("object %d of its bundle is nil or has no kind", i)
		}
		if olmcore.GVKOf(object).Kind != kinds.CSV {
			continue
		}
		csv, ok := object.(*v1alpha1.ClusterServiceVersion)
		switch {
		case !ok:
			return nil, fmt.Errorf("its ClusterServiceVersion is a %T", object)
		case found != nil:
			return nil, errors.New("its bundle has more than one ClusterServiceVersion")
		}
		found = csv
	}
	switch {
	case len(o.Bundle.Objects) == 0:
		return nil, errors.New("its bundle has neither objects nor an image")
	case found == nil:
		return nil, errors.New("its bundle has no ClusterServiceVersion")
	case found.APIVersion == "" && found.Kind != "":
		return nil, messageOfOLM("bundle CSV " + found.Name + " missing APIVersion")
	case found.Name != o.Name:
		return nil, fmt.Errorf("its bundle's ClusterServiceVersion is named %q", found.Name)
	}
	properties, err := EncodeProperties(o.Bundle.Properties)
	if err != nil {
		return nil, fmt.Errorf("failed to load bundle properties for %q: %w", o.Name, err)
	}
	csv := found.DeepCopy()
	csv.Namespace = namespace
	csv.Spec.Replaces = o.Replaces
	csv.Annotations, _ = olmcore.MergeMaps(csv.Annotations, map[string]string{olmcore.AnnotationProperties: properties})
	csv.Status = v1alpha1.ClusterServiceVersionStatus{}
	return csv, nil
}

// properties is the form of properties in annotations and lookups.
type properties struct {
	Properties []olmcore.Property `json:"properties"`
}

// EncodeProperties returns properties as JSON text. OLM writes this text to annotations and lookups.
func EncodeProperties(list []olmcore.Property) (string, error) {
	if len(list) == 0 {
		return "{}", nil
	}
	data, err := json.Marshal(properties{list})
	return string(data), err
}

// DecodeProperties returns the properties in a text that EncodeProperties or OLM created. It returns nil for an empty
// text.
func DecodeProperties(text string) ([]olmcore.Property, error) {
	if text == "" {
		return nil, nil
	}
	var list properties
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}

// Literal encodes the object as the manifest of its step. An unstructured object may contain values of any Go type that
// can be encoded.
func Literal(object olmcore.Object, bare bool) (text string, err error) {
	var values map[string]any
	if u, untyped := object.(*unstructured.Unstructured); untyped {
		data, err := json.Marshal(u.Object)
		if err == nil {
			err = utiljson.Unmarshal(data, &values)
		}
		if err != nil {
			return "", fmt.Errorf("encode %s: %w", olmcore.KeyOf(object), err)
		}
	} else if values, err = olmcore.ToMap(object); err != nil {
		return "", err
	}
	if bare {
		delete(values, "apiVersion")
		delete(values, "kind")
	}
	return EncodeManifest(values)
}

// NewStep returns the step of an object, with the status Unknown. resolving is the name of the ClusterServiceVersion
// that the step belongs to. text is the manifest, and catalog is the CatalogSource. It returns an error if the object
// has no name.
func NewStep(resolving string, object olmcore.Object, text string, catalog types.NamespacedName) (*v1alpha1.Step, error) {
	gvk, name := olmcore.GVKOf(object), cmp.Or(object.GetName(), object.GetGenerateName())
	if name == "" {
		return nil, fmt.Errorf("a %s of its bundle has no name", gvk.Kind)
	}
	if gvk.Kind == "Secret" {
		gvk.Kind = kinds.BundleSecret
	}
	return &v1alpha1.Step{Resolving: resolving, Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: name, Manifest: text,
		CatalogSource: catalog.Name, CatalogSourceNamespace: catalog.Namespace,
	}}, nil
}

func identifiedAll(objects []olmcore.Object) ([]olmcore.Object, error) {
	all := make([]olmcore.Object, len(objects))
	for i, object := range objects {
		var err error
		if all[i], err = identified(object); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// identified returns an object of a bundle as its Go type, with an apiVersion. A ClusterServiceVersion without
// apiVersion is returned as it is. Version refuses it, as OLM does. The error says that the object has no apiVersion or
// cannot be decoded.
//
// Differs: OLM applies the object as the kind that it names, regardless of its group.
func identified(object olmcore.Object) (olmcore.Object, error) {
	u, untyped := object.(*unstructured.Unstructured)
	if !untyped || u == nil || u.GetKind() == "" {
		return object, nil
	}
	apiVersion := apiVersionOf(u.GetAPIVersion(), u.GetKind())
	if apiVersion == "" {
		return nil, fmt.Errorf("%s %s of its bundle has no apiVersion", u.GetKind(), u.GetName())
	}
	_, known := kinds.Known[u.GetKind()]
	if !known || apiVersion == u.GetAPIVersion() && u.GetKind() != kinds.CSV {
		return object, nil // it may have fields that the Go type does not have
	}
	values := maps.Clone(u.Object)
	values["apiVersion"] = apiVersion
	data, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", olmcore.KeyOf(object), err)
	}
	decoded, err := decode.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s %s of its bundle cannot be decoded: %w", u.GetKind(), u.GetName(), err)
	}
	csv, ok := decoded.(*v1alpha1.ClusterServiceVersion)
	if ok && u.GetAPIVersion() == "" {
		csv.APIVersion = ""
	}
	return decoded, nil
}
