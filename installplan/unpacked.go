// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// referred are the steps of one reference to an unpacked bundle, with literal
// manifests, or why there are none.
type referred struct {
	steps   []*v1alpha1.Step
	problem string
}

// literal returns the manifest that a reference to an unpacked bundle stands
// for.
func (e *evaluation) literal(s *v1alpha1.Step, ref pinnedRef) (text string, v verdict) {
	found, known := e.referred[ref]
	if !known {
		found.steps, found.problem = e.rebuild(s, ref)
		if e.referred == nil {
			e.referred = map[pinnedRef]referred{}
		}
		e.referred[ref] = found
	}
	if found.problem != "" {
		return "", verdict{outcome: blocked, message: found.problem}
	}
	i := slices.IndexFunc(found.steps, func(own *v1alpha1.Step) bool {
		a, b := own.Resource, s.Resource
		return a.Name == b.Name && a.Kind == b.Kind && a.Version == b.Version && a.Group == b.Group
	})
	if i < 0 {
		return "", verdict{outcome: blocked, message: fmt.Sprintf("couldn't find unpacked step for %v", *s)}
	}
	return found.steps[i].Resource.Manifest, verdict{}
}

// content reads what a ConfigMap holds. The references of one bundle differ in their
// properties, so it is read once for all of them.
func (e *evaluation) content(cm *corev1.ConfigMap) bundleContent {
	if c, known := e.contents[cm]; known {
		return c
	}
	var c bundleContent
	files, err := bundle.FilesOf(cm)
	e.inflated += files.Size()
	if err == nil && e.inflated > maxInflatedBytes {
		err = errors.New("the bundles of the plan are too large together")
	}
	if c.err = err; err == nil {
		c = contentOf(cm, files)
		if lastCSV(c.bundle) == "" {
			c.err = errors.New("bundle has no ClusterServiceVersion")
		}
	}
	if e.contents == nil {
		e.contents = map[*corev1.ConfigMap]bundleContent{}
	}
	e.contents[cm] = c
	return c
}

// rebuild makes the steps of a bundle again, as they were planned.
func (e *evaluation) rebuild(s *v1alpha1.Step, ref pinnedRef) (steps []*v1alpha1.Step, problem string) {
	if !e.d.in.Config.mayRefer(e.plan.Namespace, ref.Namespace) {
		return nil, fmt.Sprintf("error finding unpacked bundle configmap for ref %v: no plan of namespace %s may refer to namespace %s", ref.bundleRef, e.plan.Namespace, ref.Namespace)
	}
	var err error
	i := slices.IndexFunc(e.d.in.ConfigMaps, func(cm *corev1.ConfigMap) bool {
		return cm != nil && cm.Namespace == ref.Namespace && cm.Name == ref.Name
	})
	if i < 0 {
		e.lost(ref)
		return nil, fmt.Sprintf("error finding unpacked bundle configmap for ref %v: configmaps %q not found", ref.bundleRef, ref.Name)
	}
	content := e.content(e.d.in.ConfigMaps[i])
	if content.err != nil {
		e.lost(ref)
		return nil, fmt.Sprintf("error loading unpacked bundle configmap for ref %v: failed to extract bundle from configmap - %s", ref.bundleRef, content.err)
	}
	unpacked := content.bundle
	if unpacked.Properties, err = parseProperties(ref.Properties); err != nil {
		return nil, fmt.Sprintf("failed to load bundle properties for %q: %s", s.Resolving, err)
	}
	if ref.Digest != "" && content.digest != ref.Digest {
		return nil, fmt.Sprintf("bundle content of %s changed since the plan was made", s.Resolving)
	}
	steps, found := bundle.Steps(olmcore.Operator{Name: lastCSV(unpacked), Replaces: ref.Replaces, Bundle: unpacked}, e.plan.Namespace, bundle.Literal)
	if found != nil {
		err = fmt.Errorf("%s", found.Message)
	}
	if err != nil {
		return nil, fmt.Sprintf("error loading unpacked bundle configmap for ref %v: %s", ref.bundleRef, err)
	}
	return steps, ""
}

// LostBundles returns the lookups of a plan whose unpacked content its steps need
// and nobody has any more, as they are before anything is unpacked: the caller
// takes each through Unpack again. The plan applies nothing meanwhile, fails when
// that takes long, and goes on once the content that was planned is back. A plan
// that lacks nothing asks for nothing. The error is that of Reconcile.
func LostBundles(in Input) ([]v1alpha1.BundleLookup, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	if len(in.InstallPlan.Status.BundleLookups) == 0 || in.isComplete() {
		return nil, nil
	}
	d, err := newDecision(in, false)
	return d.lost, err
}

// lost asks for the content of a reference that the plan remembers the image of. A
// plan under an account asks for none in the namespace of the global catalogs: whoever
// writes it would have any image pulled there with the Secrets of that namespace.
func (e *evaluation) lost(ref pinnedRef) {
	if ref.Namespace != e.plan.Namespace && e.plan.Status.AttenuatedServiceAccountRef != nil {
		return
	}
	for i := range e.plan.Status.BundleLookups {
		l := &e.plan.Status.BundleLookups[i]
		if source := l.CatalogSourceRef; source == nil || l.Path == "" || source.Namespace != ref.Namespace || bundle.Name(l.Path) != ref.Name {
			continue
		}
		if slices.ContainsFunc(e.d.lost, func(have v1alpha1.BundleLookup) bool { return have.Path == l.Path && have.Identifier == l.Identifier }) {
			return
		}
		again := *l.DeepCopy()
		again.Conditions = notUnpackedAt(e.d.in.Now)
		e.d.lost = append(e.d.lost, again)
		return
	}
}
