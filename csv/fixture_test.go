// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

type (
	phaseName = v1alpha1.ClusterServiceVersionPhase
	reason    = v1alpha1.ConditionReason
)

const (
	none         = csvtest.None
	pending      = csvtest.Pending
	installReady = csvtest.InstallReady
	installing   = csvtest.Installing
	succeeded    = csvtest.Succeeded
	failed       = csvtest.Failed
	replacing    = csvtest.Replacing
	deleting     = csvtest.Deleting
)

var (
	now, ago                       = csvtest.Now, csvtest.Ago
	operator, hold, deploymentSpec = csvtest.Operator, csvtest.Hold, csvtest.DeploymentSpec
	group, namespace               = csvtest.Group, csvtest.Namespace
	ours, ownerCSV, cool, copied   = csvtest.Ours, csvtest.OwnedBy, csvtest.Cool, csvtest.Copied
	ourConversion, deletions       = csvtest.Conversion, csvtest.Deletions
	printRecords                   = csvtest.PrintRecords
	release                        = []string{"update ClusterServiceVersion cool.v1"}
)

// input returns a world in which operator v1 has everything that it requires but its Deployment, with a status that is
// an hour old.
func input(phase phaseName, why reason, message string) csv.Input {
	c := operator("cool.v1", 1)
	hold(c, phase, why, message, time.Hour)
	in := csv.Input{
		Now: now, ClusterServiceVersion: c, KubernetesVersion: kubernetesVersion,
		OperatorGroups: olmcore.Found(group()), Neighbours: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		OtherGroups:               olmcore.Found[*operatorsv1.OperatorGroup](),
		OtherProviders:            olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		Subscriptions:             olmcore.Found[*v1alpha1.Subscription](),
		CustomResourceDefinitions: olmcore.Found(establishedCRD()),
		ServiceAccounts:           olmcore.Found(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "sa"}}),
		Roles: olmcore.Found(&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "role"},
			Rules:      c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules,
		}),
		RoleBindings: olmcore.Found(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "binding"},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "cool"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "cool", Namespace: "ns"}},
		}),
		ClusterRoles: olmcore.Found[*rbacv1.ClusterRole](), ClusterRoleBindings: olmcore.Found[*rbacv1.ClusterRoleBinding](),
		Deployments: olmcore.Found[*appsv1.Deployment](), Grants: olmcore.Found[olmcore.Ref](), OperatorConditions: olmcore.Found[*operatorsv2.OperatorCondition](),
	}
	return in
}

func establishedCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := definition("example.com", "Cool", "cools", "v1")
	crd.UID, crd.ResourceVersion = "crd", "7"
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	return crd
}

// cameAlongside records what an InstallPlan does: that a CRD came with a CSV.
func cameAlongside(crd *apiextensionsv1.CustomResourceDefinition, csv string) {
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": csv}
}

// deploy adds the Deployments that InstallReady asks for, available.
func deploy(t testing.TB, in *csv.Input) {
	t.Helper()
	ready := *in
	ready.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
	hold(ready.ClusterServiceVersion, installReady, "AllRequirementsMet", "all requirements found, attempting install", 0)
	ready.Deployments = olmcore.Found[*appsv1.Deployment]()
	ready.Neighbours.Items, ready.LastRun = nil, nil
	out := reconciled(t, ready)
	for _, a := range out.Actions {
		create, ok := a.(olmcore.Create)
		require.True(t, ok, "%v", a)
		d := create.Object.(*appsv1.Deployment)
		d.UID, d.ResourceVersion, d.Generation = types.UID("deployment-"+d.Name), "20", 1
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
		}}
		in.Deployments.Items = append(in.Deployments.Items, d)
	}
}

