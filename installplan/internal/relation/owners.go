// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Relate makes Subscriptions owners of a plan, which it writes to, and ties it to the
// packages of those that are involved, in the memory that the annotations keep too. It
// only adds, but for duplicates and references to earlier incarnations of an owner. It
// reports whether an owner reference or a label was not as it must be.
func Relate(plan *metav1.ObjectMeta, owners, involved []*v1alpha1.Subscription) (lacked bool) {
	var all, recreated []metav1.OwnerReference
	uids := List(plan.Annotations[Contributors])
	for _, s := range owners {
		if s.UID == "" {
			continue
		}
		ref := olmcore.OwnerReferenceTo(s)
		all = append(all, ref)
		uids = append(uids, string(s.UID))
		// A Subscription that is older than the plan cannot have replaced one of its
		// owners: the list is stale, and the other reference is the live one.
		if !s.CreationTimestamp.Before(&plan.CreationTimestamp) {
			recreated = append(recreated, ref)
		}
	}
	plan.OwnerReferences, lacked = olmcore.AddOwnerReferences(plan.OwnerReferences, all)
	plan.OwnerReferences, _ = olmcore.RepairOwnerReferences(plan.OwnerReferences, recreated)

	packages := List(plan.Annotations[Packages])
	for _, s := range involved {
		if pkg := PackageOf(s); pkg != "" {
			packages = append(packages, pkg)
		}
	}
	remember(plan, Contributors, uids)
	remember(plan, Packages, packages)
	for _, pkg := range packages {
		if key, lacks := label(plan, pkg); lacks {
			plan.Labels, _ = olmcore.MergeLabels(plan.Labels, map[string]string{key: ""})
			lacked = true
		}
	}
	return lacked
}

func remember(plan *metav1.ObjectMeta, key string, values []string) {
	slices.Sort(values)
	if values = slices.Compact(values); len(values) > 0 {
		plan.Annotations, _ = olmcore.MergeLabels(plan.Annotations, map[string]string{key: strings.Join(values, ",")})
	}
}

// label returns the key of a package's component label, and whether a plan should and
// does not carry it. A package whose name gives no key has none.
func label(plan *metav1.ObjectMeta, pkg string) (key string, lacks bool) {
	key, err := olmcore.ComponentLabelKey(pkg, plan.Namespace)
	if err != nil || pkg == "" {
		return "", false
	}
	_, has := plan.Labels[key]
	return key, !has
}

// LacksLabel reports whether a plan should and does not carry a package's component
// label.
func LacksLabel(plan *v1alpha1.InstallPlan, pkg string) bool {
	_, lacks := label(&plan.ObjectMeta, pkg)
	return lacks
}

// HasDuplicateOwner reports whether a plan names one owner twice.
func HasDuplicateOwner(plan *v1alpha1.InstallPlan) bool {
	_, duplicate := olmcore.AddOwnerReferences(plan.OwnerReferences, nil)
	return duplicate
}

// Repair is what the relations of a plan have to be.
type Repair struct {
	// Needed: an owner reference, a component label or the approval is not as it must
	// be.
	Needed bool
	// ToManual: the approval is.
	ToManual bool
	metadata metav1.ObjectMeta // shares what is as it must be
}

// Check compares the relations of a plan with what its Subscriptions demand; proven
// are further Subscriptions that are to own it.
func Check(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, proven ...*v1alpha1.Subscription) Repair {
	owners, involved := slices.Clone(proven), []*v1alpha1.Subscription(nil)
	for _, s := range subscriptions {
		if MustOwn(plan, s) {
			owners = append(owners, s)
		}
		if Involves(plan, s) {
			involved = append(involved, s)
		}
	}
	r := Repair{metadata: plan.ObjectMeta, ToManual: mustBeManual(plan, subscriptions)}
	lacked := Relate(&r.metadata, owners, involved)
	r.Needed = lacked || r.ToManual
	return r
}

// Update returns a copy of the plan with all that the Repair corrects, and why it is
// written, with the reasons of package installplan.
func (r Repair) Update(plan *v1alpha1.InstallPlan) (after *v1alpha1.InstallPlan, cause olmcore.Cause) {
	after = plan.DeepCopy()
	after.ObjectMeta = *r.metadata.DeepCopy()
	if after.Spec.ClusterServiceVersionNames == nil {
		after.Spec.ClusterServiceVersionNames = []string{} // the API requires the list
	}
	if r.ToManual {
		return after, AskForApproval(after)
	}
	return after, Repaired("owner references, labels or finalizer were incomplete")
}
