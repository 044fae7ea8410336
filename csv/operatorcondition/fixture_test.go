// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var now, ago = csvtest.Now, csvtest.Ago

// operator returns a Succeeded ClusterServiceVersion.
func operator() *v1alpha1.ClusterServiceVersion {
	c := csvtest.Operator("cool.v1", 1)
	c.Labels = map[string]string{"operators.coreos.com/cool.ns": "", "team": "a"}
	csvtest.Hold(c, csvtest.Succeeded, v1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors", time.Hour)
	return c
}

// deployment returns a Deployment of a ClusterServiceVersion whose container has some variables.
func deployment(c *v1alpha1.ClusterServiceVersion, variables ...string) *appsv1.Deployment {
	entry := csvtest.DeploymentSpec("cool")
	d := &appsv1.Deployment{Spec: entry.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: "cool", UID: "deployment", ResourceVersion: "7",
		Labels:          olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: c.Namespace, Name: c.Name}.Labels(),
		OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)},
	}}
	d.Labels["olm.deployment-spec-hash"] = "hash"
	container := &d.Spec.Template.Spec.Containers[0]
	for _, value := range variables {
		container.Env = append(container.Env, envVar(value))
	}
	return d
}

// input returns an Input whose lists were all read.
func input(c *v1alpha1.ClusterServiceVersion) operatorcondition.Input {
	in := operatorcondition.Input{
		Now: now, Key: types.NamespacedName{Namespace: "ns", Name: "cool.v1"},
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		OperatorConditions:     olmcore.Found[*operatorsv2.OperatorCondition](),
		Roles:                  olmcore.Found[*rbacv1.Role](), RoleBindings: olmcore.Found[*rbacv1.RoleBinding](),
		Deployments: olmcore.Found[*appsv1.Deployment](),
	}
	if c != nil {
		in.ClusterServiceVersions = olmcore.Found(c)
	}
	return in
}

// atRest returns the Input of an operator that has its OperatorCondition and reports that it is upgradeable.
func atRest(t require.TestingT) operatorcondition.Input {
	c := operator()
	in := input(c)
	in.Deployments = olmcore.Found(deployment(c, "cool.v1"))
	in = converged(t, in)
	condition := in.OperatorConditions.Items[0]
	condition.Spec.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: "True", Reason: "Idle", Message: "nothing runs", LastTransitionTime: *ago(time.Hour)}}
	condition.Generation++
	return converged(t, in)
}

// byHand returns the Input of an OperatorCondition that a user created, without a ClusterServiceVersion.
func byHand(accounts ...string) operatorcondition.Input {
	in := input(nil)
	in.OperatorConditions = olmcore.Found(&operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "by-hand", ResourceVersion: "1", Generation: 1},
		Spec:       operatorsv2.OperatorConditionSpec{ServiceAccounts: accounts, Deployments: []string{"cool"}},
	})
	return in
}

func reconcile(in operatorcondition.Input) (olmcore.Result, error) {
	out, err := operatorcondition.Reconcile(in)
	return out.Result, err
}

func reconciled(t require.TestingT, in operatorcondition.Input) olmcore.Outcome {
	out, err := operatorcondition.Reconcile(in)
	require.NoError(t, err)
	return out
}

// converged returns an Input after all actions of Reconcile.
func converged(t require.TestingT, in operatorcondition.Input) operatorcondition.Input {
	for range 5 {
		res := reconciled(t, in).Result
		if len(res.Actions) == 0 {
			return in
		}
		for _, a := range res.Actions {
			apply(&in, a)
		}
	}
	require.Fail(t, "not converged after five rounds")
	return in
}

func apply(in *operatorcondition.Input, a olmcore.Action) {
	verb, target, _ := a.Describe()
	var after olmcore.Object
	switch a := a.(type) {
	case olmcore.Create:
		after = a.Object.DeepCopyObject().(olmcore.Object)
		after.SetUID(types.UID(fmt.Sprintf("uid-%s-%s", target.Kind, target.Name)))
		after.SetGeneration(1)
	case olmcore.Update:
		after = a.After.DeepCopyObject().(olmcore.Object)
		after.SetGeneration(after.GetGeneration() + 1)
	case olmcore.UpdateStatus:
		after = a.After.DeepCopyObject().(olmcore.Object)
	}
	if verb != olmcore.VerbDelete {
		after.SetResourceVersion(after.GetResourceVersion() + "1")
	}
	switch target.Kind {
	case "OperatorCondition":
		in.OperatorConditions = one[*operatorsv2.OperatorCondition](after)
	case "Role":
		in.Roles = one[*rbacv1.Role](after)
	case "RoleBinding":
		in.RoleBindings = one[*rbacv1.RoleBinding](after)
	case "Deployment":
		in.Deployments = one[*appsv1.Deployment](after)
	}
}

func one[T olmcore.Object](o olmcore.Object) olmcore.Observed[T] {
	if o == nil {
		return olmcore.Found[T]()
	}
	return olmcore.Found(o.(T))
}

// lines returns one line for each action and each Diagnostic.
func lines(res olmcore.Result) (lines []string) {
	for _, a := range res.Actions {
		verb, target, cause := a.Describe()
		lines = append(lines, fmt.Sprintf("%s %s %s (%s)", verb, target.Kind, target.Name, cause.Reason))
	}
	for _, d := range res.Diagnostics {
		lines = append(lines, fmt.Sprintf("%s %s %s", d.Reason, d.Target.Kind, d.Target.Name))
	}
	return lines
}

// harmless returns an error if an action grants more than permissions on the OperatorCondition to ServiceAccounts of
// its namespace, or if it writes another object.
func harmless(in operatorcondition.Input, a olmcore.Action) error {
	_, target, _ := a.Describe()
	var after olmcore.Object
	switch a := a.(type) {
	case olmcore.Create:
		after = a.Object
	case olmcore.Update:
		after = a.After
	}
	switch o := after.(type) {
	case *rbacv1.Role:
		allowed := rbacv1.PolicyRule{Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{in.Key.Name}}
		if diff := cmp.Diff([]rbacv1.PolicyRule{allowed}, o.Rules); diff != "" {
			return fmt.Errorf("rules: %s", diff)
		}
	case *rbacv1.RoleBinding:
		for _, s := range o.Subjects {
			if s.Kind != "ServiceAccount" || s.Namespace != in.Key.Namespace || s.APIGroup != "" {
				return fmt.Errorf("subject %+v", s)
			}
		}
		if o.RoleRef != (rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: in.Key.Name}) {
			return fmt.Errorf("roleRef %+v", o.RoleRef)
		}
	}
	if target.Namespace != in.Key.Namespace || target.Name != in.Key.Name && target.Kind != "Deployment" {
		return fmt.Errorf("writes %s", target)
	}
	return nil
}
