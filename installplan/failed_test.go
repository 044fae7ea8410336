// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/installer"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// roleKey returns the key of the object of a RoleStep.
func roleKey(name string) olmcore.Key {
	return olmcore.Key{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: NS, Name: name}
}

// rejectedPlan returns a plan that failed because the API server rejected its last two steps, the Roles r and s of
// version a.v1.
func rejectedPlan(since time.Duration, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	const message = "error creating role r: no"
	p := Plan(Failed, []*v1alpha1.Step{
		WithStatus(Created, CSVStep("a.v1")), WithStatus(NotPresent, RoleStep("a.v1", "r")), WithStatus(NotPresent, RoleStep("a.v1", "s")),
	}, Started(2*time.Hour), OwnedBy(Subscription("a", RefersTo("install-x"))))
	p.Status.Message = message
	installed := Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, message)
	retrying := Condition(corev1.ConditionTrue, installplan.ReasonStepFailed, message)
	retrying.Type = installplan.ConditionRetrying
	progressing := stalled(installplan.ReasonStepFailed, message)
	for _, c := range []*v1alpha1.InstallPlanCondition{&installed, &retrying, &progressing} {
		c.LastTransitionTime, c.LastUpdateTime = Ago(since), Ago(since)
	}
	p.Status.Conditions = []v1alpha1.InstallPlanCondition{installed, retrying, progressing}
	for _, f := range change {
		f(p)
	}
	return p
}

// byOLM changes a failed plan to one that OLM failed, which does not have the condition Retrying.
func byOLM(p *v1alpha1.InstallPlan) { p.Status.Conditions = p.Status.Conditions[:1] }

