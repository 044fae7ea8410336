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

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at for one plan; the caller adds Now and what only it knows. The steps of a plan
// that has nothing left to do are not read. A plan that does not exist is an error for which apierrors.IsNotFound
// holds; a read that failed is its error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	plan, err := olmcore.Require[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about an InstallPlan")
	}
	g := gatherer{ctx: ctx, r: r, plan: plan, in: Input{InstallPlan: plan, Config: config}}
	if g.in.Namespace, err = olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", key.Namespace); err != nil {
		return Input{}, err
	}
	if g.in.Subscriptions, err = g.subscriptions(); err != nil {
		return Input{}, olmcore.Needed(err, "who needs an InstallPlan")
	}
	_, passes := retryingSince(&plan.Status)
	switch {
	case plan.DeletionTimestamp != nil && relation.HasFinalizer(plan):
		err = g.leftBundles()
	case passes && plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed && !g.in.isNeeded():
		err = olmcore.Needed(g.versions(plan.Spec.ClusterServiceVersionNames), "whether an InstallPlan that failed has brought its versions")
	case g.in.looksAtSteps():
		err = olmcore.Needed(g.steps(), "what an InstallPlan has still to do")
		if err == nil && !g.in.Namespace.Complete {
			err = &olmcore.NotReadError{
				Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Unknown: "whether the namespace of an InstallPlan is being deleted",
			}
		}
	}
	if err != nil {
		return Input{}, err
	}
	return g.in, nil
}

// looksAtSteps reports whether Reconcile may look beyond the plan and its Subscriptions.
func (in *Input) looksAtSteps() bool {
	plan := in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil, input.Terminating(in.Namespace), len(plan.Status.Plan)+len(plan.Status.BundleLookups) == 0:
		return false
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return step.IsRefusal(plan.Status.Message) && in.isNeeded()
	}
	return plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && in.successor() == ""
}

// gatherer reads the parts of an Input.
type gatherer struct {
	ctx  context.Context
	r    olmcore.Reader
	plan *v1alpha1.InstallPlan
	in   Input
	seen map[olmcore.Key]bool // whether objects that were read exist
}

// getEach reads objects by name, those that exist.
func getEach[O interface {
	olmcore.Object
	comparable
}](g *gatherer, namespace string, names []string) (found []O, err error) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		o, err := olmcore.Get[O](g.ctx, g.r, namespace, name)
		if err != nil {
			return nil, err
		}
		if none := *new(O); o != none {
			found = append(found, o)
		}
	}
	return found, nil
}

// subscriptions reads the Subscriptions of the namespace; where the Reader keeps an index, those that are tied to the
// plan: no other one is looked at.
func (g *gatherer) subscriptions() (olmcore.Observed[*v1alpha1.Subscription], error) {
	list := func() ([]*v1alpha1.Subscription, error) {
		return olmcore.List[*v1alpha1.Subscription](g.ctx, g.r, g.plan.Namespace, nil)
	}
	keeper, ok := g.r.(olmcore.Indexer)
	if !ok {
		all, err := list()
		return olmcore.Found(all...), err
	}
	type index struct {
		relation.Ties
		err error
	}
	kept := keeper.Index("installplan Subscription "+g.plan.Namespace, func() any {
		all, err := list()
		return &index{relation.NewTies(all), err}
	}).(*index)
	if kept.err != nil {
		return olmcore.Observed[*v1alpha1.Subscription]{}, kept.err
	}
	return olmcore.Found(kept.Of(g.plan)...), nil
}

// leftBundles reads what a deleted plan may be the last to refer to. Of what was not read, package sweep finds it.
func (g *gatherer) leftBundles() error {
	err := g.bundles()
	if errors.Is(err, olmcore.ErrNotRead) {
		return nil
	}
	if err != nil || len(g.in.ConfigMaps.Items) == 0 {
		return err
	}
	g.in.OtherPlans, err = olmcore.Observe[*v1alpha1.InstallPlan](g.ctx, g.r, "", nil)
	g.in.OtherPlans.Items = slices.DeleteFunc(g.in.OtherPlans.Items, func(p *v1alpha1.InstallPlan) bool {
		return p.Namespace == g.plan.Namespace && p.Name == g.plan.Name
	})
	return err
}

