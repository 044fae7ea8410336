// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestAnOwnerThatIsNotThere fails the plan after a minute, unless it comes in
// time.
//
// OLM's case: an owner that never comes fails the plan after a minute.
func TestAnOwnerThatIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		comes time.Duration
		want  v1alpha1.InstallPlanPhase
	}{
		"never":            {want: failed},
		"after 50 seconds": {comes: 50 * time.Second, want: complete},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := world(t)
			require.NoError(t, cluster.Load(plan(installing, []*v1alpha1.Step{roleStep("a.v1", "r")}, func(p *v1alpha1.InstallPlan) { p.UID = "" })))
			d := &fake.Driver{Cluster: cluster, Controllers: []fake.Controller{plans(installplan.Config{})}}
			require.NoError(t, d.RunFor(t.Context(), 50*time.Second))
			require.Equal(t, installing, onlyPlan(t, cluster).Status.Phase)
			require.Nil(t, fake.Find[*rbacv1.Role](cluster, ns, "r"))
			if c.comes > 0 {
				require.NoError(t, cluster.Create(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: "a.v1"} })))
			}
			require.NoError(t, d.RunFor(t.Context(), time.Minute))
			p := onlyPlan(t, cluster)
			require.Equal(t, c.want, p.Status.Phase, p.Status.Message)
			if c.want == failed {
				require.Equal(t, `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "a.v1" not found`, p.Status.Message)
				require.Nil(t, fake.Find[*rbacv1.Role](cluster, ns, "r"))
				return
			}
			require.True(t, olmcore.OwnedBy(fake.Find[*rbacv1.Role](cluster, ns, "r"), fake.Find[*v1alpha1.ClusterServiceVersion](cluster, ns, "a.v1").UID))
		})
	}
}