// TestFailedPlanIsRetriedEveryTenMinutes checks that a plan whose write the API server rejected is retried every ten
// minutes while a Subscription references it. It stays Failed until the writes are accepted.
func TestFailedPlanIsRetriedEveryTenMinutes(t *testing.T) {
	ran := func(class olmcore.ErrorClass, message string, ago time.Duration) olmcore.LastResults {
		return olmcore.LastResults{roleKey("r"): {Class: class, Message: message, Count: 1, First: Noon.Add(-ago), Last: Noon.Add(-ago)}}
	}
	refers := Subscription("a", RefersTo("install-x"))
	roles := []olmcore.Object{applied(t, RoleStep("a.v1", "r"), CSV("a.v1")), applied(t, RoleStep("a.v1", "s"), CSV("a.v1"))}
	manual := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved }
	}
	write := []string{"create Role ops/r (StepAbsent)", "create Role ops/s (StepAbsent)"}
	const status = "updateStatus InstallPlan ops/install-x (PlanProgressed)"
	for name, c := range map[string]struct {
		since   time.Duration
		change  []func(*v1alpha1.InstallPlan)
		sub     *v1alpha1.Subscription
		objects []olmcore.Object
		lastRun olmcore.LastResults
		want    installplan.State
		actions []string
		requeue time.Duration
	}{
		"it failed nine minutes ago": {since: 9 * time.Minute, want: installplan.StateFailed, requeue: time.Minute},
		"it failed ten minutes ago": {
			since: 10 * time.Minute, want: installplan.StateTryingAgain, actions: write, requeue: 10 * time.Minute,
		},
		"it failed in OLM, nine minutes ago": {
			since: 9 * time.Minute, change: change(byOLM), want: installplan.StateFailed, requeue: time.Minute,
		},
		"it failed in OLM, an hour ago": {
			since: time.Hour, change: change(byOLM), want: installplan.StateTryingAgain, actions: write, requeue: 10 * time.Minute,
		},
		"it failed in OLM, without times": {
			change: change(byOLM, timeless), want: installplan.StateTryingAgain, actions: write, requeue: 10 * time.Minute,
		},
		"its time is in the future": {since: -24 * time.Hour, want: installplan.StateFailed, requeue: 10 * time.Minute},
		"the last try gave the same answer": {
			since: time.Hour, lastRun: ran(olmcore.Invalid, "no", 4*time.Minute), want: installplan.StateFailed, requeue: 6 * time.Minute,
		},
		"the last same answer is old": {
			since: time.Hour, lastRun: ran(olmcore.Invalid, "no", 10*time.Minute), want: installplan.StateTryingAgain, actions: write, requeue: 10 * time.Minute,
		},
		"the last try gave another answer": {since: time.Hour, lastRun: ran(olmcore.Invalid, "never", 0), want: installplan.StateFailed,
			actions: []string{status}, requeue: 10 * time.Minute},
		"the last try had a transient error": {
			since: time.Hour, lastRun: ran(olmcore.Transient, "timeout 4711", 4*time.Minute), want: installplan.StateFailed, requeue: 6 * time.Minute,
		},
		"the last try had a conflict": {
			since: time.Hour, lastRun: ran(olmcore.Conflict, "x", time.Second), want: installplan.StateFailed, requeue: 4 * time.Second,
		},
		"the last write was accepted": {
			since: time.Hour, lastRun: ran(olmcore.ClassNone, "", 0), want: installplan.StateRetried, actions: []string{status}, requeue: 5 * time.Second,
		},
		"a user created what was missing": {
			since: time.Minute, objects: roles, want: installplan.StateRetried, actions: []string{status}, requeue: 5 * time.Second,
		},
		"one of two writes was accepted": {since: time.Hour, objects: roles[1:], want: installplan.StateFailed, requeue: 10 * time.Minute,
			lastRun: olmcore.LastResults{roleKey("r"): {Class: olmcore.Invalid, Message: "no", Last: Noon}, roleKey("s"): {Last: Noon}}},
		"a step is refused now": {
			since: time.Hour, change: change(owned("gone.v1")), want: installplan.StateFailed, requeue: 10 * time.Minute,
		},
		"its approval was withdrawn": {since: time.Hour, change: change(manual(false)), want: installplan.StateFailed},
		"it was approved": {
			since: time.Hour, change: change(manual(true)), want: installplan.StateTryingAgain, actions: write, requeue: 10 * time.Minute,
		},
		"no Subscription refers to it": {
			since: time.Hour, sub: Subscription("a"), objects: []olmcore.Object{CSV("a.v1", inPhase(v1alpha1.CSVPhaseSucceeded))}, want: installplan.StateFailed,
		},
		"a Subscription refers to its name": {
			since: time.Hour, sub: Subscription("a", refersByName), objects: []olmcore.Object{CSV("a.v1", inPhase(v1alpha1.CSVPhaseSucceeded))}, want: installplan.StateFailed,
		},
		"it was superseded": {since: time.Hour, change: change(superseded), want: installplan.StateFailed},
		"it can never be applied": {
			since: time.Hour, change: change(hopeless), want: installplan.StateFailed, requeue: 10 * time.Minute,
		},
		"its ServiceAccount is another one": {
			since: time.Hour, change: change(underAccount), want: installplan.StateFailed, requeue: 10 * time.Minute,
		},
		"an account is left in its status": {
			since: time.Hour, change: change(unrecordedAccount), want: installplan.StateFailed, requeue: 10 * time.Minute,
		},
		"it has the finalizer of a deletion": {
			since: time.Hour, change: change(func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(0) }), want: installplan.StateDeleting,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sub := c.sub
			if sub == nil {
				sub = refers
			}
			version := CSV("a.v1", inPhase(v1alpha1.CSVPhasePending))
			if slices.ContainsFunc(c.objects, func(o olmcore.Object) bool { return o.GetName() == version.Name }) {
				version = nil
			}
			in := input(rejectedPlan(c.since, c.change...), with(sub), with(c.objects...))
			if version != nil {
				in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, version)
			}
			in.LastRun = c.lastRun
			require.Equal(t, c.want, assess(t, in).State)
			if c.want == installplan.StateDeleting {
				return
			}
			r := reconcile(t, in)
			require.Equal(t, append([]string{}, c.actions...), Describe(r))
			require.Equal(t, c.requeue, r.RequeueAfter)
			got := statusOf(in, r)
			switch c.want {
			case installplan.StateRetried:
				require.Equal(t, Installing, got.Phase)
				require.Nil(t, got.StartTime)
				require.Empty(t, got.Message)
				require.Equal(t, []v1alpha1.InstallPlanConditionType{v1alpha1.InstallPlanInstalled}, conditionTypes(&v1alpha1.InstallPlan{Status: got}))
			case installplan.StateFailed:
				require.Equal(t, Failed, got.Phase)
				require.Empty(t, r.Transitions)
				require.Empty(t, r.Diagnostics, "a plan at rest reports nothing")
			}
		})
	}
}

