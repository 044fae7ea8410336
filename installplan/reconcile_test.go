// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

func ref(p *v1alpha1.InstallPlan) olmcore.Ref { return olmcore.RefOf(p).Unversioned() }

func diagnostic(p *v1alpha1.InstallPlan, severity olmcore.Severity, reason, path, message string) olmcore.Diagnostic {
	return olmcore.Diagnostic{Severity: severity, Reason: reason, Message: message, Target: ref(p), Path: path}
}

func transition(p *v1alpha1.InstallPlan, to v1alpha1.InstallPlanPhase, reason, message string) []olmcore.Transition {
	return []olmcore.Transition{{
		Target: ref(p), Type: "Phase", From: string(p.Status.Phase), To: string(to), Reason: reason, Message: message,
		At: metav1.NewTime(Noon), Bound: olmcore.Exact, Certainty: olmcore.CertaintyObserved,
	}}
}

// updated returns the only Update of a plan, to what change makes of the plan.
func updated(p *v1alpha1.InstallPlan, reason, message string, change func(*v1alpha1.InstallPlan)) []olmcore.Action {
	after := p.DeepCopy()
	change(after)
	return []olmcore.Action{olmcore.UpdateOf(p, after, olmcore.Cause{Reason: reason, Message: message})}
}

func stored(p *v1alpha1.InstallPlan, state installplan.State, change func(*v1alpha1.InstallPlanStatus)) []olmcore.Action {
	after := p.DeepCopy()
	change(&after.Status)
	return []olmcore.Action{olmcore.UpdateStatusOf(p, after, olmcore.Cause{
		Reason: installplan.ReasonPlanProgressed, Message: "state " + string(state),
	})}
}

const relations = "owner references, labels or finalizer were incomplete"