// bundles reads the ConfigMaps that the plan's steps refer to and may refer to; of too many none, as none will be
// applied.
func (g *gatherer) bundles() error {
	referred := bundle.Referred(g.plan)
	maps.DeleteFunc(referred, func(key types.NamespacedName, _ bool) bool {
		return !g.in.Config.mayRefer(g.plan.Namespace, key.Namespace)
	})
	if len(referred) > step.MaxBundles {
		clear(referred)
	}
	found := olmcore.Found[*corev1.ConfigMap]()
	for _, key := range slices.SortedFunc(maps.Keys(referred), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		cm, err := getEach[*corev1.ConfigMap](g, key.Namespace, []string{key.Name})
		if err != nil {
			return err
		}
		found.Items = append(found.Items, cm...)
	}
	g.in.ConfigMaps = found
	return nil
}

// steps reads all that steps are judged by. All ClusterServiceVersions of the namespace are read only where any of them
// may count, as a namespace may hold thousands of copies.
func (g *gatherer) steps() error {
	groups, err := olmcore.List[*operatorsv1.OperatorGroup](g.ctx, g.r, g.plan.Namespace, nil)
	if err != nil {
		return err
	}
	g.in.OperatorGroups = olmcore.Found(groups...)
	if ref := g.plan.Status.AttenuatedServiceAccountRef; ref != nil && ref.Name != "" {
		if g.in.ServiceAccount, err = olmcore.Get[*corev1.ServiceAccount](g.ctx, g.r, cmp.Or(ref.Namespace, g.plan.Namespace), ref.Name); err != nil {
			return err
		}
	}
	if err := g.definitions(); err != nil {
		return err
	}
	if err := g.bundles(); err != nil {
		return err
	}
	if names, all := namedVersions(&g.in); all {
		list, err := olmcore.List[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, g.plan.Namespace, nil)
		if err != nil {
			return err
		}
		g.in.ClusterServiceVersions = olmcore.Found(list...)
	} else if err := g.versions(names.UnsortedList()); err != nil {
		return err
	}
	return g.objects()
}

// versions reads ClusterServiceVersions of the plan's namespace.
func (g *gatherer) versions(names []string) error {
	found, err := getEach[*v1alpha1.ClusterServiceVersion](g, g.plan.Namespace, names)
	g.in.ClusterServiceVersions = olmcore.Found(found...)
	return err
}

// definitions reads the CustomResourceDefinitions that steps describe, those that define the kinds of steps, and who
// else is recorded to need the former.
func (g *gatherer) definitions() (err error) {
	names, kindNames := sets.New[string](), sets.New[string]()
	for _, s := range g.plan.Status.Plan {
		switch {
		case s == nil:
		case s.Resource.Kind == kinds.CRD:
			names.Insert(s.Resource.Name, manifest.NameOf(s))
		case g.in.Config.supports(s.Resource.Kind) && manifest.NeedsDefinition(s):
			kindNames.Insert(s.Resource.Kind)
		}
	}
	names.Delete("")
	var found []*apiextensionsv1.CustomResourceDefinition
	if len(kindNames) == 0 {
		found, err = getEach[*apiextensionsv1.CustomResourceDefinition](g, "", names.UnsortedList())
	} else {
		found, err = olmcore.List[*apiextensionsv1.CustomResourceDefinition](g.ctx, g.r, "", nil)
		found = slices.DeleteFunc(found, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return !names.Has(crd.Name) && !kindNames.Has(crd.Spec.Names.Kind)
		})
	}
	if err != nil {
		return err
	}
	g.in.CustomResourceDefinitions = olmcore.Found(found...)
	return g.alongside(names)
}

