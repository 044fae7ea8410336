// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// InstallPlans that contain versions of the same package run one after the other, in the order of their generations.
// Plans without a common package do not wait for each other. The order is decided from plans alone: a cache that shows
// the later plan also shows every older write to plans, while a cache of Subscriptions may be older.

// MaxGeneration is the highest spec.generation that is used to order plans. A plan with a higher generation was not
// created by a resolution. Such a plan is neither earlier nor later than another plan, and new generations do not
// depend on it.
const MaxGeneration = math.MaxInt32

// Generation returns spec.generation of a plan if it determines the order of the plan, or 0.
func Generation(plan *v1alpha1.InstallPlan) int {
	g := plan.Spec.Generation
	if g > 0 && g <= MaxGeneration {
		return g
	}
	return 0
}

// compareOrder orders plans by generation. Two controllers with stale caches may create two plans of one generation;
// then the creation time and the name decide.
func compareOrder(a, b *v1alpha1.InstallPlan) int {
	return cmp.Or(
		cmp.Compare(Generation(a), Generation(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Name, b.Name),
	)
}

// Later returns the later plans that supersede a plan, newest first. A later plan supersedes a plan if both contain a
// package for which the plan has not applied all steps. A plan that names no packages is superseded by a later plan
// that one of its owners references. Plans that are being deleted or were superseded are omitted.
func Later(
	plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) (later []*v1alpha1.InstallPlan,
) {
	if Generation(plan) == 0 {
		return nil
	}
	packages := PackagesOf(plan)
	for _, p := range plans {
		isLater := Generation(p) > 0 && compareOrder(plan, p) < 0 && p.UID != plan.UID
		if !isLater || p.DeletionTimestamp != nil || IsSuperseded(p) {
			continue
		}
		isConcerned := hasOpenSteps(plan, Shared(packages, p))
		if len(packages) == 0 {
			isConcerned = isReferencedByOwner(p, plan, subscriptions)
		}
		if isConcerned {
			later = append(later, p)
		}
	}
	slices.SortFunc(later, func(a, b *v1alpha1.InstallPlan) int { return compareOrder(b, a) })
	return later
}

// Earlier returns the earlier plans that must end before a plan gets its steps or starts, sorted by name. An earlier
// plan waits for approval or is being installed, and the given plan is later than it.
func Earlier(
	plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) (earlier []*v1alpha1.InstallPlan,
) {
	only := []*v1alpha1.InstallPlan{plan}
	for _, p := range plans {
		isOpen := p.Status.Phase == v1alpha1.InstallPlanPhaseInstalling ||
			p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && Untouched(p)
		if isOpen && p.DeletionTimestamp == nil && HasSteps(p) && len(Later(p, only, subscriptions)) > 0 {
			earlier = append(earlier, p)
		}
	}
	slices.SortFunc(earlier, func(a, b *v1alpha1.InstallPlan) int { return strings.Compare(a.Name, b.Name) })
	return earlier
}

// Unfinished returns the message of a plan that waits for these earlier plans.
func Unfinished(earlier []*v1alpha1.InstallPlan) string {
	names := make([]string, len(earlier))
	for i, p := range earlier {
		names[i] = p.Name
	}
	if len(names) == 1 {
		return "InstallPlan " + names[0] + " is not finished"
	}
	return "InstallPlans " + strings.Join(names, ", ") + " are not finished"
}

// MayConcern reports whether another plan in the same namespace may be earlier or later than a plan. The two plans must
// have a package in common, or one of them must name no package.
func MayConcern(plan, other *v1alpha1.InstallPlan) bool {
	if plan.Namespace != other.Namespace || plan.UID == other.UID {
		return false
	}
	packages, others := PackagesOf(plan), PackagesOf(other)
	isShared := func(name string) bool { return slices.Contains(others, name) }
	return len(packages) == 0 || len(others) == 0 || slices.ContainsFunc(packages, isShared)
}

// HasSteps reports whether the status of a plan contains steps.
func HasSteps(plan *v1alpha1.InstallPlan) bool { return len(plan.Status.Plan) > 0 }

// Shared returns those of the given packages that a plan also contains.
func Shared(packages []string, plan *v1alpha1.InstallPlan) (shared []string) {
	if len(packages) == 0 {
		return nil
	}
	others := PackagesOf(plan)
	for _, name := range packages {
		if slices.Contains(others, name) {
			shared = append(shared, name)
		}
	}
	return shared
}

// hasOpenSteps reports whether a plan contains a step for one of the packages that it has not applied. A plan that has
// not started is open for each of its packages.
func hasOpenSteps(plan *v1alpha1.InstallPlan, packages []string) bool {
	if len(packages) == 0 {
		return false
	}
	if Untouched(plan) {
		return true
	}
	versions := VersionsOf(plan, packages)
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s == nil || (versions[s.Resolving] || s.Resolving == "") && !olmcore.IsStepDone(s)
	})
}

