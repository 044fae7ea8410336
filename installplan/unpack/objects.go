// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// target is a bundle image and the objects that unpack it.
type target struct {
	image string
	// namespace and name are those of all objects but later Jobs.
	namespace, name string
	catalog         *v1alpha1.CatalogSource
	// owners are the ConfigMap, which owns all other objects; none before it exists.
	owners []metav1.OwnerReference
	config installplan.Config
}

func targetOf(in Input) target {
	t := target{
		image: in.Lookup.Path, namespace: in.Lookup.CatalogSourceRef.Namespace, name: bundle.Name(in.Lookup.Path),
		catalog: in.CatalogSource, config: in.Config,
	}
	if in.ConfigMap != nil {
		t.owners = []metav1.OwnerReference{olmcore.OwnerReferenceTo(in.ConfigMap)}
	}
	return t
}

func (t target) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: t.namespace, Name: t.name, Labels: map[string]string{olmcore.LabelManaged: "true"}, OwnerReferences: slices.Clone(t.owners),
	}
}

func (t target) create(o olmcore.Object, reason string) olmcore.Action {
	return olmcore.CreateOf(o, olmcore.Cause{Reason: reason, Message: "it unpacks bundle " + report.Clip(t.image)})
}

func (t target) update(before, after olmcore.Object) olmcore.Action {
	return olmcore.UpdateOf(before, after, olmcore.Cause{Reason: ReasonObjectDiffers, Message: "it unpacks bundle " + report.Clip(t.image)})
}

func deleteOf(o olmcore.Object, reason, message string) olmcore.Action {
	action := olmcore.DeleteOf(o, olmcore.Cause{Reason: reason, Message: message})
	action.PropagationPolicy = metav1.DeletePropagationBackground
	return action
}

// configMap returns what the ConfigMap or its owner lacks, nil for nothing, and whether it can own the rest. One that
// was not made for the bundle is left alone.
func (t target) configMap(have *corev1.ConfigMap) (lacks olmcore.Action, owns bool) {
	owners := []metav1.OwnerReference{olmcore.OwnerReferenceTo(t.catalog)}
	if have == nil {
		cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: t.meta()}
		cm.OwnerReferences = owners
		return t.create(cm, ReasonObjectAbsent), false
	}
	if have.DeletionTimestamp != nil || have.UID == "" || t.isUnmanaged(have) {
		return nil, false
	}
	refs, changed := olmcore.AddOwnerReferences(have.OwnerReferences, owners)
	if !changed {
		return nil, true
	}
	after := have.DeepCopy()
	after.OwnerReferences = refs
	return t.update(have, after), true
}

// isUnmanaged reports a ConfigMap of the bundle's name that was not made for it.
func (t target) isUnmanaged(cm *corev1.ConfigMap) bool {
	return cm.DeletionTimestamp == nil && cm.UID != "" &&
		cm.Labels[olmcore.LabelManaged] != "true" && cm.Annotations[bundle.AnnotationSourceImage] != t.image &&
		!slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.CatalogSourceKind })
}

// permissions returns what the Role, the ServiceAccount and the RoleBinding lack, and whether all of them are observed
// as they should be.
func (t target) permissions(in Input) (lacks []olmcore.Action, ready bool) {
	ready = true
	for _, need := range [...]func(Input) (olmcore.Action, bool){t.role, t.serviceAccount, t.roleBinding} {
		action, going := need(in)
		if action != nil {
			lacks = append(lacks, action)
		}
		ready = ready && action == nil && !going
	}
	return lacks, ready
}

func (t target) role(in Input) (lacks olmcore.Action, going bool) {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{t.name}, Verbs: []string{"create", "get", "update"},
	}
	have := in.Role
	switch {
	case have == nil:
		return t.create(&rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: t.meta(), Rules: []rbacv1.PolicyRule{rule}}, ReasonObjectAbsent), false
	case have.DeletionTimestamp != nil:
		return nil, true
	case slices.ContainsFunc(have.Rules, func(r rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(r, rule) }):
		return nil, false
	}
	after := have.DeepCopy()
	after.Rules = append(after.Rules, rule)
	return t.update(have, after), false
}

func (t target) serviceAccount(in Input) (lacks olmcore.Action, going bool) {
	if in.ServiceAccount != nil {
		return nil, in.ServiceAccount.DeletionTimestamp != nil
	}
	account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: t.meta()}
	return t.create(account, ReasonObjectAbsent), false
}

func (t target) roleBinding(in Input) (lacks olmcore.Action, going bool) {
	want := &rbacv1.RoleBinding{
		TypeMeta: rbacType("RoleBinding"), ObjectMeta: t.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: t.name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: t.name, Namespace: t.namespace}},
	}
	have := in.RoleBinding
	switch {
	case have == nil:
		return t.create(want, ReasonObjectAbsent), false
	case have.DeletionTimestamp != nil:
		return nil, true
	case have.RoleRef != want.RoleRef || !apiequality.Semantic.DeepEqual(have.Subjects, want.Subjects):
		return deleteOf(have, ReasonObjectDiffers, "it binds something else"), false
	}
	return nil, false
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