// TestRulesForEveryPhase contains a case for each rule that applies in every phase, and for each problem that such a
// rule finds.
func TestRulesForEveryPhase(t *testing.T) {
	steps := func() []*v1alpha1.Step { return []*v1alpha1.Step{CSVStep("a.v1")} }
	deleting := func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(10 * time.Second) }
	a, b := Subscription("a"), Subscription("b")
	generated := Subscription("g", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	})
	unmarked := generated.DeepCopy()
	unmarked.Annotations = nil
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "scoped"}
	failedCheck := func(text string) func(*v1alpha1.InstallPlanStatus) {
		return func(s *v1alpha1.InstallPlanStatus) {
			s.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, text)}
		}
	}
	const noGroup = "no operator group found that is managing this namespace"
	const unbound = "created under service account ops/scoped, but the operator group of the namespace names none now; delete the plan to create it again"

	finished := Plan(Complete, steps())
	beingDeleted := Plan(Installing, steps(), deleting)
	overdue := Plan(Installing, steps(), func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(time.Minute) })
	pending := Plan(RequiresApproval, steps(), func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false })
	running := Plan(Installing, steps())
	bare := Plan(None, nil, OwnedBy(a))
	bareWaits := Subscription("a", RefersTo("install-x"), Current("a.v1"))
	young := Plan(None, nil, func(p *v1alpha1.InstallPlan) { p.CreationTimestamp = *Ago(time.Minute) })
	unowned, unheld, unfilled := Plan(Installing, steps(), OwnedBy(a), Held), Plan(Installing, steps(), OwnedBy(a)), Plan(None, nil, OwnedBy(a))
	holding := Plan(Complete, steps(), func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{"other", installplan.Finalizer} })
	bound := Plan(Installing, steps(), func(p *v1alpha1.InstallPlan) { p.Status.AttenuatedServiceAccountRef = account })
	recovered := Plan(RequiresApproval, steps(), func(p *v1alpha1.InstallPlan) {
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false
		failedCheck(noGroup)(&p.Status)
	})
	odd, busy := Plan("Odd", steps()), Plan(Installing, steps(), Held)

	for name, c := range map[string]struct {
		in   installplan.Input
		want olmcore.Result
	}{
		"the finalizer of a deleted plan is removed if there is nothing to clean up": {
			in: input(beingDeleted),
			want: olmcore.Result{Actions: updated(beingDeleted, installplan.ReasonPlanDeleted, "nothing is left to clean up",
				func(p *v1alpha1.InstallPlan) { p.Finalizers = nil })},
		},
		"the annotation of a generated Subscription is removed first": {
			in: input(beingDeleted, with(generated)),
			want: olmcore.Result{
				Actions: []olmcore.Action{olmcore.UpdateOf(generated, unmarked, olmcore.Cause{
					Reason: installplan.ReasonPlanDeleted, Message: "the InstallPlan that generated it is being deleted",
				})},
				RequeueAfter: 50 * time.Second,
			},
		},
		"the finalizer is removed after the grace period": {
			in: input(overdue, with(generated)),
			want: olmcore.Result{
				Actions: updated(overdue, installplan.ReasonPlanDeleted, "the time for its cleanup is over", func(p *v1alpha1.InstallPlan) { p.Finalizers = nil }),
				Diagnostics: []olmcore.Diagnostic{diagnostic(overdue, olmcore.Warning, installplan.ReasonCleanupIncomplete, "metadata.finalizers",
					"annotation olm.generated-by is left on Subscription g")},
			},
		},
		"a deleted plan without the finalizer is not changed": {
			in: input(Plan(Complete, steps(), deleting)),
		},
		"nothing is installed in a namespace that is being deleted": {
			in: input(busy, func(in *installplan.Input) {
				in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NS}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}})
			}),
			want: olmcore.Result{
				Actions:     updated(busy, installplan.ReasonNamespaceTerminating, "the namespace is being deleted", func(p *v1alpha1.InstallPlan) { p.Finalizers = nil }),
				Diagnostics: []olmcore.Diagnostic{diagnostic(busy, olmcore.Info, installplan.ReasonNamespaceTerminating, "", "namespace ops is being deleted")},
			},
		},
		"a Subscription that refers to the plan becomes its owner": {
			in: input(unheld, with(a, Subscription("b", RefersTo("install-x")))),
			want: olmcore.Result{Actions: updated(unheld, installplan.ReasonRelationRepaired, relations, func(p *v1alpha1.InstallPlan) {
				p.Finalizers = []string{installplan.Finalizer} // comes with what is written anyway
				p.OwnerReferences = append(p.OwnerReferences, OwnerRef(b))
				p.Labels["operators.coreos.com/b.ops"] = ""
				p.Annotations = map[string]string{"olmcore/contributors": "uid-b", "olmcore/packages": "b"}
			})},
		},
		"a plan without steps gets no finalizer yet": {
			in: input(unfilled, with(Subscription("a", Manual))),
			want: olmcore.Result{Actions: updated(unfilled, installplan.ReasonManualOwner, "a Subscription that owns the plan requires manual approval",
				func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false })},
		},
		"the finalizer of a finished plan is removed": {
			in: input(holding),
			want: olmcore.Result{Actions: updated(holding, installplan.ReasonRelationRepaired, relations,
				func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{"other"} })},
		},
		"a plan that has not started waits when an owner is Manual": {
			in: input(unowned, with(Subscription("a", Manual))),
			want: olmcore.Result{Actions: updated(unowned, installplan.ReasonManualOwner, "a Subscription that owns the plan requires manual approval",
				func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false })},
		},
		"a new plan without status is not changed": {
			in:   input(young),
			want: olmcore.Result{RequeueAfter: 4 * time.Minute},
		},
		"an old plan without steps that a Subscription waits for is reported": {
			in: input(bare, with(bareWaits)),
			want: olmcore.Result{Diagnostics: []olmcore.Diagnostic{diagnostic(bare, olmcore.Warning, installplan.ReasonPlanWithoutStatus, "status.plan",
				"the plan has no steps 5m0s after its creation")}},
		},
		"a Complete plan is not changed": {
			in: input(finished, with(a)),
		},
		"a plan waits for an OperatorGroup": {
			in: input(pending, func(in *installplan.Input) { in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]() }),
			want: olmcore.Result{
				Actions:      stored(pending, installplan.StateCheckFailed, failedCheck(noGroup)),
				Diagnostics:  []olmcore.Diagnostic{diagnostic(pending, olmcore.Warning, installplan.ReasonInstallCheckFailed, "", noGroup)},
				RequeueAfter: 30 * time.Second,
			},
		},
		"a stored condition is not written again": {
			in: input(recovered, func(in *installplan.Input) {
				in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](Group(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = nil }))
			}),
			want: olmcore.Result{
				Diagnostics:  []olmcore.Diagnostic{diagnostic(recovered, olmcore.Warning, installplan.ReasonInstallCheckFailed, "", noGroup)},
				RequeueAfter: 30 * time.Second,
			},
		},
		"the account of the group does not exist": {
			in: input(running, func(in *installplan.Input) { in.OperatorGroups.Items[0].Spec.ServiceAccountName = "scoped" }),
			want: olmcore.Result{
				Actions: stored(running, installplan.StateCheckFailed, failedCheck("please make sure the service account exists. sa=scoped operatorgroup=ops/group")),
				Diagnostics: []olmcore.Diagnostic{diagnostic(running, olmcore.Warning, installplan.ReasonInstallCheckFailed, "",
					"please make sure the service account exists. sa=scoped operatorgroup=ops/group")},
				RequeueAfter: 30 * time.Second,
			},
		},
		"the condition is removed when the check passes again": {
			in: input(recovered),
			want: olmcore.Result{Actions: stored(recovered, installplan.StateRequiresApproval,
				func(s *v1alpha1.InstallPlanStatus) { s.Conditions = nil })},
		},
		"the account is stored before it is used": {
			in: input(running, func(in *installplan.Input) {
				in.OperatorGroups.Items[0].Spec.ServiceAccountName = "scoped"
				in.OperatorGroups.Items[0].Status.ServiceAccountRef = account
			}),
			want: olmcore.Result{
				Actions: stored(running, installplan.StateServiceAccountChanged,
					func(s *v1alpha1.InstallPlanStatus) { s.AttenuatedServiceAccountRef = account }),
				RequeueAfter: 5 * time.Second,
			},
		},
		"a plan does not continue without its account": {
			in: input(bound),
			want: olmcore.Result{
				Actions:      stored(bound, installplan.StateCheckFailed, failedCheck(unbound)),
				Diagnostics:  []olmcore.Diagnostic{diagnostic(bound, olmcore.Warning, installplan.ReasonInstallCheckFailed, "", unbound)},
				RequeueAfter: 30 * time.Second,
			},
		},
		"a plan with an unknown phase is not changed": {
			in: input(odd),
			want: olmcore.Result{Diagnostics: []olmcore.Diagnostic{diagnostic(odd, olmcore.Warning, installplan.ReasonPlanPhaseUnknown, "status.phase",
				`status.phase "Odd" is not a phase of InstallPlans, so the plan is not executed`)}},
		},
	} {
		t.Run(name, func(t *testing.T) { Same(t, c.want, reconcile(t, c.in)) })
	}
}

