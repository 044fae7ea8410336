// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strconv"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

const (
	// blockedRetry is the time until a namespace that cannot be resolved is decided again.
	blockedRetry = 5 * time.Minute
	// probeRetry is the time until a catalog is probed again whose probe failed.
	probeRetry = 5 * time.Second
)

// Outcome is the result of Reconcile: the actions to run, plus requests that only the caller can fulfil.
type Outcome struct {
	olmcore.Result
	// Resolve is the request to resolve the namespace. It is nil if a resolution is not necessary or not possible.
	// Assessment.Gate contains the reason.
	Resolve *ResolveRequest
	// Verify contains InstallPlans whose observed version may come from a stale cache. To avoid waiting for the grace
	// period, read these InstallPlans from the API server and pass them as Input.Observations. Optional.
	Verify []olmcore.Ref
	// Histories contains the changed entries of Input.Histories, by the UID of the Subscription. It is nil if no entry
	// changed or if the caller keeps no histories.
	Histories map[types.UID]History
	// Checkpoint is the value of Input.Checkpoint for the next call for this namespace. It is nil if a resolution is
	// requested or a History must be stored.
	Checkpoint *olmcore.Checkpoint
}

// ResolveRequest is a request to resolve the Subscriptions of a namespace to operators. Pass the request to package
// resolution or another solver. Create the InstallPlan of the answer with create.Plan, and pass the answer and the
// InstallPlan as Input.Resolution.
type ResolveRequest struct {
	Namespace string
	// Subscriptions contains the Subscriptions to resolve, sorted by name. Copy it to Resolution.Observed in the answer.
	Subscriptions []olmcore.SubscriptionFingerprint
	// Fingerprint is equal for equal requests.
	Fingerprint string
	// Reason is one of the Resolve constants.
	Reason string
}

// Reconcile returns the actions for the Subscriptions of one namespace. The actions update the statuses, including the
// references to InstallPlans, and the component labels. If the namespace must be resolved and nothing prevents that,
// the Outcome contains a ResolveRequest. Reconcile does not create or change InstallPlans.
//
// The first actions write the statuses, sorted by name. The actions that write labels follow. Each object has at most
// one action. The error is an *olmcore.InputError that names a field of the Input.
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
	results := make([]olmcore.Result, 0, len(a.Decisions))
	for i := range a.Decisions {
		v := &a.Decisions[i]
		results = append(results, v.result())
		if v.Plan.Stage == StageUnverified {
			out.Verify = append(out.Verify, olmcore.Ref{
				APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind,
				Namespace: n.name, Name: v.Plan.Name, UID: v.Plan.UID,
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
	labels := component.Labels(component.LabelsInput{
		Now: in.Now, Namespace: in.Namespace, Subscriptions: n.subs, ClusterServiceVersions: n.versions.csvs,
		Owned: in.Components, PreviousPackages: in.PreviousPackages, Written: written,
	})
	out.Result = olmcore.Result{}.And(append(results, labels)...)
	out.Result = out.And(n.reportNamespace(&a, out.Transitions))
	if a.Gate == GateNeeded {
		out.Resolve = n.request()
	}
	if out.Resolve == nil && out.Histories == nil {
		out.Checkpoint = in.cover(inputs.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// reportNamespace reports what concerns the namespace and not one of its Subscriptions.
func (n *namespace) reportNamespace(assessed *Assessment, transitions []olmcore.Transition) (r olmcore.Result) {
	about := olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: n.name}
	if len(n.subs) > 0 {
		about = olmcore.RefOf(n.subs[0]).Unversioned() // its Events are visible to the users of the namespace
	}
	report := func(severity olmcore.Severity, reason, format string, args ...any) {
		r.Diagnostics = append(r.Diagnostics, olmcore.Diagnose(severity, reason, about, "", format, args...))
	}
	a := &n.answer
	// 1. The resolution failed. This is reported once, when the Subscriptions get the condition.
	if a.failed && n.blocked == "" && a.resolution.decided && slices.ContainsFunc(transitions, a.resolution.isSetBy) {
		report(olmcore.Warning, ReasonResolutionFailed, "%s", a.resolution.message)
	}
	// 2. The namespace cannot be resolved.
	if assessed.Gate == GateBlocked {
		r.Requeue(blockedRetry)
		report(olmcore.Error, ReasonOperatorGroupCount, "%s", n.blocked)
	}
	// 3. Observations that belong to other namespaces.
	if ignored := n.plans.Window.Foreign(); ignored > 0 {
		report(olmcore.Info, ReasonObservationIgnored, "%d observations of InstallPlans of other namespaces were ignored", ignored)
	}
	// 4. Bundles that could not be unpacked this time.
	r.Diagnostics = append(r.Diagnostics, n.unpackProblems()...)
	// 5. Catalogs that could not be probed.
	unprobed := n.unprobedCatalogs()
	if len(unprobed) > 0 {
		r.Diagnostics = append(r.Diagnostics, unprobed...)
		r.Requeue(probeRetry)
	}
	// 6. A stale resolution.
	if a.stale && n.blocked == "" {
		report(olmcore.Info, ReasonStaleResolution, "the resolution was computed from Subscriptions that have changed since")
	}
	// 7. The next resolution, if a Subscription needs one.
	if slices.ContainsFunc(assessed.Decisions, func(v Decision) bool { return !v.Waits }) {
		r.Requeue(a.next.wait)
	}
	return r
}

// isSetBy reports whether a Transition sets the condition ResolutionFailed to its desired value.
func (w want) isSetBy(t olmcore.Transition) bool {
	return t.Type == string(v1alpha1.SubscriptionResolutionFailed) && t.Status == metav1.ConditionTrue && t.Message == w.message
}

// unpackProblems returns a Diagnostic for each part of the answer whose bundles could not be unpacked this time. It is
// about the first Subscription of the part.
func (n *namespace) unpackProblems() (list []olmcore.Diagnostic) {
	for i := range n.answer.parts {
		p := &n.answer.parts[i]
		s := p.firstSubscription(n)
		if p.unpack.problem == "" || s == nil {
			continue
		}
		list = append(list, olmcore.Diagnose(olmcore.Warning, ReasonErrorPreventedUnpacking, olmcore.RefOf(s).Unversioned(), "",
			"bundle unpacking failed with an error: %s", p.unpack.problem))
	}
	return list
}

// unprobedCatalogs returns a Diagnostic for each catalog that could not be probed.
func (n *namespace) unprobedCatalogs() []olmcore.Diagnostic {
	if n.catalogs == nil || len(n.subs) == 0 {
		return nil
	}
	return n.catalogs.unprobed()
}

// request returns the request to resolve the namespace.
func (n *namespace) request() *ResolveRequest {
	r := &ResolveRequest{Namespace: n.name, Reason: n.answer.next.reason}
	parts := []string{n.name}
	for _, s := range n.subs {
		f := olmcore.FingerprintOf(s)
		r.Subscriptions = append(r.Subscriptions, f)
		parts = append(parts, f.Name, string(f.UID), strconv.FormatInt(f.Generation, 10), f.CurrentCSV, f.InstalledCSV)
	}
	r.Fingerprint = olmcore.NameSuffix(10, parts...)
	return r
}
