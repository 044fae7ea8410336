// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// State is what a CatalogSource is, in one word. It follows from the conditions Available and Progressing, so the recorded one
// can be read from any status.
type State string

// States.
const (
	StateNew         State = ""            // no condition is recorded yet
	StateStarting    State = "Starting"    // nothing serves yet, the first Pods are starting
	StateServing     State = "Serving"     // it serves and nothing is under way
	StateUpdating    State = "Updating"    // it serves, and Pods are started or replaced
	StateRecovering  State = "Recovering"  // nothing serves, and Pods are being replaced
	StateUnavailable State = "Unavailable" // nothing serves, and nothing can be done about it now
	StateUnknown     State = "Unknown"     // whether it serves is not known
	StateInvalid     State = "Invalid"     // nothing serves, and the spec cannot be carried out
	StateDeleting    State = "Deleting"    // it is being deleted
	StateNotAssessed State = "NotAssessed" // no state of a CatalogSource: Assess was handed an Input that breaks the contract
)

// graph is the state graph: what one reconcile may find after another. Every state is a view of the cluster, and a cluster may
// have gone anywhere since. Only the first state and the last are special.
var graph = stateGraph()

func stateGraph() (g olmcore.Graph[State]) {
	life := []State{StateStarting, StateServing, StateUpdating, StateRecovering, StateUnavailable, StateUnknown, StateInvalid}
	// Once a catalog has served, its Pods are no longer the first.
	begun := []State{StateServing, StateUpdating, StateRecovering}
	for _, from := range append([]State{StateNew}, life...) {
		for _, to := range append(life, StateDeleting) {
			if from != to && !(to == StateStarting && slices.Contains(begun, from)) {
				g = append(g, olmcore.Edge[State]{From: from, To: to})
			}
		}
	}
	return g
}

// CanFollow reports whether a reconcile may find state s where another found before.
func (s State) CanFollow(before State) bool { return graph.Allows(before, s) }

func stateOf(available, progressing *metav1.Condition) State {
	moving := progressing.Status == metav1.ConditionTrue
	switch {
	case available.Reason == ReasonDeleting:
		return StateDeleting
	case available.Status == metav1.ConditionTrue && moving:
		return StateUpdating
	case available.Status == metav1.ConditionTrue:
		return StateServing
	case available.Status == metav1.ConditionUnknown:
		return StateUnknown
	case available.Reason == ReasonSpecInvalid:
		return StateInvalid
	case moving && progressing.Reason == ReasonInitialRollout:
		return StateStarting
	case moving:
		return StateRecovering
	}
	return StateUnavailable
}

func recordedState(conditions []metav1.Condition) State {
	available := meta.FindStatusCondition(conditions, ConditionAvailable)
	progressing := meta.FindStatusCondition(conditions, ConditionProgressing)
	if available == nil {
		return StateNew
	}
	return stateOf(available, cmp.Or(progressing, &metav1.Condition{}))
}

// report is what the facts and the plan come to: the conditions of the status, nil for one that is to be absent. Messages
// hold no times and no counters that tick.
type report struct {
	*facts
	plan
	available, progressing, degraded metav1.Condition
	updatePolled, replicasSpread     *metav1.Condition
	before, state                    State     // the recorded one, and what the conditions say
	lastPoll                         time.Time // when the image was polled for the last time; zero: never
}

func newReport(f *facts) *report {
	r := &report{facts: f, plan: planPods(f), before: recordedState(f.CatalogSource.Status.Conditions)}
	r.lastPoll = cmp.Or(r.verdict.Polled, r.poll.Last)
	r.available, r.progressing, r.degraded = r.newAvailable(), r.newProgressing(), r.newDegraded()
	r.updatePolled, r.replicasSpread = r.newUpdatePolled(), r.newReplicasSpread()
	r.state = stateOf(&r.available, &r.progressing)
	return r
}

func (r *report) conditions() (list []metav1.Condition) {
	add := func(kind string, c metav1.Condition) {
		c.Type, c.ObservedGeneration = kind, r.CatalogSource.Generation
		list = append(list, c)
	}
	add(ConditionAvailable, r.available)
	add(ConditionProgressing, r.progressing)
	add(ConditionDegraded, r.degraded)
	if r.updatePolled != nil {
		add(ConditionUpdatePolled, *r.updatePolled)
	}
	if r.replicasSpread != nil {
		add(ConditionReplicasSpread, *r.replicasSpread)
	}
	return list
}

