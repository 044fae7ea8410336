// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

const alongside = "operatorframework.io/installed-alongside-"

// recordedFor are the annotations of a definition that versions have in common.
func recordedFor(versions ...string) map[string]string {
	annotations := map[string]string{}
	for _, v := range versions {
		annotations[alongside+alongsideHash(v)] = v
	}
	return annotations
}

func scopedTo(account *corev1.ObjectReference) (func(*v1alpha1.InstallPlan), func(*installplan.Input)) {
	return func(p *v1alpha1.InstallPlan) { p.Status.AttenuatedServiceAccountRef = account },
		func(in *installplan.Input) {
			in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](group(func(g *operatorsv1.OperatorGroup) {
				g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = account.Name, account
			}))
		}
}

// TestOneStep has steps that are judged by a detail: what is done about each, and
// what the plan says.
func TestOneStep(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	served := applied(t, crdStep("", "v1"))
	thing := func(version string) *v1alpha1.Step {
		return step("", "example.com", version, "Thing", "x", `{"apiVersion":"example.com/`+version+`","kind":"Thing","metadata":{"name":"x"}}`)
	}
	optional := func(s *v1alpha1.Step) *v1alpha1.Step { s.Optional = true; return s }
	bound, scope := scopedTo(&corev1.ObjectReference{Namespace: ns, Name: "scoped"})
	copiedFrom := func(change func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
		return csv("a.v1", change)
	}
	misnamed := step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"y"}}`)
	for name, c := range map[string]struct {
		steps    []*v1alpha1.Step
		observed []olmcore.Object
		change   func(*v1alpha1.InstallPlan)
		in       func(*installplan.Input)
		actions  []string
		statuses []v1alpha1.StepStatus
		message  string
		phase    v1alpha1.InstallPlanPhase
	}{
		"a step that is none leaves the others in place": {steps: []*v1alpha1.Step{nil, roleStep("", "r")}, actions: []string{status},
			statuses: []v1alpha1.StepStatus{unknown}, message: "the InstallPlan contains invalid data", phase: failed},
		"kinds that a plan may define keep their place": {
			steps:   []*v1alpha1.Step{step("", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"}}`), roleStep("", "r")},
			actions: []string{status, "create PodDisruptionBudget ops/x (StepAbsent)", "create Role ops/r (StepAbsent)"}, statuses: []v1alpha1.StepStatus{notPresent, notPresent}, phase: installing},
		"what was created under another name stays Created": {steps: []*v1alpha1.Step{withStatus(created, misnamed)}, observed: []olmcore.Object{applied(t, misnamed)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{created}, phase: complete},
		"a definition needs no account": {steps: []*v1alpha1.Step{crdStep("", "v1")}, change: bound, in: scope,
			actions: []string{status, "create CustomResourceDefinition things.example.com (StepAbsent)"}, statuses: []v1alpha1.StepStatus{notPresent}, phase: installing},
		"a version that became a copy": {steps: []*v1alpha1.Step{withStatus(present, csvStep("a.v1"))},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "there"} })},
			actions:  []string{status}, statuses: []v1alpha1.StepStatus{present}, message: "retrying execution due to error: a copy of ClusterServiceVersion a.v1 from namespace there exists here", phase: installing},
		"a copy, as its status says": {steps: []*v1alpha1.Step{csvStep("a.v1")},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })},
			actions:  []string{status}, statuses: []v1alpha1.StepStatus{unknown}, message: "retrying execution due to error: a copy of ClusterServiceVersion a.v1 from namespace  exists here", phase: installing},
		"a copy, as its annotation says": {steps: []*v1alpha1.Step{csvStep("a.v1")},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) {
				c.Annotations = map[string]string{"olm.operatorNamespace": "there"}
			})},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{unknown}, message: "retrying execution due to error: a copy of ClusterServiceVersion a.v1 from namespace there exists here", phase: installing},
		"no copy, as it says where it runs": {steps: []*v1alpha1.Step{csvStep("a.v1")},
			observed: []olmcore.Object{copiedFrom(func(c *v1alpha1.ClusterServiceVersion) {
				c.Annotations = map[string]string{"olm.operatorNamespace": ns}
			})},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{present}, phase: complete},
		"an optional step that was left out": {steps: []*v1alpha1.Step{optional(withStatus(v1alpha1.StepStatusNotCreated, thing("v1")))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{v1alpha1.StepStatusNotCreated}, phase: complete},
		"a step that was left out and is not optional": {steps: []*v1alpha1.Step{withStatus(v1alpha1.StepStatusNotCreated, thing("v1"))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{v1alpha1.StepStatusNotCreated}, message: "the InstallPlan contains invalid data", phase: failed},
		"an optional step that is refused for another reason": {steps: []*v1alpha1.Step{optional(step("", "", "v1", "Role", "x", `{}`))},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{unknown}, message: "error parsing step manifest: x: it has no metadata", phase: failed},
		"a namespace in the manifest of what has none": {steps: []*v1alpha1.Step{step("", rbac, "v1", "ClusterRole", "x", `{"metadata":{"name":"x","namespace":"there"}}`)},
			actions: []string{status, "create ClusterRole x (StepAbsent)"}, statuses: []v1alpha1.StepStatus{notPresent}, phase: installing},
		"a manifest of the same kind and another group": {steps: []*v1alpha1.Step{step("", rbac, "v1", "Role", "x", `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"x"}}`)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{unknown}, message: "error parsing step manifest: x: kind is Role.example.com", phase: failed},
		"a generic kind with the manifest of another": {steps: []*v1alpha1.Step{step("", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"}}`)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{unknown}, message: "error parsing step manifest: x: kind is NetworkPolicy.networking.k8s.io", phase: failed},
		"a version that the plan's definition does not have": {steps: []*v1alpha1.Step{crdStep("", "v1"), thing("v2")}, observed: []olmcore.Object{served},
			in:      func(in *installplan.Input) { in.Config.SupportedKinds = []string{"Thing"} },
			actions: []string{status}, statuses: []v1alpha1.StepStatus{present, unknown}, phase: installing,
			message: "retrying execution due to error: api-server resource not found installing Thing x: GroupVersionKind example.com/v2, Kind=Thing not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"a definition of the plan for the same kind of another group": {
			steps: []*v1alpha1.Step{crdStep("", "v1"), step("", "other.com", "v1", "Thing", "x", `{"apiVersion":"other.com/v1","kind":"Thing","metadata":{"name":"x"}}`)},
			in:    func(in *installplan.Input) { in.Config.SupportedKinds = []string{"Thing"} }, actions: []string{status}, statuses: []v1alpha1.StepStatus{unknown, unknown}, phase: installing,
			message: "retrying execution due to error: api-server resource not found installing Thing x: GroupVersionKind other.com/v1, Kind=Thing not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."},
		"the account default is the API server's": {steps: []*v1alpha1.Step{step("", "", "v1", "ServiceAccount", "default", `{"metadata":{"name":"default","labels":{"a":"b"}}}`)},
			observed: []olmcore.Object{&corev1.ServiceAccount{ObjectMeta: meta("default")}}, actions: []string{status}, statuses: []v1alpha1.StepStatus{present}, phase: complete},
		"the account default is waited for": {steps: []*v1alpha1.Step{step("", "", "v1", "ServiceAccount", "default", `{"metadata":{"name":"default"}}`)},
			actions: []string{status}, statuses: []v1alpha1.StepStatus{unknown}, message: "waiting for ServiceAccount default", phase: installing},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(installing, c.steps, started(time.Second))
			if c.change != nil {
				c.change(p)
			}
			in := input(p, with(c.observed...))
			if c.in != nil {
				c.in(&in)
			}
			r := reconcile(t, in)
			got := statusOf(in, r)
			require.Equal(t, c.actions, describe(r))
			require.Equal(t, c.statuses, statuses(got))
			require.Equal(t, c.message, got.Message)
			require.Equal(t, c.phase, got.Phase)
			for _, a := range r.Actions {
				if made, ok := a.(olmcore.Create); ok && made.Target.Kind == "ClusterRole" {
					require.Empty(t, made.Object.GetNamespace())
				}
			}
		})
	}
}

// TestWhoseDefinitionItIs: a newer version that needs a definition keeps it, when
// it is alive, its own, and when what the older one needs is there.
func TestWhoseDefinitionItIs(t *testing.T) {
	there := func(change func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
		return csv("a.v2", versioned("2.0.0", func(c *v1alpha1.ClusterServiceVersion) {
			c.Namespace = "there"
			change(c)
		}))
	}
	nothing := func(*v1alpha1.ClusterServiceVersion) {}
	unserved := crdObject("v1", "v2")
	unserved.Spec.Versions[0].Served = false
	for name, c := range map[string]struct {
		have  *apiextensionsv1.CustomResourceDefinition
		newer *v1alpha1.ClusterServiceVersion
		own   func(*v1alpha1.ClusterServiceVersion)
		kept  bool
	}{
		"a newer one":                          {crdObject("v1", "v2"), there(nothing), nothing, true},
		"what the older one needs is unserved": {unserved, there(nothing), nothing, false},
		"what the older one needs is missing":  {crdObject("v2"), there(nothing), nothing, false},
		"a newer one that goes":                {crdObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(0) }), nothing, false},
		"a newer one that is a copy":           {crdObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }), nothing, false},
		"a newer one that does not own it":     {crdObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Owned = nil }), nothing, false},
		"a newer one of another package":       {crdObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.Name = "b.v2" }), nothing, false},
		"one of the same version":              {crdObject("v1", "v2"), there(versioned("1.0.0")), nothing, false},
		"a newer one that it replaces":         {crdObject("v1", "v2"), csv("a.v2", versioned("2.0.0")), func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "a.v2" }, false},
		"a newer one in the same namespace":    {crdObject("v1", "v2"), csv("a.v2", versioned("2.0.0")), nothing, true},
	} {
		t.Run(name, func(t *testing.T) {
			have := installed(c.have, true)
			have.Annotations = recordedFor(c.newer.Namespace + "/" + c.newer.Name)
			in := input(plan(installing, []*v1alpha1.Step{crdStep("a.v1", "v1")}, started(time.Second)), with(csv("a.v1", versioned("1.0.0", c.own)), have, c.newer))
			kept := false
			for _, reason := range reasons(reconcile(t, in)) {
				kept = kept || reason == installplan.ReasonNewerCRDKept
			}
			require.Equal(t, c.kept, kept)
		})
	}
}

