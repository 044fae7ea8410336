// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// checkKept checks that a current Pod that serves is only deleted if enough others serve or newer content is served,
// that a lost Pod is only deleted if that is safe, and that no existing Pod is changed while no Node is ready.
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

// checkStable checks that a written status is not written again, at once and until the next deadline.
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
		again := answer(t, at)
		second, rewritten := olmcore.StatusOf[*v1alpha1.CatalogSource](again.Actions)
		if rewritten {
			require.Equal(t, after.Status, second.Status, "the status is rewritten %s later", later)
		}
	}
}

// checkSaid checks that the conditions agree with the Pods, and that the status agrees with the Service.
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

// checkPoll checks that a poll only starts if it is due, if nothing else is under way, and for an image that can
// change.
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

// checkMade checks that new objects have a valid name, the label, one owner, and the selectors that they need. A
// catalog that is being deleted creates nothing.
func checkMade(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	hash := ""
	for _, action := range out.Actions {
		c, ok := action.(olmcore.Create)
		if !ok {
			continue
		}
		require.NotEqual(t, catalog.StateDeleting, a.State)
		require.Equal(t, in.CatalogSource.Namespace, c.Object.GetNamespace())
		require.Equal(t, "true", c.Object.GetLabels()["olm.managed"])
		require.Empty(t, validation.IsDNS1123Subdomain(c.Object.GetName()))
		for key, value := range c.Object.GetLabels() {
			require.Empty(t, validation.IsQualifiedName(key))
			require.Empty(t, validation.IsValidLabelValue(value), key)
		}
		checkOwner(t, in, c)
		switch o := c.Object.(type) {
		case *corev1.Pod:
			checkPod(t, in, o)
			require.True(t, hash == "" || hash == o.Labels["olm.pod-spec-hash"], "two shapes in one result")
			hash = o.Labels["olm.pod-spec-hash"]
		case *corev1.Service:
			require.Empty(t, validation.IsDNS1035Label(o.Name))
			require.Equal(t, in.CatalogSource.Name, o.Spec.Selector["olm.catalogSource"])
		case *networkingv1.NetworkPolicy:
			if o.Name == in.CatalogSource.Name+"-grpc-server" {
				require.Equal(t, servingLabels(in), o.Spec.PodSelector.MatchLabels)
			}
		case *policyv1.PodDisruptionBudget:
			require.Equal(t, int32(a.Replicas-1), o.Spec.MinAvailable.IntVal)
			require.Equal(t, servingLabels(in), o.Spec.Selector.MatchLabels)
		}
	}
}

// servingLabels returns the labels that the Service, the NetworkPolicies and the PodDisruptionBudget select.
func servingLabels(in catalog.Input) map[string]string {
	return map[string]string{"olm.catalogSource": in.CatalogSource.Name, "olm.managed": "true"}
}

// checkOwner checks that an object has one owner, with the flags that OLM sets for the kind.
func checkOwner(t require.TestingT, in catalog.Input, c olmcore.Create) {
	refs := c.Object.GetOwnerReferences()
	require.Len(t, refs, 1)
	require.Equal(t, in.CatalogSource.UID, refs[0].UID)
	controls := c.Target.Kind == "Pod" || c.Target.Kind == "ServiceAccount" && c.Target.Name == in.CatalogSource.Name
	blocks := c.Target.Kind == "ServiceAccount" && c.Target.Name == in.CatalogSource.Name
	require.Equal(t, controls, refs[0].Controller != nil && *refs[0].Controller, "%s", c.Target)
	require.Equal(t, blocks, refs[0].BlockOwnerDeletion != nil && *refs[0].BlockOwnerDeletion, "%s", c.Target)
}

// checkPod checks that only serving Pods are selected, and that the scheduling fields follow from the spec.
func checkPod(t require.TestingT, in catalog.Input, pod *corev1.Pod) {
	require.LessOrEqual(t, len(pod.Name), 63)
	serving := pod.Labels["olm.catalogSource"]
	candidate := pod.Labels["catalogsource.operators.coreos.com/update"]
	require.True(t, serving == in.CatalogSource.Name && candidate == "" || serving == "" && candidate == in.CatalogSource.Name)
	var asked corev1.PodSpec
	asked.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	if c := in.CatalogSource.Spec.GrpcPodConfig; c != nil {
		asked.Tolerations, asked.Affinity = c.Tolerations, c.Affinity
		if c.NodeSelector != nil {
			asked.NodeSelector = c.NodeSelector
		}
	}
	require.Equal(t, asked.Tolerations, pod.Spec.Tolerations)
	require.Equal(t, asked.NodeSelector, pod.Spec.NodeSelector)
	if affinity := pod.Spec.Affinity; affinity != nil && (asked.Affinity == nil || asked.Affinity.NodeAffinity == nil) {
		require.True(t, affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil, "a node is required")
	}
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		require.True(t, spread.WhenUnsatisfiable == corev1.ScheduleAnyway || in.Config.Spread == catalog.SpreadRequire)
	}
}