// TestRulesOfPhases contains a case for each rule of the phases.
func TestRulesOfPhases(t *testing.T) {
	one := func(status v1alpha1.StepStatus) []*v1alpha1.Step {
		return []*v1alpha1.Step{WithStatus(status, CSVStep("a.v1"))}
	}
	asked := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved }
	}
	unsupported := func() []*v1alpha1.Step {
		return []*v1alpha1.Step{Step("", "", "v1", "Gizmo", "g", `{"metadata":{"name":"g"}}`)}
	}
	const gizmo = "the InstallPlan contains invalid data: Gizmo g is of a kind that bundles may not contain"
	missing := func() []*v1alpha1.Step { return []*v1alpha1.Step{RoleStep("gone.v1", "r")} }
	const notFound = `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`
	lastRun := func(class olmcore.ErrorClass) func(*installplan.Input) {
		return func(in *installplan.Input) {
			in.LastRun = olmcore.LastResults{
				{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: NS, Name: "a.v1"}: {Class: class, Message: "no", Count: 3},
			}
		}
	}
	warnings := func(p *v1alpha1.InstallPlan, reason, message string) []olmcore.Diagnostic {
		return []olmcore.Diagnostic{diagnostic(p, olmcore.Warning, reason, "status.plan[0]", message)}
	}
	fails := func(message string) func(*v1alpha1.InstallPlanStatus) {
		return func(s *v1alpha1.InstallPlanStatus) {
			s.Phase, s.Message = Failed, message
			s.Conditions = []v1alpha1.InstallPlanCondition{
				Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, message), stalled(installplan.ReasonStepRefused, message),
			}
		}
	}
	stalls := func(reason, prefix, text string) func(*v1alpha1.InstallPlanStatus) {
		return func(s *v1alpha1.InstallPlanStatus) {
			s.Message, s.Conditions = prefix+text, []v1alpha1.InstallPlanCondition{stalled(reason, text)}
		}
	}
	const retrying = "retrying execution due to error: "

	approved, waits := Plan(RequiresApproval, one(Unknown), asked(true)), Plan(RequiresApproval, one(Unknown), asked(false))
	withdrawn := Plan(Installing, one(Unknown), asked(false))
	fresh := Plan(Installing, one(Unknown))
	hopeless := Plan(Installing, unsupported(), Started(time.Second))
	blocked := Plan(Installing, missing(), Started(59*time.Second))
	late := Plan(Installing, missing(), Started(time.Minute), func(p *v1alpha1.InstallPlan) {
		p.Status.Message = "retrying execution due to error: " + notFound
	})
	forbidden := Plan(Installing, one(NotPresent), Started(24*time.Hour), func(p *v1alpha1.InstallPlan) {
		p.Status.Message = "retrying execution due to error: error creating csv a.v1: no"
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{stalled(installplan.ReasonStepFailed, "error creating csv a.v1: no")}
	})
	stale := Plan(Installing, one(NotPresent), Started(24*time.Hour))
	slow := Plan(Installing, one(NotPresent), Started(9*time.Minute))
	dead := Plan(Installing, one(NotPresent), Started(10*time.Minute))
	leaving := Plan(Installing, one(Created), Started(time.Hour))
	healed := Plan(Installing, one(NotPresent), Started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.Message = "retrying execution due to error: x" })
	holding := Plan(Installing, one(NotPresent), Started(time.Second), Held)
	last := Plan(Installing, one(NotPresent), Started(time.Second))
	scoped := Plan(Failed, one(Unknown), Started(time.Hour), func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Name: "scoped"}
		p.Status.Message = "no"
	})
	sub := Subscription("a", RefersTo("install-x"))
	healing := Plan(Failed, missing(), OwnedBy(sub), Started(time.Hour), func(p *v1alpha1.InstallPlan) { p.Status.Message = notFound })
	restarts := func(s *v1alpha1.InstallPlanStatus) { s.Phase, s.StartTime, s.Message = Installing, nil, "" }
	gone := CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = Ago(time.Second) })
	createCSV := func() olmcore.Action {
		c := CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.TypeMeta = metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}
			c.ObjectMeta = metav1.ObjectMeta{
				Namespace: NS, Name: "a.v1", Labels: map[string]string{"olm.managed": "true"}, Finalizers: []string{olmcore.FinalizerCSVCleanup},
			}
			c.Spec.DisplayName = "Cool"
		})
		return olmcore.CreateOf(c, olmcore.Cause{Reason: installplan.ReasonStepAbsent, Message: "ClusterServiceVersion is absent"})
	}
	only := func(p *v1alpha1.InstallPlan, state installplan.State, change func(*v1alpha1.InstallPlanStatus)) []olmcore.Action {
		return stored(p, state, change)
	}

	for name, c := range map[string]struct {
		in   installplan.Input
		want olmcore.Result
	}{
		"an approved plan starts, and applies nothing in the same call": {
			in: input(approved),
			want: olmcore.Result{
				Actions:     only(approved, installplan.StateApproved, func(s *v1alpha1.InstallPlanStatus) { s.Phase = Installing }),
				Transitions: transition(approved, Installing, "", ""), RequeueAfter: 5 * time.Second,
			},
		},
		"a plan waits for approval without end": {in: input(waits)},
		"the approval is withdrawn before a step is applied": {
			in: input(withdrawn),
			want: olmcore.Result{
				Actions:     only(withdrawn, installplan.StateWithdrawn, func(s *v1alpha1.InstallPlanStatus) { s.Phase = RequiresApproval }),
				Transitions: transition(withdrawn, RequiresApproval, "", ""),
			},
		},
		"the start time is written before any object": {
			in: input(fresh),
			want: olmcore.Result{
				Actions:      only(fresh, installplan.StateStarting, func(s *v1alpha1.InstallPlanStatus) { s.StartTime = Ago(0) }),
				RequeueAfter: 5 * time.Second,
			},
		},
		"a step that can never be applied fails the plan at once": {
			in: input(hopeless),
			want: olmcore.Result{
				Actions: only(hopeless, installplan.StateFailing, func(s *v1alpha1.InstallPlanStatus) {
					fails(gizmo)(s)
					s.Plan[0].Status = v1alpha1.StepStatusUnsupportedResource
				}),
				Transitions: transition(hopeless, Failed, "InstallComponentFailed", gizmo),
				Diagnostics: warnings(hopeless, installplan.ReasonStepRefused, gizmo),
			},
		},
		"a step that is blocked until the timeout fails the plan": {
			in: input(late),
			want: olmcore.Result{
				Actions:     only(late, installplan.StateFailing, fails(notFound)),
				Transitions: transition(late, Failed, "InstallComponentFailed", notFound),
				Diagnostics: warnings(late, installplan.ReasonStepRefused, notFound),
			},
		},
		"a transient error fails the plan after ten minutes": {
			in: input(dead, lastRun(olmcore.Transient)),
			want: olmcore.Result{
				Actions: only(dead, installplan.StateFailing, func(s *v1alpha1.InstallPlanStatus) {
					fails("error creating csv a.v1: no")(s)
					again := Condition(corev1.ConditionTrue, installplan.ReasonStepFailed, s.Message)
					again.Type = installplan.ConditionRetrying
					s.Conditions[1].Reason = installplan.ReasonStepFailed
					s.Conditions = append(s.Conditions, again)
				}),
				Transitions:  transition(dead, Failed, "InstallComponentFailed", "error creating csv a.v1: no"),
				Diagnostics:  warnings(dead, installplan.ReasonStepFailed, "error creating csv a.v1: no"),
				RequeueAfter: 10 * time.Minute,
			},
		},
		"a blocked step is retried until the timeout": {
			in: input(blocked),
			want: olmcore.Result{
				Actions:      only(blocked, installplan.StateRetrying, stalls(installplan.ReasonStepRefused, retrying, notFound)),
				Diagnostics:  warnings(blocked, installplan.ReasonStepRefused, notFound),
				RequeueAfter: time.Second,
			},
		},
		"a failed write is retried": {
			in: input(slow, lastRun(olmcore.Transient)),
			want: olmcore.Result{
				Actions: append(only(slow, installplan.StateRetrying,
					stalls(installplan.ReasonStepFailed, retrying, "error creating csv a.v1: no")), createCSV()),
				Diagnostics:  warnings(slow, installplan.ReasonStepFailed, "error creating csv a.v1: no"),
				RequeueAfter: 5 * time.Second,
			},
		},
		"a missing permission never fails the plan": {
			in: input(forbidden, lastRun(olmcore.Forbidden)),
			want: olmcore.Result{
				Actions:      []olmcore.Action{createCSV()},
				Diagnostics:  warnings(forbidden, installplan.ReasonStepFailed, "error creating csv a.v1: no"),
				RequeueAfter: 5 * time.Second,
			},
		},
		"a conflict does not count as a failure": {
			in:   input(stale, lastRun(olmcore.Conflict)),
			want: olmcore.Result{Actions: []olmcore.Action{createCSV()}, RequeueAfter: 5 * time.Second},
		},
		"the plan waits for an object that is being deleted": {
			in: input(leaving, with(gone)),
			want: olmcore.Result{
				Actions: only(leaving, installplan.StateWaiting,
					stalls(installplan.ReasonStepWaits, "", "waiting for ClusterServiceVersion a.v1 to finish deleting")),
				RequeueAfter: 5 * time.Second,
			},
		},
		"a message is removed with its cause": {
			in: input(healed, func(in *installplan.Input) { in.LastRun = ran("a") }),
			want: olmcore.Result{
				Actions:      append(only(healed, installplan.StateApplying, func(s *v1alpha1.InstallPlanStatus) { s.Message = "" }), createCSV()),
				RequeueAfter: 5 * time.Second,
			},
		},
		"the finalizer is removed before the plan is Complete": {
			in: input(holding, with(CSV("a.v1"))),
			want: olmcore.Result{
				Actions: []olmcore.Action{olmcore.UpdateOf(holding, Plan(Installing, one(NotPresent), Started(time.Second)),
					olmcore.Cause{Reason: installplan.ReasonPlanDone, Message: "every step is applied"})},
				RequeueAfter: 5 * time.Second,
			},
		},
		"the plan is Complete once every object was observed": {
			in: input(last, with(CSV("a.v1"))),
			want: olmcore.Result{
				Actions: only(last, installplan.StateCompleting, func(s *v1alpha1.InstallPlanStatus) {
					s.Phase, s.Plan[0].Status = Complete, Created
					s.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionTrue, "", "")}
				}),
				Transitions: transition(last, Complete, "", ""),
			},
		},
		"new permissions start a failed plan again": {
			in: input(scoped, func(in *installplan.Input) { in.RBACChanged = true }),
			want: olmcore.Result{
				Actions:     only(scoped, installplan.StateRetried, restarts),
				Transitions: transition(scoped, Installing, "", ""), RequeueAfter: 5 * time.Second,
			},
		},
		"without a change it stays failed": {in: input(scoped)},
		"new permissions do not start a plan without an account": {in: input(Plan(Failed, missing(), func(p *v1alpha1.InstallPlan) { p.Status.Message = "error creating role r: no" }),
			func(in *installplan.Input) { in.RBACChanged = true })},
		"the cause of the failure was removed": {
			in: input(healing, with(sub, CSV("gone.v1"))),
			want: olmcore.Result{
				Actions:     only(healing, installplan.StateRetried, restarts),
				Transitions: transition(healing, Installing, "", ""), RequeueAfter: 5 * time.Second,
			},
		},
		"a write that the API server rejected is retried after ten minutes": {in: input(Plan(Failed, missing(), OwnedBy(sub), func(p *v1alpha1.InstallPlan) {
			p.Status.Message = "error updating unstructured object x: spec.selector: Invalid value: 1: field is immutable"
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, "InstallComponentFailed", p.Status.Message)}
		}), with(sub, CSV("gone.v1"))), want: olmcore.Result{RequeueAfter: 10 * time.Minute}},
		"the cause of the failure is still there": {in: input(healing, with(sub))},
	} {
		t.Run(name, func(t *testing.T) { Same(t, c.want, reconcile(t, c.in)) })
	}
}

