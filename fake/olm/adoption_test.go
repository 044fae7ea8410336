// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// madeByOLM is what a cluster holds, as OLM would have made it.
func madeByOLM(c *fake.Cluster) (objects []olmcore.Object) {
	for _, o := range c.Objects() {
		role, is := o.(*rbacv1.ClusterRole)
		if is && len(role.Rules) == 0 && role.Labels[olmcore.LabelCopiedFrom] != "" {
			continue // the record of a permission, which OLM does not write
		}
		objects = append(objects, csvtest.AsOLM(o))
	}
	return objects
}

// requireTakenOver: controllers without any memory write nothing to what a cluster holds, had OLM made it.
func requireTakenOver(t *testing.T, c *fake.Cluster, o controllers.Options) {
	t.Helper()
	adopting := fake.NewCluster(c.Now())
	require.NoError(t, adopting.Load(madeByOLM(c)...))
	d := &fake.Driver{Cluster: adopting, Controllers: (&olm.OLM{Options: o}).Controllers()}
	require.NoError(t, d.Settle(t.Context()))
	for _, e := range d.Events {
		require.True(t, e.Action == nil && e.Transition == nil, e.String())
	}
}

// calledByAll is an operator with webhooks, an API of its own and a CRD, as an InstallPlan leaves it.
func calledByAll(t *testing.T, w *world, targets []string) {
	c := csvtest.Operator("cool.v1", 1)
	c.UID, c.ResourceVersion, c.Annotations, c.Labels, c.Finalizers = "", "", nil, nil, nil
	c.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	rule := &c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0]
	rule.Verbs = append(rule.Verbs, "get\u202e") // OLM does not escape this in the requirement report
	c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		csvtest.Webhook("validate.example.com", v1alpha1.ValidatingAdmissionWebhook), csvtest.Webhook("mutate.example.com", v1alpha1.MutatingAdmissionWebhook),
	}
	if targets == nil {
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, csvtest.Webhook("convert.example.com", v1alpha1.ConversionWebhook))
	} else {
		c.Spec.InstallModes = append(c.Spec.InstallModes, v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeMultiNamespace, Supported: true})
	}
	c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "hots", Group: "hot.example.com", Version: "v1", Kind: "Hot", DeploymentName: "cool", ContainerPort: 443}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "cools.example.com", Annotations: map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v1"},
	}}
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "cools", Singular: "cool", Kind: "Cool", ListKind: "CoolList"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets}}
	require.NoError(t, w.cluster.Create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, crd, group, c,
	))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "ns", "cool.v1")
	planned, err := olmcore.PermissionObjects(live)
	require.NoError(t, err)
	for _, o := range planned {
		o.SetNamespace("ns")
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(live)})
	}
	require.NoError(t, w.cluster.Create(planned...))
	createPlan(t, w, live)
}

// createPlan creates the InstallPlan of a version as it is when it is complete.
func createPlan(t *testing.T, w *world, c *v1alpha1.ClusterServiceVersion) {
	plan := csvtest.Plan(c)
	plan.UID, plan.ResourceVersion = "", ""
	require.NoError(t, w.cluster.Create(plan.DeepCopy()))
	require.NoError(t, fake.Edit(w.cluster, plan.Namespace, plan.Name, func(p *v1alpha1.InstallPlan) { p.Status = plan.Status }))
}

// TestWhatOLMInstalledIsTakenOverWithoutAWrite: no controller writes anything, and no version leaves Succeeded, which would
// be copied into every namespace. The cleanup knows what OLM made all the same.
func TestWhatOLMInstalledIsTakenOverWithoutAWrite(t *testing.T) {
	for name, targets := range map[string][]string{"all namespaces": nil, "two namespaces": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			calledByAll(t, w, targets)
			require.NoError(t, w.driver.Settle(w.ctx))
			live := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "ns", "cool.v1")
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, live.Status.Phase, live.Status.Message)
			require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "a", "cool.v1"))
			require.NoError(t, w.cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.InstallPlan](w.cluster, "ns", "install-1")).Unversioned()))

			adopting := newWorld(t)
			require.NoError(t, adopting.cluster.Load(madeByOLM(w.cluster)...))
			require.NoError(t, adopting.driver.Settle(w.ctx))
			for _, e := range adopting.driver.Events {
				require.NotContains(t, e.String(), "cool", "a write, or another phase")
			}
			require.NoError(t, adopting.cluster.Delete(olmcore.RefOf(live).Unversioned()))
			require.NoError(t, adopting.driver.Settle(w.ctx))
			for _, o := range adopting.cluster.Objects() {
				name := o.GetName()
				goes := strings.HasPrefix(name, "cool") && !strings.HasPrefix(name, "cools.") || strings.Contains(name, "example.com-x7k2p") || strings.HasSuffix(name, "hot.example.com")
				require.False(t, goes, "%s is left behind; only the CRD stays, and the ClusterRoles for it", olmcore.KeyOf(o))
			}
		})
	}
}
