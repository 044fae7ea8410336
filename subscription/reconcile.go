// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Outcome is what Reconcile asks for and has to say.
type Outcome struct {
	olmcore.Result
	// Gate says whether the namespace has to be resolved, Resolve what exactly; it
	// is nil unless Gate is GateNeeded.
	Gate    Gate
	Resolve *ResolveRequest
	// Verify are InstallPlans whose observation is doubted. A direct read of them,
	// handed back as an Observation, ends the doubt before its deadline. Optional.
	Verify []olmcore.Ref
	// Histories are the entries of Input.Histories that changed, by UID of the
	// Subscription; nil when none did or the caller keeps none.
	Histories map[types.UID]History
}

// Reconcile decides what has to be done about the Subscriptions of one
// namespace: their statuses, references and component labels, and whether the
// namespace has to be resolved. It writes no InstallPlan.
//
// The statuses come first, by name, then the labels; each object has at most one
// action. The error is an *olmcore.InputError that names a field of the Input.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog
// (syncResolvingNamespace), its package subscription, and the adoption controller
// of pkg/controller/operators/operators. Differs: see docs/deviations.md.
func Reconcile(in Input) (out Outcome, err error) {
	var v view
	if err = v.fill(&in); err != nil {
		return out, err
	}
	var anyNeeds, anyMoved bool
	var unlabelled []componentKey
	var d verdict
	for _, sub := range v.subs {
		v.judge(sub, &d)
		out.Requeue(d.wait)
		anyNeeds, anyMoved = anyNeeds || d.needs(), anyMoved || d.moved
		if len(d.transitions)+len(d.diagnostics) > 0 {
			out.Transitions = concat(out.Transitions, d.transitions)
			out.Diagnostics = concat(out.Diagnostics, d.diagnostics)
		}
		if d.changed {
			out.Actions = append(out.Actions, olmcore.UpdateStatusOf(d.sub, v.status(&d), d.why()))
		}
		if d.seen.stage == StageUnverified {
			out.Verify = append(out.Verify, d.verify())
		}
		if v.keepsHistory() && v.memo.touched && v.memo.next != v.memo.history {
			if out.Histories == nil {
				out.Histories = map[types.UID]History{}
			}
			out.Histories[d.sub.UID] = v.memo.next
		}
		unlabelled = v.label(&out, unlabelled, d.sub, d.changed)
	}
	if v.answer.hasFailed {
		v.announce(&out)
	}
	out.Gate = v.gate(anyNeeds, anyMoved)
	switch out.Gate {
	case GateNeeded:
		out.Resolve = v.request()
	case GateBlocked:
		out.Requeue(lastRetry)
		out.Diagnostics = append(out.Diagnostics, v.namespaceDiagnostic(failure, ReasonOperatorGroupCount, v.blocked))
	}
	if len(v.observations) > 0 {
		v.reportStrangers(&out)
	}
	if v.answer.unpackError != "" {
		out.Diagnostics = append(out.Diagnostics, v.namespaceDiagnostic(warning, ReasonErrorPreventedUnpacking,
			"bundle unpacking failed with an error: "+v.answer.unpackError))
	}
	if v.catalogs.failed && len(v.subs) > 0 {
		v.reportProbes(&out)
	}
	if v.answer.stale && v.blocked == "" {
		out.Diagnostics = append(out.Diagnostics, v.namespaceDiagnostic(info, ReasonStaleResolution,
			"the resolution was computed from other Subscriptions than are there now"))
	}
	if anyNeeds {
		out.Requeue(v.answer.wait)
	}
	if len(v.components)+len(unlabelled) > 0 {
		v.labelRest(&out, unlabelled)
	}
	return out, nil
}

// concat appends to a list; most often to none, which takes no copy.
func concat[T any](list, more []T) []T {
	if len(list) == 0 {
		return more
	}
	return append(list, more...)
}

func (v *view) namespaceDiagnostic(severity olmcore.Severity, reason, message string) olmcore.Diagnostic {
	return olmcore.Diagnostic{
		Severity: severity, Reason: reason, Message: message,
		Target: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: v.namespace},
	}
}

// verify returns the plan to read from the API server itself.
func (d *verdict) verify() olmcore.Ref {
	uid, name := d.planIdentity()
	return olmcore.Ref{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Namespace: d.sub.Namespace, Name: name, UID: uid,
	}
}
