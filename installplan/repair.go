// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// needsRepair reports whether the plan's owner references, component labels,
// finalizer or approval must be corrected. It does not allocate when nothing
// is wrong. That a plan lacks the finalizer is no reason for a write.
func (in *Input) needsRepair() bool {
	return in.lacksRelation() || in.mustBeManual() || in.mustRelease()
}

// lacksRelation reports whether an owner reference or component label of the plan
// must be corrected.
func (in *Input) lacksRelation() bool {
	plan := in.InstallPlan
	for _, s := range in.Subscriptions {
		if s == nil {
			continue
		}
		if in.mustOwn(s) && !ownedInForm(plan, s) {
			return true
		}
		if in.involved(s) && lacksLabel(plan, packageOf(s)) {
			return true
		}
	}
	for rest := plan.Annotations[in.Config.packagesKey()]; rest != ""; {
		var pkg string
		pkg, rest, _ = strings.Cut(rest, ",")
		if lacksLabel(plan, pkg) {
			return true
		}
	}
	return hasDuplicateOwner(plan)
}

// repair makes the plan's relations whole; extra Subscriptions become owners
// too.
func (d *decision) repair(extra ...*v1alpha1.Subscription) {
	plan := d.in.InstallPlan
	after := plan.DeepCopy()
	cause := olmcore.Cause{Reason: ReasonRelationRepaired, Message: "owner references, labels or finalizer were incomplete"}
	if d.in.mustBeManual() {
		after.Spec.Approval, after.Spec.Approved = v1alpha1.ApprovalManual, false
		cause = olmcore.Cause{Reason: ReasonManualOwner, Message: "a Subscription that owns the plan wants manual approval"}
	}
	owners := slices.Clone(extra)
	var packages []*v1alpha1.Subscription
	for _, s := range d.in.Subscriptions {
		if s == nil {
			continue
		}
		if d.in.mustOwn(s) {
			owners = append(owners, s)
		}
		if d.in.involved(s) {
			packages = append(packages, s)
		}
	}
	relate(after, owners, packages, d.in.Config)
	switch {
	case d.sweeping:
	case d.in.mustRelease():
		after.Finalizers = withoutFinalizer(after.Finalizers)
	case !d.in.Config.DisableFinalizer && !terminal(plan.Status.Phase) && len(plan.Status.Plan) > 0:
		addFinalizer(after)
	}
	if after.Spec.ClusterServiceVersionNames == nil {
		after.Spec.ClusterServiceVersionNames = []string{}
	}
	d.result.Actions = append(d.result.Actions, olmcore.UpdateOf(plan, after, cause))
}

// relate makes Subscriptions owners of a plan and ties it to the packages of
// those that are involved, in the memory that the annotations keep too. It only
// adds, but for references to earlier incarnations of an owner.
func relate(plan *v1alpha1.InstallPlan, owners, involved []*v1alpha1.Subscription, config Config) {
	var all, recreated []metav1.OwnerReference
	uids := splitList(plan.Annotations[config.contributorsKey()])
	for _, s := range owners {
		if s.UID == "" {
			continue
		}
		ref := olmcore.OwnerReferenceTo(s)
		all = append(all, ref)
		uids = append(uids, string(s.UID))
		// A Subscription that is older than the plan cannot have replaced one of its
		// owners: the list is behind, and the other reference is the live one.
		if !s.CreationTimestamp.Before(&plan.CreationTimestamp) {
			recreated = append(recreated, ref)
		}
	}
	plan.OwnerReferences, _ = olmcore.AddOwnerReferences(plan.OwnerReferences, all)
	plan.OwnerReferences, _ = olmcore.RepairOwnerReferences(plan.OwnerReferences, recreated)

	packages := splitList(plan.Annotations[config.packagesKey()])
	for _, s := range involved {
		if pkg := packageOf(s); pkg != "" {
			packages = append(packages, pkg)
		}
	}
	setList(plan, config.contributorsKey(), uids)
	packages = setList(plan, config.packagesKey(), packages)
	for _, pkg := range packages {
		if key, err := olmcore.ComponentLabelKey(pkg, plan.Namespace); err == nil {
			if _, has := plan.Labels[key]; !has {
				plan.Labels, _ = olmcore.MergeLabels(plan.Labels, map[string]string{key: ""})
			}
		}
	}
}

func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func setList(plan *v1alpha1.InstallPlan, key string, values []string) []string {
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) == 0 {
		return values
	}
	plan.Annotations, _ = olmcore.MergeLabels(plan.Annotations, map[string]string{key: strings.Join(values, ",")})
	return values
}

