// SPDX-License-Identifier: Apache-2.0

package create

import (
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// facts contains what is observed in an Input, and the content of the plan that its resolution needs. It is read-only
// after observe has returned it.
type facts struct {
	in *Input // as the caller passed it
	content
	// subscriptions and plans are sorted by name.
	subscriptions []*v1alpha1.Subscription
	plans         []*v1alpha1.InstallPlan
	decisions     map[string]olmcore.SubscriptionDecision // by Subscription
	owners        map[string]bool                         // names of the Subscriptions that the plan is created for; nil: all
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	f := &facts{
		in: in, content: contentOf(in), decisions: map[string]olmcore.SubscriptionDecision{},
		subscriptions: inputs.ByName(in.Subscriptions.Items), plans: inputs.ByName(in.InstallPlans.Items),
	}
	for _, d := range in.Resolution.Decisions {
		f.decisions[d.Name] = d
	}
	if in.Owners != nil {
		f.owners = map[string]bool{}
	}
	for _, name := range in.Owners {
		f.owners[name] = true
	}
	return f
}

// limitedToOwnersOf returns the facts limited to the Subscriptions that may own a plan. A plan that was made for one
// set of Subscriptions stays one if the option SeparatePlans is off. Managers with different values of the option would
// change the plan in turns otherwise.
func (f *facts) limitedToOwnersOf(plan *v1alpha1.InstallPlan) *facts {
	if f.owners != nil || !olmcore.IsSeparatePlan(plan) {
		return f
	}
	owners := map[string]bool{}
	for _, s := range f.subscriptions {
		owners[s.Name] = olmcore.OwnedBy(plan, s.UID) || relation.MustOwn(plan, s) || f.changed(s)
	}
	limited := *f
	limited.owners = owners
	return &limited
}

// isOwner reports whether the plan is created for the Subscription with a name.
func (f *facts) isOwner(name string) bool { return f.owners == nil || f.owners[name] }

// isShared reports whether a plan was created for other sets of Subscriptions too. The plan of this set replaces it.
func (f *facts) isShared(p *v1alpha1.InstallPlan) bool {
	return f.owners != nil && plans.IsShared(p, f.subscriptions, f.isOwner)
}

// diagnose returns a Diagnostic about the first of the named Subscriptions that exists, else about the first
// Subscription of the namespace. Events about a Subscription are visible to the users of its namespace, unlike those
// about the Namespace.
func (in *Input) diagnose(of []string, severity olmcore.Severity, reason, format string, args ...any) olmcore.Diagnostic {
	about := olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: in.Namespace}
	subscriptions := inputs.ByName(in.Subscriptions.Items)
	i := slices.IndexFunc(subscriptions, func(s *v1alpha1.Subscription) bool { return slices.Contains(of, s.Name) })
	if len(subscriptions) > 0 {
		about = olmcore.RefOf(subscriptions[max(i, 0)]).Unversioned()
	}
	return olmcore.Diagnose(severity, reason, about, "", format, args...)
}

// changed reports whether the resolution gives a Subscription a new version with this plan.
func (f *facts) changed(s *v1alpha1.Subscription) bool {
	d := f.decisions[s.Name]
	return f.isOwner(s.Name) && d.Changed && d.CurrentCSV != "" && d.Failure == nil
}

// wanted reports whether a Subscription will reference a plan of this resolution. The resolution changes such a
// Subscription, or the plan of the Subscription never got any steps. A missing version alone needs no plan. No
// Subscription would reference the plan, so it would never get its steps.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace, which plans nothing when
// no Subscription was updated.
func (f *facts) wanted() bool {
	var versions []string
	for _, o := range f.in.Resolution.Operators {
		versions = append(versions, o.Name)
	}
	return slices.ContainsFunc(f.subscriptions, func(s *v1alpha1.Subscription) bool {
		return s.DeletionTimestamp == nil && (f.changed(s) || f.stranded(s, versions, ""))
	})
}

// stranded reports whether a Subscription waits for one of the versions but references a plan that will not install it:
// one without steps, or one that other sets share. The plan with the given UID does not count.
func (f *facts) stranded(s *v1alpha1.Subscription, versions []string, plan types.UID) bool {
	return f.waitsWith(s, versions, plan, func(p *v1alpha1.InstallPlan) bool {
		return p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0 || f.isShared(p)
	})
}

// waitsWith reports whether a Subscription of this set waits for one of the versions, and references a plan that
// matches accepts and that does not have the given UID.
func (f *facts) waitsWith(s *v1alpha1.Subscription, versions []string, plan types.UID, matches func(*v1alpha1.InstallPlan) bool) bool {
	return f.isOwner(s.Name) && slices.Contains(versions, s.Status.CurrentCSV) &&
		slices.ContainsFunc(f.plans, func(p *v1alpha1.InstallPlan) bool { return p.UID != plan && relation.RefersTo(s, p) && matches(p) })
}

