// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/message"
	"github.com/olmcore/olm/olmcore"
)

func (in *Input) create(out *Outcome, o olmcore.Object, reason string) {
	out.Actions = append(out.Actions, olmcore.CreateOf(o, in.cause(reason)))
}

func (in *Input) update(out *Outcome, before, after olmcore.Object) {
	out.Actions = append(out.Actions, olmcore.UpdateOf(before, after, in.cause(ReasonObjectDiffers)))
}

func (in *Input) cause(reason string) olmcore.Cause {
	return olmcore.Cause{Reason: reason, Message: "it unpacks bundle " + message.Clip(in.Lookup.Path)}
}

func (out *Outcome) delete(o olmcore.Object, reason, message string) {
	action := olmcore.DeleteOf(o, olmcore.Cause{Reason: reason, Message: message})
	action.PropagationPolicy = metav1.DeletePropagationBackground
	out.Actions = append(out.Actions, action)
}

// meta is the metadata of an object that unpacks the bundle; all but the
// ConfigMap are owned by it.
func (in *Input) meta() metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: in.Lookup.CatalogSourceRef.Namespace, Name: in.name(), Labels: map[string]string{olmcore.LabelManaged: "true"},
	}
	if in.ConfigMap != nil {
		m.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(in.ConfigMap)}
	}
	return m
}

// mendConfigMap makes sure of the ConfigMap and of its owner, and reports whether it
// can own the rest.
func (in *Input) mendConfigMap(out *Outcome) bool {
	owners := []metav1.OwnerReference{olmcore.OwnerReferenceTo(in.CatalogSource)}
	have := in.ConfigMap
	switch {
	case have == nil:
		cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: in.meta()}
		cm.OwnerReferences = owners
		in.create(out, cm, ReasonObjectAbsent)
		return false
	case have.DeletionTimestamp != nil || have.UID == "":
		return false
	case !in.isOurs(have):
		out.warn(ReasonNameTaken, have, "it is not one that a bundle is unpacked into")
		return false
	}
	if refs, changed := olmcore.AddOwnerReferences(have.OwnerReferences, owners); changed {
		after := have.DeepCopy()
		after.OwnerReferences = refs
		in.update(out, have, after)
	}
	return true
}

// isOurs reports whether a ConfigMap of the bundle's name was made for it.
func (in *Input) isOurs(cm *corev1.ConfigMap) bool {
	return cm.Labels[olmcore.LabelManaged] == "true" || cm.Annotations[bundle.AnnotationSourceImage] == in.Lookup.Path ||
		slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.CatalogSourceKind })
}

// mendPermissions makes sure of the Role, the ServiceAccount and the RoleBinding, and
// reports whether all of them are observed as they should be.
func (in *Input) mendPermissions(out *Outcome) bool {
	role, account, binding := in.mendRole(out), in.mendServiceAccount(out), in.mendRoleBinding(out)
	return role && account && binding
}

func (in *Input) mendRole(out *Outcome) (ready bool) {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{in.name()}, Verbs: []string{"create", "get", "update"},
	}
	have := in.Role
	switch {
	case have == nil:
		in.create(out, &rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: in.meta(),
			Rules: []rbacv1.PolicyRule{rule},
		}, ReasonObjectAbsent)
	case have.DeletionTimestamp != nil:
	case !slices.ContainsFunc(have.Rules, func(r rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(r, rule) }):
		after := have.DeepCopy()
		after.Rules = append(after.Rules, rule)
		in.update(out, have, after)
	default:
		return true
	}
	return false
}

func (in *Input) mendServiceAccount(out *Outcome) (ready bool) {
	if in.ServiceAccount == nil {
		in.create(out, &corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: in.meta(),
		}, ReasonObjectAbsent)
		return false
	}
	return in.ServiceAccount.DeletionTimestamp == nil
}

func (in *Input) mendRoleBinding(out *Outcome) (ready bool) {
	want := &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: in.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: in.name()},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: in.name(), Namespace: in.Lookup.CatalogSourceRef.Namespace}},
	}
	have := in.RoleBinding
	switch {
	case have == nil:
		in.create(out, want, ReasonObjectAbsent)
	case have.DeletionTimestamp != nil:
	case have.RoleRef != want.RoleRef || !apiequality.Semantic.DeepEqual(have.Subjects, want.Subjects):
		out.delete(have, ReasonObjectDiffers, "it binds something else")
	default:
		return true
	}
	return false
}
