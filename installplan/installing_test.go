// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// outage is a cluster whose Services are refused with an error while that is set.
func outage(t *testing.T) (*fake.Cluster, *error, func() *fake.Driver) {
	c := World(t, UserSubscription("rich"))
	problem := new(error)
	c.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if target.Kind == "Service" {
			return *problem
		}
		return nil
	}
	return c, problem, func() *fake.Driver {
		return &fake.Driver{Cluster: c, Controllers: []controller.Controller{makers(Installs(Rich()), Things), plans(Things)}}
	}
}

func conditionTypes(p *v1alpha1.InstallPlan) []v1alpha1.InstallPlanConditionType {
	var types []v1alpha1.InstallPlanConditionType
	for _, c := range p.Status.Conditions {
		types = append(types, c.Type)
	}
	return types
}

// outcomes returns the results of a run in which every write of a step failed with an error.
func outcomes(t *testing.T, in installplan.Input, class olmcore.ErrorClass) olmcore.LastResults {
	out := olmcore.LastResults{}
	for _, a := range reconcile(t, in).Actions {
		if _, target, _ := a.Describe(); target.Kind != "InstallPlan" {
			out[target.Key()] = olmcore.LastResult{Class: class, Message: "no", Count: 3}
		}
	}
	require.Len(t, out, 1)
	return out
}

// TestFailedWritesHaveMessagesOfOLM checks for each kind the message about a rejected creation and a rejected update.
// The class of the error is kept. It includes OLM's cases.
func TestFailedWritesHaveMessagesOfOLM(t *testing.T) {
	plain := func(group, kind string) *v1alpha1.Step {
		return Step("", group, "v1", kind, "x", `{"metadata":{"name":"x","labels":{"ours":"new"}},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"}}`)
	}
	roleRef := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "x"}
	pdb := Step("", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"}}`)
	const rbac = "rbac.authorization.k8s.io"
	for name, c := range map[string]struct {
		step           *v1alpha1.Step
		observed       olmcore.Object
		create, update string
	}{
		"version":      {step: CSVStep("x"), create: "error creating csv x: no"},
		"Subscription": {step: plain("operators.coreos.com", "Subscription"), create: "error creating subscription x: no"},
		"pull Secret":  {step: plain("", "Secret"), create: "error creating secret x - no"},
		"Secret": {
			step: plain("", "BundleSecret"), observed: &corev1.Secret{ObjectMeta: Meta("x")}, create: "error updating secret: x: no", update: "error updating secret: x: no",
		},
		"ServiceAccount": {
			step: plain("", "ServiceAccount"), observed: &corev1.ServiceAccount{ObjectMeta: Meta("x")}, create: "error creating service account: x: no", update: "error updating service account: x: no",
		},
		"Service": {
			step: plain("", "Service"), observed: &corev1.Service{ObjectMeta: Meta("x")}, create: "error updating service: x: no", update: "error updating service: x: no",
		},
		"ConfigMap": {
			step: plain("", "ConfigMap"), observed: &corev1.ConfigMap{ObjectMeta: Meta("x")}, create: "error updating configmap: x: no", update: "error updating configmap: x: no",
		},
		"Role": {
			step: plain(rbac, "Role"), observed: &rbacv1.Role{ObjectMeta: Meta("x")}, create: "error creating role x: no", update: "error updating role x: no",
		},
		"RoleBinding": {
			step: plain(rbac, "RoleBinding"), observed: &rbacv1.RoleBinding{ObjectMeta: Meta("x"), RoleRef: roleRef}, create: "error creating rolebinding x: no", update: "error updating rolebinding x: no",
		},
		"ClusterRole": {
			step: plain(rbac, "ClusterRole"), observed: &rbacv1.ClusterRole{ObjectMeta: ClusterMeta("x")}, create: "error creating clusterrole x: no", update: "error updating clusterrole x: no",
		},
		"ClusterRoleBinding": {step: plain(rbac, "ClusterRoleBinding"), observed: &rbacv1.ClusterRoleBinding{ObjectMeta: ClusterMeta("x"), RoleRef: roleRef},
			create: "error creating clusterrolebinding x: no", update: "error updating clusterrolebinding x: no"},
		"generic": {step: pdb, observed: &policyv1.PodDisruptionBudget{ObjectMeta: Meta("x"), Spec: policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)}},
			create: "error creating unstructured object x: no", update: "error updating unstructured object x: no"},
		"definition": {
			step: CRDStep("", "v1"), observed: Installed(other(CRDObject("v1"), 0), true), create: "no", update: `error updating CRD "things.example.com": no`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.observed != nil {
				c.observed.SetLabels(map[string]string{"olm.managed": "true"})
			}
			said := func(class olmcore.ErrorClass, objects ...olmcore.Object) v1alpha1.InstallPlanStatus {
				in := input(Plan(Installing, []*v1alpha1.Step{c.step}, Started(time.Minute)), with(objects...))
				in.PullSecrets = olmcore.Found(&corev1.Secret{ObjectMeta: InOLM("x"), Type: corev1.SecretTypeDockerConfigJson})
				in.CatalogSources = olmcore.Found(pullCatalog("x"))
				in.LastRun = outcomes(t, in, class)
				return statusOf(in, reconcile(t, in))
			}
			require.Equal(t, "retrying execution due to error: "+c.create, said(olmcore.Forbidden).Message)
			require.Equal(t, c.create, said(olmcore.Invalid).Message)
			require.Equal(t, Failed, said(olmcore.Gone).Phase, "what is not there fails it as what is not valid does")
			if c.observed != nil {
				require.Equal(t, "retrying execution due to error: "+c.update, said(olmcore.Transient, c.observed).Message)
				require.Equal(t, Failed, said(olmcore.Invalid, c.observed).Phase)
			}
		})
	}
}

