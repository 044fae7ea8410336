// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Gather reads everything that an Input of one namespace holds, apart from what only the caller knows: Now, Resolution,
// Live, Observations, Histories and Checkpoint stay empty. A failed read is an error. A namespace without Subscriptions
// is none: Reconcile has nothing to say about it.
//
// Without the Subscriptions, InstallPlans, ClusterServiceVersions and OperatorGroups of the namespace nothing can be
// decided: where they were not read the error is an olmcore.ErrNotRead that says what is unknown. The objects of an
// operator are read once its CSV carries a component label, and kinds of them that were not read are left out;
// Config.SkipComponents leaves all of them out.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, config Config) (Input, error) {
	in := Input{Namespace: namespace, Config: config}
	var err error
	if in.Subscriptions, err = list[*v1alpha1.Subscription](ctx, r, namespace, "which operators are wanted"); err != nil {
		return Input{}, err
	}
	if in.InstallPlans, err = list[*v1alpha1.InstallPlan](ctx, r, namespace, "what the Subscriptions wait for"); err != nil {
		return Input{}, err
	}
	if in.OperatorGroups, err = list[*operatorsv1.OperatorGroup](ctx, r, namespace, "whether the namespace can be resolved"); err != nil {
		return Input{}, err
	}
	if in.ClusterServiceVersions, err = gatherCSVs(ctx, r, &in); err != nil {
		return Input{}, err
	}
	if config.SkipComponents {
		return in, nil
	}
	if in.Components, err = component.GatherOwned(ctx, r, namespace, in.ClusterServiceVersions.Items); err != nil {
		return Input{}, err
	}
	return in, nil
}

// list reads a list without which nothing can be decided.
func list[T olmcore.Object](ctx context.Context, r olmcore.Reader, namespace, unknown string) (olmcore.Observed[T], error) {
	items, err := olmcore.List[T](ctx, r, namespace, nil)
	if err != nil {
		return olmcore.Observed[T]{}, olmcore.Needed(err, unknown)
	}
	return olmcore.Found(items...), nil
}

// gatherCSVs reads the CSVs that Subscriptions name, those that plans may have installed for them beside, and those that
// replace a version which is gone. For these all CSVs are looked at, which is seldom needed.
func gatherCSVs(ctx context.Context, r olmcore.Reader, in *Input) (olmcore.Observed[*v1alpha1.ClusterServiceVersion], error) {
	named, read := sets.New[string](), map[string]bool{}
	for _, s := range in.Subscriptions.Items {
		named.Insert(s.Status.CurrentCSV, s.Status.InstalledCSV)
		if s.Spec != nil && s.Annotations[relation.AnnotationGeneratedBy] != "" {
			named.Insert(s.Spec.StartingCSV)
		}
	}
	found := olmcore.Found[*v1alpha1.ClusterServiceVersion]()
	for open := sets.List(named.Delete("")); len(open) > 0; open = open[1:] {
		name := open[0]
		c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, in.Namespace, name)
		if err != nil {
			return olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}, olmcore.Needed(err, "what is installed")
		}
		if c != nil {
			found.Items, read[name] = append(found.Items, c), true
			if old := c.Spec.Replaces; old != "" && olmcore.NeverInstalled(c) && !named.Has(old) { // see resume
				named.Insert(old)
				open = append(open, old)
			}
		}
	}
	gone, beside, older := goneVersions(in, read), versionsBeside(in, read).Difference(named), packagesOfFailedPlans(in, read)
	if len(gone)+len(beside)+len(older) == 0 {
		return found, nil
	}
	all, err := list[*v1alpha1.ClusterServiceVersion](ctx, r, in.Namespace, "what replaced the versions that are gone, and what plans installed")
	for _, c := range all.Items {
		isOlder := len(older) > 0 && older.HasAny(olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties])...)
		if (gone[c.Spec.Replaces] || beside.HasAny(c.Name, c.Spec.Replaces) || isOlder) && !read[c.Name] {
			found.Items = append(found.Items, c)
		}
	}
	return found, err
}

// versionsBeside returns the versions that plans may have installed for Subscriptions whose own is not there.
func versionsBeside(in *Input, there map[string]bool) sets.Set[string] {
	names, plans := sets.New[string](), relation.ByName(in.InstallPlans.Items)
	for _, s := range in.Subscriptions.Items {
		var referred *v1alpha1.InstallPlan
		if ref := s.Status.InstallPlanRef; ref != nil {
			referred = plans[ref.Name]
		}
		for _, p := range in.InstallPlans.Items {
			if !there[s.Status.CurrentCSV] && mayHaveInstalled(p, s, referred) {
				names.Insert(p.Spec.ClusterServiceVersionNames...)
			}
		}
	}
	return names
}

// packagesOfFailedPlans returns the packages of Subscriptions whose version is gone after its plan failed; see goBack.
func packagesOfFailedPlans(in *Input, there map[string]bool) sets.Set[string] {
	packages := sets.New[string]()
	for _, s := range in.Subscriptions.Items {
		isFailed := s.Status.GetCondition(v1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue
		if isFailed && s.Spec != nil && !there[s.Status.InstalledCSV] {
			packages.Insert(s.Spec.Package)
		}
	}
	return packages.Delete("")
}

// goneVersions returns the versions that Subscriptions follow, whose plan is over or gone, and that are not there.
func goneVersions(in *Input, there map[string]bool) map[string]bool {
	underWay := map[string]bool{}
	for _, p := range in.InstallPlans.Items {
		underWay[p.Name] = !relation.Over(p)
	}
	gone := map[string]bool{}
	for _, s := range in.Subscriptions.Items {
		version, plan := s.Status.CurrentCSV, s.Annotations[relation.AnnotationGeneratedBy]
		if ref := s.Status.InstallPlanRef; ref != nil {
			plan = ref.Name
		} else if s.Spec != nil && plan != "" {
			version = s.Spec.StartingCSV
		}
		if version != "" && !there[version] && !underWay[plan] {
			gone[version] = true
		}
	}
	return gone
}

// GatherCatalogs reads the CatalogSources that a namespace is resolved from: its own, and those of the global catalog
// namespace, whose name may be empty for none. Probes and Entries are the caller's to add. A failed read is an error;
// where they were not read an olmcore.ErrNotRead, with which Input.Catalogs stays nil.
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
