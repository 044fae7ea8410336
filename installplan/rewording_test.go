// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestDecisionsDoNotDependOnTheTextOfMessages checks that rewording every message that a call wrote does not change the
// decision of the next call.
func TestDecisionsDoNotDependOnTheTextOfMessages(t *testing.T) {
	compared := map[installplan.State]int{}
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		in.InstallPlan.Status.Message = ""
		in.InstallPlan.Status.Conditions = nil
		for range 3 {
			r, err := reconcileResult(in)
			require.NoError(t, err)
			if written, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions); ok {
				in.InstallPlan = written
			}
			in.Now = in.Now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "restarted") {
				in.LastRun = nil
			}
			want, err := installplan.Assess(in)
			if err != nil {
				return // the next phase needs lists that were not read
			}
			requireSameDecision(t, in)
			compared[want.State]++
		}
	})
	t.Log(compared)
}

// TestStalledPlansDoNotDependOnTheTextOfMessages checks the same for plans that do not progress, for every reason and
// every event before the next call.
func TestStalledPlansDoNotDependOnTheTextOfMessages(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	leaving := CSV("a.v1")
	leaving.DeletionTimestamp = new(metav1.NewTime(Noon))
	leaving.Finalizers = []string{"example.com/hold"}
	result := func(class olmcore.ErrorClass, message string, count int) olmcore.LastResults {
		since := Noon.Add(-time.Minute)
		return olmcore.LastResults{roleKey("r"): {
			Class: class, Message: message, Count: count, Tries: count, First: since, Since: since, Last: Noon,
		}}
	}
	running := func(steps ...*v1alpha1.Step) *v1alpha1.InstallPlan {
		return Plan(Installing, steps, Started(2*time.Minute), OwnedBy(sub))
	}
	for name, c := range map[string]struct {
		in   installplan.Input
		want installplan.State
	}{
		"a write fails":     {inputAfter(running(RoleStep("", "r")), result(olmcore.Invalid, "no", 2), sub), installplan.StateRetrying},
		"a write is denied": {inputAfter(running(RoleStep("", "r")), result(olmcore.Webhook, "no", 2), sub), installplan.StateRetrying},
		"a step is refused": {inputAfter(running(RoleStep("gone.v1", "r")), nil, sub), installplan.StateRetrying},
		"a step waits":      {inputAfter(running(CSVStep("a.v1")), nil, sub, leaving), installplan.StateWaiting},
	} {
		for next, last := range map[string]olmcore.LastResults{
			"a restart":          nil,
			"another error":      result(olmcore.Transient, "not now", 3),
			"the same error":     result(olmcore.Invalid, "no", 4),
			"an accepted write":  result(olmcore.ClassNone, "", 0),
			"a missing right":    result(olmcore.Forbidden, "not allowed", 4),
			"a webhook's answer": result(olmcore.Webhook, "not today", 4),
		} {
			for _, wait := range []time.Duration{5 * time.Second, 3 * time.Minute, time.Hour} {
				t.Run(name+", then "+next+" after "+wait.String(), func(t *testing.T) {
					in := c.in
					require.Equal(t, c.want, assess(t, in).State)
					written := in.InstallPlan.DeepCopy()
					written.Status = statusOf(in, reconcile(t, in))
					in.InstallPlan = written
					in.LastRun = last
					in.Now = in.Now.Add(wait)
					requireSameDecision(t, in)
				})
			}
		}
	}
}

// inputAfter returns the Input of a plan with the results of the last run.
func inputAfter(plan *v1alpha1.InstallPlan, last olmcore.LastResults, objects ...olmcore.Object) installplan.Input {
	in := input(plan, with(objects...))
	in.LastRun = last
	return in
}

// untold is a decision without its texts.
type untold struct {
	Assessment installplan.Assessment
	Steps      []*v1alpha1.Step
	Conditions []v1alpha1.InstallPlanCondition
	// Others contains the actions except for the write of the status.
	Others []string
}

// requireSameDecision checks that a call decides the same after every recorded message was reworded. The status may be
// written once more, because the decision states its own text again. Only a message that is kept although the error is
// another one must not be written.
func requireSameDecision(t require.TestingT, in installplan.Input) {
	want, isWritten := decisionWithoutTexts(t, in)
	keepsMessage := !isWritten && statesOtherError(in)
	in.InstallPlan = reworded(in.InstallPlan)
	got, isRewritten := decisionWithoutTexts(t, in)
	if isRewritten != isWritten {
		require.False(t, keepsMessage, "the message is written again")
		got.Others, want.Others = nil, nil // the writes of the steps follow that of the status
	}
	require.Equal(t, want, got)
}

// statesOtherError reports whether the status states another failed write than the only one of the last run.
func statesOtherError(in installplan.Input) bool {
	recorded := in.InstallPlan.Status.GetCondition(installplan.ConditionProgressing)
	if recorded.Reason != installplan.ReasonStepFailed || len(in.LastRun) != 1 {
		return false
	}
	for _, last := range in.LastRun {
		return last.Message != "" && !strings.Contains(recorded.Message, last.Message)
	}
	return false
}

func decisionWithoutTexts(t require.TestingT, in installplan.Input) (d untold, isWritten bool) {
	var err error
	d.Assessment, err = installplan.Assess(in)
	require.NoError(t, err)
	d.Assessment.Message = ""
	r, err := reconcileResult(in)
	require.NoError(t, err)
	after := in.InstallPlan.Status
	written, isWritten := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions)
	if isWritten {
		after = written.Status
	}
	d.Steps = after.Plan
	for _, c := range after.Conditions {
		d.Conditions = append(d.Conditions, v1alpha1.InstallPlanCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	for _, a := range r.Actions {
		verb, target, cause := a.Describe()
		if verb != olmcore.VerbUpdateStatus {
			d.Others = append(d.Others, string(verb)+" "+target.Key().String()+" "+cause.Reason)
		}
	}
	return d, isWritten
}

// TestFailedPlansDoNotDependOnTheTextOfMessages checks the same for plans that failed, because generated plans rarely
// fail.
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
			require.Equal(t, c.want, assess(t, in).State)
			requireSameDecision(t, in)
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

// TestPlansThatOLMRefusedAreRetried checks that a plan that OLM failed before it wrote the object of a step starts
// again once nothing refuses it, if a Subscription references the plan and no later plan replaces it.
func TestPlansThatOLMRefusedAreRetried(t *testing.T) {
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
