// SPDX-License-Identifier: Apache-2.0

// Package relation ties InstallPlans to the Subscriptions that they are made for: owner references, component labels,
// the annotations that remember both, whose approval a plan waits for, which plan took another's place, and the
// finalizer. All functions leave their arguments as they are unless they say otherwise.
package relation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

const (
	// GeneratedBy is the annotation of a Subscription that a plan made: the plan's name.
	GeneratedBy = "olm.generated-by"
	// Contributors is the annotation of a plan that remembers the UIDs of the Subscriptions that it was made for,
	// Packages the one for their packages; lists separated by commas.
	Contributors = plans.AnnotationContributors
	Packages     = olmcore.KeyPrefix + "packages"
	// ContentHash is the annotation of a plan that identifies what it installs.
	ContentHash = olmcore.KeyPrefix + "content-hash"
	// Finalizer holds a plan until what it leaves behind is cleaned up.
	Finalizer = "operators.coreos.com/installplan-cleanup"
)

// OrphanGrace is how old a plan without steps may get, and how long a Subscription may name a plan that does not exist.
const OrphanGrace = 5 * time.Minute

// RefersTo reports whether a Subscription's status names the plan.
func RefersTo(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == plan.Name && (ref.Namespace == "" || ref.Namespace == plan.Namespace) &&
		(ref.UID == "" || ref.UID == plan.UID)
}

// RefersExactly reports whether a Subscription's status names the plan by its UID.
func RefersExactly(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return RefersTo(s, plan) && s.Status.InstallPlanRef.UID == plan.UID
}

// Needs reports whether a Subscription may be about a plan: it refers to its name or UID or, as long as it refers to
// none, was made by it. A plan that is needed is kept.
func Needs(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	if ref == nil {
		return s.Annotations[GeneratedBy] == plan.Name
	}
	return ref.Name == plan.Name || plan.UID != "" && ref.UID == plan.UID
}

// HasVersion reports whether a Subscription has the version that it follows, so that it waits for no plan.
func HasVersion(s *v1alpha1.Subscription) bool {
	status := &s.Status
	return status.State == v1alpha1.SubscriptionStateAtLatest && status.CurrentCSV != "" && status.InstalledCSV == status.CurrentCSV
}

// Involves reports whether a Subscription's own package is part of the plan.
func Involves(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return RefersTo(s, plan) || s.Annotations[GeneratedBy] == plan.Name || takesPlaceInPlan(plan, s) ||
		!Terminal(plan) && s.Status.CurrentCSV != "" && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV)
}

// takesPlaceInPlan reports whether the plan did not create a Subscription because this one names the same package. The plan then
// installs the version for this Subscription, unless it has another one.
func takesPlaceInPlan(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return !Terminal(plan) && s.Status.CurrentCSV == "" && slices.ContainsFunc(plan.Status.Plan, func(step *v1alpha1.Step) bool {
		isSkipped := step != nil && step.Resource.Kind == kinds.Subscription && step.Status == v1alpha1.StepStatusNotCreated
		return isSkipped && PackageOf(s) != "" && GeneratedPackage(step) == PackageOf(s)
	})
}

// GeneratedPackage returns the package of the Subscription that a step creates, "" if the manifest names none.
func GeneratedPackage(s *v1alpha1.Step) string {
	m, err := manifest.Parse(s.Resource.Manifest)
	if err != nil {
		return ""
	}
	name, _ := manifest.Fields(m.Object, "spec")["name"].(string)
	return name
}

// MustOwn reports whether the plan was made for a Subscription, which therefore is to own it.
func MustOwn(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return s.UID != "" && (Involves(plan, s) || slices.Contains(list(plan, Contributors), string(s.UID)))
}

// PackageOf returns the package that a Subscription follows.
func PackageOf(s *v1alpha1.Subscription) string {
	if s.Spec == nil {
		return ""
	}
	return s.Spec.Package
}

// list returns what an annotation of a plan lists.
func list(plan *v1alpha1.InstallPlan, annotation string) []string {
	return strings.FieldsFunc(plan.Annotations[annotation], func(r rune) bool { return r == ',' })
}

