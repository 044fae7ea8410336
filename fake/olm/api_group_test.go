// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// confined is a world whose OperatorGroup prescribes an account, with a catalog of package alpha.
func confined(t *testing.T, alpha resolution.Package) *world {
	w := newWorld(t)
	account := metav1.ObjectMeta{Namespace: namespace, Name: "installer"}
	require.NoError(t, w.cluster.Create(&corev1.ServiceAccount{ObjectMeta: account}))
	require.NoError(t, fake.Edit(w.cluster, namespace, "group", func(g *operatorsv1.OperatorGroup) {
		g.Spec.ServiceAccountName = account.Name
	}))
	w.serve(t, alpha)
	return w
}

func (w *world) serve(t *testing.T, alpha resolution.Package) {
	catalogs, err := catalogsOf(map[string]resolution.Package{"alpha": alpha})
	require.NoError(t, err)
	catalogs.Serve(&w.olm.Options)
	w.olm.CatalogsChanged()
}

// TestATenantDefinesNothingInTheGroupOfAnother checks the attack through all controllers: the bundle of a tenant has a
// definition in an API group that an extension API server serves. The plan fails, and the command in its message allows
// the definition.
func TestATenantDefinesNothingInTheGroupOfAnother(t *testing.T) {
	w := confined(t, owning("alpha", nil))
	service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.example.com"}}
	service.Spec.Group, service.Spec.Version = "example.com", "v1alpha1"
	service.Spec.GroupPriorityMinimum, service.Spec.VersionPriority = 100, 100
	require.NoError(t, w.cluster.Create(service))
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 10*time.Minute)
	plan := w.planOf(t, csvName("alpha", 1))
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, plan.Status.Phase)
	require.Equal(t, "CustomResourceDefinition alphas.example.com is not created: APIService v1alpha1.example.com of the same group "+
		"belongs to no operator of namespace ops. To allow it, a cluster administrator can run: kubectl annotate --overwrite "+
		"apiservice/v1alpha1.example.com olmcore/api-group-shared-with=ops", plan.Status.Message)
	require.Nil(t, fake.Find[*apiextensionsv1.CustomResourceDefinition](w.cluster, "", "alphas.example.com"))
	require.Empty(t, w.phases(), "no step of the plan is applied")
	w.requireNothingIsAsked(t)

	require.NoError(t, fake.Edit(w.cluster, "", "v1alpha1.example.com", func(a *apiregistrationv1.APIService) {
		a.Annotations = map[string]string{"olmcore/api-group-shared-with": namespace}
	}))
	w.run(t, 5*time.Minute)
	require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
	require.NotNil(t, fake.Find[*apiextensionsv1.CustomResourceDefinition](w.cluster, "", "alphas.example.com"))
}

// TestAnOperatorServesItsGroupInTwoWays checks that an operator may bring definitions and an APIService of one API
// group: at its first installation, at an upgrade that adds a definition, and when it is installed again.
func TestAnOperatorServesItsGroupInTwoWays(t *testing.T) {
	alpha := owning("alpha", []string{"things"}, []string{"things", "others"})
	for _, bundle := range alpha.Bundles {
		csv := bundle.Objects[0].(*v1alpha1.ClusterServiceVersion)
		csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{
			Name: "served", Group: "example.com", Version: "v1alpha1", Kind: "Served", ContainerPort: 443,
			DeploymentName: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name,
		}}
	}
	first := alpha
	first.Channels = nil
	for _, channel := range alpha.Channels {
		channel.Entries = channel.Entries[:1]
		first.Channels = append(first.Channels, channel)
	}
	first.Bundles = alpha.Bundles[:1]
	w := confined(t, first)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 5*time.Minute)
	require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
	w.serve(t, alpha)
	w.poke(t)
	w.run(t, 10*time.Minute)
	require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())

	for _, gone := range []olmcore.Object{
		fake.Find[*v1alpha1.Subscription](w.cluster, namespace, "alpha"),
		fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("alpha", 2)),
		fake.Find[*apiextensionsv1.CustomResourceDefinition](w.cluster, "", "others.example.com"),
	} {
		require.NoError(t, w.cluster.Delete(olmcore.RefOf(gone).Unversioned()))
	}
	w.run(t, 5*time.Minute)
	require.Empty(t, w.phases())
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 5*time.Minute)
	require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())
	require.NotNil(t, fake.Find[*apiregistrationv1.APIService](w.cluster, "", "v1alpha1.example.com"))
	w.requireNothingIsAsked(t)
}
