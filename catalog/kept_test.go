// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// checkKept: a Pod that serves the present spec goes only where enough others do or
// newer content is served, a lost one only when that costs nothing, and while no node
// is ready nothing is made or moved that exists.
func checkKept(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	byName := map[string]catalog.PodReport{}
	unfinished := 0
	for _, pod := range a.Pods {
		byName[pod.Name] = pod
		if pod.Class != catalog.ClassForeign && pod.Class != catalog.ClassTerminated && hasRole(in, pod.Name) {
			unfinished++
		}
	}
	stopped := in.Nodes.Complete && len(in.Nodes.Items) > 0 && !slices.ContainsFunc(in.Nodes.Items, isReady)
	ready := a.Ready
	for _, action := range out.Actions {
		verb, target, cause := action.Describe()
		if target.Kind != "Pod" {
			continue
		}
		require.False(t, stopped && unfinished > 0 && verb != olmcore.VerbDelete, "%s of %s while no node is ready", verb, target.Name)
		pod := byName[target.Name]
		if verb != olmcore.VerbDelete || cause.Reason == catalog.ReasonSourceTypeChanged {
			continue
		}
		switch {
		case pod.Class == catalog.ClassServing && pod.Serves:
			require.True(t, ready > a.Replicas || cause.Reason == catalog.ReasonContentDiffers, "%s serves and goes: %s", pod.Name, cause.Reason)
			ready--
		case pod.Class == catalog.ClassLost && !terminates(in, pod.Name):
			require.True(t, a.Ready > 0 || pod.Reason == catalog.ReasonNodeGone || pod.Reason == catalog.ReasonNodeOutOfService, "%s may come back", pod.Name)
		}
	}
}

func terminates(in catalog.Input, name string) bool {
	return slices.ContainsFunc(in.Pods.Items, func(p *corev1.Pod) bool { return p != nil && p.Name == name && p.DeletionTimestamp != nil })
}

func isReady(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// checkStable: a status that is written says the same when it is read back, at once
// and until the next deadline.
func checkStable(t require.TestingT, in catalog.Input, out catalog.Outcome) {
	after, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	if !ok {
		return
	}
	in.CatalogSource = after
	for _, later := range []time.Duration{0, out.RequeueAfter - time.Nanosecond} {
		at := in
		if at.Now = in.Now.Add(later); later < 0 {
			continue
		}
		again, err := catalog.Reconcile(at)
		require.NoError(t, err)
		second, rewritten := olmcore.StatusOf[*v1alpha1.CatalogSource](again.Actions)
		if rewritten {
			require.Equal(t, after.Status, second.Status, "the status is rewritten %s later", later)
		}
	}
}

// checkSaid: what the conditions say of a catalog with Pods of its own follows from
// its Pods, and what the status says of its Service from the Service.
func checkSaid(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	if a.State == catalog.StateDeleting || a.WaitingFor == catalog.ReasonNameConflict || a.Replicas == 0 {
		return
	}
	available := a.Conditions[0].Status == metav1.ConditionTrue
	require.Equal(t, a.Ready > 0, available, "%+v", a.Conditions[0])
	require.False(t, a.WaitingFor == "" && a.Ready < a.Replicas, "nothing is left to do for %d of %d Pods", a.Ready, a.Replicas)
	if out.Connection.Verb == catalog.ConnectionConnect {
		require.Regexp(t, `^[a-z0-9-]+\.`+in.CatalogSource.Namespace+`\.svc:50051$`, out.Connection.Address)
	}
	status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	if !ok || status.Status.RegistryServiceStatus == nil || !runsPods(a) {
		return
	}
	named := status.Status.RegistryServiceStatus.ServiceName
	made := slices.ContainsFunc(out.Actions, func(a olmcore.Action) bool {
		verb, target, _ := a.Describe()
		return verb == olmcore.VerbCreate && target.Kind == "Service" && target.Name == named
	})
	require.True(t, named == "" || made || slices.ContainsFunc(in.Services.Items, func(s *corev1.Service) bool { return s != nil && s.Name == named }),
		"the status names the Service %s", named)
}

// checkPoll: a poll starts when it is due, while nothing else is under way, and for
// an image that can change.
func checkPoll(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	started := 0
	for _, action := range out.Actions {
		c, ok := action.(olmcore.Create)
		if !ok || c.Cause.Reason != catalog.ReasonPollDue {
			continue
		}
		started++
		require.False(t, a.NextPoll.After(in.Now), "the poll is not due")
		require.True(t, !strings.Contains(in.CatalogSource.Spec.Image, "@"))
		require.NotContains(t, []catalog.State{catalog.StateInvalid, catalog.StateDeleting}, a.State)
		broken := slices.ContainsFunc(a.Pods, func(p catalog.PodReport) bool {
			return p.Class == catalog.ClassUnhealthy || p.Class == catalog.ClassStuck
		})
		require.True(t, a.State != catalog.StateUpdating || broken, "%s is under way, and no Pod needs other content: %+v", a.WaitingFor, a.Pods)
		for _, pod := range a.Pods {
			require.False(t, pod.Candidate && pod.Class != catalog.ClassForeign && pod.Class != catalog.ClassTerminated && pod.Class != catalog.ClassTerminating,
				"%s polls already", pod.Name)
		}
	}
	require.LessOrEqual(t, started, 1)
}
