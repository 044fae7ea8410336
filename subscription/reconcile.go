// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strconv"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

const (
	// blockedRetry is the time after which a namespace that cannot be resolved is looked at again, probeRetry the one
	// after which a catalog is probed again whose probe failed.
	blockedRetry = 5 * time.Minute
	probeRetry   = 5 * time.Second
)

// Outcome is what Reconcile asks for and has to say.
type Outcome struct {
	olmcore.Result
	// Resolve asks for the namespace to be resolved; nil when it need not or cannot be: Assess says why.
	Resolve *ResolveRequest
	// Verify are InstallPlans whose observation is suspect. A direct read of them, handed back as an Observation,
	// decides before the deadline. Optional.
	Verify []olmcore.Ref
	// Histories are the entries of Input.Histories that changed, by UID of the Subscription; nil when none did or the
	// caller keeps none.
	Histories map[types.UID]History
	// Checkpoint remembers an Input that asks for nothing, for the next call; else nil.
	Checkpoint *olmcore.Checkpoint
}

// ResolveRequest asks for the resolution of a namespace: which operators satisfy its Subscriptions. Give it to package
// resolution or another solver, make the plan of the answer with create.Plan, and hand both back as Input.Resolution.
type ResolveRequest struct {
	Namespace string
	// Subscriptions are what the resolution has to be computed from, sorted by name; the answer repeats them as its
	// Observed.
	Subscriptions []olmcore.SubscriptionFingerprint
	// Fingerprint is the same for equal requests.
	Fingerprint string
	// Reason is one of the Resolve constants.
	Reason string
}

// Reconcile decides what has to be done about the Subscriptions of one namespace: their statuses, references and
// component labels, and whether the namespace has to be resolved. It writes no InstallPlan.
//
// The statuses come first, by name, then the labels; each object has at most one action. The error is an
// *olmcore.InputError that names a field of the Input.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog (syncResolvingNamespace), its package
// subscription, and the adoption controller of pkg/controller/operators/operators. Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) { return reconcile(in, conditionTable) }

func reconcile(in Input, table []conditionRow) (Outcome, error) {
	if wait, same := in.cover(in.Checkpoint.Compare(in.Now)).Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	n, err := newNamespace(&in, table)
	if err != nil {
		return Outcome{}, err
	}
	a := n.assess()
	out, written := Outcome{}, map[string]bool{}
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		out.append(v.result())
		if v.Plan.Stage == StageUnverified {
			out.Verify = append(out.Verify, olmcore.Ref{
				APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: n.name, Name: v.Plan.Name, UID: v.Plan.UID,
			})
		}
		if v.history != nil {
			if out.Histories == nil {
				out.Histories = map[types.UID]History{}
			}
			out.Histories[v.Subscription.UID] = *v.history
		}
		if v.Writes {
			written[v.Subscription.Name] = true
		}
	}
	out.append(component.Labels(component.LabelsInput{
		Now: in.Now, Namespace: in.Namespace, Subscriptions: n.subs, ClusterServiceVersions: n.csvs,
		Owned: in.Components, PreviousPackages: in.PreviousPackages, Written: written,
	}))
	out.append(n.resolution(&a, out.Transitions))
	if a.Gate == GateNeeded {
		out.Resolve = n.request()
	}
	if out.Resolve == nil && out.Histories == nil {
		out.Checkpoint = in.cover(olmcore.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

func (out *Outcome) append(r olmcore.Result) {
	out.Actions = append(out.Actions, r.Actions...)
	out.Transitions = append(out.Transitions, r.Transitions...)
	out.Diagnostics = append(out.Diagnostics, r.Diagnostics...)
	out.Requeue(r.RequeueAfter)
}

// resolution says what is known of the last resolution and of the catalogs.
func (n *namespace) resolution(assessed *Assessment, transitions []olmcore.Transition) (r olmcore.Result) {
	a := &n.answer
	about := olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: n.name}
	if len(n.subs) > 0 {
		about = olmcore.RefOf(n.subs[0]).Unversioned() // its Events are visible to the users of the namespace
	}
	say := func(severity olmcore.Severity, reason, format string, args ...any) {
		r.Diagnostics = append(r.Diagnostics, olmcore.Diagnose(severity, reason, about, "", format, args...))
	}
	if a.failed && n.blocked == "" && a.resolution.decided && slices.ContainsFunc(transitions, func(t olmcore.Transition) bool {
		return t.Type == string(v1alpha1.SubscriptionResolutionFailed) && t.Status == metav1.ConditionTrue && t.Message == a.resolution.message
	}) { // once, when the Subscriptions are made to say so
		say(olmcore.Warning, ReasonResolutionFailed, "%s", a.resolution.message)
	}
	if assessed.Gate == GateBlocked {
		r.Requeue(blockedRetry)
		say(olmcore.Error, ReasonOperatorGroupCount, "%s", n.blocked)
	}
	ignored := slices.DeleteFunc(slices.Clone(n.window.list), func(o Observation) bool { return !n.window.isForeign(o) })
	if len(ignored) > 0 {
		say(olmcore.Info, ReasonObservationIgnored, "%d observations are of InstallPlans of other namespaces", len(ignored))
	}
	r.Diagnostics = append(r.Diagnostics, n.unpackErrors()...)
	if n.catalogs != nil && len(n.subs) > 0 {
		if unprobed := n.catalogs.unprobed(); len(unprobed) > 0 {
			r.Diagnostics = append(r.Diagnostics, unprobed...)
			r.Requeue(probeRetry)
		}
	}
	if a.stale && n.blocked == "" {
		say(olmcore.Info, ReasonStaleResolution, "the resolution was computed from other Subscriptions than are there now")
	}
	if slices.ContainsFunc(assessed.Verdicts, func(v Verdict) bool { return !v.Waits }) {
		r.Requeue(a.wait)
	}
	return r
}

// unpackErrors returns a Diagnostic for each part of the answer whose bundles cannot be unpacked for now, about the first Subscription of
// the part.
func (n *namespace) unpackErrors() (found []olmcore.Diagnostic) {
	for _, p := range n.answer.parts {
		s := n.firstOf(p)
		if p.unpackError == "" || s == nil {
			continue
		}
		found = append(found, olmcore.Diagnose(olmcore.Warning, ReasonErrorPreventedUnpacking, olmcore.RefOf(s).Unversioned(), "",
			"bundle unpacking failed with an error: %s", p.unpackError))
	}
	return found
}

func (n *namespace) request() *ResolveRequest {
	r := &ResolveRequest{Namespace: n.name, Reason: n.answer.again}
	parts := []string{n.name}
	for _, s := range n.subs {
		f := olmcore.FingerprintOf(s)
		r.Subscriptions = append(r.Subscriptions, f)
		parts = append(parts, f.Name, string(f.UID), strconv.FormatInt(f.Generation, 10), f.CurrentCSV, f.InstalledCSV)
	}
	r.Fingerprint = olmcore.NameSuffix(10, parts...)
	return r
}
