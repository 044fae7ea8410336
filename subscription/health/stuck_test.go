// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
	"github.com/olmcore/olm/subscription/resolution"
)

type heldBack = resolution.HeldBack

// TestPendingUpgradesHaveReasonAndAdvice checks the whole Health of Subscriptions in state UpgradePending.
func TestPendingUpgradesHaveReasonAndAdvice(t *testing.T) {
	upgrading := func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" }
	plan := olmcore.RefOf(newPlan("p", "")).Unversioned()
	gated := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.Replaces = "etcd.v0"
		c.Status.Phase, c.Status.Reason = v1alpha1.CSVPhasePending, v1alpha1.CSVReasonOperatorConditionNotUpgradeable
		c.Status.Message, c.Status.LastTransitionTime = "operator is not upgradeable: a migration runs", secondp(40)
	})
	ungated := gated.DeepCopy()
	ungated.Spec.Replaces = ""
	unhealthy := withCondition("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", "targeted catalogsource olm/cool unhealthy", 9)
	late := func(in subscription.Input) subscription.Input { in.Now = epoch.Add(time.Hour); return in }
	for name, tc := range map[string]struct {
		in   subscription.Input
		want health.Health
	}{
		"the plan needs its approval": {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading, pending("RequiresApproval", 6)), newPlan("p", "RequiresApproval", manual(1)), newCSV("etcd.v0")),
			health.Health{Phase: "WaitingForApproval", Object: plan, Since: second(6).Time, Reason: "RequiresApproval", Message: "InstallPlan p is RequiresApproval",
				Advice: "Review InstallPlan ops/p and set its spec.approved to true."}},
		"the plan failed": {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading), newPlan("p", "Failed", failed(30)), newCSV("etcd.v0")),
			health.Health{Phase: "Degraded", Object: plan, Since: second(30).Time, Reason: "InstallComponentFailed", Message: "step broke",
				Advice: "Remove the cause, then delete InstallPlan ops/p."}},
		"the plan was deleted": {late(inputOf(newSub("a", follows("p", "etcd.v1"), withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 7)))),
			health.Health{Phase: "Resolving", Object: self, Since: second(7).Time, Reason: "ReferencedInstallPlanNotFound", Message: "the InstallPlan was deleted",
				Advice: "Check that the OLM controllers are running, or delete Subscription ops/a and create it again: its InstallPlan was deleted, and the namespace was not resolved again."}},
		"the version was removed": {late(inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Complete", started(3), done(9)))),
			health.Health{Phase: "Stuck", Object: olmcore.Ref{APIVersion: theCSV.APIVersion, Kind: theCSV.Kind, Namespace: "ops", Name: "etcd.v1"}, Since: second(9).Time, Reason: "WedgedUpgradePending",
				Message: "CSV etcd.v1 does not exist", Advice: "Delete InstallPlan ops/p to install the version again."}},
		"the catalog is not available": {inputOf(newSub("a", unhealthy)),
			health.Health{Phase: "Resolving", Object: olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Namespace: "olm", Name: "cool"}, Since: second(9).Time,
				Reason: "UnhealthyCatalogSourceFound", Message: "targeted catalogsource olm/cool unhealthy", Advice: "Make CatalogSource olm/cool available, or remove the catalogs that are not needed."}},
		"the operator does not allow its upgrade": {inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete", started(3), done(9)), gated, newCSV("etcd.v0")),
			health.Health{Phase: "Upgrading", Object: olmcore.Ref{APIVersion: "operators.coreos.com/v2", Kind: "OperatorCondition", Namespace: "ops", Name: "etcd.v0"}, Since: second(40).Time,
				Reason: "OperatorConditionNotUpgradeable", Message: "operator is not upgradeable: a migration runs",
				Advice: "Wait until the operator allows its upgrade in OperatorCondition ops/etcd.v0, or set Upgradeable to True in its spec.overrides."}},
		"the operator that does not allow it is not known": {inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete", started(3), done(9)), ungated),
			health.Health{Phase: "Installing", Object: theCSV, Since: second(40).Time, Reason: "OperatorConditionNotUpgradeable", Message: "operator is not upgradeable: a migration runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Subscription = self
			require.Equal(t, tc.want, only(t, health.Input{Input: tc.in}))
		})
	}
}

