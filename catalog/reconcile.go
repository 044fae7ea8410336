// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Outcome is a Result and what only the caller can do.
type Outcome struct {
	olmcore.Result
	Connection ConnectionRequest   // what to do with the gRPC client; the answer is Input.Connection of the next call
	Notify     Notify              // what depends on a change
	Checkpoint *olmcore.Checkpoint // may be handed back in the next Input for this CatalogSource; nil while there is something to do
}

// ConnectionRequest is a request about the gRPC client; it may be repeated without harm. The zero value asks for nothing.
type ConnectionRequest struct {
	Verb    ConnectionVerb
	Address string // what to dial, host:port; set with ConnectionConnect only
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
	InvalidateSnapshot bool     // what was read from this catalog is out of date
	ResolveNamespaces  []string // the namespaces to resolve again, sorted
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
	if wait, same := in.cover(in.Checkpoint.Compare(in.Now)).Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	out := newReport(observe(in, table)).outcome(table)
	if out.Empty() && out.Connection == (ConnectionRequest{}) && !out.Notify.InvalidateSnapshot {
		out.Checkpoint = in.cover(olmcore.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

func (r *report) outcome(table []traits) (out Outcome) {
	status := r.status()
	out.Connection, out.Notify = r.connectionRequest(), r.notify(status.GRPCConnectionState)
	if r.standing.runsPods() {
		out.Actions = r.registry.Repair()
	}
	out.Actions = append(out.Actions, r.podActions()...)
	leftovers, wait := r.leftovers()
	out.Actions = append(out.Actions, leftovers...)
	write := !equality.Semantic.DeepEqual(status, r.CatalogSource.Status) && !r.isPublishedAhead(table)
	if !write || r.kept.named {
		out.Actions = append(out.Actions, r.kept.record(r.CatalogSource)...) // the CatalogSource is written once
	}
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
	var missing time.Duration
	if r.standing.reason == ReasonConfigMapMissing {
		missing = time.Minute // OLM's watches miss most ConfigMaps; so may the caller's
	}
	_, failure := r.connectionFailure()
	next := olmcore.Nearest(missing, r.wait, r.poll.Wait, r.link.wait, failure, leftovers)
	for _, p := range r.pods.Items {
		next = olmcore.Nearest(next, p.Wait)
		if p.Role == roleCandidate && p.Live && !p.Ready {
			next = olmcore.Nearest(next, p.Left)
		}
	}
	return next
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
			actions = append(actions, olmcore.DeleteOf(o, cause))
		}
	}
	if len(actions) == 0 || r.available.Status == metav1.ConditionTrue {
		return actions, 0
	}
	recorded := r.recordedNow(ConditionAvailable)
	if !address || recorded == nil || recorded.Status == metav1.ConditionTrue {
		return nil, 0
	}
	if left := recorded.LastTransitionTime.Add(r.Config.deadline()).Sub(r.Now); left > 0 {
		return nil, left
	}
	return actions, 0
}

// Assessment is the decision of Reconcile without objects: for command lines, metrics and tests.
type Assessment struct {
	Recorded, State State       // the recorded state, and the one that is observed
	Pods            []PodReport // all that are, or pretend to be, the catalog's, by name
	Replicas        int         // the number of Pods asked for, 0 for an address
	Ready           int         // how many of Pods serve now
	Healthy         bool        // it serves, or starts for the first time within its deadline
	UpstreamHealthy bool        // OLM's answer, which looks at no Pod's readiness
	Connected       bool        // the gRPC client works, as in OLM's gauge catalogsource_ready, which is zero for idle clients
	// WaitingFor is what is under way, or what holds it up: the Reason and message of ConditionProgressing. Both are empty
	// when nothing is left to do.
	WaitingFor, WaitingText string
	LastPoll                time.Time            // when the image was polled for the last time; zero: never
	NextPoll                time.Time            // when it will be if nothing else is under way then; zero: never
	Conditions              []metav1.Condition   // those that Reconcile would write; their lastTransitionTime is not set
	Diagnostics             []olmcore.Diagnostic // all that hold, also those that Reconcile reported before
	NextDeadline            time.Time            // when the decision may change by the clock alone; zero: never
}

// PodReport is what one Pod is worth and why.
type PodReport struct {
	Name, Node string
	Serves     bool // it is ready, and has the role that the Service selects
	Candidate  bool // it is not selected, and waits to take over
	Ready      bool
	Class      Class
	NodeState  NodeState // what its node looks like; empty for foreign and terminated Pods
	NodeSince  time.Time // since when
	Reason     string    // why a lost Pod is lost, or what holds up an unhealthy one
}

// Assess returns what Reconcile sees. An input that Reconcile refuses gives StateNotAssessed, and the error as a Diagnostic
// with ReasonInvalidInput.
func Assess(in Input) Assessment { return assess(in, classes) }

func assess(in Input, table []traits) Assessment {
	if err := in.validate(); err != nil {
		d := olmcore.Diagnose(olmcore.Error, ReasonInvalidInput, olmcore.RefOf(in.CatalogSource), "", "%s", err.Error())
		return Assessment{Recorded: StateNotAssessed, State: StateNotAssessed, Diagnostics: []olmcore.Diagnostic{d}}
	}
	r := newReport(observe(in, table))
	late := slices.ContainsFunc(r.pods.Items, func(p *registryPod) bool { return p.Late })
	a := Assessment{
		Recorded: r.before, State: r.state, Conditions: r.conditions(), Ready: r.pods.Ready,
		Healthy:         r.state == StateServing || r.state == StateUpdating || r.state == StateStarting && !late,
		UpstreamHealthy: r.upstreamHealthy(),
		Connected:       in.Connection != nil && in.Connection.Address == r.address() && linkOf(in.Connection).isConnected(),
		LastPoll:        r.lastPoll,
		Diagnostics:     r.diagnostics(),
	}
	for _, p := range r.pods.Items {
		a.Pods = append(a.Pods, PodReport{
			Name: p.Name, Node: p.Spec.NodeName, Serves: p.serves(), Candidate: p.Role == roleCandidate, Ready: p.Ready,
			Class: p.Class, NodeState: p.Node, NodeSince: p.NodeSince, Reason: cmp.Or(p.Lost, p.Trouble),
		})
	}
	if r.standing.mode != modeAddress {
		a.Replicas = r.Config.Replicas
	}
	if r.progressing.Reason != ReasonComplete {
		a.WaitingFor, a.WaitingText = r.progressing.Reason, r.progressing.Message
	}
	if r.poll.On {
		a.NextPoll = in.Now.Add(max(r.poll.Left, 0))
	}
	_, wait := r.leftovers()
	if d := r.deadline(wait); d > 0 {
		a.NextDeadline = in.Now.Add(d)
	}
	return a
}

// upstreamHealthy is OLM's health, which leaves out readiness, nodes and connections.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
// Differs: it deletes nothing, and the label of the ServiceAccount does not matter.
func (r *report) upstreamHealthy() bool {
	switch {
	case r.standing.mode == modeAddress:
		return true
	case !r.standing.runsPods() || !r.registry.ServesAsInOLM():
		return false
	case r.standing.mode == modeConfigMap && !refersTo(r.CatalogSource.Status.ConfigMapResource, r.ConfigMap):
		return false
	}
	return slices.ContainsFunc(r.pods.Items, func(p *registryPod) bool { return p.Role == roleServing && p.Current && !p.is(corev1.DisruptionTarget) })
}

// diagnostics say what is wrong, and what in a new spec has no effect.
func (r *report) diagnostics() (list []olmcore.Diagnostic) {
	say := func(severity olmcore.Severity, reason, path, message string) {
		list = append(list, olmcore.Diagnose(severity, reason, olmcore.RefOf(r.CatalogSource), path, "%s", message))
	}
	if r.degraded.Status == metav1.ConditionTrue {
		severity := olmcore.Warning
		if r.pods.Ready == 0 {
			severity = olmcore.Error
		}
		say(severity, r.degraded.Reason, r.standing.path, r.degraded.Message)
	}
	if !r.standing.runsPods() {
		return list
	}
	if v := r.verdict; v.Outcome == ReasonCandidateFailed || v.Outcome == ReasonCandidateTimedOut {
		say(olmcore.Warning, v.Outcome, "", v.message())
	}
	if r.CatalogSource.Spec.Address != "" {
		what := "spec.image"
		if r.standing.mode == modeConfigMap {
			what = "spec.configMap"
		}
		say(olmcore.Info, ReasonAddressIgnored, "spec.address", "spec.address has no effect beside "+what)
	}
	list = append(list, podConfigDoubts(r.CatalogSource)...)
	needed, unread := &r.registry.Needed, r.registry.Unread
	notRead := func(missing bool, group, kind string) {
		if known, _ := olmcore.KindOf(schema.GroupKind{Group: group, Kind: kind}); missing {
			say(olmcore.Info, ReasonNotRead, "", (&olmcore.NotReadError{Kind: known.GroupVersionKind, Unknown: known.Unknown}).Error())
		}
	}
	notRead(!r.Nodes.Complete && !r.Config.IgnoreNodes, corev1.GroupName, "Node")
	notRead(unread.NetworkPolicies, networkingv1.GroupName, "NetworkPolicy")
	notRead(unread.Roles && needed.Role != nil, rbacv1.GroupName, "Role")
	notRead(unread.RoleBindings && needed.RoleBinding != nil, rbacv1.GroupName, "RoleBinding")
	notRead(unread.Budgets && needed.Budget != nil, policyv1.GroupName, "PodDisruptionBudget")
	if r.registry.AccountShared {
		name := r.registry.Observed.Account.Name
		say(olmcore.Info, ReasonServiceAccountShared, "", "the service account "+name+" is unmanaged or owned by another and is used as it is")
	}
	for _, key := range r.unusable {
		say(olmcore.Warning, ReasonHAConfigInvalid, "metadata.annotations["+key+"]", "the annotation "+key+" cannot be used, the default is")
	}
	return list
}
