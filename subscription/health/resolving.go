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

// obstacle is a condition of a Subscription because of which a resolution does not result in an InstallPlan.
type obstacle struct {
	Type v1alpha1.SubscriptionConditionType
	// Phase is empty for a failure. Then failure returns the phase.
	Phase     Phase
	now, late situation
}

// obstacles contains the obstacles in the order in which they are checked.
var obstacles = []obstacle{
	{Type: v1alpha1.SubscriptionResolutionFailed, now: resolutionFailed},
	{Type: v1alpha1.SubscriptionBundleUnpackFailed, now: unpackFailed},
	{Type: v1alpha1.SubscriptionBundleUnpacking, Phase: Unpacking, late: unpackLate},
}

// refusals contains the situations in which the condition BundleUnpackFailed is not about an image, by its reason.
// PlanTooLarge is a reason of package installplan/create.
var refusals = map[string]situation{
	subscription.ReasonErrorPreventedUnpacking: bundleInvalid,
	subscription.ReasonEnsureInstallPlanFailed: planNotWritten,
	"PlanTooLarge": planTooLarge,
}

// resolution returns the finding for the first obstacle, and whether there is one.
func (n *namespace) resolution(v *subscription.Decision) (f finding, blocks bool) {
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

// failure returns the phase after a failure: Degraded if the installed version works, and Failed otherwise.
func (n *namespace) failure(v *subscription.Decision) Phase {
	c := n.csvs[v.Status.InstalledCSV]
	if c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded && c.DeletionTimestamp == nil && !c.IsCopied() {
		return Degraded
	}
	return Failed
}

// condition returns the Health that a condition reports, and whether the condition is True. Since is only set if the
// condition is already written.
func condition(v *subscription.Decision, t v1alpha1.SubscriptionConditionType) (h Health, isTrue bool) {
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

// resolving returns the finding for a Subscription whose namespace must be resolved.
func (n *namespace) resolving(v *subscription.Decision) finding {
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
		return f
	}
	f, needsChange := n.held(v, f)
	if needsChange {
		f.Phase = Stuck
	}
	return f
}

// unhealthyCatalog returns the catalog of a Subscription, or the first other unhealthy catalog by name if that one is
// healthy.
func unhealthyCatalog(v *subscription.Decision) olmcore.Ref {
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

// unresolvedSince returns the time at which the last condition of a Subscription changed. status.lastUpdated changes
// with each message, so it is only used if there are no conditions.
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

// passes contains the codes of versions that are held back only for a time, or for an unknown reason.
var passes = map[resolution.HeldBackCode]bool{resolution.ReplacementInProgress: true, resolution.Unknown: true}

// held returns the finding with the reason why a version is held back, and whether a change is needed to install it.
// An installed operator that a version range pins needs none.
func (n *namespace) held(v *subscription.Decision, f finding) (held finding, needsChange bool) {
	h := n.heldBack[v.Subscription.Name]
	if h == nil {
		return f, false
	}
	f.Reason, f.Message = string(h.Code), h.Summary
	switch {
	case passes[h.Code], v.CSV != nil && h.Code == resolution.Pinned:
		return f, false
	case len(h.Remedies) > 0:
		f.now, f.what = heldBack, h.Remedies[0].Message
	default:
		f.now = heldBackUnhelped
	}
	return f, true
}
