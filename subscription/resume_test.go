// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestUnfinishedVersionOfADeletedPlanIsCleared checks that a Subscription clears the reference to a deleted
// InstallPlan, and the version that the plan created, only if the plan left open steps and no other plan installs
// the version.
func TestUnfinishedVersionOfADeletedPlanIsCleared(t *testing.T) {
	type csv = v1alpha1.ClusterServiceVersion
	const failedPlan, missing = v1alpha1.SubscriptionInstallPlanFailed, v1alpha1.SubscriptionInstallPlanMissing
	// unfinished is the version that the deleted plan created. It was Pending from the start.
	unfinished := func(change ...func(*csv)) *csv {
		return newCSV("etcd.v1", append([]func(*csv){func(c *csv) {
			c.Spec.Replaces = "etcd.v0"
			c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "etcds.example.com"}}
			c.Status.Phase = v1alpha1.CSVPhasePending
			c.Status.Conditions = []v1alpha1.ClusterServiceVersionCondition{{Phase: v1alpha1.CSVPhasePending}}
		}}, change...)...)
	}
	phases := func(history ...v1alpha1.ClusterServiceVersionPhase) func(*csv) {
		return func(c *csv) {
			c.Status.Phase = history[len(history)-1]
			for _, p := range history {
				c.Status.Conditions = append(c.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: p})
			}
		}
	}
	lacks := func(kind, name string, status v1alpha1.StatusReason) func(*csv) {
		return func(c *csv) {
			c.Status.RequirementStatus = []v1alpha1.RequirementStatus{
				{Kind: "ClusterServiceVersion", Name: "etcd.v1", Status: v1alpha1.RequirementStatusReasonPresent}, {Kind: kind, Name: name, Status: status},
			}
		}
	}
	copied := func(c *csv) { c.Labels = map[string]string{olmcore.LabelCopiedFrom: "elsewhere"} }
	deleted := func(c *csv) { c.DeletionTimestamp = secondp(40) }
	old := newCSV("etcd.v0", func(c *csv) { c.Status.Phase = v1alpha1.CSVPhaseReplacing })
	contains := func(name string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"other.v1", name} }
	}
	const kept = "keeps etcd.v1"
	for name, tc := range map[string]struct {
		version     *csv
		others      []olmcore.Object
		condition   v1alpha1.SubscriptionConditionType // InstallPlanFailed unless named
		unsettled   bool                               // the plan has been out of sight for a moment only
		failForward bool
		want        string // the version that the Subscription goes back to, "nothing" for none
	}{
		"the plan of an upgrade failed":            {version: unfinished(), others: []olmcore.Object{old}, want: "etcd.v0"},
		"the plan of a first installation failed":  {version: unfinished(func(c *csv) { c.Spec.Replaces = "" }), want: "nothing"},
		"the predecessor does not exist":           {version: unfinished(), want: "nothing"},
		"the predecessor is a copy":                {version: unfinished(), others: []olmcore.Object{newCSV("etcd.v0", copied)}, want: "nothing"},
		"the predecessor is being deleted":         {version: unfinished(), others: []olmcore.Object{newCSV("etcd.v0", deleted)}, want: "nothing"},
		"the version has no phase":                 {version: unfinished(func(c *csv) { c.Status = v1alpha1.ClusterServiceVersionStatus{} }), want: "nothing"},
		"the version failed":                       {version: unfinished(phases(v1alpha1.CSVPhaseFailed)), others: []olmcore.Object{old}, want: "etcd.v0"},
		"the version failed, and it fails forward": {version: unfinished(phases(v1alpha1.CSVPhaseFailed)), others: []olmcore.Object{old}, failForward: true, want: kept},
		"it is pending, and it fails forward":      {version: unfinished(), others: []olmcore.Object{old}, failForward: true, want: "etcd.v0"},
		"the version is being deleted":             {version: unfinished(deleted), others: []olmcore.Object{old}, want: "etcd.v0"},
		"another plan contains another version":    {version: unfinished(), others: []olmcore.Object{old, newPlan("q", "Complete", done(9), contains("etcd.v7"))}, want: "etcd.v0"},

		"the status does not report a failure": {
			version: unfinished(), others: []olmcore.Object{old}, condition: v1alpha1.SubscriptionInstallPlanPending, want: kept,
		},
		"the plan is missing, nothing else": {version: unfinished(), others: []olmcore.Object{old}, condition: missing, want: kept},
		"missing, its definition is absent": {
			version: unfinished(lacks("CustomResourceDefinition", "etcds.example.com", "NotPresent")), others: []olmcore.Object{old},
			condition: missing, want: "etcd.v0",
		},
		"missing, its definition is outdated": {
			version: unfinished(lacks("CustomResourceDefinition", "etcds.example.com", "PresentNotSatisfied")), others: []olmcore.Object{old}, condition: missing, want: "etcd.v0",
		},
		"missing, its account is absent":                 {version: unfinished(lacks("ServiceAccount", "etcd", "NotPresent")), others: []olmcore.Object{old}, condition: missing, want: "etcd.v0"},
		"missing, its permissions are absent":            {version: unfinished(lacks("ServiceAccount", "etcd", "PresentNotSatisfied")), condition: missing, want: "nothing"},
		"missing, its account is there":                  {version: unfinished(lacks("ServiceAccount", "etcd", "Present")), condition: missing, want: kept},
		"missing, its definition is not served":          {version: unfinished(lacks("CustomResourceDefinition", "etcds.example.com", "PresentNotAvailable")), condition: missing, want: kept},
		"missing, a definition of another CSV is absent": {version: unfinished(lacks("CustomResourceDefinition", "vaults.example.com", "NotPresent")), condition: missing, want: kept},
		"missing, an APIService is absent":               {version: unfinished(lacks("APIService", "v1.example.com", "NotPresent")), condition: missing, want: kept},
		"the plan may only be missing in the cache":      {version: unfinished(), others: []olmcore.Object{old}, unsettled: true, want: kept},
		"another plan contains the version":              {version: unfinished(), others: []olmcore.Object{old, newPlan("q", "Complete", done(9), contains("etcd.v1"))}, want: kept},
		"another plan failed with the version":           {version: unfinished(), others: []olmcore.Object{old, newPlan("q", "Failed", failed(9), contains("etcd.v1"))}, want: kept},
		"the version was installed once":                 {version: unfinished(phases(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhasePending)), others: []olmcore.Object{old}, want: kept},
		"the version failed after it had worked":         {version: unfinished(phases(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed)), others: []olmcore.Object{old}, want: kept},
		"the version is installed":                       {version: unfinished(phases(v1alpha1.CSVPhaseSucceeded)), others: []olmcore.Object{old}, want: kept},
		"the version is being installed":                 {version: unfinished(phases(v1alpha1.CSVPhaseInstalling)), others: []olmcore.Object{old}, want: kept},
	} {
		t.Run(name, func(t *testing.T) {
			condition := tc.condition
			if condition == "" {
				condition = failedPlan
			}
			s := newSub("a", follows("p", "etcd.v1"), installed, withCondition(condition, "Reason", "", 6))
			in := inputOf(append(tc.others, s, tc.version)...)
			if tc.unsettled {
				in.Now = second(14).Time
			}
			if tc.failForward {
				in = failForward(in)
			}
			out := reconcile(t, in)
			got := statusOf(t, in, out, "a")
			if tc.want == kept {
				require.Equal(t, "etcd.v1", got.CurrentCSV)
				require.Equal(t, "etcd.v1", got.InstalledCSV)
				require.Equal(t, refTo("p"), got.InstallPlanRef)
				return
			}
			back := tc.want
			if back == "nothing" {
				back = ""
			}
			want := v1alpha1.SubscriptionStatus{InstalledCSV: back, InstallPlanGeneration: 1, LastUpdated: got.LastUpdated}
			require.Equal(t, want, got)
			_, _, cause := out.Actions[0].Describe()
			require.Equal(t, olmcore.Cause{Reason: subscription.ReasonReferenceCleared,
				Message: "the InstallPlan of etcd.v1 was deleted before it installed everything"}, cause)
		})
	}
}

