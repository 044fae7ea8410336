// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// suffixed reports whether have is name followed by a suffix.
func suffixed(have, name, suffix string) bool {
	return len(have) == len(name)+len(suffix) && have[:len(name)] == name && have[len(name):] == suffix
}

func (v *view) role() *rbacv1.Role {
	for _, o := range v.in.Roles.Items {
		if o.Namespace == v.cs.Namespace && suffixed(o.Name, v.cs.Name, roleSuffix) {
			return o
		}
	}
	return nil
}

func (v *view) roleBinding() *rbacv1.RoleBinding {
	for _, o := range v.in.RoleBindings.Items {
		if o.Namespace == v.cs.Namespace && suffixed(o.Name, v.cs.Name, bindingSuffix) {
			return o
		}
	}
	return nil
}

// meta is the metadata of a new object of the catalog.
func (v *view) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: v.cs.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(v.in.CatalogSource)},
	}
}

// settled reports whether an object's label and owner are as they must be.
func (v *view) settled(o *metav1.ObjectMeta) bool {
	return o.Labels[olmcore.LabelManaged] == "true" && owns(v.cs.UID, o.OwnerReferences)
}

// settle makes an object's label and owner what they must be.
func (v *view) settle(o *metav1.ObjectMeta) {
	o.Labels, _ = olmcore.MergeLabels(o.Labels, map[string]string{olmcore.LabelManaged: "true"})
	if !owns(v.cs.UID, o.OwnerReferences) {
		o.OwnerReferences, _ = olmcore.RepairOwnerReferences(o.OwnerReferences, []metav1.OwnerReference{olmcore.OwnerReferenceTo(v.in.CatalogSource)})
	}
}

// untouchable reports whether an object is left as it is: it goes already, or
// belongs to somebody else.
func (v *view) untouchable(o *metav1.ObjectMeta) bool {
	return o.DeletionTimestamp != nil || v.claimOf(o) == claimForeign
}

func (v *view) roleAction() olmcore.Action {
	rules := func() []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{v.cs.Spec.ConfigMap}, Verbs: []string{"get"},
		}}
	}
	have := v.role()
	if have == nil && !v.in.Roles.Complete {
		return nil
	}
	if have == nil {
		return missing(&rbacv1.Role{ObjectMeta: v.meta(v.cs.Name + roleSuffix), Rules: rules()})
	}
	fits := len(have.Rules) == 1
	if fits {
		r := &have.Rules[0]
		fits = only(r.APIGroups, "") && only(r.Resources, "configmaps") && only(r.ResourceNames, v.cs.Spec.ConfigMap) && only(r.Verbs, "get") && len(r.NonResourceURLs) == 0
	}
	if v.untouchable(&have.ObjectMeta) || fits && v.settled(&have.ObjectMeta) {
		return nil
	}
	after := have.DeepCopy()
	v.settle(&after.ObjectMeta)
	if !fits {
		after.Rules = rules()
	}
	return differs(have, after, "label, owner or rules differ")
}

func only(list []string, value string) bool { return len(list) == 1 && list[0] == value }

func (v *view) bindingAction() olmcore.Action {
	subjects := func() []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: v.cs.Name + accountSuffix, Namespace: v.cs.Namespace}}
	}
	have := v.roleBinding()
	if have == nil && !v.in.RoleBindings.Complete {
		return nil
	}
	if have == nil {
		return missing(&rbacv1.RoleBinding{
			ObjectMeta: v.meta(v.cs.Name + bindingSuffix), Subjects: subjects(),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v.cs.Name + roleSuffix},
		})
	}
	if v.untouchable(&have.ObjectMeta) {
		return nil
	}
	if ref := &have.RoleRef; ref.APIGroup != rbacv1.GroupName || ref.Kind != "Role" || !suffixed(ref.Name, v.cs.Name, roleSuffix) {
		// The API server lets nobody change it.
		return olmcore.DeleteOf(have, olmcore.Cause{Reason: ReasonObjectDiffers, Message: "it refers to another role and is made anew"})
	}
	fits := len(have.Subjects) == 1
	if fits {
		s := &have.Subjects[0]
		fits = s.Kind == rbacv1.ServiceAccountKind && s.APIGroup == "" && suffixed(s.Name, v.cs.Name, accountSuffix) && s.Namespace == v.cs.Namespace
	}
	if fits && v.settled(&have.ObjectMeta) {
		return nil
	}
	after := have.DeepCopy()
	v.settle(&after.ObjectMeta)
	if !fits {
		after.Subjects = subjects()
	}
	return differs(have, after, "label, owner or subjects differ")
}