// TestPlanIsAppliedInSeveralCalls checks each call of an installation. The status is written first, then all possible
// steps in plan order.
func TestPlanIsAppliedInSeveralCalls(t *testing.T) {
	crd := CRDObject("v1")
	steps := func(a, b, c, d v1alpha1.StepStatus) []*v1alpha1.Step {
		return []*v1alpha1.Step{
			WithStatus(a, CSVStep("a.v1")), WithStatus(b, CRDStep("a.v1", "v1")),
			WithStatus(c, Step("a.v1", "", "v1", "ServiceAccount", "s", `{"metadata":{"name":"s"}}`)), WithStatus(d, RoleStep("a.v1", "r")),
		}
	}
	second := input(Plan(Installing, steps(Unknown, Unknown, Unknown, Unknown), Started(time.Second)))
	r := reconcile(t, second)
	require.Equal(t, []string{
		"updateStatus InstallPlan ops/install-x (PlanProgressed)",
		"create ClusterServiceVersion ops/a.v1 (StepAbsent)",
		"create CustomResourceDefinition things.example.com (StepAbsent)",
	}, Describe(r))
	require.Equal(t, []v1alpha1.StepStatus{NotPresent, NotPresent, Unknown, Unknown}, Statuses(statusOf(second, r)))
	made := r.Actions[2].(olmcore.Create).Object.DeepCopyObject().(interface{ olmcore.Object })
	require.Equal(t, "ops/a.v1", made.GetAnnotations()["operatorframework.io/installed-alongside-"+alongsideHash("ops/a.v1")])

	observed := Installed(crd, false)
	observed.Annotations = made.GetAnnotations()
	observed.Labels = made.GetLabels()
	third := input(Plan(Installing, steps(NotPresent, NotPresent, Unknown, Unknown), Started(2*time.Second)), with(CSV("a.v1"), observed))
	r = reconcile(t, third)
	require.Equal(t, []string{
		"updateStatus InstallPlan ops/install-x (PlanProgressed)",
		"create ServiceAccount ops/s (StepAbsent)",
		"create Role ops/r (StepAbsent)",
	}, Describe(r))
	require.Equal(t, []v1alpha1.StepStatus{Created, WaitingAPI, NotPresent, NotPresent}, Statuses(statusOf(third, r)))
	require.Equal(t, "waiting for CustomResourceDefinition things.example.com to be established", statusOf(third, r).Message)
	role := r.Actions[2].(olmcore.Create).Object
	require.Equal(t, map[string]string{"olm.managed": "true"}, role.GetLabels())
	require.Equal(t, "uid-a.v1", string(role.GetOwnerReferences()[0].UID))

	observed = observed.DeepCopy()
	observed.Status = Installed(crd, true).Status
	account, seen := r.Actions[1].(olmcore.Create).Object, role.DeepCopyObject().(olmcore.Object)
	fourth := input(Plan(Installing, steps(Created, WaitingAPI, NotPresent, NotPresent), Started(3*time.Second)),
		with(CSV("a.v1"), observed, account, seen))
	r = reconcile(t, fourth)
	require.Equal(t, []string{"updateStatus InstallPlan ops/install-x (PlanProgressed)"}, Describe(r))
	require.Equal(t, []v1alpha1.StepStatus{Created, Created, Created, Created}, Statuses(statusOf(fourth, r)))
	require.Equal(t, Complete, statusOf(fourth, r).Phase)
}

