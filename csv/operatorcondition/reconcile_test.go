// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// controlledBy returns an owner reference to the controller of an object.
func controlledBy(apiVersion, kind string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: "cool.v1", UID: uid, Controller: new(true), BlockOwnerDeletion: new(false),
	}}
}

func TestOperatorConditionRoleAndRoleBindingAreCreatedInTurn(t *testing.T) {
	c := operator()
	strategy := &c.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "second"}, {ServiceAccountName: "first"}, {ServiceAccountName: "second"}}
	strategy.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "third"}, {ServiceAccountName: "first"}}
	strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, csvtest.DeploymentSpec("another"))
	in := input(c)
	managed := map[string]string{"olm.managed": "true"}
	typed := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
	}
	of := func(o olmcore.Object, message string) olmcore.Result {
		return olmcore.Result{Actions: []olmcore.Action{olmcore.CreateOf(o, olmcore.Cause{Reason: "ConditionChanged", Message: message})}}
	}
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "cool.v1", Labels: managed,
		OwnerReferences: controlledBy("operators.coreos.com/v2", "OperatorCondition", "uid-OperatorCondition-cool.v1"),
	}
	condition := of(&operatorsv2.OperatorCondition{
		TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v2", Kind: "OperatorCondition"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "cool.v1", Labels: map[string]string{"olm.managed": "true", "operators.coreos.com/cool.ns": ""},
			OwnerReferences: controlledBy("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "uid-cool.v1"),
		},
		Spec: operatorsv2.OperatorConditionSpec{ServiceAccounts: []string{"second", "first", "third"}, Deployments: []string{"cool", "another"}},
	}, "")
	create := condition.Actions[0].(olmcore.Create)
	create.Cause = olmcore.Cause{Reason: "CSVChanged", Message: "ClusterServiceVersion cool.v1 has no OperatorCondition"}
	condition.Actions[0] = create
	subject := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ns", Name: name}
	}
	for _, want := range []olmcore.Result{
		condition,
		of(&rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"operators.coreos.com"},
			Resources: []string{"operatorconditions"}, ResourceNames: []string{"cool.v1"},
		}}}, "OperatorCondition cool.v1: it has no Role"),
		of(&rbacv1.RoleBinding{
			TypeMeta: typed("RoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "cool.v1"},
			Subjects: []rbacv1.Subject{subject("second"), subject("first"), subject("third")},
		}, "OperatorCondition cool.v1: it has no RoleBinding"),
		{},
	} {
		res := reconciled(t, in).Result
		require.Empty(t, cmp.Diff(want, res))
		for _, a := range res.Actions {
			require.Nil(t, a.Identity())
			apply(&in, a)
		}
	}
}

func TestOperatorsWithoutPermissionsUseTheDefaultServiceAccount(t *testing.T) {
	for name, permissions := range map[string][]v1alpha1.StrategyDeploymentPermissions{"none": nil, "without an account": {{}}} {
		t.Run(name, func(t *testing.T) {
			c := operator()
			c.Spec.InstallStrategy.StrategySpec = v1alpha1.StrategyDetailsDeployment{Permissions: permissions}
			made := reconciled(t, input(c)).Actions[0].(olmcore.Create).Object.(*operatorsv2.OperatorCondition)
			require.Equal(t, operatorsv2.OperatorConditionSpec{ServiceAccounts: []string{"default"}}, made.Spec)
		})
	}
}

// repeat adds each entry of a list once more.
func repeat[T any](list *[]T) { *list = slices.Concat(*list, *list) }