func TestDiagnosticsThatBlockNothing(t *testing.T) {
	asked := func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }
	sub := Subscription("a", RefersTo("install-x"))
	differs := CSV("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.DisplayName = "Other" })
	for reason, c := range map[string]struct {
		in   installplan.Input
		want string
		path string
	}{
		installplan.ReasonPendingPlanCouldBeAutomatic: {input(Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}, asked, OwnedBy(sub)), with(sub)),
			"no Subscription that owns the plan requires manual approval any more", "spec.approval"},
		installplan.ReasonApprovalWithdrawnTooLate: {input(Plan(Installing, []*v1alpha1.Step{WithStatus(NotPresent, CSVStep("a.v1"))}, asked, Started(time.Second))),
			"steps of the plan are applied already", "spec.approved"},
		installplan.ReasonCSVContentDiffers: {input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, Started(time.Second)), with(differs)),
			"ClusterServiceVersion a.v1 exists with another spec", "status.plan[0]"},
		installplan.ReasonStepNotVisible: {input(Plan(Installing, []*v1alpha1.Step{WithStatus(NotPresent, CSVStep("a.v1"))}, Started(time.Hour)), func(in *installplan.Input) {
			in.LastRun = olmcore.LastResults{{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: NS, Name: "a.v1"}: {Count: 1}}
		}), "ClusterServiceVersion ops/a.v1 was created, but was not observed", "status.plan[0]"},
	} {
		t.Run(reason, func(t *testing.T) {
			r := reconcile(t, c.in)
			var found []olmcore.Diagnostic
			for _, d := range r.Diagnostics {
				if d.Reason == reason {
					found = append(found, d)
				}
			}
			require.Len(t, found, 1, "%v", r.Diagnostics)
			require.Equal(t, c.want, found[0].Message)
			require.Equal(t, c.path, found[0].Path)
		})
	}
}

// TestClockSetBackDoesNotExtendTheTimeout checks that a clock that was set back extends the timeout only up to the
// start. If the start is set to a time long ago, the first error fails the plan.
func TestClockSetBackDoesNotExtendTheTimeout(t *testing.T) {
	in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("gone.v1", "r")}, Started(-time.Hour)))
	r := reconcile(t, in)
	require.Equal(t, Installing, statusOf(in, r).Phase)
	require.Equal(t, 5*time.Second, r.RequeueAfter)

	in = input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, Started(1e6*time.Hour)))
	require.Equal(t, Installing, statusOf(in, reconcile(t, in)).Phase)
	in.LastRun = outcomes(t, in, olmcore.Invalid)
	require.Equal(t, Failed, statusOf(in, reconcile(t, in)).Phase)
}

