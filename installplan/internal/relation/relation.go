// SPDX-License-Identifier: Apache-2.0

// Package relation relates InstallPlans to their Subscriptions: owner references, component labels, and the annotations
// that record both. It also decides whose approval a plan needs, which plan supersedes another, and when the finalizer
// is set. The functions do not change their arguments unless the comment says so.
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

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

const (
	// GeneratedBy is the annotation of a Subscription with the name of the plan that created it.
	GeneratedBy = "olm.generated-by"
	// Contributors is the annotation with the UIDs of the Subscriptions that a plan was created for. Packages is the
	// annotation with the packages of these Subscriptions and of dependencies. Both values are lists separated by commas.
	Contributors = plans.AnnotationContributors
	Packages     = olmcore.KeyPrefix + "packages"
	// ContentHash is the annotation of a plan with the hash of its content.
	ContentHash = olmcore.KeyPrefix + "content-hash"
	// Finalizer is the finalizer that keeps a deleted plan until its cleanup is done.
	Finalizer = "operators.coreos.com/installplan-cleanup"
)

// OrphanGrace is the maximum age of a plan without steps. OrphanGrace is also the time for which a Subscription may
// reference a plan that does not exist.
const OrphanGrace = 5 * time.Minute

// RefersTo reports whether the status of a Subscription references the plan. The name must match. The namespace and the
// UID must also match if the reference contains them.
func RefersTo(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == plan.Name && (ref.Namespace == "" || ref.Namespace == plan.Namespace) &&
		(ref.UID == "" || ref.UID == plan.UID)
}

// RefersExactly reports whether the status of a Subscription references the plan by name and UID.
func RefersExactly(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return RefersTo(s, plan) && s.Status.InstallPlanRef.UID == plan.UID
}

// Needs reports whether a plan must be kept for a Subscription. The plan is kept if the Subscription references its
// name or UID. The plan is also kept if it created the Subscription and the Subscription references no plan.
func Needs(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	if ref == nil {
		return s.Annotations[GeneratedBy] == plan.Name
	}
	return ref.Name == plan.Name || plan.UID != "" && ref.UID == plan.UID
}

// HasVersion reports whether status.currentCSV of a Subscription is installed. Such a Subscription waits for no plan.
func HasVersion(s *v1alpha1.Subscription) bool {
	status := &s.Status
	return status.State == v1alpha1.SubscriptionStateAtLatest && status.CurrentCSV != "" && status.InstalledCSV == status.CurrentCSV
}

// Involves reports whether a plan belongs to a Subscription. It returns true in these cases:
//   - The Subscription references the plan, or was created by the plan.
//   - The plan is not finished, and contains status.currentCSV of the Subscription.
//   - The plan is not finished, and skipped the creation of another Subscription to the same package. The Subscription
//     has no currentCSV yet.
func Involves(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return RefersTo(s, plan) || s.Annotations[GeneratedBy] == plan.Name || takesPlaceInPlan(plan, s) ||
		!Terminal(plan) && s.Status.CurrentCSV != "" && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV)
}

// takesPlaceInPlan reports whether the plan did not create a Subscription because this one names the same package. The
// plan then installs the version for this Subscription, unless it has another one.
func takesPlaceInPlan(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return !Terminal(plan) && s.Status.CurrentCSV == "" && slices.ContainsFunc(plan.Status.Plan, func(step *v1alpha1.Step) bool {
		isSkipped := step != nil && step.Resource.Kind == kinds.Subscription && step.Status == v1alpha1.StepStatusNotCreated
		return isSkipped && PackageOf(s) != "" && GeneratedPackage(step) == PackageOf(s)
	})
}

// GeneratedPackage returns the package of the Subscription that a step creates, or an empty string if the manifest
// names none.
func GeneratedPackage(s *v1alpha1.Step) string {
	m, err := bundle.ParseManifest(s.Resource.Manifest)
	if err != nil {
		return ""
	}
	name, _ := bundle.Fields(m.Object, "spec")["name"].(string)
	return name
}

// MustOwn reports whether a Subscription must own a plan. This is the case if the plan involves the Subscription, or if
// the annotation Contributors of the plan contains the UID of the Subscription.
func MustOwn(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return s.UID != "" && (Involves(plan, s) || slices.Contains(list(plan, Contributors), string(s.UID)))
}

// PackageOf returns the package that a Subscription follows, or an empty string if the Subscription has no spec.
func PackageOf(s *v1alpha1.Subscription) string {
	if s.Spec == nil {
		return ""
	}
	return s.Spec.Package
}

// list returns the entries of an annotation of a plan.
func list(plan *v1alpha1.InstallPlan, annotation string) []string {
	return strings.FieldsFunc(plan.Annotations[annotation], func(r rune) bool { return r == ',' })
}

