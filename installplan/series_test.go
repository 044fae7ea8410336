// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// outage is a cluster whose Services are refused with an error while that is set.
func outage(t *testing.T) (*fake.Cluster, *error, func() *fake.Driver) {
	c := world(t, userSubscription("rich"))
	problem := new(error)
	c.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if target.Kind == "Service" {
			return *problem
		}
		return nil
	}
	return c, problem, func() *fake.Driver {
		return &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), plans(things)}}
	}
}

// TestDowntimeCostsAPlanNoTime: the controller is down for an hour in the middle of
// an installation, and the first writes after that fail.
func TestDowntimeCostsAPlanNoTime(t *testing.T) {
	for name, refusal := range map[string]error{
		"an error that passes":    apierrors.NewInternalError(errors.New("etcd is ill")),
		"an answer that is final": apierrors.NewBadRequest("it is broken"),
	} {
		t.Run(name, func(t *testing.T) {
			c, problem, restarted := outage(t)
			*problem = refusal
			require.NoError(t, restarted().RunFor(t.Context(), 10*time.Second))
			require.Equal(t, installing, onlyPlan(t, c).Status.Phase)
			c.Advance(time.Hour)
			d := restarted()
			require.NoError(t, d.RunFor(t.Context(), 50*time.Second))
			require.Equal(t, installing, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
			*problem = nil
			require.NoError(t, d.RunFor(t.Context(), time.Minute))
			require.Equal(t, complete, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
		})
	}
}

// TestAnswersThatChangeAreOneSeries: an API server that is ill gives one answer and then
// another. The plan fails of it in the end, says so, and is tried again later.
func TestAnswersThatChangeAreOneSeries(t *testing.T) {
	ill, webhook := apierrors.NewInternalError(errors.New("etcd is ill")), apierrors.NewInternalError(errors.New("failed calling webhook \"x\""))
	broken := apierrors.NewBadRequest("it is broken")
	for name, answers := range map[string][]error{
		"trouble of two kinds":   {ill, webhook},
		"trouble and a final no": {ill, broken},
		"all of them":            {ill, webhook, broken},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, restarted := outage(t)
			next, ended := 0, false
			c.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
				if target.Kind != "Service" || ended {
					return nil
				}
				next++
				return answers[next%len(answers)]
			}
			d := restarted()
			require.NoError(t, d.RunFor(t.Context(), 9*time.Minute))
			require.Equal(t, installing, onlyPlan(t, c).Status.Phase)
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			p := onlyPlan(t, c)
			require.Equal(t, failed, p.Status.Phase)
			require.Equal(t, []v1alpha1.InstallPlanConditionType{v1alpha1.InstallPlanInstalled, installplan.ConditionRetrying}, conditionTypes(p))
			ended = true
			require.NoError(t, d.RunFor(t.Context(), 11*time.Minute))
			require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
		})
	}
}

// TestAPlanThatFailedOfTroubleIsTriedAgain: the API server is ill for an hour. A
// controller that was restarted meanwhile knows that, too.
func TestAPlanThatFailedOfTroubleIsTriedAgain(t *testing.T) {
	for name, restart := range map[string]bool{"one controller": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			c, problem, restarted := outage(t)
			*problem = apierrors.NewInternalError(errors.New("etcd is ill"))
			d := restarted()
			require.NoError(t, d.RunFor(t.Context(), 15*time.Minute))
			p := onlyPlan(t, c)
			require.Equal(t, failed, p.Status.Phase)
			require.Equal(t, []v1alpha1.InstallPlanConditionType{v1alpha1.InstallPlanInstalled, installplan.ConditionRetrying}, conditionTypes(p))
			if restart {
				d = restarted()
			}
			require.NoError(t, d.RunFor(t.Context(), 45*time.Minute))
			*problem = nil
			require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
			p = onlyPlan(t, c)
			require.Equal(t, complete, p.Status.Phase, p.Status.Message)
			require.Equal(t, []v1alpha1.InstallPlanConditionType{v1alpha1.InstallPlanInstalled}, conditionTypes(p))
		})
	}
}

func conditionTypes(p *v1alpha1.InstallPlan) []v1alpha1.InstallPlanConditionType {
	var types []v1alpha1.InstallPlanConditionType
	for _, c := range p.Status.Conditions {
		types = append(types, c.Type)
	}
	return types
}

// TestFromWhenTheTimeOfAFailureCounts: from the start of the plan or, when that is
// later, of the series of failures, and for three tries.
func TestFromWhenTheTimeOfAFailureCounts(t *testing.T) {
	for name, c := range map[string]struct {
		class   olmcore.ErrorClass
		count   int
		first   time.Duration
		fails   bool
		requeue time.Duration
	}{
		"one try, long ago":               {olmcore.Invalid, 1, time.Hour, false, 5 * time.Second},
		"two tries, long ago":             {olmcore.Transient, 2, time.Hour, false, 5 * time.Second},
		"three tries, long ago":           {olmcore.Invalid, 3, 2 * time.Hour, true, 0},
		"many tries, just now":            {olmcore.Invalid, 9, 57 * time.Second, false, 3 * time.Second},
		"many tries, for a minute":        {olmcore.Invalid, 9, time.Minute, true, 0},
		"trouble for almost ten minutes":  {olmcore.Transient, 9, 10*time.Minute - time.Second, false, time.Second},
		"trouble for ten minutes":         {olmcore.Transient, 9, 10 * time.Minute, true, 10 * time.Minute},
		"a webhook that is down for days": {olmcore.Webhook, 9, 48 * time.Hour, true, 10 * time.Minute},
		"a permission, for days":          {olmcore.Forbidden, 999, 48 * time.Hour, false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(installing, []*v1alpha1.Step{withStatus(notPresent, csvStep("a.v1"))}, started(time.Hour)))
			in.LastRun = olmcore.LastResults{
				{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: ns, Name: "a.v1"}: {
					Class: c.class, Message: "no", Count: c.count, First: noon.Add(-c.first), Last: noon,
				},
			}
			r := reconcile(t, in)
			require.Equal(t, c.fails, statusOf(in, r).Phase == failed)
			require.Equal(t, c.requeue, r.RequeueAfter)
		})
	}
}