// TestADefinitionOfTwoVersionsOfAPlan: both are part of it, so none keeps it from
// the other.
func TestADefinitionOfTwoVersionsOfAPlan(t *testing.T) {
	have := installed(crdObject("v1"), true)
	have.Annotations = recordedFor("ops/a.v2")
	in := input(plan(installing, []*v1alpha1.Step{crdStep("a.v1", "v1"), crdStep("a.v2", "v1", "v2")}, started(time.Second)),
		with(csv("a.v1", versioned("1.0.0")), csv("a.v2", versioned("2.0.0")), have))
	r := reconcile(t, in)
	require.Empty(t, reasons(r))
	require.Len(t, r.Actions[0].(olmcore.Update).After.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions, 2)
}

// TestWhoConvertsADefinition: the webhook of a live version stays, whatever the
// manifest says.
func TestWhoConvertsADefinition(t *testing.T) {
	converts := func(change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
		return csv("b.v1", append([]func(*v1alpha1.ClusterServiceVersion){func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{"things.example.com"}}}
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		by    *v1alpha1.ClusterServiceVersion
		stays bool
	}{
		"a version of the namespace":                  {converts(), true},
		"a version of another one":                    {converts(func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }), true},
		"a version of another one that cannot answer": {converts(func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "evil" }), false},
		"a version that goes":                         {converts(func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(0) }), false},
		"a copy":                                      {converts(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }), false},
		"a version with another webhook": {converts(func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions[0].Type = v1alpha1.ValidatingAdmissionWebhook
		}), false},
		"a version that converts another definition": {converts(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions[0].ConversionCRDs = []string{"x"} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			have := installed(crdObject("v1"), true)
			convertedBy("there", "b")(have)
			got, _ := update(t, crdStep("a.v1", "v1", "v2"), have, c.by)
			require.Equal(t, c.stays, got.Spec.Conversion != nil)
		})
	}
}