// TestUpdatesAlsoAddLabelsAndNamespaces checks that an update for another reason also adds the label and the
// namespaces, and removes repeated names.
func TestUpdatesAlsoAddLabelsAndNamespaces(t *testing.T) {
	in := atRest(t)
	condition, role, binding := in.OperatorConditions.Items[0], in.Roles.Items[0], in.RoleBindings.Items[0]
	want := []olmcore.Object{condition.DeepCopy(), role.DeepCopy(), binding.DeepCopy()}
	condition.Labels, role.Labels, binding.Labels = nil, nil, nil
	repeat(&condition.Spec.ServiceAccounts)
	repeat(&binding.Subjects)
	for i := range binding.Subjects {
		binding.Subjects[i].Namespace = ""
	}
	require.Equal(t, olmcore.Result{}, reconciled(t, in).Result)

	condition.Spec.Deployments, role.Rules, binding.Subjects = nil, nil, nil
	for range 3 {
		for _, a := range reconciled(t, in).Actions {
			apply(&in, a)
		}
	}
	got := []olmcore.Object{in.OperatorConditions.Items[0], in.Roles.Items[0], in.RoleBindings.Items[0]}
	for i := range got {
		require.Equal(t, "true", got[i].GetLabels()["olm.managed"], "%T", got[i])
		got[i].SetResourceVersion(want[i].GetResourceVersion())
		got[i].SetGeneration(want[i].GetGeneration())
	}
	require.Equal(t, want[0].(*operatorsv2.OperatorCondition).Spec, got[0].(*operatorsv2.OperatorCondition).Spec)
	require.Empty(t, cmp.Diff(want[1:], got[1:]))
}

