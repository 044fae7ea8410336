// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
	"github.com/olmcore/olm/subscription/health"
)

// TestPhaseOfASubscription checks the whole Health of a Subscription for its InstallPlan and its CSV.
func TestPhaseOfASubscription(t *testing.T) {
	inPhase := func(phase v1alpha1.ClusterServiceVersionPhase) func(*v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) {
			c.Status.Phase, c.Status.LastTransitionTime, c.Status.Message = phase, secondp(40), "because"
		}
	}
	once := func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.Conditions = []v1alpha1.ClusterServiceVersionCondition{{Phase: v1alpha1.CSVPhaseSucceeded}, {Phase: v1alpha1.CSVPhaseFailed}}
	}
	looking := func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{lookup(v1alpha1.BundleLookupPending, "", "unpacking")}
	}
	later := func(in subscription.Input) subscription.Input {
		in.Now = epoch.Add(10 * time.Minute)
		return in
	}
	upgrading := func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v0" }
	replacing := func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "etcd.v0" }
	waiting, latest := newSub("a", follows("p", "etcd.v1")), newSub("a", follows("p", "etcd.v1"), installed)
	unsolvable := withCondition(v1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable", "constraints not satisfiable: x", 7)
	complete := newPlan("p", "Complete", started(3), done(9))
	for name, tc := range map[string]struct {
		in       subscription.Input
		phase    health.Phase
		blocking string // kind name
		since    int
		reason   string
		advice   string // a word of it
	}{
		"nothing is known yet":             {inputOf(newSub("a")), "Resolving", "Subscription a", 5, "", ""},
		"the namespace cannot be resolved": {inputOf(newSub("a", unsolvable)), "Failed", "Namespace ops", 7, "ConstraintsNotSatisfiable", "Change"},
		"it cannot be resolved, but the old version runs": {inputOf(newSub("a", follows("p", "etcd.v1"), installed, unsolvable), complete, newCSV("etcd.v1")),
			"Degraded", "Namespace ops", 7, "ConstraintsNotSatisfiable", "Change"},
		"bundles are being unpacked": {inputOf(newSub("a", withCondition("BundleUnpacking", "UnpackingInProgress", "", 8))),
			"Unpacking", "Subscription a", 8, "UnpackingInProgress", ""},
		"a bundle cannot be unpacked": {inputOf(newSub("a", withCondition("BundleUnpackFailed", "BundleUnpackFailed", "x", 8))),
			"Failed", "Subscription a", 8, "BundleUnpackFailed", "image"},
		"a bundle is not valid": {inputOf(newSub("a", withCondition("BundleUnpackFailed", "ErrorPreventedUnpacking", "x", 8))),
			"Failed", "Subscription a", 8, "ErrorPreventedUnpacking", "Correct the bundle"},
		"the plan would be too large": {inputOf(newSub("a", withCondition("BundleUnpackFailed", "PlanTooLarge", "x", 8))),
			"Failed", "Subscription a", 8, "PlanTooLarge", "Reduce"},
		"the plan cannot be written": {inputOf(newSub("a", withCondition("BundleUnpackFailed", "EnsureInstallPlanFailed", "x", 8))),
			"Failed", "Subscription a", 8, "EnsureInstallPlanFailed", "Remove the cause that the message names"},
		"the plan has no phase yet":                               {inputOf(waiting, newPlan("p", "")), "Installing", "InstallPlan p", 2, "NotYetReconciled", ""},
		"the plan unpacks bundles":                                {inputOf(waiting, newPlan("p", "Installing", looking)), "Unpacking", "InstallPlan p", 2, "Installing", ""},
		"the plan waits for approval":                             {inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), newPlan("p", "RequiresApproval", manual(1))), "WaitingForApproval", "InstallPlan p", 6, "RequiresApproval", "approved"},
		"the plan is being deleted":                               {inputOf(waiting, newPlan("p", "Installing", started(4), func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(50) })), "Resolving", "InstallPlan p", 50, "Installing", ""},
		"the plan has its steps and waits for its phase":          {later(inputOf(waiting, newPlan("p", ""))), "Installing", "InstallPlan p", 2, "NotYetReconciled", ""},
		"the plan has no steps":                                   {later(inputOf(waiting, newPlan("p", "", empty))), "Stuck", "InstallPlan p", 2, "NotYetReconciled", "Delete"},
		"the plan runs":                                           {inputOf(waiting, newPlan("p", "Installing", started(4))), "Installing", "InstallPlan p", 4, "Installing", ""},
		"the plan runs for an upgrade":                            {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading), newPlan("p", "Installing", started(4)), newCSV("etcd.v0")), "Upgrading", "InstallPlan p", 4, "Installing", ""},
		"the plan failed":                                         {inputOf(waiting, newPlan("p", "Failed", failed(30))), "Failed", "InstallPlan p", 30, "InstallComponentFailed", "delete"},
		"the plan of an upgrade failed":                           {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading), newPlan("p", "Failed", failed(30)), newCSV("etcd.v0")), "Degraded", "InstallPlan p", 30, "InstallComponentFailed", "delete"},
		"the plan of an upgrade failed, and the old version, too": {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading), newPlan("p", "Failed", failed(30)), newCSV("etcd.v0", inPhase("Failed"))), "Failed", "InstallPlan p", 30, "InstallComponentFailed", "delete"},
		"unsolvable, and the old version does not run":            {inputOf(newSub("a", follows("p", "etcd.v1"), installed, unsolvable), complete, newCSV("etcd.v1", inPhase("Failed"))), "Failed", "ClusterServiceVersion etcd.v1", 40, "", "Check"},
		"the plan's phase is unknown":                             {inputOf(waiting, newPlan("p", "Melting")), "Stuck", "InstallPlan p", 2, "UnknownPhase", "Correct"},
		"the plan is out of sight":                                {inputOf(newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(58) })), "Installing", "InstallPlan p", 58, "Unverified", ""},
		"the plan of a running operator is out of sight": {inputOf(newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(58) }), newCSV("etcd.v1", inPhase("Succeeded"))),
			"Installed", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"the plan was deleted":           {inputOf(waiting), "Resolving", "Subscription a", 5, "ReferencedInstallPlanNotFound", ""},
		"the plan is done, the CSV next": {inputOf(waiting, newPlan("p", "Complete", started(3), done(9))), "Installing", "ClusterServiceVersion etcd.v1", 9, "CSVAbsent", ""},
		"the CSV waits for requirements": {inputOf(latest, complete, newCSV("etcd.v1", inPhase("Pending"), func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonRequirementsNotMet })), "Installing", "ClusterServiceVersion etcd.v1", 40, "RequirementsNotMet", "requirementStatus"},
		"the CSV installs":               {inputOf(latest, complete, newCSV("etcd.v1", inPhase("InstallReady"))), "Installing", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"the CSV failed":                 {inputOf(latest, complete, newCSV("etcd.v1", inPhase("Failed"))), "Failed", "ClusterServiceVersion etcd.v1", 40, "", "Check"},
		"the CSV worked once":            {inputOf(latest, complete, newCSV("etcd.v1", inPhase("Failed"), once)), "Degraded", "ClusterServiceVersion etcd.v1", 40, "", "Check"},
		"the CSV is being replaced":      {inputOf(latest, complete, newCSV("etcd.v1", inPhase("Replacing"))), "Upgrading", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"all is well":                    {inputOf(latest, complete, newCSV("etcd.v1", inPhase("Succeeded"))), "Installed", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"all is well without the plan":   {inputOf(latest, newCSV("etcd.v1", inPhase("Succeeded"))), "Installed", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"a copy of the CSV is no install": {inputOf(waiting, complete, newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })),
			"Installing", "ClusterServiceVersion etcd.v1", 9, "CopiedCSVReferenced", "copied"},
		"a copy of the old version is no install either": {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading), newPlan("p", "Failed", failed(30)), newCSV("etcd.v0", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })),
			"Failed", "InstallPlan p", 30, "InstallComponentFailed", "delete"},
		"others cannot be resolved, the plan waits": {inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6), unsolvable), newPlan("p", "RequiresApproval", manual(1))),
			"WaitingForApproval", "InstallPlan p", 6, "RequiresApproval", "approved"},
		"others cannot be resolved, the plan runs":   {inputOf(newSub("a", follows("p", "etcd.v1"), unsolvable), newPlan("p", "Installing", started(4))), "Installing", "InstallPlan p", 4, "Installing", ""},
		"others cannot be resolved, the plan failed": {inputOf(newSub("a", follows("p", "etcd.v1"), unsolvable), newPlan("p", "Failed", failed(30))), "Failed", "InstallPlan p", 30, "InstallComponentFailed", "delete"},
		"a newer plan waits while the old version runs": {inputOf(newSub("a", follows("p", "etcd.v1"), upgrading, pending("RequiresApproval", 6)), newPlan("p", "RequiresApproval", manual(1)), newCSV("etcd.v0")),
			"WaitingForApproval", "InstallPlan p", 6, "RequiresApproval", "approved"},
		"the plan is approved, and about to run":     {inputOf(waiting, newPlan("p", "RequiresApproval", manual(2))), "Installing", "InstallPlan p", 2, "RequiresApproval", ""},
		"a plan that is deleted cannot be approved":  {inputOf(waiting, newPlan("p", "RequiresApproval", manual(1), func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(50) })), "Resolving", "InstallPlan p", 50, "RequiresApproval", ""},
		"what a waiting plan brings is there":        {inputOf(latest, newPlan("p", "RequiresApproval", manual(1)), newCSV("etcd.v1", inPhase("Succeeded"))), "Installed", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"the plan may not install":                   {inputOf(waiting, newPlan("p", "Installing", installedIs("False", "InstallCheckFailed", "no operator group", 55))), "Installing", "InstallPlan p", 2, "Installing", "OperatorGroup"},
		"the new version installs, the old is there": {inputOf(latest, complete, newCSV("etcd.v0", inPhase("Replacing")), newCSV("etcd.v1", inPhase("InstallReady"), replacing)), "Upgrading", "ClusterServiceVersion etcd.v1", 40, "", ""},
		"the new version failed, the old one worked": {inputOf(latest, complete, newCSV("etcd.v0", inPhase("Replacing"), once), newCSV("etcd.v1", inPhase("Failed"), replacing)), "Degraded", "ClusterServiceVersion etcd.v1", 40, "", "Check"},
		"the version is being deleted": {inputOf(latest, complete, newCSV("etcd.v1", inPhase("Succeeded"), func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = secondp(50) })),
			"Degraded", "ClusterServiceVersion etcd.v1", 50, "", ""},
		"the catalog is gone, the operator runs": {inputOf(newSub("a", follows("p", "etcd.v1"), installed, withCondition("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", "targeted catalogsource olm/cool missing", 9)), complete, newCSV("etcd.v1", inPhase("Succeeded"))),
			"Installed", "ClusterServiceVersion etcd.v1", 40, "UnhealthyCatalogSourceFound", "catalogs"},
		"it is being deleted, and nothing is there":  {inputOf(newSub("a", leaving(50))), "Deleting", "Subscription a", 50, "", "finalizer"},
		"it is being deleted, and the operator runs": {inputOf(newSub("a", follows("p", "etcd.v1"), installed, unsolvable, leaving(50)), complete, newCSV("etcd.v1", inPhase("Succeeded"))), "Deleting", "Subscription a", 50, "", "finalizer"},
		"no spec":                {inputOf(newSub("a", func(s *v1alpha1.Subscription) { s.Spec = nil })), "Failed", "Subscription a", 0, "InvalidSpec", "spec"},
		"a reference gone wrong": {inputOf(newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.InstallPlanRef.Namespace = "x" })), "Stuck", "Subscription a", 5, "RefInvalid", "Clear"},
	} {
		t.Run(name, func(t *testing.T) {
			w := healthOf(t, tc.in)
			require.Equal(t, tc.phase, w.Phase)
			require.Equal(t, tc.blocking, w.Object.Kind+" "+w.Object.Name)
			require.Equal(t, epoch.Add(time.Duration(tc.since)*time.Second), w.Since)
			require.Equal(t, tc.reason, w.Reason)
			require.Contains(t, w.Advice, tc.advice)
			require.Equal(t, tc.advice == "", w.Advice == "", w.Advice)
		})
	}
}

