// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Assessment is the decision of Reconcile without objects: for command lines, metrics and tests.
type Assessment struct {
	// Recorded is the recorded state, State the one that is observed.
	Recorded, State State
	// Pods are all Pods that are, or pretend to be, the catalog's, by name.
	Pods []PodReport
	// Replicas is the number of Pods asked for, 0 for an address; Ready is how many of Pods serve now.
	Replicas, Ready int
	// Healthy: it serves, or starts for the first time within its deadline. UpstreamHealthy is OLM's answer, which looks at
	// no Pod's readiness.
	Healthy, UpstreamHealthy bool
	// Connected: the gRPC client works, as in OLM's gauge catalogsource_ready, which is zero for idle clients.
	Connected bool
	// WaitingFor is what is under way, or what holds it up: the Reason and message of ConditionProgressing. Both are empty
	// when nothing is left to do.
	WaitingFor, WaitingText string
	// LastPoll is when the image was polled for the last time, NextPoll when it will be if nothing else is under way then;
	// zero: never.
	LastPoll, NextPoll time.Time
	// Conditions are those that Reconcile would write; their lastTransitionTime is not set.
	Conditions []metav1.Condition
	// Diagnostics are all that hold, also those that Reconcile reported before.
	Diagnostics []olmcore.Diagnostic
	// NextDeadline is when the decision may change by the clock alone; zero: never.
	NextDeadline time.Time
}

// PodReport is what one Pod is worth and why.
type PodReport struct {
	Name, Node string
	// Serves: it is ready, and has the role that the Service selects. Candidate: it is not selected, and waits to take over.
	Serves, Candidate, Ready bool
	Class                    Class
	// NodeState is what its node looks like, since NodeSince. Both are empty for foreign and terminated Pods.
	NodeState NodeState
	NodeSince time.Time
	// Reason is why a lost Pod is lost, or what holds up an unhealthy one.
	Reason string
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
	late := r.pods.any(func(p *registryPod) bool { return p.Late })
	a := Assessment{
		Recorded: r.before, State: r.state, Conditions: r.conditions(), Ready: r.pods.Ready,
		Healthy:         r.state == StateServing || r.state == StateUpdating || r.state == StateStarting && !late,
		UpstreamHealthy: r.upstreamHealthy(),
		Connected:       in.Connection != nil && in.Connection.Address == r.address() && linkOf(in.Connection).isConnected(),
		LastPoll:        r.lastPoll,
		Diagnostics:     r.diagnostics(),
	}
	for i := range r.pods.Items {
		p := &r.pods.Items[i]
		a.Pods = append(a.Pods, PodReport{
			Name: p.Name, Node: p.node(), Serves: p.serves(), Candidate: p.Role == roleCandidate, Ready: p.Ready,
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
	return r.pods.any(func(p *registryPod) bool { return p.Role == roleServing && p.Current && !p.is(corev1.DisruptionTarget) })
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