// TestReconcileAfterOneChange changes one detail of an operator at rest.
func TestReconcileAfterOneChange(t *testing.T) {
	const update, status = "update OperatorCondition cool.v1 (CSVChanged)", "updateStatus OperatorCondition cool.v1 (StatusChanged)"
	const role, binding = "update Role cool.v1 (ConditionChanged)", "update RoleBinding cool.v1 (ConditionChanged)"
	type world struct {
		*operatorcondition.Input
		csv       *v1alpha1.ClusterServiceVersion
		condition *operatorsv2.OperatorCondition
		role      *rbacv1.Role
		binding   *rbacv1.RoleBinding
	}
	for name, c := range map[string]struct {
		change func(w world)
		want   []string
	}{
		"nothing changed": {func(world) {}, nil},

		"the OperatorCondition is missing": {
			func(w world) { w.OperatorConditions.Items = nil }, []string{"create OperatorCondition cool.v1 (CSVChanged)"},
		},
		"a copied CSV": {
			func(w world) { w.OperatorConditions.Items, w.csv.Status.Reason = nil, v1alpha1.CSVReasonCopied }, nil,
		},
		"a CSV that is being deleted": {func(w world) { w.OperatorConditions.Items, w.csv.DeletionTimestamp = nil, ago(0) }, nil},
		"neither object exists":       {func(w world) { w.OperatorConditions.Items, w.ClusterServiceVersions.Items = nil, nil }, nil},
		"it is being deleted":         {func(w world) { w.condition.DeletionTimestamp, w.role.Rules = ago(0), nil }, nil},
		"its CSV is being deleted":    {func(w world) { w.csv.DeletionTimestamp, w.condition.Spec.Deployments = ago(0), nil }, nil},
		"the CSV has another account": {
			func(w world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = "hot" }, []string{update},
		},
		"the CSV has another Deployment": {
			func(w world) { w.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "hot" }, []string{update},
		},
		"a user added an account": {
			func(w world) { w.condition.Spec.ServiceAccounts = append(w.condition.Spec.ServiceAccounts, "mine") }, []string{update, binding},
		},
		"a Deployment is missing":   {func(w world) { w.condition.Spec.Deployments = nil }, []string{update}},
		"it lists an account twice": {func(w world) { repeat(&w.condition.Spec.ServiceAccounts) }, nil},
		"it lists accounts in another order": {func(w world) {
			w.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "hot"}}
			w.condition.Spec.ServiceAccounts = append(w.condition.Spec.ServiceAccounts, "hot") // those of the namespace first
		}, []string{binding}},
		"it lists a Deployment twice":     {func(w world) { repeat(&w.condition.Spec.Deployments) }, nil},
		"it has no label":                 {func(w world) { w.condition.Labels = nil }, nil},
		"it has no owner":                 {func(w world) { w.condition.OwnerReferences = nil }, []string{update}},
		"its owner is not its controller": {func(w world) { w.condition.OwnerReferences[0].Controller = nil }, []string{update}},
		"another CSV controls it": {
			func(w world) { w.condition.OwnerReferences[0].UID = "before" }, []string{"NameConflict OperatorCondition cool.v1"},
		},
		"another kind controls it": {
			func(w world) { w.condition.OwnerReferences = controlledBy("v1", "Secret", "s") }, []string{"NameConflict OperatorCondition cool.v1"},
		},
		"another CSV is one of its owners": {func(w world) {
			w.condition.OwnerReferences = append(w.condition.OwnerReferences, csvtest.OwnedBy("cool.v0")...)
		}, nil},
		"another CSV is its owner": {
			func(w world) { w.condition.OwnerReferences = csvtest.OwnedBy("cool.v0") }, []string{"NameConflict OperatorCondition cool.v1"},
		},
		"an object without a controller owns it": {
			func(w world) { w.condition.OwnerReferences = []metav1.OwnerReference{{Kind: "Secret", UID: "s"}} }, []string{update},
		},

		"the Role is missing":       {func(w world) { w.Roles.Items = nil }, []string{"create Role cool.v1 (ConditionChanged)"}},
		"the Role is being deleted": {func(w world) { w.role.DeletionTimestamp = ago(0) }, nil},
		"the Role allows more": {
			func(w world) { w.role.Rules[0].Verbs = append(w.role.Rules[0].Verbs, "delete") }, []string{role},
		},
		"the Role names no object":  {func(w world) { w.role.Rules[0].ResourceNames = nil }, []string{role}},
		"the Role has no label":     {func(w world) { delete(w.role.Labels, "olm.managed") }, nil},
		"the Role has other labels": {func(w world) { w.role.Labels["x"] = "y" }, nil},
		"the RoleBinding is missing": {
			func(w world) { w.RoleBindings.Items = nil }, []string{"create RoleBinding cool.v1 (ConditionChanged)"},
		},
		"the RoleBinding is being deleted": {func(w world) { w.binding.DeletionTimestamp, w.binding.Subjects = ago(0), nil }, nil},
		"it binds another account":         {func(w world) { w.binding.Subjects[0].Name = "mine" }, []string{binding}},
		"it binds all accounts": {
			func(w world) { w.binding.Subjects[0] = rbacv1.Subject{Kind: "Group", Name: "system:authenticated"} }, []string{binding},
		},
		"the RoleBinding lacks a subject":     {func(w world) { w.binding.Subjects = w.binding.Subjects[1:] }, []string{binding}},
		"the RoleBinding binds another group": {func(w world) { w.binding.Subjects[0].APIGroup = "example.com" }, []string{binding}},
		"its subject is of another namespace": {func(w world) { w.binding.Subjects[0].Namespace = "other" }, []string{binding}},
		"its subject has no namespace":        {func(w world) { w.binding.Subjects[0].Namespace = "" }, nil},
		"it binds an account twice":           {func(w world) { repeat(&w.binding.Subjects) }, nil},
		"the RoleBinding has no label":        {func(w world) { w.binding.Labels = nil }, nil},
		"it references another role": {
			func(w world) { w.binding.RoleRef.Kind = "ClusterRole" }, []string{"delete RoleBinding cool.v1 (ConditionChanged)"},
		},
		"Role and RoleBinding are missing": {func(w world) { w.role.Rules, w.binding.Subjects = nil, nil }, []string{role}},

		"the operator changes a status":    {func(w world) { w.condition.Spec.Conditions[0].Status = "False" }, []string{status}},
		"the operator changes a reason":    {func(w world) { w.condition.Spec.Conditions[0].Reason = "Bored" }, []string{status}},
		"the operator changes a message":   {func(w world) { w.condition.Spec.Conditions[0].Message = "go on" }, []string{status}},
		"the operator removes a condition": {func(w world) { w.condition.Spec.Conditions = nil }, nil},

		"a version of another name": {func(w world) { w.csv.Name, w.csv.Spec.InstallStrategy.StrategySpec.Permissions = "hot.v1", nil }, nil},
		"an object of another namespace": {func(w world) {
			other := w.role.DeepCopy()
			other.Namespace, other.Rules = "other", nil
			w.Roles.Items = append(w.Roles.Items, other)
		}, nil},

		"an account is missing": {
			func(w world) { w.condition.Spec.ServiceAccounts = w.condition.Spec.ServiceAccounts[1:] }, []string{update, binding},
		},
		"a User has no namespace": {
			func(w world) { w.binding.Subjects[0].Kind, w.binding.Subjects[0].Namespace = "User", "" }, []string{binding},
		},
		"the spec is updated first": {
			func(w world) { w.condition.Spec.Conditions[0].Reason, w.condition.Spec.Deployments = "Bored", nil }, []string{update},
		},
		"an administrator wrote an override": {
			func(w world) { w.condition.Spec.Overrides, w.condition.Generation = w.condition.Spec.Conditions, 9 }, []string{status},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := atRest(t)
			c.change(world{&in, in.ClusterServiceVersions.Items[0], in.OperatorConditions.Items[0], in.Roles.Items[0], in.RoleBindings.Items[0]})
			require.Equal(t, c.want, lines(reconciled(t, in).Result))
		})
	}
}

