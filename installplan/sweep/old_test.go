// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func active(sub *v1alpha1.Subscription) []olmcore.Object {
	out := []olmcore.Object{Subscription("a")}
	for i := range 6 {
		out = append(out, Owned(Numbered(i+1, RequiresApproval), sub))
	}
	return out
}

// history returns a namespace with n finished plans. sub references the newest one.
func history(n int, sub *v1alpha1.Subscription) []olmcore.Object {
	out := []olmcore.Object{sub}
	for i := 1; i <= n; i++ {
		out = append(out, Owned(Numbered(i, Complete), sub))
	}
	RefersTo(fmt.Sprintf("install-%d", n))(sub)
	return out
}

func lookingUp(in sweep.Input) sweep.Input {
	in.Lookups = []v1alpha1.BundleLookup{{Path: BundleImage, CatalogSourceRef: &corev1.ObjectReference{Namespace: NS, Name: "cool"}}}
	return in
}

func numberedFailed(sub *v1alpha1.Subscription) *v1alpha1.InstallPlan {
	return Owned(Numbered(1, Failed), sub)
}

func renamed(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm.Name = strings.Repeat("z", 63)
	return cm
}

func stepless(p *v1alpha1.InstallPlan) { p.Status.Plan = nil }

// swapped replaces the oldest plan of a history.
func swapped(objects []olmcore.Object, p *v1alpha1.InstallPlan) []olmcore.Object {
	objects[1] = p
	return objects
}

// TestOldPlansAreDeleted includes OLM's cases.
//
// OLM's case: old plans go until five are left.
func TestOldPlansAreDeleted(t *testing.T) {
	sub := Subscription("a")
	for name, c := range map[string]struct {
		objects []olmcore.Object
		want    []string
		reasons []string
		requeue time.Duration
	}{
		"nothing in the namespace": {},
		"as many as are kept":      {objects: history(5, Subscription("a"))},
		"the oldest is deleted if there are more": {
			objects: history(6, Subscription("a")), want: []string{"delete InstallPlan ops/install-1 (PlanHistory)"},
		},
		"a failed one is deleted too": {
			objects: append(history(6, Subscription("a"))[2:], numberedFailed(sub), history(6, Subscription("a"))[0]), want: []string{"delete InstallPlan ops/install-1 (PlanHistory)"},
		},
		"one that a Subscription references is kept": {
			objects: append(history(6, Subscription("a")), Subscription("b", RefersTo("install-1"))), reasons: []string{"ComponentLabelMissing", "OwnerReferenceMissing"}, want: []string{"update InstallPlan ops/install-1 (RelationRepaired)"},
		},
		"one that is being installed is kept": {
			objects: swapped(history(6, Subscription("a")), Owned(Numbered(1, Installing), sub)),
		},
		"one that waits for approval is kept": {
			objects: swapped(history(6, Subscription("a")), Owned(Numbered(1, RequiresApproval), sub)),
		},
		"one that is being deleted is not deleted again": {
			objects: swapped(history(6, Subscription("a")), Owned(Numbered(1, Complete, gone), sub)),
		},
		"one that never got steps is deleted, even if it is recent": {
			objects: swapped(history(2, Subscription("a")), Owned(Numbered(1, None, WithoutSteps), sub)), want: []string{"delete InstallPlan ops/install-1 (PlanWithoutStatus)"},
		},
		"at most five are deleted in one call": {objects: history(12, Subscription("a")), requeue: time.Second, want: []string{
			"delete InstallPlan ops/install-1 (PlanHistory)", "delete InstallPlan ops/install-2 (PlanHistory)", "delete InstallPlan ops/install-3 (PlanHistory)",
			"delete InstallPlan ops/install-4 (PlanHistory)", "delete InstallPlan ops/install-5 (PlanHistory)",
		}},
		"more active ones than are kept": {objects: active(sub), reasons: []string{"TooManyActivePlans"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Swept(t, SweepInput(c.objects...))
			Same(t, c.want, Describe(got))
			Same(t, c.reasons, Reasons(got))
			Same(t, c.requeue, got.RequeueAfter)
		})
	}
}

// TestOldestPlanIsKeptIfItIsNeeded checks for the oldest of six plans what keeps it and what does not.
func TestOldestPlanIsKeptIfItIsNeeded(t *testing.T) {
	reference := func(name string, uid types.UID) *v1alpha1.Subscription {
		return Subscription("b", func(s *v1alpha1.Subscription) {
			s.Status.LastUpdated = metav1.NewTime(Noon)
			s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: name, UID: uid}
		})
	}
	olderCreation := func(p *v1alpha1.InstallPlan) *v1alpha1.InstallPlan { p.CreationTimestamp = *Ago(time.Minute); return p }
	sub := Subscription("a")
	for name, c := range map[string]struct {
		objects []olmcore.Object
		taken   string
	}{
		"nothing":                   {history(6, Subscription("a")), "install-1"},
		"a reference by name alone": {append(history(6, Subscription("a")), reference("install-1", "before")), ""},
		"a reference by UID alone":  {append(history(6, Subscription("a")), reference("install-7", "uid-install-1")), ""},
		"a Subscription that it created": {
			append(history(6, Subscription("a")), Subscription("b", Generated("install-1"))), "",
		},
		"a Subscription that it created, with another plan": {
			append(history(6, Subscription("a")), Subscription("b", Generated("install-1"), RefersTo("install-6"))), "install-1",
		},
		"the generation, not the time": {
			swapped(history(6, Subscription("a")), olderCreation(Owned(Numbered(1, Complete), sub))), "install-1",
		},
		"steps that a finished plan does not have": {
			swapped(history(6, Subscription("a")), Owned(Numbered(1, Failed, stepless), sub)), "install-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			taken := ""
			for _, a := range Swept(t, SweepInput(c.objects...)).Actions {
				if verb, target, _ := a.Describe(); verb == olmcore.VerbDelete {
					taken += target.Name
				}
			}
			require.Equal(t, c.taken, taken)
		})
	}
	finished := Owned(Numbered(1, Complete, stepless), sub)
	require.Empty(t, Swept(t, SweepInput(sub, finished)).Actions, "a finished plan without steps counts as history")
	five := append(active(sub)[:6], Owned(Numbered(9, Complete), sub))
	require.Empty(t, Swept(t, SweepInput(five...)).Diagnostics, "five active ones are not too many")
}

