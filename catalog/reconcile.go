// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is the result of Reconcile: the actions to run, plus requests that only the caller can fulfil.
type Outcome struct {
	olmcore.Result
	// Connection asks the caller to open or close the gRPC client. Pass the state of the client as Input.Connection of the
	// next call.
	Connection ConnectionRequest
	// Notify contains what the caller must refresh because the content of the catalog changes.
	Notify Notify
	// Checkpoint may be passed in the next Input for this CatalogSource. Checkpoint is nil if the Outcome contains actions
	// or requests.
	Checkpoint *olmcore.Checkpoint
}

// ConnectionRequest asks the caller to open or close the gRPC client. The same request may occur several times. The
// zero value requests nothing.
type ConnectionRequest struct {
	Verb ConnectionVerb
	// Address is the address to connect to, as host:port. The address is set only with ConnectionConnect.
	Address string
}

// ConnectionVerb is the requested operation on the gRPC client.
type ConnectionVerb string

// Connection verbs.
const (
	ConnectionKeep    ConnectionVerb = ""        // change nothing, even if there is no client
	ConnectionConnect ConnectionVerb = "Connect" // keep exactly one client, for the address of the request
	ConnectionDrop    ConnectionVerb = "Drop"    // close the client
)

// Notify contains what the caller must refresh because the content of the catalog changes. The zero value means that
// the content does not change.
type Notify struct {
	// InvalidateSnapshot is true if the caller must discard content that it read from the catalog.
	InvalidateSnapshot bool
	// ResolveNamespaces contains the namespaces to resolve again, sorted.
	ResolveNamespaces []string
}

// Reconcile decides what one CatalogSource needs:
//   - registry Pods on Nodes that can run them
//   - the Service, ServiceAccount and NetworkPolicies of these Pods
//   - a status that agrees with the observed objects
//   - a gRPC client
//
// The zero Result means that nothing is left to do. Actions may be lost, repeated or executed in another order. No
// action removes the last Pod that serves, unless Config.ForceDelete is ForceDeleteUpstream.
//
// The error is an *olmcore.InputError if the Input breaks its contract. An invalid spec is not an error: the status
// reports it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncCatalogSources, and
// pkg/controller/registry/reconciler.
// Differs: see docs/deviations.md. Above all, Pods of failed Nodes are replaced before Kubernetes evicts them, and a
// replacement serves before the old Pod is deleted.
func Reconcile(in Input) (Outcome, error) { return reconcile(in, podClasses) }

func reconcile(in Input, classes []podClass) (Outcome, error) {
	if wait, same := in.cover(in.Checkpoint.Compare(in.Now)).Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	return reconcileChanged(in, classes)
}

