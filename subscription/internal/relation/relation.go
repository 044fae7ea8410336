// SPDX-License-Identifier: Apache-2.0

// Package relation answers questions about InstallPlans: their state, and which Subscriptions they belong to. It also
// contains the grace period for inconsistent relations.
package relation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// Grace is how long a relation between objects may be inconsistent before a conclusion is drawn. Controllers write one
// object after another, so an inconsistency may be temporary.
const Grace = 2 * time.Minute

const (
	// AnnotationGeneratedBy is the annotation that names the InstallPlan whose step created a Subscription.
	AnnotationGeneratedBy = "olm.generated-by"
	// AnnotationContentHash is an annotation that package installplan sets on the InstallPlans that it creates. Its value
	// is a hash of the content that the InstallPlan installs.
	AnnotationContentHash = olmcore.KeyPrefix + "content-hash"

	// reasonSuperseded and conditionRetrying are what package installplan writes on a plan whose place a later one
	// took, and on one that failed for a passing reason.
	reasonSuperseded  = "Superseded"
	conditionRetrying = "Retrying"
)

// PlanConditions contains the types of the conditions of a Subscription that describe its InstallPlan. If several
// conditions have the same time, the last one in this list is used.
var PlanConditions = []v1alpha1.SubscriptionConditionType{
	v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed, v1alpha1.SubscriptionInstallPlanMissing,
}

// SamePlan reports whether a reference names the InstallPlan with the given UID and name. It compares UIDs if both are
// set, and otherwise names.
func SamePlan(ref *corev1.ObjectReference, uid types.UID, name string) bool {
	return Same(ref.UID, ref.Name, uid, name)
}

// Same reports whether two pairs of UID and name identify the same InstallPlan. It compares UIDs if both are set, and
// otherwise names.
func Same(uid types.UID, name string, otherUID types.UID, otherName string) bool {
	if uid != "" && otherUID != "" {
		return uid == otherUID
	}
	return name == otherName
}

// Refers reports whether status.installPlanRef of a Subscription references an InstallPlan.
func Refers(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == p.Name && (ref.Namespace == "" || ref.Namespace == p.Namespace) && SamePlan(ref, p.UID, p.Name)
}

// Contributes reports whether an InstallPlan belongs to a Subscription. One of these facts is enough:
//   - The Subscription references the InstallPlan.
//   - The Subscription references no InstallPlan, and its annotation olm.generated-by names the InstallPlan.
//   - The InstallPlan is neither Complete nor Failed, and it installs status.currentCSV.
//   - An annotation of the InstallPlan lists the UID of the Subscription as a contributor.
func Contributes(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	return Refers(s, p) || s.Annotations[AnnotationGeneratedBy] == p.Name && s.Status.InstallPlanRef == nil ||
		!Over(p) && s.Status.CurrentCSV != "" && slices.Contains(p.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV) ||
		slices.Contains(strings.Split(p.Annotations[plans.AnnotationContributors], ","), string(s.UID))
}

// Statusless reports whether an InstallPlan has no phase, no steps and no bundle lookups. Such an InstallPlan never
// runs.
func Statusless(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0 && len(p.Status.BundleLookups) == 0
}

// HasInstalled reports whether an InstallPlan contains steps for a ClusterServiceVersion and has applied all of them.
func HasInstalled(p *v1alpha1.InstallPlan, csv string) bool {
	found := false
	for _, s := range p.Status.Plan {
		if s != nil && s.Resolving == csv {
			found = true
			if !plans.IsStepDone(s) {
				return false
			}
		}
	}
	return found
}