// TestWhatAManifestRecordsAlongside: entries of versions that live are taken over,
// others dropped, and none of them counts as content.
func TestWhatAManifestRecordsAlongside(t *testing.T) {
	crd := crdObject("v1")
	crd.Annotations = recordedFor("there/b.v1", "there/gone.v1", "there/copy.v1")
	for key, value := range map[string]string{"a": "b.v1", "b": "/b.v1", "c": "there/", "d": "there/b.v1/x"} {
		crd.Annotations[alongside+key] = value
	}
	neighbour := csv("b.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" })
	aCopy := csv("copy.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Namespace, c.Labels = "there", map[string]string{"olm.copiedFrom": "x"}
	})
	s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, crd)
	want := recordedFor("there/b.v1", "ops/a.v1")

	made := applied(t, s, csv("a.v1"), neighbour, aCopy)
	entries := made.GetAnnotations()
	delete(entries, stepHash)
	require.Equal(t, want, entries)

	got, _ := update(t, s, installed(crdObject("v0", "v1"), true), neighbour, aCopy)
	require.Equal(t, want, got.Annotations)

	later := applied(t, s, csv("a.v1")) // the neighbour is gone by now
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), neighbour, later))
	require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase, "what is recorded is no content")
}

// TestWhenADefinitionMustBeServed: the time counts from whatever happened last.
func TestWhenADefinitionMustBeServed(t *testing.T) {
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, message string, since time.Duration) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Message: message, LastTransitionTime: *ago(since)}
	}
	const text = "waiting for CustomResourceDefinition things.example.com to be established"
	for name, c := range map[string]struct {
		started, created time.Duration
		conditions       []apiextensionsv1.CustomResourceDefinitionCondition
		left             time.Duration
		message          string
	}{
		"from the start of the plan": {59 * time.Second, time.Hour, nil, time.Second, text},
		"from its creation":          {time.Hour, 58 * time.Second, nil, 2 * time.Second, text},
		"from its last condition": {time.Hour, time.Hour, []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue, "no conflicts", 57*time.Second)}, 3 * time.Second, text},
		"not from a condition about something else": {59 * time.Second, time.Hour, []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NonStructuralSchema, apiextensionsv1.ConditionTrue, "x", 0)}, time.Second, text},
	} {
		t.Run(name, func(t *testing.T) {
			s := withStatus(waitingAPI, crdStep("a.v1", "v1"))
			have := applied(t, s, csv("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
			have.CreationTimestamp, have.Status.Conditions = *ago(c.created), c.conditions
			in := input(plan(installing, []*v1alpha1.Step{s}, started(c.started)), with(csv("a.v1"), have))
			r := reconcile(t, in)
			require.Equal(t, c.message, statusOf(in, r).Message)
			require.Equal(t, min(c.left, 5*time.Second), r.RequeueAfter)

			in.InstallPlan.Status.Phase, in.InstallPlan.Spec.Approval, in.InstallPlan.Spec.Approved = requiresApproval, v1alpha1.ApprovalManual, false
			in.Now = noon.Add(time.Hour)
			require.Empty(t, reconcile(t, in).Diagnostics, "nobody waits for it before the approval")
		})
	}
}

// TestSeveralLostVersionsAreNamedInOrder.
func TestSeveralLostVersionsAreNamedInOrder(t *testing.T) {
	have := installed(crdObject("v0", "v1", "v2"), true)
	have.Status.StoredVersions = []string{"v2", "v1", "v0"}
	in := input(plan(installing, []*v1alpha1.Step{crdStep("", "v1")}, started(time.Second)), with(have))
	require.Equal(t, `retrying execution due to error: risk of data loss updating "things.example.com": `+
		`new CRD removes version v0, v2 that is listed as a stored version on the existing CRD`, statusOf(in, reconcile(t, in)).Message)
}

// TestFailedPlans: which of them start again, and which say anything.
func TestFailedPlans(t *testing.T) {
	binding := step("", "rbac.authorization.k8s.io", "v1", "RoleBinding", "x", `{"metadata":{"name":"x"},"roleRef":{"kind":"Role","name":"new"}}`)
	waits := crdStep("a.v1", "v1")
	down := applied(t, waits, csv("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
	down.Status.Conditions = nil
	for name, c := range map[string]struct {
		step     *v1alpha1.Step
		observed []olmcore.Object
		message  string
		sub      *v1alpha1.Subscription
		want     installplan.State
	}{
		"what stood in the way is gone": {binding, nil, "RoleBinding x exists and its roleRef is immutable", subscription("a", refersTo("install-x")), installplan.StateRetried},
		"nobody refers to it by its UID": {binding, nil, "RoleBinding x exists and its roleRef is immutable", subscription("a", func(s *v1alpha1.Subscription) {
			s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: ns, Name: "install-x"}
		}), installplan.StateFailed},
		"an error of the API server":       {binding, nil, "error creating rolebinding x: it is immutable", subscription("a", refersTo("install-x")), installplan.StateFailed},
		"a definition is still not served": {waits, []olmcore.Object{csv("a.v1"), down}, "waiting for CustomResourceDefinition things.example.com to be established", subscription("a", refersTo("install-x")), installplan.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(failed, []*v1alpha1.Step{c.step}, ownedBy(c.sub), started(time.Hour), func(p *v1alpha1.InstallPlan) { p.Status.Message = c.message })
			require.Equal(t, c.want, assess(t, input(p, with(c.observed...), with(c.sub))).State)
		})
	}
	empty := input(plan(failed, nil))
	same(t, olmcore.Result{}, reconcile(t, empty))
	require.Equal(t, installplan.StateFailed, assess(t, empty).State)
}

// TestMessagesGoWithTheirPhase: what an earlier phase said is not said by the next.
func TestMessagesGoWithTheirPhase(t *testing.T) {
	leftover := func(p *v1alpha1.InstallPlan) { p.Status.Message, p.Spec.Approval = "leftover", v1alpha1.ApprovalManual }
	approved := input(plan(requiresApproval, []*v1alpha1.Step{roleStep("", "r")}, leftover))
	withdrawn := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, leftover, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = false }))
	for in, phase := range map[*installplan.Input]v1alpha1.InstallPlanPhase{&approved: installing, &withdrawn: requiresApproval} {
		got := statusOf(*in, reconcile(t, *in))
		require.Equal(t, phase, got.Phase)
		require.Empty(t, got.Message)
	}
}