func TestErrorsOfFinishedAndRefusedStepsAreIgnored(t *testing.T) {
	s := RoleStep("a.v1", "r")
	made := applied(t, s, CSV("a.v1"))
	in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Hour)), with(CSV("a.v1"), made))
	in.LastRun = olmcore.LastResults{olmcore.KeyOf(made): {Class: olmcore.Invalid, Message: "no", Count: 1}}
	require.Equal(t, Complete, statusOf(in, reconcile(t, in)).Phase, "it is there")

	in = input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)))
	in.LastRun = olmcore.LastResults{olmcore.KeyOf(made): {Class: olmcore.Invalid, Message: "no", Count: 1}}
	require.Equal(t, []string{installplan.ReasonStepRefused}, Reasons(reconcile(t, in)), "its owner is nowhere")
}

// TestProblemOfTheFirstStepIsReported checks that the problem of the first step is reported. A problem that can never
// pass takes precedence.
func TestProblemOfTheFirstStepIsReported(t *testing.T) {
	ran := func(name string, class olmcore.ErrorClass) olmcore.LastResults {
		return olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: NS, Name: name}: {Class: class, Message: "no", Count: 1}}
	}
	for _, classes := range [][2]olmcore.ErrorClass{{olmcore.Forbidden, olmcore.Transient}, {olmcore.Transient, olmcore.Forbidden}} {
		in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "a"), RoleStep("", "b")}, Started(time.Second)))
		in.LastRun = ran("a", classes[0])
		maps.Copy(in.LastRun, ran("b", classes[1]))
		require.Equal(t, "retrying execution due to error: error creating role a: no", statusOf(in, reconcile(t, in)).Message)
		in.InstallPlan.Status.Plan = append(in.InstallPlan.Status.Plan, Step("", "", "v1", "Gizmo", "g", `{"metadata":{"name":"g"}}`))
		require.Equal(t, "the InstallPlan contains invalid data: Gizmo g is of a kind that bundles may not contain",
			statusOf(in, reconcile(t, in)).Message)
	}
}

// TestLongMessagesAreCut checks that a message is cut between two characters.
func TestLongMessagesAreCut(t *testing.T) {
	for shift := range 4 {
		long := strings.Repeat("x", shift) + strings.Repeat("\u65e5", 5000) + "\xff"
		in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, Started(time.Second)))
		in.LastRun = olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: NS, Name: "r"}: {Class: olmcore.Forbidden, Message: long, Count: 1}}
		got := statusOf(in, reconcile(t, in)).Message
		require.True(t, utf8.ValidString(got))
		require.True(t, strings.HasSuffix(got, "\u65e5 ..."), got[len(got)-10:])
		require.InDelta(t, 8<<10, len(got), 64)
	}
	in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, Started(time.Second)))
	in.LastRun = olmcore.LastResults{{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: NS, Name: "r"}: {Class: olmcore.Forbidden, Message: "a\xffb", Count: 1}}
	require.Equal(t, "retrying execution due to error: error creating role r: a\uFFFDb", statusOf(in, reconcile(t, in)).Message)
	require.Equal(t, installplan.StateRetrying, assess(t, in).State)
}

// TestRestartKeepsTheMessage checks that a new process keeps the message about a rejected write, which may be rejected
// again.
func TestRestartKeepsTheMessage(t *testing.T) {
	const message = "retrying execution due to error: no"
	in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, Started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.Message = message }))
	require.Equal(t, message, statusOf(in, reconcile(t, in)).Message)
}

