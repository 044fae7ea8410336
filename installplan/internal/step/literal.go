// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
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

// literal are the steps that a reference to an unpacked bundle stands for, with their
// manifests, or why there are none.
type literal struct {
	steps   []*v1alpha1.Step
	problem string
}

// find returns the manifest of the step that a reference stands for.
func (l literal) find(s *v1alpha1.Step) (text string, v Verdict) {
	if l.problem != "" {
		return "", blocked("%s", l.problem)
	}
	i := slices.IndexFunc(l.steps, func(own *v1alpha1.Step) bool {
		a, b := own.Resource, s.Resource
		return a.Name == b.Name && a.Kind == b.Kind && a.Version == b.Version && a.Group == b.Group
	})
	if i < 0 {
		return "", blocked("couldn't find unpacked step for %v", *s)
	}
	return l.steps[i].Resource.Manifest, Verdict{}
}

// literals makes the steps of the bundles again that steps of the plan refer to, as they
// were planned, and returns the lookups of those whose content is lost.
func literals(w *world, steps []int) (map[manifest.Ref]literal, []v1alpha1.BundleLookup) {
	made := map[manifest.Ref]literal{}
	var lost []v1alpha1.BundleLookup
	shelf := shelf{contents: map[types.NamespacedName]content{}}
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
		c := shelf.take(w.ConfigMaps, ref)
		made[ref] = literalOf(w.Plan.Namespace, s.Resolving, ref, c)
		if l, found := lookupOf(w.Plan, ref); (!c.exists || c.err != nil) && found && !slices.ContainsFunc(lost, func(have v1alpha1.BundleLookup) bool {
			return have.Path == l.Path && have.Identifier == l.Identifier
		}) {
			lost = append(lost, bundle.Again(l, w.Now))
		}
	}
	return made, lost
}

// MayRefer reports whether plans of a namespace may be made of what was unpacked in
// another: in their own, where their catalogs are, and where those are that all
// namespaces see.
func MayRefer(plan, bundle, global string) bool { return bundle == plan || bundle == global }

// content is what a ConfigMap holds, or why that is not known.
type content struct {
	bundle.Content
	exists bool
	err    error
}

// shelf holds the bundles that were read. The references of one bundle differ in their
// properties, so it is read once for all of them.
type shelf struct {
	contents map[types.NamespacedName]content
	inflated int // bytes of the files in contents
}

func (s *shelf) take(configMaps []*corev1.ConfigMap, ref manifest.Ref) content {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if c, known := s.contents[key]; known {
		return c
	}
	var c content
	i := slices.IndexFunc(configMaps, func(cm *corev1.ConfigMap) bool { return cm.Namespace == ref.Namespace && cm.Name == ref.Name })
	if i >= 0 {
		c.exists = true
		files, err := bundle.FilesOf(configMaps[i])
		s.inflated += files.Size()
		if err == nil && s.inflated > MaxInflated {
			err = errors.New("the bundles of the plan are too large together")
		}
		if c.err = err; err == nil {
			if c.Content = bundle.ContentOf(configMaps[i], files); c.Version() == "" {
				c.err = errors.New("bundle has no ClusterServiceVersion")
			}
		}
	}
	s.contents[key] = c
	return c
}

func literalOf(namespace, resolving string, ref manifest.Ref, c content) literal {
	problem := func(format string, args ...any) literal { return literal{problem: fmt.Sprintf(format, args...)} }
	switch {
	case !c.exists:
		return problem("error finding unpacked bundle configmap for ref %v: configmaps %q not found", ref.Source, ref.Name)
	case c.err != nil:
		return problem("error loading unpacked bundle configmap for ref %v: failed to extract bundle from configmap - %s", ref.Source, c.err)
	}
	own := c.Bundle
	var err error
	if own.Properties, err = bundle.DecodeProperties(ref.Properties); err != nil {
		return problem("failed to load bundle properties for %q: %s", resolving, err)
	}
	if ref.Digest != "" && c.Digest != ref.Digest {
		return problem("bundle content of %s changed since the plan was made", resolving)
	}
	steps, found := bundle.Steps(olmcore.Operator{Name: c.Version(), Replaces: ref.Replaces, Bundle: own}, namespace, bundle.Literal)
	if found != nil {
		return problem("error loading unpacked bundle configmap for ref %v: %s", ref.Source, found.Message)
	}
	return literal{steps: steps}
}

// lookupOf returns the lookup by which a plan remembers the image of a reference. A plan
// under an account asks for nothing in the namespace of the global catalogs: whoever
// writes it would have any image pulled there with the Secrets of that namespace.
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