// TestErrorsThatDoNotCount: of what is done by now, and of what is refused anyway.
func TestErrorsThatDoNotCount(t *testing.T) {
	s := roleStep("a.v1", "r")
	made := applied(t, s, csv("a.v1"))
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Hour)), with(csv("a.v1"), made))
	in.LastRun = olmcore.LastResults{olmcore.KeyOf(made): {Class: olmcore.Invalid, Message: "no", Count: 1}}
	require.Equal(t, complete, statusOf(in, reconcile(t, in)).Phase, "it is there")

	in = input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)))
	in.LastRun = olmcore.LastResults{olmcore.KeyOf(made): {Class: olmcore.Invalid, Message: "no", Count: 1}}
	require.Equal(t, []string{installplan.ReasonStepRefused}, reasons(reconcile(t, in)), "its owner is nowhere")
}

// TestConditionsKeepTheirTimes: the time of the transition is that of the status.
func TestConditionsKeepTheirTimes(t *testing.T) {
	old := condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, "another text")
	old.LastTransitionTime, old.LastUpdateTime = ago(time.Hour), ago(time.Hour)
	foreign := v1alpha1.InstallPlanCondition{Type: v1alpha1.InstallPlanResolved, Reason: v1alpha1.InstallPlanReasonInstallCheckFailed, Status: corev1.ConditionTrue}
	in := input(plan(installing, []*v1alpha1.Step{roleStep("", "r")}, func(p *v1alpha1.InstallPlan) {
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{foreign, old}
	}))
	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	want := condition(corev1.ConditionFalse, v1alpha1.InstallPlanReasonInstallCheckFailed, "no operator group found that is managing this namespace")
	want.LastTransitionTime = old.LastTransitionTime
	same(t, []v1alpha1.InstallPlanCondition{foreign, want}, statusOf(in, reconcile(t, in)).Conditions)

	in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](group())
	same(t, []v1alpha1.InstallPlanCondition{foreign}, statusOf(in, reconcile(t, in)).Conditions)
}

