// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// canonical returns a deep copy of o in the Go type and version that the kind is stored in.
func (k *kind) canonical(o olmcore.Object) (n olmcore.Object, err error) {
	if _, untyped := o.(*unstructured.Unstructured); k.isTyped(o) || untyped && k.goType == nil {
		n, err = deepCopy(o)
	} else {
		n, err = k.converted(o)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s cannot be decoded: %v", olmcore.KeyOf(o), err))
	}
	n.GetObjectKind().SetGroupVersionKind(k.gvk)
	if !k.namespaced {
		n.SetNamespace("") // the API server clears it
	}
	return n, nil
}

func (k *kind) converted(o olmcore.Object) (olmcore.Object, error) {
	m, err := olmcore.ToMap(o)
	if err != nil {
		return nil, err
	}
	n := olmcore.NewObject(k.gvk)
	return n, decode.FromMap(m, n)
}

// deepCopy refuses untyped content with Go values that no JSON decoder makes: copying them panics.
func deepCopy(o olmcore.Object) (n olmcore.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, fmt.Errorf("%v", r)
		}
	}()
	return o.DeepCopyObject().(olmcore.Object), nil
}

// setStatus gives o the status of from, shared.
func (k *kind) setStatus(o, from olmcore.Object) {
	if k.goType != nil {
		if k.statusField >= 0 {
			reflect.ValueOf(o).Elem().Field(k.statusField).Set(reflect.ValueOf(from).Elem().Field(k.statusField))
		}
		return
	}
	to := o.(*unstructured.Unstructured).Object
	if status, ok := from.(*unstructured.Unstructured).Object["status"]; ok {
		to["status"] = status
	} else {
		delete(to, "status")
	}
}

// clearStatus removes o's status.
func (k *kind) clearStatus(o olmcore.Object) {
	if k.goType == nil {
		delete(o.(*unstructured.Unstructured).Object, "status")
	} else if k.statusField >= 0 {
		reflect.ValueOf(o).Elem().Field(k.statusField).SetZero()
	}
}

// withStatus returns current with a copy of the status of from. Everything else is shared with current.
func (k *kind) withStatus(current, from olmcore.Object) olmcore.Object {
	if k.goType == nil {
		next := shallow(current).(*unstructured.Unstructured)
		delete(next.Object, "status")
		if status, ok := from.(*unstructured.Unstructured).Object["status"]; ok {
			next.Object["status"] = runtime.DeepCopyJSONValue(status)
		}
		return next
	}
	part := reflect.New(k.goType).Interface().(olmcore.Object)
	k.setStatus(part, from)
	next := shallow(current)
	k.setStatus(next, part.DeepCopyObject().(olmcore.Object))
	return next
}

func (k *kind) sameStatus(a, b olmcore.Object) bool {
	if k.goType == nil {
		return equality.Semantic.DeepEqual(a.(*unstructured.Unstructured).Object["status"], b.(*unstructured.Unstructured).Object["status"])
	}
	if k.statusField < 0 {
		return true
	}
	x, y := reflect.ValueOf(a).Elem().Field(k.statusField), reflect.ValueOf(b).Elem().Field(k.statusField)
	return equality.Semantic.DeepEqual(x.Interface(), y.Interface())
}

// sameSpec compares everything but type, metadata and, where it is a subresource, status.
func (k *kind) sameSpec(a, b olmcore.Object) bool {
	if k.goType == nil {
		return k.sameFields(a.(*unstructured.Unstructured).Object, b.(*unstructured.Unstructured).Object)
	}
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range k.goType.NumField() {
		if k.goType.Field(i).Anonymous || i == k.statusField {
			continue
		}
		if !equality.Semantic.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			return false
		}
	}
	return true
}

func (k *kind) sameFields(a, b map[string]any) bool {
	relevant := func(field string) bool {
		return field != "metadata" && field != "apiVersion" && field != "kind" && (field != "status" || !k.status)
	}
	for field, value := range a {
		other, ok := b[field]
		if relevant(field) && (!ok || !equality.Semantic.DeepEqual(value, other)) {
			return false
		}
	}
	for field := range b {
		if _, ok := a[field]; relevant(field) && !ok {
			return false
		}
	}
	return true
}

// sameMetadata compares what a client can change in metadata.
func sameMetadata(a, b olmcore.Object) bool {
	return maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) && a.GetGenerateName() == b.GetGenerateName()
}

// keepServerMetadata gives next the metadata that no client can change.
func keepServerMetadata(next, current olmcore.Object) {
	next.SetName(current.GetName())
	next.SetNamespace(current.GetNamespace())
	next.SetUID(current.GetUID())
	next.SetResourceVersion(current.GetResourceVersion())
	next.SetGeneration(current.GetGeneration())
	next.SetCreationTimestamp(current.GetCreationTimestamp())
	next.SetDeletionTimestamp(copyTime(current.GetDeletionTimestamp()))
	next.SetDeletionGracePeriodSeconds(current.GetDeletionGracePeriodSeconds())
	next.SetManagedFields(nil)
	next.SetSelfLink("")
}

func copyTime(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return new(*t)
}

// statusValue returns the status of any object by its Go form; ok is false for types that have none, such as metadata
// only.
func statusValue(o olmcore.Object) (value any, ok bool) {
	if u, untyped := o.(*unstructured.Unstructured); untyped {
		return u.Object["status"], true
	}
	if field := reflect.ValueOf(o).Elem().FieldByName("Status"); field.IsValid() {
		return field.Interface(), true
	}
	return nil, false
}

// setStatusValue sets what statusValue returned for an object of the same type.
func setStatusValue(o olmcore.Object, value any) {
	if u, untyped := o.(*unstructured.Unstructured); untyped {
		if u.Object == nil {
			return
		}
		if value == nil {
			delete(u.Object, "status")
		} else {
			u.Object["status"] = value
		}
		return
	}
	field := reflect.ValueOf(o).Elem().FieldByName("Status")
	if v := reflect.ValueOf(value); field.IsValid() && v.IsValid() && v.Type() == field.Type() {
		field.Set(v)
	}
}

func (k *kind) isTyped(o olmcore.Object) bool {
	return k.goType != nil && reflect.TypeOf(o) == reflect.PointerTo(k.goType)
}

func isNil(o olmcore.Object) bool {
	if o == nil {
		return true
	}
	v := reflect.ValueOf(o)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
