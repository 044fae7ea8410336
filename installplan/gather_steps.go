// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"bytes"
	"cmp"
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

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// steps reads all that steps are judged by.
func (g *gatherer) steps() error {
	plan := g.in.InstallPlan
	groups, err := olmcore.List[*operatorsv1.OperatorGroup](g.ctx, g.r, plan.Namespace, nil)
	if err != nil {
		return err
	}
	g.in.OperatorGroups = olmcore.Found(groups...)
	if ref := plan.Status.AttenuatedServiceAccountRef; ref != nil && ref.Name != "" {
		g.in.ServiceAccount, err = olmcore.Get[*corev1.ServiceAccount](g.ctx, g.r, cmp.Or(ref.Namespace, plan.Namespace), ref.Name)
		if err != nil {
			return err
		}
	}
	for _, read := range [...]func() error{g.definitions, g.bundles, g.versions, g.objects} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// versions reads the ClusterServiceVersions that the steps name. All of the namespace are
// read only where any of them may count, as a namespace may hold thousands of copies.
func (g *gatherer) versions() error {
	plan := g.in.InstallPlan
	names, all := namedVersions(plan, g.in.CustomResourceDefinitions.Items, g.in.ConfigMaps.Items)
	if !all {
		return g.versionsNamed(slices.Sorted(maps.Keys(names)))
	}
	list, err := olmcore.List[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, plan.Namespace, nil)
	g.in.ClusterServiceVersions = olmcore.Found(list...)
	return err
}

// versionsNamed reads ClusterServiceVersions of the plan's namespace.
func (g *gatherer) versionsNamed(names []string) error {
	var found []*v1alpha1.ClusterServiceVersion
	for _, name := range names {
		csv, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, g.in.InstallPlan.Namespace, name)
		if err != nil {
			return err
		}
		if csv != nil && !slices.Contains(found, csv) {
			found = append(found, csv)
		}
	}
	g.in.ClusterServiceVersions = olmcore.Found(found...)
	return nil
}

// definitions reads the CustomResourceDefinitions that steps describe, those that define
// the kinds of steps, and who else is recorded to need the former.
func (g *gatherer) definitions() error {
	names, kindNames := map[string]bool{}, map[string]bool{}
	for _, s := range g.in.InstallPlan.Status.Plan {
		switch {
		case s == nil:
		case s.Resource.Kind == kinds.CRD:
			names[s.Resource.Name] = true
			names[manifest.NameOf(s)] = true
		case g.in.Config.supports(s.Resource.Kind) && manifest.NeedsDefinition(s):
			kindNames[s.Resource.Kind] = true
		}
	}
	delete(names, "")
	var found []*apiextensionsv1.CustomResourceDefinition
	if len(kindNames) > 0 {
		all, err := olmcore.List[*apiextensionsv1.CustomResourceDefinition](g.ctx, g.r, "", nil)
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(slices.Clone(all), func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return !names[crd.Name] && !kindNames[crd.Spec.Names.Kind]
		})
	} else {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			crd, err := olmcore.Get[*apiextensionsv1.CustomResourceDefinition](g.ctx, g.r, "", name)
			if err != nil {
				return err
			}
			if crd != nil {
				found = append(found, crd)
			}
		}
	}
	g.in.CustomResourceDefinitions = olmcore.Found(found...)
	return g.alongside(names)
}

