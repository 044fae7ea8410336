// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/apigroup"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of one plan. The caller sets Now and the other fields that Gather does not set. The objects of
// steps are read only if the plan may still apply steps. If the plan does not exist, apierrors.IsNotFound holds for the
// error. Any other error is from a failed read, or an *olmcore.NotReadError if the Reader does not read a required
// kind.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	plan, err := olmcore.Require[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about an InstallPlan")
	}
	g := gatherer{ctx: ctx, r: r, plan: plan, in: Input{InstallPlan: plan, Config: config}}
	g.in.Namespace, g.err = olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", key.Namespace)
	g.subscriptions()
	g.needed("who needs an InstallPlan")
	if g.in.mayStart() {
		g.in.RelatedPlans = g.relatedPlans()
		g.needed("which InstallPlans contain the same packages")
	}
	if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed && plan.DeletionTimestamp == nil && !g.in.isNeeded() && relation.Applied(plan) {
		g.versions(plan.Spec.ClusterServiceVersionNames)
		g.needed("whether an InstallPlan that failed installed its versions")
	}
	switch {
	case g.err != nil:
	case plan.DeletionTimestamp != nil && relation.HasFinalizer(plan):
		g.leftBundles()
	case g.in.looksAtSteps():
		g.steps()
		g.needed("what an InstallPlan has still to do")
		if g.err == nil && !g.in.Namespace.Complete {
			g.err = &olmcore.NotReadError{
				Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Unknown: "whether the namespace of an InstallPlan is being deleted",
			}
		}
	}
	if g.err != nil {
		return Input{}, g.err
	}
	return g.in, nil
}

// gatherer reads the parts of an Input. After the first read that fails, it reads nothing more.
type gatherer struct {
	ctx  context.Context
	r    olmcore.Reader
	err  error
	plan *v1alpha1.InstallPlan
	in   Input
	seen map[olmcore.Key]bool // the objects that were read, and whether they exist
}

// needed adds to the error what is unknown without the objects that were not read.
func (g *gatherer) needed(unknown string) { g.err = olmcore.Needed(g.err, unknown) }

// get reads one object, nil where there is none.
func get[O olmcore.Object](g *gatherer, namespace, name string) (o O) {
	if g.err == nil {
		o, g.err = olmcore.Get[O](g.ctx, g.r, namespace, name)
	}
	return o
}

// getEach reads the existing objects with some names.
func getEach[O interface {
	olmcore.Object
	comparable
}](g *gatherer, namespace string, names []string) (found []O) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if o, none := get[O](g, namespace, name), *new(O); o != none {
			found = append(found, o)
		}
	}
	return found
}

// list reads all objects of a namespace.
func list[O olmcore.Object](g *gatherer, namespace string) (found []O) {
	if g.err == nil {
		found, g.err = olmcore.List[O](g.ctx, g.r, namespace, nil)
	}
	return found
}

// plans reads InstallPlans that the Input can do without.
func (g *gatherer) plans(namespace string) (plans olmcore.Observed[*v1alpha1.InstallPlan]) {
	if g.err == nil {
		plans, g.err = olmcore.Observe[*v1alpha1.InstallPlan](g.ctx, g.r, namespace, nil)
	}
	return plans
}

// relatedPlans reads the other plans of the namespace that may be earlier or later than the plan.
func (g *gatherer) relatedPlans() olmcore.Observed[*v1alpha1.InstallPlan] {
	return olmcore.Found(slices.DeleteFunc(list[*v1alpha1.InstallPlan](g, g.plan.Namespace), func(p *v1alpha1.InstallPlan) bool {
		return !relation.MayConcern(g.plan, p)
	})...)
}

// subscriptions reads the Subscriptions of the namespace. If the Reader keeps an index, it reads only those that are
// related to the plan.
func (g *gatherer) subscriptions() {
	indexed, ok := g.r.(olmcore.IndexedReader)
	if !ok {
		g.in.Subscriptions = olmcore.Found(list[*v1alpha1.Subscription](g, g.plan.Namespace)...)
		return
	}
	kept, _ := indexed.Index(olmcore.GVKOf(&v1alpha1.Subscription{}), g.plan.Namespace, "installplan", func() any {
		all, err := olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, g.plan.Namespace, nil)
		if err != nil {
			g.err = cmp.Or(g.err, err)
			return nil
		}
		ties := relation.NewTies(all)
		return &ties
	}).(*relation.Ties)
	if kept == nil {
		return
	}
	g.in.Subscriptions = olmcore.Found(kept.Subscriptions(g.plan)...)
}

