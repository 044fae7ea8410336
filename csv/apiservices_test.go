// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// served is the Input of version ice.v1 of testdata, which owns an APIService and is Succeeded for ten minutes.
func served(t *testing.T) csv.Input {
	c, d := newWorld(csv.Config{})
	require.NoError(t, c.Create(fromFiles("base.yaml", "api-v1.yaml")...))
	require.NoError(t, d.RunFor(context.Background(), 10*time.Minute))
	in, err := csv.Gather(context.Background(), c, types.NamespacedName{Namespace: "ns", Name: "ice.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = c.Now(), kubernetesVersion
	in.ServedAPIs = olmcore.Found(schema.GroupVersionKind{Group: "ice.example.com", Version: "v1", Kind: "Ice"})
	require.Equal(t, succeeded, in.ClusterServiceVersion.Status.Phase)
	return invariant.Clone(in)
}

// inPhase gives the version of an Input another phase.
func inPhase(in *csv.Input, phase phaseName, why reason) {
	s := &in.ClusterServiceVersion.Status
	s.Phase, s.Reason, s.Message = phase, why, "so far"
	s.LastTransitionTime = new(metav1.NewTime(in.Now.Add(-time.Minute)))
}

const (
	serviceGone    = `service "ice-service" not found`
	secretDiffers  = "secret ice-service-cert CA cert hash does not match expected"
	deployedBefore = "deployment ice CA cert hash does not match expected"
)

// TestPhaseFollowsStateOfOwnedAPIService contains the next phase for each phase and each state of an owned APIService.
func TestPhaseFollowsStateOfOwnedAPIService(t *testing.T) {
	installed := served(t)
	api := func(in *csv.Input) *apiregistrationv1.APIService { return in.APIServices.Items[0] }
	absent := func(in *csv.Input) { in.APIServices.Items = nil }
	unavailable := func(in *csv.Input) { api(in).Status.Conditions[0].Status = apiregistrationv1.ConditionFalse }
	foreign := func(in *csv.Input) { api(in).Labels = nil }
	hash := func(in *csv.Input) { in.Serving.Secrets.Items[0].Annotations["olmcahash"] = "x" }
	template := func(in *csv.Input) { in.Deployments.Items[0].Spec.Template.Annotations["olmcahash"] = "x" }
	disrupted := func(in *csv.Input) {
		unavailable(in)
		api(in).Status.Conditions[0].LastTransitionTime = metav1.NewTime(in.Now)
		in.Deployments.Items[0].Status.UnavailableReplicas = 1
		in.Serving.Pods = olmcore.Found(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Labels: map[string]string{"app": "ice"}, CreationTimestamp: metav1.NewTime(in.Now)},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		})
	}
	both := func(changes ...func(*csv.Input)) func(*csv.Input) {
		return func(in *csv.Input) {
			for _, change := range changes {
				change(in)
			}
		}
	}
	for name, c := range map[string]struct {
		from    phaseName
		why     reason
		change  func(*csv.Input)
		to      phaseName
		then    reason
		message string
	}{
		"nothing is wrong": {succeeded, "InstallSucceeded", func(*csv.Input) {}, succeeded, "InstallSucceeded", "install strategy completed with no errors"},

		"owned by another, before the installation": {
			pending, "RequirementsNotMet", foreign, failed, "OwnerConflict", "unable to adopt APIService"},
		"owned by another, while InstallReady": {installReady, "AllRequirementsMet", foreign, failed, "OwnerConflict", "unable to adopt APIService"},
		"owned by another, while Succeeded":    {succeeded, "InstallSucceeded", foreign, failed, "APIServiceResourceIssue", "v1.ice.example.com is unadoptable"},
		"owned by another, while Failed": {
			failed, "APIServiceResourceIssue", foreign, failed, "OwnerConflict", "unable to adopt APIService"},

		"absent, while Succeeded":                 {succeeded, "InstallSucceeded", absent, failed, "APIServiceResourceIssue", `apiservice.apiregistration.k8s.io "v1.ice.example.com" not found`},
		"the Secret has another hash":             {succeeded, "InstallSucceeded", hash, failed, "APIServiceResourceIssue", secretDiffers},
		"the Deployment has another hash":         {succeeded, "InstallSucceeded", template, failed, "APIServiceResourceIssue", deployedBefore},
		"both have another hash":                  {succeeded, "InstallSucceeded", both(hash, template), failed, "APIServiceResourceIssue", secretDiffers},
		"an invalid caBundle":                     {succeeded, "InstallSucceeded", func(in *csv.Input) { api(in).Spec.CABundle = []byte("x") }, failed, "APIServiceResourceIssue", "caBundle of APIService v1.ice.example.com has no certificate"},
		"an invalid serving certificate":          {succeeded, "InstallSucceeded", func(in *csv.Input) { in.Serving.Secrets.Items[0].Data["tls.crt"] = []byte("x") }, failed, "APIServiceResourceIssue", "tls.crt of secret ice-service-cert has no certificate"},
		"the Service is gone":                     {succeeded, "InstallSucceeded", func(in *csv.Input) { in.Serving.Services.Items = nil }, failed, "APIServiceResourceIssue", serviceGone},
		"the Service is gone, while Failed":       {failed, "APIServiceResourceIssue", func(in *csv.Input) { in.Serving.Services.Items = nil }, pending, "APIServiceResourcesNeedReinstall", serviceGone},
		"absent, while Failed":                    {failed, "APIServiceResourceIssue", absent, pending, "APIServiceResourcesNeedReinstall", `apiservice.apiregistration.k8s.io "v1.ice.example.com" not found`},
		"everything is healthy again":             {failed, "APIServiceResourceIssue", func(*csv.Input) {}, succeeded, "InstallSucceeded", "install strategy completed with no errors"},
		"the certificate expires":                 {succeeded, "InstallSucceeded", func(in *csv.Input) { in.Now = in.Now.Add(731 * 24 * time.Hour) }, pending, "NeedsCertRotation", "CSV owns resources that require a cert refresh"},
		"the certificate expires, while Failed":   {failed, "ComponentUnhealthy", func(in *csv.Input) { in.Now = in.Now.Add(731 * 24 * time.Hour) }, pending, "NeedsCertRotation", "owned APIServices need cert refresh"},
		"not available, while Installing":         {installing, "InstallSucceeded", unavailable, installing, "InstallWaiting", "apiServices not installed"},
		"not available, while Succeeded":          {succeeded, "InstallSucceeded", unavailable, failed, "ComponentUnhealthy", "apiServices not installed"},
		"its kind is not served, while Succeeded": {succeeded, "InstallSucceeded", func(in *csv.Input) { in.ServedAPIs.Items = nil }, failed, "ComponentUnhealthy", "apiServices not installed"},
		"not available, while Failed":             {failed, "ComponentUnhealthy", unavailable, failed, "ComponentUnhealthy", "apiServices not installed"},
		"starting Pods, while Installing":         {installing, "InstallSucceeded", disrupted, installing, "InstallSucceeded", "so far"},
		"starting Pods, while Succeeded":          {succeeded, "InstallSucceeded", disrupted, succeeded, "InstallSucceeded", "so far"},
		"starting Pods, while Failed":             {failed, "ComponentUnhealthy", disrupted, failed, "ComponentUnhealthy", "so far"},
		"a description that is refused": {pending, "RequirementsUnknown", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.APIServiceDefinitions.Owned[0].ContainerPort = -1
		}, failed, "InvalidInstallStrategy", "APIService v1.ice.example.com: containerPort -1 is outside 1-65535"},
	} {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(installed)
			inPhase(&in, c.from, c.why)
			c.change(&in)
			a := assess(t, in)
			require.Equal(t, []string{string(c.to), string(c.then), c.message}, []string{string(a.Phase), string(a.Reason), a.Message}, a.Rule)
			// A certificate's times are part of it, and move with nothing else.
			require.NoError(t, errors.Join(invariant.Deterministic(outcomeOf, in), invariant.Pure(outcomeOf, in), invariant.DeadlineSound(outcomeOf, in)))
		})
	}
}

