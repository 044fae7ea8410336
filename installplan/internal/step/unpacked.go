// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// maxRemembered limits the files of the bundles in a Memory, in bytes. The author of a plan decides how large they are.
const maxRemembered = 8 << 20

// Memory contains the decoded bundles that a plan references. A Memory is passed to the next call for the plan, so that
// bundles are not decompressed and decoded again. A bundle is identified by the UID and resourceVersion of its
// ConfigMap. Bundles that a call does not use are dropped. A nil Memory contains nothing and stores nothing, and is
// always correct.
type Memory struct {
	earlier, now map[identity]*unpacked
	size         int // of the bundles in now
}

// identity is one version of a ConfigMap.
type identity struct {
	uid             types.UID
	resourceVersion string
}

// unpacked is the cached content of a bundle: the size of its files, and the steps for references to it.
type unpacked struct {
	size     int
	literals map[bundle.Reference]literal
}

// Next returns the Memory for the next call. That call may use the bundles that the previous call stored in m.
func (m *Memory) Next() *Memory {
	next := &Memory{now: map[identity]*unpacked{}}
	if m != nil {
		next.earlier = m.now
	}
	return next
}

// Used returns the Memory, or nil if it is empty.
func (m *Memory) Used() *Memory {
	if m == nil || len(m.now) == 0 {
		return nil
	}
	return m
}

func identityOf(cm *corev1.ConfigMap) identity {
	return identity{cm.UID, cm.ResourceVersion}
}

// recall returns the cached content of a ConfigMap, or nil.
func (m *Memory) recall(cm *corev1.ConfigMap) *unpacked {
	if m == nil {
		return nil
	}
	return m.earlier[identityOf(cm)]
}

// keep stores the steps for a reference to a bundle.
func (m *Memory) keep(cm *corev1.ConfigMap, size int, ref bundle.Reference, l literal) {
	id := identityOf(cm)
	if m == nil || id.uid == "" || id.resourceVersion == "" {
		return
	}
	u := m.now[id]
	if u == nil {
		if m.size+size > maxRemembered {
			return
		}
		u = &unpacked{size: size, literals: map[bundle.Reference]literal{}}
		m.now[id], m.size = u, m.size+size
	}
	u.literals[ref] = l
}

// MaxInflated is the maximum size of the decompressed bundles of one plan, in bytes.
const MaxInflated = 256 << 20

// literal contains the steps for a reference to an unpacked bundle, with their manifests, or the problem why there are
// none.
type literal struct {
	steps   []*v1alpha1.Step
	problem string
}

// literals returns the steps of the unpacked bundles that steps of the plan reference, and the lookups of bundles whose
// content is lost. The references to one bundle differ in their properties, so each bundle is read only once.
func literals(w *world, steps []int) (made map[bundle.Reference]literal, lost []v1alpha1.BundleLookup) {
	made = map[bundle.Reference]literal{}
	contents, inflated := map[types.NamespacedName]*content{}, 0
	for _, i := range steps {
		s := w.in.Plan.Status.Plan[i]
		ref, ok := bundle.ParseReference(s.Resource.Manifest)
		_, known := made[ref]
		if !ok || known || s.Resource.Kind == kinds.PullSecret {
			continue
		}
		if !bundle.MayRefer(w.in.Plan.Namespace, ref.Namespace, w.in.GlobalNamespace) {
			made[ref] = literal{problem: fmt.Sprintf(
				"error finding unpacked bundle configmap for ref %v: plans of namespace %s may not use bundles of namespace %s",
				ref.Source, w.in.Plan.Namespace, ref.Namespace)}
			continue
		}
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		c, known := contents[key]
		if !known {
			c = contentOf(w, key, &inflated)
			contents[key] = c
		}
		made[ref] = c.literalOf(w, s.Resolving, ref)
		l, found := lookupOf(w.in.Plan, ref)
		if c.problem != "" && found && !slices.ContainsFunc(lost, func(have v1alpha1.BundleLookup) bool {
			return have.Path == l.Path && have.Identifier == l.Identifier
		}) {
			lost = append(lost, bundle.Again(l, w.in.Now))
		}
	}
	return made, lost
}

