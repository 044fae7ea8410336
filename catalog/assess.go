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

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Assessment contains the decision of Reconcile without objects, for command lines, metrics and tests.
type Assessment struct {
	// Recorded is the state in the recorded conditions. State is the observed state.
	Recorded, State State
	// Pods contains all Pods that the CatalogSource owns or that have its labels, sorted by name.
	Pods []PodReport
	// Replicas is the configured number of Pods. It is 0 for a registry at spec.address. Ready is the number of Pods that
	// serve.
	Replicas, Ready int
	// Healthy is true if the catalog serves, or if it is starting for the first time and its deadline has not passed.
	Healthy bool
	// UpstreamHealthy is the result of OLM's health check, which ignores the readiness of Pods.
	UpstreamHealthy bool
	// Connected is true if the gRPC client works. Unlike OLM's gauge catalogsource_ready, it is true for idle clients.
	Connected bool
	// WaitingFor is the reason of ConditionProgressing, and WaitingText is its message. Both are empty if the reason is
	// ReasonComplete.
	WaitingFor, WaitingText string
	// LastPoll is the time of the last poll of the image, or zero if there was none. NextPoll is the time of the next
	// poll, or zero if the image is not polled. Other work of the catalog may delay that poll.
	LastPoll, NextPoll time.Time
	// Conditions contains the conditions that Reconcile would write. Their lastTransitionTime is not set.
	Conditions []metav1.Condition
	// Diagnostics contains all diagnostics, including those that Reconcile reported before.
	Diagnostics []olmcore.Diagnostic
	// NextDeadline is the time at which the decision may change without an event. It is zero if there is no such time.
	NextDeadline time.Time
}

// PodReport describes one Pod and its class.
type PodReport struct {
	Name, Node string
	// Serves is true if the Pod is ready and the Service selects it.
	Serves bool
	// Candidate is true if the Service does not select the Pod yet.
	Candidate bool
	// Ready is true if the Ready condition of the Pod is True.
	Ready bool
	Class Class
	// NodeState is the state of the Pod's Node. NodeSince is the time at which the Node entered the state, or an earlier
	// time if the exact time is unknown. NodeState is empty for foreign and terminated Pods.
	NodeState NodeState
	NodeSince time.Time
	// Reason explains why a Pod of ClassLost is lost, or why a Pod of ClassUnhealthy does not become ready.
	Reason string
}

// Assess returns the observations and the decision of Reconcile, without actions. If the Input is invalid, the state is
// StateNotAssessed and the Diagnostic has ReasonInvalidInput.
func Assess(in Input) Assessment { return assess(in, podClasses) }

func assess(in Input, classes []podClass) Assessment {
	if err := in.validate(); err != nil {
		d := olmcore.Diagnose(olmcore.Error, ReasonInvalidInput, olmcore.RefOf(in.CatalogSource), "", "%s", err.Error())
		return Assessment{Recorded: StateNotAssessed, State: StateNotAssessed, Diagnostics: []olmcore.Diagnostic{d}}
	}
	f := observe(&in, classes)
	d := decide(f)
	c := report(f, d)
	a := Assessment{
		Recorded:        recordedState(f.source.Status.Conditions),
		State:           c.state(),
		Pods:            podReports(f),
		Ready:           len(f.pods.serving.ready()),
		Healthy:         isHealthy(f, c.state()),
		UpstreamHealthy: isHealthyInOLM(f),
		Connected:       f.ownClient() != nil && ofClient(f.ownClient()).isConnected(),
		LastPoll:        lastPoll(f, d),
		Conditions:      c.list(f.source.Generation),
		Diagnostics:     diagnostics(f, d, c),
	}
	if f.standing.mode != modeAddress {
		a.Replicas = f.config.Replicas
	}
	if c.progressing.Reason != ReasonComplete {
		a.WaitingFor = c.progressing.Reason
		a.WaitingText = c.progressing.Message
	}
	if f.poll.on {
		a.NextPoll = f.now.Add(max(f.poll.left, 0))
	}
	if next := nextDeadline(f, d); next > 0 {
		a.NextDeadline = f.now.Add(next)
	}
	return a
}

// podReports returns a report for each Pod.
func podReports(f *facts) (reports []PodReport) {
	for _, p := range f.pods.all {
		reports = append(reports, PodReport{
			Name: p.Name, Node: p.Spec.NodeName,
			Serves: p.isServing(), Candidate: p.role == roleCandidate, Ready: p.ready,
			Class: p.class.Class, NodeState: p.node.State, NodeSince: p.nodeSince,
			Reason: cmp.Or(p.lost, p.problem),
		})
	}
	return reports
}