// leftBundles reads the unpacked bundles that only a deleted plan may reference. Package sweep finds those that were
// not read.
func (g *gatherer) leftBundles() {
	g.bundles()
	if errors.Is(g.err, olmcore.ErrNotRead) {
		g.err, g.in.ConfigMaps = nil, olmcore.Observed[*corev1.ConfigMap]{}
	}
	if len(g.in.ConfigMaps.Items) > 0 && g.err == nil {
		g.in.OtherPlans, g.err = bundle.Needing(g.ctx, g.r, g.in.ConfigMaps.Items)
		g.in.OtherPlans.Items = slices.DeleteFunc(g.in.OtherPlans.Items, func(p *v1alpha1.InstallPlan) bool {
			return p.Namespace == g.plan.Namespace && p.Name == g.plan.Name
		})
	}
}

// bundles reads the ConfigMaps that the steps of the plan reference and may reference. It reads none if there are too
// many, because such a plan is not applied.
func (g *gatherer) bundles() {
	referred := bundle.Referred(g.plan)
	maps.DeleteFunc(referred, func(key types.NamespacedName, _ bool) bool {
		return !bundle.MayRefer(g.plan.Namespace, key.Namespace, g.in.Config.globalNamespace())
	})
	if len(referred) > step.MaxBundles {
		clear(referred)
	}
	g.in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]()
	for _, key := range slices.SortedFunc(maps.Keys(referred), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		g.in.ConfigMaps.Items = append(g.in.ConfigMaps.Items, getEach[*corev1.ConfigMap](g, key.Namespace, []string{key.Name})...)
	}
}

// steps reads the objects that the decisions about the steps need. All ClusterServiceVersions of the namespace are read
// only if any of them may count, because a namespace may contain thousands of copies.
func (g *gatherer) steps() {
	g.in.OperatorGroups = olmcore.Found(list[*operatorsv1.OperatorGroup](g, g.plan.Namespace)...)
	ref := g.plan.Status.AttenuatedServiceAccountRef
	if ref != nil && ref.Name != "" {
		g.in.ServiceAccount = get[*corev1.ServiceAccount](g, cmp.Or(ref.Namespace, g.plan.Namespace), ref.Name)
	}
	g.definitions()
	g.apiServices()
	g.bundles()
	if names, all := namedVersions(&g.in); all {
		g.in.ClusterServiceVersions = olmcore.Found(list[*v1alpha1.ClusterServiceVersion](g, g.plan.Namespace)...)
	} else {
		g.versions(names.UnsortedList())
	}
	g.seen = map[olmcore.Key]bool{}
	g.in.Objects, g.in.PullSecrets = olmcore.Found[olmcore.Object](), olmcore.Found[*corev1.Secret]()
	apart := []string{kinds.CSV, kinds.CRD, kinds.Subscription} // these have their own lists
	for _, s := range g.plan.Status.Plan {
		if s != nil && s.Resource.Name != "" && !slices.Contains(apart, s.Resource.Kind) {
			g.object(s)
		}
	}
}

// versions reads ClusterServiceVersions of the plan's namespace.
func (g *gatherer) versions(names []string) {
	g.in.ClusterServiceVersions = olmcore.Found(getEach[*v1alpha1.ClusterServiceVersion](g, g.plan.Namespace, names)...)
}