// VersionsOf returns the names of all ClusterServiceVersions of a plan. The value is true for a version of one of the
// packages, and for a version whose package is not known.
func VersionsOf(plan *v1alpha1.InstallPlan, packages []string) map[string]bool {
	versions := map[string]bool{}
	for _, s := range plan.Status.Plan {
		if s == nil || s.Resource.Kind != kinds.CSV {
			continue
		}
		own := packagesOfStep(s)
		versions[s.Resource.Name] = len(own) == 0 || slices.ContainsFunc(own, func(name string) bool { return slices.Contains(packages, name) })
	}
	return versions
}

// TakenOver returns the ClusterServiceVersions of a plan. The value of a version is true if a later plan that has
// started contains its package. That later plan replaces the version, so the plan applies no more steps for it. all is
// true if every version of the plan is replaced.
func TakenOver(plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan) (versions map[string]bool, all bool) {
	return versionsIn(plan, packagesOfLater(plan, plans, true))
}

// Outdated is like TakenOver, but for a failed plan. Later plans do not wait for a failed plan, so they replace its
// versions even before they start. Two more kinds of versions are outdated:
//   - If a Subscription references a plan of a higher generation, the versions of its package are outdated. These
//     versions stay outdated if the later plan is deleted.
//   - If another version of the namespace replaces a version, the replaced version is outdated. This does not depend on
//     the plan and the Subscription that installed the successor.
//
// A version that its Subscription waits for, and that no later plan replaces, is not outdated. csvs contains all
// ClusterServiceVersions of the namespace.
func Outdated(
	plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, csvs []*v1alpha1.ClusterServiceVersion,
) (versions map[string]bool, all bool) {
	packages := packagesOfLater(plan, plans, false)
	for _, s := range subscriptions {
		if s.Spec != nil && slices.Contains(PackagesOf(plan), s.Spec.Package) && hasLeft(s, plan) {
			packages = append(packages, s.Spec.Package)
		}
	}
	packages = slices.DeleteFunc(packages, func(pkg string) bool { return isAwaited(plan, pkg, plans, subscriptions, csvs) })
	versions, all = versionsIn(plan, packages)
	replaced := replacedBy(plan, csvs)
	if len(replaced) == 0 {
		return versions, all
	}
	outdated, all := map[string]bool{}, true
	for _, s := range plan.Status.Plan {
		if s != nil && s.Resource.Kind == kinds.CSV {
			name := s.Resource.Name
			outdated[name] = versions[name] || replaced[name]
			all = all && outdated[name]
		}
	}
	return outdated, all && len(outdated) > 0
}

// replacedBy returns the names of all versions that are replaced by a version outside the plan, directly or through
// other versions.
func replacedBy(plan *v1alpha1.InstallPlan, csvs []*v1alpha1.ClusterServiceVersion) map[string]bool {
	replaces := make(map[string]string, len(csvs))
	for _, c := range csvs {
		if !c.IsCopied() {
			replaces[c.Name] = c.Spec.Replaces
		}
	}
	replaced := map[string]bool{}
	for _, c := range csvs {
		if c.IsCopied() || c.DeletionTimestamp != nil || slices.Contains(plan.Spec.ClusterServiceVersionNames, c.Name) {
			continue
		}
		for name := c.Spec.Replaces; name != "" && !replaced[name]; name = replaces[name] {
			replaced[name] = true
		}
	}
	return replaced
}

// packagesOfLater returns the packages of a plan that later plans with steps contain. If started is true, later plans
// that have not started are ignored.
func packagesOfLater(plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan, started bool) (packages []string) {
	for _, p := range plansAfter(plan, plans) {
		if !started || p.Status.StartTime != nil {
			packages = append(packages, Shared(PackagesOf(plan), p)...)
		}
	}
	return packages
}

// plansAfter returns the plans with steps that follow a plan in order.
func plansAfter(plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan) (later []*v1alpha1.InstallPlan) {
	if Generation(plan) == 0 {
		return nil
	}
	for _, p := range plans {
		isLater := Generation(p) > 0 && compareOrder(plan, p) < 0 && p.UID != plan.UID && p.DeletionTimestamp == nil
		if isLater && !IsSuperseded(p) && HasSteps(p) {
			later = append(later, p)
		}
	}
	return later
}