// TestDeletedPlanDeletesItsBundleBeforeItsFinalizer checks that a bundle that no other plan references is deleted
// first. The finalizer of the plan is removed in a separate write.
func TestDeletedPlanDeletesItsBundleBeforeItsFinalizer(t *testing.T) {
	going := func(d time.Duration) *v1alpha1.InstallPlan {
		s := CSVStep("etcd.v1")
		s.Resource.Manifest = Reference()
		return Plan(Installing, []*v1alpha1.Step{s, nil}, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(d) })
	}
	const (
		deletes  = "delete ConfigMap ops/" + BundleName + " (PlanDeleted)"
		releases = "update InstallPlan ops/install-x (PlanDeleted)"
	)
	old, unmanaged, anothers := UnpackedBundle(25*time.Hour), UnpackedBundle(25*time.Hour), UnpackedBundle(25*time.Hour)
	unmanaged.Labels, anothers.OwnerReferences[0].APIVersion = nil, "example.com/v1"
	other := Numbered(1, Complete, func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Resource.Manifest = Reference() }, InNamespace("other"))
	pending := Numbered(1, Installing, InNamespace("other"), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{{Path: BundleImage, CatalogSourceRef: &corev1.ObjectReference{Namespace: NS, Name: "cool"}}}
	})
	for name, c := range map[string]struct {
		age     time.Duration
		cms     []*corev1.ConfigMap
		others  []*v1alpha1.InstallPlan
		change  func(in *installplan.Input)
		want    []string
		reasons []string
	}{
		"an old bundle without another reference": {cms: []*corev1.ConfigMap{old}, want: []string{deletes}},
		"the plan itself is in the list of other plans": {
			cms: []*corev1.ConfigMap{old}, others: []*v1alpha1.InstallPlan{going(0)}, want: []string{deletes},
		},
		"a bundle that another plan references is kept": {
			cms: []*corev1.ConfigMap{old}, others: []*v1alpha1.InstallPlan{other}, want: []string{releases},
		},
		"a bundle that is being unpacked is kept": {
			cms: []*corev1.ConfigMap{old}, others: []*v1alpha1.InstallPlan{pending}, want: []string{releases},
		},
		"a young bundle is left to package sweep": {cms: []*corev1.ConfigMap{UnpackedBundle(time.Hour)}, want: []string{releases}},
		"a ConfigMap without a bundle is kept":    {cms: []*corev1.ConfigMap{{ObjectMeta: Meta(BundleName)}}, want: []string{releases}},
		"an unmanaged ConfigMap is kept":          {cms: []*corev1.ConfigMap{unmanaged}, want: []string{releases}},
		"one of another kind of owner is kept":    {cms: []*corev1.ConfigMap{anothers}, want: []string{releases}},
		"the lists were not read":                 {want: []string{releases}},
		"a namespace that is being deleted": {cms: []*corev1.ConfigMap{old}, change: func(in *installplan.Input) {
			in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NS, DeletionTimestamp: Ago(0)}})
		}, want: []string{releases}},
		"the grace period is over": {
			age: time.Minute, cms: []*corev1.ConfigMap{old}, want: []string{releases}, reasons: []string{"CleanupIncomplete"},
		},
		"the deletion is forbidden": {cms: []*corev1.ConfigMap{old}, want: []string{deletes}, reasons: []string{"CleanupForbidden"}, change: func(in *installplan.Input) {
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
			Same(t, c.want, Describe(got))
			Same(t, c.reasons, Reasons(got))
		})
	}
}