// stale reports whether the resolution was computed from other Subscriptions than the observed ones. Changes that the
// resolution itself caused do not count: those of Subscriptions that already reference the plan, and those of
// Subscriptions in other sets, which follow other plans. The plan may be nil.
func (f *facts) stale(plan *v1alpha1.InstallPlan) bool {
	observed, now := map[string]olmcore.SubscriptionFingerprint{}, map[string]olmcore.SubscriptionFingerprint{}
	for _, o := range f.in.Resolution.Observed {
		observed[o.Name] = o
	}
	for _, s := range f.subscriptions {
		fingerprint, d := olmcore.FingerprintOf(s), f.decisions[s.Name]
		isMoved := plan != nil && relation.RefersTo(s, plan) || d.Changed && !f.isOwner(s.Name)
		if isMoved && fingerprint.CurrentCSV == d.CurrentCSV {
			fingerprint.CurrentCSV = observed[s.Name].CurrentCSV
		}
		now[s.Name] = fingerprint
	}
	return !maps.Equal(observed, now)
}

// involves reports whether the plan contains the operator of a Subscription.
func (f *facts) involves(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return plan.UID != "" && relation.RefersTo(s, plan) || f.changed(s) ||
		f.isOwner(s.Name) && slices.ContainsFunc(f.in.Resolution.Operators, func(o olmcore.Operator) bool {
			return slices.Contains(o.For, s.Name) || o.Name == s.Status.CurrentCSV || o.Package != "" && o.Package == relation.PackageOf(s)
		})
}

// relate adds owners, labels, the annotations that record both, and the finalizer to a plan, which it changes. All
// Subscriptions of the namespace own the plan, or all of the set. The Diagnostics report packages whose label is
// impossible.
func (f *facts) relate(plan *v1alpha1.InstallPlan) (found []olmcore.Diagnostic) {
	var owners, involved []*v1alpha1.Subscription
	for _, s := range f.subscriptions {
		if f.isOwner(s.Name) {
			owners = append(owners, s)
		}
		if !f.involves(s, plan) {
			continue
		}
		involved = append(involved, s)
		if _, err := olmcore.ComponentLabelKey(relation.PackageOf(s), f.in.Namespace); err != nil {
			found = append(found, f.in.diagnose([]string{s.Name}, olmcore.Warning, ReasonLabelImpossible, "Subscription %s: %s", s.Name, err))
		}
	}
	var packages []string
	for _, o := range f.in.Resolution.Operators {
		packages = append(packages, o.Package)
	}
	relation.Relate(plan, owners, involved, packages...)
	if f.owners != nil && relation.Untouched(plan) && !(plan.Spec.Approval == v1alpha1.ApprovalManual && plan.Spec.Approved) {
		plan.Annotations, _ = olmcore.MergeMaps(plan.Annotations, map[string]string{olmcore.AnnotationSeparatePlan: "true"})
	}
	if !f.in.Config.DisableFinalizer {
		relation.AddFinalizer(plan)
	}
	return found
}

// manual returns the Subscriptions that require manual approval. One of them makes every plan of the namespace wait, or
// every plan of its set.
func (f *facts) manual() []*v1alpha1.Subscription {
	return slices.DeleteFunc(slices.Clone(f.subscriptions), func(s *v1alpha1.Subscription) bool {
		return !f.isOwner(s.Name) || !relation.WantsManual(s)
	})
}

// awaited returns the Subscriptions that do not reference the plan by its UID yet but will. These are Subscriptions
// that the resolution changes, that lost their plan before it installed a version of this one, or that leave a plan
// shared with other sets. Subscriptions that are being deleted do not count. referred reports whether any Subscription
// references the plan.
func (f *facts) awaited(plan *v1alpha1.InstallPlan) (awaited []*v1alpha1.Subscription, referred bool) {
	for _, s := range f.subscriptions {
		switch {
		case s.DeletionTimestamp != nil:
		case relation.RefersExactly(s, plan):
			referred = true
		case f.changed(s) || f.lostPlan(s, plan) || f.waitsWith(s, plan.Spec.ClusterServiceVersionNames, plan.UID, f.isShared):
			awaited = append(awaited, s)
		}
	}
	return awaited, referred
}

// lostPlan reports whether a Subscription waits for a version of this plan and references a plan that does not exist or
// was superseded. It is about to reference this plan, or to forget the version. If the version were installed before
// that, no Subscription would follow it.
func (f *facts) lostPlan(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return s.Status.InstallPlanRef != nil && s.Status.State == v1alpha1.SubscriptionStateUpgradePending &&
		s.Status.InstalledCSV != s.Status.CurrentCSV && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV) &&
		!slices.ContainsFunc(f.plans, func(p *v1alpha1.InstallPlan) bool { return relation.RefersTo(s, p) && !relation.IsSuperseded(p) })
}

// namesOf returns the names of Subscriptions, separated by commas.
func namesOf(subscriptions []*v1alpha1.Subscription) string {
	var names []string
	for _, s := range subscriptions {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
