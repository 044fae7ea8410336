// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// Relate makes Subscriptions owners of a plan, which it writes to, and labels the plan with the packages of the involved
// Subscriptions. The annotations record both, and the packages of dependencies, which may have no Subscription yet. Relate removes
// duplicate references, and no others. The list of Subscriptions may be stale, so a reference to another Subscription of the same
// name may be the live one. The garbage collector, which reads the live objects, removes a reference to a deleted Subscription.
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
		plan.Labels, _ = olmcore.MergeLabels(plan.Labels, map[string]string{key: ""})
	}
}

func remember(plan *v1alpha1.InstallPlan, annotation string, values []string) {
	slices.Sort(values)
	values = slices.DeleteFunc(slices.Compact(values), func(value string) bool { return value == "" })
	if len(values) > 0 {
		plan.Annotations, _ = olmcore.MergeLabels(plan.Annotations, map[string]string{annotation: strings.Join(values, ",")})
	}
}

// referencesTo returns the owner references to Subscriptions; one without UID has none.
func referencesTo(owners []*v1alpha1.Subscription) (refs []metav1.OwnerReference) {
	for _, s := range owners {
		if s.UID != "" {
			refs = append(refs, olmcore.OwnerReferenceTo(s))
		}
	}
	return refs
}

// unlabelled returns the packages of the Subscriptions that are involved in a plan, then of those that it remembers,
// whose component label it lacks. A package whose name gives no label has none.
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

// Repair is what the relations of a plan have to be.
type Repair struct {
	// Needed: an owner reference, a component label or the approval is not as it must be.
	Needed bool
	// ToManual: the approval is.
	ToManual bool
	// Duplicate: the plan names one owner twice.
	Duplicate bool
	// Unlabelled are the packages whose component label the plan lacks.
	Unlabelled       []string
	owners, involved []*v1alpha1.Subscription
}

// Check compares the relations of a plan with what its Subscriptions demand; proven are further Subscriptions that are
// to own it.
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

// mustBeManual: the plan was born Automatic, nothing of it was applied, and a Subscription that owns it wants to be asked.
func mustBeManual(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return plan.Spec.Approval != v1alpha1.ApprovalManual && !Terminal(plan) && Untouched(plan) &&
		slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool {
			return WantsManual(s) && (MustOwn(plan, s) || olmcore.OwnedBy(plan, s.UID))
		})
}

// Update returns a copy of the plan with all that the Repair corrects, and why it is written, with the reasons of
// package installplan.
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

// Ties finds the Subscriptions of a namespace by whatever may tie one to a plan: its name, UID, package and currentCSV,
// and the name and UID of the plans that it refers to or that made it.
type Ties map[string][]*v1alpha1.Subscription

// NewTies returns the Ties of the Subscriptions of a namespace, none of them nil.
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

// Of returns, sorted by name, the Subscriptions that a decision about a plan looks at, and maybe others: those that
// refer to it, were made by it, own it, are named like an owner or contributed to it. While it is not Complete also
// those of the packages and versions that it brings, and those that it makes.
func (t Ties) Of(plan *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
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
				add(s.Resource.Name, manifest.NameOf(s), GeneratedPackage(s))
			default:
				add(s.Resolving, s.Resource.Name)
			}
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Subscription) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found)
}
