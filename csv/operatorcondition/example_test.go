// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

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

	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/olmcore"
)

// An operator gets an OperatorCondition, in which it reports whether it can be upgraded, and the permissions to write
// it.
func ExampleReconcile() {
	snapshot, err := olmcore.NewSnapshot(exampleObjects(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := operatorcondition.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ops", Name: "etcd.v1"})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := operatorcondition.Reconcile(in)
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	// Output:
	// create OperatorCondition ops/etcd.v1 CSVChanged
}

// A change of a ClusterServiceVersion affects the OperatorCondition with its name.
func ExampleAffected() {
	fmt.Println(operatorcondition.Affected(&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd.v1"}}))
	// Output:
	// [ops/etcd.v1]
}

// exampleObjects returns the objects of an operator that runs and watches two namespaces.
func exampleObjects() []olmcore.Object {
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "etcd.v1", UID: "1", ResourceVersion: "8",
		Annotations: map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "ops", "olm.targetNamespaces": "ops,shop"},
	}}
	version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	version.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{
		ServiceAccountName: "etcd", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}}
	version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{
		Name: "etcd", Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "etcd"}}},
	}}
	version.Status.Phase = v1alpha1.CSVPhaseSucceeded
	version.Status.Reason = v1alpha1.CSVReasonInstallSuccessful
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group", UID: "2", ResourceVersion: "3"}}
	group.Spec.TargetNamespaces = []string{"ops", "shop"}
	group.Status.Namespaces = []string{"ops", "shop"}
	return []olmcore.Object{
		version, group,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops", UID: "4"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "5"}},
	}
}
