// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Gather reads the Input of one namespace. It does not set the fields that only the caller knows, such as Now,
// Resolution, Live, Observations, Histories and Checkpoint. Reconcile does nothing for a namespace without
// Subscriptions.
//
// A failed read is an error. If the Subscriptions, InstallPlans, ClusterServiceVersions or OperatorGroups of the
// namespace cannot be read, the error is an olmcore.ErrNotRead that names the missing information. Components contains
// the objects of the operators whose CSVs have a component label, except kinds that cannot be read. With
// Config.SkipComponents, Components is empty.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, config Config) (Input, error) {
	in := Input{Namespace: namespace, Config: config}
	var err error
	in.Subscriptions, err = list[*v1alpha1.Subscription](ctx, r, namespace, "which operators are wanted")
	if err != nil {
		return Input{}, err
	}
	in.InstallPlans, err = list[*v1alpha1.InstallPlan](ctx, r, namespace, "what the Subscriptions wait for")
	if err != nil {
		return Input{}, err
	}
	in.OperatorGroups, err = list[*operatorsv1.OperatorGroup](ctx, r, namespace, "whether the namespace can be resolved")
	if err != nil {
		return Input{}, err
	}
	in.ClusterServiceVersions, err = gatherCSVs(ctx, r, &in)
	if err != nil {
		return Input{}, err
	}
	if config.SkipComponents {
		return in, nil
	}
	in.Components, err = component.GatherOwned(ctx, r, namespace, in.ClusterServiceVersions.Items)
	if err != nil {
		return Input{}, err
	}
	return in, nil
}

// list reads a list that is required. unknown says what is unknown without it.
func list[T olmcore.Object](ctx context.Context, r olmcore.Reader, namespace, unknown string) (olmcore.Observed[T], error) {
	items, err := olmcore.List[T](ctx, r, namespace, nil)
	if err != nil {
		return olmcore.Observed[T]{}, inputs.Needed(err, unknown)
	}
	return olmcore.Found(items...), nil
}

// gatherCSVs reads the CSVs that Reconcile needs. All CSVs of the namespace are only listed if some of them cannot be
// read by name, which is rare.
func gatherCSVs(ctx context.Context, r olmcore.Reader, in *Input) (olmcore.Observed[*v1alpha1.ClusterServiceVersion], error) {
	const unknown = "which CSVs replaced missing ones, and which CSVs InstallPlans installed"
	named := csvsNamedBy(in.Subscriptions.Items)
	found, err := getCSVs(ctx, r, in.Namespace, named)
	if err != nil {
		return olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}, err
	}
	read := map[string]bool{}
	for _, c := range found {
		read[c.Name] = true
	}
	search := csvSearch{
		replaced:  missingVersions(in, read),
		installed: installedUnnoticed(in, read).Difference(named),
		packages:  packagesOfFailedPlans(in, read),
	}
	if search.isEmpty() {
		return olmcore.Found(found...), nil
	}
	all, err := list[*v1alpha1.ClusterServiceVersion](ctx, r, in.Namespace, unknown)
	for _, c := range all.Items {
		if !read[c.Name] && search.finds(c) {
			found = append(found, c)
		}
	}
	return olmcore.Found(found...), err
}

// csvsNamedBy returns the names of the CSVs that Subscriptions name.
func csvsNamedBy(subs []*v1alpha1.Subscription) sets.Set[string] {
	names := sets.New[string]()
	for _, s := range subs {
		names.Insert(s.Status.CurrentCSV, s.Status.InstalledCSV)
		if s.Spec != nil && s.Annotations[relation.AnnotationGeneratedBy] != "" {
			names.Insert(s.Spec.StartingCSV)
		}
	}
	return names.Delete("")
}

// getCSVs reads CSVs by name. If a CSV was never installed, the CSV that it replaces is read and its name is added to
// the names, because the Subscription may return to it; see resume.
func getCSVs(
	ctx context.Context, r olmcore.Reader, namespace string, names sets.Set[string],
) (found []*v1alpha1.ClusterServiceVersion, err error) {
	for open := sets.List(names); len(open) > 0; open = open[1:] {
		c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, namespace, open[0])
		if err != nil {
			return nil, inputs.Needed(err, "what is installed")
		}
		if c == nil {
			continue
		}
		found = append(found, c)
		old := c.Spec.Replaces
		if old != "" && plans.NeverInstalled(c) && !names.Has(old) {
			names.Insert(old)
			open = append(open, old)
		}
	}
	return found, nil
}

