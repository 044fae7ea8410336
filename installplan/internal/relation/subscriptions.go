// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// GeneratedBy is the annotation of a Subscription that a plan made: the plan's name.
	GeneratedBy = "olm.generated-by"
	// Contributors is the annotation of a plan that remembers the UIDs of the
	// Subscriptions that it was made for, Packages the one for their packages; lists
	// separated by commas.
	Contributors = olmcore.KeyPrefix + "contributors"
	Packages     = olmcore.KeyPrefix + "packages"
	// ContentHash is the annotation of a plan that identifies what it installs.
	ContentHash = olmcore.KeyPrefix + "content-hash"
)

// OrphanGrace is how old a plan without steps may get, and how long a Subscription may
// name a plan that does not exist.
const OrphanGrace = 5 * time.Minute

// RefersTo reports whether a Subscription's status names the plan.
func RefersTo(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	if ref == nil || ref.Name != plan.Name || ref.Namespace != "" && ref.Namespace != plan.Namespace {
		return false
	}
	return ref.UID == plan.UID || ref.UID == ""
}

// RefersExactly reports whether a Subscription's status names the plan by its UID.
func RefersExactly(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return RefersTo(s, plan) && s.Status.InstallPlanRef.UID == plan.UID
}

// Needs reports whether a Subscription may be about a plan: it refers to its name or
// UID or, as long as it refers to none, was made by it. A plan that is needed is kept.
func Needs(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	if ref == nil {
		return s.Annotations[GeneratedBy] == plan.Name
	}
	return ref.Name == plan.Name || plan.UID != "" && ref.UID == plan.UID
}

// Involves reports whether a Subscription's own package is part of the plan.
func Involves(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	if RefersTo(s, plan) || s.Annotations[GeneratedBy] == plan.Name {
		return true
	}
	return !Terminal(plan) && s.Status.CurrentCSV != "" &&
		slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV)
}

// MustOwn reports whether the plan was made for a Subscription, which therefore is to
// own it.
func MustOwn(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	return s.UID != "" && (Involves(plan, s) || slices.Contains(List(plan.Annotations[Contributors]), string(s.UID)))
}

// PackageOf returns the package that a Subscription follows.
func PackageOf(s *v1alpha1.Subscription) string {
	if s.Spec == nil {
		return ""
	}
	return s.Spec.Package
}

// List splits the value of an annotation at its commas.
func List(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
}

// Terminal reports whether a plan is Complete or Failed.
func Terminal(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete || plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}