// TestRetriedPlanBlocksNothing checks that a failed InstallPlan that is retried blocks nothing, and that no advice
// names it for deletion.
func TestRetriedPlanBlocksNothing(t *testing.T) {
	plan := newPlan("p", "Failed", failed(30))
	in := inputOf(newSub("a", follows("p", "etcd.v1")), plan)
	require.Equal(t, "FailedPlanWedge", reasons(reconcile(t, in).Result))
	plan.Status.Conditions = append(plan.Status.Conditions, v1alpha1.InstallPlanCondition{Type: installplan.ConditionRetrying, Status: "True"})
	require.Empty(t, reasons(reconcile(t, in).Result))
	require.Equal(t, "Remove the cause; InstallPlan ops/p is then retried automatically.", healthOf(t, in).Advice)
	findings, err := audit.Find(in)
	require.NoError(t, err)
	for _, f := range findings {
		require.NotEqual(t, "FailedPlanWedge", f.Reason)
	}
}

func TestStuckSubscriptionsAreReported(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Complete", started(3), done(9)))
	require.Equal(t, health.Installing, healthOf(t, in).Phase)
	in.Now = in.Now.Add(time.Hour)
	require.Equal(t, health.Stuck, healthOf(t, in).Phase)

	for _, in := range []subscription.Input{
		inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Installing", installedIs("False", "InstallCheckFailed", "no operator group", 55))),
		inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "Complete", started(3), done(9)), newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })),
	} {
		require.Equal(t, health.Installing, healthOf(t, in).Phase)
		in.Now = in.Now.Add(time.Hour)
		w := healthOf(t, in)
		require.Equal(t, health.Stuck, w.Phase)
		require.NotEmpty(t, w.Advice)
	}

	in = inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", "", func(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }))
	require.Equal(t, health.Installing, healthOf(t, in).Phase)
	in.Now = in.Now.Add(time.Hour)
	require.Equal(t, health.Stuck, healthOf(t, in).Phase)
}

