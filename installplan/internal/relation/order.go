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

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/olmcore"
)

// InstallPlans that contain versions of the same package run one after the other, in the order of their generations.
// Plans without a common package do not wait for each other. The order is decided from plans alone: a cache that shows
// the later plan also shows every older write to plans, while a cache of Subscriptions may be older.

// MaxGeneration is the highest spec.generation that is used to order plans. A plan with a higher generation was not
// created by a resolution. Such a plan is neither earlier nor later than another plan, and new generations do not
// depend on it.
const MaxGeneration = math.MaxInt32

// Generation returns spec.generation of a plan, or 0 if it is not between 1 and MaxGeneration. A plan with the
// generation 0 is neither earlier nor later than another plan.
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

// Later returns the later plans that supersede a plan, newest first. A later plan supersedes an earlier plan if both
// contain a package for which the earlier plan has not applied all steps. An earlier plan that names no packages is
// superseded by a later plan that one of its owners references. Plans that are being deleted or were superseded are
// omitted.
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

// Earlier returns the plans that must end before the given plan gets its steps or starts, sorted by name. These plans
// wait for approval or are being installed, and the given plan supersedes them according to Later.
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

// Unfinished returns the message of a plan that waits for the given earlier plans.
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

// MayConcern reports whether two plans may have to run one after the other. Both must be in the same namespace. They
// must have a package in common, or one of them must name no package.
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

// Shared returns the packages in the given list that a plan also contains.
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

// VersionsOf returns a map with the name of every ClusterServiceVersion in the steps of a plan. The value is true if
// the version belongs to one of the given packages, or if its package is unknown.
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

// TakenOver returns a map with the name of every ClusterServiceVersion in the steps of a plan. The value is true if a
// later plan that has started replaces the version. The earlier plan then applies no more steps for the version. all is
// true if every version is replaced.
//
// A later plan replaces the versions of its packages, and versions whose package is unknown. The map is nil if no later
// plan that has started shares a package with the plan.
func TakenOver(plan *v1alpha1.InstallPlan, plans []*v1alpha1.InstallPlan) (versions map[string]bool, all bool) {
	return versionsIn(plan, packagesOfLater(plan, plans, true))
}

// Outdated returns a map with the name of every ClusterServiceVersion in the steps of a failed plan. The value is true
// if the version is outdated. The plan does not retry the steps of an outdated version. all is true if every version is
// outdated. The map may be nil if no version is outdated. csvs contains all ClusterServiceVersions of the namespace.
//
// A version is outdated in these cases:
//   - A later plan with steps contains the package of the version. The later plan need not have started, because it
//     does not wait for a failed plan.
//   - A Subscription to the package references a plan of a higher generation. The version stays outdated if that plan
//     is deleted.
//   - A ClusterServiceVersion that does not belong to the plan replaces the version, directly or through other
//     versions. It does not matter which plan and Subscription installed the successor.
//
// The first two cases do not apply while a Subscription to the package waits for the version in the failed plan, and
// every later plan for the package skips its own version. If one of the two cases applies to any package of the plan,
// versions whose package is unknown are outdated too.
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
		isOther := s != nil && s.Resource.Kind == kinds.Subscription && GeneratedPackage(s) == pkg && bundle.NameOfStep(s) != existing
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

// SupersededBy returns the message of a superseded plan. later is the name of the plan that supersedes it.
func SupersededBy(later string) string { return "superseded by InstallPlan " + later }

// Supersede marks a plan as superseded in the given status. The phase becomes Failed, and the condition Installed gets
// the reason Superseded. Use it for a plan that is not finished.
func Supersede(status *v1alpha1.InstallPlanStatus, message string, now time.Time) {
	at := olmcore.Timestamp(now)
	status.Phase, status.Message = v1alpha1.InstallPlanPhaseFailed, message
	status.SetCondition(v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: reasons.Superseded, Message: message,
		LastUpdateTime: &at, LastTransitionTime: &at,
	})
}

// IsSuperseded reports whether a plan was ended because later plans replaced it, or because it was not needed.
func IsSuperseded(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed &&
		plan.Status.GetCondition(v1alpha1.InstallPlanInstalled).Reason == reasons.Superseded
}

// PackagesOf returns the packages that a plan installs. It reads them from the annotation Packages of the plan. If that
// is empty, it reads them from the properties of the ClusterServiceVersions in the steps.
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
	if ref, ok := bundle.ParseReference(s.Resource.Manifest); ok {
		text = ref.Properties
	} else if m, err := bundle.ParseManifest(s.Resource.Manifest); err == nil {
		text, _ = bundle.Strings(m.Metadata(), "annotations")[olmcore.AnnotationProperties].(string)
	}
	return olmcore.PackagesOf(text)
}
