// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
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

// TestWhatOLMInstalledIsTakenOverWithoutAWrite: no controller writes anything, and no version leaves Succeeded, which
// would be copied into every namespace. The cleanup knows what OLM made all the same.
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
				isReport := e.Diagnostic != nil && e.Diagnostic.Reason == permissions.ReasonAdoptedPermission
				require.True(t, isReport || !strings.Contains(e.String(), "cool"), "a write, or another phase: %s", e)
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

// adoptedAsRefused returns what OLM leaves behind of an operator with a permission that nothing proves, a webhook for
// clusterroles under an OperatorGroup of two namespaces, and an APIService in the group of another operator's CRD.
func adoptedAsRefused(t *testing.T) (objects []olmcore.Object) {
	w := newWorld(t)
	calledByAll(t, w, []string{"a", "b"})
	require.NoError(t, w.driver.Settle(w.ctx))
	require.NoError(t, w.cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.InstallPlan](w.cluster, "ns", "install-1")).Unversioned()))
	described := csvtest.Webhook("mutate.example.com", v1alpha1.MutatingAdmissionWebhook)
	described.Rules[0].APIGroups, described.Rules[0].Resources = []string{"rbac.authorization.k8s.io"}, []string{"clusterroles"}
	hash, err := objecthash.Hash(&described)
	require.NoError(t, err)
	for _, o := range madeByOLM(w.cluster) {
		switch o := o.(type) {
		case *v1alpha1.ClusterServiceVersion:
			o.Spec.WebhookDefinitions[1] = described
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			o.Webhooks[0].Rules, o.Labels["olm.webhook-description-hash"] = described.DeepCopy().Rules, hash
			o.Webhooks[0].Rules[0].Scope = new(admissionregistrationv1.AllScopes)
		case *apiextensionsv1.CustomResourceDefinition:
			other := o.DeepCopy()
			other.Name, other.UID, other.Spec.Group = "hots.hot.example.com", "other", "hot.example.com"
			other.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": "other/hot.v1"}
			objects = append(objects, other)
		}
		objects = append(objects, o)
	}
	return objects
}

// TestTheFirstReportWaitsForTheOperatorGroup checks that permissions are reported once the targets of the OperatorGroup
// are computed, also if they were not at the start.
func TestTheFirstReportWaitsForTheOperatorGroup(t *testing.T) {
	w := newWorld(t)
	for _, o := range adoptedAsRefused(t) {
		if g, is := o.(*operatorsv1.OperatorGroup); is {
			g.Status = operatorsv1.OperatorGroupStatus{}
		}
		require.NoError(t, w.cluster.Load(o))
	}
	slices.Reverse(w.driver.Controllers) // package operatorgroup computes the targets last
	require.NoError(t, w.driver.RunFor(w.ctx, time.Hour))
	isReported := func(e controller.Event) bool {
		return e.Diagnostic != nil && e.Diagnostic.Reason == permissions.ReasonAdoptedPermission
	}
	require.True(t, slices.ContainsFunc(w.driver.Events, isReported), controller.Format(w.driver.Events))
}

// TestWhatANewOperatorWouldNotGetIsReportedOnce checks that a manager which takes over OLM's cluster writes nothing,
// reports once what it would refuse now, and reports it again only after a restart.
func TestWhatANewOperatorWouldNotGetIsReportedOnce(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.cluster.Load(adoptedAsRefused(t)...))
	reported := func() (reasons []string) {
		for _, e := range w.driver.Events {
			if strings.Contains(e.String(), "cool") {
				require.True(t, e.Action == nil && e.Transition == nil, e.String())
				reasons = append(reasons, e.Diagnostic.Reason)
			}
		}
		w.driver.Events = nil
		slices.Sort(reasons)
		return reasons
	}
	for range 2 { // the second time after a restart
		w.driver = &fake.Driver{Cluster: w.cluster, Controllers: (&olm.OLM{Options: w.olm.Options}).Controllers()}
		require.NoError(t, w.driver.RunFor(w.ctx, time.Hour))
		require.Equal(t, []string{csv.ReasonAPIGroupShared, permissions.ReasonAdoptedPermission, csv.ReasonWebhookRulesKept}, reported())
		require.NoError(t, fake.Edit(w.cluster, "ns", "cool.v1", func(c *v1alpha1.ClusterServiceVersion) {
			metav1.SetMetaDataLabel(&c.ObjectMeta, "example.com/touched", fmt.Sprint(w.cluster.Now().Unix()))
		}))
		require.NoError(t, w.driver.RunFor(w.ctx, time.Hour))
		require.NotEmpty(t, w.driver.Events, "the label is copied")
		w.driver.Events = slices.DeleteFunc(w.driver.Events, func(e controller.Event) bool { return e.Controller == "copies" })
		require.Empty(t, reported())
	}
}
