// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestRefusedCertificateRenewalDoesNotFlap checks that a version stays in one phase while a policy refuses what the
// renewal of its certificates writes, and that the renewal is finished soon after the policy is gone.
func TestRefusedCertificateRenewalDoesNotFlap(t *testing.T) {
	kinds := []string{
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition", "APIService",
		"Secret", "Service", "Role", "RoleBinding", "ClusterRoleBinding", "Deployment",
	}
	for _, pkg := range []string{"delta", "epsilon", "zeta"} {
		for _, kind := range kinds {
			t.Run(pkg+" "+kind, func(t *testing.T) { refuseRenewal(t, pkg, kind) })
		}
	}
}

func refuseRenewal(t *testing.T, pkg, kind string) {
	w := newWorld(t)
	if pkg != "zeta" { // which cannot watch all namespaces
		require.NoError(t, fake.Edit(w.cluster, namespace, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil }))
	}
	w.heads[pkg] = 1
	require.NoError(t, w.subscribe(pkg, v1alpha1.ApprovalAutomatic))
	require.NoError(t, w.driver.RunFor(t.Context(), 10*time.Minute))
	version := func() *v1alpha1.ClusterServiceVersion {
		return fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName(pkg, 1))
	}
	installed := version()
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, installed.Status.Phase, installed.Status.Message)
	require.NotNil(t, installed.Status.CertsRotateAt)
	w.cluster.Advance(installed.Status.CertsRotateAt.Sub(w.cluster.Now()) - time.Minute)
	refused := 0
	w.cluster.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if target.Kind != kind {
			return nil
		}
		refused++
		return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, target.Name, errors.New("a policy says no"))
	}
	since := len(w.driver.Events)
	require.NoError(t, w.driver.RunFor(t.Context(), 6*time.Hour))
	statuses := 0
	for _, e := range w.driver.Events[since:] {
		if _, isStatus := e.Action.(olmcore.UpdateStatus); isStatus && e.Controller == "csv" {
			statuses++
		}
	}
	require.Less(t, statuses, 10, "%d writes were refused", refused)
	require.Less(t, refused, 200)
	w.cluster.Authorize = nil
	require.NoError(t, w.driver.RunFor(t.Context(), 15*time.Minute))
	renewed := version()
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, renewed.Status.Phase, renewed.Status.Message)
	require.True(t, renewed.Status.CertsRotateAt.After(installed.Status.CertsRotateAt.Time), "the certificate is renewed")
}