// Terminal reports whether a plan is Complete or Failed.
func Terminal(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete || plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

// Repaired is the Cause of a write that completes the relations of a plan.
func Repaired(message string) olmcore.Cause {
	return olmcore.Cause{Reason: report.RelationRepaired, Message: message}
}

// AskForApproval makes a plan, which it writes to, wait for approval.
func AskForApproval(plan *v1alpha1.InstallPlan) olmcore.Cause {
	plan.Spec.Approval, plan.Spec.Approved = v1alpha1.ApprovalManual, false
	return olmcore.Cause{Reason: report.ManualOwner, Message: "a Subscription that owns the plan wants manual approval"}
}

// WantsManual reports whether a Subscription lets plans wait for approval.
func WantsManual(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// Untouched reports that no step of the plan can have been applied: what a step writes comes after startTime, and may
// exist although the status does not say so yet.
func Untouched(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.StartTime == nil && !Applied(plan)
}

// Applied reports that the status says of a step that it was applied or asked for.
func Applied(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool { return s != nil && s.Status != v1alpha1.StepStatusUnknown })
}

// HasFinalizer reports whether a plan has the finalizer.
func HasFinalizer(plan *v1alpha1.InstallPlan) bool {
	return slices.Contains(plan.Finalizers, Finalizer)
}

// AddFinalizer gives a plan, which it writes to, the finalizer.
func AddFinalizer(plan *v1alpha1.InstallPlan) {
	if !HasFinalizer(plan) {
		plan.Finalizers = append(plan.Finalizers, Finalizer)
	}
}

// RemoveFinalizer takes the finalizer from a plan, which it writes to.
func RemoveFinalizer(plan *v1alpha1.InstallPlan) {
	if plan.Finalizers = slices.DeleteFunc(plan.Finalizers, func(f string) bool { return f == Finalizer }); len(plan.Finalizers) == 0 {
		plan.Finalizers = nil
	}
}

// Marked returns the Subscriptions with the mark of this plan that blocks their namespace once the plan is gone, sorted
// by name.
func Marked(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) (marked []*v1alpha1.Subscription) {
	for _, s := range subscriptions {
		if s.UID != "" && s.Annotations[GeneratedBy] == plan.Name && (s.Status.InstallPlanRef == nil || RefersTo(s, plan)) {
			marked = append(marked, s)
		}
	}
	return input.ByName(marked)
}

// Unmark asks for a Subscription without the name of the plan that made it.
func Unmark(s *v1alpha1.Subscription, cause olmcore.Cause) olmcore.Update {
	after := s.DeepCopy()
	if delete(after.Annotations, GeneratedBy); len(after.Annotations) == 0 {
		after.Annotations = nil
	}
	return olmcore.UpdateOf(s, after, cause)
}

// Account is the annotation of a plan that records the ServiceAccount under which it was made, as namespace/name.
const Account = olmcore.KeyPrefix + "service-account"

// AccountChange says why a plan that was made under a ServiceAccount may not go on as now, nil for the controller; empty
// when it may. A plan that was made under none, or of which that is not known, may go on under any: it gets fewer rights.
//
// An account is its namespace and name, which is what permissions are bound to; one that was made again under its name is
// the same.
func AccountChange(plan *v1alpha1.InstallPlan, now *corev1.ObjectReference) string {
	current := accountName(now, plan.Namespace)
	for _, made := range [...]string{plan.Annotations[Account], accountName(plan.Status.AttenuatedServiceAccountRef, plan.Namespace)} {
		if made != "" && made != current {
			return fmt.Sprintf("made under service account %s, and the operator group of the namespace names %s now; delete the plan to have it made anew",
				made, cmp.Or(current, "none"))
		}
	}
	return ""
}

func accountName(ref *corev1.ObjectReference, namespace string) string {
	if ref == nil || ref.Name == "" {
		return ""
	}
	return cmp.Or(ref.Namespace, namespace) + "/" + ref.Name
}

// PrescribedAccount returns the account that plans made under the OperatorGroups of a namespace run as, as
// namespace/name; empty for the controller and where no single group tells.
func PrescribedAccount(groups []*operatorsv1.OperatorGroup) string {
	if found := managing(groups); len(found) > 0 {
		groups = found // else they are not synced yet
	}
	if len(groups) != 1 || groups[0].Spec.ServiceAccountName == "" {
		return ""
	}
	return groups[0].Namespace + "/" + groups[0].Spec.ServiceAccountName
}

// managing returns the groups that have a status.
func managing(groups []*operatorsv1.OperatorGroup) []*operatorsv1.OperatorGroup {
	return slices.DeleteFunc(slices.Clone(groups), func(g *operatorsv1.OperatorGroup) bool { return len(g.Status.Namespaces) == 0 })
}

// AccountOf returns the account that plans of a namespace run as, nil for the controller, or what is wrong. Groups
// whose status is empty do not count.
//
// Source: operator-lifecycle-manager pkg/lib/scoped, queryServiceAccountFromNamespace.
func AccountOf(groups []*operatorsv1.OperatorGroup) (account *corev1.ObjectReference, problem string) {
	found := managing(groups)
	switch len(found) {
	case 0:
		return nil, "no operator group found that is managing this namespace"
	case 1:
	default:
		return nil, fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d", len(found))
	}
	account, confirmed := olmcore.AccountOf(found[0])
	if !confirmed {
		return nil, fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s/%s",
			found[0].Spec.ServiceAccountName, found[0].Namespace, found[0].Name)
	}
	return account, ""
}