// Over reports whether the phase of an InstallPlan is Complete or Failed.
func Over(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

// Executed reports whether steps of an InstallPlan may have been applied.
func Executed(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseInstalling || Over(p) && (!IsSuperseded(p) || p.Status.StartTime != nil)
}

// Installed returns the Installed condition of an InstallPlan. If the InstallPlan has no such condition, the returned
// status is Unknown.
func Installed(p *v1alpha1.InstallPlan) v1alpha1.InstallPlanCondition {
	return p.Status.GetCondition(v1alpha1.InstallPlanInstalled)
}

// InstalledAt returns the lastUpdateTime of the Installed condition of an InstallPlan. It returns the zero time if p is
// nil or has no such condition. The lastUpdateTime also changes if the InstallPlan runs again with the same result.
func InstalledAt(p *v1alpha1.InstallPlan) time.Time {
	if p == nil {
		return time.Time{}
	}
	return Time(Installed(p).LastUpdateTime)
}

// IsSuperseded reports whether an InstallPlan ended because a newer one superseded it. A superseded InstallPlan may
// have applied some of its steps; see Executed.
func IsSuperseded(p *v1alpha1.InstallPlan) bool {
	c := Installed(p)
	return c.Status == corev1.ConditionFalse && c.Reason == reasonSuperseded
}

// HasFailed reports whether the Installed condition of an InstallPlan records a failure of the current attempt or of an
// earlier one.
func HasFailed(p *v1alpha1.InstallPlan) bool {
	c := Installed(p)
	return c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.InstallPlanReasonComponentFailed
}

// FailureReason returns the reason why an InstallPlan failed. It returns InstallPlanFailed if the Installed condition
// contains no reason.
func FailureReason(p *v1alpha1.InstallPlan) string {
	c := Installed(p)
	if c.Status == corev1.ConditionFalse && c.Reason != "" {
		return string(c.Reason)
	}
	return v1alpha1.InstallPlanFailed
}

// IsRetried reports whether a failed InstallPlan is retried automatically.
func IsRetried(p *v1alpha1.InstallPlan) bool {
	return p.Status.GetCondition(conditionRetrying).Status == corev1.ConditionTrue
}

// Message returns the message of the Installed condition of an InstallPlan. If the condition has no message, it returns
// the messages of the pending bundles.
func Message(p *v1alpha1.InstallPlan) string {
	c := Installed(p)
	if c.Message != "" && c.Status != corev1.ConditionUnknown {
		return c.Message
	}
	var texts []string
	for _, lookup := range p.Status.BundleLookups {
		for _, c := range lookup.Conditions {
			if c.Type == v1alpha1.BundleLookupPending && c.Status != corev1.ConditionUnknown && c.Message != "" {
				texts = append(texts, c.Message+".")
			}
		}
	}
	return strings.Join(texts, " ")
}

// Time returns *t, or the zero time if t is nil.
func Time(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Latest returns the latest of the given times. It panics if no time is given.
func Latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// Writable reports whether an object can be updated: it is not being deleted, and it has a UID and a resourceVersion.
func Writable(o olmcore.Object) bool {
	return o.GetDeletionTimestamp() == nil && o.GetUID() != "" && o.GetResourceVersion() != ""
}

// ByName returns a map from the name of each object in a list to the object. All objects must be in one namespace.
func ByName[O olmcore.Object](list []O) map[string]O {
	index := make(map[string]O, len(list))
	for _, o := range list {
		index[o.GetName()] = o
	}
	return index
}

// Sorted returns a copy of a list, sorted by namespace and name.
func Sorted[O olmcore.Object](list []O) []O {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b O) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return list
}

// Mirrors reports whether status.installplan has the same content as status.installPlanRef.
func Mirrors(install *v1alpha1.InstallPlanReference, ref *corev1.ObjectReference) bool {
	if install == nil || ref == nil {
		return install == nil && ref == nil
	}
	return *install == *v1alpha1.NewInstallPlanReference(ref)
}

// ValidateNames returns an *olmcore.InputError if an object of the list is nil or has no name.
func ValidateNames(field string, list []olmcore.Object) error {
	for i, o := range list {
		if olmcore.KeyOf(o).Name == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: "is nil or has no name"}
		}
	}
	return nil
}

// Names returns the names of the objects, sorted by namespace and name and joined with commas.
func Names[O olmcore.Object](list []O) string {
	names := make([]string, len(list))
	for i, o := range Sorted(list) {
		names[i] = o.GetName()
	}
	return strings.Join(names, ", ")
}