// checkLeft checks that updates keep the labels, owners and finalizers of others, and that deleted objects belong to
// the catalog.
func checkLeft(t require.TestingT, in catalog.Input, out catalog.Outcome) {
	for _, action := range out.Actions {
		switch a := action.(type) {
		case olmcore.Update:
			before, after := a.Before, a.After
			require.Equal(t, before.GetFinalizers(), after.GetFinalizers())
			for key := range before.GetLabels() {
				_, kept := after.GetLabels()[key]
				require.True(t, kept, "%s of %s is lost", key, a.Target)
			}
			for _, ref := range before.GetOwnerReferences() {
				kept := slices.ContainsFunc(after.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
				predecessor := ref.Kind == "CatalogSource" && ref.Name == in.CatalogSource.Name && ref.UID != in.CatalogSource.UID
				require.True(t, kept || predecessor, "%s is no owner of %s any more", ref.Name, a.Target)
			}
			if a.Target.Kind == "Pod" {
				require.Equal(t, before.(*corev1.Pod).Spec, after.(*corev1.Pod).Spec, "more than metadata")
				if a.Cause.Reason == catalog.ReasonPodKept {
					require.Equal(t, before.GetLabels(), after.GetLabels())
					continue
				}
				require.True(t, maps.Equal(before.GetAnnotations(), after.GetAnnotations()))
			}
		case olmcore.Delete:
			requireOwned(t, in, a.Target)
		}
	}
}

// objectsOf returns all objects of an input that may belong to the catalog.
func objectsOf(in catalog.Input) []olmcore.Object {
	return slices.Concat(objects(in.Pods.Items), objects(in.Services.Items), objects(in.ServiceAccounts.Items), objects(in.NetworkPolicies.Items),
		objects(in.Roles.Items), objects(in.RoleBindings.Items), objects(in.PodDisruptionBudgets.Items))
}

func objects[O olmcore.Object](items []O) (list []olmcore.Object) {
	for _, o := range items {
		list = append(list, o)
	}
	return list
}

func requireOwned(t require.TestingT, in catalog.Input, target olmcore.Ref) {
	for _, o := range objectsOf(in) {
		if k := olmcore.KeyOf(o); k == target.Key() && o.GetUID() == target.UID {
			heir := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
				return r.Kind == "CatalogSource" && r.Name == in.CatalogSource.Name
			})
			require.True(t, heir || len(o.GetOwnerReferences()) == 0 && o.GetLabels()["olm.managed"] == "true", "%s is somebody else's", target)
			return
		}
	}
	require.Fail(t, "an object is deleted that was not seen", "%s", target)
}

// checkPromises checks an outcome for everything that this package promises.
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

// checkForce checks that deletions name the observed object, that running Pods are only deleted by force on Nodes
// that are not known to work, and that no Pod is replaced while no Node is known to work.
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

// checkTakeOver checks that Pods that take over are ready, current and owned, and that a ready Pod takes over while
// no Pod serves.
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
				"%s is ready, no Pod serves, and it does not take over: %s", pod.Name, a.WaitingText)
		}
	}
}

var reasonSyntax = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// checkStatus checks that each condition is contained once, that conditions of others are not changed, that times are
// whole seconds that never move back, and that an available catalog has a Pod that serves.
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
		if slices.Contains(ownTypes, c.Type) {
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
		require.False(t, poll.After(in.Now.Add(olmcore.ClockTolerance)))
		if had := before.LatestImageRegistryPoll; had != nil && !had.After(in.Now) {
			require.False(t, poll.Time.Before(had.Time), "a poll was taken back")
		}
	}
	for _, c := range after.Conditions {
		require.Zero(t, c.LastTransitionTime.Nanosecond())
		require.True(t, c.LastTransitionTime.IsZero() || c.LastTransitionTime.Location() == time.UTC || before.Conditions != nil)
	}
}

// ownTypes contains the types of the conditions that this package owns.
var ownTypes = []string{
	catalog.ConditionAvailable, catalog.ConditionProgressing, catalog.ConditionDegraded,
	catalog.ConditionConnected, catalog.ConditionUpdatePolled, catalog.ConditionReplicasSpread,
}

