// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at for one plan; the caller adds Now and
// what only it knows. The steps of a plan that has nothing left to do are not
// read. A plan that does not exist is an error for which apierrors.IsNotFound
// holds; a read that failed is its error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	g := gatherer{ctx: ctx, r: r, in: Input{Config: config}}
	plan, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, err
	}
	if plan == nil {
		return Input{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "installplans"}, key.Name)
	}
	g.in.InstallPlan = plan
	if g.in.Namespace, err = namespaceIfRead(ctx, r, key.Namespace); err != nil {
		return Input{}, err
	}
	if err := g.subscriptions(); err != nil {
		return Input{}, olmcore.Needed(err, "who needs an InstallPlan")
	}
	if plan.DeletionTimestamp != nil && slices.Contains(plan.Finalizers, Finalizer) {
		err = g.leftBundles()
		return g.in, err
	}
	if conditionOf(&plan.Status, ConditionRetrying) != nil && plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed && !isNeeded(plan, g.in.Subscriptions) {
		return g.in, g.named(plan.Spec.ClusterServiceVersionNames)
	}
	if !looksAtSteps(g.in) {
		return g.in, nil
	}
	if err := g.steps(); err != nil {
		return Input{}, olmcore.Needed(err, "what an InstallPlan has still to do")
	}
	return g.in, nil
}

// namespaceIfRead returns a Namespace, nil when it does not exist or was not read.
func namespaceIfRead(ctx context.Context, r olmcore.Reader, name string) (*corev1.Namespace, error) {
	found, err := olmcore.ObserveNamed[*corev1.Namespace](ctx, r, "", name)
	if err != nil || len(found.Items) == 0 {
		return nil, err
	}
	return found.Items[0], nil
}

// looksAtSteps reports whether Reconcile may look beyond the plan and its
// Subscriptions.
func looksAtSteps(in Input) bool {
	plan := in.InstallPlan
	switch {
	case plan.DeletionTimestamp != nil, terminating(in.Namespace), len(plan.Status.Plan)+len(plan.Status.BundleLookups) == 0:
		return false
	case plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed:
		return mayHeal(plan, in.Subscriptions)
	}
	return plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && in.successor() == ""
}

type gatherer struct {
	ctx  context.Context
	r    olmcore.Reader
	in   Input
	seen map[olmcore.Key]bool
}

func (g *gatherer) steps() error {
	plan := g.in.InstallPlan
	var err error
	if g.in.OperatorGroups, err = olmcore.List[*operatorsv1.OperatorGroup](g.ctx, g.r, plan.Namespace, nil); err != nil {
		return err
	}
	if ref := plan.Status.AttenuatedServiceAccountRef; ref != nil && ref.Name != "" {
		g.in.ServiceAccount, err = olmcore.Get[*corev1.ServiceAccount](g.ctx, g.r, or(ref.Namespace, plan.Namespace), ref.Name)
		if err != nil {
			return err
		}
	}
	if err := g.crds(); err != nil {
		return err
	}
	if err := g.bundles(); err != nil {
		return err
	}
	if err := g.versions(); err != nil {
		return err
	}
	return g.stepObjects()
}

// versions reads the ClusterServiceVersions that the steps name. All of the
// namespace are read only where any of them may count, as a namespace may hold
// thousands of copies.
func (g *gatherer) versions() (err error) {
	plan := g.in.InstallPlan
	names, all := namedVersions(plan, g.in.CustomResourceDefinitions, g.in.ConfigMaps)
	if all {
		g.in.ClusterServiceVersions, err = olmcore.List[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, plan.Namespace, nil)
		return err
	}
	return g.named(sortedKeys(names))
}

// named reads ClusterServiceVersions of the plan's namespace.
func (g *gatherer) named(names []string) error {
	for _, name := range names {
		csv, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, g.in.InstallPlan.Namespace, name)
		if err != nil {
			return err
		}
		if csv != nil {
			g.in.ClusterServiceVersions = append(g.in.ClusterServiceVersions, csv)
		}
	}
	return nil
}

