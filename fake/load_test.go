// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func TestLoadKeepsObjectsAsTheyAre(t *testing.T) {
	c := newCluster(t)
	plan := &v1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "00000000-0000-0000-0000-000000000001", ResourceVersion: "4711", Generation: 3,
			CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)), DeletionTimestamp: &metav1.Time{Time: start}, Finalizers: []string{"example.com/hold"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: "gone", UID: "x"}}},
		Status: v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseComplete},
	}
	require.NoError(t, c.Load(plan))
	require.Empty(t, cmp.Diff(plan, stored(t, c, plan)))
	settle(t, c)
	require.Empty(t, cmp.Diff(plan, stored(t, c, plan)), "the cluster leaves it alone, and an owner that was not loaded counts as existing")
	require.NoError(t, c.Create(configMap("cm")))
	require.Greater(t, c.ResourceVersion(), "4711", "the counter is past what was loaded")
}

func TestLoadAssignsWhatIsMissing(t *testing.T) {
	c := newCluster(t)
	loaded := configMap("cm")
	loaded.UID = "7"
	require.NoError(t, c.Load(loaded, configMap("other"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, deployment("d")))
	other := stored(t, c, configMap("other"))
	require.NotEmpty(t, other.UID)
	require.NotEqual(t, "7", other.UID)
	require.NotEmpty(t, other.ResourceVersion)
	require.Equal(t, start, other.CreationTimestamp.UTC())
	require.Equal(t, int64(1), stored(t, c, deployment("d")).Generation)
	require.NotNil(t, fake.Find[*corev1.Namespace](c, "", "ns"))
	require.NotNil(t, fake.Find[*corev1.ConfigMap](c, "default", "x"))
}

// TestASecretIsLoadedWithAType, as no API server has one without.
func TestASecretIsLoadedWithAType(t *testing.T) {
	c := newCluster(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"a": []byte("b")}}
	require.NoError(t, c.Load(secret))
	require.NoError(t, fake.Edit(c, "ns", "s", func(s *corev1.Secret) { s.Labels = map[string]string{"x": "y"} }))
	require.Equal(t, corev1.SecretTypeOpaque, fake.Find[*corev1.Secret](c, "ns", "s").Type)
	require.Empty(t, secret.Type, "the caller's own stays as it is")
}

func TestLoadRefuses(t *testing.T) {
	c := newCluster(t)
	for text, o := range map[string]olmcore.Object{
		"objects[0] is nil":                          nil,
		"objects[0].metadata.name is empty":          &corev1.Pod{},
		"objects[0].kind is empty, or apiVersion is": &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
	} {
		err := c.Load(o)
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	}
	require.Empty(t, c.Objects())
}

func TestLoadServesKindsWithoutACRD(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Load(widget("w")))
	require.True(t, c.Discovery().Serves(widgetGVK))
	require.Equal(t, map[string]any{"phase": "Fine"}, stored(t, c, widget("w")).Object["status"])

	c = newCluster(t)
	require.NoError(t, c.Load(widget("w"), crd("widgets", "Widget", "v2", "v1")))
	settle(t, c)
	o, err := c.Get(t.Context(), widgetGVK, "ns", "w")
	require.NoError(t, err)
	require.Equal(t, "w", o.GetName())
	require.Equal(t, "v2", c.Objects()[len(c.Objects())-1].GetObjectKind().GroupVersionKind().Version)
}

func TestLoadedFailuresGoOn(t *testing.T) {
	c := newCluster(t)
	crashing := newPod("crashing")
	crashing.Spec.NodeName = "a"
	crashing.Status.Phase = corev1.PodRunning
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	silent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))}}}}
	ready := silent.DeepCopy()
	ready.Name = "a"
	ready.Status.Conditions[0].Status, ready.Status.Conditions[0].Reason = corev1.ConditionTrue, "KubeletReady"
	failing := deployment("d")
	failing.Generation, failing.Status.ObservedGeneration = 1, 1
	failing.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	require.NoError(t, c.Load(crashing, silent, ready, failing))
	settle(t, c)
	require.Equal(t, crashing.Status, stored(t, c, crashing).Status)
	require.Equal(t, silent.Status, stored(t, c, silent).Status)
	require.Equal(t, failing.Status, stored(t, c, failing).Status)
	c.Deployment("ns", "d").Heal()
	require.NoError(t, c.Node("b").Heal())
	settle(t, c)
	require.NotEqual(t, failing.Status, stored(t, c, failing).Status)
	require.Equal(t, corev1.ConditionTrue, nodeCondition(t, c, "b").Status)
}

func TestPodsOfADumpWithoutNodesStay(t *testing.T) {
	c := newCluster(t)
	p := newPod("p")
	p.Spec.NodeName = "somewhere"
	require.NoError(t, c.Load(p))
	require.NoError(t, c.RunFor(time.Hour))
	require.True(t, exists(c, p))
}

func TestADumpOfAClusterLoadsIntoTheSameCluster(t *testing.T) {
	c := newCluster(t, "a", "b")
	require.NoError(t, c.Create(crd("widgets", "Widget", "v1"), deployment("d"), newPod("p")))
	settle(t, c)
	require.NoError(t, c.Create(widget("w")))
	again := newCluster(t)
	require.NoError(t, again.Load(c.Objects()...))
	require.Equal(t, dump(t, c), dump(t, again))
	require.Equal(t, c.ResourceVersion(), again.ResourceVersion())
	settle(t, again)
	require.Equal(t, dump(t, c), dump(t, again), "and nothing is left to do in it")
}

// TestALoadedDeploymentThatFailedIsRolledOutAnew: it fails until its template is another one, and no longer.
func TestALoadedDeploymentThatFailedIsRolledOutAnew(t *testing.T) {
	labels := map[string]string{"app": "d"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "d", Generation: 2, UID: "1"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "broken:2"}}}}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, AvailableReplicas: 1, ReadyReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
	}}
	c := fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	require.NoError(t, c.Node("a").Create(nil))
	require.NoError(t, c.Load(d))
	require.NoError(t, c.RunFor(time.Hour))
	require.Zero(t, fake.Find[*appsv1.Deployment](c, "ops", "d").Status.UpdatedReplicas)
	require.NoError(t, fake.Edit(c, "ops", "d", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "works:1" }))
	require.NoError(t, c.RunFor(time.Hour))
	require.EqualValues(t, 1, fake.Find[*appsv1.Deployment](c, "ops", "d").Status.UpdatedReplicas)
}