func others(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(append([]metav1.Condition{}, conditions...), func(c metav1.Condition) bool { return slices.Contains(ownTypes, c.Type) })
}

// checkPrompt checks that a Pod is created or promoted at once if no Pod serves or starts, a Node could run one, and
// no grace period is running.
func checkPrompt(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	if !runsPods(a) || in.Nodes.Complete && !slices.ContainsFunc(in.Nodes.Items, takesAnything) {
		return
	}
	running := 0
	for _, pod := range a.Pods {
		if !hasRole(in, pod.Name) {
			continue
		}
		switch pod.Class {
		case catalog.ClassServing, catalog.ClassStarting, catalog.ClassUnhealthy, catalog.ClassDisrupted:
			return
		case catalog.ClassOutdated:
			if pod.Ready {
				return
			}
			running++
		case catalog.ClassStuck:
			running++
		}
	}
	if a.WaitingFor == catalog.ReasonBackOff || a.WaitingFor == catalog.ReasonPodRejected || running >= 2*a.Replicas {
		return // a backoff runs, or there are Pods enough
	}
	for _, action := range out.Actions {
		switch a := action.(type) {
		case olmcore.Create:
			if a.Target.Kind == "Pod" && a.Object.GetLabels()["olm.catalogSource"] == in.CatalogSource.Name {
				return
			}
		case olmcore.Update:
			if a.Target.Kind == "Pod" {
				return // the Pods are made from the version that an adoption gives
			}
		}
	}
	require.Fail(t, "nothing serves, and nothing is done about it", "%+v", a)
}

// runsPods reports whether the catalog needs Pods and nothing prevents their creation.
func runsPods(a catalog.Assessment) bool {
	switch a.WaitingFor {
	case catalog.ReasonDeleting, catalog.ReasonSpecInvalid, catalog.ReasonNamespaceUnknown, catalog.ReasonNameConflict, catalog.ReasonConfigMapMissing:
		return false
	}
	return a.Replicas > 0
}

// takesAnything reports whether a Node can run every Pod.
func takesAnything(n *corev1.Node) bool {
	return isReady(n) && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 && n.Labels["kubernetes.io/os"] == "linux"
}

// checkBetterNode checks that no Pod that serves is deleted because its Node recovers, unless all Nodes had failed.
// Its replacement may be deleted. A deletion also counts if it only waits for the record of the Pod that stays.
func checkBetterNode(t require.TestingT, in catalog.Input, out catalog.Outcome) {
	if !slices.ContainsFunc(in.Nodes.Items, takesAnything) {
		return
	}
	var before map[string]bool
	for i, node := range in.Nodes.Items {
		if node == nil || takesAnything(node) || !hasReadyPod(in, node.Name) {
			continue
		}
		better := node.DeepCopy()
		better.Spec = corev1.NodeSpec{}
		better.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(in.Now.Add(-1000 * time.Hour)),
		}}
		healed := in
		healed.Nodes.Items = slices.Clone(in.Nodes.Items)
		healed.Nodes.Items[i] = better
		deleted := decidedDeletions(t, healed, answer(t, healed))
		if len(deleted) == 0 {
			continue
		}
		if before == nil {
			before = decidedDeletions(t, in, out)
		}
		for _, pod := range catalog.Assess(healed).Pods {
			if pod.Serves && pod.Class == catalog.ClassServing {
				require.False(t, pod.Node == node.Name && deleted[pod.Name] && !before[pod.Name], "%s is deleted because its node is better", pod.Name)
			}
		}
	}
}

// decidedDeletions returns the Pods that a manager deletes now or once the Pod that stays is recorded.
func decidedDeletions(t require.TestingT, in catalog.Input, out catalog.Outcome) map[string]bool {
	names := deletedPods(out)
	isRecordMissing := slices.ContainsFunc(out.Actions, func(a olmcore.Action) bool {
		verb, _, cause := a.Describe()
		return verb == olmcore.VerbUpdateStatus || cause.Reason == catalog.ReasonPodKept // the status may be written first
	})
	if isRecordMissing {
		maps.Copy(names, deletedPods(answer(t, recorded(t, in))))
	}
	return names
}

