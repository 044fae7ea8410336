// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	// owners are the ConfigMap, which owns all other objects, or its own owner before it exists.
	owners []metav1.OwnerReference
	config installplan.Config
}

func targetOf(in Input) target {
	owner := olmcore.Object(in.CatalogSource)
	if in.ConfigMap != nil {
		owner = in.ConfigMap
	}
	return target{
		image: in.Lookup.Path, namespace: in.Lookup.CatalogSourceRef.Namespace, name: bundle.Name(in.Lookup.Path),
		catalog: in.CatalogSource, config: in.Config, owners: []metav1.OwnerReference{olmcore.OwnerReferenceTo(owner)},
	}
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

// configMap returns what the ConfigMap or its owner lacks, nil for nothing, and whether it can own the rest. One that was
// not made for the bundle is left alone.
func (t target) configMap(have *corev1.ConfigMap) (lacks olmcore.Action, owns bool) {
	switch {
	case have == nil:
		return t.create(&corev1.ConfigMap{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ConfigMap"), ObjectMeta: t.meta()}, ReasonObjectAbsent), false
	case have.DeletionTimestamp != nil || have.UID == "" || t.isUnmanaged(have):
		return nil, false
	}
	refs, changed := olmcore.AddOwnerReferences(have.OwnerReferences, []metav1.OwnerReference{olmcore.OwnerReferenceTo(t.catalog)})
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

// permissions returns what the Role, the ServiceAccount and the RoleBinding lack, and whether all of them are observed as
// they should be.
func (t target) permissions(in Input) (lacks []olmcore.Action, ready bool) {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{t.name}, Verbs: []string{"create", "get", "update"},
	}
	role := &rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "Role"), ObjectMeta: t.meta(), Rules: []rbacv1.PolicyRule{rule}}
	account := &corev1.ServiceAccount{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ServiceAccount"), ObjectMeta: t.meta()}
	binding := &rbacv1.RoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "RoleBinding"), ObjectMeta: t.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: t.name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: t.name, Namespace: t.namespace}},
	}
	ready = true
	// need takes what exists, what should, and what corrects the one that exists, nil where nothing has to.
	need := func(have, desired olmcore.Object, correct func() olmcore.Action) {
		var action olmcore.Action
		if olmcore.KeyOf(have) == (olmcore.Key{}) {
			action = t.create(desired, ReasonObjectAbsent)
		} else if have.GetDeletionTimestamp() == nil {
			action = correct()
		} else {
			ready = false
		}
		if action != nil {
			lacks, ready = append(lacks, action), false
		}
	}
	need(in.Role, role, func() olmcore.Action {
		if slices.ContainsFunc(in.Role.Rules, func(r rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(r, rule) }) {
			return nil
		}
		after := in.Role.DeepCopy()
		after.Rules = append(after.Rules, rule)
		return t.update(in.Role, after)
	})
	need(in.ServiceAccount, account, func() olmcore.Action { return nil })
	need(in.RoleBinding, binding, func() olmcore.Action {
		if in.RoleBinding.RoleRef == binding.RoleRef && apiequality.Semantic.DeepEqual(in.RoleBinding.Subjects, binding.Subjects) {
			return nil
		}
		return deleteOf(in.RoleBinding, ReasonObjectDiffers, "it binds something else")
	})
	return lacks, ready
}

func typeMeta(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}