func outcomeOf(in csv.Input) (olmcore.Result, error) {
	out, err := csv.Reconcile(in)
	return out.Result, err
}

// TestDisruptedAPIServiceIsCheckedAgain checks that an APIService with starting or stopping Pods is checked again after
// at most ten seconds, and when the time for the Pods is over.
func TestDisruptedAPIServiceIsCheckedAgain(t *testing.T) {
	in := served(t)
	service := in.APIServices.Items[0]
	service.Status.Conditions[0].Status, service.Status.Conditions[0].LastTransitionTime = apiregistrationv1.ConditionFalse, metav1.NewTime(in.Now)
	in.Deployments.Items[0].Status.UnavailableReplicas = 1
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Labels: map[string]string{"app": "ice"}}}
	pod.DeletionTimestamp = new(metav1.NewTime(in.Now))
	in.Serving.Pods = olmcore.Found(pod)
	require.Equal(t, 10*time.Second, assess(t, in).RequeueAfter)
	in.Now = in.Now.Add(5*time.Minute - 3*time.Second)
	require.Equal(t, 3*time.Second, assess(t, in).RequeueAfter)
	in.Now = in.Now.Add(3 * time.Second)
	require.Equal(t, failed, assess(t, in).Phase)
}

// TestAPIServiceConflictNamesTheOwner checks that the message is that of OLM, and that the Diagnostic names the owner
// of the APIService.
func TestAPIServiceConflictNamesTheOwner(t *testing.T) {
	in := served(t)
	inPhase(&in, pending, "RequirementsUnknown")
	in.APIServices.Items[0].Labels = olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "other", Name: "ice.v1"}.Labels()
	said := assess(t, in).Diagnostics
	require.Len(t, said, 1)
	require.Equal(t, "APIService v1.ice.example.com belongs to ClusterServiceVersion other/ice.v1", said[0].Message)
}