// TestDowntimeDoesNotShortenTheTimeout checks a controller that is down for an hour during an installation. The first
// writes after that fail.
func TestDowntimeDoesNotShortenTheTimeout(t *testing.T) {
	for name, refusal := range map[string]error{
		"a transient error": apierrors.NewInternalError(errors.New("etcd is ill")),
		"a permanent error": apierrors.NewBadRequest("it is broken"),
	} {
		t.Run(name, func(t *testing.T) {
			c, problem, restarted := outage(t)
			*problem = refusal
			require.NoError(t, restarted().RunFor(t.Context(), 10*time.Second))
			require.Equal(t, Installing, onlyPlan(t, c).Status.Phase)
			c.Advance(time.Hour)
			d := restarted()
			require.NoError(t, d.RunFor(t.Context(), 50*time.Second))
			require.Equal(t, Installing, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
			*problem = nil
			require.NoError(t, d.RunFor(t.Context(), time.Minute))
			require.Equal(t, Complete, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
		})
	}
}

// TestChangingErrorsShareOneTimeout checks an API server that alternates between two errors. The plan fails of them,
// reports it, and is retried later.
func TestChangingErrorsShareOneTimeout(t *testing.T) {
	ill, webhook := apierrors.NewInternalError(errors.New("etcd is ill")), apierrors.NewInternalError(errors.New("failed calling webhook \"x\""))
	broken := apierrors.NewBadRequest("it is broken")
	for name, answers := range map[string][]error{
		"two transient errors":              {ill, webhook},
		"a transient and a permanent error": {ill, broken},
		"all of them":                       {ill, webhook, broken},
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
			require.Equal(t, Installing, onlyPlan(t, c).Status.Phase)
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			p := onlyPlan(t, c)
			require.Equal(t, Failed, p.Status.Phase)
			require.Equal(t, []v1alpha1.InstallPlanConditionType{
				installplan.ConditionProgressing, v1alpha1.InstallPlanInstalled, installplan.ConditionRetrying,
			}, conditionTypes(p))
			ended = true
			require.NoError(t, d.RunFor(t.Context(), 11*time.Minute))
			require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
		})
	}
}

// TestPlanIsRetriedAfterATransientError checks a plan whose API server is unavailable for an hour, also with a
// restarted controller.
func TestPlanIsRetriedAfterATransientError(t *testing.T) {
	for name, restart := range map[string]bool{"one controller": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			c, problem, restarted := outage(t)
			*problem = apierrors.NewInternalError(errors.New("etcd is ill"))
			d := restarted()
			require.NoError(t, d.RunFor(t.Context(), 15*time.Minute))
			p := onlyPlan(t, c)
			require.Equal(t, Failed, p.Status.Phase)
			require.Equal(t, []v1alpha1.InstallPlanConditionType{
				installplan.ConditionProgressing, v1alpha1.InstallPlanInstalled, installplan.ConditionRetrying,
			}, conditionTypes(p))
			if restart {
				d = restarted()
			}
			require.NoError(t, d.RunFor(t.Context(), 45*time.Minute))
			*problem = nil
			require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
			p = onlyPlan(t, c)
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
			require.Equal(t, []v1alpha1.InstallPlanConditionType{v1alpha1.InstallPlanInstalled}, conditionTypes(p))
		})
	}
}

// TestTimeoutOfFailedWrites checks that the timeout starts with the plan, or later with the series of failures, and
// that it allows three tries.
func TestTimeoutOfFailedWrites(t *testing.T) {
	for name, c := range map[string]struct {
		class   olmcore.ErrorClass
		count   int
		first   time.Duration
		fails   bool
		requeue time.Duration
	}{
		"one try, long ago":                       {olmcore.Invalid, 1, time.Hour, false, 5 * time.Second},
		"two tries, long ago":                     {olmcore.Transient, 2, time.Hour, false, 5 * time.Second},
		"three tries, long ago":                   {olmcore.Invalid, 3, 2 * time.Hour, true, 10 * time.Minute},
		"many tries, just now":                    {olmcore.Invalid, 9, 57 * time.Second, false, 3 * time.Second},
		"many tries, for a minute":                {olmcore.Invalid, 9, time.Minute, true, 10 * time.Minute},
		"transient errors for almost ten minutes": {olmcore.Transient, 9, 10*time.Minute - time.Second, false, time.Second},
		"transient errors for ten minutes":        {olmcore.Transient, 9, 10 * time.Minute, true, 10 * time.Minute},
		"a webhook that is down for days":         {olmcore.Webhook, 9, 48 * time.Hour, true, 10 * time.Minute},
		"a permission, for days":                  {olmcore.Forbidden, 999, 48 * time.Hour, false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(Plan(Installing, []*v1alpha1.Step{WithStatus(NotPresent, CSVStep("a.v1"))}, Started(time.Hour)))
			in.LastRun = olmcore.LastResults{
				{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: NS, Name: "a.v1"}: {
					Class: c.class, Message: "no", Count: c.count, First: Noon.Add(-c.first), Last: Noon,
				},
			}
			r := reconcile(t, in)
			require.Equal(t, c.fails, statusOf(in, r).Phase == Failed)
			require.Equal(t, c.requeue, r.RequeueAfter)
		})
	}
}