// TestLongWaitsHaveAdvice checks that advice names the object that a long wait depends on.
func TestLongWaitsHaveAdvice(t *testing.T) {
	waiting, latest := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), newSub("a", follows("p", "etcd.v1"), installed)
	complete := newPlan("p", "Complete", started(3), done(9))
	step := func(kind, name string, status v1alpha1.StepStatus) *v1alpha1.Step {
		return &v1alpha1.Step{Resource: v1alpha1.StepResource{Kind: kind, Name: name}, Status: status}
	}
	running := newPlan("p", "Installing", started(4), func(p *v1alpha1.InstallPlan) {
		p.Status.Plan = []*v1alpha1.Step{step("ClusterServiceVersion", "etcd.v1", "Present"), step("CustomResourceDefinition", "etcds", "WaitingForApi"), nil, step("Service", "etcd", "")}
	})
	unpacks := newPlan("p", "Installing", started(4), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{{Conditions: []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupPending, Status: "True"}}}}
	})
	installing := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = v1alpha1.CSVPhaseInstalling })
	for name, tc := range map[string]struct {
		in    subscription.Input
		phase health.Phase
		want  string
	}{
		"a plan that runs":           {inputOf(waiting, running), "Installing", "Check why these steps of InstallPlan ops/p are not done: CustomResourceDefinition etcds is WaitingForApi, Service etcd is Unknown."},
		"bundles that are unpacked":  {inputOf(waiting, unpacks), "Unpacking", "Check the Jobs that unpack the bundles, and check that the bundle images can be pulled."},
		"a plan without a phase":     {inputOf(waiting, newPlan("p", "")), "Installing", "Check that the OLM controllers are running and watch InstallPlan ops/p."},
		"a version that is set up":   {inputOf(latest, complete, installing), "Installing", "Check the status and the Deployments of ClusterServiceVersion ops/etcd.v1."},
		"a namespace to be resolved": {inputOf(newSub("a")), "Resolving", "Check that the OLM controllers are running and can reach the catalogs."},
	} {
		tc.in.Now = second(500).Time
		require.Empty(t, healthOf(t, tc.in).Advice, name)
		tc.in.Now = epoch.Add(time.Hour)
		w := healthOf(t, tc.in)
		require.Equal(t, tc.phase, w.Phase, name)
		require.Equal(t, tc.want, w.Advice, name)
	}
}

