// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Annotations of an OperatorGroup that tune how bundles are unpacked for its
// namespace.
const (
	AnnotationUnpackTimeout       = "operatorframework.io/bundle-unpack-timeout"
	AnnotationUnpackRetryInterval = "operatorframework.io/bundle-unpack-min-retry-interval"
)

func (u *unpacking) create(o olmcore.Object, reason string) {
	u.out.Actions = append(u.out.Actions, olmcore.CreateOf(o, olmcore.Cause{Reason: reason, Message: "it unpacks bundle " + clip(u.in.Lookup.Path)}))
}

func (u *unpacking) update(before, after olmcore.Object) {
	u.out.Actions = append(u.out.Actions, olmcore.UpdateOf(before, after,
		olmcore.Cause{Reason: ReasonUnpackObjectDiffers, Message: "it unpacks bundle " + clip(u.in.Lookup.Path)}))
}

func (u *unpacking) delete(o olmcore.Object, reason, message string) {
	action := olmcore.DeleteOf(o, olmcore.Cause{Reason: reason, Message: message})
	action.PropagationPolicy = metav1.DeletePropagationBackground
	u.out.Actions = append(u.out.Actions, action)
}

// meta is the metadata of an object that unpacks the bundle; all but the
// ConfigMap are owned by it.
func (u *unpacking) meta() metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: u.in.Lookup.CatalogSourceRef.Namespace, Name: u.name, Labels: map[string]string{olmcore.LabelManaged: "true"},
	}
	if u.in.ConfigMap != nil {
		m.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(u.in.ConfigMap)}
	}
	return m
}

// configMap makes sure of the ConfigMap and of its owner; true once its UID can
// own the rest.
func (u *unpacking) configMap() bool {
	owner := olmcore.OwnerReferenceTo(u.in.CatalogSource)
	cm := u.in.ConfigMap
	if cm == nil {
		o := &corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: u.meta()}
		o.OwnerReferences = []metav1.OwnerReference{owner}
		u.create(o, ReasonUnpackObjectAbsent)
		return false
	}
	if cm.DeletionTimestamp != nil || cm.UID == "" {
		return false
	}
	if u.isForeign(cm) {
		u.warn(ReasonUnpackNameTaken, cm, "it is not one that a bundle is unpacked into")
		return false
	}
	if refs, changed := olmcore.AddOwnerReferences(cm.OwnerReferences, []metav1.OwnerReference{owner}); changed {
		after := cm.DeepCopy()
		after.OwnerReferences = refs
		u.update(cm, after)
	}
	return true
}

// isForeign reports a ConfigMap of the bundle's name that nobody made for it.
func (u *unpacking) isForeign(cm *corev1.ConfigMap) bool {
	return cm.Labels[olmcore.LabelManaged] != "true" && cm.Annotations[annotationSourceImage] != u.in.Lookup.Path &&
		!slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.CatalogSourceKind })
}

// permissions makes sure of the Role, the ServiceAccount and the RoleBinding;
// true once all of them are observed as they should be.
func (u *unpacking) permissions() bool {
	before := len(u.out.Actions)
	ready := u.role()
	if sa := u.in.ServiceAccount; sa == nil {
		u.create(&corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: u.meta()}, ReasonUnpackObjectAbsent)
	} else if sa.DeletionTimestamp != nil {
		ready = false
	}
	return u.roleBinding() && ready && len(u.out.Actions) == before
}

func (u *unpacking) role() bool {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{u.name}, Verbs: []string{"create", "get", "update"},
	}
	have := u.in.Role
	switch {
	case have == nil:
		u.create(&rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: u.meta(),
			Rules: []rbacv1.PolicyRule{rule}}, ReasonUnpackObjectAbsent)
	case have.DeletionTimestamp != nil:
		return false
	case !slices.ContainsFunc(have.Rules, func(r rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(r, rule) }):
		after := have.DeepCopy()
		after.Rules = append(after.Rules, rule)
		u.update(have, after)
	}
	return true
}

func (u *unpacking) roleBinding() bool {
	namespace := u.in.Lookup.CatalogSourceRef.Namespace
	want := &rbacv1.RoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"), ObjectMeta: u.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: u.name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: u.name, Namespace: namespace}},
	}
	have := u.in.RoleBinding
	switch {
	case have == nil:
		u.create(want, ReasonUnpackObjectAbsent)
	case have.DeletionTimestamp != nil:
		return false
	case have.RoleRef != want.RoleRef || !apiequality.Semantic.DeepEqual(have.Subjects, want.Subjects):
		u.delete(have, ReasonUnpackObjectDiffers, "it binds something else")
		return false
	}
	return true
}

// timeout is the bound of one try; ok is false when there is none.
func (u *unpacking) timeout() (d time.Duration, ok bool) {
	if d, ok = u.setting(AnnotationUnpackTimeout); ok && d >= 0 {
		return d, d > 0
	}
	return or(u.in.Config.UnpackTimeout, DefaultUnpackTimeout), !u.in.Config.UnpackTimeoutDisabled
}

func (u *unpacking) retryInterval() time.Duration {
	if d, ok := u.setting(AnnotationUnpackRetryInterval); ok && d > 0 {
		return d
	}
	return or(u.in.Config.UnpackRetryInterval, DefaultUnpackRetryInterval)
}

// setting reads a duration from the namespace's OperatorGroup.
func (u *unpacking) setting(annotation string) (time.Duration, bool) {
	var group *operatorsv1.OperatorGroup
	for _, g := range u.in.OperatorGroups {
		if g == nil {
			continue
		}
		if group != nil {
			return 0, false // nothing is installed there until one of them goes
		}
		group = g
	}
	if group == nil {
		return 0, false
	}
	text, ok := group.Annotations[annotation]
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		word := "timeout"
		if annotation == AnnotationUnpackRetryInterval {
			word = "retry"
		}
		u.warn(ReasonUnpackSettingInvalid, group, "failed to parse unpack %s annotation(%s: %s): %s", word, annotation, text, err)
		return 0, false
	}
	return d, true
}