// TestUnfinishedVersionIsClearedAfterTheGracePeriod checks that the grace period applies to an InstallPlan that the
// Subscription reports as failed.
func TestUnfinishedVersionIsClearedAfterTheGracePeriod(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1"), installed, withCondition(v1alpha1.SubscriptionInstallPlanFailed, "Reason", "", 6)),
		newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Status.Phase = v1alpha1.CSVPhasePending }))
	in.Now = second(10).Time
	out := reconcile(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, time.Second, out.RequeueAfter)
	in.Now = second(15).Time
	require.Nil(t, statusOf(t, in, reconcile(t, in), "a").InstallPlanRef)
}

// TestUnfinishedVersionOfAMissingPlanWaitsForTheGracePeriod checks that the grace period starts anew for a caller
// that keeps histories.
func TestUnfinishedVersionOfAMissingPlanWaitsForTheGracePeriod(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1"), installed, withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 6)),
		newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Status.Phase = v1alpha1.CSVPhasePending
			c.Status.RequirementStatus = []v1alpha1.RequirementStatus{{Kind: "ServiceAccount", Name: "etcd", Status: v1alpha1.RequirementStatusReasonNotPresent}}
		}))
	in.Histories = map[types.UID]subscription.History{}
	out := reconcile(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, time.Second, out.RequeueAfter)
	carryOut(&in, out)
	in.Now = in.Now.Add(10 * time.Second)
	require.Nil(t, statusOf(t, in, reconcile(t, in), "a").InstallPlanRef)
}

