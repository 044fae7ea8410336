// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestFailureOfOLMTakesPrecedenceOverAnEarlierCondition checks that the message of OLM decides about a plan that OLM
// failed, even if this library left the condition Progressing before a downgrade to OLM.
func TestFailureOfOLMTakesPrecedenceOverAnEarlierCondition(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	const refusal, rejection = "api-server resource not found installing Gizmo g: not found", "error creating role r: it is invalid"
	for name, c := range map[string]struct {
		left, message string
		want          installplan.State
	}{
		"a refusal, without a condition":       {"", refusal, installplan.StateRetried},
		"a refusal after a failed write":       {installplan.ReasonStepFailed, refusal, installplan.StateRetried},
		"a refusal after a wait":               {installplan.ReasonStepWaits, refusal, installplan.StateRetried},
		"a rejected write, without condition":  {"", rejection, installplan.StateFailed},
		"a rejected write after a refusal":     {installplan.ReasonStepRefused, rejection, installplan.StateFailed},
		"a rejected write after another write": {installplan.ReasonStepFailed, rejection, installplan.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Failed, []*v1alpha1.Step{RoleStep("", "r")}, OwnedBy(sub), Started(time.Hour))
			ofOLM := Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, c.message)
			ofOLM.LastUpdateTime = new(metav1.NewTime(Noon.Add(-time.Minute)))
			p.Status.Message = c.message
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{ofOLM}
			if c.left != "" {
				earlier := stalled(c.left, "retrying execution due to error: x")
				earlier.LastUpdateTime = new(metav1.NewTime(Noon.Add(-30 * time.Minute)))
				p.Status.Conditions = append(p.Status.Conditions, earlier)
			}
			require.Equal(t, c.want, assess(t, input(p, with(sub))).State)
		})
	}
}

// TestConditionRecordsTheFailure checks that the condition of a failure counts in the next call, even if a wait or a
// retry for the same reason had set it before.
func TestConditionRecordsTheFailure(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	p := Plan(Installing, []*v1alpha1.Step{RoleStep("gone.v1", "r")}, Started(time.Minute), OwnedBy(sub))
	in := input(p, with(sub))
	for range 3 { // the time for the refused step starts, and passes
		next := in.InstallPlan.DeepCopy()
		next.Status = statusOf(in, reconcile(t, in))
		in.InstallPlan = next
		in.Now = in.Now.Add(5 * time.Minute)
	}
	require.Equal(t, Failed, in.InstallPlan.Status.Phase)
	require.Equal(t, installplan.StateFailed, assess(t, in).State)
	in.ClusterServiceVersions = olmcore.Found(CSV("gone.v1"))
	require.Equal(t, installplan.StateRetried, assess(t, in).State, "nothing refuses the step any more")
}

// TestCompletePlanLosesConditionsOfAStall checks that conditions that OLM left when it completed a plan are removed.
func TestCompletePlanLosesConditionsOfAStall(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	p := Plan(Complete, []*v1alpha1.Step{RoleStep("", "r")}, OwnedBy(sub))
	p.Status.Plan[0].Status = v1alpha1.StepStatusCreated
	retrying := stalled(installplan.ReasonStepRefused, "x")
	retrying.Type, retrying.Status = installplan.ConditionRetrying, corev1.ConditionTrue
	installed := Condition(corev1.ConditionTrue, "", "")
	p.Status.Conditions = []v1alpha1.InstallPlanCondition{stalled(installplan.ReasonStepFailed, "x"), retrying, installed}
	in := input(p, with(sub))
	after := statusOf(in, reconcile(t, in))
	require.Equal(t, []v1alpha1.InstallPlanCondition{installed}, after.Conditions)

	in.InstallPlan = p.DeepCopy()
	in.InstallPlan.Status = after
	require.Empty(t, reconcile(t, in).Actions)
}