func isTrue(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: printable.Text(message)}
}

func isFalse(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: printable.Text(message)}
}

func isUnknown(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reason, Message: printable.Text(message)}
}

// newAvailable says whether the catalog serves, by which Pods on which nodes.
func (r *report) newAvailable() metav1.Condition {
	s, text := r.standing, "registry at "+r.CatalogSource.Spec.Address
	switch {
	case s.mode == modeDeleting:
		return isFalse(s.reason, s.message)
	case s.mode == modeAddress && r.link.isConnected():
		return isTrue(ReasonConnectionReady, text)
	case s.mode == modeAddress && (r.link.state == stateFailure || r.link.state == stateShutdown):
		return isFalse(ReasonConnectionFailed, text)
	case s.mode == modeAddress:
		return isUnknown(ReasonConnecting, text)
	case s.reason == ReasonNameConflict:
		return isFalse(s.reason, r.taken)
	case r.pods.Ready > 0:
		return isTrue(ReasonRegistryServing, r.distribution())
	case s.mode == modeInvalid, s.reason == ReasonConfigMapMissing:
		return isFalse(s.reason, s.message)
	case s.mode == modeBlocked:
		return isUnknown(s.reason, s.message)
	}
	return isFalse(ReasonNoReadyPods, r.distribution())
}

// distribution says how many Pods are ready, and which Pod is on which node in what state, and why it replaced another.
func (r *report) distribution() string {
	var items []string
	for _, p := range r.pods.choose(func(p *registryPod) bool { return p.Role == roleServing && p.Owned }) {
		item := p.Name + " (" + cmp.Or(p.Spec.NodeName, "no node")
		if note := p.describe(); note != "" {
			item += ", " + note
		}
		if why := clip(p.Annotations[registry.KeyCause], 200); why != "" {
			item += "; " + why
		}
		items = append(items, item+")")
	}
	text := fmt.Sprintf("%d/%d registry pods ready", r.pods.Ready, r.Config.Replicas)
	if len(items) == 0 {
		return text
	}
	return text + ": " + listed(items, " and more")
}

