// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// AddToScheme adds the Go types of all kinds that the library knows, and of their lists, to the scheme of a client or a
// cache. The types derive from olmcore.Kinds.
func AddToScheme(s *runtime.Scheme) error {
	for _, k := range olmcore.Kinds() {
		list := k.NewList()
		if list == nil {
			continue
		}
		gv := k.GroupVersion()
		s.AddKnownTypeWithName(k.GroupVersionKind, olmcore.NewObject(k.GroupVersionKind))
		s.AddKnownTypeWithName(gv.WithKind(k.Kind+"List"), list)
		metav1.AddToGroupVersion(s, gv)
	}
	return nil
}

// Blank returns an empty object for a client to decode into. It is unstructured for OLM's own kinds and for unknown
// kinds, and has the Go type of the kind otherwise. Pass the decoded object to Typed.
//
// An API server stores objects of OLM's kinds that their Go types cannot hold. The decoders of these types fail, panic
// or do not return, so a single such object would prevent a typed client from listing the others.
func Blank(gvk schema.GroupVersionKind) olmcore.Object {
	if !isOLMs(gvk) {
		return olmcore.NewObject(gvk)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// BlankList returns an empty list for a client to decode into, with items as Blank returns them. s is a scheme with the
// types of AddToScheme. Pass the decoded list to Items.
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

// ObjectList is any list of Kubernetes API objects. It has the methods of client.ObjectList of controller-runtime.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// isOLMs reports whether a kind is one of OLM's own kinds, which CustomResourceDefinitions define.
func isOLMs(gvk schema.GroupVersionKind) bool { return gvk.Group == v1alpha1.GroupName }

// Typed converts an object that a client returned to the form that a Reader returns: an unstructured object of a known
// kind becomes its Go type, and any other object is returned unchanged. The error is an *olmcore.UnfitError if the
// content does not fit the Go type.
func Typed(o olmcore.Object) (olmcore.Object, error) {
	if k, unfit := o.(*keptUnfit); unfit {
		return nil, k.err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u == nil {
		return o, nil
	}
	object := olmcore.NewObject(u.GroupVersionKind())
	if _, unknown := object.(*unstructured.Unstructured); unknown {
		return o, nil
	}
	if err := FromMap(u.Object, object); err != nil {
		return nil, unfit(u.Object, object, err)
	}
	return object, nil
}

// Kept converts an object that a client returned to the form in which a cache should store it, so that each object is
// converted only once. Typed and Items accept the result in place of o.
func Kept(o olmcore.Object) olmcore.Object {
	read, err := Typed(o)
	var unfit *olmcore.UnfitError
	switch {
	case errors.As(err, &unfit):
		return &keptUnfit{unfit.Object, unfit}
	case err != nil:
		return o
	}
	return read
}

// keptUnfit contains the part of an object that fits its Go type, and the error of the conversion.
type keptUnfit struct {
	olmcore.Object
	err *olmcore.UnfitError
}

// DeepCopyObject implements runtime.Object.
func (k *keptUnfit) DeepCopyObject() runtime.Object {
	fits := k.Object.DeepCopyObject().(olmcore.Object)
	return &keptUnfit{fits, &olmcore.UnfitError{Object: fits, Err: k.err.Err}}
}

// Items returns the objects of a list that a client returned, such as a *PodList or an *UnstructuredList. The objects
// are converted as by Typed, and sorted by namespace and name. An object that does not fit its Go type is returned
// without the fields that do not fit, so that one invalid object does not hide the others. The error reports a value
// that is not a list of objects.
func Items(list runtime.Object) ([]olmcore.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	objects := make([]olmcore.Object, len(items))
	for i, item := range items {
		o, ok := item.(olmcore.Object)
		if !ok {
			return nil, fmt.Errorf("a list holds a %T, which is no object", item)
		}
		if objects[i], err = olmcore.Fitting(Typed(o)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(objects, func(a, b olmcore.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return objects, nil
}