// TestTimeoutOfRefusedSteps checks that the timeout starts with the plan if a controller observed the refusal all the
// time. Otherwise it starts again, once.
func TestTimeoutOfRefusedSteps(t *testing.T) {
	const known = `retrying execution due to error: error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`
	retrying := func(d time.Duration) *v1alpha1.InstallPlanCondition {
		return &v1alpha1.InstallPlanCondition{Type: installplan.ConditionRetrying, Status: corev1.ConditionTrue,
			Reason: "StepRefused", Message: known[len("retrying execution due to error: "):], LastTransitionTime: Ago(d), LastUpdateTime: Ago(d)}
	}
	for name, c := range map[string]struct {
		start   time.Duration
		message string
		reason  string
		have    *v1alpha1.InstallPlanCondition
		want    *v1alpha1.InstallPlanCondition
		fails   bool
		requeue time.Duration
	}{
		"refused before the timeout":               {start: 58 * time.Second, requeue: 2 * time.Second},
		"observed until the timeout":               {start: time.Minute, message: known, fails: true},
		"observed until shortly after the timeout": {start: 119 * time.Second, message: known, fails: true},
		"first observed after the timeout":         {start: time.Minute, want: retrying(0), requeue: 5 * time.Second},
		"not observed at the timeout": {start: time.Hour, message: known,
			want: retrying(0), requeue: 5 * time.Second},
		"before its own timeout": {
			start: time.Hour, message: known, have: retrying(57 * time.Second), want: retrying(57 * time.Second), requeue: 3 * time.Second,
		},
		"after its own timeout":         {start: time.Hour, message: known, have: retrying(time.Minute), fails: true},
		"an hour after its own timeout": {start: 2 * time.Hour, message: known, have: retrying(time.Hour), fails: true},
		"a step that waited before it was refused": {
			start: time.Minute, message: "waiting for CustomResourceDefinition x to be established",
			reason: installplan.ReasonStepWaits, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("gone.v1", "r")}, Started(c.start), func(p *v1alpha1.InstallPlan) {
				p.Status.Message = c.message
				if c.reason != "" {
					p.Status.Conditions = append(p.Status.Conditions, stalled(c.reason, c.message))
				}
				if c.have != nil {
					p.Status.Conditions = append(p.Status.Conditions, *c.have)
				}
			}))
			r := reconcile(t, in)
			got := statusOf(in, r)
			require.Equal(t, c.fails, got.Phase == Failed)
			require.Equal(t, c.requeue, r.RequeueAfter)
			var have *v1alpha1.InstallPlanCondition
			for i := range got.Conditions {
				if got.Conditions[i].Type == installplan.ConditionRetrying {
					have = &got.Conditions[i]
				}
			}
			Same(t, c.want, have)
		})
	}
}

// TestFailedPlansThatStartAgain checks which failed plans start again, and which report something.
func TestFailedPlansThatStartAgain(t *testing.T) {
	binding := Step("", "rbac.authorization.k8s.io", "v1", "RoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"kind":"Role","name":"new"}}`)
	waits := CRDStep("a.v1", "v1")
	down := applied(t, waits, CSV("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
	down.Status.Conditions = nil
	for name, c := range map[string]struct {
		step     *v1alpha1.Step
		observed []olmcore.Object
		reason   string
		message  string
		sub      *v1alpha1.Subscription
		want     installplan.State
	}{
		"OLM refused a step": {
			binding, nil, "", "pre-existing CRD owners found for owned CRD(s) of dependent CSV x",
			Subscription("a", RefersTo("install-x")), installplan.StateRetried,
		},
		"the obstacle was removed": {
			binding, nil, installplan.ReasonStepRefused, "RoleBinding x exists and its roleRef is immutable",
			Subscription("a", RefersTo("install-x")), installplan.StateRetried,
		},
		"no Subscription references it by its UID": {
			binding, nil, installplan.ReasonStepRefused, "RoleBinding x exists and its roleRef is immutable",
			Subscription("a", func(s *v1alpha1.Subscription) {
				s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: "install-x"}
			}), installplan.StateFailed,
		},
		"an error of the API server": {
			binding, nil, "", "error creating rolebinding x: it is immutable",
			Subscription("a", RefersTo("install-x")), installplan.StateTryingAgain,
		},
		"a definition is still not served": {
			waits, []olmcore.Object{CSV("a.v1"), down}, installplan.ReasonStepRefused,
			"waiting for CustomResourceDefinition things.example.com to be established",
			Subscription("a", RefersTo("install-x")), installplan.StateFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Failed, []*v1alpha1.Step{c.step}, OwnedBy(c.sub), Started(time.Hour), func(p *v1alpha1.InstallPlan) {
				p.Status.Message = c.message
				if c.reason != "" {
					p.Status.Conditions = failedOf(c.reason, c.message)
				}
			})
			require.Equal(t, c.want, assess(t, input(p, with(c.observed...), with(c.sub))).State)
		})
	}
	empty := input(Plan(Failed, nil))
	Same(t, olmcore.Result{}, reconcile(t, empty))
	require.Equal(t, installplan.StateFailed, assess(t, empty).State)
}

