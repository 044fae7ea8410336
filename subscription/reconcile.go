// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

// blockedRetry is the time after which a namespace that cannot be resolved is looked at
// again.
const blockedRetry = 5 * time.Minute

// Outcome is what Reconcile asks for and has to say.
type Outcome struct {
	olmcore.Result
	// Resolve asks for the namespace to be resolved; nil when it need not or cannot be:
	// Assess says why.
	Resolve *ResolveRequest
	// Verify are InstallPlans whose observation is suspect. A direct read of them,
	// handed back as an Observation, decides before the deadline. Optional.
	Verify []olmcore.Ref
	// Histories are the entries of Input.Histories that changed, by UID of the
	// Subscription; nil when none did or the caller keeps none.
	Histories map[types.UID]History
	// Checkpoint remembers an Input that asks for nothing, for the next call; else nil.
	Checkpoint *olmcore.Checkpoint
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
func Reconcile(in Input) (Outcome, error) { return reconcile(in, conditionTable) }

func reconcile(in Input, table []conditionRow) (Outcome, error) {
	c := in.Checkpoint.Compare(in.Now)
	in.cover(&c)
	if wait, same := c.Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	n, err := newNamespace(&in, table)
	if err != nil {
		return Outcome{}, err
	}
	verdicts := n.verdicts()
	out := n.outcome(verdicts)
	out.append(component.Labels(n.labels(&in, verdicts)))
	n.reportResolution(&out, verdicts)
	if out.Resolve == nil && out.Histories == nil {
		c = olmcore.NewCoverage(in.Now, out.Result)
		in.cover(&c)
		out.Checkpoint = c.Checkpoint()
	}
	return out, nil
}

func (n *namespace) verdicts() []Verdict {
	verdicts := make([]Verdict, 0, len(n.subs))
	for _, s := range n.subs {
		verdicts = append(verdicts, n.judge(s))
	}
	return verdicts
}

// outcome is what the verdicts ask for.
func (n *namespace) outcome(verdicts []Verdict) Outcome {
	var out Outcome
	for i := range verdicts {
		v := &verdicts[i]
		out.append(v.Result)
		if v.Plan.Stage == StageUnverified {
			out.Verify = append(out.Verify, olmcore.Ref{
				APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: n.name, Name: v.Plan.Name, UID: v.Plan.UID,
			})
		}
		if v.Plan.Memory.Changed() {
			if out.Histories == nil {
				out.Histories = map[types.UID]History{}
			}
			out.Histories[v.Subscription.UID] = v.Plan.Memory.After
		}
	}
	return out
}

func (out *Outcome) append(r olmcore.Result) {
	out.Actions = append(out.Actions, r.Actions...)
	out.Transitions = append(out.Transitions, r.Transitions...)
	out.Diagnostics = append(out.Diagnostics, r.Diagnostics...)
	out.Requeue(r.RequeueAfter)
}

// labels is what the component labels follow from.
func (n *namespace) labels(in *Input, verdicts []Verdict) component.LabelsInput {
	written := map[string]bool{}
	for _, v := range verdicts {
		written[v.Subscription.Name] = v.Writes
	}
	return component.LabelsInput{
		Now: n.now, Namespace: n.name, Subscriptions: n.subs, ClusterServiceVersions: n.csvs,
		Owned: in.Components, PreviousPackages: in.PreviousPackages, Written: written,
	}
}

// reportResolution asks for a resolution, and says what is known of the last one and of
// the catalogs.
func (n *namespace) reportResolution(out *Outcome, verdicts []Verdict) {
	a := &n.answer
	say := func(d olmcore.Diagnostic) { out.Diagnostics = append(out.Diagnostics, d) }
	if a.failed && n.blocked == "" && a.resolution.decided && slices.ContainsFunc(out.Transitions, func(t olmcore.Transition) bool {
		return t.Type == string(v1alpha1.SubscriptionResolutionFailed) && t.Status == metav1.ConditionTrue && t.Message == a.resolution.message
	}) { // once, when the Subscriptions are made to say so
		say(n.said(olmcore.Warning, ReasonResolutionFailed, "%s", a.resolution.message))
	}
	switch n.gate(verdicts) {
	case GateNeeded:
		out.Resolve = n.request()
	case GateBlocked:
		out.Requeue(blockedRetry)
		say(n.said(olmcore.Error, ReasonOperatorGroupCount, "%s", n.blocked))
	}
	if count := n.plans.Window.Ignored(); count > 0 {
		say(n.said(olmcore.Info, ReasonObservationIgnored, "%d observations are of InstallPlans of other namespaces", count))
	}
	if a.unpackError != "" {
		say(n.said(olmcore.Warning, ReasonErrorPreventedUnpacking, "bundle unpacking failed with an error: %s", a.unpackError))
	}
	if n.catalogs != nil && len(n.subs) > 0 {
		if unprobed := n.catalogs.unprobed(); len(unprobed) > 0 {
			out.Diagnostics = append(out.Diagnostics, unprobed...)
			out.Requeue(probeRetry)
		}
	}
	if a.stale && n.blocked == "" {
		say(n.said(olmcore.Info, ReasonStaleResolution, "the resolution was computed from other Subscriptions than are there now"))
	}
	if slices.ContainsFunc(verdicts, func(v Verdict) bool { return !v.Waits }) {
		out.Requeue(a.wait)
	}
}

// Assessment is what Reconcile would decide, without the actions: for command lines,
// metrics and tests.
type Assessment struct {
	// Verdicts has one entry for each Subscription, sorted by name.
	Verdicts []Verdict
	Gate     Gate
	// Blocked says why the namespace cannot be resolved, empty where it can.
	Blocked string
}

// Assess returns the decision for each Subscription of the namespace. The error is the
// *olmcore.InputError of Reconcile.
func Assess(in Input) (Assessment, error) {
	n, err := newNamespace(&in, conditionTable)
	if err != nil {
		return Assessment{}, err
	}
	verdicts := n.verdicts()
	return Assessment{Verdicts: verdicts, Gate: n.gate(verdicts), Blocked: n.blocked}, nil
}