// hasReadyPod reports whether a Pod of a node is ready.
func hasReadyPod(in catalog.Input, node string) bool {
	return slices.ContainsFunc(in.Pods.Items, func(p *corev1.Pod) bool {
		return p != nil && p.Spec.NodeName == node && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
}

func deletedPods(out catalog.Outcome) map[string]bool {
	names := map[string]bool{}
	for _, action := range out.Actions {
		if d, ok := action.(olmcore.Delete); ok && d.Target.Kind == "Pod" {
			names[d.Target.Name] = true
		}
	}
	return names
}

// checkSafety checks that a catalog that serves still serves after any part of the actions, that the number of Pods
// is limited, and that only own objects are changed.
func checkSafety(t require.TestingT, in catalog.Input, out catalog.Outcome, replicas int) {
	serving := map[string]bool{}
	running := 0
	for _, pod := range catalog.Assess(in).Pods {
		if pod.Serves {
			serving[pod.Name] = true
		}
		switch pod.Class {
		case catalog.ClassOutdated, catalog.ClassDisrupted, catalog.ClassUnhealthy, catalog.ClassStarting, catalog.ClassServing, catalog.ClassStuck:
			if hasRole(in, pod.Name) {
				running++
			}
		}
	}
	served := len(serving) > 0
	for _, action := range out.Actions {
		verb, target, cause := action.Describe()
		switch a := action.(type) {
		case olmcore.Create:
			refs := a.Object.GetOwnerReferences()
			require.Len(t, refs, 1, "%s has not one owner", target)
			require.Equal(t, in.CatalogSource.UID, refs[0].UID)
			if target.Kind == "Pod" {
				running++
				require.LessOrEqual(t, running, 2*replicas, "too many Pods")
			}
		case olmcore.Update:
			if target.Kind == v1alpha1.CatalogSourceKind {
				require.Equal(t, catalog.ReasonPodKept, cause.Reason)
				require.Equal(t, in.CatalogSource.UID, target.UID)
				continue
			}
			requireOwn(t, in, a.Before, target)
		case olmcore.Delete:
			if target.Kind != "Pod" {
				require.Contains(t, []string{catalog.ReasonSourceTypeChanged, catalog.ReasonBudgetObsolete, catalog.ReasonObjectDiffers}, cause.Reason)
				continue
			}
			i := slices.IndexFunc(in.Pods.Items, func(p *corev1.Pod) bool { return p.Name == target.Name })
			requireOwn(t, in, in.Pods.Items[i], target)
			if serving[target.Name] && cause.Reason != catalog.ReasonSourceTypeChanged && cause.Reason != catalog.ReasonPodDisrupted {
				kept := keptOf(in)
				require.NotEqual(t, kept, target.Name, "the kept Pod is deleted: %s", cause.Message)
				require.True(t, serving[kept], "%s is deleted and no Pod that serves is kept: %s", target.Name, cause.Message)
			}
			delete(serving, target.Name)
			require.False(t, served && len(serving) == 0 && cause.Reason != catalog.ReasonSourceTypeChanged, "%s of the last Pod that serves: %s", verb, cause.Message)
		}
	}
}

// hasRole reports whether a Pod still has the label of the catalog.
func hasRole(in catalog.Input, name string) bool {
	return slices.ContainsFunc(in.Pods.Items, func(p *corev1.Pod) bool {
		if p == nil || p.Name != name {
			return false
		}
		serving, labelled := p.Labels["olm.catalogSource"]
		return labelled && (serving == in.CatalogSource.Name || serving == "" && p.Labels["catalogsource.operators.coreos.com/update"] == in.CatalogSource.Name)
	})
}

func requireOwn(t require.TestingT, in catalog.Input, o olmcore.Object, target olmcore.Ref) {
	refs := o.GetOwnerReferences()
	orphan := len(refs) == 0 && o.GetLabels()["olm.managed"] == "true" && target.Kind != "ServiceAccount"
	heir := len(refs) == 1 && refs[0].Kind == "CatalogSource" && refs[0].Name == in.CatalogSource.Name
	require.True(t, olmcore.OwnedBy(o, in.CatalogSource.UID) || orphan || heir, "%s is somebody else's", target)
}

// keptOf returns the name of the Pod that the CatalogSource names as the one that stays.
func keptOf(in catalog.Input) string {
	for _, pod := range in.Pods.Items {
		if string(pod.UID) == in.CatalogSource.Annotations[catalog.AnnotationKeptPod] {
			return pod.Name
		}
	}
	return ""
}

func checkEdge(t require.TestingT, in catalog.Input) {
	a := catalog.Assess(in)
	require.True(t, a.State == a.Recorded || a.State.CanFollow(a.Recorded), "%q -> %q is no edge", a.Recorded, a.State)
}