// refersTo reports whether a Subscription's status names the plan.
func refersTo(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	if ref == nil || ref.Name != plan.Name || ref.Namespace != "" && ref.Namespace != plan.Namespace {
		return false
	}
	return ref.UID == plan.UID || ref.UID == ""
}

// involved reports whether a Subscription's own package is part of the plan.
func (in *Input) involved(s *v1alpha1.Subscription) bool {
	plan := in.InstallPlan
	if refersTo(s, plan) || s.Annotations[AnnotationGeneratedBy] == plan.Name {
		return true
	}
	return !terminal(plan.Status.Phase) && s.Status.CurrentCSV != "" &&
		slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV)
}

// mustOwn reports whether the plan was made for a Subscription.
func (in *Input) mustOwn(s *v1alpha1.Subscription) bool {
	if s.UID == "" {
		return false
	}
	return in.involved(s) || listed(in.InstallPlan.Annotations[in.Config.contributorsKey()], string(s.UID))
}

func listed(list, item string) bool {
	for list != "" && strings.Contains(list, item) { // a list may be long, and looked through often
		var head string
		head, list, _ = strings.Cut(list, ",")
		if head == item {
			return true
		}
	}
	return false
}

// ownedInForm reports whether the plan has exactly the reference to s that OLM
// writes.
func ownedInForm(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	for i := range plan.OwnerReferences {
		if r := &plan.OwnerReferences[i]; r.UID == s.UID {
			return r.Name == s.Name && r.Kind == v1alpha1.SubscriptionKind &&
				r.APIVersion == v1alpha1.SubscriptionCRDAPIVersion &&
				!isTrue(r.Controller) && !isTrue(r.BlockOwnerDeletion)
		}
	}
	return false
}

func isTrue(b *bool) bool { return b != nil && *b }

func hasDuplicateOwner(plan *v1alpha1.InstallPlan) bool {
	for i := range plan.OwnerReferences {
		for j := range i {
			if plan.OwnerReferences[i].UID == plan.OwnerReferences[j].UID {
				return true
			}
		}
	}
	return false
}

func packageOf(s *v1alpha1.Subscription) string {
	if s.Spec == nil {
		return ""
	}
	return s.Spec.Package
}

// lacksLabel reports whether the plan should and does not carry a package's
// component label. The key is built on the stack, as this runs on the converged
// path.
func lacksLabel(plan *v1alpha1.InstallPlan, pkg string) bool {
	if pkg == "" {
		return false
	}
	var buf [128]byte
	if len(olmcore.ComponentLabelPrefix)+63 < len(buf) && len(pkg)+1+len(plan.Namespace) <= 63 {
		key := append(buf[:0], olmcore.ComponentLabelPrefix...)
		key = append(key, pkg...)
		key = append(key, '.')
		key = append(key, plan.Namespace...)
		if _, has := plan.Labels[string(key)]; has {
			return false
		}
	}
	key, err := olmcore.ComponentLabelKey(pkg, plan.Namespace)
	if err != nil {
		return false
	}
	_, has := plan.Labels[key]
	return !has
}

// mustRelease: the plan has the finalizer, and is done or plans shall have none.
func (in *Input) mustRelease() bool {
	return in.Config.DisableFinalizer && slices.Contains(in.InstallPlan.Finalizers, Finalizer) ||
		terminal(in.InstallPlan.Status.Phase) && in.releasable()
}

// releasable: the plan has the finalizer, and nothing but what runs needs it.
func (in *Input) releasable() bool {
	return slices.Contains(in.InstallPlan.Finalizers, Finalizer) && !slices.ContainsFunc(in.Subscriptions, in.leavesMark)
}

func addFinalizer(plan *v1alpha1.InstallPlan) {
	if !slices.Contains(plan.Finalizers, Finalizer) {
		plan.Finalizers = append(plan.Finalizers, Finalizer)
	}
}

func withoutFinalizer(finalizers []string) []string {
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == Finalizer })
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// mustBeManual: the plan was born Automatic, nothing of it was applied, and a
// Subscription that owns it wants to be asked.
func (in *Input) mustBeManual() bool {
	plan := in.InstallPlan
	if plan.Spec.Approval == v1alpha1.ApprovalManual || terminal(plan.Status.Phase) || !untouched(plan) {
		return false
	}
	for _, s := range in.Subscriptions {
		if s != nil && wantsManual(s) && (in.mustOwn(s) || olmcore.OwnedBy(plan, s.UID)) {
			return true
		}
	}
	return false
}

func wantsManual(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// untouched reports that no step of the plan can have been applied: what a step writes
// comes after startTime, and may be there although the status does not say so yet.
func untouched(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.StartTime == nil && !applied(plan)
}

// applied reports that the status says of a step that it was applied or asked for.
func applied(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s != nil && s.Status != v1alpha1.StepStatusUnknown
	})
}