// TestPlanWaitsForAMissingPermission checks that the plan waits without end, and continues once it has the permission.
func TestPlanWaitsForAMissingPermission(t *testing.T) {
	c, problem, restarted := outage(t)
	*problem = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "service", errors.New("it is not allowed"))
	d := restarted()
	require.NoError(t, d.RunFor(t.Context(), 4*time.Hour))
	p := onlyPlan(t, c)
	require.Equal(t, Installing, p.Status.Phase)
	require.Equal(t, `retrying execution due to error: error updating service: service: services "service" is forbidden: it is not allowed`, p.Status.Message)
	*problem = nil
	require.NoError(t, d.RunFor(t.Context(), time.Hour))
	require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
}

func TestRejectedWriteFailsThePlanAfterAMinute(t *testing.T) {
	c, problem, restarted := outage(t)
	*problem = apierrors.NewBadRequest("it is broken")
	d := restarted()
	require.NoError(t, d.RunFor(t.Context(), 59*time.Second))
	require.Equal(t, Installing, onlyPlan(t, c).Status.Phase)
	require.NoError(t, d.RunFor(t.Context(), time.Second))
	p := onlyPlan(t, c)
	require.Equal(t, Failed, p.Status.Phase)
	require.Equal(t, "error updating service: service: it is broken", p.Status.Message)
	require.Equal(t, p.Status.Message, p.Status.GetCondition(v1alpha1.InstallPlanInstalled).Message)
	require.NoError(t, d.RunFor(t.Context(), time.Hour))
	require.Equal(t, Failed, onlyPlan(t, c).Status.Phase, "the API server still gives the same answer")
}

func TestFailedPlanStartsAgainWhenItsCauseIsGone(t *testing.T) {
	o := Operator("a", &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: Bare("x")}, CRDObject("v1"))
	old := CRDObject("v0")
	old.Labels = map[string]string{"olm.managed": "true"}
	c := World(t, UserSubscription("a"), old)
	d := driven(t, c, 2*time.Minute, makers(Installs(o), installplan.Config{}), plans(installplan.Config{}))
	p := onlyPlan(t, c)
	require.Equal(t, Failed, p.Status.Phase)
	require.Contains(t, p.Status.Message, "new CRD removes version v0")
	csvs, err := olmcore.List[*v1alpha1.ClusterServiceVersion](t.Context(), c, NS, nil)
	require.NoError(t, err)
	require.Empty(t, csvs, "an upgrade that cannot finish does not begin")
	require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: old.Name}))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
}

