// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Outcome is a Result and what only the caller can do.
type Outcome struct {
	olmcore.Result
	// Connection says what to do with the gRPC client of the CatalogSource. The answer is Input.Connection of the next call.
	Connection ConnectionRequest
	// Notify says what depends on a change.
	Notify Notify
	// Checkpoint may be handed back in the next Input for this CatalogSource; nil while there is something to do.
	Checkpoint *olmcore.Checkpoint
}

// ConnectionRequest is a request about the gRPC client; it may be repeated without harm. The zero value asks for nothing.
type ConnectionRequest struct {
	Verb ConnectionVerb
	// Address is what to dial, host:port; set with ConnectionConnect only.
	Address string
}

// ConnectionVerb is what to do with a gRPC client.
type ConnectionVerb string

// Connection verbs.
const (
	ConnectionKeep    ConnectionVerb = ""        // leave the client as it is, also when there is none
	ConnectionConnect ConnectionVerb = "Connect" // there shall be a client of that address, and no other
	ConnectionDrop    ConnectionVerb = "Drop"    // close the client
)

// Notify lists what depends on the catalog's content. The zero value says that it did not change.
type Notify struct {
	// InvalidateSnapshot: what was read from this catalog is out of date.
	InvalidateSnapshot bool
	// ResolveNamespaces are the namespaces to resolve again, sorted.
	ResolveNamespaces []string
}

// Reconcile decides what one CatalogSource needs: registry Pods where they can run, the Service, ServiceAccount and
// NetworkPolicies around them, a status that agrees with what is observed, and a gRPC client. The zero Result means that
// nothing is left to do. Every action may be lost, repeated or run in another order; while a Pod serves, no action takes
// the last one away.
//
// The error is an *olmcore.InputError for an input that breaks the contract. A bad spec is no error: the status reports it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncCatalogSources, and
// pkg/controller/registry/reconciler.
// Differs: see docs/deviations.md; above all, Pods of failed nodes are replaced before Kubernetes evicts them, and a
// replacement comes before a deletion.
func Reconcile(in Input) (Outcome, error) { return reconcile(in, classes) }

func reconcile(in Input, table []traits) (Outcome, error) {
	c := in.Checkpoint.Compare(in.Now)
	in.cover(&c)
	if wait, same := c.Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	out := newReport(observe(in, table)).outcome()
	if out.Empty() && out.Connection == (ConnectionRequest{}) && !out.Notify.InvalidateSnapshot {
		c = olmcore.NewCoverage(in.Now, out.Result)
		in.cover(&c)
		out.Checkpoint = c.Checkpoint()
	}
	return out, nil
}

// outcome is what the plan and the status come to.
func (r *report) outcome() (out Outcome) {
	status := r.status()
	out.Connection, out.Notify = r.connectionRequest(), r.notify(status.GRPCConnectionState)
	if r.standing.runsPods() {
		out.Actions = r.registry.Repair()
	}
	out.Actions = append(out.Actions, r.podActions()...)
	leftovers, wait := r.leftovers()
	out.Actions = append(out.Actions, leftovers...)
	write := !equality.Semantic.DeepEqual(status, r.CatalogSource.Status)
	if r.backoff > 0 && !write && len(out.Actions) == len(r.creates) {
		out.Actions = nil
	}
	if write || len(out.Actions) > 0 {
		out.Diagnostics = r.diagnostics()
	}
	if write {
		out.Transitions = r.transitions(status)
		after := r.CatalogSource.DeepCopy()
		after.Status = status
		cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: r.available.Message}
		out.Actions = append(out.Actions, olmcore.UpdateStatusOf(r.CatalogSource, after, cause))
	}
	// The limits keep a work queue from spinning, and a clock that was set from hiding a change for long.
	const soonest, latest = time.Second, 15 * time.Minute
	if d := r.deadline(wait); d > 0 {
		out.RequeueAfter = min(max(d, soonest), latest)
	}
	return out
}

// deadline is the time until the decision may change by the clock alone; 0: never.
func (r *report) deadline(leftovers time.Duration) time.Duration {
	var nearest olmcore.Result
	if r.standing.is(ReasonConfigMapMissing) {
		nearest.Requeue(time.Minute) // OLM's watches miss most ConfigMaps; so may the caller's
	}
	_, failure := r.connectionFailure()
	for _, d := range []time.Duration{r.wait, r.poll.Wait, r.link.wait, failure, leftovers} {
		nearest.Requeue(d)
	}
	for _, p := range r.pods.Items {
		nearest.Requeue(p.Wait)
		if p.Role == roleCandidate && p.Live && !p.Ready {
			nearest.Requeue(p.Left)
		}
	}
	return nearest.RequeueAfter
}

// leftovers remove what only a former source type needed, once the present one serves, and how long it is until they do.
// A registry at an address about which nothing becomes known gets no longer than a rollout.
func (r *report) leftovers() (actions []olmcore.Action, wait time.Duration) {
	address := r.standing.mode == modeAddress
	if !address && !r.standing.runsPods() || r.pods.Outdated > 0 {
		return nil, 0
	}
	cause := olmcore.Cause{Reason: ReasonSourceTypeChanged, Message: "no Pod of this source type needs it"}
	var unneeded []olmcore.Object
	if address {
		cause.Message = "the registry at spec.address serves now"
		for _, p := range r.pods.choose(func(p *registryPod) bool { return p.Owned && p.DeletionTimestamp == nil }) {
			unneeded = append(unneeded, p.Pod)
		}
	}
	for _, o := range append(unneeded, r.registry.Leftovers()...) {
		if o != olmcore.Object(r.registry.Observed.Budget) || address { // else it goes with the replicas, see Repair
			// What changed since it was judged may be of use again.
			actions = append(actions, olmcore.Delete{Target: olmcore.RefOf(o), Cause: cause})
		}
	}
	if len(actions) == 0 || r.available.Status == metav1.ConditionTrue {
		return actions, 0
	}
	recorded := r.recordedNow(ConditionAvailable)
	if !address || recorded == nil || recorded.Status == metav1.ConditionTrue {
		return nil, 0
	}
	if left := r.left(recorded.LastTransitionTime.Time, r.Config.deadline()); left > 0 {
		return nil, left
	}
	return actions, 0
}