func change(f ...func(*v1alpha1.InstallPlan)) []func(*v1alpha1.InstallPlan) { return f }

func timeless(p *v1alpha1.InstallPlan) {
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime, p.Status.Conditions[i].LastUpdateTime = nil, nil
	}
	p.Status.StartTime = nil
}

func owned(by string) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Status.Plan[1] = WithStatus(NotPresent, RoleStep(by, "r")) }
}

func superseded(p *v1alpha1.InstallPlan) {
	p.Status.Conditions[0].Reason = installplan.ReasonSuperseded
}

func hopeless(p *v1alpha1.InstallPlan) {
	p.Status.Plan = append(p.Status.Plan, Step("", "", "v1", "Gizmo", "g", `{"metadata":{"name":"g"}}`))
}

func underAccount(p *v1alpha1.InstallPlan) {
	p.Annotations = map[string]string{olmcore.KeyPrefix + "service-account": NS + "/scoped"}
}

func unrecordedAccount(p *v1alpha1.InstallPlan) {
	p.Status.AttenuatedServiceAccountRef = olmReference("scoped")
}

func inPhase(phase v1alpha1.ClusterServiceVersionPhase) func(*v1alpha1.ClusterServiceVersion) {
	return func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = phase }
}

func refersByName(s *v1alpha1.Subscription) {
	s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: "install-x"}
}

// TestFailedPlanReportsTheLatestFailure checks that a retry that failed in another way is recorded in the message and
// in both conditions, and that the phase does not change.
func TestFailedPlanReportsTheLatestFailure(t *testing.T) {
	in := input(rejectedPlan(time.Hour), with(Subscription("a", RefersTo("install-x")), CSV("a.v1")))
	in.LastRun = olmcore.LastResults{
		roleKey("s"): {Class: olmcore.Webhook, Message: "denied", Count: 1, First: Noon, Last: Noon},
		roleKey("r"): {Count: 1, First: Noon, Last: Noon},
	}
	in.Objects = olmcore.Found(applied(t, RoleStep("a.v1", "r"), CSV("a.v1")))
	want := in.InstallPlan.DeepCopy().Status
	want.Message = "error creating role s: denied"
	want.Conditions = []v1alpha1.InstallPlanCondition{
		Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, want.Message),
		stalled(installplan.ReasonStepFailed, want.Message),
		Condition(corev1.ConditionTrue, installplan.ReasonStepFailed, want.Message),
	}
	want.Conditions[1].LastTransitionTime = Ago(time.Hour)
	want.Conditions[0].LastTransitionTime = Ago(time.Hour)
	want.Conditions[2].Type = installplan.ConditionRetrying
	r := reconcile(t, in)
	require.Len(t, r.Actions, 1)
	Same(t, want, statusOf(in, r))
	require.Empty(t, r.Transitions)
	require.Equal(t, 10*time.Minute, r.RequeueAfter)
}

// TestFailedPlanCompletesOnceItsCauseIsGone checks that a failed plan is retried a few times an hour, without writes of
// its status, and becomes Complete once the cause is gone. It does not matter what the API server answered, or whether
// OLM or this library executed the plan.
func TestFailedPlanCompletesOnceItsCauseIsGone(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	for name, answer := range map[string]error{
		"the object is invalid":     apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "service", nil),
		"the request is bad":        apierrors.NewBadRequest("it is broken"),
		"the object does not exist": apierrors.NewNotFound(services, "service"),
		"a webhook denies it":       apierrors.NewForbidden(services, "service", errors.New(`admission webhook "x" denied the request: no`)),
		"etcd is unavailable":       apierrors.NewInternalError(errors.New("etcd is unavailable")),
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", name, restarts), func(t *testing.T) {
				c, problem, restarted := outage(t)
				tries := 0
				failing := c.Authorize
				c.Authorize = func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
					err := failing(as, verb, target)
					if err != nil {
						tries++
					}
					return err
				}
				*problem = answer
				d := restarted()
				require.NoError(t, d.RunFor(t.Context(), 15*time.Minute))
				failed := onlyPlan(t, c)
				require.Equal(t, Failed, failed.Status.Phase)
				require.NoError(t, d.RunFor(t.Context(), 12*time.Minute))
				tries = 0
				before := onlyPlan(t, c)
				for range 4 {
					if restarts {
						d = restarted()
					}
					require.NoError(t, d.RunFor(t.Context(), 15*time.Minute))
				}
				Same(t, before, onlyPlan(t, c))
				require.InDelta(t, 6, tries, 5)
				require.Positive(t, tries)

				*problem = nil
				require.NoError(t, d.RunFor(t.Context(), 11*time.Minute))
				p := onlyPlan(t, c)
				require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
				require.Equal(t, []v1alpha1.InstallPlanConditionType{v1alpha1.InstallPlanInstalled}, conditionTypes(p))
				require.Empty(t, p.Status.Message)
			})
		}
	}
}