// TestMessageNamesTheFailingStep checks that a recorded failure is not kept for a write to another object.
func TestMessageNamesTheFailingStep(t *testing.T) {
	at := func(seconds int) time.Time { return Noon.Add(time.Duration(seconds) * time.Second) }
	failure := func(class olmcore.ErrorClass, first, last int) olmcore.LastResult {
		return olmcore.LastResult{Class: class, Message: "denied", Count: 2, Tries: 2, First: at(first), Since: at(first), Last: at(last)}
	}
	accepted := func(last int) olmcore.LastResult { return olmcore.LastResult{Last: at(last)} }
	const kept = "retrying execution due to error: recorded"
	for name, c := range map[string]struct {
		r, s olmcore.LastResult
		kept bool
	}{
		"the same step fails":                      {r: failure(olmcore.Invalid, -60, -1), kept: true},
		"the same step fails with other errors":    {r: failure(olmcore.Transient, -60, -1), kept: true},
		"both steps fail":                          {r: failure(olmcore.Invalid, -60, -1), s: failure(olmcore.Invalid, -60, -1), kept: true},
		"the first step succeeded before":          {r: accepted(-40), s: failure(olmcore.Invalid, -60, -1), kept: true},
		"the first step succeeded since":           {r: accepted(-1), s: failure(olmcore.Invalid, -60, -1)},
		"the second step began to fail since":      {r: accepted(-40), s: failure(olmcore.Invalid, -20, -1)},
		"the first step failed before it was done": {r: failure(olmcore.Conflict, -60, -1), s: failure(olmcore.Invalid, -60, -1), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Installing, []*v1alpha1.Step{RoleStep("", "r"), RoleStep("", "s")}, Started(2*time.Minute))
			recorded := stalled(installplan.ReasonStepFailed, "recorded")
			recorded.LastUpdateTime = new(metav1.NewTime(at(-30)))
			p.Status.Message = kept
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{recorded}
			in := input(p)
			in.LastRun = olmcore.LastResults{roleKey("r"): c.r, roleKey("s"): c.s}
			message := statusOf(in, reconcile(t, in)).Message
			require.Equal(t, c.kept, message == kept, message)
		})
	}
}

// TestConditionsOfOtherWritersAreIgnored checks that a condition Progressing that this library does not write is
// ignored.
func TestConditionsOfOtherWritersAreIgnored(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	for name, change := range map[string]func(c *v1alpha1.InstallPlanCondition){
		"it is True":             func(c *v1alpha1.InstallPlanCondition) { c.Status = corev1.ConditionTrue },
		"its reason is unknown":  func(c *v1alpha1.InstallPlanCondition) { c.Reason = "Whatever" },
		"its time is missing":    func(c *v1alpha1.InstallPlanCondition) { c.LastUpdateTime = nil },
		"its time is the future": func(c *v1alpha1.InstallPlanCondition) { c.LastUpdateTime = new(metav1.NewTime(Noon.AddDate(9, 0, 0))) },
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Failed, []*v1alpha1.Step{RoleStep("", "r")}, OwnedBy(sub), Started(time.Hour))
			p.Status.Conditions = failedOf(installplan.ReasonStepRefused, "x")
			change(&p.Status.Conditions[1])
			require.Equal(t, installplan.StateTryingAgain, assess(t, func() installplan.Input {
				in := input(p, with(sub))
				in.Now = Noon.Add(time.Hour)
				return in
			}()).State)

			running := Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, Started(time.Minute))
			recorded := stalled(installplan.ReasonStepFailed, "x")
			change(&recorded)
			running.Status.Conditions = []v1alpha1.InstallPlanCondition{recorded}
			in := input(running)
			in.LastRun = olmcore.LastResults{roleKey("r"): {
				Class: olmcore.Invalid, Message: "no", Count: 2, Tries: 2, First: Noon.Add(-time.Minute), Since: Noon.Add(-time.Minute), Last: Noon,
			}}
			after := statusOf(in, reconcile(t, in))
			require.Equal(t, "retrying execution due to error: error creating role r: no", after.Message)
			require.Len(t, after.Conditions, 1)
		})
	}
}
