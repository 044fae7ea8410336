// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// MaxInflated bounds the files of the bundles of a plan together, in bytes.
const MaxInflated = 256 << 20

// literal are the steps that a reference to an unpacked bundle stands for, with their manifests, or why there are none.
type literal struct {
	steps   []*v1alpha1.Step
	problem string
}

// find returns the manifest of the step that a reference stands for.
func (l literal) find(s *v1alpha1.Step) (text string, v Verdict) {
	if l.problem != "" {
		return "", blocked("%s", l.problem)
	}
	for _, own := range l.steps {
		if a, b := own.Resource, s.Resource; a.Name == b.Name && a.Kind == b.Kind && a.Version == b.Version && a.Group == b.Group {
			return a.Manifest, Verdict{}
		}
	}
	return "", blocked("couldn't find unpacked step for %v", *s)
}

// literals makes the steps of the bundles again that steps of the plan refer to, as they were planned, and returns the
// lookups of those whose content is lost. The references of one bundle differ in their properties, so it is read once
// for all of them.
func literals(w *world, steps []int) (made map[manifest.Ref]literal, lost []v1alpha1.BundleLookup) {
	made = map[manifest.Ref]literal{}
	contents, inflated := map[types.NamespacedName]content{}, 0
	for _, i := range steps {
		s := w.Plan.Status.Plan[i]
		ref, ok := manifest.ParseRef(s.Resource.Manifest)
		if _, known := made[ref]; !ok || known || s.Resource.Kind == kinds.PullSecret {
			continue
		}
		if !MayRefer(w.Plan.Namespace, ref.Namespace, w.GlobalNamespace) {
			made[ref] = literal{problem: fmt.Sprintf("error finding unpacked bundle configmap for ref %v: no plan of namespace %s may refer to namespace %s",
				ref.Source, w.Plan.Namespace, ref.Namespace)}
			continue
		}
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		c, known := contents[key]
		if !known {
			c = contentOf(w.ConfigMaps, key, &inflated)
			contents[key] = c
		}
		made[ref] = literalOf(w.Plan.Namespace, s.Resolving, ref, c)
		if l, found := lookupOf(w.Plan, ref); c.problem != "" && found && !slices.ContainsFunc(lost, func(have v1alpha1.BundleLookup) bool {
			return have.Path == l.Path && have.Identifier == l.Identifier
		}) {
			lost = append(lost, bundle.Again(l, w.Now))
		}
	}
	return made, lost
}

// MayRefer reports whether plans of a namespace may be made of what was unpacked in another: in their own, where their
// catalogs are, and where those are that all namespaces see.
func MayRefer(plan, bundle, global string) bool { return bundle == plan || bundle == global }

// content is what a ConfigMap holds, or why that is not known: finding or loading it failed.
type content struct {
	bundle.Content
	failed, problem string
}

// contentOf reads the ConfigMap of a key; inflated counts the bytes of all files that were.
func contentOf(configMaps []*corev1.ConfigMap, key types.NamespacedName, inflated *int) content {
	i := slices.IndexFunc(configMaps, func(cm *corev1.ConfigMap) bool { return cm.Namespace == key.Namespace && cm.Name == key.Name })
	if i < 0 {
		return content{failed: "finding", problem: fmt.Sprintf("configmaps %q not found", key.Name)}
	}
	unusable := func(why string) content {
		return content{failed: "loading", problem: "failed to extract bundle from configmap - " + why}
	}
	files, err := bundle.FilesOf(configMaps[i])
	if err != nil {
		return unusable(err.Error())
	}
	if *inflated += files.Size(); *inflated > MaxInflated {
		return unusable("the bundles of the plan are too large together")
	}
	c := bundle.ContentOf(configMaps[i], files)
	if c.Version() == "" {
		return unusable("bundle has no ClusterServiceVersion")
	}
	return content{Content: c}
}

func literalOf(namespace, resolving string, ref manifest.Ref, c content) literal {
	problem := func(format string, args ...any) literal { return literal{problem: fmt.Sprintf(format, args...)} }
	if c.problem != "" {
		return problem("error %s unpacked bundle configmap for ref %v: %s", c.failed, ref.Source, c.problem)
	}
	own := c.Bundle
	var err error
	if own.Properties, err = bundle.DecodeProperties(ref.Properties); err != nil {
		return problem("failed to load bundle properties for %q: %s", resolving, err)
	}
	if ref.Digest != "" && c.Digest != ref.Digest {
		return problem("bundle content of %s changed since the plan was made", resolving)
	}
	steps, err := bundle.Steps(olmcore.Operator{Name: c.Version(), Replaces: ref.Replaces, Bundle: own}, namespace, bundle.Literal)
	if err != nil {
		return problem("error loading unpacked bundle configmap for ref %v: %s", ref.Source, err)
	}
	return literal{steps: steps}
}

// lookupOf returns the lookup by which a plan remembers the image of a reference. A plan under an account asks for
// nothing in the namespace of the global catalogs: whoever writes it would have any image pulled there with the Secrets
// of that namespace.
func lookupOf(plan *v1alpha1.InstallPlan, ref manifest.Ref) (l v1alpha1.BundleLookup, found bool) {
	if ref.Namespace != plan.Namespace && plan.Status.AttenuatedServiceAccountRef != nil {
		return l, false
	}
	for _, l := range plan.Status.BundleLookups {
		if l.Path != "" && bundle.LookedUp(l) == (types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) {
			return l, true
		}
	}
	return l, false
}
