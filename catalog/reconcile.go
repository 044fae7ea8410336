// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Reconcile decides what one CatalogSource needs: registry Pods where they can
// run, the Service, ServiceAccount and NetworkPolicies around them, a status that
// agrees with what is observed, and a gRPC client. The zero Result means that
// nothing is left to do. Every action may be lost, repeated or run in another
// order; while a Pod serves, no action takes the last one away.
//
// The error is an *olmcore.InputError for an input that breaks the contract. A
// bad spec is no error: it is told in the status.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncCatalogSources, and
// pkg/controller/registry/reconciler.
// Differs: see docs/deviations.md; above all, Pods of failed nodes are replaced
// before Kubernetes evicts them, and a replacement comes before a deletion.
func Reconcile(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	var pods [8]podFacts
	var space room
	var d desk
	v := observe(&in, &d, pods[:0])
	pl := v.planPods()
	conditions := v.conditions(&pl, &space)
	status := v.compareStatus(&conditions)

	out := Outcome{Connection: v.connectionRequest(), Notify: v.notify(&pl, &status)}
	out.Actions = append(v.infraActions(), v.podActions(&pl)...)
	out.Actions = append(out.Actions, v.leftoverActions(&conditions[0])...)
	if pl.pause > 0 && !status.changed && len(out.Actions) == len(pl.creates) {
		out.Actions = nil
	}
	if status.changed || len(out.Actions) > 0 {
		v.tell(&out, &status, export(&conditions, v.cs.Generation))
	}
	out.RequeueAfter = v.requeue()
	out.PodHash = v.hashes.String()
	return out, nil
}

// tell adds the status and what is to be said to an outcome that changes
// something.
func (v *view) tell(out *Outcome, status *statusChange, conditions []metav1.Condition) {
	out.Diagnostics = v.diagnostics(conditions)
	if status.changed {
		out.Transitions = v.transitions(status, conditions[0])
		out.Actions = append(out.Actions, v.statusAction(status, conditions))
	}
}

// requeue is when to look again: at the deadline, within limits that keep a work
// queue from spinning and a clock that was set from hiding a change for long.
func (v *view) requeue() time.Duration {
	d := v.deadline()
	if d <= 0 {
		return 0
	}
	return min(max(d, time.Second), maxWait)
}

// deadline is the time until the decision may change by the clock alone.
func (v *view) deadline() (d time.Duration) {
	nearest := olmcore.Result{RequeueAfter: v.retry}
	if v.mode == modeBlocked && v.blocked == ReasonConfigMapMissing {
		nearest.Requeue(time.Minute) // OLM's watches miss most ConfigMaps; so may the caller's
	}
	for i := range v.pods {
		p := &v.pods[i]
		nearest.Requeue(p.wait)
		if p.role == roleCandidate && p.live() && !p.ready && !v.strictly(p) {
			nearest.Requeue(v.candidateLeft(p))
		}
	}
	return nearest.RequeueAfter
}

// diagnostics say what is wrong, and what in a new spec has no effect.
func (v *view) diagnostics(conditions []metav1.Condition) (list []olmcore.Diagnostic) {
	target := olmcore.RefOf(v.in.CatalogSource).Unversioned()
	say := func(severity olmcore.Severity, reason, message, path string) {
		list = append(list, olmcore.Diagnostic{Severity: severity, Reason: reason, Message: message, Target: target, Path: path})
	}
	if c := conditions[2]; c.Status == metav1.ConditionTrue {
		severity := olmcore.Warning
		if v.tally.ready() == 0 {
			severity = olmcore.Error
		}
		say(severity, c.Reason, c.Message, v.problem.path)
	}
	if !v.runsPods() {
		return list
	}
	if v.poll.outcome == ReasonCandidateFailed || v.poll.outcome == ReasonCandidateTimedOut {
		say(olmcore.Warning, v.poll.outcome, pollText(v.poll.outcome)+v.poll.text, "")
	}
	if v.cs.Spec.Address != "" {
		what := "spec.image"
		if v.mode == modeConfigMap {
			what = "spec.configMap"
		}
		say(olmcore.Info, ReasonAddressIgnored, "spec.address has no effect beside "+what, "spec.address")
	}
	for _, doubt := range v.podConfigDoubts() {
		say(doubt.severity, doubt.reason, doubt.message, "spec.grpcPodConfig."+doubt.field)
	}
	for _, kind := range v.unread() {
		say(olmcore.Info, ReasonNotRead, kind.name+" objects were not read: "+kind.unknown, "")
	}
	if v.accountShared {
		say(olmcore.Info, ReasonServiceAccountShared, "the service account "+v.account().Name+" belongs to somebody else and is used as it is", "")
	}
	for _, bad := range [...]struct {
		is  bool
		key string
	}{
		{v.set.badReplicas, keyReplicas}, {v.set.badForce, keyForceDelete},
		{v.set.badResources || v.set.resourcesText != "" && parseResources(v.set.resourcesText) == nil, keyResources},
	} {
		if bad.is {
			key := v.set.prefix + bad.key
			say(olmcore.Warning, ReasonHAConfigInvalid, "the annotation "+key+" cannot be used, the default is", "metadata.annotations["+key+"]")
		}
	}
	return list
}