// TestPhaseChangesEqualThoseOfOLM compares the whole status of plans in phase Installing with OLM's tests. It includes
// OLM's cases.
func TestPhaseChangesEqualThoseOfOLM(t *testing.T) {
	const notFound = `error generating ownerrefs for role r: clusterserviceversions.operators.coreos.com "gone.v1" not found`
	fine := func() []*v1alpha1.Step { return []*v1alpha1.Step{WithStatus(NotPresent, CSVStep("a.v1"))} }
	broken := func() []*v1alpha1.Step { return []*v1alpha1.Step{RoleStep("gone.v1", "r")} }
	approved := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approved = approved }
	}
	brief := func(in *installplan.Input) { in.Config.InstallTimeout = time.Nanosecond }
	completes := func(s *v1alpha1.InstallPlanStatus) {
		s.Phase, s.Plan[0].Status = Complete, Created
		s.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionTrue, "", "")}
	}
	fails := func(s *v1alpha1.InstallPlanStatus) {
		s.Phase, s.Message = Failed, notFound
		s.Conditions = []v1alpha1.InstallPlanCondition{
			Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, notFound), stalled(installplan.ReasonStepRefused, notFound),
		}
	}
	for name, c := range map[string]struct {
		in      installplan.Input
		want    func(*v1alpha1.InstallPlanStatus)
		requeue time.Duration
	}{
		"no error, Automatic, approved no": {
			in: input(Plan(Installing, fine(), Started(time.Second), approved(false)), with(CSV("a.v1"))), want: completes,
		},
		"Automatic, approved no, without an error": {in: input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, approved(false)), with(CSV("a.v1"))), requeue: 5 * time.Second,
			want: func(s *v1alpha1.InstallPlanStatus) { s.StartTime = Ago(0) }},
		"an error after the timeout": {in: input(Plan(Installing, broken(), Started(time.Second), func(p *v1alpha1.InstallPlan) {
			p.Status.Message = "retrying execution due to error: " + notFound // OLM fails at the first try
		}), brief), want: fails},
		"an error before the timeout": {in: input(Plan(Installing, broken(), Started(0)), brief), requeue: time.Nanosecond,
			want: func(s *v1alpha1.InstallPlanStatus) {
				s.Message = "retrying execution due to error: " + notFound
				s.Conditions = []v1alpha1.InstallPlanCondition{stalled(installplan.ReasonStepRefused, notFound)}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.in.InstallPlan.DeepCopy().Status
			if c.want != nil {
				c.want(&want)
			}
			r := reconcile(t, c.in)
			Same(t, want, statusOf(c.in, r))
			require.Equal(t, c.requeue, r.RequeueAfter)
			for _, a := range r.Actions {
				require.IsType(t, olmcore.UpdateStatus{}, a)
			}
		})
	}
}

func TestMessageIsClearedWithItsPhase(t *testing.T) {
	leftover := func(p *v1alpha1.InstallPlan) { p.Status.Message, p.Spec.Approval = "leftover", v1alpha1.ApprovalManual }
	approved := input(Plan(RequiresApproval, []*v1alpha1.Step{RoleStep("", "r")}, leftover))
	withdrawn := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, leftover, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = false }))
	for in, phase := range map[*installplan.Input]v1alpha1.InstallPlanPhase{&approved: Installing, &withdrawn: RequiresApproval} {
		got := statusOf(*in, reconcile(t, *in))
		require.Equal(t, phase, got.Phase)
		require.Empty(t, got.Message)
	}
}

// TestConditionsKeepTheirTimes checks that the transition time changes only with the status, and that duplicate
// conditions are merged.
func TestConditionsKeepTheirTimes(t *testing.T) {
	old := Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, "another text")
	old.LastTransitionTime, old.LastUpdateTime = Ago(time.Hour), Ago(time.Hour)
	later := v1alpha1.InstallPlanCondition{Type: "Later", Status: corev1.ConditionTrue}
	foreign := v1alpha1.InstallPlanCondition{Type: v1alpha1.InstallPlanResolved, Reason: v1alpha1.InstallPlanReasonInstallCheckFailed, Status: corev1.ConditionTrue}
	in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, func(p *v1alpha1.InstallPlan) {
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{foreign, old, later, old}
	}))
	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	want := Condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, "no operator group found that is managing this namespace")
	want.LastTransitionTime = old.LastTransitionTime
	Same(t, []v1alpha1.InstallPlanCondition{foreign, want, later}, statusOf(in, reconcile(t, in)).Conditions)

	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](Group())
	Same(t, []v1alpha1.InstallPlanCondition{foreign, later}, statusOf(in, reconcile(t, in)).Conditions)
}