func TestUpdatesKeepOverridesAndConditions(t *testing.T) {
	in := atRest(t)
	condition := in.OperatorConditions.Items[0]
	condition.Spec.Overrides = []metav1.Condition{{Type: "Upgradeable", Status: "True", Reason: "Forced"}}
	in.ClusterServiceVersions.Items[0].Spec.InstallStrategy.StrategySpec.Permissions = nil
	after := reconciled(t, in).Actions[0].(olmcore.Update).After.(*operatorsv2.OperatorCondition)
	require.Equal(t, []string{"default"}, after.Spec.ServiceAccounts)
	require.Equal(t, condition.Spec.Overrides, after.Spec.Overrides)
	require.Equal(t, condition.Spec.Conditions, after.Spec.Conditions)
	require.Equal(t, condition.Status, after.Status)
}

// TestConditionsAreCopiedToTheStatus checks that a copied condition has the observed generation. Its lastTransitionTime
// is the time that the operator set when its status changed, or now if the operator set none.
func TestConditionsAreCopiedToTheStatus(t *testing.T) {
	old, young, at := *ago(2 * time.Hour), *ago(time.Hour), *ago(0)
	condition := func(status metav1.ConditionStatus, reason string, generation int64, since metav1.Time) metav1.Condition {
		return metav1.Condition{Type: "Upgradeable", Status: status, Reason: reason, Message: "m", ObservedGeneration: generation, LastTransitionTime: since}
	}
	never := metav1.Time{}
	typed := func(kind string, c metav1.Condition) metav1.Condition { c.Type = kind; return c }
	says := func(message string, c metav1.Condition) metav1.Condition { c.Message = message; return c }
	const hidden, shown = "a\u202eb", `a\u202eb`
	for name, c := range map[string]struct{ spec, status, want []metav1.Condition }{
		"a new condition": {
			spec: []metav1.Condition{condition("False", "Busy", 0, young)},
			want: []metav1.Condition{condition("False", "Busy", 4, young)},
		},
		"without a time": {
			spec: []metav1.Condition{condition("False", "Busy", 0, never)},
			want: []metav1.Condition{condition("False", "Busy", 4, at)},
		},
		"another status": {
			spec:   []metav1.Condition{condition("False", "Busy", 1, young)},
			status: []metav1.Condition{condition("True", "Idle", 3, old)},
			want:   []metav1.Condition{condition("False", "Busy", 4, young)},
		},
		"another status without a time": {
			spec:   []metav1.Condition{condition("False", "Busy", 1, never)},
			status: []metav1.Condition{condition("True", "Idle", 3, old)},
			want:   []metav1.Condition{condition("False", "Busy", 4, at)},
		},
		"another reason": {
			spec:   []metav1.Condition{condition("False", "Busy", 1, young)},
			status: []metav1.Condition{condition("False", "Migrating", 4, old)},
			want:   []metav1.Condition{condition("False", "Busy", 4, old)},
		},
		"another generation": {
			spec:   []metav1.Condition{condition("False", "Busy", 1, young)},
			status: []metav1.Condition{condition("False", "Busy", 3, old)},
			want:   []metav1.Condition{condition("False", "Busy", 4, old)},
		},
		"another type stays": {
			spec:   []metav1.Condition{condition("False", "Busy", 0, young)},
			status: []metav1.Condition{typed("Degraded", condition("True", "X", 1, old))},
			want:   []metav1.Condition{typed("Degraded", condition("True", "X", 1, old)), condition("False", "Busy", 4, young)},
		},
		"invisible characters are escaped": {
			spec: []metav1.Condition{says(hidden, condition("False", "Busy", 0, young))},
			want: []metav1.Condition{says(shown, condition("False", "Busy", 4, young))},
		},
		"those that OLM recorded stay": {
			spec:   []metav1.Condition{says(hidden, condition("False", "Busy", 0, young))},
			status: []metav1.Condition{says(hidden, condition("False", "Idle", 4, young))},
			want:   []metav1.Condition{says(hidden, condition("False", "Busy", 4, young))},
		},
		"an escaped message is cut": {
			spec: []metav1.Condition{says(strings.Repeat("\u202e", 32768), condition("False", "Busy", 0, young))},
			want: []metav1.Condition{says(strings.Repeat(shown[1:7], 32768/6)+`\u`, condition("False", "Busy", 4, young))},
		},
		"the last of a type counts": {
			spec:   []metav1.Condition{condition("False", "Busy", 0, never), condition("True", "Idle", 0, never)},
			status: []metav1.Condition{condition("True", "Idle", 3, old)},
			want:   []metav1.Condition{condition("True", "Idle", 4, old)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := atRest(t)
			o := in.OperatorConditions.Items[0]
			o.Generation, o.Spec.Conditions, o.Status.Conditions = 4, c.spec, c.status
			res := reconciled(t, in).Result
			require.Equal(t, []string{"updateStatus OperatorCondition cool.v1 (StatusChanged)"}, lines(res))
			after, _ := olmcore.StatusOf[*operatorsv2.OperatorCondition](res.Actions)
			require.Empty(t, cmp.Diff(c.want, after.Status.Conditions))
			apply(&in, res.Actions[0])
			require.True(t, reconciled(t, in).Empty())
		})
	}
}

