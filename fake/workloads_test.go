// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

func TestADeploymentBecomesAvailable(t *testing.T) {
	const image = "registry.example/op:v1"
	cases := map[string]struct {
		hinder, help func(*testing.T, *fake.Cluster)
		message      string
	}{
		"once a node takes its Pods": {
			func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.Node("a").Cordon()) },
			func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.Node("a").Uncordon()) }, "0 nodes are available"},
		"once its image can be pulled": {
			func(_ *testing.T, c *fake.Cluster) { c.Image(image).Break("") },
			func(_ *testing.T, c *fake.Cluster) { c.Image(image).Heal() }, "container main: ImagePullBackOff"},
		"once its ServiceAccount exists": {
			func(*testing.T, *fake.Cluster) {},
			func(t *testing.T, c *fake.Cluster) {
				require.NoError(t, c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns"}}))
			}, `serviceaccount "sa" not found`},
		"once the fault is over": {
			func(_ *testing.T, c *fake.Cluster) { c.Deployment("ns", "d").Break("on purpose") },
			func(_ *testing.T, c *fake.Cluster) { c.Deployment("ns", "d").Heal() }, "on purpose"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a")
			tc.hinder(t, c)
			d := deployment("d")
			if name == "once its ServiceAccount exists" {
				d.Spec.Template.Spec.ServiceAccountName = "sa"
			}
			require.NoError(t, c.Create(d))
			settle(t, c)
			got := stored(t, c, d)
			require.Equal(t, got.Generation, got.Status.ObservedGeneration)
			available := deploymentCondition(got, appsv1.DeploymentAvailable)
			require.Equal(t, corev1.ConditionFalse, available.Status)
			require.Contains(t, available.Message, tc.message)
			require.Equal(t, int32(1), got.Status.UnavailableReplicas)

			require.NoError(t, c.RunFor(599*time.Second))
			require.Equal(t, "ReplicaSetUpdated", deploymentCondition(stored(t, c, d), appsv1.DeploymentProgressing).Reason)
			require.NoError(t, c.RunFor(time.Second))
			require.Equal(t, "ProgressDeadlineExceeded", deploymentCondition(stored(t, c, d), appsv1.DeploymentProgressing).Reason)

			tc.help(t, c)
			settle(t, c)
			got = stored(t, c, d)
			require.Equal(t, appsv1.DeploymentStatus{
				ObservedGeneration: got.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, TerminatingReplicas: new(int32(0)),
				Conditions: got.Status.Conditions}, got.Status)
			available = deploymentCondition(got, appsv1.DeploymentAvailable)
			require.Equal(t, "MinimumReplicasAvailable", available.Reason)
			require.Equal(t, start.Add(10*time.Minute), available.LastTransitionTime.UTC())
			require.Equal(t, "NewReplicaSetAvailable", deploymentCondition(got, appsv1.DeploymentProgressing).Reason)
		})
	}
}

