// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// limited returns an operator for its own namespace with a mutating webhook for some resources.
func limited(group string, resources ...string) *v1alpha1.ClusterServiceVersion {
	c := csvtest.Operator("cool.v1", 1)
	c.UID, c.ResourceVersion, c.Annotations, c.Labels, c.Finalizers = "", "", nil, nil, nil
	c.Spec.InstallModes = []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}, {Type: v1alpha1.InstallModeTypeAllNamespaces},
	}
	w := csvtest.Webhook("mutate.example.com", v1alpha1.MutatingAdmissionWebhook)
	w.Rules[0].APIGroups, w.Rules[0].Resources = []string{group}, resources
	c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{w}
	return c
}

func statusOf(c *fake.Cluster) (phaseName, v1alpha1.ConditionReason, string) {
	s := fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1").Status
	return s.Phase, s.Reason, s.Message
}

// onlyWebhook returns the only webhook configuration of a cluster, or nil.
func onlyWebhook(t *testing.T, c *fake.Cluster) *mutating {
	var found []*mutating
	for _, o := range c.Objects() {
		if w, ok := o.(*mutating); ok {
			found = append(found, w)
		}
	}
	require.LessOrEqual(t, len(found), 1)
	return slices.Concat(found, []*mutating{nil})[0]
}

// TestTenantWebhookIsNotCalledForClusterScopedObjects simulates an attack of a tenant whose OperatorGroup targets only
// its own namespace.
func TestTenantWebhookIsNotCalledForClusterScopedObjects(t *testing.T) {
	for _, c := range []*v1alpha1.ClusterServiceVersion{
		limited("rbac.authorization.k8s.io", "clusterroles"), limited("apiextensions.k8s.io", "customresourcedefinitions"),
		limited("", "nodes"), limited("authentication.k8s.io", "tokenreviews"),
	} {
		cluster, driver := install(t, c)
		at, why, message := statusOf(cluster)
		require.Equal(t, failed, at)
		require.Equal(t, reason("InvalidWebhookDescription"), why)
		require.Contains(t, message, `webhook description "mutate.example.com": rules[0]: the rule names the cluster-scoped resources `)
		require.Nil(t, onlyWebhook(t, cluster))

		require.NoError(t, fake.Edit(cluster, "ns", "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil }))
		supportAll := func(c *v1alpha1.ClusterServiceVersion) { c.Spec.InstallModes[1].Supported = true }
		require.NoError(t, fake.Edit(cluster, "ns", "cool.v1", supportAll))
		require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
		at, _, message = statusOf(cluster)
		require.Equal(t, succeeded, at, message)
		scope := *onlyWebhook(t, cluster).Webhooks[0].Rules[0].Scope
		require.Equal(t, admissionregistrationv1.AllScopes, scope, "the group selects all namespaces by now")
	}
	cluster, _ := install(t, limited("", "*"))
	at, _, message := statusOf(cluster)
	require.Equal(t, succeeded, at, message)
	require.Equal(t, admissionregistrationv1.NamespacedScope, *onlyWebhook(t, cluster).Webhooks[0].Rules[0].Scope)
}

// TestCommandInMessageAllowsWebhook checks that an operator that supports only one namespace gets its webhook after a
// cluster administrator runs the command in the message.
func TestCommandInMessageAllowsWebhook(t *testing.T) {
	cluster, driver := install(t, limited("", "nodes"))
	_, why, message := statusOf(cluster)
	require.Equal(t, reason("InvalidWebhookDescription"), why)
	pattern := regexp.MustCompile(`: kubectl annotate operatorgroup group -n ns (\S+)=(\S+) --overwrite$`)
	command := pattern.FindStringSubmatch(message)
	require.Len(t, command, 3, message)
	require.NoError(t, fake.Edit(cluster, "ns", "group", func(g *operatorsv1.OperatorGroup) {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, command[1], command[2])
	}))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	at, _, message := statusOf(cluster)
	require.Equal(t, succeeded, at, message)
	want := limited("", "nodes").Spec.WebhookDefinitions[0].Rules
	want[0].Scope = new(admissionregistrationv1.AllScopes)
	require.Equal(t, want, onlyWebhook(t, cluster).Webhooks[0].Rules)
}

// adoptedWithRules returns a cluster in which OLM installed an operator for its own namespace with a webhook for
// ClusterRoles.
func adoptedWithRules(t *testing.T) (*fake.Cluster, *fake.Driver) {
	made, _ := install(t, limited("", "pods"))
	w := limited("rbac.authorization.k8s.io", "clusterroles").Spec.WebhookDefinitions[0]
	hash, err := olmcore.Hash(&w)
	require.NoError(t, err)
	cluster, driver := newWorld(csv.Config{})
	cluster.Advance(made.Now().Sub(cluster.Now()))
	for _, o := range made.Objects() {
		o = csvtest.AsOLM(o)
		switch o := o.(type) {
		case *v1alpha1.ClusterServiceVersion:
			o.Spec.WebhookDefinitions[0] = w
		case *mutating:
			o.Webhooks[0].Rules, o.Labels["olm.webhook-description-hash"] = w.DeepCopy().Rules, hash
			o.Webhooks[0].Rules[0].Scope = new(admissionregistrationv1.AllScopes)
		}
		if olmcore.KeyOf(o).Kind != "Node" {
			require.NoError(t, cluster.Load(o))
		}
	}
	return cluster, driver
}

// TestWebhookInstalledByOLMKeepsItsRules checks that a webhook that OLM installed for cluster-scoped objects is kept,
// even if its certificate is renewed, and is not installed a second time.
func TestWebhookInstalledByOLMKeepsItsRules(t *testing.T) {
	cluster, driver := adoptedWithRules(t)
	before := onlyWebhook(t, cluster)
	require.NoError(t, driver.Settle(t.Context()))
	for _, e := range driver.Events {
		require.True(t, e.Action == nil && e.Transition == nil, e.String())
	}
	in := calledIn(t, cluster)
	require.Empty(t, reconciled(t, in).Diagnostics, "Reconcile reports it only beside writes")
	reported := assess(t, in).Diagnostics
	require.Len(t, reported, 1)
	require.Equal(t, csv.ReasonWebhookRulesKept, reported[0].Reason)
	require.Contains(t, reported[0].Message, "MutatingWebhookConfiguration mutate.example.com-x7k2p (clusterroles of API groups")

	cluster.Advance(serving.Validity - time.Hour)
	require.NoError(t, driver.RunFor(t.Context(), time.Hour))
	at, _, message := statusOf(cluster)
	require.Equal(t, succeeded, at, message)
	after := onlyWebhook(t, cluster)
	require.Equal(t, before.Webhooks[0].Rules, after.Webhooks[0].Rules)
	require.NotEqual(t, before.Webhooks[0].ClientConfig.CABundle, after.Webhooks[0].ClientConfig.CABundle)

	require.NoError(t, cluster.Delete(olmcore.RefOf(after).Unversioned()))
	require.NoError(t, driver.RunFor(t.Context(), time.Hour))
	at, why, _ := statusOf(cluster)
	require.Equal(t, failed, at)
	require.Equal(t, reason("InvalidWebhookDescription"), why)
	require.Nil(t, onlyWebhook(t, cluster))
}