// TestUnmetRequirementsAreNamed checks that the message names at most five unmet requirements.
func TestUnmetRequirementsAreNamed(t *testing.T) {
	is := func(kind, name string, status v1alpha1.StatusReason) v1alpha1.RequirementStatus {
		return v1alpha1.RequirementStatus{Kind: kind, Name: name, Status: status}
	}
	account := is("ServiceAccount", "etcd", "PresentNotSatisfied")
	account.Dependents = []v1alpha1.DependentStatus{{Kind: "PolicyRule", Status: "Satisfied", Message: "x"},
		{Kind: "PolicyRule", Status: "NotSatisfied", Message: "namespaced rule:{\"resources\":[\"pods\"]}"}}
	c := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.Phase, c.Status.Reason, c.Status.Message = v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found"
		c.Status.RequirementStatus = []v1alpha1.RequirementStatus{is("CustomResourceDefinition", "etcds", "Present"), is("CustomResourceDefinition", "vaults", "NotPresent"), account}
	})
	in := inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete", started(3), done(9)), c)
	w := healthOf(t, in)
	const names = "CustomResourceDefinition vaults is NotPresent, " +
		"ServiceAccount etcd is PresentNotSatisfied (PolicyRule: namespaced rule:{\"resources\":[\"pods\"]})"
	require.Equal(t, "one or more requirements couldn't be found: "+names, w.Message)
	require.Equal(t, "Create or correct these requirements: "+names+".", w.Advice)

	for range 9 {
		c.Status.RequirementStatus = append(c.Status.RequirementStatus, is("Secret", "x", "NotPresent"))
	}
	require.Contains(t, healthOf(t, in).Message, "Secret x is NotPresent and 6 more")
}

