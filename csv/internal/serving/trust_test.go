// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// webhookManager installs the webhooks of a CSV in a cluster, with the certificates that it plans.
type webhookManager struct {
	cluster *fake.Cluster
	csv     *v1alpha1.ClusterServiceVersion
	issued  int
}

func listed[T olmcore.Object](t *testing.T, c *fake.Cluster) olmcore.Observed[T] {
	list, err := olmcore.Observe[T](context.Background(), c, "", nil)
	require.NoError(t, err)
	return list
}

// pass returns the actions of one reconcile.
func (m *webhookManager) pass(t *testing.T) ([]olmcore.Action, internalserving.Clients) {
	s := internalserving.Clients{Operator: model.Operator{CSV: m.csv, Group: csvtest.Group(), Objects: &serving.Objects{
		Services: listed[*corev1.Service](t, m.cluster), Secrets: listed[*corev1.Secret](t, m.cluster), Roles: listed[*rbacv1.Role](t, m.cluster),
		RoleBindings: listed[*rbacv1.RoleBinding](t, m.cluster), ClusterRoleBindings: listed[*rbacv1.ClusterRoleBinding](t, m.cluster),
		ValidatingWebhookConfigurations: listed[*validatingConfiguration](
			t,
			m.cluster,
		), MutatingWebhookConfigurations: listed[*mutatingConfiguration](t, m.cluster),
	}}}
	s.CRDs = listed[*definition](t, m.cluster).Items
	from := internalserving.Backends{Operator: s.Operator, Clients: s.List()}
	from.Now = m.cluster.Now()
	plan := internalserving.CertificatesOf(from)
	if len(plan.Requests) > 0 {
		m.issued++
		issued, _, err := olm.Issuer{Seed: fmt.Sprint(m.issued)}.Issue(context.Background(), nil, plan.Requests, m.cluster.Now())
		require.NoError(t, err)
		from.Issued = issued
		plan = internalserving.CertificatesOf(from)
	}
	require.Empty(t, plan.Problem)
	s.Certificates = plan
	install, problem := s.Install()
	require.Empty(t, problem)
	return slices.Concat(plan.Install, install), s
}

// settle reconciles until nothing is left to do. Existing webhooks trust the certificate in the Secret at any time.
func (m *webhookManager) settle(t *testing.T) {
	for range 10 {
		actions, _ := m.pass(t)
		if len(actions) == 0 {
			return
		}
		for _, a := range actions {
			require.NoError(t, m.cluster.Do(context.Background(), a))
			secret := fake.Find[*corev1.Secret](m.cluster, "ns", "cool-service-cert")
			if secret == nil {
				continue
			}
			authority := parse(secret.Data[serving.CAKey])
			for name, bundle := range m.bundles() {
				require.True(t, parse(bundle).Trusts(authority), "%s after %v", name, lines([]olmcore.Action{a}))
			}
		}
	}
	require.Fail(t, "not at rest after 10 passes")
}

// bundles returns the caBundles of all webhooks.
func (m *webhookManager) bundles() map[string][]byte {
	bundles := map[string][]byte{}
	for _, o := range m.cluster.Objects() {
		switch o := o.(type) {
		case *validatingConfiguration:
			bundles[o.Name] = o.Webhooks[0].ClientConfig.CABundle
		case *mutatingConfiguration:
			bundles[o.Name] = o.Webhooks[0].ClientConfig.CABundle
		case *definition:
			if o.Spec.Conversion != nil && o.Spec.Conversion.Webhook != nil {
				bundles[o.Name] = o.Spec.Conversion.Webhook.ClientConfig.CABundle
			}
		}
	}
	return bundles
}

// TestWebhooksTrustTheServingCertificate checks the time from the first certificate to the next one, during an upgrade.
func TestWebhooksTrustTheServingCertificate(t *testing.T) {
	m := &webhookManager{cluster: fake.NewCluster(csvtest.Now), csv: operator(everything()...)}
	require.NoError(
		t,
		m.cluster.Load(
			csvtest.Namespace("ns", nil),
			csvtest.Namespace("kube-system", nil),
			crd("cools.example.com", recorded("ns/cool.v1", "ns/cool.v2")),
		),
	)
	m.settle(t)
	require.Len(t, m.bundles(), 3)
	first := m.bundles()["cools.example.com"]
	_, s := m.pass(t)
	state, why := healthOf(s)
	require.Equal(t, internalserving.Healthy, state, why)

	m.csv = m.csv.DeepCopy()
	m.csv.Name, m.csv.UID = "cool.v2", "uid-cool.v2"
	m.settle(t)
	require.Len(t, m.bundles(), 5, "both versions have their configurations, and share the CRD")

	m.cluster.Advance(serving.Validity - time.Hour)
	m.settle(t)
	require.Equal(t, 2, m.issued)
	for name, bundle := range m.bundles() {
		require.NotEqual(t, string(first), string(bundle), name)
	}
	_, s = m.pass(t)
	state, why = healthOf(s)
	require.Equal(t, internalserving.Healthy, state, why)
}