// TestPlanThatOLMFailedIsRetried checks a plan whose missing permission or quota is available by now. Nothing is
// written in the first ten minutes after the failure.
func TestPlanThatOLMFailedIsRetried(t *testing.T) {
	for _, message := range []string{
		`error creating role r: roles.rbac.authorization.k8s.io "r" is forbidden: exceeded quota: roles`,
		`error creating role r: roles.rbac.authorization.k8s.io "r" is forbidden: user "x" is attempting to grant RBAC permissions not currently held`,
		`Role.rbac.authorization.k8s.io "r" is invalid: rules: Required value`,
		"etcdserver: request timed out",
		"",
	} {
		t.Run(message, func(t *testing.T) {
			c := World(t, UserSubscription("a"), CSV("a.v1", inPhase(v1alpha1.CSVPhasePending)))
			sub := fake.Find[*v1alpha1.Subscription](c, NS, "a")
			p := rejectedPlan(9*time.Minute, byOLM, OwnedBy(sub), func(p *v1alpha1.InstallPlan) {
				p.Status.Message, p.Status.Conditions[0].Message = message, message
				p.Status.Plan[1].Status, p.Status.Plan[2].Status = Unknown, Unknown
				p.OwnerReferences = p.OwnerReferences[1:]
			})
			require.NoError(t, c.Load(p))
			require.NoError(t, fake.Edit(c, NS, "a", func(s *v1alpha1.Subscription) { RefersTo("install-x")(s) }))
			d := driven(t, c, 30*time.Second, plans(installplan.Config{}))
			require.Equal(t, Failed, onlyPlan(t, c).Status.Phase)
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			p = onlyPlan(t, c)
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
			require.Equal(t, []v1alpha1.StepStatus{Created, Present, Present}, Statuses(p.Status))
		})
	}
}

// TestFailedPlanIsRetriedAsItsServiceAccount checks that the ServiceAccount is recorded before any object is written.
func TestFailedPlanIsRetriedAsItsServiceAccount(t *testing.T) {
	in := input(rejectedPlan(time.Hour, underAccount), with(Subscription("a", RefersTo("install-x")), CSV("a.v1")))
	in.OperatorGroups = olmcore.Found(Scoped("scoped"))
	in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: Meta("scoped")}
	require.Equal(t, installplan.StateRetried, assess(t, in).State)

	account, _ := installer.AccountOf(in.OperatorGroups.Items[0])
	in.InstallPlan.Status.AttenuatedServiceAccountRef = account
	r := reconcile(t, in)
	require.Len(t, r.Actions, 2)
	for _, a := range r.Actions {
		require.Equal(t, account, a.Identity())
	}
	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	Same(t, olmcore.Result{RequeueAfter: 10 * time.Minute}, reconcile(t, in))
}

