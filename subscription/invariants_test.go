// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"maps"
	"slices"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// controllerEdges repeats the graph of stages as the edges that a controller takes. The edges of superseded plans,
// which fail before they start, are in transitions_test.go.
var controllerEdges = map[string][]string{
	"NoPlan":           {"NotYetReconciled"},
	"NotYetReconciled": {"Planning", "RequiresApproval", "Installing"},
	"Planning":         {"RequiresApproval", "Installing"},
	"RequiresApproval": {"Installing"},
	"Installing":       {"Complete", "Failed"},
	"Failed":           {"Installing"},
	"Complete":         {},
}

func TestStageGraphHasExactlyTheExpectedEdges(t *testing.T) {
	edges, superseded := map[string][]string{"Complete": {}}, []string{}
	for _, e := range subscription.Graph {
		if e.By == "superseded" {
			require.EqualValues(t, "Failed", e.To)
			superseded = append(superseded, string(e.From))
			continue
		}
		edges[string(e.From)] = append(edges[string(e.From)], string(e.To))
	}
	require.Equal(t, controllerEdges, edges)
	require.Equal(t, []string{"NotYetReconciled", "Planning", "RequiresApproval"}, superseded)
}

// checkSafety checks the invariants of every Outcome for every valid Input.
func checkSafety(t require.TestingT, in subscription.Input) {
	out, err := subscription.Reconcile(in)
	if err != nil {
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		return
	}
	for _, a := range out.Actions {
		_, target, _ := a.Describe()
		require.NotEqual(t, "InstallPlan", target.Kind, "InstallPlans are another package's")
		switch a := a.(type) {
		case olmcore.UpdateStatus:
			checkStatus(t, in, a.Before.(*v1alpha1.Subscription), a.After.(*v1alpha1.Subscription))
		case olmcore.Update:
			for key := range a.Before.GetLabels() {
				if in.PreviousPackages != nil && target.Kind == "Subscription" {
					continue
				}
				require.Contains(t, slices.Collect(maps.Keys(a.After.GetLabels())), key, "a label was lost")
			}
		default:
			require.Fail(t, "no object is created or deleted")
		}
	}
	for _, s := range in.Subscriptions.Items {
		checkInstalled(t, in, statusOf(t, in, out, s.Name), s.Spec != nil)
	}
	checkChains(t, out)
	require.Equal(t, out.Resolve != nil, gateOf(t, in) == subscription.GateNeeded)
	require.GreaterOrEqual(t, out.RequeueAfter.Nanoseconds(), int64(0))
}

// checkInstalled checks that a version that exists and is not copied is the installed one, that at most one condition
// is about the plan, and that there is none without a reference.
func checkInstalled(t require.TestingT, in subscription.Input, status v1alpha1.SubscriptionStatus, judged bool) {
	if !judged {
		return
	}
	shown := planConditions(status)
	require.True(t, status.InstallPlanRef != nil || shown == "", "%s without a reference", shown)
	if status.State == v1alpha1.SubscriptionStateAtLatest && status.InstalledCSV == status.CurrentCSV {
		return
	}
	for _, c := range in.ClusterServiceVersions.Items {
		_, copied := c.Labels["olm.copiedFrom"]
		home, annotated := c.Annotations["olm.operatorNamespace"]
		require.False(t, c.Name == status.CurrentCSV && !copied && c.Status.Reason != v1alpha1.CSVReasonCopied && (!annotated || home == in.Namespace),
			"%s is there, but %s and %s", c.Name, status.State, status.InstalledCSV)
	}
}

func checkStatus(t require.TestingT, in subscription.Input, before, after *v1alpha1.Subscription) {
	b, a := before.Status, after.Status
	require.False(t, a.LastUpdated.IsZero())
	require.False(t, a.LastUpdated.Before(&b.LastUpdated), "lastUpdated went back")
	require.GreaterOrEqual(t, a.InstallPlanGeneration, b.InstallPlanGeneration)
	if in.Catalogs == nil {
		require.Equal(t, b.CatalogHealth, a.CatalogHealth)
	} else {
		require.Len(t, a.CatalogHealth, len(in.Catalogs.Sources.Items))
	}
	require.Equal(t, b.Reason, a.Reason)
	if isForgotten := a.CurrentCSV == "" && a.InstallPlanRef == nil; a.InstalledCSV != b.InstalledCSV {
		require.True(t, isForgotten || a.CurrentCSV == a.InstalledCSV)
		require.True(t, isForgotten && a.InstalledCSV == "" || slices.ContainsFunc(in.ClusterServiceVersions.Items, func(c *v1alpha1.ClusterServiceVersion) bool {
			return c.Name == a.InstalledCSV
		}), "installedCSV names a CSV that was not seen")
	}
	if a.State == v1alpha1.SubscriptionStateFailed && b.State != a.State {
		require.Equal(t, operatorsv1.UpgradeStrategyUnsafeFailForward, in.OperatorGroups.Items[0].Spec.UpgradeStrategy)
		require.True(t, slices.ContainsFunc(in.InstallPlans.Items, func(p *v1alpha1.InstallPlan) bool {
			return p.Name == a.InstallPlanRef.Name && p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
		}), "no plan failed")
	}
	require.Equal(t, a.InstallPlanRef == nil, a.Install == nil)
	if a.InstallPlanRef == nil {
		for _, c := range a.Conditions {
			require.NotContains(t, []v1alpha1.SubscriptionConditionType{"InstallPlanPending", "InstallPlanFailed", "InstallPlanMissing"}, c.Type)
		}
	} else if b.InstallPlanRef == nil || b.InstallPlanRef.UID != a.InstallPlanRef.UID {
		require.True(t, slices.ContainsFunc(in.InstallPlans.Items, func(p *v1alpha1.InstallPlan) bool {
			return p.UID == a.InstallPlanRef.UID && p.Name == a.InstallPlanRef.Name
		}),
			"a reference was written to a plan that was not seen")
	}
	seen := map[v1alpha1.SubscriptionConditionType]int{}
	for _, c := range a.Conditions {
		if slices.ContainsFunc(ours, func(t v1alpha1.SubscriptionConditionType) bool { return t == c.Type }) {
			seen[c.Type]++
			require.Equal(t, 1, seen[c.Type], "two conditions of type %s", c.Type)
			checkTransitionTime(t, b.Conditions, c)
		}
	}
	require.Equal(t, foreignOf(b.Conditions), foreignOf(a.Conditions), "another writer's conditions")
}

