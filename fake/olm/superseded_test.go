// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// poke makes the namespace be resolved again with what the catalogs offer now.
func (w *world) poke(t *testing.T) {
	w.olm.CatalogsChanged()
	require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Labels["poke"] = w.cluster.ResourceVersion() }))
	w.run(t, time.Minute)
}

// planOf returns the plan that brings exactly these versions.
func (w *world) planOf(t *testing.T, versions ...string) *v1alpha1.InstallPlan {
	plans := w.plans()
	i := slices.IndexFunc(plans, func(p *v1alpha1.InstallPlan) bool {
		return slices.Equal(slices.Sorted(slices.Values(p.Spec.ClusterServiceVersionNames)), versions)
	})
	require.GreaterOrEqual(t, i, 0, "no plan brings %v", versions)
	return plans[i]
}

func (w *world) approve(t *testing.T, plan *v1alpha1.InstallPlan) {
	require.NoError(t, fake.Edit(w.cluster, namespace, plan.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
	w.run(t, time.Minute)
}

// phases prints all versions that are there.
func (w *world) phases() string {
	var all []string
	for _, c := range w.csvs() {
		all = append(all, fmt.Sprintf("%s %s", c.Name, c.Status.Phase))
	}
	return strings.Join(all, ", ")
}

// TestOfTwoPlansOfOnePackageTheNewerIsExecuted: alpha waits for the approval of an
// upgrade when beta joins, and the resolution finds something newer for alpha or the
// same. Whoever approves what in which order, alpha ends with one version that works.
func TestOfTwoPlansOfOnePackageTheNewerIsExecuted(t *testing.T) {
	one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
	two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
	three := resolution.ChannelEntry{Name: csvName("alpha", 3), Replaces: one.Name, Skips: []string{two.Name}}
	for content, newest := range map[string]int{"a newer version": 3, "the same version": 2} {
		for _, order := range []string{"older newer", "newer older", "newer", "both"} {
			t.Run(content+", approved: "+order, func(t *testing.T) {
				w, packages := newWorld(t), map[string]resolution.Package{}
				w.offer(t, packages, "beta", resolution.ChannelEntry{Name: csvName("beta", 1)})
				w.offer(t, packages, "alpha", one)
				require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
				w.run(t, time.Minute)
				require.NoError(t, w.approveAll())
				w.run(t, time.Minute)
				w.offer(t, packages, "alpha", one, two)
				w.poke(t)
				older := w.planOf(t, two.Name)

				if newest == 3 {
					w.offer(t, packages, "alpha", one, two, three)
				}
				w.olm.CatalogsChanged()
				require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalManual))
				w.run(t, time.Minute)
				newer := w.planOf(t, csvName("alpha", newest), csvName("beta", 1))
				for _, name := range []string{"alpha", "beta"} {
					require.Equal(t, newer.UID, w.status(name).InstallPlanRef.UID, name)
				}

				if order == "both" {
					require.NoError(t, w.approveAll())
				}
				for word := range strings.FieldsSeq(order) {
					switch word {
					case "older":
						before := w.phases()
						w.approve(t, older)
						require.Equal(t, before, w.phases(), "it does nothing")
					case "newer":
						w.approve(t, newer)
					}
				}
				w.run(t, 10*time.Minute)
				require.Equal(t, csvName("alpha", newest)+" Succeeded, beta.v1.0.0 Succeeded", w.phases())
				for _, name := range []string{"alpha", "beta"} {
					require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status(name).State)
					require.Equal(t, newer.UID, w.status(name).InstallPlanRef.UID, name)
				}
				older = w.planOf(t, two.Name)
				require.Equal(t, "superseded by InstallPlan "+newer.Name, older.Status.Message)
			})
		}
	}
}

