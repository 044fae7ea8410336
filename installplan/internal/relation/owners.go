// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// Relate adds owner references, component labels and annotations to the given plan. The plan gets an owner reference to
// each Subscription in owners. It gets a component label for the package of each Subscription in involved, and for each
// package in dependencies. A dependency may not have a Subscription yet. The annotations Contributors and Packages
// record the owners and the packages.
//
// Relate removes duplicate owner references, but no others. An owner reference with the name of an owner and another
// UID is kept, because the list of Subscriptions may be stale. The garbage collector removes references to deleted
// Subscriptions.
func Relate(plan *v1alpha1.InstallPlan, owners, involved []*v1alpha1.Subscription, dependencies ...string) {
	uids, packages := list(plan, Contributors), append(list(plan, Packages), dependencies...)
	for _, s := range owners {
		uids = append(uids, string(s.UID))
	}
	plan.OwnerReferences, _ = olmcore.AddOwnerReferences(plan.OwnerReferences, referencesTo(owners))
	for _, s := range involved {
		packages = append(packages, PackageOf(s))
	}
	remember(plan, Contributors, uids)
	remember(plan, Packages, packages)
	for _, pkg := range unlabelled(plan, involved) {
		key, _ := olmcore.ComponentLabelKey(pkg, plan.Namespace)
		plan.Labels, _ = olmcore.MergeMaps(plan.Labels, map[string]string{key: ""})
	}
}

func remember(plan *v1alpha1.InstallPlan, annotation string, values []string) {
	slices.Sort(values)
	values = slices.DeleteFunc(slices.Compact(values), func(value string) bool { return value == "" })
	if len(values) > 0 {
		plan.Annotations, _ = olmcore.MergeMaps(plan.Annotations, map[string]string{annotation: strings.Join(values, ",")})
	}
}

// referencesTo returns the owner references to Subscriptions. A Subscription without UID gets none.
func referencesTo(owners []*v1alpha1.Subscription) (refs []metav1.OwnerReference) {
	for _, s := range owners {
		if s.UID != "" {
			refs = append(refs, olmcore.OwnerReferenceTo(s))
		}
	}
	return refs
}

// unlabelled returns the packages whose component label a plan lacks: those of the involved Subscriptions, then those
// in its annotation. Packages whose label would be invalid are omitted.
func unlabelled(plan *v1alpha1.InstallPlan, involved []*v1alpha1.Subscription) (packages []string) {
	for _, s := range involved {
		packages = append(packages, PackageOf(s))
	}
	for _, pkg := range list(plan, Packages) {
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
	}
	return slices.DeleteFunc(packages, func(pkg string) bool {
		key, err := olmcore.ComponentLabelKey(pkg, plan.Namespace)
		_, has := plan.Labels[key]
		return err != nil || has
	})
}

// Repair contains the corrections of the owner references, component labels and approval of a plan. Check returns it.
type Repair struct {
	// Needed is true if an owner reference, a component label or the approval must be changed.
	Needed bool
	// ToManual is true if the approval must be changed to Manual.
	ToManual bool
	// Duplicate is true if the plan has the same owner reference twice.
	Duplicate bool
	// Unlabelled contains the packages whose component label is missing.
	Unlabelled       []string
	owners, involved []*v1alpha1.Subscription
}

// Check returns the corrections of owner references, component labels and approval that a plan needs because of the
// given Subscriptions. proven contains Subscriptions that should own the plan, in addition to those for which MustOwn
// returns true.
func Check(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, proven ...*v1alpha1.Subscription) Repair {
	r := Repair{owners: proven, ToManual: mustBeManual(plan, subscriptions)}
	for _, s := range subscriptions {
		if MustOwn(plan, s) {
			r.owners = append(r.owners, s)
		}
		if Involves(plan, s) {
			r.involved = append(r.involved, s)
		}
	}
	_, lacks := olmcore.AddOwnerReferences(plan.OwnerReferences, referencesTo(r.owners))
	if lacks {
		_, r.Duplicate = olmcore.AddOwnerReferences(plan.OwnerReferences, nil)
	}
	r.Unlabelled = unlabelled(plan, r.involved)
	r.Needed = r.ToManual || lacks || len(r.Unlabelled) > 0
	return r
}

// mustBeManual reports whether the approval of a plan must become Manual: the plan is Automatic, no step of it is
// applied, and a Subscription that owns it requires approval.
func mustBeManual(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return plan.Spec.Approval != v1alpha1.ApprovalManual && !Terminal(plan) && Untouched(plan) &&
		slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool {
			return WantsManual(s) && (MustOwn(plan, s) || olmcore.OwnedBy(plan, s.UID))
		})
}

// Update returns a copy of the plan with all corrections, and the cause of the write. The reason of the cause is a
// constant of package installplan.
func (r Repair) Update(plan *v1alpha1.InstallPlan) (after *v1alpha1.InstallPlan, cause olmcore.Cause) {
	after = plan.DeepCopy()
	Relate(after, r.owners, r.involved)
	if after.Spec.ClusterServiceVersionNames == nil {
		after.Spec.ClusterServiceVersionNames = []string{} // the API requires the list
	}
	if r.ToManual {
		return after, AskForApproval(after)
	}
	return after, Repaired("owner references, labels or finalizer were incomplete")
}

// Ties is an index of the Subscriptions of a namespace. Of uses it to find the Subscriptions of a plan. The index
// contains a Subscription under each of these values:
//   - its name, UID, package and currentCSV
//   - the name and UID of the plan that it references, and the name of the plan that created it
type Ties map[string][]*v1alpha1.Subscription

// NewTies returns an index of the Subscriptions of a namespace. No Subscription may be nil.
func NewTies(subscriptions []*v1alpha1.Subscription) Ties {
	ties := Ties{}
	for _, s := range subscriptions {
		values := []string{s.Name, string(s.UID), PackageOf(s), s.Status.CurrentCSV, s.Annotations[GeneratedBy]}
		if ref := s.Status.InstallPlanRef; ref != nil {
			values = append(values, ref.Name, string(ref.UID))
		}
		for _, value := range values {
			if value != "" {
				ties[value] = append(ties[value], s)
			}
		}
	}
	return ties
}

// Subscriptions returns the Subscriptions that may be related to a plan, sorted by name. A Subscription is returned in these
// cases:
//   - It references the plan, or was created by the plan.
//   - It owns the plan, or has the name of an owner.
//   - Its UID is in the annotation Contributors of the plan.
//   - The plan is not Complete, and contains the package or version of the Subscription, or a step that creates the
//     Subscription.
func (t Ties) Subscriptions(plan *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	found := make([]*v1alpha1.Subscription, 0, 8)
	add := func(values ...string) {
		for _, value := range values {
			found = append(found, t[value]...)
		}
	}
	add(plan.Name, string(plan.UID))
	add(list(plan, Contributors)...)
	for _, r := range plan.OwnerReferences {
		add(string(r.UID), r.Name)
	}
	if plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		add(plan.Spec.ClusterServiceVersionNames...)
		add(PackagesOf(plan)...)
		for _, s := range plan.Status.Plan {
			switch {
			case s == nil:
			case s.Resource.Kind == kinds.Subscription:
				add(s.Resource.Name, bundle.NameOfStep(s), GeneratedPackage(s))
			default:
				add(s.Resolving, s.Resource.Name)
			}
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Subscription) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found)
}