// stepObjects reads the objects of all steps but ClusterServiceVersions,
// CustomResourceDefinitions and Subscriptions.
func (g *gatherer) stepObjects() (err error) {
	g.seen = map[olmcore.Key]bool{}
	for _, s := range g.in.InstallPlan.Status.Plan {
		if s == nil || s.Resource.Name == "" {
			continue
		}
		switch s.Resource.Kind {
		case kindCSV, kindCRD, kindSubscription:
			continue
		case kindPullSecret:
			err = g.pullSecret(s.Resource.Name)
		default:
			err = g.object(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crds reads the definitions that steps describe, those that define the kinds of
// steps, and who else is recorded to need the former.
func (g *gatherer) crds() error {
	plan := g.in.InstallPlan
	names := map[string]bool{}
	kinds := map[string]bool{}
	for _, s := range plan.Status.Plan {
		switch {
		case s == nil:
		case s.Resource.Kind == kindCRD:
			names[s.Resource.Name] = true
			if name := identify(s.Resource.Manifest).Metadata.Name; name != "" {
				names[name] = true
			}
		case isGeneric(s) && slices.Contains(g.in.Config.supportedKinds(), s.Resource.Kind):
			if _, ok := builtin[gvkOf(s)]; !ok {
				kinds[s.Resource.Kind] = true
			}
		}
	}
	if len(kinds) > 0 {
		all, err := olmcore.List[*apiextensionsv1.CustomResourceDefinition](g.ctx, g.r, "", nil)
		if err != nil {
			return err
		}
		for _, crd := range all {
			if names[crd.Name] || kinds[crd.Spec.Names.Kind] {
				g.in.CustomResourceDefinitions = append(g.in.CustomResourceDefinitions, crd)
			}
		}
	} else {
		for _, name := range sortedKeys(names) {
			crd, err := olmcore.Get[*apiextensionsv1.CustomResourceDefinition](g.ctx, g.r, "", name)
			if err != nil {
				return err
			}
			if crd != nil {
				g.in.CustomResourceDefinitions = append(g.in.CustomResourceDefinitions, crd)
			}
		}
	}
	return g.alongside(names)
}

func (g *gatherer) alongside(names map[string]bool) error {
	others := map[string]bool{}
	for _, crd := range g.in.CustomResourceDefinitions {
		for key, value := range crd.Annotations {
			if names[crd.Name] && strings.HasPrefix(key, alongsidePrefix) {
				others[value] = true
			}
		}
	}
	for _, value := range sortedKeys(others) {
		namespace, name, ok := strings.Cut(value, "/")
		if !ok || namespace == "" || name == "" || namespace == g.in.InstallPlan.Namespace {
			continue
		}
		csv, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, namespace, name)
		if err != nil {
			return err
		}
		if csv != nil {
			g.in.Alongside = append(g.in.Alongside, csv)
		}
	}
	return nil
}

func (g *gatherer) pullSecret(name string) error {
	namespace := g.in.InstallPlan.Namespace
	found, err := g.get(knownKinds[kindPullSecret].gvk, namespace, name)
	if err != nil || found {
		return err
	}
	s, err := olmcore.Get[*corev1.Secret](g.ctx, g.r, or(g.in.Config.OLMNamespace, DefaultOLMNamespace), name)
	if err != nil || s == nil {
		return err
	}
	if g.in.PullSecrets = append(g.in.PullSecrets, s); len(g.in.PullSecrets) == 1 && !g.in.Config.CopyAnySecret {
		g.in.CatalogSources, err = olmcore.List[*v1alpha1.CatalogSource](g.ctx, g.r, s.Namespace, nil)
	}
	return err
}

// object reads the object that a step names and, unless that is there, the one
// that its manifest names.
func (g *gatherer) object(s *v1alpha1.Step) error {
	k, known := knownKinds[s.Resource.Kind]
	gvk, namespaced := k.gvk, k.namespaced
	if !known {
		gvk = schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
		api := lookUp(gvk, g.in.CustomResourceDefinitions)
		if !api.kindServed {
			gvk = gvkOf(s)
			api = lookUp(gvk, g.in.CustomResourceDefinitions)
		}
		if !api.kindServed || !slices.Contains(g.in.Config.supportedKinds(), gvk.Kind) {
			return nil
		}
		namespaced = api.namespaced
	}
	namespace := ""
	if namespaced {
		namespace = g.in.InstallPlan.Namespace
	}
	found, err := g.get(gvk, namespace, s.Resource.Name)
	if err != nil || found {
		return err
	}
	if name := identify(s.Resource.Manifest).Metadata.Name; name != "" && name != s.Resource.Name {
		_, err = g.get(gvk, namespace, name)
	}
	return err
}

func (g *gatherer) get(gvk schema.GroupVersionKind, namespace, name string) (found bool, err error) {
	key := olmcore.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	if found, read := g.seen[key]; read {
		return found, nil
	}
	o, err := g.r.Get(g.ctx, gvk, namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get %s: %w", key, err)
	}
	if g.seen[key] = err == nil; err == nil {
		g.in.Objects = append(g.in.Objects, o)
	}
	return err == nil, nil
}

// GatherCreate reads what Create looks at in a namespace; the caller adds Now.
func GatherCreate(ctx context.Context, r olmcore.Reader, namespace string, resolution olmcore.Resolution, config Config) (CreateInput, error) {
	in := CreateInput{Namespace: namespace, Resolution: resolution, Config: config}
	var err error
	if in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil); err != nil {
		return CreateInput{}, olmcore.Needed(err, "who owns a new InstallPlan")
	}
	if in.InstallPlans, err = olmcore.List[*v1alpha1.InstallPlan](ctx, r, namespace, nil); err != nil {
		return CreateInput{}, olmcore.Needed(err, "whether the InstallPlan exists")
	}
	if in.OperatorGroups, err = olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil); err != nil {
		return CreateInput{}, err
	}
	for _, o := range resolution.Operators {
		csv, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, namespace, o.Name)
		if err != nil {
			return CreateInput{}, err
		}
		if csv != nil {
			in.ClusterServiceVersions = append(in.ClusterServiceVersions, csv)
		}
		if o.Bundle.Image == "" || len(o.Bundle.Objects) > 0 {
			continue
		}
		cm, err := olmcore.Get[*corev1.ConfigMap](ctx, r, o.Catalog.Namespace, unpackName(o.Bundle.Image))
		if err != nil {
			return CreateInput{}, err
		}
		if cm != nil {
			in.ConfigMaps = append(in.ConfigMaps, cm)
		}
	}
	return in, nil
}

