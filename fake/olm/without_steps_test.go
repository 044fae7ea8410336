// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// withoutSteps returns a world in which alpha references a plan that had no steps when something happened.
func withoutSteps(t *testing.T, happens func(*world)) (*world, *v1alpha1.InstallPlan) {
	w, packages := newWorld(t), map[string]resolution.Package{}
	w.offer(t, packages, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	plan := w.plans()[0]
	require.NoError(t, fake.Edit(w.cluster, namespace, plan.Name, func(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }))
	happens(w)
	w.olm.CatalogsChanged()
	w.run(t, time.Minute)
	return w, plan
}

func (w *world) channel(t *testing.T, name string) {
	require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Spec.Channel = name }))
}

// TestPlanWithoutStepsKeepsItsApproval: the namespace cannot be resolved, and alpha's condition says so. Once the
// namespace can be resolved again, the plan gets its steps and is executed as approved.
func TestPlanWithoutStepsKeepsItsApproval(t *testing.T) {
	w, plan := withoutSteps(t, func(w *world) { w.channel(t, "nosuch") })
	require.NoError(t, w.approveAll())
	w.run(t, 24*time.Hour)
	left := w.plans()[0]
	require.Equal(t, plan.UID, left.UID)
	require.Empty(t, left.Status.Phase)
	alpha := w.status("alpha")
	require.Equal(t, plan.UID, alpha.InstallPlanRef.UID)
	require.Equal(t, corev1.ConditionTrue, alpha.GetCondition(v1alpha1.SubscriptionResolutionFailed).Status, "the cause is published")

	w.channel(t, "stable")
	w.run(t, 10*time.Minute)
	require.Len(t, w.plans(), 1)
	require.Equal(t, plan.UID, w.plans()[0].UID)
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, w.plans()[0].Status.Phase)
	w.requireInstalled(t, "alpha")
}

// TestPlanWithoutStepsEndsAfterAManualInstallation: a user creates the version by hand. The plan ends, and the
// Subscription does not report a pending plan any more.
func TestPlanWithoutStepsEndsAfterAManualInstallation(t *testing.T) {
	w, plan := withoutSteps(t, func(w *world) {
		for _, o := range w.bundle("alpha", 1) {
			if o = o.DeepCopyObject().(olmcore.Object); o.GetNamespace() == "" {
				o.SetNamespace(namespace)
			}
			require.NoError(t, w.cluster.Create(o))
		}
	})
	w.run(t, 10*time.Minute)
	ended := w.plans()[0]
	require.Equal(t, plan.UID, ended.UID)
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, ended.Status.Phase)
	require.Equal(t, "the versions of its Subscriptions are installed", ended.Status.Message)
	alpha := w.status("alpha")
	require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, alpha.State)
	require.Equal(t, csvName("alpha", 1), alpha.InstalledCSV)
	require.Nil(t, alpha.InstallPlanRef)
	for _, c := range alpha.Conditions {
		require.Equal(t, corev1.ConditionFalse, c.Status, "%s", c.Type)
	}
}

// TestStepsAndTheEndOfAPlanMeetAtTheAPIServer: one manager ends the plan while another one, whose cache is older,
// writes the steps. The API server rejects the second write.
func TestStepsAndTheEndOfAPlanMeetAtTheAPIServer(t *testing.T) {
	for _, first := range []string{"steps", "end"} {
		t.Run(first+" first", func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			w.offer(t, packages, "alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			w.run(t, time.Minute)
			steps := w.plans()[0].Status
			require.NoError(t, fake.Edit(w.cluster, namespace, w.plans()[0].Name, func(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }))

			seen := w.plans()[0]
			filled := seen.DeepCopy()
			filled.Status = steps
			in, err := installplan.Gather(w.ctx, w.cluster.View("direct"), types.NamespacedName{Namespace: namespace, Name: seen.Name}, installplan.Config{})
			require.NoError(t, err)
			in.Now = w.cluster.Now().Add(time.Hour)
			out, err := installplan.Reconcile(in)
			require.NoError(t, err)
			require.Len(t, out.Actions, 1)
			writes := []olmcore.Action{out.Actions[0], olmcore.UpdateStatusOf(seen, filled, olmcore.Cause{Reason: "PlanReady"})}
			if first == "steps" {
				writes[0], writes[1] = writes[1], writes[0]
			}
			require.NoError(t, w.cluster.Do(w.ctx, writes[0]))
			require.True(t, apierrors.IsConflict(w.cluster.Do(w.ctx, writes[1])))
			require.Equal(t, first == "end", len(w.plans()[0].Status.Plan) == 0)
		})
	}
}

// TestPlanWithoutStepsEndsAfterItsUpgradeIsWithdrawn: a plan for an upgrade gets no steps, because the API server
// rejects writes of its status. Meanwhile the catalog withdraws the upgrade: no version that it offers replaces the
// installed one. The Subscription keeps the installed version and does not wait for the plan. Once the upgrade is
// offered again, it is installed.
func TestPlanWithoutStepsEndsAfterItsUpgradeIsWithdrawn(t *testing.T) {
	one, two := resolution.ChannelEntry{Name: csvName("alpha", 1)}, resolution.ChannelEntry{Name: csvName("alpha", 2)}
	upgrade := two
	upgrade.Replaces = one.Name
	for name, later := range map[string][]resolution.ChannelEntry{
		"the edge is withdrawn": {two}, "the version is withdrawn": {one},
	} {
		t.Run(name, func(t *testing.T) {
			w, packages := newWorld(t), map[string]resolution.Package{}
			w.offer(t, packages, "alpha", one)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			w.run(t, time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
			w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
				if verb == olmcore.VerbUpdateStatus && target.Kind == v1alpha1.InstallPlanKind {
					return apierrors.NewServiceUnavailable("busy")
				}
				return nil
			}
			w.offer(t, packages, "alpha", one, upgrade)
			w.poke(t)
			require.Equal(t, two.Name, w.status("alpha").CurrentCSV)
			require.Empty(t, w.planOf(t, two.Name).Status.Plan)
			content := packageOf("alpha", one, two)
			content.Channels[0].Entries = later
			content.Bundles = slices.DeleteFunc(content.Bundles, func(b resolution.Bundle) bool { return b.Name != later[0].Name })
			packages["alpha"] = content
			catalogs, err := catalogsOf(packages)
			require.NoError(t, err)
			catalogs.Serve(&w.olm.Options)
			w.cluster.Authorize = nil
			w.poke(t)
			w.run(t, time.Hour)
			alpha := w.status("alpha")
			require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, alpha.State)
			require.Nil(t, alpha.InstallPlanRef)
			require.NotEqual(t, corev1.ConditionTrue, alpha.GetCondition(v1alpha1.SubscriptionInstallPlanPending).Status)
			require.Equal(t, v1alpha1.InstallPlanPhaseFailed, w.planOf(t, two.Name).Status.Phase)

			w.offer(t, packages, "alpha", one, upgrade)
			w.poke(t)
			w.run(t, 10*time.Minute)
			require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())
		})
	}
}
