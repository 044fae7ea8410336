// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

// The permissions of an operator that watches all namespaces are lifted into ClusterRoles.
func ExampleReconcile() {
	snapshot, err := olmcore.NewSnapshot(operator(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := permissions.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ops", Name: "etcd.v1"})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := permissions.Reconcile(in)
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	// Output:
	// create ClusterRole etcd.v1-etcd-5vRwEx0unV7W4uegK9wmDkAZ56CmLZgD5xOZVr Permissions
}

// A change of a ClusterServiceVersion affects its permissions.
func ExampleAffected() {
	fmt.Println(permissions.Affected(&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd.v1"}}))
	// Output:
	// [ops/etcd.v1]
}

// operator returns the objects of an operator that runs and watches all namespaces.
func operator() []olmcore.Object {
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "etcd.v1", UID: "1", ResourceVersion: "8",
		Annotations: map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "ops", "olm.targetNamespaces": ""},
	}}
	version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	version.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{
		ServiceAccountName: "etcd", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}}
	version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{
		Name: "etcd", Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "etcd"}}},
	}}
	version.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	version.Status.Phase = v1alpha1.CSVPhaseSucceeded
	version.Status.Reason = v1alpha1.CSVReasonInstallSuccessful
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group", UID: "2", ResourceVersion: "3"}}
	group.Status.Namespaces = []string{""}
	permissions, err := olmcore.PermissionObjects(version) // the objects that its InstallPlan created
	if err != nil {
		panic(err)
	}
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-1", UID: "5", ResourceVersion: "7"}}
	plan.Status.Phase = v1alpha1.InstallPlanPhaseComplete
	for _, o := range permissions { // each is a step, here with a reference to the unpacked bundle
		step := v1alpha1.StepResource{
			Group: olmcore.GVKOf(o).Group, Version: olmcore.GVKOf(o).Version, Kind: olmcore.GVKOf(o).Kind, Name: o.GetName(),
			Manifest: `{"kind":"ConfigMap","name":"etcd","namespace":"olm","catalogSourceName":"catalog","catalogSourceNamespace":"olm"}`,
		}
		plan.Status.Plan = append(plan.Status.Plan, &v1alpha1.Step{Resolving: "etcd.v1", Status: v1alpha1.StepStatusCreated, Resource: step})
	}
	for i, o := range permissions {
		o.SetNamespace("ops")
		o.SetUID(types.UID(fmt.Sprint("permission-", i)))
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(version)})
	}
	return append(permissions, version, group, plan,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops", UID: "4"}},
	)
}

// Assess reports permissions that cannot be granted, and why. Here all can be granted.
func ExampleAssess() {
	snapshot, err := olmcore.NewSnapshot(operator(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := permissions.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ops", Name: "etcd.v1"})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(permissions.Assess(in))
	// Output:
	// [] <nil>
}
