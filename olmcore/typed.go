// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// AddToScheme adds the Go types of all kinds that the library knows, and of their lists, to the scheme of a client or a
// cache. The error is that of an API package.
func AddToScheme(s *runtime.Scheme) error {
	all := runtime.NewSchemeBuilder(
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		v1alpha1.AddToScheme, operatorsv1.AddToScheme, operatorsv2.AddToScheme,
	)
	return all.AddToScheme(s)
}

// Blank returns an empty object for a client to decode into: that of NewObject, but a map for OLM's own kinds. An API
// server stores objects of these that their Go types cannot hold, on which the decoders fail, panic or do not end: one
// of them would keep a typed client from reading any. Typed makes of it what Readers owe.
func Blank(gvk schema.GroupVersionKind) Object {
	if !isOLMs(gvk) {
		return NewObject(gvk)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// BlankList returns an empty list of such objects; Items makes of it what Readers owe. s is a scheme with the types of
// AddToScheme; lists of kinds that it does not know hold maps.
func BlankList(s *runtime.Scheme, gvk schema.GroupVersionKind) ObjectList {
	kind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if !isOLMs(gvk) {
		if o, err := s.New(kind); err == nil {
			if list, ok := o.(ObjectList); ok {
				return list
			}
		}
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(kind)
	return u
}

// ObjectList is any list of Kubernetes API objects. It is the method set of controller-runtime's client.ObjectList.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// isOLMs reports whether a kind is one of OLM's own, which CustomResourceDefinitions define.
func isOLMs(gvk schema.GroupVersionKind) bool { return gvk.Group == v1alpha1.GroupName }

// Typed returns what a Reader owes for an object that a client returned: the API type of a map whose kind the library
// knows, else o itself. The error is an *UnfitError of a map that does not fit its type.
func Typed(o Object) (Object, error) {
	if k, unfit := o.(*keptUnfit); unfit {
		return nil, k.err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u == nil {
		return o, nil
	}
	object := NewObject(u.GroupVersionKind())
	if _, unknown := object.(*unstructured.Unstructured); unknown {
		return o, nil
	}
	if err := FromMap(u.Object, object); err != nil {
		return nil, unfit(u.Object, object, err)
	}
	return object, nil
}

// Kept returns what a cache keeps of an object that a client returned, so that its API type is made once: Typed and
// Items make of it what they make of o.
func Kept(o Object) Object {
	read, err := Typed(o)
	var unfit *UnfitError
	switch {
	case errors.As(err, &unfit):
		return &keptUnfit{unfit.Object, unfit}
	case err != nil:
		return o
	}
	return read
}

// keptUnfit is what fits of an object, with the error of reading it.
type keptUnfit struct {
	Object
	err *UnfitError
}

// DeepCopyObject implements runtime.Object.
func (k *keptUnfit) DeepCopyObject() runtime.Object {
	fits := k.Object.DeepCopyObject().(Object)
	return &keptUnfit{fits, &UnfitError{Object: fits, Err: k.err.Err}}
}

// Fitting takes the result of a read and returns of an *UnfitError the object that it holds, for readers to whom one
// object of others is no reason to stop. Other results stay what they are.
func Fitting[T Object](o T, err error) (T, error) {
	var unfit *UnfitError
	if !errors.As(err, &unfit) {
		return o, err
	}
	return typed[T](unfit.Object)
}

// Items returns what a Reader owes for a list that a client returned, such as a *PodList or an *UnstructuredList: its
// objects, Typed and sorted by namespace and name. An object that does not fit its type is there with what fits:
// whoever may write one object of a list may not keep others from reading it. The error is of something that is no list
// of objects.
func Items(list runtime.Object) ([]Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	objects := make([]Object, len(items))
	for i, item := range items {
		o, ok := item.(Object)
		if !ok {
			return nil, fmt.Errorf("a list holds a %T, which is no object", item)
		}
		if objects[i], err = Fitting(Typed(o)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return objects, nil
}
