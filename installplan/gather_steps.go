// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

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
		if !ok || !mayBeRecorded(namespace) || !mayBeRecorded(name) || namespace == g.in.InstallPlan.Namespace {
			continue
		}
		csv, err := olmcore.Fitting(olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, namespace, name))
		if err != nil {
			return err
		}
		if csv != nil {
			g.in.Alongside = append(g.in.Alongside, csv)
			continue
		}
		announced, err := g.announces(namespace, name)
		if err != nil {
			return err
		}
		if announced {
			g.in.Announced = append(g.in.Announced, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return nil
}

// announces reports whether a plan in progress of another namespace is to make a
// ClusterServiceVersion, or may be: definitions are written before it.
func (g *gatherer) announces(namespace, name string) (bool, error) {
	plans, err := olmcore.Observe[*v1alpha1.InstallPlan](g.ctx, g.r, namespace, nil)
	return !plans.Complete || slices.ContainsFunc(plans.Items, func(p *v1alpha1.InstallPlan) bool {
		unfinished := !terminal(p.Status.Phase) || conditionOf(&p.Status, ConditionRetrying) != nil
		return unfinished && p.DeletionTimestamp == nil && slices.Contains(p.Spec.ClusterServiceVersionNames, name)
	}), err
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