// TestConditionsThatOLMCopiedAreNotWrittenAgain checks that a message is not written again only to escape its
// characters.
func TestConditionsThatOLMCopiedAreNotWrittenAgain(t *testing.T) {
	in := atRest(t)
	o := in.OperatorConditions.Items[0]
	c := metav1.Condition{Type: "Upgradeable", Status: "False", Reason: "Busy", Message: "a\u202eb"}
	c.ObservedGeneration, c.LastTransitionTime = 4, *ago(time.Hour)
	o.Generation, o.Spec.Conditions, o.Status.Conditions = 4, []metav1.Condition{c}, []metav1.Condition{c}
	require.True(t, reconciled(t, in).Empty())
	c.Message = strings.Repeat("\u202e", 32768) // too long for the API server once it is escaped
	o.Spec.Conditions, o.Status.Conditions = []metav1.Condition{c}, []metav1.Condition{c}
	require.True(t, reconciled(t, in).Empty())
}

// TestMissingVariablesAreSetInContainers checks Deployments that lost the variable. Package csv installs them with it.
func TestMissingVariablesAreSetInContainers(t *testing.T) {
	const written = "update Deployment cool (VariableMissing)"
	for name, c := range map[string]struct {
		variables []string
		change    func(in *operatorcondition.Input, d *appsv1.Deployment)
		want      []string
	}{
		"the variable is set":           {variables: []string{"cool.v1"}},
		"the variable is missing":       {want: []string{written}},
		"it names another object":       {variables: []string{"cool.v0"}, want: []string{written}},
		"the last one counts":           {variables: []string{"cool.v0", "cool.v1"}},
		"the last one names another":    {variables: []string{"cool.v1", "cool.v0"}, want: []string{written}},
		"the Deployment does not exist": {change: func(in *operatorcondition.Input, _ *appsv1.Deployment) { in.Deployments.Items = nil }},
		"it is being deleted":           {change: func(_ *operatorcondition.Input, d *appsv1.Deployment) { d.DeletionTimestamp = ago(0) }},
		"it has another owner":          {change: func(_ *operatorcondition.Input, d *appsv1.Deployment) { d.OwnerReferences = nil }},
		"it lacks the owner labels":     {change: func(_ *operatorcondition.Input, d *appsv1.Deployment) { d.Labels = nil }},
		"it is not listed": {change: func(in *operatorcondition.Input, _ *appsv1.Deployment) {
			in.ClusterServiceVersions.Items[0].DeletionTimestamp = ago(0)
			in.OperatorConditions.Items[0].Spec.Deployments = nil
		}},
		"there is no CSV":       {change: func(in *operatorcondition.Input, _ *appsv1.Deployment) { in.ClusterServiceVersions.Items = nil }},
		"the CSV is Installing": {change: phase(csvtest.Installing)},
		"the CSV is Replacing":  {change: phase(csvtest.Replacing)},
		"the CSV is being deleted": {change: func(in *operatorcondition.Input, _ *appsv1.Deployment) {
			in.ClusterServiceVersions.Items[0].DeletionTimestamp = ago(0)
		}},
		"a copy has no Deployments": {change: func(in *operatorcondition.Input, _ *appsv1.Deployment) {
			in.ClusterServiceVersions.Items[0].Status.Reason = v1alpha1.CSVReasonCopied
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := atRest(t)
			d := deployment(in.ClusterServiceVersions.Items[0], c.variables...)
			in.Deployments = olmcore.Found(d)
			if c.change != nil {
				c.change(&in, d)
			}
			res := reconciled(t, in).Result
			require.Equal(t, c.want, lines(res))
			if len(c.want) == 0 {
				return
			}
			after := res.Actions[0].(olmcore.Update).After.(*appsv1.Deployment)
			require.Equal(t, []corev1.EnvVar{envVar("cool.v1")}, after.Spec.Template.Spec.Containers[0].Env)
			require.Equal(t, d.Labels, after.Labels) // package csv finds the Deployment by this hash
		})
	}
}