// TestAFinishedPlanOfANamespaceThatGoes is let go even where a mark is left.
func TestAFinishedPlanOfANamespaceThatGoes(t *testing.T) {
	marked := subscription("g", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	})
	for name, namespace := range map[string]*corev1.Namespace{
		"by its phase": {ObjectMeta: metav1.ObjectMeta{Name: ns}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
		"by its time":  {ObjectMeta: metav1.ObjectMeta{Name: ns, DeletionTimestamp: ago(0)}},
	} {
		p := plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(marked), func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} })
		in := input(p, with(marked))
		in.Namespace = olmcore.Found(namespace)
		r := reconcile(t, in)
		require.Len(t, r.Actions, 1, name)
		require.Empty(t, r.Actions[0].(olmcore.Update).After.GetFinalizers(), name)
	}
}

// TestALookupThatFailedWithoutAWord.
func TestALookupThatFailedWithoutAWord(t *testing.T) {
	in := input(plan(installing, nil, started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{{Path: "img", Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue}}}}
	}))
	require.Equal(t, "retrying execution due to error: bundle img cannot be unpacked", statusOf(in, reconcile(t, in)).Message)
}

// TestAGoingVersionGetsNoClusterWideObjects: its clean-up would be fought.
func TestAGoingVersionGetsNoClusterWideObjects(t *testing.T) {
	s := step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"}}`)
	going := csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(0) })
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(going))
	r := reconcile(t, in)
	require.Equal(t, []string{status}, describe(r))
	require.Equal(t, "waiting for ClusterServiceVersion a.v1 to finish deleting", statusOf(in, r).Message)
}