// TestSinceIsZeroBeforeTheFirstWrite checks that a status that is not written yet has no time.
func TestSinceIsZeroBeforeTheFirstWrite(t *testing.T) {
	in := inputOf(newSub("a"))
	in.OperatorGroups.Items = nil
	require.Zero(t, healthOf(t, in).Since)
	out := reconcile(t, in)
	carryOut(&in, out)
	require.Equal(t, now, healthOf(t, in).Since)
}

func TestReasonsThatBlockAResolution(t *testing.T) {
	in := inputOf(newSub("a"))
	in.OperatorGroups.Items = append(in.OperatorGroups.Items, &operatorsv1.OperatorGroup{ObjectMeta: meta("second")})
	w := healthOf(t, in)
	require.Equal(t, health.Failed, w.Phase)
	require.Equal(t, "found 2 operatorGroups, expected 1", w.Message)
	require.Equal(t, "Keep exactly one OperatorGroup in Namespace ops and delete the others.", w.Advice)
	in.OperatorGroups.Items = nil
	w = healthOf(t, in)
	require.Equal(t, "found 0 operatorGroups, expected 1", w.Message)
	require.Equal(t, "Create exactly one OperatorGroup in Namespace ops to select the namespaces that its operators watch.", w.Advice)

	in = inputOf(newSub("a"))
	in.Catalogs = &subscription.Catalogs{Sources: olmcore.Found(newCatalog("olm", "other", true))}
	w = healthOf(t, in)
	require.Equal(t, health.Resolving, w.Phase)
	require.Equal(t, "CatalogSource olm/cool", w.Object.Kind+" "+w.Object.Namespace+"/"+w.Object.Name)
	require.Equal(t, "targeted catalogsource olm/cool missing", w.Message)
}