var ours = subscription.Conditions()

// TestConditionsOfExistingClustersStayManaged checks that this package still manages the condition types that
// existing clusters have.
func TestConditionsOfExistingClustersStayManaged(t *testing.T) {
	require.Subset(t, ours, []v1alpha1.SubscriptionConditionType{
		"InstallPlanPending", "InstallPlanFailed", "InstallPlanMissing", "ResolutionFailed", "BundleUnpacking", "BundleUnpackFailed",
		"CatalogSourcesUnhealthy", "PackageDeprecated", "ChannelDeprecated", "BundleDeprecated", "Deprecated",
	})
}

// checkTransitionTime checks that an unchanged condition keeps its time.
func checkTransitionTime(t require.TestingT, before []v1alpha1.SubscriptionCondition, c v1alpha1.SubscriptionCondition) {
	var same []*metav1.Time
	for _, b := range before {
		if b.Equals(c) {
			same = append(same, b.LastTransitionTime)
		}
	}
	if len(same) == 1 && len(before) == 1 {
		require.Equal(t, same[0], c.LastTransitionTime)
	}
}

func foreignOf(conditions []v1alpha1.SubscriptionCondition) []v1alpha1.SubscriptionCondition {
	foreign := []v1alpha1.SubscriptionCondition{}
	for _, c := range conditions {
		if !slices.Contains(ours, c.Type) {
			foreign = append(foreign, c)
		}
	}
	return foreign
}

// checkChains checks that the transitions of one Subscription connect, and that an edge outside the graph is marked.
func checkChains(t require.TestingT, out subscription.Outcome) {
	last := map[olmcore.Ref]olmcore.Transition{}
	for _, tr := range out.Transitions {
		if tr.Type != subscription.TransitionInstallPlan {
			continue
		}
		if before, ok := last[tr.Target]; ok {
			require.Equal(t, before.To, tr.From)
			if tr.From != "NoPlan" && before.From != "NoPlan" && !tr.At.IsZero() && !before.At.IsZero() && tr.Bound != olmcore.NotBefore {
				require.False(t, tr.At.Before(&before.At) && before.Bound == olmcore.Exact, "times decrease")
			}
		}
		last[tr.Target] = tr
		edge := tr.To == "Missing" || tr.To == "NoPlan" || tr.From == "Missing" || tr.From == "Unknown" || tr.To == "Unknown" ||
			slices.Contains(controllerEdges[tr.From], tr.To)
		require.True(t, edge || tr.OutOfBand, "%s to %s is no edge of the graph", tr.From, tr.To)
		require.NotEmpty(t, tr.Certainty)
		require.Equal(t, tr.At.IsZero(), tr.Bound == olmcore.Unbounded)
	}
}

func TestEveryEdgeOfTheStageGraphIsReported(t *testing.T) {
	plans := map[string]*v1alpha1.InstallPlan{
		"NotYetReconciled": newPlan("p", ""), "Planning": newPlan("p", "Planning"), "RequiresApproval": newPlan("p", "RequiresApproval", manual(1)),
		"Installing": newPlan("p", "Installing", started(20)), "Complete": newPlan("p", "Complete", started(20), done(30)),
		"Failed": newPlan("p", "Failed", started(20), failed(30)),
	}
	for from, tos := range controllerEdges {
		for _, to := range append([]string{"Missing", "NoPlan"}, tos...) {
			in := inputOf(newSub("a", follows("p", "etcd.v1")))
			if to == "NoPlan" {
				in = inputOf(newSub("a"))
			} else if p := plans[to]; p != nil {
				in.InstallPlans.Items = append(in.InstallPlans.Items, p)
			}
			in.Live, in.Histories = true, historyOf(subscription.Stage(from))
			out := reconcile(t, in)
			if from == to {
				require.Empty(t, stages(out.Result))
				continue
			}
			i := slices.IndexFunc(out.Transitions, func(tr olmcore.Transition) bool { return tr.Type == subscription.TransitionInstallPlan })
			require.GreaterOrEqual(t, i, 0, "%s to %s", from, to)
			require.Equal(t, from, out.Transitions[i].From)
			require.Equal(t, to, out.Transitions[i].To)
			require.False(t, out.Transitions[i].OutOfBand, "%s to %s", from, to)
		}
	}
}