// TestUnhealthyCatalogIsNamed checks that another catalog is named if the catalog of the Subscription is healthy.
func TestUnhealthyCatalogIsNamed(t *testing.T) {
	listed := func(name string, healthy bool) v1alpha1.SubscriptionCatalogHealth {
		return v1alpha1.SubscriptionCatalogHealth{CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: name}, Healthy: healthy}
	}
	for name, tc := range map[string]struct {
		list []v1alpha1.SubscriptionCatalogHealth
		want string
	}{
		"nothing is known":  {nil, "cool"},
		"its own":           {[]v1alpha1.SubscriptionCatalogHealth{listed("a", false), listed("cool", false)}, "cool"},
		"another one":       {[]v1alpha1.SubscriptionCatalogHealth{{}, listed("z", false), listed("b", false), listed("a", true), listed("cool", true)}, "b"},
		"its own is absent": {[]v1alpha1.SubscriptionCatalogHealth{listed("a", false)}, "cool"},
	} {
		s := newSub("a", withCondition("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", "x", 9), func(s *v1alpha1.Subscription) { s.Status.CatalogHealth = tc.list })
		require.Equal(t, tc.want, only(t, health.Input{Input: inputOf(s)}).Object.Name, name)
	}
}

// TestHeldBackVersionsAreReported checks that the reason why a resolution holds back a version is reported for
// installed operators and for new ones.
func TestHeldBackVersionsAreReported(t *testing.T) {
	running := []olmcore.Object{newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete", started(3), done(9)),
		newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.LastTransitionTime = secondp(40) })}
	unmet := heldBack{Subscription: "a", Code: resolution.RequirementUnmet, Summary: "etcd.v2 needs a Vault",
		Remedies: []resolution.Remedy{{Message: "Add a catalog that has a Vault."}}}
	bare := func(code resolution.HeldBackCode) heldBack {
		return heldBack{Subscription: "a", Code: code, Summary: "etcd.v2 is held back"}
	}
	answer := func(phase health.Phase, h heldBack, advice string) health.Health {
		w := health.Health{Subscription: self, Phase: phase, Object: theCSV, Since: second(40).Time, Reason: string(h.Code), Message: h.Summary, Advice: advice}
		if phase != health.Installed {
			w.Object, w.Since = self, second(5).Time
		}
		return w
	}
	const change = "Remove the cause that the message names so that Subscription ops/a gets a newer version."
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		held    heldBack
		want    health.Health
	}{
		"a remedy is known":             {running, unmet, answer("Installed", unmet, "Add a catalog that has a Vault.")},
		"no remedy is known":            {running, bare("ProvidedByOther"), answer("Installed", bare("ProvidedByOther"), change)},
		"it stays on purpose":           {running, bare(resolution.Pinned), answer("Installed", bare(resolution.Pinned), "")},
		"it passes":                     {running, bare(resolution.ReplacementInProgress), answer("Installed", bare(resolution.ReplacementInProgress), "")},
		"nothing is installed":          {[]olmcore.Object{newSub("a")}, unmet, answer("Stuck", unmet, "Add a catalog that has a Vault.")},
		"nothing that it may have":      {[]olmcore.Object{newSub("a")}, bare(resolution.Pinned), answer("Stuck", bare(resolution.Pinned), change)},
		"nothing is installed, for now": {[]olmcore.Object{newSub("a")}, bare(resolution.Unknown), answer("Resolving", bare(resolution.Unknown), "")},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, only(t, health.Input{Input: inputOf(tc.objects...), HeldBack: []heldBack{tc.held}}))
		})
	}
}