func TestARollOutKeepsTheOldPods(t *testing.T) {
	c := newCluster(t, "a")
	require.NoError(t, c.Create(deployment("d")))
	settle(t, c)
	c.Image("registry.example/op:v2").Break("")
	require.NoError(t, fake.Edit(c, "ns", "d", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/op:v2" }))
	settle(t, c)
	got := stored(t, c, deployment("d"))
	require.Equal(t, corev1.ConditionTrue, deploymentCondition(got, appsv1.DeploymentAvailable).Status)
	require.Zero(t, got.Status.UpdatedReplicas)
	require.NoError(t, c.RunFor(10*time.Minute))
	require.Equal(t, "ProgressDeadlineExceeded", deploymentCondition(stored(t, c, deployment("d")), appsv1.DeploymentProgressing).Reason)
	c.Image("registry.example/op:v2").Heal()
	settle(t, c)
	require.Equal(t, int32(1), stored(t, c, deployment("d")).Status.UpdatedReplicas)
}

func TestADeploymentFollowsItsNodesAndReplicas(t *testing.T) {
	c := newCluster(t, "a")
	require.NoError(t, c.Create(deployment("d")))
	settle(t, c)
	require.NoError(t, c.Node("a").Fail())
	require.NoError(t, c.RunFor(time.Minute))
	require.Equal(t, corev1.ConditionFalse, deploymentCondition(stored(t, c, deployment("d")), appsv1.DeploymentAvailable).Status)
	require.NoError(t, c.Node("b").Create(nil))
	settle(t, c)
	require.Equal(t, corev1.ConditionTrue, deploymentCondition(stored(t, c, deployment("d")), appsv1.DeploymentAvailable).Status)
	require.NoError(t, fake.Edit(c, "ns", "d", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }))
	require.NoError(t, c.Node("b").Delete())
	settle(t, c)
	require.Equal(t, corev1.ConditionTrue, deploymentCondition(stored(t, c, deployment("d")), appsv1.DeploymentAvailable).Status, "nothing to run")
}

func TestJobsFinishWhenTold(t *testing.T) {
	c := newCluster(t, "a")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	require.NoError(t, c.Create(job))
	settle(t, c)
	require.Empty(t, stored(t, c, job).Status.Conditions)
	require.NoError(t, c.Job("ns", "j").Finish("BackoffLimitExceeded"))
	require.Equal(t, batchv1.JobFailed, stored(t, c, job).Status.Conditions[0].Type)
	require.NoError(t, c.Delete(refTo(job)))
	require.NoError(t, c.Create(job))
	require.NoError(t, c.Job("ns", "j").Finish(""))
	require.Equal(t, batchv1.JobComplete, stored(t, c, job).Status.Conditions[0].Type)
	require.True(t, apierrors.IsNotFound(c.Job("ns", "other").Finish("")))
}

func TestAnAPIServiceIsAvailableWithItsDeployment(t *testing.T) {
	c := newCluster(t, "a")
	local := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.local"}}
	remote := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.remote"},
		Spec: apiregistrationv1.APIServiceSpec{Service: &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "svc"}}}
	require.NoError(t, c.Create(local, remote))
	reason := func(o *apiregistrationv1.APIService) string {
		settle(t, c)
		return stored(t, c, o).Status.Conditions[0].Reason
	}
	require.Equal(t, "Local", reason(local))
	require.Equal(t, "ServiceNotFound", reason(remote))
	require.NoError(t, c.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "svc", Namespace: "ns"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "d"}, Ports: []corev1.ServicePort{{Port: 443}}}}))
	require.Equal(t, "MissingEndpoints", reason(remote))
	require.NoError(t, c.Create(deployment("d")))
	require.Equal(t, "Passed", reason(remote))
	require.NotEmpty(t, fake.Find[*corev1.Service](c, "ns", "svc").Spec.ClusterIP)
}

func TestCRDsServeTheirKinds(t *testing.T) {
	c := newCluster(t)
	require.True(t, meta.IsNoMatchError(c.Create(widget("w"))))
	d := crd("widgets", "Widget", "v1", "v1beta1")
	require.NoError(t, c.Create(d))
	require.Empty(t, stored(t, c, d).Status.Conditions)
	require.True(t, c.Step())
	require.False(t, c.Discovery().Serves(widgetGVK), "names accepted, not yet established")
	settle(t, c)
	require.True(t, c.Discovery().Serves(widgetGVK))
	got := stored(t, c, d)
	require.Equal(t, []string{"v1"}, got.Status.StoredVersions)
	require.Equal(t, "widget", got.Status.AcceptedNames.Singular)
	widgets := fake.ServedKind{GroupVersionKind: widgetGVK, Resource: "widgets", Namespaced: true, Status: true}
	require.Contains(t, c.Discovery().Kinds(), widgets)

	require.NoError(t, c.Create(widget("w")))
	require.NotContains(t, stored(t, c, widget("w")).Object, "status", "a subresource")
	older, err := c.Get(t.Context(), widgetGVK.GroupKind().WithVersion("v1beta1"), "ns", "w")
	require.NoError(t, err)
	require.Equal(t, "example.com/v1beta1", older.GetObjectKind().GroupVersionKind().GroupVersion().String())
	require.Equal(t, "v1", stored(t, c, widget("w")).GroupVersionKind().Version, "the stored one is not touched")
	beta := widget("beta")
	beta.SetGroupVersionKind(widgetGVK.GroupKind().WithVersion("v1beta1"))
	require.NoError(t, c.Create(beta))
	require.Equal(t, "v1", stored(t, c, widget("beta")).GroupVersionKind().Version)
}

