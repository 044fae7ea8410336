// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Canonical returns a deep copy of o in the Go type and version that the kind is stored in.
func (k *Kind) Canonical(o olmcore.Object) (n olmcore.Object, err error) {
	if _, untyped := o.(*unstructured.Unstructured); k.isTyped(o) || untyped && k.goType == nil {
		n, err = DeepCopy(o)
	} else {
		n, err = k.converted(o)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s cannot be decoded: %v", olmcore.KeyOf(o), err))
	}
	n.GetObjectKind().SetGroupVersionKind(k.GVK)
	if !k.Namespaced {
		n.SetNamespace("") // the API server clears it
	}
	return n, nil
}

func (k *Kind) converted(o olmcore.Object) (olmcore.Object, error) {
	m, err := olmcore.ToMap(o)
	if err != nil {
		return nil, err
	}
	n := olmcore.NewObject(k.GVK)
	return n, decode.FromMap(m, n)
}

// DeepCopy returns a deep copy of an object. It returns an error for untyped content with Go values that no JSON
// decoder makes, because copying them panics.
func DeepCopy(o olmcore.Object) (n olmcore.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, fmt.Errorf("%v", r)
		}
	}()
	return o.DeepCopyObject().(olmcore.Object), nil
}

// setStatus gives o the status of from, shared.
func (k *Kind) setStatus(o, from olmcore.Object) {
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

// ClearStatus removes o's status.
func (k *Kind) ClearStatus(o olmcore.Object) {
	if k.goType == nil {
		delete(o.(*unstructured.Unstructured).Object, "status")
	} else if k.statusField >= 0 {
		reflect.ValueOf(o).Elem().Field(k.statusField).SetZero()
	}
}

// WithStatus returns current with a copy of the status of from. Everything else is shared with current.
func (k *Kind) WithStatus(current, from olmcore.Object) olmcore.Object {
	if k.goType == nil {
		next := Shallow(current).(*unstructured.Unstructured)
		delete(next.Object, "status")
		if status, ok := from.(*unstructured.Unstructured).Object["status"]; ok {
			next.Object["status"] = runtime.DeepCopyJSONValue(status)
		}
		return next
	}
	part := reflect.New(k.goType).Interface().(olmcore.Object)
	k.setStatus(part, from)
	next := Shallow(current)
	k.setStatus(next, part.DeepCopyObject().(olmcore.Object))
	return next
}

// SameStatus reports whether two objects have the same status.
func (k *Kind) SameStatus(a, b olmcore.Object) bool {
	if k.goType == nil {
		return equality.Semantic.DeepEqual(a.(*unstructured.Unstructured).Object["status"], b.(*unstructured.Unstructured).Object["status"])
	}
	if k.statusField < 0 {
		return true
	}
	x, y := reflect.ValueOf(a).Elem().Field(k.statusField), reflect.ValueOf(b).Elem().Field(k.statusField)
	return equality.Semantic.DeepEqual(x.Interface(), y.Interface())
}

// SameSpec compares everything but type, metadata and, where it is a subresource, status.
func (k *Kind) SameSpec(a, b olmcore.Object) bool {
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

func (k *Kind) sameFields(a, b map[string]any) bool {
	relevant := func(field string) bool {
		return field != "metadata" && field != "apiVersion" && field != "kind" && (field != "status" || !k.HasStatus)
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

// SameMetadata compares what a client can change in metadata.
func SameMetadata(a, b olmcore.Object) bool {
	return maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) && a.GetGenerateName() == b.GetGenerateName()
}

// KeepServerMetadata gives next the metadata that no client can change.
func KeepServerMetadata(next, current olmcore.Object) {
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

// StatusValue returns the status of any object by its Go form; ok is false for types that have none, such as metadata
// only.
func StatusValue(o olmcore.Object) (value any, ok bool) {
	if u, untyped := o.(*unstructured.Unstructured); untyped {
		return u.Object["status"], true
	}
	if field := reflect.ValueOf(o).Elem().FieldByName("Status"); field.IsValid() {
		return field.Interface(), true
	}
	return nil, false
}

// SetStatusValue sets the value that StatusValue returned for an object of the same type.
func SetStatusValue(o olmcore.Object, value any) {
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

func (k *Kind) isTyped(o olmcore.Object) bool {
	return k.goType != nil && reflect.TypeOf(o) == reflect.PointerTo(k.goType)
}

// IsNil reports whether an object is nil or a nil pointer.
func IsNil(o olmcore.Object) bool {
	if o == nil {
		return true
	}
	v := reflect.ValueOf(o)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// InVersion converts as a CRD with the conversion strategy None does: only apiVersion changes.
func (k *Kind) InVersion(o olmcore.Object, version string) olmcore.Object {
	if k.goType != nil || version == "" || version == k.GVK.Version {
		return o
	}
	u := Shallow(o).(*unstructured.Unstructured)
	u.SetGroupVersionKind(k.GroupKind().WithVersion(version))
	return u
}

// Keep gives the next version of an object what an update does not change.
func (k *Kind) Keep(next, current olmcore.Object) {
	KeepServerMetadata(next, current)
	if k.HasStatus {
		k.setStatus(next, current)
	}
	keepAllocated(next, current)
}

// keepAllocated: an update that names no address keeps the one that there is.
func keepAllocated(next, current olmcore.Object) {
	if service, ok := next.(*corev1.Service); ok && service.Spec.ClusterIP == "" && service.Spec.Type != corev1.ServiceTypeExternalName {
		from := current.(*corev1.Service).Spec
		service.Spec.ClusterIP, service.Spec.ClusterIPs = from.ClusterIP, from.ClusterIPs
	}
}

// SameVersion reports whether before is the stored version itself, so that the
// patched object is after: no need to compute a patch.
func (k *Kind) SameVersion(current, before, after olmcore.Object) bool {
	if k.goType != nil {
		return k.isTyped(before) && k.isTyped(after) &&
			(before == current || before.GetUID() == current.GetUID() && before.GetResourceVersion() == current.GetResourceVersion())
	}
	_, ok := after.(*unstructured.Unstructured)
	return ok && before == current
}
