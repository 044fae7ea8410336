// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"regexp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// checkPromises holds every decision against what is promised about all of them.
func checkPromises(t require.TestingT, in catalog.Input, out catalog.Outcome) {
	a := catalog.Assess(in)
	checkForce(t, in, out, a)
	checkTakeOver(t, in, out, a)
	checkMade(t, in, out, a)
	checkLeft(t, in, out)
	checkKept(t, in, out, a)
	checkSaid(t, in, out, a)
	checkPoll(t, in, out, a)
	checkStable(t, in, out)
	checkStatus(t, in, out, a)
	checkPrompt(t, in, out, a)
	checkBetterNode(t, in, out)
	require.True(t, out.RequeueAfter == 0 || out.RequeueAfter >= time.Second && out.RequeueAfter <= 15*time.Minute, "%s", out.RequeueAfter)
	if out.Connection.Verb == catalog.ConnectionDrop {
		require.True(t, a.Ready == 0 || a.State == catalog.StateDeleting || a.State == catalog.StateUnavailable, "the client of a catalog that serves was dropped")
	}
	if out.Connection.Verb == catalog.ConnectionConnect {
		require.True(t, in.Connection == nil || in.Connection.Address != out.Connection.Address)
	}
}

// checkForce: nothing is deleted without naming the very object, a running Pod is
// only forced off nodes that are not known to work, and while no node is known to
// work nothing is moved at all.
func checkForce(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	stopped := in.Nodes.Complete && len(in.Nodes.Items) > 0 && !slices.ContainsFunc(in.Nodes.Items, isReady)
	for _, action := range out.Actions {
		d, ok := action.(olmcore.Delete)
		if !ok {
			continue
		}
		require.NotEmpty(t, d.Target.UID)
		require.False(t, d.Target.Kind == "Pod" && d.Target.ResourceVersion == "", "the delete of %s may meet a Pod that serves by now", d.Target.Name)
		i := slices.IndexFunc(a.Pods, func(p catalog.PodReport) bool { return p.Name == d.Target.Name })
		if d.Target.Kind != "Pod" || i < 0 || d.Cause.Reason == catalog.ReasonSourceTypeChanged {
			continue
		}
		pod := a.Pods[i]
		require.NotEqual(t, catalog.ClassForeign, pod.Class)
		require.False(t, stopped && pod.Class != catalog.ClassTerminated, "a Pod was deleted while no node is ready")
		if d.GracePeriodSeconds == nil || *d.GracePeriodSeconds != 0 || pod.Class == catalog.ClassTerminated {
			continue
		}
		require.NotEqual(t, catalog.ForceDeleteNever, in.Config.ForceDelete)
		if in.Config.ForceDelete != catalog.ForceDeleteUpstream {
			require.NotContains(t, []catalog.NodeState{catalog.NodeHealthy, catalog.NodeRecovering}, pod.NodeState, "%s was forced off a node that works", pod.Name)
		}
	}
}

// checkTakeOver: who takes over is ready, of the present spec, and the catalog's own;
// and while nobody serves, whoever is ready does take over.
func checkTakeOver(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	promoted := map[string]bool{}
	for _, action := range out.Actions {
		u, ok := action.(olmcore.Update)
		if !ok || u.Target.Kind != "Pod" {
			continue
		}
		require.NotEmpty(t, u.Target.ResourceVersion)
		promoted[u.Target.Name] = true
		i := slices.IndexFunc(a.Pods, func(p catalog.PodReport) bool { return p.Name == u.Target.Name })
		require.NotContains(t, []catalog.Class{catalog.ClassForeign, catalog.ClassTerminated, catalog.ClassLost, catalog.ClassTerminating}, a.Pods[i].Class)
		if a.Pods[i].Candidate && a.Ready > 0 {
			require.True(t, a.Pods[i].Ready)
			require.NotEqual(t, catalog.ClassOutdated, a.Pods[i].Class)
		}
	}
	moving := a.State != catalog.StateDeleting && a.State != catalog.StateInvalid && a.State != catalog.StateUnknown && a.WaitingFor != catalog.ReasonWaitingForNodes
	for _, pod := range a.Pods {
		if moving && a.Replicas > 0 && a.Ready == 0 && pod.Candidate && pod.Ready && pod.Class == catalog.ClassServing && in.CatalogSource.Spec.Image != "" {
			require.True(t, promoted[pod.Name] || a.WaitingFor == catalog.ReasonNameConflict || a.WaitingFor == catalog.ReasonConfigMapMissing,
				"%s is ready, nobody serves, and it does not take over: %s", pod.Name, a.WaitingText)
		}
	}
}

var reasonSyntax = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// checkStatus: conditions are ours once and others' untouched, times are whole
// seconds that are never moved back, and serving means that a Pod serves.
func checkStatus(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	if !ok {
		return
	}
	before, after := in.CatalogSource.Status, status.Status
	seen := map[string]int{}
	for _, c := range after.Conditions {
		seen[c.Type]++
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		switch c.Type {
		case catalog.ConditionAvailable, catalog.ConditionProgressing, catalog.ConditionDegraded, catalog.ConditionUpdatePolled, catalog.ConditionReplicasSpread:
			require.Equal(t, in.CatalogSource.Generation, c.ObservedGeneration)
			require.Equal(t, 1, seen[c.Type])
			require.Regexp(t, reasonSyntax, c.Reason)
			require.LessOrEqual(t, len(c.Message), 32768)
			if old != nil && old.Status == c.Status && !old.LastTransitionTime.IsZero() {
				require.Equal(t, old.LastTransitionTime, c.LastTransitionTime, "%s did not change", c.Type)
			}
		}
	}
	if in.CatalogSource.Spec.SourceType != v1alpha1.SourceTypeGrpc || in.CatalogSource.Spec.Image != "" {
		available := meta.FindStatusCondition(after.Conditions, catalog.ConditionAvailable)
		if available.Status == metav1.ConditionTrue {
			require.NotZero(t, a.Ready)
		}
	}
	require.Equal(t, others(before.Conditions), others(after.Conditions), "what others say stays, in its order")
	if s := after.RegistryServiceStatus; s != nil && s.ServiceName != "" {
		require.Equal(t, "grpc", s.Protocol)
		require.Equal(t, "50051", s.Port)
	}
	if poll := after.LatestImageRegistryPoll; poll != nil && before.LatestImageRegistryPoll != poll {
		require.Zero(t, poll.Nanosecond())
		if a.NextPoll.IsZero() {
			return
		}
		require.False(t, poll.After(in.Now))
		if had := before.LatestImageRegistryPoll; had != nil && !had.After(in.Now) {
			require.False(t, poll.Time.Before(had.Time), "a poll was taken back")
		}
	}
	for _, c := range after.Conditions {
		require.Zero(t, c.LastTransitionTime.Nanosecond())
		require.True(t, c.LastTransitionTime.IsZero() || c.LastTransitionTime.Location() == time.UTC || before.Conditions != nil)
	}
}

// others are the conditions that this package does not own.
func others(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(append([]metav1.Condition{}, conditions...), func(c metav1.Condition) bool {
		switch c.Type {
		case catalog.ConditionAvailable, catalog.ConditionProgressing, catalog.ConditionDegraded, catalog.ConditionUpdatePolled, catalog.ConditionReplicasSpread:
			return true
		}
		return false
	})
}