// definitions reads the CustomResourceDefinitions that steps describe, and those that define the kinds of steps. It
// also reads the other owners that the former record.
func (g *gatherer) definitions() {
	names, kindNames := sets.New[string](), sets.New[string]()
	for _, s := range g.plan.Status.Plan {
		switch {
		case s == nil:
		case s.Resource.Kind == kinds.CRD:
			names.Insert(s.Resource.Name, bundle.NameOfStep(s))
		case kinds.IsSupported(g.in.Config.SupportedKinds, s.Resource.Kind) && bundle.NeedsDefinition(s):
			kindNames.Insert(s.Resource.Kind)
		}
	}
	names.Delete("")
	var found []*apiextensionsv1.CustomResourceDefinition
	if len(kindNames) == 0 {
		found = getEach[*apiextensionsv1.CustomResourceDefinition](g, "", names.UnsortedList())
	} else {
		found = slices.DeleteFunc(list[*apiextensionsv1.CustomResourceDefinition](g, ""), func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return !names.Has(crd.Name) && !kindNames.Has(crd.Spec.Names.Kind)
		})
	}
	g.in.CustomResourceDefinitions = olmcore.Found(found...)
	recorded := sets.New[string]()
	for _, d := range found {
		if names.Has(d.Name) {
			entries, _ := step.Recorded(d)
			recorded.Insert(slices.Collect(maps.Values(entries))...)
		}
	}
	g.alongside(sets.List(recorded))
}

// apiServices reads the APIServices that the API server did not create for definitions. It reads them only if a step
// may add a version to an API group.
func (g *gatherer) apiServices() {
	if addsToGroups(&g.in) {
		all := list[*apiregistrationv1.APIService](g, "")
		g.in.APIServices = olmcore.Found(slices.DeleteFunc(all, apigroup.FollowsDefinitions)...)
	}
}

// addsToGroups reports whether a step of the plan may add a version to an API group.
func addsToGroups(in *Input) bool {
	exists := map[string]bool{}
	for _, crd := range in.CustomResourceDefinitions.Items {
		exists[crd.Name] = true
	}
	isConfined := in.InstallPlan.Status.AttenuatedServiceAccountRef != nil
	return slices.ContainsFunc(in.InstallPlan.Status.Plan, func(s *v1alpha1.Step) bool {
		if s == nil || s.Resource.Kind != kinds.CRD || s.Status == v1alpha1.StepStatusNotCreated {
			return false
		}
		return isConfined && !olmcore.IsStepDone(s) || !exists[nameOf(s)]
	})
}

// nameOf returns the name of the object of a step. The name in the manifest takes precedence, as in package step.
func nameOf(s *v1alpha1.Step) string { return cmp.Or(bundle.NameOfStep(s), s.Resource.Name) }