// TestFromWhenTheTimeOfARefusalCounts: from the start of the plan, as long as the
// refusal was watched; else it gets a time of its own, once.
func TestFromWhenTheTimeOfARefusalCounts(t *testing.T) {
	const known = `retrying execution due to error: error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`
	retrying := func(d time.Duration) *v1alpha1.InstallPlanCondition {
		return &v1alpha1.InstallPlanCondition{Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue,
			Reason: "StepRefused", Message: known[len("retrying execution due to error: "):], LastTransitionTime: ago(d), LastUpdateTime: ago(d)}
	}
	for name, c := range map[string]struct {
		start   time.Duration
		message string
		have    *v1alpha1.InstallPlanCondition
		want    *v1alpha1.InstallPlanCondition
		fails   bool
		requeue time.Duration
	}{
		"met in time":                       {start: 58 * time.Second, requeue: 2 * time.Second},
		"watched until the end":             {start: time.Minute, message: known, fails: true},
		"watched, and looked at a bit late": {start: 119 * time.Second, message: known, fails: true},
		"met when the time was over":        {start: time.Minute, want: retrying(0), requeue: 5 * time.Second},
		"not watched when the time was over": {start: time.Hour, message: known,
			want: retrying(0), requeue: 5 * time.Second},
		"in its own time":         {start: time.Hour, message: known, have: retrying(57 * time.Second), want: retrying(57 * time.Second), requeue: 3 * time.Second},
		"its own time is over":    {start: time.Hour, message: known, have: retrying(time.Minute), fails: true},
		"it is over for an hour":  {start: 2 * time.Hour, message: known, have: retrying(time.Hour), fails: true},
		"waited for until it ran": {start: time.Minute, message: "waiting for CustomResourceDefinition x to be established", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(installing, []*v1alpha1.Step{roleStep("gone.v1", "r")}, started(c.start), func(p *v1alpha1.InstallPlan) {
				p.Status.Message = c.message
				if c.have != nil {
					p.Status.Conditions = append(p.Status.Conditions, *c.have)
				}
			}))
			r := reconcile(t, in)
			got := statusOf(in, r)
			require.Equal(t, c.fails, got.Phase == failed)
			require.Equal(t, c.requeue, r.RequeueAfter)
			var have *v1alpha1.InstallPlanCondition
			for i := range got.Conditions {
				if got.Conditions[i].Type == installplan.ConditionRetrying {
					have = &got.Conditions[i]
				}
			}
			same(t, c.want, have)
		})
	}
}

// TestWhenAFailedPlanIsTriedAgain: what passes by itself, after ten minutes, for a
// Subscription that refers to it.
func TestWhenAFailedPlanIsTriedAgain(t *testing.T) {
	sub := subscription("a", refersTo("install-x"))
	for name, c := range map[string]struct {
		since   time.Duration
		without bool
		sub     *v1alpha1.Subscription
		want    installplan.State
		requeue time.Duration
	}{
		"in a minute":          {since: 9 * time.Minute, sub: sub, want: installplan.StateFailed, requeue: time.Minute},
		"now":                  {since: 10 * time.Minute, sub: sub, want: installplan.StateRetried, requeue: 5 * time.Second},
		"never: it is final":   {since: time.Hour, without: true, sub: sub, want: installplan.StateFailed},
		"never: it is history": {since: time.Hour, sub: subscription("a"), want: installplan.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(failed, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(c.sub), started(time.Hour), func(p *v1alpha1.InstallPlan) {
				p.Status.Message = "error creating csv a.v1: no"
				p.Status.Conditions = []v1alpha1.InstallPlanCondition{condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, p.Status.Message)}
				if !c.without {
					p.Status.Conditions = append(p.Status.Conditions, v1alpha1.InstallPlanCondition{Type: installplan.ConditionRetrying,
						Status: corev1.ConditionTrue, Reason: "StepFailed", Message: p.Status.Message, LastTransitionTime: ago(c.since), LastUpdateTime: ago(c.since)})
				}
			}), with(c.sub))
			got := assess(t, in)
			require.Equal(t, c.want, got.State)
			require.Equal(t, c.requeue, got.RequeueAfter)
			if c.want == installplan.StateRetried {
				status := statusOf(in, reconcile(t, in))
				require.Equal(t, installing, status.Phase)
				require.Nil(t, status.StartTime)
				require.Len(t, status.Conditions, 1)
			}
		})
	}
}
