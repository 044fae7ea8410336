// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestErrorsAreWordedAsOLMDoes: for each kind, what the plan says of a Create and
// of an Update that the API server refused. The kind of error is kept in all of
// them.
//
// OLM's case: a refused write of an account is an error.
func TestErrorsAreWordedAsOLMDoes(t *testing.T) {
	plain := func(group, kind string) *v1alpha1.Step {
		return step("", group, "v1", kind, "x", `{"metadata":{"name":"x","labels":{"ours":"new"}},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"}}`)
	}
	roleRef := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "x"}
	pdb := step("", "policy", "v1", "PodDisruptionBudget", "x", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"}}`)
	const rbac = "rbac.authorization.k8s.io"
	for name, c := range map[string]struct {
		step           *v1alpha1.Step
		observed       olmcore.Object
		create, update string
	}{
		"version":        {step: csvStep("x"), create: "error creating csv x: no"},
		"Subscription":   {step: plain("operators.coreos.com", "Subscription"), create: "error creating subscription x: no"},
		"pull Secret":    {step: plain("", "Secret"), create: "error creating secret x - no"},
		"Secret":         {step: plain("", "BundleSecret"), observed: &corev1.Secret{ObjectMeta: meta("x")}, create: "error updating secret: x: no", update: "error updating secret: x: no"},
		"ServiceAccount": {step: plain("", "ServiceAccount"), observed: &corev1.ServiceAccount{ObjectMeta: meta("x")}, create: "error creating service account: x: no", update: "error updating service account: x: no"},
		"Service":        {step: plain("", "Service"), observed: &corev1.Service{ObjectMeta: meta("x")}, create: "error updating service: x: no", update: "error updating service: x: no"},
		"ConfigMap":      {step: plain("", "ConfigMap"), observed: &corev1.ConfigMap{ObjectMeta: meta("x")}, create: "error updating configmap: x: no", update: "error updating configmap: x: no"},
		"Role":           {step: plain(rbac, "Role"), observed: &rbacv1.Role{ObjectMeta: meta("x")}, create: "error creating role x: no", update: "error updating role x: no"},
		"RoleBinding":    {step: plain(rbac, "RoleBinding"), observed: &rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: roleRef}, create: "error creating rolebinding x: no", update: "error updating rolebinding x: no"},
		"ClusterRole":    {step: plain(rbac, "ClusterRole"), observed: &rbacv1.ClusterRole{ObjectMeta: clusterMeta("x")}, create: "error creating clusterrole x: no", update: "error updating clusterrole x: no"},
		"ClusterRoleBinding": {step: plain(rbac, "ClusterRoleBinding"), observed: &rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta("x"), RoleRef: roleRef},
			create: "error creating clusterrolebinding x: no", update: "error updating clusterrolebinding x: no"},
		"generic": {step: pdb, observed: &policyv1.PodDisruptionBudget{ObjectMeta: meta("x"), Spec: policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)}},
			create: "error creating unstructured object x: no", update: "error updating unstructured object x: no"},
		"definition": {step: crdStep("", "v1"), observed: installed(other(crdObject("v1"), 0), true), create: "no", update: `error updating CRD "things.example.com": no`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.observed != nil {
				c.observed.SetLabels(map[string]string{"olm.managed": "true"})
			}
			said := func(class olmcore.ErrorClass, objects ...olmcore.Object) v1alpha1.InstallPlanStatus {
				if name == "pull Secret" {
					pull := &corev1.Secret{ObjectMeta: inOLM("x"), Type: corev1.SecretTypeDockerConfigJson}
					objects = nil
					in := input(plan(installing, []*v1alpha1.Step{c.step}, started(time.Minute)), func(in *installplan.Input) {
						in.PullSecrets, in.CatalogSources = olmcore.Found[*corev1.Secret](pull), olmcore.Found[*v1alpha1.CatalogSource](pullCatalog("x"))
					})
					in.LastRun = outcomes(t, in, class)
					return statusOf(in, reconcile(t, in))
				}
				in := input(plan(installing, []*v1alpha1.Step{c.step}, started(time.Minute)), with(objects...))
				in.LastRun = outcomes(t, in, class)
				return statusOf(in, reconcile(t, in))
			}
			require.Equal(t, "retrying execution due to error: "+c.create, said(olmcore.Forbidden).Message)
			require.Equal(t, c.create, said(olmcore.Invalid).Message)
			require.Equal(t, failed, said(olmcore.Gone).Phase, "what is not there fails it as what is not valid does")
			if c.observed != nil {
				require.Equal(t, "retrying execution due to error: "+c.update, said(olmcore.Transient, c.observed).Message)
				require.Equal(t, failed, said(olmcore.Invalid, c.observed).Phase)
			}
		})
	}
}