// content is the content of a ConfigMap, or the problem why it is not known.
type content struct {
	bundle.Content
	failed, problem string
	configMap       *corev1.ConfigMap
	size            int       // of its files
	known           *unpacked // from an earlier call; then Content is read on demand
}

// contentOf reads the ConfigMap with a key. inflated counts the bytes of all decompressed files.
func contentOf(w *world, key types.NamespacedName, inflated *int) *content {
	i := slices.IndexFunc(w.in.ConfigMaps, func(cm *corev1.ConfigMap) bool { return cm.Namespace == key.Namespace && cm.Name == key.Name })
	if i < 0 {
		return &content{failed: "finding", problem: fmt.Sprintf("configmaps %q not found", key.Name)}
	}
	unusable := func(why string) *content {
		return &content{failed: "loading", problem: "failed to extract bundle from configmap - " + why}
	}
	cm := w.in.ConfigMaps[i]
	c, files := &content{configMap: cm, known: w.in.Memory.recall(cm)}, bundle.Files(nil)
	if c.known != nil {
		c.size = c.known.size
	} else {
		var err error
		if files, err = bundle.FilesOf(cm); err != nil {
			return unusable(err.Error())
		}
		c.size = files.Size()
	}
	*inflated += c.size
	if *inflated > MaxInflated {
		return unusable("the bundles of the plan are too large in total")
	}
	if c.known == nil {
		c.Content = bundle.ContentOf(cm, files)
		if c.Version() == "" {
			return unusable(strings.TrimSuffix("bundle has no ClusterServiceVersion: "+bundle.Incomplete(cm), ": "))
		}
	}
	return c
}

// recall returns the steps for a reference that an earlier call created. If known is false, Content contains what the
// steps are created from.
func (c *content) recall(ref bundle.Reference) (l literal, known bool) {
	if c.known == nil {
		return l, false
	}
	if l, known = c.known.literals[ref]; !known {
		files, _ := bundle.FilesOf(c.configMap) // an earlier call decompressed them without an error
		c.Content, c.known = bundle.ContentOf(c.configMap, files), nil
	}
	return l, known
}

// literalOf returns the steps for a reference. resolving is the ClusterServiceVersion of the step with the reference.
func (c *content) literalOf(w *world, resolving string, ref bundle.Reference) literal {
	problem := func(format string, args ...any) literal { return literal{problem: fmt.Sprintf(format, args...)} }
	if c.problem != "" {
		return problem("error %s unpacked bundle configmap for ref %v: %s", c.failed, ref.Source, c.problem)
	}
	if l, known := c.recall(ref); known {
		w.in.Memory.keep(c.configMap, c.size, ref, l)
		return l
	}
	own := c.Bundle
	var err error
	if own.Properties, err = bundle.DecodeProperties(ref.Properties); err != nil {
		return problem("failed to load bundle properties for %q: %s", resolving, err)
	}
	if ref.Digest != "" && c.Digest != ref.Digest {
		return problem("bundle content of %s changed since the plan was created", resolving)
	}
	steps, err := bundle.Steps(olmcore.Operator{Name: c.Version(), Replaces: ref.Replaces, Bundle: own}, w.in.Plan.Namespace, bundle.Literal)
	if err != nil {
		return problem("error loading unpacked bundle configmap for ref %v: %s", ref.Source, err)
	}
	l := literal{steps: steps}
	w.in.Memory.keep(c.configMap, c.size, ref, l)
	return l
}

// lookupOf returns the lookup in which a plan records the image of a reference. A plan that runs as a ServiceAccount
// unpacks nothing in the namespace of the global catalogs. Otherwise its author could pull any image with the Secrets
// of that namespace.
func lookupOf(plan *v1alpha1.InstallPlan, ref bundle.Reference) (l v1alpha1.BundleLookup, found bool) {
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