// isAwaited reports whether the Subscription to a package references a failed plan and follows a version of it that no
// later plan installs instead. A later plan that would create another Subscription to the package skips its own
// version.
func isAwaited(
	plan *v1alpha1.InstallPlan, pkg string, plans []*v1alpha1.InstallPlan,
	subscriptions []*v1alpha1.Subscription, csvs []*v1alpha1.ClusterServiceVersion,
) bool {
	i := slices.IndexFunc(subscriptions, func(s *v1alpha1.Subscription) bool {
		return PackageOf(s) == pkg && RefersExactly(s, plan) && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV)
	})
	if i < 0 {
		return false
	}
	isSkipped := false
	for _, later := range plansAfter(plan, plans) {
		if len(Shared([]string{pkg}, later)) == 0 {
			continue
		}
		if isSkipped = skipsVersionOf(later, pkg, subscriptions[i].Name, csvs); !isSkipped {
			return false
		}
	}
	return isSkipped
}

// skipsVersionOf reports whether a plan would create a Subscription to a package with another name than the existing
// one. Then it skips the version for it, unless the version exists already.
func skipsVersionOf(plan *v1alpha1.InstallPlan, pkg, existing string, csvs []*v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool {
		isOther := s != nil && s.Resource.Kind == kinds.Subscription && GeneratedPackage(s) == pkg && manifest.NameOf(s) != existing
		return isOther && !slices.ContainsFunc(csvs, func(c *v1alpha1.ClusterServiceVersion) bool {
			return c.Name == s.Resolving && !c.IsCopied()
		})
	})
}

// hasLeft reports whether a Subscription references another plan than the given one, of a higher generation.
func hasLeft(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	return Generation(plan) > 0 && s.Status.InstallPlanRef != nil && !RefersTo(s, plan) && s.Status.InstallPlanGeneration > Generation(plan)
}

// versionsIn returns the versions of a plan that are of some packages, and whether those are all versions of the plan.
func versionsIn(plan *v1alpha1.InstallPlan, packages []string) (versions map[string]bool, all bool) {
	if len(packages) == 0 {
		return nil, false
	}
	versions, all = VersionsOf(plan, packages), true
	for _, is := range versions {
		all = all && is
	}
	return versions, all && len(versions) > 0
}

// isReferencedByOwner reports whether a Subscription that owns a plan references a later one.
func isReferencedByOwner(later, plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool {
		return olmcore.OwnedBy(plan, s.UID) && RefersTo(s, later)
	})
}

// SupersededBy returns the message of a plan that is superseded by the plan with the name later.
func SupersededBy(later string) string { return "superseded by InstallPlan " + later }

// Supersede changes the status of a plan that ends before or while it is installed. The phase becomes Failed, and the
// condition Installed gets the reason Superseded.
func Supersede(status *v1alpha1.InstallPlanStatus, message string, now time.Time) {
	at := olmcore.Timestamp(now)
	status.Phase, status.Message = v1alpha1.InstallPlanPhaseFailed, message
	status.SetCondition(v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: report.Superseded, Message: message,
		LastUpdateTime: &at, LastTransitionTime: &at,
	})
}

// IsSuperseded reports whether a plan was ended because later plans replaced it, or because it was not needed.
func IsSuperseded(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed &&
		plan.Status.GetCondition(v1alpha1.InstallPlanInstalled).Reason == report.Superseded
}

// PackagesOf returns the packages that a plan installs. They are listed in the annotation Packages of the plan, or else
// in the properties of its ClusterServiceVersions.
func PackagesOf(plan *v1alpha1.InstallPlan) (packages []string) {
	if packages = list(plan, Packages); len(packages) > 0 {
		return packages
	}
	for _, s := range plan.Status.Plan {
		if s != nil && s.Resource.Kind == kinds.CSV {
			packages = append(packages, packagesOfStep(s)...)
		}
	}
	return packages
}

// packagesOfStep returns the packages that the properties of a ClusterServiceVersion name.
func packagesOfStep(s *v1alpha1.Step) []string {
	text := ""
	if ref, ok := manifest.ParseRef(s.Resource.Manifest); ok {
		text = ref.Properties
	} else if m, err := manifest.Parse(s.Resource.Manifest); err == nil {
		text, _ = manifest.Strings(m.Metadata(), "annotations")[olmcore.AnnotationProperties].(string)
	}
	return olmcore.PackagesOf(text)
}