// outcomes are those of a run in which every write of a step was answered with
// an error.
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

// TestWhatIsSaidBesides: what a round finds worth saying that stops nothing.
func TestWhatIsSaidBesides(t *testing.T) {
	asked := func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }
	sub := subscription("a", refersTo("install-x"))
	differs := csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.DisplayName = "Other" })
	for reason, c := range map[string]struct {
		in   installplan.Input
		want string
		path string
	}{
		installplan.ReasonPendingPlanCouldBeAutomatic: {input(plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, asked, ownedBy(sub)), with(sub)),
			"no Subscription that owns the plan wants manual approval any more", "spec.approval"},
		installplan.ReasonApprovalWithdrawnTooLate: {input(plan(installing, []*v1alpha1.Step{withStatus(notPresent, csvStep("a.v1"))}, asked, started(time.Second))),
			"steps of the plan were applied already", "spec.approved"},
		installplan.ReasonCSVContentDiffers: {input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, started(time.Second)), with(differs)),
			"ClusterServiceVersion a.v1 exists with another spec", "status.plan[0]"},
		installplan.ReasonStepNotVisible: {input(plan(installing, []*v1alpha1.Step{withStatus(notPresent, csvStep("a.v1"))}, started(time.Hour)), func(in *installplan.Input) {
			in.LastRun = olmcore.LastResults{{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: ns, Name: "a.v1"}: {Count: 1}}
		}), "ClusterServiceVersion ops/a.v1 was created and is not visible", "status.plan[0]"},
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

// TestADependantBeforeItsVersion: a plan that lists an object before the version
// which owns it installs both.
func TestADependantBeforeItsVersion(t *testing.T) {
	steps := []*v1alpha1.Step{roleStep("a.v1", "r"), step("a.v1", "", "v1", "ServiceAccount", "s", `{"metadata":{"name":"s"}}`), csvStep("a.v1")}
	in := input(plan(installing, steps, started(time.Second)))
	require.Equal(t, []string{status, "create ClusterServiceVersion ops/a.v1 (StepAbsent)"}, describe(reconcile(t, in)))
	in = input(in.InstallPlan, with(csv("a.v1")))
	require.Equal(t, []string{status, "create Role ops/r (StepAbsent)", "create ServiceAccount ops/s (StepAbsent)"}, describe(reconcile(t, in)))
}

// TestADependantOfAVersionThatGoes is not made: it would go with it.
func TestADependantOfAVersionThatGoes(t *testing.T) {
	in := input(plan(installing, []*v1alpha1.Step{roleStep("a.v1", "r"), step("a.v1", "rbac.authorization.k8s.io", "v1", "ClusterRole", "c", `{"metadata":{"name":"c"}}`)}, started(time.Second)),
		with(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(time.Second) })))
	r := reconcile(t, in)
	require.Equal(t, []string{status}, describe(r))
	require.Equal(t, "waiting for ClusterServiceVersion a.v1", statusOf(in, r).Message)
}

// TestClocks: one that was moved back gives no extra time beyond the start, and a
// start that somebody set to long ago means that the first error counts.
func TestClocks(t *testing.T) {
	in := input(plan(installing, []*v1alpha1.Step{roleStep("gone.v1", "r")}, started(-time.Hour)))
	r := reconcile(t, in)
	require.Equal(t, installing, statusOf(in, r).Phase)
	require.Equal(t, 5*time.Second, r.RequeueAfter)

	in = input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, started(1e6*time.Hour)))
	require.Equal(t, installing, statusOf(in, reconcile(t, in)).Phase)
	in.LastRun = outcomes(t, in, olmcore.Invalid)
	require.Equal(t, failed, statusOf(in, reconcile(t, in)).Phase)
}

// TestListsOfAPlanAreWrittenEmptyAndNotNull, as the API wants them.
func TestListsOfAPlanAreWrittenEmptyAndNotNull(t *testing.T) {
	null := plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.Spec.ClusterServiceVersionNames, p.Status.CatalogSources = nil, nil
	})
	after := reconcile(t, input(null, with(subscription("a", refersTo("install-x"))))).Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
	require.NotNil(t, after.Spec.ClusterServiceVersionNames)
	in := input(null)
	require.NotNil(t, statusOf(in, reconcile(t, in)).CatalogSources)
}