// TestFailedPlanFinishesAPartlyInstalledVersion checks that a failed plan without a reference is retried while its
// version exists and was never installed, because later versions wait for its open steps. A plan that a later one
// replaced is not retried.
func TestFailedPlanFinishesAPartlyInstalledVersion(t *testing.T) {
	phase := inPhase
	after := func(history ...v1alpha1.ClusterServiceVersionPhase) func(*v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) {
			c.Status.Phase = history[len(history)-1]
			for _, p := range history {
				c.Status.Conditions = append(c.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: p})
			}
		}
	}
	for name, c := range map[string]struct {
		applied v1alpha1.StepStatus
		change  func(*v1alpha1.ClusterServiceVersion)
		sub     *v1alpha1.Subscription
		want    installplan.State
	}{
		"without a phase": {Created, phase(v1alpha1.CSVPhaseNone), nil, installplan.StateRetried},
		"pending":         {Created, phase(v1alpha1.CSVPhasePending), nil, installplan.StateRetried},
		"set up":          {Created, phase(v1alpha1.CSVPhaseSucceeded), nil, installplan.StateFailed},
		"another one": {
			Created, func(c *v1alpha1.ClusterServiceVersion) { c.Name = "a.v2" }, nil, installplan.StateFailed,
		},
		"a copy": {
			Created, func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }, nil,
			installplan.StateFailed,
		},
		"one that is being deleted": {
			Created, func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = Ago(0) }, nil, installplan.StateFailed,
		},
		"failed, never installed": {Created, after(v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseFailed), nil, installplan.StateRetried},
		"failed later": {
			Created, after(v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed), nil, installplan.StateFailed,
		},
		"pending again": {
			Created, after(v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhasePending), nil, installplan.StateFailed,
		},
		"its Subscription refers to no plan": {Created, phase(v1alpha1.CSVPhasePending), Subscription("a"), installplan.StateRetried},
		"nothing was applied":                {Unknown, phase(v1alpha1.CSVPhaseNone), nil, installplan.StateFailed},
	} {
		p := Plan(Failed, []*v1alpha1.Step{WithStatus(c.applied, CSVStep("a.v1"))}, OwnedBy(Subscription("a")), func(p *v1alpha1.InstallPlan) {
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{{Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue, LastTransitionTime: Ago(10 * time.Minute)}}
		})
		in := input(p, with(CSV("a.v1", c.change)))
		if c.sub != nil {
			in.Subscriptions.Items = append(in.Subscriptions.Items, c.sub)
		}
		require.Equal(t, c.want, assess(t, in).State, name)
	}
}

// TestFailedPlanIsNotRetriedAfterLaterPlans checks that a failed plan stays Failed once later plans with steps contain
// all of its packages, even if a Subscription still references it.
func TestFailedPlanIsNotRetriedAfterLaterPlans(t *testing.T) {
	packages := func(list string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{olmcore.KeyPrefix + "packages": list} }
	}
	later := func(name, pkg string, steps ...*v1alpha1.Step) *v1alpha1.InstallPlan {
		p := Plan(RequiresApproval, steps)
		p.ObjectMeta, p.Spec.Generation = Meta(name), 2
		packages(pkg)(p)
		return p
	}
	ofA := func(v string) *v1alpha1.Step { return versionOfPackage("a."+v, "a") }
	ofB := func(v string) *v1alpha1.Step { return versionOfPackage("b."+v, "b") }
	for name, c := range map[string]struct {
		steps []*v1alpha1.Step
		later []*v1alpha1.InstallPlan
		want  installplan.State
	}{
		"no later plan": {[]*v1alpha1.Step{ofA("v1")}, nil, installplan.StateRetried},
		"one with steps": {
			[]*v1alpha1.Step{ofA("v1")}, []*v1alpha1.InstallPlan{later("install-y", "a", ofA("v2"))}, installplan.StateFailed,
		},
		"one without steps": {[]*v1alpha1.Step{ofA("v1")}, []*v1alpha1.InstallPlan{later("install-y", "a")}, installplan.StateRetried},
		"one of two packages": {
			[]*v1alpha1.Step{ofA("v1"), ofB("v1")}, []*v1alpha1.InstallPlan{later("install-y", "a", ofA("v2"))}, installplan.StateRetried,
		},
		"one plan for each package": {
			[]*v1alpha1.Step{ofA("v1"), ofB("v1")},
			[]*v1alpha1.InstallPlan{later("install-y", "a", ofA("v2")), later("install-z", "b", ofB("v2"))}, installplan.StateFailed,
		},
		"one of a different package": {
			[]*v1alpha1.Step{ofA("v1")}, []*v1alpha1.InstallPlan{later("install-y", "b", ofB("v2"))}, installplan.StateRetried,
		},
	} {
		p := Plan(Failed, c.steps, func(p *v1alpha1.InstallPlan) {
			p.Status.Message = "error creating csv a.v1: no"
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
				Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue, LastTransitionTime: Ago(10 * time.Minute),
			}}
		})
		sub := Subscription("a", RefersTo(p.Name), Current("a.v1"))
		OwnedBy(sub)(p)
		in := input(p, with(sub), func(in *installplan.Input) {
			in.RelatedPlans = olmcore.Found(c.later...)
			in.ClusterServiceVersions = olmcore.Found(CSV("a.v1"), CSV("b.v1"))
		})
		require.Equal(t, c.want, assess(t, in).State, name)
	}
}