// alongside reads the ClusterServiceVersions of other namespaces that definitions record.
func (g *gatherer) alongside(names map[string]bool) error {
	recorded := map[string]bool{}
	for _, d := range g.in.CustomResourceDefinitions.Items {
		if names[d.Name] {
			entries, _ := crd.Recorded(d.Annotations)
			for _, value := range entries {
				recorded[value] = true
			}
		}
	}
	var found []*v1alpha1.ClusterServiceVersion
	for _, value := range slices.Sorted(maps.Keys(recorded)) {
		namespace, name, ok := strings.Cut(value, "/")
		if !ok || !crd.MayBeRecorded(namespace) || !crd.MayBeRecorded(name) || namespace == g.in.InstallPlan.Namespace {
			continue
		}
		csv, err := olmcore.Fitting(olmcore.Get[*v1alpha1.ClusterServiceVersion](g.ctx, g.r, namespace, name))
		if err != nil {
			return err
		}
		if csv != nil {
			found = append(found, csv)
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
	g.in.Alongside = olmcore.Found(found...)
	return nil
}

// announces reports whether a plan in progress of another namespace is to make a
// ClusterServiceVersion, or may be: definitions are written before it.
func (g *gatherer) announces(namespace, name string) (bool, error) {
	plans, err := olmcore.Observe[*v1alpha1.InstallPlan](g.ctx, g.r, namespace, nil)
	return !plans.Complete || slices.ContainsFunc(plans.Items, func(p *v1alpha1.InstallPlan) bool {
		unfinished := !relation.Terminal(p) || conditionOf(&p.Status, ConditionRetrying) != nil
		return unfinished && p.DeletionTimestamp == nil && slices.Contains(p.Spec.ClusterServiceVersionNames, name)
	}), err
}

// objects reads the objects of all steps but ClusterServiceVersions,
// CustomResourceDefinitions and Subscriptions.
func (g *gatherer) objects() (err error) {
	g.seen = map[olmcore.Key]bool{}
	g.in.Objects, g.in.PullSecrets = olmcore.Found[olmcore.Object](), olmcore.Found[*corev1.Secret]()
	for _, s := range g.in.InstallPlan.Status.Plan {
		if s == nil || s.Resource.Name == "" {
			continue
		}
		switch s.Resource.Kind {
		case kinds.CSV, kinds.CRD, kinds.Subscription:
			continue
		case kinds.PullSecret:
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

// pullSecret reads a copied Secret or, where it does not exist, what it is copied from.
func (g *gatherer) pullSecret(name string) error {
	found, err := g.get(kinds.Known[kinds.PullSecret].GVK, g.in.InstallPlan.Namespace, name)
	if err != nil || found {
		return err
	}
	s, err := olmcore.Get[*corev1.Secret](g.ctx, g.r, g.in.Config.olmNamespace(), name)
	if err != nil || s == nil || slices.Contains(g.in.PullSecrets.Items, s) {
		return err
	}
	g.in.PullSecrets.Items = append(g.in.PullSecrets.Items, s)
	if !g.in.CatalogSources.Complete && !g.in.Config.CopyAnySecret {
		sources, err := olmcore.List[*v1alpha1.CatalogSource](g.ctx, g.r, s.Namespace, nil)
		if err != nil {
			return err
		}
		g.in.CatalogSources = olmcore.Found(sources...)
	}
	return nil
}

// object reads the object that a step names and, unless that exists, the one that its
// manifest names.
func (g *gatherer) object(s *v1alpha1.Step) error {
	k, known := kinds.Known[s.Resource.Kind]
	gvk, namespaced := kinds.Known.GVKOf(s), k.Namespaced
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
		namespace = g.in.InstallPlan.Namespace
	}
	found, err := g.get(gvk, namespace, s.Resource.Name)
	if err != nil || found {
		return err
	}
	if name := manifest.NameOf(s); name != "" && name != s.Resource.Name {
		_, err = g.get(gvk, namespace, name)
	}
	return err
}

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

// namedVersions returns the ClusterServiceVersions that steps describe, resolve to or name
// as owners, and those that definitions record. all: any may count.
func namedVersions(plan *v1alpha1.InstallPlan, definitions []*apiextensionsv1.CustomResourceDefinition, bundles []*corev1.ConfigMap) (names map[string]bool, all bool) {
	names, all = map[string]bool{}, mayNameVersions(bundles)
	for _, s := range plan.Status.Plan {
		if s == nil {
			continue
		}
		names[s.Resolving] = true
		switch s.Resource.Kind {
		case kinds.CSV:
			names[s.Resource.Name], names[manifest.NameOf(s)] = true, true
			all = all || !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resource.Name)
		case kinds.CRD:
			all = all || strings.Contains(s.Resource.Manifest, crd.AlongsidePrefix)
		}
		if _, ok := manifest.ParseRef(s.Resource.Manifest); !ok && strings.Contains(s.Resource.Manifest, "ownerReferences") {
			if m, err := manifest.Parse(s.Resource.Manifest); err == nil {
				for _, r := range step.Owners(m) {
					names[r.Name] = true
				}
			}
		}
	}
	for _, d := range definitions {
		all = all || crd.Converts(d.Spec.Conversion)
		entries, _ := crd.Recorded(d.Annotations)
		for _, value := range entries {
			if namespace, name, _ := strings.Cut(value, "/"); namespace == plan.Namespace {
				names[name] = true
			}
		}
	}
	delete(names, "")
	return names, all
}

// mayNameVersions reports whether what was unpacked may name versions of its own: as
// owners, or as installed alongside a definition. What is too much to look at may.
func mayNameVersions(bundles []*corev1.ConfigMap) bool {
	inflated := 0
	for _, cm := range bundles {
		files, err := bundle.FilesOf(cm)
		if err != nil {
			continue // nothing is made of it
		}
		if inflated += files.Size(); inflated > step.MaxInflated {
			return true
		}
		for _, data := range files {
			if bytes.Contains(data, []byte("ownerReferences")) || bytes.Contains(data, []byte(crd.AlongsidePrefix)) {
				return true
			}
		}
	}
	return false
}