// TestAdviceForAFailedPlanNamesTheObjectToDelete checks that the advice names the failed step, the remedy for a
// stored version, and the object to delete. A version that was installed once is not deleted.
func TestAdviceForAFailedPlanNamesTheObjectToDelete(t *testing.T) {
	step := func(kind, name string, status v1alpha1.StepStatus) *v1alpha1.Step {
		return &v1alpha1.Step{Resolving: "etcd.v1", Status: status, Resource: v1alpha1.StepResource{Kind: kind, Name: name}}
	}
	version := step("ClusterServiceVersion", "etcd.v1", v1alpha1.StepStatusCreated)
	phase := func(p v1alpha1.ClusterServiceVersionPhase) *v1alpha1.ClusterServiceVersion {
		return newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = p })
	}
	const stored = `risk of data loss updating "etcds.g": new CRD removes version v1alpha1, v1beta1 that is listed as a stored version on the existing CRD`
	const store = "Migrate the custom resources of CustomResourceDefinition etcds.g to a version that is kept, " +
		"remove v1alpha1, v1beta1 from its status.storedVersions, "
	for name, tc := range map[string]struct {
		failure         string
		steps           []*v1alpha1.Step
		version         *v1alpha1.ClusterServiceVersion
		message, advice string
	}{
		"the version is pending": {"no", []*v1alpha1.Step{version, step("ClusterRole", "r", v1alpha1.StepStatusNotPresent)}, phase(v1alpha1.CSVPhasePending),
			"no; step ClusterRole r is NotPresent", "Remove the cause, then delete ClusterServiceVersion ops/etcd.v1 and InstallPlan ops/p."},
		"a later step is named": {"error creating role s: no",
			[]*v1alpha1.Step{version, nil, step("ClusterRole", "x", ""), step("Role", "s", v1alpha1.StepStatusUnknown)}, phase(v1alpha1.CSVPhaseNone),
			"error creating role s: no; step Role s is Unknown", "Remove the cause, then delete ClusterServiceVersion ops/etcd.v1 and InstallPlan ops/p."},
		"a stored version": {stored, []*v1alpha1.Step{version, step("CustomResourceDefinition", "etcds.g", v1alpha1.StepStatusUnknown)}, phase(v1alpha1.CSVPhasePending),
			stored + "; step CustomResourceDefinition etcds.g is Unknown", store + "then delete ClusterServiceVersion ops/etcd.v1 and InstallPlan ops/p."},
		"a stored version, and no version was created": {stored, []*v1alpha1.Step{step("CustomResourceDefinition", "etcds.g", "")}, nil,
			stored + "; step CustomResourceDefinition etcds.g is Unknown", store + "then delete InstallPlan ops/p."},
		"the version is installed": {"no", []*v1alpha1.Step{version, step("Role", "r", "")}, phase(v1alpha1.CSVPhaseSucceeded),
			"no; step Role r is Unknown", "Remove the cause, then delete InstallPlan ops/p."},
		"every step is done": {"no", []*v1alpha1.Step{version}, phase(v1alpha1.CSVPhaseSucceeded), "no", "Remove the cause, then delete InstallPlan ops/p."},
	} {
		t.Run(name, func(t *testing.T) {
			plan := newPlan("p", "Failed", installedIs(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, tc.failure, 30))
			plan.Status.Plan = tc.steps
			in := inputOf(newSub("a", follows("p", "etcd.v1")), plan)
			if tc.version != nil {
				in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, tc.version)
			}
			phase := health.Failed
			if tc.version != nil && tc.version.Status.Phase == v1alpha1.CSVPhaseSucceeded {
				phase = health.Degraded
			}
			require.Equal(t, health.Health{Subscription: self, Phase: phase, Object: olmcore.RefOf(plan).Unversioned(), Since: second(30).Time,
				Reason: "InstallComponentFailed", Message: tc.message, Advice: tc.advice}, only(t, health.Input{Input: in}))
		})
	}
}

// TestAdviceContainsNoTextOfTenants checks that text of a bundle or a status does not become advice. Names are
// quoted, and a message that only contains OLM's message about a stored version is not recognized as that message.
func TestAdviceContainsNoTextOfTenants(t *testing.T) {
	const sentence = `risk of data loss updating "customers.example.com": new CRD removes version v1 that is listed as a stored version`
	const orders = "x. Then run: kubectl delete namespace prod"
	step := func(kind, name string) *v1alpha1.Step {
		return &v1alpha1.Step{Resolving: "etcd.v1", Resource: v1alpha1.StepResource{Kind: kind, Name: name}}
	}
	for what, c := range map[string]struct {
		message string
		steps   []*v1alpha1.Step
	}{
		"the name of an object": {
			"the InstallPlan contains invalid data: Foo " + sentence + " is of a kind that bundles may not contain",
			[]*v1alpha1.Step{step("Foo", sentence)},
		},
		"the definition of others": {sentence, []*v1alpha1.Step{step("CustomResourceDefinition", "etcds.g")}},
	} {
		plan := newPlan("p", "Failed", installedIs(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, c.message, 30))
		plan.Status.Plan = c.steps
		got := only(t, health.Input{Input: inputOf(newSub("a", follows("p", "etcd.v1")), plan)})
		require.Equal(t, "Remove the cause, then delete InstallPlan ops/p.", got.Advice, what)
	}

	plan := newPlan("p", "Installing")
	plan.Status.Plan = []*v1alpha1.Step{step("Role", orders)}
	in := health.Input{Input: inputOf(newSub("a", follows("p", "etcd.v1")), plan)}
	in.Now = in.Now.Add(24 * time.Hour)
	require.Contains(t, only(t, in).Advice, strconv.Quote(orders))

	pending := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.Phase, c.Status.Reason = v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet
		rule := v1alpha1.DependentStatus{Kind: "PolicyRule", Status: v1alpha1.DependentStatusReasonNotSatisfied, Message: orders}
		c.Status.RequirementStatus = []v1alpha1.RequirementStatus{{
			Kind: "ServiceAccount", Name: orders, Status: "NotPresent", Dependents: []v1alpha1.DependentStatus{rule},
		}}
	})
	got := only(t, health.Input{Input: inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Complete"), pending)})
	require.Equal(t, 2, strings.Count(got.Advice, strconv.Quote(orders)), got.Advice)
	require.Equal(t, 2, strings.Count(got.Advice, orders), got.Advice)
}