// versionOfPackage returns the step of a version whose properties name its package.
func versionOfPackage(name, pkg string) *v1alpha1.Step {
	properties := `{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"` + pkg + `\",\"version\":\"1.0.0\"}}]}`
	s := CSVStep(name)
	s.Resource.Manifest = strings.Replace(s.Resource.Manifest, `"metadata":{`, `"metadata":{"annotations":{"operatorframework.io/properties":"`+properties+`"},`, 1)
	return s
}

// TestRetriedPlanSkipsStepsOfLaterPlans checks that a failed plan that starts again applies no more steps for the
// packages of later plans, which did not wait for it.
func TestRetriedPlanSkipsStepsOfLaterPlans(t *testing.T) {
	plan := planOfPackages("install-x", 1, "a,b", Failed, startedAgo(time.Hour), func(p *v1alpha1.InstallPlan) {
		p.Status.Plan = []*v1alpha1.Step{
			WithStatus(Created, versionOfPackage("a.v1", "a")), RoleStep("a.v1", "role"), WithStatus(Created, versionOfPackage("b.v1", "b")),
		}
		p.Spec.ClusterServiceVersionNames = []string{"a.v1", "b.v1"}
		p.Status.Message = "error creating csv b.v1: no"
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
			Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue, LastTransitionTime: Ago(10 * time.Minute),
		}}
	})
	sub := Subscription("b", RefersTo(plan.Name), Current("b.v1"))
	OwnedBy(sub)(plan)
	in := input(plan, with(sub), func(in *installplan.Input) {
		in.RelatedPlans = olmcore.Found(planOfPackages("install-y", 2, "a", RequiresApproval))
		in.ClusterServiceVersions = olmcore.Found(CSV("a.v1"), CSV("b.v1"))
	})
	r := reconcile(t, in)
	require.Equal(t, installplan.StateRetried, assess(t, in).State)
	require.Equal(t, []v1alpha1.StepStatus{Created, v1alpha1.StepStatusNotCreated, Created}, Statuses(statusOf(in, r)))
}

// TestFailedPlanCreatesTheSubscriptionOfItsVersion checks that a failed plan without a reference is retried while a
// version of it exists without a Subscription, and the plan has not created that Subscription.
func TestFailedPlanCreatesTheSubscriptionOfItsVersion(t *testing.T) {
	properties := func(c *v1alpha1.ClusterServiceVersion) {
		const known = `{"properties":[{"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}]}`
		c.Annotations = map[string]string{olmcore.AnnotationProperties: known}
		c.Status.Phase = v1alpha1.CSVPhaseSucceeded
	}
	change := func(f func(b *v1alpha1.ClusterServiceVersion)) func(*installplan.Input) {
		return func(in *installplan.Input) { f(in.ClusterServiceVersions.Items[1]) }
	}
	later := planOfPackages("install-y", 2, "a", Complete)
	for name, c := range map[string]struct {
		change func(*installplan.Input)
		want   installplan.State
	}{
		"no Subscription names the package": {func(*installplan.Input) {}, installplan.StateTryingAgain},
		"a Subscription names the package":  {with(Subscription("b")), installplan.StateFailed},
		"the version was deleted": {
			func(in *installplan.Input) { in.ClusterServiceVersions.Items = in.ClusterServiceVersions.Items[:1] }, installplan.StateFailed,
		},
		"the version is being deleted": {
			change(func(b *v1alpha1.ClusterServiceVersion) { b.DeletionTimestamp = Ago(0) }), installplan.StateFailed,
		},
		"the version is a copy": {
			change(func(b *v1alpha1.ClusterServiceVersion) { b.Labels = map[string]string{"olm.copiedFrom": "x"} }),
			installplan.StateFailed,
		},
		"the package is not known": {change(func(b *v1alpha1.ClusterServiceVersion) { b.Annotations = nil }), installplan.StateFailed},
		"the Subscription was created": {
			func(in *installplan.Input) { in.InstallPlan.Status.Plan[2].Status = Created }, installplan.StateFailed,
		},
		"another version of the plan was deleted": {func(in *installplan.Input) { in.RelatedPlans.Items = nil }, installplan.StateFailed},
		"a later plan contains the package": {
			func(in *installplan.Input) {
				in.RelatedPlans = olmcore.Found(later, planOfPackages("install-z", 3, "b", RequiresApproval))
			}, installplan.StateFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOfPackages("install-x", 1, "a,b", Failed, startedAgo(time.Hour), func(p *v1alpha1.InstallPlan) {
				p.Status.Plan = []*v1alpha1.Step{
					WithStatus(Created, versionOfPackage("a.v1", "a")), WithStatus(Created, versionOfPackage("b.v1", "b")),
					Step("b.v1", "operators.coreos.com", "v1alpha1", v1alpha1.SubscriptionKind, "b-stable",
						`{"metadata":{"name":"b-stable"},"spec":{"name":"b","channel":"stable","source":"cool","sourceNamespace":"olm"}}`),
				}
				p.Spec.ClusterServiceVersionNames = []string{"a.v1", "b.v1"}
				p.Status.Message = "error creating subscription b-stable: no"
				p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
					Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue, Reason: installplan.ReasonStepFailed,
					LastTransitionTime: Ago(10 * time.Minute),
				}}
			})
			sub := Subscription("a", RefersTo(later.Name), Current("a.v2"))
			OwnedBy(sub)(plan)
			in := input(plan, with(sub), func(in *installplan.Input) {
				in.RelatedPlans = olmcore.Found(later)
				in.ClusterServiceVersions = olmcore.Found(CSV("a.v2"), CSV("b.v1", properties))
			})
			c.change(&in)
			require.Equal(t, c.want, assess(t, in).State)
			if r := reconcile(t, in); c.want == installplan.StateTryingAgain {
				require.Equal(t, []string{"create Subscription ops/b-stable (StepAbsent)"}, Describe(r))
			}
		})
	}
}

