// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// called returns an operator for all namespaces with an admission webhook, a conversion webhook and an API.
func called(name string, version int) *v1alpha1.ClusterServiceVersion {
	c := csvtest.Operator(name, version)
	c.UID, c.ResourceVersion, c.Annotations, c.Labels, c.Finalizers = "", "", nil, nil, nil
	c.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	conversion := csvtest.Webhook("convert.example.com", v1alpha1.ConversionWebhook)
	conversion.ConversionCRDs = []string{"cools.example.com"}
	c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		csvtest.Webhook("validate.example.com", v1alpha1.ValidatingAdmissionWebhook), csvtest.Webhook("mutate.example.com", v1alpha1.MutatingAdmissionWebhook), conversion,
	}
	c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "hots", Group: "hot.example.com", Version: "v1", Kind: "Hot", DeploymentName: "cool", ContainerPort: 443}}
	return c
}

// TestWebhooksAndAPIsStayReachable checks that the API server can call an installed operator after every write of a
// controller and every step of the cluster, while certificates, Deployments and versions change.
func TestWebhooksAndAPIsStayReachable(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		change  func(t *testing.T, c *fake.Cluster)
		renewed bool // another certificate follows
	}{
		"nothing":                            {func(*testing.T, *fake.Cluster) {}, false},
		"the certificate is about to expire": {func(_ *testing.T, c *fake.Cluster) { c.Advance(729*24*time.Hour + 30*time.Minute) }, true},
		"the Secret is deleted": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "cool-service-cert"}))
		}, true},
		"the Secret is spoilt": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, fake.Edit(c, "ns", "cool-service-cert", func(s *corev1.Secret) { s.Data["olmCAKey"] = nil }))
		}, true},
		"the operator has another image": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, fake.Edit(c, "ns", "cool.v1", func(v *v1alpha1.ClusterServiceVersion) {
				v.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "example.com/cool:1.1"
			}))
		}, false},
		"the next version": {func(t *testing.T, c *fake.Cluster) {
			next := called("cool.v2", 2)
			next.Spec.Replaces = "cool.v1"
			require.NoError(t, c.Create(next))
			for _, o := range needs(next) {
				if err := c.Create(o); !apierrors.IsAlreadyExists(err) {
					require.NoError(t, err)
				}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := newWorld(csv.Config{})
			first := called("cool.v1", 1)
			require.NoError(t, c.Create(first, groupFor(first)))
			require.NoError(t, c.Create(needs(first)...))
			for _, crd := range definitionsFor(first) {
				serve(crd, "v2")
				require.NoError(t, c.Create(crd))
			}
			require.NoError(t, d.RunFor(ctx, 10*time.Minute))
			status := fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1").Status
			require.Equal(t, csvtest.Succeeded, status.Phase, status.Message)
			require.NoError(t, c.Serving().Check())

			secret := func() string {
				return string(fake.Find[*corev1.Secret](c, "ns", "cool-service-cert").Data["tls.crt"])
			}
			before := secret()
			c.Webhooks = c.Serving().Webhooks(nil)
			var gaps []string
			look := func(before string) {
				if err := c.Serving().Check(); err != nil {
					gaps = append(gaps, fmt.Sprintf("%s, before %s: %v", c.Now().Format(time.TimeOnly), before, err))
				}
			}
			c.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
				look(fmt.Sprint(verb, " ", target))
				return nil
			}
			tc.change(t, c)
			for range 200 {
				for c.Step() {
					look("a step")
				}
				again, err := d.Round(ctx)
				require.NoError(t, err)
				look("the next round")
				if !again && !c.Step() {
					at, waits := d.Deadline()
					if !waits || at.Sub(c.Now()) > time.Hour {
						break
					}
					c.Advance(at.Sub(c.Now()))
				}
			}
			require.Empty(t, gaps)
			require.Equal(t, tc.renewed, secret() != before)
			last := "cool.v1"
			if fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", last) == nil {
				last = "cool.v2"
			}
			require.Equal(t, csvtest.Succeeded, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", last).Status.Phase)
		})
	}
}
