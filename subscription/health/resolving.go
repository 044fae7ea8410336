// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
	"github.com/olmcore/olm/subscription/resolution"
)

// obstacle is a condition of a Subscription that keeps a resolution from becoming a plan.
type obstacle struct {
	Type v1alpha1.SubscriptionConditionType
	// Phase is empty for what has failed: what that means depends on the operator that is there.
	Phase     Phase
	now, late situation
}

// obstacles come in the order in which they count.
var obstacles = []obstacle{
	{Type: v1alpha1.SubscriptionResolutionFailed, now: resolutionFailed},
	{Type: v1alpha1.SubscriptionBundleUnpackFailed, now: unpackFailed},
	{Type: v1alpha1.SubscriptionBundleUnpacking, Phase: Unpacking, late: unpackLate},
}

// refusals are the situations of a condition BundleUnpackFailed that is not about an image, by its reason. PlanTooLarge
// is a reason of installplan/create.
var refusals = map[string]situation{
	subscription.ReasonErrorPreventedUnpacking: bundleInvalid,
	subscription.ReasonEnsureInstallPlanFailed: planNotWritten,
	"PlanTooLarge": planTooLarge,
}

// resolution is about what keeps a resolution from becoming a plan.
func (n *namespace) resolution(v *subscription.Verdict) (f finding, blocks bool) {
	for _, o := range obstacles {
		if f.Health, blocks = condition(v, o.Type); !blocks {
			continue
		}
		f.Phase, f.now, f.late = o.Phase, o.now, o.late
		if o.Type == v1alpha1.SubscriptionBundleUnpackFailed {
			f.now = cmp.Or(refusals[f.Reason], f.now)
		}
		f.Object = olmcore.RefOf(v.Subscription).Unversioned()
		if o.Type == v1alpha1.SubscriptionResolutionFailed || f.Phase == "" && n.blocked {
			f.Object = olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: n.name}
		}
		if f.Phase == "" {
			f.Phase = n.failure(v)
			if n.blocked {
				f.now = operatorGroups
			}
			if n.blocked && n.groups == 0 {
				f.now = noOperatorGroup
			}
		}
		return f, true
	}
	return f, false
}

// failure is the phase of what has failed.
func (n *namespace) failure(v *subscription.Verdict) Phase {
	c := n.csvs[v.Status.InstalledCSV]
	if c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded && c.DeletionTimestamp == nil && !c.IsCopied() {
		return Degraded
	}
	return Failed
}

// condition returns what a condition says, or is made to say; since when is known only of one that is written already.
func condition(v *subscription.Verdict, t v1alpha1.SubscriptionConditionType) (h Health, isTrue bool) {
	c := v.Status.GetCondition(t)
	if c.Status != corev1.ConditionTrue {
		return Health{}, false
	}
	h = Health{Reason: c.Reason, Message: c.Message}
	if written := v.Subscription.Status.GetCondition(t); written.Status == corev1.ConditionTrue {
		h.Since = relation.Time(written.LastTransitionTime)
	}
	return h, true
}

// resolving is about a Subscription whose namespace has to be resolved.
func (n *namespace) resolving(v *subscription.Verdict) finding {
	s := v.Subscription
	f := finding{late: resolvingLate, Health: Health{
		Phase: Resolving, Object: olmcore.RefOf(s).Unversioned(), Message: "the namespace has to be resolved", Since: unresolvedSince(s),
	}}
	if v.Plan.Stage == subscription.StageMissing {
		f.Reason, f.Message, f.late = v1alpha1.ReferencedInstallPlanNotFound, "the InstallPlan was deleted", planGoneLate
		if v.Plan.Recorded == subscription.StageMissing && !v.Plan.RecordedAt.IsZero() {
			f.Since = v.Plan.RecordedAt
		}
	}
	if catalogs, ok := condition(v, v1alpha1.SubscriptionCatalogSourcesUnhealthy); ok {
		f.Object = unhealthyCatalog(v)
		f.Since, f.Reason, f.Message, f.now = catalogs.Since, catalogs.Reason, catalogs.Message, catalogsMissing
	} else if n.held(v, &f) {
		f.Phase = Stuck
	}
	return f
}

// unhealthyCatalog returns the catalog that a Subscription names, or the first one by name that is not healthy where
// that one is.
func unhealthyCatalog(v *subscription.Verdict) olmcore.Ref {
	ref := func(namespace, name string) olmcore.Ref {
		return olmcore.Ref{APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind, Namespace: namespace, Name: name}
	}
	own := ref(v.Subscription.Spec.CatalogSourceNamespace, v.Subscription.Spec.CatalogSource)
	isHealthy, others := false, []olmcore.Ref(nil)
	for _, h := range v.Status.CatalogHealth {
		switch r := h.CatalogSourceRef; {
		case r == nil:
		case ref(r.Namespace, r.Name) == own:
			isHealthy = h.Healthy
		case !h.Healthy:
			others = append(others, ref(r.Namespace, r.Name))
		}
	}
	if !isHealthy || len(others) == 0 {
		return own
	}
	return slices.MinFunc(others, olmcore.Ref.Compare)
}

// unresolvedSince is when the last condition of a Subscription changed. status.lastUpdated would move with each
// message; it counts where there is no condition.
func unresolvedSince(s *v1alpha1.Subscription) time.Time {
	since := s.CreationTimestamp.Time
	for i := range s.Status.Conditions {
		since = relation.Latest(since, relation.Time(s.Status.Conditions[i].LastTransitionTime))
	}
	if len(s.Status.Conditions) == 0 {
		since = relation.Latest(since, s.Status.LastUpdated.Time)
	}
	return since
}

// passes are the reasons to be held back that end by themselves, or of which nothing more is known.
var passes = map[resolution.HeldBackCode]bool{resolution.ReplacementInProgress: true, resolution.Unknown: true}

// held says why a resolution does not give a Subscription a newer version, and reports whether that stays so without a
// change. An operator that runs is kept at its version on purpose by a version range.
func (n *namespace) held(v *subscription.Verdict, f *finding) bool {
	h := n.heldBack[v.Subscription.Name]
	if h == nil {
		return false
	}
	f.Reason, f.Message = string(h.Code), h.Summary
	switch {
	case passes[h.Code], v.CSV != nil && h.Code == resolution.Pinned:
		return false
	case len(h.Remedies) > 0:
		f.now, f.what = heldBack, h.Remedies[0].Message
	default:
		f.now = heldBackUnhelped
	}
	return true
}
