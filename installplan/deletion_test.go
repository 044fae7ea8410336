// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestCleanupOfADeletedPlan: the bundle that only it refers to goes first, then its finalizer, alone.
func TestCleanupOfADeletedPlan(t *testing.T) {
	going := func(d time.Duration) *v1alpha1.InstallPlan {
		s := csvStep("etcd.v1")
		s.Resource.Manifest = reference()
		return plan(installing, []*v1alpha1.Step{s, nil}, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = ago(d) })
	}
	const (
		deletes  = "delete ConfigMap ops/" + bundleName + " (PlanDeleted)"
		releases = "update InstallPlan ops/install-x (PlanDeleted)"
	)
	old, unmanaged, anothers := unpackedBundle(25*time.Hour), unpackedBundle(25*time.Hour), unpackedBundle(25*time.Hour)
	unmanaged.Labels, anothers.OwnerReferences[0].APIVersion = nil, "example.com/v1"
	other := numbered(1, complete, func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = reference() }, inNamespace("other"))
	pending := numbered(1, installing, inNamespace("other"), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{{Path: bundleImage, CatalogSourceRef: &corev1.ObjectReference{Namespace: ns, Name: "cool"}}}
	})
	for name, c := range map[string]struct {
		age     time.Duration
		cms     []*corev1.ConfigMap
		others  []*v1alpha1.InstallPlan
		change  func(in *installplan.Input)
		want    []string
		reasons []string
	}{
		"an old bundle that nobody else refers to":   {cms: []*corev1.ConfigMap{old}, want: []string{deletes}},
		"the plan itself is no other":                {cms: []*corev1.ConfigMap{old}, others: []*v1alpha1.InstallPlan{going(0)}, want: []string{deletes}},
		"a bundle that another plan refers to stays": {cms: []*corev1.ConfigMap{old}, others: []*v1alpha1.InstallPlan{other}, want: []string{releases}},
		"a bundle that is being looked up stays":     {cms: []*corev1.ConfigMap{old}, others: []*v1alpha1.InstallPlan{pending}, want: []string{releases}},
		"a young bundle is left to the sweep":        {cms: []*corev1.ConfigMap{unpackedBundle(time.Hour)}, want: []string{releases}},
		"a ConfigMap that is no bundle stays":        {cms: []*corev1.ConfigMap{{ObjectMeta: meta(bundleName)}}, want: []string{releases}},
		"an unmanaged ConfigMap stays":               {cms: []*corev1.ConfigMap{unmanaged}, want: []string{releases}},
		"one of another kind of CatalogSource stays": {cms: []*corev1.ConfigMap{anothers}, want: []string{releases}},
		"nothing was read":                           {want: []string{releases}},
		"a namespace that goes as a whole": {cms: []*corev1.ConfigMap{old}, change: func(in *installplan.Input) {
			in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, DeletionTimestamp: ago(0)}})
		}, want: []string{releases}},
		"the time is over": {age: time.Minute, cms: []*corev1.ConfigMap{old}, want: []string{releases}, reasons: []string{"CleanupIncomplete"}},
		"it may not be deleted": {cms: []*corev1.ConfigMap{old}, want: []string{deletes}, reasons: []string{"CleanupForbidden"}, change: func(in *installplan.Input) {
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(old): {Class: olmcore.Forbidden, Message: "no"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(going(c.age), func(in *installplan.Input) {
				in.ConfigMaps, in.OtherPlans = olmcore.Found(c.cms...), olmcore.Found(c.others...)
			})
			if c.change != nil {
				c.change(&in)
			}
			require.NoError(t, invariant.Laws(reconcileResult, in))
			got := reconcile(t, in)
			same(t, c.want, describe(got))
			same(t, c.reasons, reasons(got))
		})
	}
}

// TestDeletedPlanDeletesItsBundle in a cluster, with what is owned by the ConfigMap, and leaves that of another plan.
func TestDeletedPlanDeletesItsBundle(t *testing.T) {
	for name, shared := range map[string]bool{"its own": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			o, cm := imageOf(t, rich())
			cm.OwnerReferences = nil
			source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}
			c := world(t, source, userSubscription("rich"))
			cm.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(fake.Find[*v1alpha1.CatalogSource](c, "olm", "cool"))}
			cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			require.NoError(t, c.Create(cm))
			d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), things), plans(things)}}
			require.NoError(t, d.Settle(t.Context()))
			p := onlyPlan(t, c)
			if shared {
				twin := p.DeepCopy()
				twin.Namespace, twin.UID, twin.ResourceVersion, twin.OwnerReferences = "other", "", "", nil
				require.NoError(t, c.Create(twin))
				require.NoError(t, c.UpdateStatus(twin))
			}
			d = &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(things)}}
			c.Advance(25 * time.Hour)
			require.NoError(t, fake.Edit(c, ns, p.Name, func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }))
			require.NoError(t, c.Delete(olmcore.RefOf(p).Unversioned()))
			require.NoError(t, d.Settle(t.Context()))
			require.Nil(t, fake.Find[*v1alpha1.InstallPlan](c, ns, p.Name))
			require.Equal(t, shared, fake.Find[*corev1.ConfigMap](c, "olm", bundleName) != nil)
		})
	}
}

// TestFinishedPlanOfADeletedNamespace is let go even where a mark is left.
func TestFinishedPlanOfADeletedNamespace(t *testing.T) {
	marked := subscription("g", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	})
	for name, namespace := range map[string]*corev1.Namespace{
		"by its phase": {ObjectMeta: metav1.ObjectMeta{Name: ns}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
		"by its time":  {ObjectMeta: metav1.ObjectMeta{Name: ns, DeletionTimestamp: ago(0)}},
	} {
		p := plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(marked), func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} })
		in := input(p, with(marked))
		in.Namespace = olmcore.Found(namespace)
		r := reconcile(t, in)
		require.Len(t, r.Actions, 1, name)
		require.Empty(t, r.Actions[0].(olmcore.Update).After.GetFinalizers(), name)
	}
}