func envVar(value string) corev1.EnvVar {
	return corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: value}
}

func phase(p v1alpha1.ClusterServiceVersionPhase) func(*operatorcondition.Input, *appsv1.Deployment) {
	return func(in *operatorcondition.Input, _ *appsv1.Deployment) {
		in.ClusterServiceVersions.Items[0].Status.Phase = p
	}
}

// TestAManualOperatorConditionGrantsNothingElse checks that an OperatorCondition which a user creates grants
// ServiceAccounts of its namespace only the permissions on it, and that no object of another owner is changed.
func TestAManualOperatorConditionGrantsNothingElse(t *testing.T) {
	everything := []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	role := func(owners ...metav1.OwnerReference) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "r", ResourceVersion: "1", OwnerReferences: owners}, Rules: everything}
	}
	binding := func(owners ...metav1.OwnerReference) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "b", ResourceVersion: "1", OwnerReferences: owners},
			RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "cool.v1"}}
	}
	ours := controlledBy("operators.coreos.com/v2", "OperatorCondition", "by-hand")[0]
	owner := ours
	owner.Controller = nil
	before := ours
	before.UID = "before"
	going := role()
	going.DeletionTimestamp = ago(0)
	const notTheRole, notTheBinding = "NameConflict Role cool.v1", "NameConflict RoleBinding cool.v1"
	for name, c := range map[string]struct {
		roles    []*rbacv1.Role
		bindings []*rbacv1.RoleBinding
		want     []string
	}{
		"no other object":                         {nil, nil, []string{"create Role cool.v1 (ConditionChanged)"}},
		"a Role of the name":                      {[]*rbacv1.Role{role()}, nil, []string{notTheRole}},
		"a Role of another owner":                 {[]*rbacv1.Role{role(csvtest.OwnedBy("cool.v1")...)}, nil, []string{notTheRole}},
		"a Role that it owns without controlling": {[]*rbacv1.Role{role(owner)}, nil, []string{notTheRole}},
		"a Role of an earlier object":             {[]*rbacv1.Role{role(before)}, nil, []string{notTheRole}},
		"a Role replaced its own": {
			[]*rbacv1.Role{role()}, []*rbacv1.RoleBinding{binding(ours)}, []string{"delete RoleBinding cool.v1 (NameConflict)", notTheRole},
		},
		"a Role that is being deleted": {
			[]*rbacv1.Role{going}, []*rbacv1.RoleBinding{binding(ours)}, []string{"delete RoleBinding cool.v1 (NameConflict)", notTheRole},
		},
		"a Role and its binding":            {[]*rbacv1.Role{role()}, []*rbacv1.RoleBinding{binding()}, []string{notTheRole}},
		"a Role with more rules":            {[]*rbacv1.Role{role(ours)}, nil, []string{"update Role cool.v1 (ConditionChanged)"}},
		"a binding of the name, and a Role": {nil, []*rbacv1.RoleBinding{binding()}, []string{"create Role cool.v1 (ConditionChanged)"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := byHand("anybody")
			in.Roles, in.RoleBindings = olmcore.Found(c.roles...), olmcore.Found(c.bindings...)
			require.Equal(t, c.want, lines(reconciled(t, in).Result))
		})
	}
	in := byHand("anybody", "some", "", "some", "system:serviceaccount:other:root", "../root", "Some")
	in = converged(t, in)
	require.Equal(t, []string{"cool.v1"}, in.Roles.Items[0].Rules[0].ResourceNames)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "anybody"}, {Kind: "ServiceAccount", Namespace: "ns", Name: "some"}}, in.RoleBindings.Items[0].Subjects)
	res := reconciled(t, in).Result
	require.Len(t, res.Diagnostics, 1)
	require.Equal(t, olmcore.Diagnostic{
		Severity: olmcore.Warning, Reason: operatorcondition.ReasonInvalidServiceAccount, Target: olmcore.RefOf(in.OperatorConditions.Items[0]).Unversioned(), Path: "spec.serviceAccounts",
		Message: `it contains invalid ServiceAccount names, for example "system:serviceaccount:other:root" (3 in total)`,
	}, res.Diagnostics[0])
	in.RoleBindings = olmcore.Found(binding())
	in.RoleBindings.Items[0].Subjects = nil
	require.Contains(t, lines(reconciled(t, in).Result), notTheBinding)
}

