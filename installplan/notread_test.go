// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestWhatWasNotReadOfAPlan: a dump of plans and Subscriptions tells what waits and
// what is done; of what runs it is said which kind is missing.
func TestWhatWasNotReadOfAPlan(t *testing.T) {
	sub := subscription("a", refersTo("install-x"))
	for name, c := range map[string]struct {
		plan    *v1alpha1.InstallPlan
		want    installplan.State
		missing string
	}{
		"complete":    {plan: plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(sub)), want: installplan.StateComplete},
		"failed":      {plan: plan(failed, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(sub)), want: installplan.StateFailed},
		"without any": {plan: plan(none, nil, ownedBy(sub)), want: installplan.StateWithoutStatus},
		"installing":  {plan: plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(sub), started(time.Second)), missing: "OperatorGroup"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c.plan, sub})
			require.NoError(t, err)
			in, err := installplan.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: ns, Name: "install-x"}, installplan.Config{})
			if c.missing != "" {
				var notRead *olmcore.NotReadError
				require.ErrorAs(t, err, &notRead)
				require.Equal(t, c.missing, notRead.Kind.Kind)
				require.Equal(t, "what an InstallPlan has still to do", notRead.Unknown)
				return
			}
			require.NoError(t, err)
			in.Now = noon
			require.Equal(t, c.want, assess(t, in).State)
		})
	}
}

// TestPlansThatWereNotReadMayNeedABundle, so that it stays.
func TestPlansThatWereNotReadMayNeedABundle(t *testing.T) {
	s := csvStep("etcd.v1")
	s.Resource.Manifest = reference()
	going := plan(installing, []*v1alpha1.Step{s}, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = ago(0) })
	old := unpackedBundle(25 * time.Hour)
	in := input(going, func(in *installplan.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap](old) })
	same(t, []string{"update InstallPlan ops/install-x (PlanDeleted)"}, describe(reconcile(t, in)))
	in.OtherPlans = olmcore.Found[*v1alpha1.InstallPlan]()
	same(t, []string{"delete ConfigMap ops/" + bundleName + " (PlanDeleted)"}, describe(reconcile(t, in)))

	all := sweepInput(old)
	require.Len(t, swept(t, all).Actions, 1)
	all.OtherPlans = olmcore.Observed[*v1alpha1.InstallPlan]{}
	require.Empty(t, swept(t, all).Actions)
}

// TestNothingIsInstalledOrSweptWhileTheNamespaceMayBeLeaving, as it was not read.
func TestNothingIsInstalledOrSweptWhileTheNamespaceMayBeLeaving(t *testing.T) {
	sub := subscription("a", refersTo("install-x"))
	p := plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(sub), started(time.Second))
	kinds := []olmcore.Scope{}
	for _, k := range olmcore.Kinds() {
		if k.GroupVersionKind.Kind != "Namespace" {
			kinds = append(kinds, olmcore.Scope{Kind: k.GroupKind()})
		}
	}
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{p, sub}, kinds...)
	require.NoError(t, err)
	_, err = installplan.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: ns, Name: "install-x"}, installplan.Config{})
	require.EqualError(t, err, "Namespace objects were not read, so whether the namespace of an InstallPlan is being deleted is unknown")

	in := sweepInput(unpackedBundle(25 * time.Hour))
	require.NotEmpty(t, swept(t, in).Actions)
	in.Namespaces = olmcore.Observed[*corev1.Namespace]{}
	require.Empty(t, swept(t, in).Actions)
}