// TestAnAccountWithoutRights: definitions are written by the controller itself, all
// else waits for the group's account, however long, and is there once it may.
//
// OLM's case: an account without rights: definitions yes, the rest once it may.
func TestAnAccountWithoutRights(t *testing.T) {
	c := world(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scoped"}})
	account := fake.Find[*corev1.ServiceAccount](c, ns, "scoped")
	require.NoError(t, fake.Edit(c, ns, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = "scoped" }))
	g := fake.Find[*operatorsv1.OperatorGroup](c, ns, "group").DeepCopy()
	g.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped", UID: account.UID}
	require.NoError(t, c.UpdateStatus(g))
	allowed := map[string]bool{"ClusterServiceVersion": true}
	c.Authorize = func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if as == nil || allowed[target.Kind] {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, target.Name, fmt.Errorf(
			"User %q cannot %s resource %q in API group %q in the namespace %q", "system:serviceaccount:ops:"+as.Name, verb, "services", "", ns))
	}
	service := written(t, "a.v1", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`)
	p := executed(t, c, "install-x", csvStep("a.v1"), crdStep("a.v1", "v1"), service)
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(installplan.Config{})}}
	require.NoError(t, d.RunFor(t.Context(), time.Hour))

	p = fake.Find[*v1alpha1.InstallPlan](c, ns, p.Name)
	require.Equal(t, installing, p.Status.Phase)
	require.Equal(t, g.Status.ServiceAccountRef, p.Status.AttenuatedServiceAccountRef)
	require.Contains(t, p.Status.Message, `cannot create resource "services" in API group "" in the namespace "ops"`)
	require.NotNil(t, fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com"))
	require.Nil(t, fake.Find[*corev1.Service](c, ns, "s"))
	require.Equal(t, []v1alpha1.StepStatus{created, created, notPresent}, statuses(p.Status))

	allowed["Service"] = true
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	p = fake.Find[*v1alpha1.InstallPlan](c, ns, p.Name)
	require.Equal(t, complete, p.Status.Phase, p.Status.Message)
	require.Empty(t, p.Status.Message)
	require.NotNil(t, fake.Find[*corev1.Service](c, ns, "s"))
}

// TestAGroupThatComesLate: until then the plan says so, afterwards nothing of it
// is left.
//
// OLM's case: no group, then one: the condition comes and goes.
func TestAGroupThatComesLate(t *testing.T) {
	c := world(t)
	g := fake.Find[*operatorsv1.OperatorGroup](c, ns, "group").DeepCopy()
	require.NoError(t, c.Delete(olmcore.RefOf(g).Unversioned()))
	require.NoError(t, c.Load(plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.UID, p.Spec.Approval, p.Spec.Approved = "", v1alpha1.ApprovalManual, false
	})))
	before := onlyPlan(t, c).Status
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(installplan.Config{})}}
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Len(t, onlyPlan(t, c).Status.Conditions, 1)
	require.Equal(t, v1alpha1.InstallPlanReasonInstallCheckFailed, onlyPlan(t, c).Status.Conditions[0].Reason)

	g.UID, g.ResourceVersion = "", ""
	require.NoError(t, c.Create(g))
	require.NoError(t, c.UpdateStatus(g))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	same(t, before, onlyPlan(t, c).Status)
	require.NoError(t, fake.Edit(c, ns, "install-x", func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
}

// releaseOf is version n of an operator with what OLM's tests change from one to
// the next: its permissions, its display name, a ConfigMap that stays and one that
// gets another name.
func releaseOf(n int, verbs ...string) olmcore.Operator {
	name := fmt.Sprintf("a.v%d", n)
	typed := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	o := operator("a",
		&corev1.ConfigMap{TypeMeta: typed("ConfigMap"), ObjectMeta: bare("same"), Data: map[string]string{fmt.Sprintf("v%d", n): "x"}},
		&corev1.ConfigMap{TypeMeta: typed("ConfigMap"), ObjectMeta: bare(fmt.Sprintf("renamed-%d", n))},
		&corev1.Secret{TypeMeta: typed("Secret"), ObjectMeta: bare("secret"), Data: map[string][]byte{"n": {byte('0' + n)}}})
	version := o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion)
	version.Name, version.Spec.DisplayName = name, name
	version.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{may("a", verbs...)}
	o.Name, o.Version = name, fmt.Sprintf("%d.0.0", n)
	if n > 1 {
		o.Replaces = fmt.Sprintf("a.v%d", n-1)
	}
	return o
}

// TestAnUpgradeBringsWhatItsBundleHas, whatever somebody made of the version
// before; what only that one had goes with it, and all goes with the last.
//
// OLM's cases: an update replaces what is installed; an upgrade widens, narrows, and
// undoes what users edited; a bundle's ConfigMap and Secret follow its version.
func TestAnUpgradeBringsWhatItsBundleHas(t *testing.T) {
	for name, c := range map[string]struct{ before, after []string }{
		"permissions are widened":  {[]string{"get"}, []string{"get", "list"}},
		"permissions are narrowed": {[]string{"get", "list"}, []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := world(t, userSubscription("a"))
			run := func(o olmcore.Operator) {
				d := &fake.Driver{Cluster: cluster, Controllers: []fake.Controller{makers(installs(o), installplan.Config{}), plans(installplan.Config{})}}
				require.NoError(t, d.Settle(t.Context()))
				version := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, ns, o.Name)
				require.Equal(t, o.Name, version.Spec.DisplayName)
				require.Equal(t, o.Replaces, version.Spec.Replaces)
			}
			remove := func(name string) {
				require.NoError(t, cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](cluster, ns, name)).Unversioned()))
				require.NoError(t, cluster.Settle())
			}
			verbs := func() []string {
				roles, err := olmcore.List[*rbacv1.Role](t.Context(), cluster, ns, nil)
				require.NoError(t, err)
				require.Len(t, roles, 1)
				return roles[0].Rules[0].Verbs
			}
			config := func(name string) *corev1.ConfigMap { return fake.Find[*corev1.ConfigMap](cluster, ns, name) }

			run(releaseOf(1, c.before...))
			require.Equal(t, c.before, verbs())
			require.Equal(t, map[string]string{"v1": "x"}, config("same").Data)
			require.NoError(t, fake.Edit(cluster, ns, "a.v1", func(v *v1alpha1.ClusterServiceVersion) {
				v.Spec.DisplayName = "edited"
				v.Spec.InstallStrategy.StrategySpec.Permissions = nil
			}))

			run(releaseOf(2, c.after...))
			remove("a.v1")
			require.Equal(t, c.after, verbs(), "the old version's went with it")
			require.Equal(t, map[string]string{"v2": "x"}, config("same").Data)
			require.Nil(t, config("renamed-1"))
			require.NotNil(t, config("renamed-2"))
			require.Equal(t, []byte("2"), fake.Find[*corev1.Secret](cluster, ns, "secret").Data["n"])

			remove("a.v2")
			require.Nil(t, config("same"))
			require.Nil(t, config("renamed-2"))
			require.Nil(t, fake.Find[*corev1.Secret](cluster, ns, "secret"))
			require.Nil(t, fake.Find[*corev1.ServiceAccount](cluster, ns, "a"))
		})
	}
}

// TestALostPlanIsMadeAnew: somebody deletes one that waits for approval, and the
// next one has the same content and the next generation.
//
// OLM's case: a pending plan that is deleted is made anew.
func TestALostPlanIsMadeAnew(t *testing.T) {
	c := world(t, userSubscription("a", manual))
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(operator("a")), installplan.Config{}), plans(installplan.Config{})}}
	require.NoError(t, d.Settle(t.Context()))
	first := onlyPlan(t, c)
	require.Equal(t, requiresApproval, first.Status.Phase)
	require.NoError(t, c.Delete(olmcore.RefOf(first).Unversioned()))
	sub := fake.Find[*v1alpha1.Subscription](c, ns, "a").DeepCopy() // forgets the plan, as package subscription makes it
	sub.Status.InstallPlanRef, sub.Status.CurrentCSV = nil, ""
	require.NoError(t, c.UpdateStatus(sub))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	second := onlyPlan(t, c)
	require.NotEqual(t, first.UID, second.UID)
	require.Equal(t, requiresApproval, second.Status.Phase)
	require.Equal(t, first.Spec.Generation+1, second.Spec.Generation)
	same(t, first.Status.Plan, second.Status.Plan)
}

// TestAnImageThatIsReplaced: as long as one cannot be unpacked there is no plan and
// its Subscription stays as it was; a catalog that has another image goes on.
//
// OLM's case: a timeout fails the unpacking; another image recovers.
func TestAnImageThatIsReplaced(t *testing.T) {
	good, cm := imageOf(t, operator("a"))
	bad := good
	bad.Bundle.Image = "quay.io/operatorhubio/broken:v1"
	cm.UID, cm.ResourceVersion = "", ""
	c := world(t, &v1alpha1.CatalogSource{ObjectMeta: inOLM("cool")}, cm, userSubscription("a"))
	run := func(o olmcore.Operator) {
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), installplan.Config{}), plans(installplan.Config{})}}
		require.NoError(t, d.RunFor(t.Context(), 10*time.Minute))
	}
	before := fake.Find[*v1alpha1.Subscription](c, ns, "a").DeepCopy()
	run(bad)
	all, err := olmcore.List[*v1alpha1.InstallPlan](t.Context(), c, ns, nil)
	require.NoError(t, err)
	require.Empty(t, all)
	same(t, before, fake.Find[*v1alpha1.Subscription](c, ns, "a"))

	run(good)
	require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
	require.Equal(t, "a.v1", fake.Find[*v1alpha1.Subscription](c, ns, "a").Status.CurrentCSV)
	require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, "a.v1"))
}