// reconcileChanged reconciles an Input that the Checkpoint does not cover. It is a separate function so that reconcile
// does not allocate the Input, which facts reference.
func reconcileChanged(in Input, classes []podClass) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	f := observe(&in, classes)
	d := decide(f)
	out := outcome(f, d, report(f, d))
	if out.Empty() && out.Connection == (ConnectionRequest{}) && !out.Notify.InvalidateSnapshot {
		out.Checkpoint = in.cover(inputs.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// outcome returns the actions of a decision, with the requests and diagnostics for the caller.
func outcome(f *facts, d decision, c conditions) (out Outcome) {
	status := newStatus(f, d, c)
	writeStatus := !equality.Semantic.DeepEqual(status, f.source.Status) && !isPublishedAhead(f, d)
	out.Connection = connectionRequest(f)
	out.Notify = notify(f, d, c, status.GRPCConnectionState)

	// 1. Repair the objects around the Pods, then change Pods, then remove objects of a former source type.
	if f.standing.runsPods() {
		out.Actions = f.registry.Repair()
	}
	out.Actions = append(out.Actions, podActions(f, d)...)
	leftovers, _ := removeLeftovers(f)
	out.Actions = append(out.Actions, leftovers...)
	// 2. Record the Pod that stays. No run writes the CatalogSource twice: if the status must be written, too, the next
	// reconcile writes the annotation.
	if !writeStatus || d.kept.named {
		out.Actions = append(out.Actions, d.kept.record(f.source)...)
	}
	// 3. Skip the attempt to create a rejected Pod while it waits. If there are other actions, the attempt is not
	// skipped: LastRun only records objects of the last run, so the rejection would be forgotten.
	onlyCreates := len(out.Actions) == len(d.creates) && !writeStatus
	if d.rejected.retryIn > 0 && onlyCreates {
		out.Actions = nil
	}
	// 4. Write the status.
	if writeStatus {
		out.Transitions = transitions(f, c, status)
		after := f.source.DeepCopy()
		after.Status = status
		cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: c.available.Message}
		out.Actions = append(out.Actions, olmcore.UpdateStatusOf(f.source, after, cause))
	}
	if len(out.Actions) > 0 {
		out.Diagnostics = diagnostics(f, d, c)
	}
	// 5. Requeue. The lower limit protects the work queue, the upper limit protects from a clock that was set back.
	const soonest, latest = time.Second, 15 * time.Minute
	if next := nextDeadline(f, d); next > 0 {
		out.RequeueAfter = min(max(next, soonest), latest)
	}
	return out
}

// maxPredictions limits the deadlines within olmcore.ClockTolerance for which a status is predicted.
const maxPredictions = 16

// isPublishedAhead reports whether the recorded status is the one that this manager would write within
// olmcore.ClockTolerance if nothing else changes. Then a manager whose clock is ahead wrote it, and it is kept.
// Otherwise the two managers would overwrite each other's status.
func isPublishedAhead(f *facts, d decision) bool {
	later, laterDecision := f, d
	for range maxPredictions {
		step := nextDeadline(later, laterDecision)
		at := later.now.Add(step)
		if step <= 0 || at.Sub(f.now) > olmcore.ClockTolerance {
			return false
		}
		later = predict(f, at)
		laterDecision = decide(later)
		status := newStatus(later, laterDecision, report(later, laterDecision))
		if equality.Semantic.DeepEqual(status, f.source.Status) {
			return true
		}
	}
	return false
}

// podActions builds the actions for the Pods: new Pods first, then candidates that become active, then Pods that are
// deleted.
func podActions(f *facts, d decision) (actions []olmcore.Action) {
	avoid := nodesToAvoid(f)
	names := f.registry.FreeNames(f.in.Pods.Items, len(d.creates))
	for i, request := range d.creates {
		actions = append(actions, olmcore.CreateOf(f.registry.Pod(names[i], request, avoid), request.Cause))
	}
	for _, p := range d.promotes {
		cause := olmcore.Cause{Reason: ReasonCandidateReady, Message: "the candidate becomes active"}
		if p.role == roleServing {
			cause = olmcore.Cause{Reason: ReasonObjectDiffers, Message: "the Service does not select the Pod"}
		}
		actions = append(actions, olmcore.UpdateOf(p.Pod, registry.Promoted(p.Pod, f.source.Name), cause))
	}
	deletes := slices.Clone(d.deletes)
	slices.SortStableFunc(deletes, func(a, b deletion) int {
		return cmp.Or(cmp.Compare(b.gracePeriodSeconds, a.gracePeriodSeconds), strings.Compare(a.pod.Name, b.pod.Name))
	})
	for _, o := range deletes {
		action := olmcore.DeleteOf(o.pod.Pod, o.cause)
		action.GracePeriodSeconds = new(o.gracePeriodSeconds)
		actions = append(actions, action)
	}
	return actions
}

// nodesToAvoid returns the Nodes of existing Pods that new Pods should avoid, at most 10.
func nodesToAvoid(f *facts) (nodes []string) {
	for _, p := range f.pods.all {
		if p.Spec.NodeName != "" && (p.node.Avoid || p.class.Avoid) {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	return nodes[:min(len(nodes), 10)]
}

// nextDeadline returns the time until the outcome may change without an event. 0: never. All deadlines meet here.
func nextDeadline(f *facts, d decision) time.Duration {
	_, leftoversIn := removeLeftovers(f)
	return olmcore.Nearest(f.changesIn(), olmcore.Nearest(d.waits...), leftoversIn)
}

// removeLeftovers deletes objects that only a former source type needed, once the present source serves. If it is
// unknown whether the registry at an address serves, they are deleted after the time that a rollout may take. wait is
// the time until then.
func removeLeftovers(f *facts) (actions []olmcore.Action, wait time.Duration) {
	isAddress := f.standing.mode == modeAddress
	if !isAddress && !f.standing.runsPods() || len(f.pods.outdated) > 0 {
		return nil, 0
	}
	// 1. Wait until the present source serves.
	actions = leftoverDeletions(f, isAddress)
	if len(actions) == 0 || f.serves() {
		return actions, 0
	}
	recorded := f.recordedForSpec(ConditionAvailable)
	if !isAddress || recorded == nil || recorded.Status == metav1.ConditionTrue {
		return nil, 0
	}
	// 2. Or until an address had as long as a rollout.
	left := recorded.LastTransitionTime.Add(f.config.startDeadline()).Sub(f.now)
	if left > 0 {
		return nil, left
	}
	return actions, 0
}

// leftoverDeletions returns the deletions of objects that the present source type does not need.
func leftoverDeletions(f *facts, isAddress bool) (actions []olmcore.Action) {
	cause := olmcore.Cause{Reason: ReasonSourceTypeChanged, Message: "no Pod of this source type needs it"}
	var leftovers []olmcore.Object
	if isAddress {
		cause.Message = "the registry at spec.address serves now"
		for _, p := range f.pods.all {
			if p.owned && p.DeletionTimestamp == nil {
				leftovers = append(leftovers, p.Pod)
			}
		}
	}
	for _, o := range append(leftovers, f.registry.Leftovers()...) {
		isBudget := o == olmcore.Object(f.registry.Observed.Budget)
		if isBudget && !isAddress {
			continue // Repair deletes it
		}
		actions = append(actions, olmcore.DeleteOf(o, cause))
	}
	return actions
}

// notify returns a Notify if the content changes: a client connects, candidates become active, or the CatalogSource is
// deleted.
func notify(f *facts, d decision, c conditions, after *v1alpha1.GRPCConnectionState) Notify {
	before := f.source.Status.GRPCConnectionState
	isReady := after != nil && after.LastObservedState == stateReady
	wasReady := before != nil && before.LastObservedState == stateReady
	isDeleted := c.state() == StateDeleting && recordedState(f.source.Status.Conditions) != StateDeleting
	connects := isReady && !wasReady
	if !connects && !isDeleted && len(d.promotes) == 0 {
		return Notify{}
	}
	namespaces := []string{f.source.Namespace}
	if f.source.Namespace == f.config.GlobalCatalogNamespace {
		namespaces = append(namespaces, f.in.Subscribers...)
		slices.Sort(namespaces)
		namespaces = slices.Compact(namespaces)
	}
	return Notify{InvalidateSnapshot: true, ResolveNamespaces: namespaces}
}