var managed = labels.SelectorFromSet(labels.Set{olmcore.LabelManaged: "true"})

// GatherSweep reads what Sweep looks at in a namespace; the caller adds Now and
// Lookups. The plans of other namespaces are read only when the namespace holds
// unpacked bundles.
func GatherSweep(ctx context.Context, r olmcore.Reader, namespace string, config Config) (SweepInput, error) {
	in := SweepInput{Namespace: namespace, Config: config}
	ns, err := namespaceIfRead(ctx, r, namespace)
	if err != nil {
		return SweepInput{}, err
	}
	in.Terminating = terminating(ns)
	if in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil); err != nil {
		return SweepInput{}, err
	}
	if in.InstallPlans, err = olmcore.List[*v1alpha1.InstallPlan](ctx, r, namespace, nil); err != nil {
		return SweepInput{}, err
	}
	configMaps, err := olmcore.Observe[*corev1.ConfigMap](ctx, r, namespace, managed)
	if err != nil {
		return SweepInput{}, err
	}
	if in.ConfigMaps = slices.DeleteFunc(configMaps.Items, func(cm *corev1.ConfigMap) bool { return !holdsBundle(cm) }); len(in.ConfigMaps) > 0 {
		if in.OtherPlans, err = otherPlans(ctx, r, func(p *v1alpha1.InstallPlan) bool { return p.Namespace == namespace }); err != nil {
			return SweepInput{}, err
		}
	}
	for _, p := range in.InstallPlans {
		if !in.isCurrent(p) {
			continue
		}
		g := gatherer{ctx: ctx, r: r, in: Input{InstallPlan: p, Config: config}}
		if err := g.installed(); errors.Is(err, olmcore.ErrNotRead) {
			continue // what is there of it is not known
		} else if err != nil {
			return SweepInput{}, err
		}
		in.Steps = append(in.Steps, StepObjects{
			InstallPlan: p.UID, CustomResourceDefinitions: g.in.CustomResourceDefinitions,
			ClusterServiceVersions: g.in.ClusterServiceVersions, Objects: g.in.Objects,
		})
	}
	return in, nil
}

// otherPlans lists the plans of all namespaces but those that it is told to
// leave out, where these were read.
func otherPlans(ctx context.Context, r olmcore.Reader, leaveOut func(*v1alpha1.InstallPlan) bool) (olmcore.Observed[*v1alpha1.InstallPlan], error) {
	all, err := olmcore.Observe[*v1alpha1.InstallPlan](ctx, r, "", nil)
	all.Items = slices.DeleteFunc(all.Items, leaveOut)
	return all, err
}

// installed reads the objects of all steps, as the ones of a plan that is
// Complete.
func (g *gatherer) installed() error {
	if err := g.crds(); err != nil {
		return err
	}
	for _, s := range g.in.InstallPlan.Status.Plan {
		if s == nil || s.Resource.Kind != kindCSV {
			continue
		}
		csv, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, g.in.InstallPlan.Namespace, s.Resource.Name)
		if err != nil {
			return err
		}
		if csv != nil {
			g.in.ClusterServiceVersions = append(g.in.ClusterServiceVersions, csv)
		}
	}
	return g.stepObjects()
}

// leftBundles reads what a deleted plan may be the last to refer to.
func (g *gatherer) leftBundles() error {
	plan := g.in.InstallPlan
	if err := g.bundles(); err != nil || len(g.in.ConfigMaps) == 0 {
		if errors.Is(err, olmcore.ErrNotRead) {
			return nil // Sweep finds them
		}
		return err
	}
	var err error
	g.in.OtherPlans, err = otherPlans(g.ctx, g.r, func(p *v1alpha1.InstallPlan) bool {
		return p.Namespace == plan.Namespace && p.Name == plan.Name
	})
	return err
}

// bundles reads the ConfigMaps that the plan's steps refer to.
func (g *gatherer) bundles() error {
	refs := g.in.Config.ownBundles(g.in.InstallPlan)
	if len(refs) > maxBundles {
		return nil // none of it will be applied
	}
	keys := make([]types.NamespacedName, 0, len(refs))
	for key := range refs {
		keys = append(keys, key)
	}
	for _, key := range olmcore.ExpandKeys(keys, nil) { // sorted
		cm, err := olmcore.Get[*corev1.ConfigMap](g.ctx, g.r, key.Namespace, key.Name)
		if err != nil {
			return err
		}
		if cm != nil {
			g.in.ConfigMaps = append(g.in.ConfigMaps, cm)
		}
	}
	return nil
}