// TestFailedPlanInstallsTheVersionThatItsSubscriptionAwaits checks that a failed plan installs a version whose
// Subscription references the plan, if the later plan would create another Subscription to the package. The later plan
// skips its own version.
func TestFailedPlanInstallsTheVersionThatItsSubscriptionAwaits(t *testing.T) {
	const manifest = `{"metadata":{"name":"%s"},"spec":{"name":"a","channel":"stable","source":"cool","sourceNamespace":"olm"}}`
	for name, c := range map[string]struct {
		generated string   // the name of the Subscription that the later plan creates
		exists    []string // versions
		current   string
		want      []string
	}{
		"the later plan creates another Subscription": {"a-stable", nil, "a.v1", []string{"create ClusterServiceVersion ops/a.v1 (StepAbsent)"}},
		"the later plan creates the same one":         {"a", nil, "a.v1", nil},
		"the version of the later plan exists":        {"a-stable", []string{"a.v2"}, "a.v1", nil},
		"the Subscription follows another version":    {"a-stable", nil, "a.v2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOfPackages("install-x", 1, "a,b", Failed, startedAgo(time.Hour), func(p *v1alpha1.InstallPlan) {
				p.Status.Plan = []*v1alpha1.Step{versionOfPackage("a.v1", "a"), WithStatus(Created, versionOfPackage("b.v1", "b"))}
				p.Spec.ClusterServiceVersionNames = []string{"a.v1", "b.v1"}
				p.Status.Message = "error creating csv a.v1: no"
				p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
					Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue, Reason: installplan.ReasonStepFailed,
					LastTransitionTime: Ago(10 * time.Minute),
				}}
			})
			later := planOfPackages("install-y", 2, "a", RequiresApproval, func(p *v1alpha1.InstallPlan) {
				p.Status.Plan = append(p.Status.Plan, Step("a.v2", "operators.coreos.com", "v1alpha1", v1alpha1.SubscriptionKind, c.generated,
					fmt.Sprintf(manifest, c.generated)))
			})
			sub := Subscription("a", RefersTo(plan.Name), Current(c.current), func(s *v1alpha1.Subscription) { s.Spec.Package = "a" })
			OwnedBy(sub)(plan)
			in := input(plan, with(sub), func(in *installplan.Input) {
				in.RelatedPlans = olmcore.Found(later)
				versions := []*v1alpha1.ClusterServiceVersion{CSV("b.v1")}
				for _, name := range c.exists {
					versions = append(versions, CSV(name))
				}
				in.ClusterServiceVersions = olmcore.Found(versions...)
			})
			var created []string
			for _, action := range Describe(reconcile(t, in)) {
				if strings.HasPrefix(action, "create ") {
					created = append(created, action)
				}
			}
			require.Equal(t, c.want, created)
		})
	}
}