func TestMessageOfAWaitIsRemoved(t *testing.T) {
	for _, c := range []struct{ reason, message, want string }{
		{installplan.ReasonStepWaits, "waiting for ClusterServiceVersion a.v1 to finish deleting", ""},
		{installplan.ReasonStepWaits, "bundle a.v1 is not unpacked", ""},
		{installplan.ReasonStepFailed, "retrying execution due to error: no", ""},
		{installplan.ReasonStepRefused, "retrying execution due to error: no", ""},
		{"", "retrying execution due to error: no", ""}, // of OLM
		{"", "written by another controller", "written by another controller"},
	} {
		in := input(Plan(Installing, []*v1alpha1.Step{RoleStep("", "r")}, Started(time.Second), func(p *v1alpha1.InstallPlan) {
			if p.Status.Message = c.message; c.reason != "" {
				p.Status.Conditions = append(p.Status.Conditions, stalled(c.reason, c.message))
			}
		}))
		in.LastRun = ran("r")
		got := statusOf(in, reconcile(t, in))
		require.Equal(t, c.want, got.Message)
		require.Empty(t, got.Conditions)
	}
}

// TestLookupsBlockThePlan checks that the plan waits for a pending lookup, and fails of a failed one.
func TestLookupsBlockThePlan(t *testing.T) {
	for want, lookup := range map[string]v1alpha1.BundleLookup{
		"bundle b.v1 is not unpacked": {
			Identifier: "b.v1", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupPending, Status: "True", Message: "it broke"}},
		},
		"it broke": {
			Identifier: "b.v1", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: "True", Message: "it broke"}},
		},
		"bundle img cannot be unpacked": {
			Path: "img", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: "True"}},
		},
	} {
		in := input(Plan(Installing, nil, Started(time.Second), func(p *v1alpha1.InstallPlan) { p.Status.BundleLookups = []v1alpha1.BundleLookup{lookup} }))
		got := statusOf(in, reconcile(t, in))
		require.Equal(t, want, strings.TrimPrefix(got.Message, "retrying execution due to error: "))
		in.InstallPlan.Status.Message, in.Now = got.Message, Noon.Add(time.Minute)
		require.Equal(t, lookup.Conditions[0].Type == v1alpha1.BundleLookupFailed, statusOf(in, reconcile(t, in)).Phase == Failed)
	}
}

func TestRequiredListsAreNotNull(t *testing.T) {
	null := Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.Spec.ClusterServiceVersionNames, p.Status.CatalogSources = nil, nil
	})
	after := reconcile(t, input(null, with(Subscription("a", RefersTo("install-x"))))).Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
	require.NotNil(t, after.Spec.ClusterServiceVersionNames)
	in := input(null)
	require.NotNil(t, statusOf(in, reconcile(t, in)).CatalogSources)
}

// TestCompletePlanHasNoActions checks that the finalizer is removed before the plan is Complete.
func TestCompletePlanHasNoActions(t *testing.T) {
	c := World(t, UserSubscription("rich"))
	var held []bool
	var completed string
	watch := func(inner controller.Controller) controller.Controller {
		reconcile := inner.Reconcile
		inner.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			for _, p := range everyPlan(t, c) {
				held = append(held, slices.Contains(p.Finalizers, installplan.Finalizer))
				if p.Status.Phase == Complete && completed == "" {
					completed = p.ResourceVersion
				}
			}
			return reconcile(ctx, r, key, now, last)
		}
		return inner
	}
	driven(t, c, time.Hour, makers(Installs(Rich()), Things), watch(plans(Things)), watch(sweeps(Things)))
	require.True(t, held[0], "it is there from the creation")
	require.False(t, slices.Contains(held[slices.Index(held, false):], true), "once gone it stays away")
	p := onlyPlan(t, c)
	require.Equal(t, Complete, p.Status.Phase)
	require.Equal(t, completed, p.ResourceVersion)
}

// TestPlanWithoutStatusIsNotChanged checks a plan whose creator has not written its status yet.
func TestPlanWithoutStatusIsNotChanged(t *testing.T) {
	bare := Plan(None, nil)
	bare.OwnerReferences = nil
	c := World(t, bare)
	before := onlyPlan(t, c)
	d := driven(t, c, time.Minute, plans(Things), sweeps(Things))
	require.Equal(t, before.ResourceVersion, onlyPlan(t, c).ResourceVersion)

	given := before.DeepCopy()
	given.Status = Plan(RequiresApproval, []*v1alpha1.Step{CSVStep("a.v1")}).Status
	require.NoError(t, c.UpdateStatus(given))
	given = onlyPlan(t, c)
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, given.Finalizers, onlyPlan(t, c).Finalizers)
	require.Empty(t, onlyPlan(t, c).Finalizers)
}