// clip cuts text that others wrote to a length; nothing is left of what is not UTF-8, which would not come back as it was
// written. Characters that people do not see are escaped.
func clip(text string, most int) string {
	if utf8.ValidString(text) {
		text = printable.Text(text)
	}
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// listed joins the items of a message, 10 at most.
func listed(items []string, more string) string {
	if len(items) > 10 {
		return strings.Join(items[:10], ", ") + more
	}
	return strings.Join(items, ", ")
}

// progressTexts are the messages of ConditionProgressing.
var progressTexts = map[string]string{
	ReasonInitialRollout:           "registry pods are starting",
	ReasonSpecRollout:              "registry pods of the new spec replace the others",
	ReasonContentUpdate:            "registry pods with newer content replace the others",
	ReasonNodeFailover:             "replacing the registry pods of failed nodes:",
	ReasonRefill:                   "missing registry pods are being replaced",
	ReasonBackOff:                  "waiting before the next registry pod is started",
	ReasonProgressDeadlineExceeded: "registry pods did not become ready in time",
	ReasonWaitingForNodes:          "waiting for nodes",
	ReasonComplete:                 "nothing left to do",
}

func (r *report) newProgressing() metav1.Condition {
	switch text := progressTexts[r.phase]; {
	case r.standing.reason != "":
		return isFalse(r.standing.reason, r.standing.message)
	case r.phase == ReasonNodeFailover:
		lost := ""
		for _, c := range r.pods.complaints() {
			if c.reason == ReasonNodeLost {
				lost = c.String()
			}
		}
		return isTrue(r.phase, text+" "+lost)
	case r.phase != "":
		return isTrue(r.phase, text)
	}
	reason := cmp.Or(r.halt, ReasonComplete)
	return isFalse(reason, progressTexts[reason])
}

// separator stands between the sentences of a message.
const separator = "; "

// newDegraded lists everything that needs attention, the most telling first: the Reason is that of the first, or that of a
// Pod that the API server refuses when only what comes last is wrong.
func (r *report) newDegraded() metav1.Condition {
	s, fine := r.standing, isFalse(ReasonAsExpected, "nothing needs attention")
	if s.mode == modeDeleting {
		return fine
	}
	var found []string
	first := ""
	add := func(reason, text string) {
		if text != "" {
			first = cmp.Or(first, reason)
			found = append(found, text)
		}
	}
	if s.mode == modeInvalid || s.reason == ReasonConfigMapMissing || s.reason == ReasonNamespaceUnknown {
		add(s.reason, s.message)
	}
	add(ReasonPollIntervalInvalid, r.poll.Problem)
	for _, c := range r.pods.complaints() {
		// No Service of an address selects Pods: who runs the registry may label them.
		if c.reason != ReasonForeignPod || s.mode != modeAddress {
			add(c.reason, c.String())
		}
	}
	add(ReasonNameConflict, r.taken)
	if first == "" && r.refused != "" {
		first = ReasonPodRejected
	}
	if r.pods.Disruption != noDisruption {
		add(ReasonMassDisruption, "so many nodes are not ready that replacements are limited")
	}
	text, _ := r.connectionFailure()
	add(ReasonConnectionFailed, text)
	add(ReasonPodRejected, r.refused) // what the API server says is the last sentence, so that it can be found again
	switch {
	case first != "":
		return isTrue(first, strings.Join(found, separator))
	case s.runsPods() && r.phase == "" && r.pods.Ready < r.Config.Replicas:
		return isTrue(ReasonReplicasUnavailable, r.distribution())
	}
	return fine
}

func (r *report) newUpdatePolled() *metav1.Condition {
	recorded := r.recorded(ConditionUpdatePolled)
	switch {
	case !asksForPolls(&r.CatalogSource.Spec) || r.standing.mode == modeDeleting:
		return nil
	case r.standing.mode != modeInvalid:
		return new(r.poll.polled(&r.CatalogSource.Spec, r.pods, r.verdict, recorded))
	case recorded == nil:
		return nil
	}
	// It ended as it did, whatever the spec says now.
	return &metav1.Condition{Status: recorded.Status, Reason: recorded.Reason, Message: recorded.Message}
}

func (r *report) newReplicasSpread() *metav1.Condition {
	switch {
	case r.Config.Replicas < 2 || !r.standing.runsPods():
		return nil
	case !r.Nodes.Complete:
		return new(isUnknown(ReasonNodesUnknown, "the nodes were not read"))
	}
	placed, nodes := 0, map[string]bool{}
	for _, p := range r.pods.live(roleServing) {
		if p.Spec.NodeName != "" {
			placed++
			nodes[p.Spec.NodeName] = true
		}
	}
	text := fmt.Sprintf("registry pods: %d, nodes: %d", placed, len(nodes))
	if len(nodes) < placed && len(nodes) < min(r.Config.Replicas, len(r.usable())) {
		return new(isFalse(ReasonCoLocated, text))
	}
	return new(isTrue(ReasonSpread, text))
}

// status returns the status that is observed. It keeps what others own.
func (r *report) status() v1alpha1.CatalogSourceStatus {
	s := *r.CatalogSource.Status.DeepCopy()
	reason, message := r.legacyReason()
	s.Reason, s.Message = reason, printable.Keep(s.Message, message)
	s.RegistryServiceStatus = r.registryService()
	if r.link.address != "" {
		// Differs: lastConnect is when this catalog's client connected, not when any catalog's client changed.
		s.GRPCConnectionState = &v1alpha1.GRPCConnectionState{
			Address: r.link.address, LastObservedState: r.link.state, LastConnectTime: r.link.connected,
		}
	}
	if have := s.LatestImageRegistryPoll; r.poll.On && !r.lastPoll.IsZero() && (have == nil || !have.Time.Equal(r.lastPoll)) {
		// Differs: it is written once the Pod that polls is observed, and is the time at which that was created.
		s.LatestImageRegistryPoll = new(olmcore.Timestamp(r.lastPoll))
	}
	if cm := r.ConfigMap; r.standing.mode == modeConfigMap && !refersTo(s.ConfigMapResource, cm) {
		s.ConfigMapResource = &v1alpha1.ConfigMapResourceReference{
			Name: cm.Name, Namespace: cm.Namespace, UID: cm.UID, ResourceVersion: cm.ResourceVersion, LastUpdateTime: olmcore.Timestamp(r.Now),
		}
	}
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool {
		return c.Type == ConditionUpdatePolled && r.updatePolled == nil || c.Type == ConditionReplicasSpread && r.replicasSpread == nil
	})
	for _, condition := range r.conditions() {
		condition.LastTransitionTime = olmcore.Timestamp(r.Now)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	return s
}

// legacyReason returns status.reason and status.message, in OLM's words; both are empty while the spec is carried out.
func (r *report) legacyReason() (v1alpha1.ConditionReason, string) {
	failed := r.verdict.Failed
	switch {
	case r.standing.mode == modeDeleting:
		return r.CatalogSource.Status.Reason, r.CatalogSource.Status.Message
	case r.standing.reason != "":
		return r.standing.legacy, r.standing.message
	case failed != nil:
		return v1alpha1.CatalogSourceRegistryServerError, "couldn't ensure registry server - error ensuring update pod for catalog source " +
			r.CatalogSource.Name + ": update pod " + failed.Name + " in a " + clip(string(failed.Status.Phase), 20) + " state: deleted update pod"
	case r.poll.Problem != "":
		return v1alpha1.CatalogSourceIntervalInvalidError, r.poll.Problem
	}
	return "", ""
}

// registryService is status.registryService. It names the Service once that is observed.
func (r *report) registryService() *v1alpha1.RegistryServiceStatus {
	have, service := r.CatalogSource.Status.RegistryServiceStatus, r.registry.Observed.Service
	s := v1alpha1.RegistryServiceStatus{Protocol: registry.GRPC, CreatedAt: olmcore.Timestamp(r.Now)}
	switch {
	case r.standing.runsPods() && service != nil:
		s.ServiceName, s.ServiceNamespace, s.Port = service.Name, service.Namespace, registry.Port
		if !service.CreationTimestamp.IsZero() {
			s.CreatedAt = service.CreationTimestamp
		}
	case r.standing.mode != modeAddress:
		return have
	}
	if have != nil && !have.CreatedAt.IsZero() {
		s.CreatedAt = have.CreatedAt
	}
	return &s
}

func refersTo(r *v1alpha1.ConfigMapResourceReference, cm *corev1.ConfigMap) bool {
	return r != nil && r.Name == cm.Name && r.Namespace == cm.Namespace && r.UID == cm.UID && r.ResourceVersion == cm.ResourceVersion
}

func (r *report) transitions(after v1alpha1.CatalogSourceStatus) (changes []olmcore.Transition) {
	if r.before != r.state {
		t := olmcore.Moved(olmcore.RefOf(r.CatalogSource), "State", string(r.before), string(r.state), r.Now)
		t.Status, t.Reason, t.Message, t.Bound = r.available.Status, r.available.Reason, r.available.Message, olmcore.NotAfter
		if at, bound := r.evidence(); !at.IsZero() && !at.After(r.Now) {
			t.At, t.Bound = olmcore.Timestamp(at), bound
		}
		changes = append(changes, t)
	}
	return append(changes, r.connectionTransition(after.GRPCConnectionState)...)
}

// evidence is when the Pods say that the catalog began to serve, or stopped; zero when they do not.
func (r *report) evidence() (at time.Time, bound olmcore.Bound) {
	before, reason := r.recorded(ConditionAvailable), r.available.Reason
	serves := reason == ReasonRegistryServing
	if !serves && reason != ReasonNoReadyPods || before != nil && before.Reason == reason {
		return at, bound
	}
	for _, p := range r.pods.choose(func(p *registryPod) bool { return p.Owned && p.Role == roleServing && p.serves() == serves }) {
		c := podCondition(p.Pod, corev1.PodReady)
		switch since := c.LastTransitionTime.Time; {
		case since.IsZero():
		case serves && (at.IsZero() || since.Before(at)):
			at, bound = since, olmcore.Exact
		case !serves && c.Status != corev1.ConditionTrue && since.After(at):
			at, bound = since, olmcore.NotBefore
		}
	}
	return at, bound
}

// complaint is a Reason of ConditionDegraded that Pods give, and what each of them suffers from.
type complaint struct {
	reason string
	texts  []string
}

func (c complaint) String() string { return listed(c.texts, ", and more") }
