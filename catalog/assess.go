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

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/polling"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Assessment is the decision of Reconcile without objects: for command lines,
// metrics and tests.
type Assessment struct {
	// Recorded is the recorded state, State the one that is observed.
	Recorded, State State
	// Pods are all Pods that are, or pretend to be, the catalog's, by name.
	Pods []PodReport
	// Replicas is the number of Pods asked for, 0 for an address; Ready is how many
	// of Pods serve now.
	Replicas, Ready int
	// Healthy: it serves, or starts for the first time within its deadline.
	// UpstreamHealthy is OLM's answer, which looks at no Pod's readiness.
	Healthy, UpstreamHealthy bool
	// Connected: the gRPC client works, as in OLM's gauge catalogsource_ready, which is
	// zero for idle clients.
	Connected bool
	// WaitingFor is what is under way, or what holds it up: the Reason and message of
	// ConditionProgressing. Both are empty when nothing is left to do.
	WaitingFor, WaitingText string
	// LastPoll is when the image was polled for the last time, NextPoll when it will
	// be if nothing else is under way then; zero: never.
	LastPoll, NextPoll time.Time
	// Conditions are those that Reconcile would write; their lastTransitionTime is
	// not set.
	Conditions []metav1.Condition
	// Diagnostics are all that hold, also those that Reconcile reported before.
	Diagnostics []olmcore.Diagnostic
	// NextDeadline is when the decision may change by the clock alone; zero: never.
	NextDeadline time.Time
}

// PodReport is what one Pod is worth and why.
type PodReport struct {
	Name, Node string
	// Serves: it is ready, and has the role that the Service selects. Candidate: it is
	// not selected, and waits to take over.
	Serves, Candidate bool
	Ready             bool
	Class             Class
	// NodeState is what its node looks like, since NodeSince. Both are empty for
	// foreign and terminated Pods.
	NodeState NodeState
	NodeSince time.Time
	// Reason is why a lost Pod is lost, or what holds up an unhealthy one.
	Reason string
}

func notAssessed(in *Input, err error) Assessment {
	d := olmcore.Diagnose(olmcore.Error, ReasonInvalidInput, olmcore.RefOf(in.CatalogSource), "", "%s", err.Error())
	return Assessment{Recorded: StateNotAssessed, State: StateNotAssessed, Diagnostics: []olmcore.Diagnostic{d}}
}

// Assess returns what Reconcile sees. An input that Reconcile refuses gives
// StateNotAssessed, and the error as a Diagnostic with ReasonInvalidInput.
func Assess(in Input) Assessment { return assess(in, pods.Classes) }

func assess(in Input, table pods.Table) Assessment {
	if err := in.validate(); err != nil {
		return notAssessed(&in, err)
	}
	f := observe(&in, table)
	pl := planPods(&f)
	c := report{&f, &pl}.conditions()
	a := Assessment{
		Recorded: recordedState(f.source.Status.Conditions), State: c.state(), Conditions: c.list(f.source.Generation),
		Ready: f.pods.Ready(), Healthy: healthy(c.state(), f.pods), UpstreamHealthy: f.upstreamHealthy(),
		Connected:   in.Connection != nil && in.Connection.Address == f.address() && linkOf(in.Connection).isConnected(),
		LastPoll:    statusMaker{&f, &pl}.lastPoll(),
		Diagnostics: f.diagnostics(&pl, c.degraded),
	}
	for i := range f.pods.Items {
		p := &f.pods.Items[i]
		a.Pods = append(a.Pods, PodReport{
			Name: p.Name(), Node: p.Object.Spec.NodeName, Serves: p.Serves(), Candidate: p.Role == pods.RoleCandidate, Ready: p.Ready,
			Class: p.Class, NodeState: p.Node, NodeSince: p.NodeSince, Reason: cmp.Or(p.Lost, p.Trouble),
		})
	}
	if f.standing.mode != modeAddress {
		a.Replicas = f.set.replicas
	}
	if c.progressing.Reason != ReasonComplete {
		a.WaitingFor, a.WaitingText = c.progressing.Reason, c.progressing.Message
	}
	if f.poll.On {
		a.NextPoll = in.Now.Add(max(f.poll.Left, 0))
	}
	_, wait := f.leftovers(c.available.Status)
	if d := f.deadline(&pl, wait); d > 0 {
		a.NextDeadline = in.Now.Add(d)
	}
	return a
}