// alongside reads the ClusterServiceVersions of other namespaces that definitions record, and the plans that will
// create them.
func (g *gatherer) alongside(recorded []string) {
	g.in.Alongside = olmcore.Found[*v1alpha1.ClusterServiceVersion]()
	for _, value := range recorded {
		namespace, name, ok := strings.Cut(value, "/")
		if !ok || !step.MayBeRecorded(namespace) || !step.MayBeRecorded(name) || namespace == g.plan.Namespace {
			continue
		}
		csv := get[*v1alpha1.ClusterServiceVersion](g, namespace, name)
		if csv, g.err = olmcore.Fitting(csv, g.err); csv != nil {
			g.in.Alongside.Items = append(g.in.Alongside.Items, csv)
			continue
		}
		plans := g.plans(namespace)
		if !plans.Complete || slices.ContainsFunc(plans.Items, func(p *v1alpha1.InstallPlan) bool { return announces(p, name) }) {
			g.in.Announced = append(g.in.Announced, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
}

// announces reports whether an unfinished plan will create a ClusterServiceVersion. A plan writes definitions before
// their versions.
func announces(p *v1alpha1.InstallPlan, name string) bool {
	unfinished := !relation.Terminal(p) || conditionOf(&p.Status, ConditionRetrying) != nil
	return unfinished && p.DeletionTimestamp == nil && slices.Contains(p.Spec.ClusterServiceVersionNames, name)
}

// object reads the object that a step names. If it does not exist, object reads the one that the manifest names, or the
// Secret that is copied.
func (g *gatherer) object(s *v1alpha1.Step) {
	k, known := kinds.Known[s.Resource.Kind]
	gvk, namespaced := kinds.GVKOf(s), k.Namespaced
	if !known {
		definitions := g.in.CustomResourceDefinitions.Items
		api := kinds.LookUp(gvk, definitions)
		if !api.Kind {
			gvk = bundle.GVKOfStep(s)
			api = kinds.LookUp(gvk, definitions)
		}
		if !api.Kind || !kinds.IsSupported(g.in.Config.SupportedKinds, gvk.Kind) {
			return
		}
		namespaced = api.Namespaced
	}
	namespace := ""
	if namespaced {
		namespace = g.plan.Namespace
	}
	if g.exists(gvk, namespace, s.Resource.Name) {
		return
	}
	if s.Resource.Kind == kinds.PullSecret {
		g.pullSecret(s.Resource.Name)
	} else if name := bundle.NameOfStep(s); name != "" {
		g.exists(gvk, namespace, name)
	}
}

// exists reads an object that was not read yet, and reports whether it exists.
func (g *gatherer) exists(gvk schema.GroupVersionKind, namespace, name string) bool {
	key := olmcore.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	found, read := g.seen[key]
	if read || g.err != nil {
		return found
	}
	o, err := olmcore.GetKind(g.ctx, g.r, gvk, namespace, name)
	g.seen[key] = err == nil
	if err == nil {
		g.in.Objects.Items = append(g.in.Objects.Items, o)
	} else if !apierrors.IsNotFound(err) {
		g.err = fmt.Errorf("get %s: %w", key, err)
	}
	return err == nil
}

// pullSecret reads the Secret with a name that a step copies.
func (g *gatherer) pullSecret(name string) {
	s := get[*corev1.Secret](g, g.in.Config.olmNamespace(), name)
	if s == nil || slices.Contains(g.in.PullSecrets.Items, s) {
		return
	}
	g.in.PullSecrets.Items = append(g.in.PullSecrets.Items, s)
	if !g.in.CatalogSources.Complete && !g.in.Config.CopyAnySecret {
		g.in.CatalogSources = olmcore.Found(list[*v1alpha1.CatalogSource](g, s.Namespace)...)
	}
}

// namedVersions returns the ClusterServiceVersions that steps describe, resolve to or name as owners, and those that
// definitions record. all is set if any version of the namespace may count.
func namedVersions(in *Input) (names sets.Set[string], all bool) {
	plan := in.InstallPlan
	// A version of another name may have replaced a version of a plan that failed.
	names, all = sets.New[string](), plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed || mayNameVersions(in.ConfigMaps.Items)
	for _, s := range plan.Status.Plan {
		if s == nil {
			continue
		}
		names.Insert(s.Resolving)
		names.Insert(ownersIn(s)...)
		switch s.Resource.Kind {
		case kinds.CSV:
			names.Insert(s.Resource.Name, bundle.NameOfStep(s))
			all = all || !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resource.Name)
		case kinds.CRD:
			all = all || strings.Contains(s.Resource.Manifest, step.AlongsidePrefix)
		}
	}
	for _, d := range in.CustomResourceDefinitions.Items {
		all = all || step.Converts(d.Spec.Conversion)
		entries, _ := step.Recorded(d)
		for _, value := range entries {
			if namespace, name, _ := strings.Cut(value, "/"); namespace == plan.Namespace {
				names.Insert(name)
			}
		}
	}
	names.Delete("")
	return names, all
}

// ownersIn returns the names of the ClusterServiceVersions that the manifest of a step names as owners.
func ownersIn(s *v1alpha1.Step) (names []string) {
	text := s.Resource.Manifest
	_, isReference := bundle.ParseReference(text)
	if isReference || !strings.Contains(text, "ownerReferences") {
		return nil
	}
	m, err := bundle.ParseManifest(text)
	if err != nil {
		return nil
	}
	for _, r := range step.Owners(m) {
		names = append(names, r.Name)
	}
	return names
}

// mayNameVersions reports whether an unpacked bundle may name versions: as owners, or as installed alongside a
// definition. It returns true if the bundle is too large to read. A bundle that cannot be read names none.
func mayNameVersions(bundles []*corev1.ConfigMap) bool {
	inflated := 0
	for _, cm := range bundles {
		files, err := bundle.FilesOf(cm)
		if err != nil {
			continue
		}
		if inflated += files.Size(); inflated > step.MaxInflated {
			return true
		}
		for _, data := range files {
			if bytes.Contains(data, []byte("ownerReferences")) || bytes.Contains(data, []byte(step.AlongsidePrefix)) {
				return true
			}
		}
	}
	return false
}