// alongside reads the ClusterServiceVersions of other namespaces that definitions record, or who is to make them.
func (g *gatherer) alongside(names sets.Set[string]) error {
	recorded := sets.New[string]()
	for _, d := range g.in.CustomResourceDefinitions.Items {
		if names.Has(d.Name) {
			entries, _ := step.Recorded(d)
			recorded.Insert(slices.Collect(maps.Values(entries))...)
		}
	}
	g.in.Alongside = olmcore.Found[*v1alpha1.ClusterServiceVersion]()
	for _, value := range sets.List(recorded) {
		namespace, name, ok := strings.Cut(value, "/")
		if !ok || !step.MayBeRecorded(namespace) || !step.MayBeRecorded(name) || namespace == g.plan.Namespace {
			continue
		}
		csv, err := olmcore.Fitting(olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, namespace, name))
		if err != nil {
			return err
		}
		if csv != nil {
			g.in.Alongside.Items = append(g.in.Alongside.Items, csv)
			continue
		}
		plans, err := olmcore.Observe[*v1alpha1.InstallPlan](g.ctx, g.r, namespace, nil)
		if err != nil {
			return err
		}
		if !plans.Complete || slices.ContainsFunc(plans.Items, func(p *v1alpha1.InstallPlan) bool { return announces(p, name) }) {
			g.in.Announced = append(g.in.Announced, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return nil
}

// announces reports whether a plan in progress is to make a ClusterServiceVersion: definitions are written before it.
func announces(p *v1alpha1.InstallPlan, name string) bool {
	unfinished := !relation.Terminal(p) || conditionOf(&p.Status, ConditionRetrying) != nil
	return unfinished && p.DeletionTimestamp == nil && slices.Contains(p.Spec.ClusterServiceVersionNames, name)
}

// objects reads the objects of all steps but ClusterServiceVersions, CustomResourceDefinitions and Subscriptions.
func (g *gatherer) objects() error {
	g.seen = map[olmcore.Key]bool{}
	g.in.Objects, g.in.PullSecrets = olmcore.Found[olmcore.Object](), olmcore.Found[*corev1.Secret]()
	for _, s := range g.plan.Status.Plan {
		if s == nil || s.Resource.Name == "" || s.Resource.Kind == kinds.CSV || s.Resource.Kind == kinds.CRD || s.Resource.Kind == kinds.Subscription {
			continue
		}
		if err := g.object(s); err != nil {
			return err
		}
	}
	return nil
}

// object reads the object that a step names. Where that does not exist it reads the one that the manifest names, or the
// Secret that is copied.
func (g *gatherer) object(s *v1alpha1.Step) error {
	k, known := kinds.Known[s.Resource.Kind]
	gvk, namespaced := kinds.GVKOf(s), k.Namespaced
	if !known {
		definitions := g.in.CustomResourceDefinitions.Items
		api := kinds.LookUp(gvk, definitions)
		if !api.Kind {
			gvk = manifest.GVKOf(s)
			api = kinds.LookUp(gvk, definitions)
		}
		if !api.Kind || !g.in.Config.supports(gvk.Kind) {
			return nil
		}
		namespaced = api.Namespaced
	}
	namespace := ""
	if namespaced {
		namespace = g.plan.Namespace
	}
	found, err := g.get(gvk, namespace, s.Resource.Name)
	switch {
	case err != nil || found:
		return err
	case s.Resource.Kind == kinds.PullSecret:
		return g.pullSecret(s.Resource.Name)
	}
	if name := manifest.NameOf(s); name != "" {
		_, err = g.get(gvk, namespace, name)
	}
	return err
}

// get reads an object, once.
func (g *gatherer) get(gvk schema.GroupVersionKind, namespace, name string) (found bool, err error) {
	key := olmcore.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	if found, read := g.seen[key]; read {
		return found, nil
	}
	o, err := olmcore.GetKind(g.ctx, g.r, gvk, namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get %s: %w", key, err)
	}
	if g.seen[key] = err == nil; err == nil {
		g.in.Objects.Items = append(g.in.Objects.Items, o)
	}
	return err == nil, nil
}

// pullSecret reads the Secret that is copied under a name.
func (g *gatherer) pullSecret(name string) error {
	s, err := olmcore.Get[*corev1.Secret](g.ctx, g.r, g.in.Config.olmNamespace(), name)
	if err != nil || s == nil || slices.Contains(g.in.PullSecrets.Items, s) {
		return err
	}
	g.in.PullSecrets.Items = append(g.in.PullSecrets.Items, s)
	if g.in.CatalogSources.Complete || g.in.Config.CopyAnySecret {
		return nil
	}
	sources, err := olmcore.List[*v1alpha1.CatalogSource](g.ctx, g.r, s.Namespace, nil)
	if err == nil {
		g.in.CatalogSources = olmcore.Found(sources...)
	}
	return err
}

// namedVersions returns the ClusterServiceVersions that steps describe, resolve to or name as owners, and those that
// definitions record. all: any may count.
func namedVersions(in *Input) (names sets.Set[string], all bool) {
	plan := in.InstallPlan
	names, all = sets.New[string](), mayNameVersions(in.ConfigMaps.Items)
	for _, s := range plan.Status.Plan {
		if s == nil {
			continue
		}
		names.Insert(s.Resolving)
		switch s.Resource.Kind {
		case kinds.CSV:
			names.Insert(s.Resource.Name, manifest.NameOf(s))
			all = all || !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resource.Name)
		case kinds.CRD:
			all = all || strings.Contains(s.Resource.Manifest, step.AlongsidePrefix)
		}
		if _, ok := manifest.ParseRef(s.Resource.Manifest); !ok && strings.Contains(s.Resource.Manifest, "ownerReferences") {
			if m, err := manifest.Parse(s.Resource.Manifest); err == nil {
				for _, r := range step.Owners(m) {
					names.Insert(r.Name)
				}
			}
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

// mayNameVersions reports whether what was unpacked may name versions of its own: as owners, or as installed alongside
// a definition. What is too much to look at may; nothing is made of what cannot be read.
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