func TestUnreadListsAreReportedAndChangeNothing(t *testing.T) {
	for name, c := range map[string]struct {
		// forget makes a list unread. It also removes objects, so that there is something to do.
		forget func(in *operatorcondition.Input)
		want   []string
	}{
		"ClusterServiceVersions": {func(in *operatorcondition.Input) {
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
			in.OperatorConditions.Items[0].Spec.Deployments, in.Deployments.Items = nil, nil
		}, nil},
		"OperatorConditions": {func(in *operatorcondition.Input) {
			in.OperatorConditions = olmcore.Observed[*operatorsv2.OperatorCondition]{}
		}, nil},
		"Roles": {func(in *operatorcondition.Input) {
			in.Roles, in.RoleBindings.Items = olmcore.Observed[*rbacv1.Role]{}, nil
		}, nil},
		"RoleBindings": {func(in *operatorcondition.Input) {
			in.RoleBindings, in.Roles.Items = olmcore.Observed[*rbacv1.RoleBinding]{}, nil
		}, nil},
		"Deployments": {func(in *operatorcondition.Input) {
			in.Deployments, in.Roles.Items = olmcore.Observed[*appsv1.Deployment]{}, nil
		}, []string{"create Role cool.v1 (ConditionChanged)"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := atRest(t)
			c.forget(&in)
			res := reconciled(t, in).Result
			require.Equal(t, append(c.want, "NotObserved OperatorCondition cool.v1"), lines(res))
			require.Contains(t, res.Diagnostics[0].Message, "the list of "+name+" (")
			require.Equal(t, 5*time.Second, res.RequeueAfter)
		})
	}
	in := input(operator())
	in.Roles, in.RoleBindings, in.Deployments = olmcore.Observed[*rbacv1.Role]{}, olmcore.Observed[*rbacv1.RoleBinding]{}, olmcore.Observed[*appsv1.Deployment]{}
	require.Equal(t, []string{"create OperatorCondition cool.v1 (CSVChanged)"}, lines(reconciled(t, in).Result), "the OperatorCondition does not exist yet")
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, breakIt := range map[string]func(in *operatorcondition.Input){
		"Now":                       func(in *operatorcondition.Input) { in.Now = time.Time{} },
		"Key.Name":                  func(in *operatorcondition.Input) { in.Key.Name = "" },
		"Key.Namespace":             func(in *operatorcondition.Input) { in.Key.Namespace = "" },
		"ClusterServiceVersions[0]": func(in *operatorcondition.Input) { in.ClusterServiceVersions.Items[0] = nil },
		"OperatorConditions[0].metadata.uid": func(in *operatorcondition.Input) {
			in.OperatorConditions.Items[0].UID = ""
		},
		"Roles[0].metadata.resourceVersion": func(in *operatorcondition.Input) { in.Roles.Items[0].ResourceVersion = "" },
		"RoleBindings[0].metadata.name":     func(in *operatorcondition.Input) { in.RoleBindings.Items[0].Name = "" },
		"Deployments":                       func(in *operatorcondition.Input) { in.Deployments.Complete = false },
	} {
		t.Run(field, func(t *testing.T) {
			in := atRest(t)
			breakIt(&in)
			_, err := operatorcondition.Reconcile(in)
			var problem *olmcore.InputError
			require.ErrorAs(t, err, &problem)
			require.Equal(t, field, problem.Field)
		})
	}
}

func TestTheCostGrowsLinearlyWithTheSizeOfObjects(t *testing.T) {
	cost := func(n int) float64 {
		in := byHand()
		in.ClusterServiceVersions = olmcore.Found(operator())
		o := in.OperatorConditions.Items[0]
		for i := range n {
			name := fmt.Sprintf("n%06d", i)
			lines := metav1.Condition{Type: name, Status: "True"}
			o.Spec.ServiceAccounts, o.Spec.Deployments = append(o.Spec.ServiceAccounts, name, "not a name"), append(o.Spec.Deployments, name)
			o.Spec.Conditions, o.Status.Conditions = append(o.Spec.Conditions, lines), append(o.Status.Conditions, lines)
			d := deployment(in.ClusterServiceVersions.Items[0])
			d.Name = name
			in.Deployments.Items = append(in.Deployments.Items, d)
		}
		in.ClusterServiceVersions.Items[0].DeletionTimestamp = ago(0)
		return testing.AllocsPerRun(1, func() { reconciled(t, in) })
	}
	require.LessOrEqual(t, cost(4000), 5*cost(1000))
}
