// SPDX-License-Identifier: Apache-2.0

// Package relation says which Subscriptions and InstallPlans belong together, and how
// long an odd relation between objects may last.
package relation

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/stage"
)

// Grace is how long an odd relation may last before something is concluded from it:
// controllers that write one object after the other are on their way.
const Grace = 2 * time.Minute

// AnnotationGeneratedBy is on a Subscription that a plan's step created: the plan's
// name.
const AnnotationGeneratedBy = "olm.generated-by"

// Annotations of plans that package installplan made.
const (
	annotationContributors = olmcore.KeyPrefix + "contributors"
	annotationContentHash  = olmcore.KeyPrefix + "content-hash"
)

// ContributorsOf returns the UIDs of the Subscriptions that a plan was made for, as far
// as it says so.
func ContributorsOf(p *v1alpha1.InstallPlan) []string {
	return strings.Split(p.Annotations[annotationContributors], ",")
}

// ContentHashOf returns the hash of what a plan brings, empty where it does not say so.
func ContentHashOf(p *v1alpha1.InstallPlan) string { return p.Annotations[annotationContentHash] }

// Refers reports whether status.installPlanRef of a Subscription names a plan.
func Refers(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == p.Name && (ref.Namespace == "" || ref.Namespace == p.Namespace) && stage.SamePlan(ref, p.UID, p.Name)
}

// Contributes reports whether a plan is for a Subscription: it refers to the plan, was
// made by it, or waits for what it brings.
func Contributes(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	switch {
	case Refers(s, p), s.Annotations[AnnotationGeneratedBy] == p.Name && s.Status.InstallPlanRef == nil:
		return true
	case !stage.Over(p) && s.Status.CurrentCSV != "" && slices.Contains(p.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV):
		return true
	}
	return slices.Contains(ContributorsOf(p), string(s.UID))
}

// OutlivedPlan reports whether the plan of a version that was installed was missing
// already before anything else was: to resolve the namespace again would undo what was
// done to the version on purpose.
func OutlivedPlan(s *v1alpha1.SubscriptionStatus) bool {
	shown, _, _ := stage.Shown(s.Conditions)
	return s.CurrentCSV != "" && s.InstalledCSV == s.CurrentCSV &&
		(shown == stage.Missing || s.State == v1alpha1.SubscriptionStateAtLatest)
}

// Writable reports whether an object stays and can be addressed safely.
func Writable(o olmcore.Object) bool {
	return o.GetDeletionTimestamp() == nil && o.GetUID() != "" && o.GetResourceVersion() != ""
}

// ByName indexes the objects of one namespace.
func ByName[O olmcore.Object](list []O) map[string]O {
	index := make(map[string]O, len(list))
	for _, o := range list {
		index[o.GetName()] = o
	}
	return index
}

// Sorted returns the objects of one namespace by name.
func Sorted[O olmcore.Object](list []O) []O {
	return slices.SortedFunc(slices.Values(list), func(a, b O) int { return strings.Compare(a.GetName(), b.GetName()) })
}