// healthy reports whether Subscriptions may count on the catalog: it serves, or
// starts for the first time and is not late.
func healthy(state State, list pods.List) bool {
	late := list.Any(func(p *pods.Pod) bool { return p.Late })
	return state == StateServing || state == StateUpdating || state == StateStarting && !late
}

// upstreamHealthy is OLM's health, which leaves out readiness, nodes and connections.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
// Differs: it deletes nothing, and the label of the ServiceAccount does not matter.
func (f *facts) upstreamHealthy() bool {
	switch {
	case f.standing.mode == modeAddress:
		return true
	case !f.standing.runsPods() || !registry.ServesAsInOLM(f.objects, f.needed, f.unread):
		return false
	case f.standing.mode == modeConfigMap && !refersTo(f.source.Status.ConfigMapResource, f.configMap):
		return false
	}
	return f.pods.Any(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Current && !p.DisruptionTarget() })
}

// diagnostics say what is wrong, and what in a new spec has no effect.
func (f *facts) diagnostics(pl *plan, degraded metav1.Condition) (list []olmcore.Diagnostic) {
	say := func(severity olmcore.Severity, reason, path, format string, args ...any) {
		list = append(list, olmcore.Diagnose(severity, reason, olmcore.RefOf(f.source), path, format, args...))
	}
	if degraded.Status == metav1.ConditionTrue {
		severity := olmcore.Warning
		if f.pods.Ready() == 0 {
			severity = olmcore.Error
		}
		say(severity, degraded.Reason, f.standing.path, "%s", degraded.Message)
	}
	if !f.standing.runsPods() {
		return list
	}
	if v := pl.verdict; v.Outcome == ReasonCandidateFailed || v.Outcome == ReasonCandidateTimedOut {
		say(olmcore.Warning, v.Outcome, "", "%s", polling.Text(v))
	}
	if f.source.Spec.Address != "" {
		what := "spec.image"
		if f.standing.mode == modeConfigMap {
			what = "spec.configMap"
		}
		say(olmcore.Info, ReasonAddressIgnored, "spec.address", "spec.address has no effect beside %s", what)
	}
	list = append(list, podConfigDoubts(f.source)...)
	for _, unread := range f.notRead() {
		say(olmcore.Info, ReasonNotRead, "", "%s", unread)
	}
	if f.registry.AccountShared {
		say(olmcore.Info, ReasonServiceAccountShared, "", "the service account %s is unmanaged or owned by another and is used as it is", f.objects.Account.Name)
	}
	for _, key := range f.set.unusable {
		say(olmcore.Warning, ReasonHAConfigInvalid, "metadata.annotations["+key+"]", "the annotation %s cannot be used, the default is", key)
	}
	return list
}

// notRead lists the kinds that matter for the CatalogSource and were not read.
func (f *facts) notRead() (list []error) {
	for _, kind := range []struct {
		object  olmcore.Object
		missing bool
	}{
		{&corev1.Node{}, !f.nodes.Complete && !f.ignoreNodes},
		{&networkingv1.NetworkPolicy{}, f.unread.NetworkPolicies},
		{&rbacv1.Role{}, f.unread.Roles && f.needed.Role != nil},
		{&rbacv1.RoleBinding{}, f.unread.RoleBindings && f.needed.RoleBinding != nil},
		{&policyv1.PodDisruptionBudget{}, f.unread.Budgets && f.needed.Budget != nil},
	} {
		if known, _ := olmcore.KindOf(olmcore.GVKOf(kind.object).GroupKind()); kind.missing {
			list = append(list, &olmcore.NotReadError{Kind: known.GroupVersionKind, Unknown: known.Unknown})
		}
	}
	return list
}