// TestVersionDeletedWithItsFailedPlanIsInstalledAgain checks that a version is installed again if it was deleted
// with its failed InstallPlan, or while no controller ran. The Subscription returns to the existing version of its
// package, if there is exactly one.
func TestVersionDeletedWithItsFailedPlanIsInstalledAgain(t *testing.T) {
	version := func(name, pkg string) *v1alpha1.ClusterServiceVersion {
		return newCSV(name, func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations = map[string]string{olmcore.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`}
		})
	}
	old := version("etcd.v0", "etcd")
	copied := version("etcd.v0", "etcd")
	copied.Labels[olmcore.LabelCopiedFrom] = "elsewhere"
	for name, tc := range map[string]struct {
		others    []olmcore.Object
		installed string
	}{
		"an upgrade":           {[]olmcore.Object{old, version("vault.v1", "vault")}, "etcd.v0"},
		"a first installation": {nil, "etcd.v1"},
		"only a copy is there": {[]olmcore.Object{copied}, "etcd.v1"},
		"another Subscription follows the other version": {[]olmcore.Object{old, newSub("b", follows("q", "etcd.v0"), installed), newPlan("q", "Complete", done(9), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"etcd.v0"} })}, "etcd.v1"},
		"two other versions exist":                       {[]olmcore.Object{old, version("etcd.v7", "etcd")}, "etcd.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSub("a", follows("p", "etcd.v1"), installed, withCondition(v1alpha1.SubscriptionInstallPlanFailed, "Reason", "", 6))
			in := inputOf(append(tc.others, s)...)
			got := statusOf(t, in, reconcile(t, in), "a")
			require.Nil(t, got.InstallPlanRef)
			require.Empty(t, got.CurrentCSV)
			require.Equal(t, tc.installed, got.InstalledCSV)
		})
	}
}

// TestRecordedInstalledVersionIsFollowed checks that a Subscription whose status records an installed version, but
// neither status.currentCSV nor an InstallPlan, follows that version again. A version that lacks objects of its
// bundle is installed again.
func TestRecordedInstalledVersionIsFollowed(t *testing.T) {
	type csv = v1alpha1.ClusterServiceVersion
	version := func(name string, change ...func(*csv)) *csv {
		return newCSV(name, append([]func(*csv){func(c *csv) { c.Status.Phase = v1alpha1.CSVPhaseSucceeded }}, change...)...)
	}
	unfinished := func(c *csv) {
		c.Status.Phase, c.Spec.Replaces = v1alpha1.CSVPhasePending, "etcd.v0"
		c.Status.RequirementStatus = []v1alpha1.RequirementStatus{
			{Kind: "ServiceAccount", Name: "etcd", Status: v1alpha1.RequirementStatusReasonNotPresent},
		}
	}
	old := version("etcd.v0", func(c *csv) { c.Status.Phase = v1alpha1.CSVPhaseReplacing })
	following := newSub("b", follows("q", "etcd.v1"), installed)
	upgrading := newSub("b", follows("q", "etcd.v2"), func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v1" })
	plan := newPlan("q", "Complete", done(9), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"etcd.v1"} })
	for name, tc := range map[string]struct {
		objects            []olmcore.Object
		current, installed string
	}{
		"the version is installed": {[]olmcore.Object{version("etcd.v1")}, "etcd.v1", "etcd.v1"},
		"the version waits for something": {
			[]olmcore.Object{version("etcd.v1", func(c *csv) { c.Status.Phase = v1alpha1.CSVPhasePending })}, "etcd.v1", "etcd.v1",
		},
		"the version lacks objects":       {[]olmcore.Object{old, version("etcd.v1", unfinished)}, "", "etcd.v0"},
		"the first version lacks objects": {[]olmcore.Object{version("etcd.v1", unfinished)}, "etcd.v1", "etcd.v1"},
		"the version is gone":             {nil, "", "etcd.v1"},
		"the version is a copy": {
			[]olmcore.Object{version("etcd.v1", func(c *csv) { c.Labels[olmcore.LabelCopiedFrom] = "elsewhere" })}, "", "etcd.v1",
		},
		"another version replaces it": {
			[]olmcore.Object{version("etcd.v1"), version("etcd.v2", func(c *csv) { c.Spec.Replaces = "etcd.v1" })}, "", "etcd.v1",
		},
		"the version is being replaced": {
			[]olmcore.Object{version("etcd.v1", func(c *csv) { c.Status.Phase = v1alpha1.CSVPhaseReplacing })}, "", "etcd.v1",
		},
		"another Subscription follows a version": {[]olmcore.Object{version("etcd.v1"), following, plan}, "", "etcd.v1"},
		"another Subscription upgrades from it":  {[]olmcore.Object{version("etcd.v1"), upgrading, plan}, "", "etcd.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(append(tc.objects, newSub("a", func(s *v1alpha1.Subscription) { s.Status.InstalledCSV = "etcd.v1" }))...)
			got := statusOf(t, in, reconcile(t, in), "a")
			require.Nil(t, got.InstallPlanRef)
			require.Equal(t, tc.current, got.CurrentCSV)
			require.Equal(t, tc.installed, got.InstalledCSV)
		})
	}
}