// isHealthy returns Assessment.Healthy.
func isHealthy(f *facts, state State) bool {
	switch state {
	case StateServing, StateUpdating:
		return true
	case StateStarting:
		return !f.pods.all.any(func(p *pod) bool { return p.late })
	}
	return false
}

// isHealthyInOLM is OLM's health check, which ignores readiness, Nodes and connections.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
// Differs: isHealthyInOLM deletes nothing, and ignores the label of the ServiceAccount.
func isHealthyInOLM(f *facts) bool {
	switch {
	case f.standing.mode == modeAddress:
		return true
	case !f.standing.runsPods() || !f.registry.ServesAsInOLM():
		return false
	case f.standing.mode == modeConfigMap && !references(f.source.Status.ConfigMapResource, f.registry.ConfigMap):
		return false
	}
	return f.pods.all.any(func(p *pod) bool {
		return p.role == roleServing && p.current && !p.hasCondition(corev1.DisruptionTarget)
	})
}

// diagnostics reports what is wrong, and what has no effect in the spec.
func diagnostics(f *facts, d decision, c conditions) (list []olmcore.Diagnostic) {
	report := func(severity olmcore.Severity, reason, path, message string) {
		list = append(list, olmcore.Diagnose(severity, reason, olmcore.RefOf(f.source), path, "%s", message))
	}
	if c.degraded.Status == metav1.ConditionTrue {
		severity := olmcore.Warning
		if len(f.pods.serving.ready()) == 0 {
			severity = olmcore.Error
		}
		report(severity, c.degraded.Reason, f.standing.path, c.degraded.Message)
	}
	if !f.standing.runsPods() {
		return list
	}
	if d.poll.reason == ReasonCandidateFailed || d.poll.reason == ReasonCandidateTimedOut {
		report(olmcore.Warning, d.poll.reason, "", d.poll.message())
	}
	if f.source.Spec.Address != "" {
		used := "spec.image"
		if f.standing.mode == modeConfigMap {
			used = "spec.configMap"
		}
		report(olmcore.Info, ReasonAddressIgnored, "spec.address", "spec.address has no effect beside "+used)
	}
	list = append(list, podConfigDiagnostics(f.source)...)
	for _, unread := range unreadKinds(f) {
		report(olmcore.Info, ReasonNotRead, "", unread.Error())
	}
	if f.registry.AccountShared {
		name := f.registry.Observed.Account.Name
		message := "the service account " + name + " is unmanaged or owned by another and is used as it is"
		report(olmcore.Info, ReasonServiceAccountShared, "", message)
	}
	for _, annotation := range f.badAnnotations {
		path := "metadata.annotations[" + annotation + "]"
		report(olmcore.Warning, ReasonHAConfigInvalid, path, "the annotation "+annotation+" is invalid, so the default is used")
	}
	return list
}

// optionalKinds contains the kind of each optional list of the Input, by the name of its field.
var optionalKinds = map[string]schema.GroupKind{
	"Nodes":                {Group: corev1.GroupName, Kind: "Node"},
	"NetworkPolicies":      {Group: networkingv1.GroupName, Kind: "NetworkPolicy"},
	"Roles":                {Group: rbacv1.GroupName, Kind: "Role"},
	"RoleBindings":         {Group: rbacv1.GroupName, Kind: "RoleBinding"},
	"PodDisruptionBudgets": {Group: policyv1.GroupName, Kind: "PodDisruptionBudget"},
}

// unreadKinds returns an error for each kind that this CatalogSource needs and that was not read.
func unreadKinds(f *facts) (unread []*olmcore.NotReadError) {
	lists := inputs.UnreadLists()
	f.in.lists(&lists)
	for _, field := range lists.Unread() {
		needed := true
		switch field {
		case "Nodes":
			needed = !f.config.IgnoreNodes
		case "Roles":
			needed = f.registry.Needed.Role != nil
		case "RoleBindings":
			needed = f.registry.Needed.RoleBinding != nil
		case "PodDisruptionBudgets":
			needed = f.registry.Needed.Budget != nil
		}
		if needed {
			kind, _ := olmcore.KindOf(optionalKinds[field])
			unread = append(unread, &olmcore.NotReadError{Kind: kind.GroupVersionKind, Unknown: kind.Unknown})
		}
	}
	return unread
}
