// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"cmp"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// rights lets the accounts of an operator read and write its OperatorCondition. The Role comes first: a binding to a
// Role of that name that is another's would hand out what that one allows.
func rights(f *facts) (p part) {
	if !f.Roles.Complete || !f.RoleBindings.Complete {
		return p
	}
	desired := f.role()
	role, exists := owned.Find(f.Roles.Items, f.Key.Namespace, f.Key.Name)
	switch {
	case !exists:
		p.actions = append(p.actions, olmcore.CreateOf(desired, f.cause("it has no Role")))
		return p
	case !metav1.IsControlledBy(role, f.condition):
		p.diagnostics = append(p.diagnostics, f.conflict(role, "it is not the Role of OperatorCondition %s, whose operator gets no rights", f.condition.Name))
		p.actions = f.unbind()
		return p
	case role.DeletionTimestamp != nil:
		return p
	}
	if !equality.Semantic.DeepEqual(role.Rules, desired.Rules) {
		after := role.DeepCopy()
		after.Labels, _ = olmcore.MergeLabels(role.Labels, desired.Labels)
		after.Rules = desired.Rules
		p.actions = append(p.actions, olmcore.UpdateOf(role, after, f.cause("its Role is not as it should be")))
		return p
	}
	return f.bind()
}

// unbind takes the binding away whose Role became another's.
func (f *facts) unbind() []olmcore.Action {
	binding, bound := owned.Find(f.RoleBindings.Items, f.Key.Namespace, f.Key.Name)
	if !bound || binding.DeletionTimestamp != nil || !metav1.IsControlledBy(binding, f.condition) {
		return nil
	}
	return []olmcore.Action{olmcore.DeleteOf(binding, olmcore.Cause{
		Reason: ReasonNameConflict, Message: "Role " + f.condition.Name + " is not that of the OperatorCondition",
	})}
}

// bind gives the Role to the accounts.
func (f *facts) bind() (p part) {
	subjects, unfit := f.subjects()
	if len(unfit) > 0 {
		p.diagnostics = append(p.diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonInvalidServiceAccount, olmcore.RefOf(f.condition), "spec.serviceAccounts",
			"%d of the names are none that a ServiceAccount can have, such as %q", len(unfit), unfit[0]))
	}
	desired := f.roleBinding(subjects)
	binding, exists := owned.Find(f.RoleBindings.Items, f.Key.Namespace, f.Key.Name)
	switch {
	case !exists:
		p.actions = append(p.actions, olmcore.CreateOf(desired, f.cause("it has no RoleBinding")))
		return p
	case binding.DeletionTimestamp != nil:
		return p
	case !metav1.IsControlledBy(binding, f.condition):
		p.diagnostics = append(p.diagnostics, f.conflict(binding, "it is not the RoleBinding of OperatorCondition %s, whose operator gets no rights", f.condition.Name))
		return p
	case binding.RoleRef != desired.RoleRef: // which cannot be changed
		p.actions = append(p.actions, olmcore.DeleteOf(binding, f.cause("its RoleBinding is to another role")))
		return p
	}
	if !f.bindsSame(binding.Subjects, desired.Subjects) {
		after := binding.DeepCopy()
		after.Labels, _ = olmcore.MergeLabels(binding.Labels, desired.Labels)
		after.Subjects = desired.Subjects
		p.actions = append(p.actions, olmcore.UpdateOf(binding, after, f.cause("its RoleBinding is not as it should be")))
	}
	return p
}

// bindsSame reports whether two lists of subjects bind the same, in any order and any number. OLM repeats accounts, and
// leaves out the namespace: that of the binding counts then.
func (f *facts) bindsSame(have, want []rbacv1.Subject) bool {
	set := func(subjects []rbacv1.Subject) sets.Set[rbacv1.Subject] {
		s := sets.New[rbacv1.Subject]()
		for _, subject := range subjects {
			if subject.Kind == rbacv1.ServiceAccountKind {
				subject.Namespace = cmp.Or(subject.Namespace, f.Key.Namespace)
			}
			s.Insert(subject)
		}
		return s
	}
	return set(have).Equal(set(want))
}

func (f *facts) cause(why string) olmcore.Cause {
	return olmcore.Cause{Reason: ReasonConditionChanged, Message: "OperatorCondition " + f.condition.Name + ": " + why}
}

// objectMeta is that of what is made for the OperatorCondition.
func (f *facts) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.Key.Namespace, Name: f.Key.Name, Labels: managed(),
		OwnerReferences: []metav1.OwnerReference{controlledBy(f.condition)},
	}
}

func (f *facts) role() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: f.objectMeta(),
		Rules: []rbacv1.PolicyRule{{
			Verbs:     []string{"get", "update", "patch"},
			APIGroups: []string{operatorsv2.GroupVersion.Group}, Resources: []string{"operatorconditions"}, ResourceNames: []string{f.Key.Name},
		}},
	}
}

func (f *facts) roleBinding(subjects []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: f.objectMeta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: f.Key.Name},
		Subjects:   subjects,
	}
}

// subjects are the accounts of the OperatorCondition's namespace that its spec names, and the names that no account can
// have. One of these would keep all others from their rights, as the API server refuses the whole object.
func (f *facts) subjects() (subjects []rbacv1.Subject, unfit []string) {
	for _, name := range distinct(f.condition.Spec.ServiceAccounts) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			unfit = append(unfit, name)
			continue
		}
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: f.Key.Namespace, Name: name})
	}
	return subjects, unfit
}
