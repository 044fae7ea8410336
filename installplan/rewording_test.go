// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestDecisionsDoNotDependOnTheTextOfMessages checks that rewording every message which one call wrote does not change
// the decision of the next call.
func TestDecisionsDoNotDependOnTheTextOfMessages(t *testing.T) {
	compared := map[installplan.State]int{}
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		in.InstallPlan.Status.Message = ""
		in.InstallPlan.Status.Conditions = nil
		r, err := reconcileResult(in)
		require.NoError(t, err)
		written, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions)
		if !ok {
			return
		}
		in.InstallPlan = written
		in.Now = in.Now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * time.Second)
		if rapid.Bool().Draw(t, "restarted") {
			in.LastRun = nil
		}
		want, err := installplan.Assess(in)
		if err != nil {
			return // the next phase needs lists that were not read
		}
		in.InstallPlan = reworded(written)
		got, err := installplan.Assess(in)
		require.NoError(t, err)
		want.Message, got.Message = "", ""
		require.Equal(t, want, got)
		compared[got.State]++
	})
	t.Log(compared)
}

// TestFailedPlansDoNotDependOnTheTextOfMessages checks the same for plans that failed, which the generated plans rarely
// reach.
func TestFailedPlansDoNotDependOnTheTextOfMessages(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	refused := Plan(Installing, []*v1alpha1.Step{RoleStep("gone.v1", "r")}, Started(time.Hour), OwnedBy(sub))
	refused.Status.Message = "retrying execution due to error: of OLM"
	rejected := Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, Started(time.Hour), OwnedBy(sub))
	results := func(class olmcore.ErrorClass, message string) olmcore.LastResults {
		return olmcore.LastResults{roleKey("r"): {
			Class: class, Message: message, Count: 5, Tries: 5, First: Noon.Add(-time.Hour), Since: Noon.Add(-time.Hour), Last: Noon,
		}}
	}
	for name, c := range map[string]struct {
		in    installplan.Input
		later olmcore.LastResults
		want  installplan.State
	}{
		"refused":                  {in: input(refused, with(sub)), want: installplan.StateFailed},
		"rejected":                 {in: input(rejected, with(sub)), want: installplan.StateTryingAgain},
		"rejected, then transient": {in: input(rejected, with(sub)), later: results(olmcore.Transient, "later"), want: installplan.StateFailed},
		"rejected, then otherwise": {in: input(rejected, with(sub)), later: results(olmcore.Invalid, "never"), want: installplan.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.in
			if in.InstallPlan == rejected {
				in.LastRun = results(olmcore.Invalid, "no")
			}
			if in.InstallPlan == refused {
				in.Now = in.Now.Add(-59 * time.Minute)
			}
			written := in.InstallPlan.DeepCopy()
			written.Status = statusOf(in, reconcile(t, in))
			require.Equal(t, Failed, written.Status.Phase)
			in.LastRun = c.later
			in.Now = Noon.Add(11 * time.Minute)
			if c.later != nil {
				in.Now = Noon.Add(time.Minute)
			}
			in.InstallPlan = written
			want := assess(t, in)
			require.Equal(t, c.want, want.State)
			in.InstallPlan = reworded(written)
			got := assess(t, in)
			want.Message, got.Message = "", ""
			require.Equal(t, want, got)
		})
	}
}

// reworded returns a copy of a plan with another text in place of every message.
func reworded(plan *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	plan = plan.DeepCopy()
	if plan.Status.Message != "" {
		plan.Status.Message = "reworded"
	}
	for i := range plan.Status.Conditions {
		plan.Status.Conditions[i].Message = "reworded"
	}
	return plan
}

// TestRefusalsOfOLMAreTriedAgain checks that a plan which OLM failed before it wrote the object of a step starts again
// once nothing refuses it, if a Subscription references the plan and no later plan replaces it.
func TestRefusalsOfOLMAreTriedAgain(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	for _, message := range []string{
		"Unable to find GVK in discovery: example.com v1 Thing",
		`api-server resource not found installing Gizmo g: GroupVersionKind example.com/v1, Kind=Gizmo not found on the cluster`,
		"bundle unpacking failed. Reason: DeadlineExceeded",
		"couldn't find unpacked step for x",
		"error checking crd owners for: a.v1: x",
		`error finding unpacked bundle configmap for ref {}: configmaps "x" not found`,
		`error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "a.v1" not found`,
		"error loading unpacked bundle configmap for ref {}: x",
		`error validating existing CRs against new CRD's schema for "things.example.com": x`,
		`failed to load bundle properties for "a.v1": x`,
		"pre-existing CRD owners found for owned CRD(s) of dependent CSV a.v1",
		`risk of data loss updating "things.example.com": x`,
		`secret pull does not exist - secrets "pull" not found`,
	} {
		t.Run(message, func(t *testing.T) {
			in := input(Plan(Failed, []*v1alpha1.Step{RoleStep("", "r")}, OwnedBy(sub), Started(time.Hour)), with(sub))
			in.InstallPlan.Status.Message = message
			require.Equal(t, installplan.StateRetried, assess(t, in).State)

			later := Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v2")})
			later.ObjectMeta, later.Spec.Generation = Meta("install-y"), 2
			replaced := in
			replaced.InstallPlan = in.InstallPlan.DeepCopy()
			for _, p := range []*v1alpha1.InstallPlan{replaced.InstallPlan, later} {
				p.Annotations = map[string]string{olmcore.KeyPrefix + "packages": "a"}
			}
			replaced.InstallPlan.Status.Plan = append(replaced.InstallPlan.Status.Plan, CSVStep("a.v1"))
			replaced.RelatedPlans = olmcore.Found(later)
			require.Equal(t, installplan.StateFailed, assess(t, replaced).State, "a later plan replaces it")

			in.Subscriptions = olmcore.Found(Subscription("a"))
			require.Equal(t, installplan.StateFailed, assess(t, in).State, "no Subscription references it")
		})
	}
}