// TestAnOlderPlanThatStartedAfterAllIsFollowed: alpha left its plan for one with a newer
// version, beside which the older one would stay for ever, while that plan started.
func TestAnOlderPlanThatStartedAfterAllIsFollowed(t *testing.T) {
	one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
	two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
	three := resolution.ChannelEntry{Name: csvName("alpha", 3), Replaces: one.Name, Skips: []string{two.Name}}
	w, packages := newWorld(t), map[string]resolution.Package{}
	w.offer(t, packages, "beta", resolution.ChannelEntry{Name: csvName("beta", 1)})
	w.offer(t, packages, "alpha", one)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.offer(t, packages, "alpha", one, two)
	w.poke(t)
	older := w.planOf(t, two.Name)
	w.offer(t, packages, "alpha", one, two, three)
	w.olm.CatalogsChanged()
	require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	newer := w.planOf(t, three.Name, csvName("beta", 1))

	// As another worker left it that did not see yet what alpha refers to.
	require.NoError(t, fake.Edit(w.cluster, namespace, older.Name, func(p *v1alpha1.InstallPlan) {
		p.Spec.Approved, p.Status.Phase, p.Status.StartTime = true, v1alpha1.InstallPlanPhaseInstalling, new(metav1.NewTime(w.cluster.Now()))
		p.Status.Message, p.Status.Conditions = "", nil
	}))
	w.run(t, 10*time.Minute)
	require.Equal(t, two.Name, w.status("alpha").InstalledCSV)
	w.approve(t, newer)
	require.Equal(t, two.Name+" Succeeded", w.phases(), "what was planned without it is not installed")
	require.NoError(t, w.approveAll())
	w.run(t, 10*time.Minute)
	require.Equal(t, three.Name+" Succeeded, beta.v1.0.0 Succeeded", w.phases())
	for _, name := range []string{"alpha", "beta"} {
		require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status(name).State)
	}
}

// TestAPlanOfWhatWasOvertakenIsNotLeftForOthers: beta waits for a plan that would bring
// alpha's version, too, when alpha gets that one by another plan and goes on to the next.
func TestAPlanOfWhatWasOvertakenIsNotLeftForOthers(t *testing.T) {
	w, packages := newWorld(t), map[string]resolution.Package{}
	one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
	two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
	w.offer(t, packages, "beta", resolution.ChannelEntry{Name: csvName("beta", 1)})
	w.offer(t, packages, "alpha", one)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	overtaken := w.planOf(t, one.Name, csvName("beta", 1))

	// As a cluster of OLM looks after a plan of alpha alone was approved.
	require.NoError(t, w.install(bundle("alpha", 1)))
	w.run(t, time.Minute)
	require.Equal(t, one.Name, w.status("alpha").InstalledCSV)
	w.offer(t, packages, "alpha", one, two)
	w.poke(t)
	newer := w.planOf(t, two.Name, csvName("beta", 1))
	require.Equal(t, newer.UID, w.status("beta").InstallPlanRef.UID)
	w.approve(t, newer)
	w.approve(t, overtaken)
	w.run(t, 10*time.Minute)
	require.Equal(t, "alpha.v2.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())
}

// TestANewerVersionIsTakenOnceThePlanOfAnOlderOneFailed: as long as the plan is under way
// alpha keeps its version, whatever is published meanwhile.
func TestANewerVersionIsTakenOnceThePlanOfAnOlderOneFailed(t *testing.T) {
	w, packages := newWorld(t), map[string]resolution.Package{}
	one := resolution.ChannelEntry{Name: csvName("alpha", 1)}
	two := resolution.ChannelEntry{Name: csvName("alpha", 2), Replaces: one.Name}
	w.offer(t, packages, "beta", resolution.ChannelEntry{Name: csvName("beta", 1)})
	w.offer(t, packages, "alpha", one)
	require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	w.offer(t, packages, "alpha", one, two)
	w.poke(t)
	require.Equal(t, one.Name, w.status("alpha").CurrentCSV)

	require.NoError(t, fake.Edit(w.cluster, namespace, w.planOf(t, one.Name).Name, func(p *v1alpha1.InstallPlan) {
		p.Status.Phase = v1alpha1.InstallPlanPhaseFailed
		p.Status.SetCondition(v1alpha1.InstallPlanCondition{Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: v1alpha1.InstallPlanReasonComponentFailed})
	}))
	w.run(t, time.Minute)
	require.Equal(t, two.Name, w.status("alpha").CurrentCSV)
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	require.Equal(t, two.Name+" Succeeded, beta.v1.0.0 Succeeded", w.phases())
}

// install creates the objects of a bundle that needs no permissions.
func (w *world) install(objects []olmcore.Object) error {
	for _, o := range objects {
		if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
			c = c.DeepCopy()
			c.Namespace, c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = namespace, nil
			o = c
		}
		if err := w.cluster.Create(o); err != nil {
			return err
		}
	}
	return nil
}