// TestObjectsOfVeryOldOLMAreDeleted checks that an object that is named after an APIService is deleted by the
// installation if the CSV owns it.
func TestObjectsOfVeryOldOLMAreDeleted(t *testing.T) {
	c, d := newWorld(csv.Config{})
	ours := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "ns", Name: "ice.v1"}.Labels()
	const name = "v1.ice.example.com"
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: ours}
	}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "x"}
	old := []olmcore.Object{
		&corev1.Service{ObjectMeta: meta("ns", "v1-ice-example-com"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&corev1.Secret{ObjectMeta: meta("ns", name+"-cert")},
		&rbacv1.Role{ObjectMeta: meta("ns", name+"-cert")},
		&rbacv1.RoleBinding{ObjectMeta: meta("ns", name+"-cert"), RoleRef: role},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", name+"-system:auth-delegator"), RoleRef: role},
		&rbacv1.RoleBinding{ObjectMeta: meta("kube-system", name+"-auth-reader"), RoleRef: role},
	}
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", Labels: ours}}
	require.NoError(t, c.Create(append(old, users)...))
	require.NoError(t, c.Create(fromFiles("base.yaml", "api-v1.yaml")...))
	require.NoError(t, d.RunFor(context.Background(), 10*time.Minute))
	require.Equal(t, succeeded, csvs(c)[0].Status.Phase)
	left := map[olmcore.Key]bool{}
	for _, o := range c.Objects() {
		left[olmcore.KeyOf(o)] = true
	}
	for _, o := range old {
		require.False(t, left[olmcore.KeyOf(o)], "%s", olmcore.KeyOf(o))
	}
	require.True(t, left[olmcore.KeyOf(users)], "labels alone do not allow its deletion")
}