// TestDeletedPlanDeletesItsBundle checks in a cluster that the objects that the ConfigMap owns are deleted too, and
// that the bundle of another plan is kept.
func TestDeletedPlanDeletesItsBundle(t *testing.T) {
	for name, shared := range map[string]bool{"its own": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			o, cm := ImageOf(t, Rich())
			cm.OwnerReferences = nil
			source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}
			c := World(t, source, UserSubscription("rich"))
			cm.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(fake.Find[*v1alpha1.CatalogSource](c, "olm", "cool"))}
			cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			require.NoError(t, c.Create(cm))
			driven(t, c, 0, makers(Installs(o), Things), plans(Things))
			p := onlyPlan(t, c)
			if shared {
				twin := p.DeepCopy()
				twin.Namespace, twin.UID, twin.ResourceVersion, twin.OwnerReferences = "other", "", "", nil
				require.NoError(t, c.Create(twin))
				require.NoError(t, c.UpdateStatus(twin))
			}
			d := &fake.Driver{Cluster: c, Controllers: []controller.Controller{plans(Things)}}
			c.Advance(25 * time.Hour)
			require.NoError(t, fake.Edit(c, NS, p.Name, func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }))
			require.NoError(t, c.Delete(olmcore.RefOf(p).Unversioned()))
			require.NoError(t, d.Settle(t.Context()))
			require.Nil(t, fake.Find[*v1alpha1.InstallPlan](c, NS, p.Name))
			require.Equal(t, shared, fake.Find[*corev1.ConfigMap](c, "olm", BundleName) != nil)
		})
	}
}

// TestFinishedPlanOfADeletedNamespaceIsReleased checks that the finalizer is removed even if a Subscription is still
// marked.
func TestFinishedPlanOfADeletedNamespaceIsReleased(t *testing.T) {
	marked := Subscription("g", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	})
	for name, namespace := range map[string]*corev1.Namespace{
		"by its phase": {ObjectMeta: metav1.ObjectMeta{Name: NS}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
		"by its time":  {ObjectMeta: metav1.ObjectMeta{Name: NS, DeletionTimestamp: Ago(0)}},
	} {
		p := Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(marked), func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} })
		in := input(p, with(marked))
		in.Namespace = olmcore.Found(namespace)
		r := reconcile(t, in)
		require.Len(t, r.Actions, 1, name)
		require.Empty(t, r.Actions[0].(olmcore.Update).After.GetFinalizers(), name)
	}
}
