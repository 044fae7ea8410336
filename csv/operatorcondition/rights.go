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

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// rights creates and updates the Role and the RoleBinding that let the ServiceAccounts of an operator read and write
// its OperatorCondition. The Role comes first, because a binding to a Role of another owner would grant other
// permissions.
func rights(f *facts) olmcore.Result {
	if !f.in.Roles.Complete || !f.in.RoleBindings.Complete {
		return olmcore.Result{}
	}
	desired := f.role()
	role, exists := model.Find(f.in.Roles.Items, f.in.Key.Namespace, f.in.Key.Name)
	switch {
	case !exists:
		return write(olmcore.CreateOf(desired, f.cause("it has no Role")))
	case !metav1.IsControlledBy(role, f.condition):
		conflict := reportConflict(role,
			"it does not belong to OperatorCondition %s, so the operator gets no permissions for that object", f.condition.Name)
		return conflict.And(unbind(f))
	case role.DeletionTimestamp != nil:
		return olmcore.Result{}
	case equality.Semantic.DeepEqual(role.Rules, desired.Rules):
		return bind(f)
	}
	after := role.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(role.Labels, desired.Labels)
	after.Rules = desired.Rules
	return write(olmcore.UpdateOf(role, after, f.cause("its Role has other rules")))
}

// unbind deletes the RoleBinding if its Role belongs to another owner.
func unbind(f *facts) olmcore.Result {
	binding, bound := model.Find(f.in.RoleBindings.Items, f.in.Key.Namespace, f.in.Key.Name)
	if !bound || binding.DeletionTimestamp != nil || !metav1.IsControlledBy(binding, f.condition) {
		return olmcore.Result{}
	}
	return write(olmcore.DeleteOf(binding, olmcore.Cause{
		Reason: ReasonNameConflict, Message: "Role " + f.condition.Name + " does not belong to the OperatorCondition",
	}))
}

// bind writes the RoleBinding of the Role, and reports the ServiceAccounts that it leaves out.
func bind(f *facts) olmcore.Result {
	subjects, unfit := f.subjects()
	return reportUnfit(f, unfit).And(writeBinding(f, f.roleBinding(subjects)))
}

// reportUnfit reports names that no ServiceAccount can have.
func reportUnfit(f *facts, unfit []string) olmcore.Result {
	if len(unfit) == 0 {
		return olmcore.Result{}
	}
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
		olmcore.Diagnose(olmcore.Warning, ReasonInvalidServiceAccount, olmcore.RefOf(f.condition), "spec.serviceAccounts",
			"it contains invalid ServiceAccount names, for example %q (%d in total)", unfit[0], len(unfit)),
	}}
}

// writeBinding creates or updates the RoleBinding. A RoleBinding to another role is deleted first, because its roleRef
// is immutable.
func writeBinding(f *facts, desired *rbacv1.RoleBinding) olmcore.Result {
	binding, exists := model.Find(f.in.RoleBindings.Items, f.in.Key.Namespace, f.in.Key.Name)
	switch {
	case !exists:
		return write(olmcore.CreateOf(desired, f.cause("it has no RoleBinding")))
	case binding.DeletionTimestamp != nil:
		return olmcore.Result{}
	case !metav1.IsControlledBy(binding, f.condition):
		return reportConflict(binding,
			"it does not belong to OperatorCondition %s, so the operator gets no permissions for that object", f.condition.Name)
	case binding.RoleRef != desired.RoleRef:
		return write(olmcore.DeleteOf(binding, f.cause("its RoleBinding references another role")))
	case f.bindsSame(binding.Subjects, desired.Subjects):
		return olmcore.Result{}
	}
	after := binding.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(binding.Labels, desired.Labels)
	after.Subjects = desired.Subjects
	return write(olmcore.UpdateOf(binding, after, f.cause("its RoleBinding has other subjects")))
}

// bindsSame reports whether two lists contain the same subjects. Order and repetitions do not count, because OLM
// repeats accounts. A subject without a namespace is in the namespace of the binding.
func (f *facts) bindsSame(have, want []rbacv1.Subject) bool {
	set := func(subjects []rbacv1.Subject) sets.Set[rbacv1.Subject] {
		s := sets.New[rbacv1.Subject]()
		for _, subject := range subjects {
			if subject.Kind == rbacv1.ServiceAccountKind {
				subject.Namespace = cmp.Or(subject.Namespace, f.in.Key.Namespace)
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

// objectMeta returns the metadata of the Role and the RoleBinding.
func (f *facts) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.in.Key.Namespace, Name: f.in.Key.Name, Labels: managed(),
		OwnerReferences: []metav1.OwnerReference{controlledBy(f.condition)},
	}
}

func (f *facts) role() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: f.objectMeta(),
		Rules: []rbacv1.PolicyRule{{
			Verbs:         []string{"get", "update", "patch"},
			APIGroups:     []string{operatorsv2.GroupVersion.Group},
			Resources:     []string{"operatorconditions"},
			ResourceNames: []string{f.in.Key.Name},
		}},
	}
}

func (f *facts) roleBinding(subjects []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: f.objectMeta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: f.in.Key.Name},
		Subjects:   subjects,
	}
}

// subjects returns the ServiceAccounts in the spec of the OperatorCondition, and the names in it that are invalid.
// Invalid names are left out, because the API server would reject the whole RoleBinding.
func (f *facts) subjects() (subjects []rbacv1.Subject, unfit []string) {
	for _, name := range distinct(f.condition.Spec.ServiceAccounts) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			unfit = append(unfit, name)
			continue
		}
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: f.in.Key.Namespace, Name: name})
	}
	return subjects, unfit
}