func TestAStatusThatIsNoSubresourceIsContent(t *testing.T) {
	c := newCluster(t)
	d := crd("widgets", "Widget", "v1")
	d.Spec.Versions[0].Subresources = nil
	require.NoError(t, c.Create(d))
	settle(t, c)
	require.NoError(t, c.Create(widget("w")))
	require.Equal(t, "Fine", stored(t, c, widget("w")).Object["status"].(map[string]any)["phase"])
	after := stored(t, c, widget("w")).DeepCopy()
	after.Object["status"] = map[string]any{"phase": "Other"}
	require.NoError(t, c.Update(after))
	require.Equal(t, int64(2), stored(t, c, widget("w")).GetGeneration())
	require.True(t, apierrors.IsNotFound(c.UpdateStatus(after)))
}

func TestCustomResourceStatus(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(crd("widgets", "Widget", "v1")))
	settle(t, c)
	require.NoError(t, c.Create(widget("w")))
	before := stored(t, c, widget("w"))
	after := before.DeepCopy()
	after.Object["status"] = map[string]any{"phase": "New"}
	after.Object["spec"] = map[string]any{"size": int64(9)}
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateStatusOf(before, after, olmcore.Cause{})))
	got := stored(t, c, widget("w"))
	require.Equal(t, map[string]any{"phase": "New"}, got.Object["status"])
	require.Equal(t, map[string]any{"size": int64(1)}, got.Object["spec"])
	require.Equal(t, int64(1), got.GetGeneration())
	after = got.DeepCopy()
	after.Object["status"] = map[string]any{"phase": "Ignored"}
	after.Object["spec"] = map[string]any{"size": int64(2)}
	require.NoError(t, c.Do(t.Context(), olmcore.UpdateOf(got, after, olmcore.Cause{})))
	require.Equal(t, map[string]any{"phase": "New"}, stored(t, c, widget("w")).Object["status"])
	require.Equal(t, int64(2), stored(t, c, widget("w")).GetGeneration())
}

func TestDeletingACRDDeletesItsInstances(t *testing.T) {
	c := newCluster(t)
	d := crd("widgets", "Widget", "v1")
	require.NoError(t, c.Create(d))
	settle(t, c)
	held := widget("held")
	held.SetFinalizers([]string{"example.com/hold"})
	require.NoError(t, c.Create(widget("w"), held))
	require.NoError(t, c.Delete(refTo(d)))
	require.Contains(t, stored(t, c, d).Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	require.True(t, apierrors.IsMethodNotSupported(c.Create(widget("late"))))
	settle(t, c)
	require.False(t, exists(c, widget("w")))
	require.True(t, exists(c, d), "held by an instance")
	require.NoError(t, c.Edit(olmcore.KeyOf(held), func(o olmcore.Object) { o.SetFinalizers(nil) }))
	settle(t, c)
	require.False(t, exists(c, d))
	require.False(t, c.Discovery().Serves(widgetGVK))
	require.True(t, meta.IsNoMatchError(c.Create(widget("w"))))
}

func TestTwoCRDsForOneKind(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(crd("widgets", "Widget", "v1")))
	settle(t, c)
	second := crd("gadgets", "Widget", "v1")
	require.NoError(t, c.Create(second))
	settle(t, c)
	require.Equal(t, apiextensionsv1.ConditionFalse, stored(t, c, second).Status.Conditions[0].Status)
	require.Equal(t, "KindConflict", stored(t, c, second).Status.Conditions[0].Reason)
}

func TestCRDVersionsCannotBeDroppedWhileStored(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(crd("widgets", "Widget", "v1")))
	settle(t, c)
	require.NoError(t, c.Create(widget("w")))
	err := fake.Edit(c, "", "widgets.example.com", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Name = "v2" })
	require.ErrorContains(t, err, "must remain in spec.versions")
	require.NoError(t, fake.Edit(c, "", "widgets.example.com", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions = append(d.Spec.Versions, *d.Spec.Versions[0].DeepCopy())
		d.Spec.Versions[0].Storage, d.Spec.Versions[1].Name = false, "v2"
	}))
	settle(t, c)
	require.Equal(t, []string{"v1", "v2"}, stored(t, c, crd("widgets", "Widget", "v1")).Status.StoredVersions)
	o, err := c.Get(t.Context(), widgetGVK.GroupKind().WithVersion("v2"), "ns", "w")
	require.NoError(t, err)
	require.Equal(t, "v2", o.GetObjectKind().GroupVersionKind().Version)
}