// moves returns the Result that changes the status of an Input's CSV.
func moves(in csv.Input, to phaseName, why reason, message string) olmcore.Result {
	before := in.ClusterServiceVersion
	after := before.DeepCopy()
	s := &after.Status
	at := metav1.NewTime(now)
	s.LastUpdateTime = &at
	if s.Phase != to {
		s.LastTransitionTime = &at
	}
	moved := s.Phase != to || s.Reason != why
	s.Phase, s.Reason, s.Message = to, why, message
	res := olmcore.Result{}
	if moved {
		s.Conditions = append(s.Conditions, v1alpha1.ClusterServiceVersionCondition{
			Phase: to, Reason: why, Message: message, LastUpdateTime: s.LastUpdateTime, LastTransitionTime: s.LastTransitionTime,
		})
		res.Transitions = []olmcore.Transition{{
			Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(to),
			Reason: string(why), Message: message, At: at, Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
		}}
	}
	res.Actions = []olmcore.Action{olmcore.UpdateStatusOf(before, after, olmcore.Cause{Reason: csv.ReasonStatusChanged, Message: message})}
	return res
}

// reporting adds a requirement report to the status that a Result writes.
func reporting(res olmcore.Result, report ...v1alpha1.RequirementStatus) olmcore.Result {
	after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](res.Actions)
	after.Status.RequirementStatus = report
	return res
}

func requeue(res olmcore.Result, d time.Duration) olmcore.Result {
	res.RequeueAfter = d
	return res
}

// metReport is the report of input's CSV.
func metReport() []v1alpha1.RequirementStatus {
	return []v1alpha1.RequirementStatus{
		{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "cools.example.com",
			Status: "Present", Message: "CRD is present and Established condition is true", UUID: "crd",
		},
		{Version: "v1", Kind: "ServiceAccount", Name: "cool", Status: "Present", Dependents: []v1alpha1.DependentStatus{{
			Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "PolicyRule", Status: "Satisfied",
			Message: `namespaced rule:{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}`,
		}}},
	}
}

func check(t *testing.T, in csv.Input, want olmcore.Result) {
	t.Helper()
	got := reconciled(t, in)
	if diff := cmp.Diff(want, got.Result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func metadataOf(a olmcore.Action) (*v1alpha1.ClusterServiceVersion, bool) {
	u, ok := a.(olmcore.Update)
	if !ok {
		return nil, false
	}
	c, ok := u.After.(*v1alpha1.ClusterServiceVersion)
	return c, ok
}

// reconciled is csv.Reconcile of a valid Input.
func reconciled(t require.TestingT, in csv.Input) csv.Outcome {
	out, err := csv.Reconcile(in)
	require.NoError(t, err)
	return out
}

// assess is csv.Assess of a valid Input.
func assess(t require.TestingT, in csv.Input) csv.Assessment {
	a, err := csv.Assess(in)
	require.NoError(t, err)
	return a
}

type edge = olmcore.Edge[phaseName]

// outcome is what csv.Reconcile returns, without the Checkpoint.
func outcome(in csv.Input) (csv.Outcome, error) {
	out, err := csv.Reconcile(in)
	out.Checkpoint = nil
	return out, err
}

// checkpointOf returns the Checkpoint of what Reconcile says about an Input.
func checkpointOf(in csv.Input) *olmcore.Checkpoint {
	out, err := csv.Reconcile(in)
	if err != nil {
		return nil
	}
	return out.Checkpoint
}

// deleted is an Input whose CSV was deleted ten seconds ago, with nothing to clean up after but its Deployments.
func deleted(in csv.Input) csv.Input {
	in.ClusterServiceVersion.DeletionTimestamp, in.Deletion = ago(10*time.Second), csvtest.Deletion()
	return in
}

// leaving is a healthy operator that was deleted.
func leaving(t *testing.T) csv.Input {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	deploy(t, &in)
	cameAlongside(in.CustomResourceDefinitions.Items[0], "ns/cool.v1")
	return deleted(in)
}

// does lists what is written but for the status.
func does(t *testing.T, in csv.Input) []string {
	t.Helper()
	return csvtest.Writes(reconciled(t, in).Actions)
}