// TestDeletedPlansAreNotRepaired checks that a plan that is deleted is neither repaired nor reported.
func TestDeletedPlansAreNotRepaired(t *testing.T) {
	objects := history(6, Subscription("a"))
	objects[1].(*v1alpha1.InstallPlan).OwnerReferences = nil
	got := Swept(t, SweepInput(objects...))
	require.Equal(t, []string{"delete InstallPlan ops/install-1 (PlanHistory)"}, Describe(got))
	require.Empty(t, got.Diagnostics)
}

func TestNewPlanGetsTimeForItsSteps(t *testing.T) {
	sub := Subscription("a")
	p := Owned(Numbered(1, None, WithoutSteps), sub)
	p.CreationTimestamp = *Ago(time.Minute)
	got := Swept(t, SweepInput(sub, p))
	require.True(t, got.Empty())
	require.Equal(t, 4*time.Minute, got.RequeueAfter)
}

func TestUnusedBundlesAreDeleted(t *testing.T) {
	refers := func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = Reference() }
	for name, c := range map[string]struct {
		in      sweep.Input
		deleted bool
		requeue time.Duration
	}{
		"an unreferenced one is deleted": {in: SweepInput(UnpackedBundle(24 * time.Hour)), deleted: true},
		"a young one is kept":            {in: SweepInput(UnpackedBundle(23 * time.Hour)), requeue: time.Hour},
		"one that a plan references is kept": {
			in: SweepInput(Subscription("a"), UnpackedBundle(25*time.Hour), Owned(Numbered(1, Complete, refers), Subscription("a"))),
		},
		"one that a plan of another namespace references": {
			in: SweepInput(UnpackedBundle(25*time.Hour), Numbered(1, Complete, refers, InNamespace("other"))),
		},
		"one that is being unpacked is kept":       {in: lookingUp(SweepInput(UnpackedBundle(25 * time.Hour)))},
		"an unmanaged ConfigMap is kept":           {in: SweepInput(&corev1.ConfigMap{ObjectMeta: Meta(BundleName)})},
		"one with the name of another object":      {in: SweepInput(renamed(UnpackedBundle(25 * time.Hour)))},
		"all in a namespace that is being deleted": {in: going(SweepInput(UnpackedBundle(25 * time.Hour)))},
	} {
		t.Run(name, func(t *testing.T) {
			got := Swept(t, c.in)
			require.Equal(t, c.requeue, got.RequeueAfter)
			if !c.deleted {
				require.Empty(t, got.Actions)
				return
			}
			require.Len(t, got.Actions, 1)
			d := got.Actions[0].(olmcore.Delete)
			require.Equal(t, metav1.DeletePropagationBackground, d.PropagationPolicy)
			require.Equal(t, BundleName, d.Target.Name)
			require.NotEmpty(t, d.Target.UID)
		})
	}
}

// TestYoungBundlesAndOtherConfigMapsAreKept checks when Reconcile checks young bundles again, and that other ConfigMaps
// are kept.
func TestYoungBundlesAndOtherConfigMapsAreKept(t *testing.T) {
	first, other := UnpackedBundle(23*time.Hour), UnpackedBundle(22*time.Hour)
	first.Name = "0" + BundleName[1:]
	require.Equal(t, time.Hour, Swept(t, SweepInput(first, UnpackedBundle(22*time.Hour))).RequeueAfter)
	other.Name = "0" + BundleName[1:]
	require.Equal(t, time.Hour, Swept(t, SweepInput(other, UnpackedBundle(23*time.Hour))).RequeueAfter)
	require.Equal(t, time.Hour, Swept(t, SweepInput(UnpackedBundle(23*time.Hour), other)).RequeueAfter)
	for name, change := range map[string]func(*corev1.ConfigMap){
		"being deleted":                           func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = Ago(0) },
		"without the label of OLM":                func(cm *corev1.ConfigMap) { cm.Labels = nil },
		"of a CatalogSource of another API group": func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].APIVersion = "example.com/v1" },
	} {
		cm := UnpackedBundle(25 * time.Hour)
		change(cm)
		require.Empty(t, Swept(t, SweepInput(cm)).Actions, name)
	}
}

func bornAgo(d time.Duration) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.CreationTimestamp = *Ago(d) }
}

func gone(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(time.Minute) }

func going(in sweep.Input) sweep.Input {
	in.Namespaces.Items[0].DeletionTimestamp = Ago(time.Minute)
	return in
}

func writtenAgo(d time.Duration) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.LastUpdated = *Ago(d) }
}