// csvSearch describes CSVs whose names are not known.
type csvSearch struct {
	replaced  map[string]bool  // CSVs that replace one of these
	installed sets.Set[string] // these CSVs, and those that replace one of them
	packages  sets.Set[string] // CSVs of these packages
}

func (s *csvSearch) isEmpty() bool { return len(s.replaced)+len(s.installed)+len(s.packages) == 0 }

func (s *csvSearch) finds(c *v1alpha1.ClusterServiceVersion) bool {
	if s.replaced[c.Spec.Replaces] || s.installed.HasAny(c.Name, c.Spec.Replaces) {
		return true
	}
	return len(s.packages) > 0 && s.packages.HasAny(olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties])...)
}

// installedUnnoticed returns the versions that InstallPlans may have installed for Subscriptions whose own version does
// not exist; see installedUnfollowed.
func installedUnnoticed(in *Input, exists map[string]bool) sets.Set[string] {
	names, plans := sets.New[string](), relation.ByName(in.InstallPlans.Items)
	for _, s := range in.Subscriptions.Items {
		var referenced *v1alpha1.InstallPlan
		if ref := s.Status.InstallPlanRef; ref != nil {
			referenced = plans[ref.Name]
		}
		for _, p := range in.InstallPlans.Items {
			if !exists[s.Status.CurrentCSV] && mayHaveInstalled(p, s, referenced) {
				names.Insert(p.Spec.ClusterServiceVersionNames...)
			}
		}
	}
	return names
}

// packagesOfFailedPlans returns the packages of Subscriptions whose version does not exist after its InstallPlan
// failed; see goBack.
func packagesOfFailedPlans(in *Input, exists map[string]bool) sets.Set[string] {
	packages := sets.New[string]()
	for _, s := range in.Subscriptions.Items {
		isFailed := s.Status.GetCondition(v1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue
		if isFailed && s.Spec != nil && !exists[s.Status.InstalledCSV] {
			packages.Insert(s.Spec.Package)
		}
	}
	return packages.Delete("")
}

// missingVersions returns the versions that Subscriptions follow and that do not exist, although their InstallPlan has
// ended or does not exist.
func missingVersions(in *Input, exists map[string]bool) map[string]bool {
	isUnderWay := map[string]bool{}
	for _, p := range in.InstallPlans.Items {
		isUnderWay[p.Name] = !relation.Over(p)
	}
	missing := map[string]bool{}
	for _, s := range in.Subscriptions.Items {
		version, plan := s.Status.CurrentCSV, s.Annotations[relation.AnnotationGeneratedBy]
		if ref := s.Status.InstallPlanRef; ref != nil {
			plan = ref.Name
		} else if s.Spec != nil && plan != "" {
			version = s.Spec.StartingCSV
		}
		if version != "" && !exists[version] && !isUnderWay[plan] {
			missing[version] = true
		}
	}
	return missing
}

// GatherCatalogs reads the CatalogSources of a namespace and of the namespace global. If global is empty, there is no
// global catalog namespace. The caller adds Probes and Entries. A failed read is an error. If CatalogSources cannot be
// read, the error is an olmcore.ErrNotRead, and Input.Catalogs should stay nil.
func GatherCatalogs(ctx context.Context, r olmcore.Reader, namespace, global string) (*Catalogs, error) {
	sources, err := list[*v1alpha1.CatalogSource](ctx, r, namespace, "what can be installed")
	if err != nil {
		return nil, err
	}
	if global != "" && global != namespace {
		others, err := list[*v1alpha1.CatalogSource](ctx, r, global, "what can be installed")
		if err != nil {
			return nil, err
		}
		sources = olmcore.Found(slices.Concat(sources.Items, others.Items)...)
	}
	return &Catalogs{Sources: olmcore.Found(relation.Sorted(sources.Items)...)}, nil
}
