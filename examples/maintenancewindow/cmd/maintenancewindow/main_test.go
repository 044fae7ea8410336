// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/controllerruntime/olmcommand"
	"github.com/olmcore/olm/examples/maintenancewindow"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// newCluster has a plan that waits, and a window that is always open.
func newCluster(t *testing.T) *fake.Cluster {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	f, err := os.Open("../../config/crd.yaml")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	read, err := decode.Read(f.Name(), f)
	require.NoError(t, err)
	objects, err := decode.Distinct(read)
	require.NoError(t, err)
	require.NoError(t, c.Create(append(objects, apiserver.Definitions()...)...))
	require.NoError(t, c.Settle())
	window := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"schedule": "* * * * *", "duration": "1h"}}}
	window.SetGroupVersionKind(maintenancewindow.Kind)
	window.SetName("always")
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-a", UID: "p"},
		Spec:   v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalManual, ClusterServiceVersionNames: []string{"a.v1"}},
		Status: v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseRequiresApproval}}
	follows := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a"},
		Spec:   &v1alpha1.SubscriptionSpec{Package: "a", CatalogSource: "community", CatalogSourceNamespace: "olm", InstallPlanApproval: v1alpha1.ApprovalManual},
		Status: v1alpha1.SubscriptionStatus{InstallPlanRef: &corev1.ObjectReference{Namespace: "ops", Name: plan.Name, UID: plan.UID}}}
	plan.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: v1alpha1.SubscriptionKind, Name: "a", UID: "s"}}
	follows.UID = "s"
	require.NoError(t, c.Load(follows, plan))
	require.NoError(t, c.Create(window))
	return c
}

// TestAWrongFileIsReportedBeforeACluster checks that the cluster, which does not exist, is not what the error is about.
func TestAWrongFileIsReportedBeforeACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("catalog: {replicas: 6}\n"), 0o600))
	err := olmcommand.Run(t.Context(), []string{"--config", file}, io.Discard, add)
	require.EqualError(t, err, file+": catalog.replicas: is not between 1 and 5")
}

// TestTheProcessApproves starts the process as main does against an API server.
func TestTheProcessApproves(t *testing.T) {
	s := apiserver.New(newCluster(t))
	front := httptest.NewServer(s)
	defer front.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, apiserver.Kubeconfig(front.URL), 0o600))
	t.Setenv("KUBECONFIG", kubeconfig)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("installPlan: {maxInstallPlans: 3}\n"), 0o600))
	go func() {
		ended <- olmcommand.Run(ctx, []string{"--zap-log-level", "error", "--config", file}, io.Discard, add)
	}()
	deadline := time.Now().Add(20 * time.Second)
	for done := false; !done; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the plan is not approved")
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		require.NoError(t, s.With(func(c *fake.Cluster) error {
			p := fake.Find[*v1alpha1.InstallPlan](c, "ops", "install-a")
			window, err := c.Get(ctx, maintenancewindow.Kind, "", "always")
			_, told := olmcore.Object(window).(*unstructured.Unstructured).Object["status"]
			done = told && p.Spec.Approved && p.Annotations[maintenancewindow.AnnotationApprovedBy] == "always"
			return err
		}))
	}
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the process does not end")
	}
}
