// SPDX-License-Identifier: Apache-2.0

package crvalidation_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// cronVersion returns version n of an operator without Deployments, whose definition has the given bound.
func cronVersion(t testing.TB, n int, bound string) olmcore.Operator {
	version := &v1alpha1.ClusterServiceVersion{}
	require.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: cron.v%d}
spec:
  version: %d.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  customresourcedefinitions: {owned: [{name: crons.example.com, kind: Cron, version: v1}]}
  install: {strategy: deployment, spec: {deployments: []}}
`, n, n), version))
	crd := definition(t, false, spec("replicas: {type: integer"+bound+"}"))
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	return olmcore.Operator{
		Name: version.Name, Package: "cron", Channel: "stable", Version: fmt.Sprintf("%d.0.0", n),
		Catalog: types.NamespacedName{Namespace: "olm", Name: "community"}, Bundle: olmcore.Bundle{Objects: []olmcore.Object{version, crd}},
	}
}

// cluster returns a cluster with the head of the operator installed, and a custom resource of it.
func cluster(t testing.TB, head *olmcore.Operator, resources int) (*fake.Cluster, *fake.Driver) {
	c := fake.NewCluster(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	o := &olm.OLM{Options: controllers.Options{
		KubernetesVersion: "v1.36.2",
		Resolve: func(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
			answer := olmcore.Resolution{Observed: request.Subscriptions}
			for _, f := range request.Subscriptions {
				d := olmcore.SubscriptionDecision{Name: f.Name, CurrentCSV: f.CurrentCSV}
				if o := *head; f.InstalledCSV != o.Name {
					d.CurrentCSV, d.Changed = o.Name, f.CurrentCSV != o.Name
					o.Replaces, o.For = f.InstalledCSV, []string{f.Name}
					answer.Operators = append(answer.Operators, o)
				}
				answer.Decisions = append(answer.Decisions, d)
			}
			return answer, nil
		},
		Judge: func(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
			return crvalidation.JudgeWithin(ctx, r, changes, resources, 20)
		},
	}}
	d := &fake.Driver{Cluster: c, Controllers: o.Controllers()}
	require.NoError(t, c.Create(
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ops"}}},
		&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "cron"},
			Spec: &v1alpha1.SubscriptionSpec{Package: "cron", Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm"}},
	))
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	require.NoError(t, c.Create(cron(t, "mine", "{replicas: 10}")))
	return c, d
}

// upgrade changes the head of the channel and lets time pass.
func upgrade(t testing.TB, c *fake.Cluster, d *fake.Driver, head *olmcore.Operator, to olmcore.Operator) {
	*head = to
	require.NoError(t, fake.Edit(c, "ops", "cron", func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = to.Name }))
	require.NoError(t, d.RunFor(t.Context(), 3*time.Minute))
}

// newest returns the plan with the highest generation.
func newest(t testing.TB, c *fake.Cluster) *v1alpha1.InstallPlan {
	plans, err := olmcore.List[*v1alpha1.InstallPlan](t.Context(), c, "ops", nil)
	require.NoError(t, err)
	var found *v1alpha1.InstallPlan
	for _, p := range plans {
		if found == nil || p.Spec.Generation > found.Spec.Generation {
			found = p
		}
	}
	return found
}

func maximum(c *fake.Cluster) *float64 {
	crd := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "crons.example.com")
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["replicas"].Maximum
}

// TestUpgradeThatInvalidatesACustomResourceIsRefused checks that neither the definition nor the new version is written,
// that the plan names the invalid custom resource, and that it continues once that resource is corrected.
//
// OLM's cases: the only version lowers its maximum; compatible completes, incompatible or incomplete fails, deprecated
// completes.
func TestUpgradeThatInvalidatesACustomResourceIsRefused(t *testing.T) {
	head := cronVersion(t, 1, "")
	c, d := cluster(t, &head, 100)
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, newest(t, c).Status.Phase)

	upgrade(t, c, d, &head, cronVersion(t, 2, ", maximum: 9"))
	p := newest(t, c)
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, p.Status.Phase)
	require.Equal(t, `error validating existing CRs against new CRD's schema for "crons.example.com": `+
		`error validating example.com/v1, Kind=Cron "ops/mine": updated validation is too restrictive: `+
		`[].spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9`, p.Status.Message)
	require.Nil(t, maximum(c))
	require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "cron.v1"))
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "cron.v2"))

	require.NoError(t, c.Edit(olmcore.KeyOf(cron(t, "mine", "{}")), func(o olmcore.Object) {
		require.NoError(t, unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, int64(9), "spec", "replicas"))
	}))
	require.NoError(t, d.RunFor(t.Context(), 3*time.Minute))
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, newest(t, c).Status.Phase)
	require.Equal(t, 9.0, *maximum(c))
	require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "cron.v2"))
}

// TestUpgradeWithValidCustomResourcesIsInstalled checks that an upgrade is installed if all validated custom resources
// are valid. The plan reports custom resources beyond the limits.
func TestUpgradeWithValidCustomResourcesIsInstalled(t *testing.T) {
	head := cronVersion(t, 1, "")
	c, d := cluster(t, &head, 1)
	upgrade(t, c, d, &head, cronVersion(t, 2, ", maximum: 10"))
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, newest(t, c).Status.Phase)
	require.Equal(t, 10.0, *maximum(c))

	require.NoError(t, c.Create(cron(t, "more", "{replicas: 10}")))
	require.NoError(t, c.Edit(olmcore.KeyOf(cron(t, "mine", "{}")), func(o olmcore.Object) {
		require.NoError(t, unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, int64(1), "spec", "replicas"))
	}))
	d.Events = nil
	upgrade(t, c, d, &head, cronVersion(t, 3, ", maximum: 9"))
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, newest(t, c).Status.Phase)
	require.True(t, slices.ContainsFunc(d.Events, func(e controller.Event) bool {
		return e.Diagnostic != nil && e.Diagnostic.Message == "1 custom resources of crons.example.com were not validated against the schema of version v1"
	}))
}