// Terminal reports whether a plan is Complete or Failed.
func Terminal(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete || plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

// Repaired returns the cause of a write that corrects the owner references, labels, annotations or finalizer of a plan.
func Repaired(message string) olmcore.Cause {
	return olmcore.Cause{Reason: reasons.RelationRepaired, Message: message}
}

// AskForApproval sets the approval of the given plan to Manual, and withdraws an approval. It returns the cause of the
// write.
func AskForApproval(plan *v1alpha1.InstallPlan) olmcore.Cause {
	plan.Spec.Approval, plan.Spec.Approved = v1alpha1.ApprovalManual, false
	return olmcore.Cause{Reason: reasons.ManualOwner, Message: "a Subscription that owns the plan requires manual approval"}
}

// WantsManual reports whether a Subscription requires approval of its plans and is not being deleted.
func WantsManual(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// Untouched reports whether the plan has certainly applied no step. status.startTime is written before the first step
// is applied. So if status.startTime is set, a step may have been applied that the status does not report yet.
func Untouched(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.StartTime == nil && !Applied(plan)
}

// Applied reports whether at least one step of the plan has a status other than Unknown.
func Applied(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool { return s != nil && s.Status != v1alpha1.StepStatusUnknown })
}

// HasFinalizer reports whether a plan has Finalizer.
func HasFinalizer(plan *v1alpha1.InstallPlan) bool {
	return slices.Contains(plan.Finalizers, Finalizer)
}

// AddFinalizer adds Finalizer to the finalizers of the given plan.
func AddFinalizer(plan *v1alpha1.InstallPlan) {
	if !HasFinalizer(plan) {
		plan.Finalizers = append(plan.Finalizers, Finalizer)
	}
}

// RemoveFinalizer removes Finalizer from the finalizers of the given plan.
func RemoveFinalizer(plan *v1alpha1.InstallPlan) {
	plan.Finalizers = slices.DeleteFunc(plan.Finalizers, func(f string) bool { return f == Finalizer })
	if len(plan.Finalizers) == 0 {
		plan.Finalizers = nil
	}
}

// Marked returns the Subscriptions whose annotation GeneratedBy names the plan, sorted by name. Subscriptions that
// reference another plan are omitted. In OLM, the annotation blocks resolution in the namespace once the plan is
// deleted.
func Marked(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) (marked []*v1alpha1.Subscription) {
	for _, s := range subscriptions {
		if s.UID != "" && s.Annotations[GeneratedBy] == plan.Name && (s.Status.InstallPlanRef == nil || RefersTo(s, plan)) {
			marked = append(marked, s)
		}
	}
	return inputs.ByName(marked)
}

// Unmark returns the update that removes the annotation GeneratedBy from a Subscription.
func Unmark(s *v1alpha1.Subscription, cause olmcore.Cause) olmcore.Update {
	after := s.DeepCopy()
	if delete(after.Annotations, GeneratedBy); len(after.Annotations) == 0 {
		after.Annotations = nil
	}
	return olmcore.UpdateOf(s, after, cause)
}

// Account is the annotation with the ServiceAccount of a plan, as namespace/name. The OperatorGroup named this
// ServiceAccount when the plan was created.
const Account = olmcore.KeyPrefix + "service-account"

// AccountChange returns the reason why a plan must not continue after its ServiceAccount changed. It returns an empty
// string if the plan may continue. now is the current account, or nil for the controller. A plan that was created
// without an account, or whose account is not known, may continue with any account. An account only reduces the
// permissions of such a plan.
//
// Accounts are compared by namespace and name, because permissions are bound to these. So an account that was deleted
// and created again is treated as the same account.
func AccountChange(plan *v1alpha1.InstallPlan, now *corev1.ObjectReference) string {
	current := accountName(now, plan.Namespace)
	for _, made := range [...]string{plan.Annotations[Account], accountName(plan.Status.AttenuatedServiceAccountRef, plan.Namespace)} {
		if made != "" && made != current {
			return fmt.Sprintf("created under service account %s, but the operator group of the namespace names %s now; delete the plan to create it again",
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

// PrescribedAccount returns the ServiceAccount for new plans in a namespace with these OperatorGroups, as
// namespace/name. It returns an empty string if plans run as the controller, or if there is not exactly one
// OperatorGroup.
func PrescribedAccount(groups []*operatorsv1.OperatorGroup) string {
	if found := managing(groups); len(found) > 0 {
		groups = found // otherwise no OperatorGroup has a status yet
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

// AccountOf returns the ServiceAccount that plans of a namespace run as, or nil for the controller. If the
// OperatorGroups do not determine the account, problem contains the reason. OperatorGroups without target namespaces in
// their status are ignored.
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
