// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// overlay is a way to lay lists and affinities of a configuration over those of a Pod.
type overlay int

const (
	// asMeant does what the user means; every write is made so.
	asMeant overlay = iota
	// asOLM looks entries up among those of the CSV alone, of several with one name takes the first, and removes more
	// affinity or less than was said.
	asOLM
	// asOLMDetached is asOLM where the lists had no room: once an entry was appended, what replaces another one is
	// lost.
	asOLMDetached
)

// applyConfig lays a Subscription's spec.config over a Deployment. Nothing of config is shared with the result.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/overrides/inject.
// Differs: see the overlays; an empty podAntiAffinity removes that part only, not all affinity.
func (o overlay) applyConfig(d *appsv1.Deployment, config *v1alpha1.SubscriptionConfig, proxy []corev1.EnvVar) {
	config = config.DeepCopy()
	pod := &d.Spec.Template.Spec
	env := withProxy(config.Env, proxy)
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Env = o.mergeEnv(c.Env, env)
		c.EnvFrom = appendNew(c.EnvFrom, config.EnvFrom)
		c.VolumeMounts = o.mergeMounts(c.VolumeMounts, config.VolumeMounts)
		if config.Resources != nil {
			c.Resources = *config.Resources.DeepCopy()
		}
	}
	pod.Volumes = o.mergeVolumes(pod.Volumes, config.Volumes)
	pod.Tolerations = appendNew(pod.Tolerations, config.Tolerations)
	if config.NodeSelector != nil {
		pod.NodeSelector = config.NodeSelector
	}
	if config.Affinity != nil {
		pod.Affinity = o.mergeAffinity(pod.Affinity, config.Affinity)
	}
	for key, value := range config.Annotations {
		if _, taken := d.Annotations[key]; !taken {
			setAnnotation(&d.ObjectMeta, key, value)
		}
		if _, taken := d.Spec.Template.Annotations[key]; !taken {
			setAnnotation(&d.Spec.Template.ObjectMeta, key, value)
		}
	}
}

func withProxy(env, proxy []corev1.EnvVar) []corev1.EnvVar {
	sets := func(e corev1.EnvVar) bool {
		return e.Name == "HTTP_PROXY" || e.Name == "HTTPS_PROXY" || e.Name == "NO_PROXY"
	}
	if slices.ContainsFunc(env, sets) {
		return env
	}
	for _, e := range proxy {
		if e.Value != "" {
			env = append(env, *e.DeepCopy())
		}
	}
	return env
}

func (o overlay) mergeEnv(have, want []corev1.EnvVar) []corev1.EnvVar {
	name := func(e corev1.EnvVar) string { return e.Name }
	if o != asMeant {
		return mergeUpstream(o, have, want, name)
	}
	return mergeBy(have, want, name)
}

func (o overlay) mergeVolumes(have, want []corev1.Volume) []corev1.Volume {
	name := func(v corev1.Volume) string { return v.Name }
	if o != asMeant {
		return mergeUpstream(o, have, want, name)
	}
	return mergeBy(have, want, name)
}

// mergeMounts replaces for each mount the one of its volume at its path, else the first of its volume that the CSV has,
// when nothing replaced that yet: a volume may be mounted at several places.
func (o overlay) mergeMounts(have, want []corev1.VolumeMount) []corev1.VolumeMount {
	if o != asMeant {
		return mergeUpstream(o, have, want, func(m corev1.VolumeMount) string { return m.Name })
	}
	merged, replaced := have, make([]bool, len(have))
	for _, w := range want {
		i := slices.IndexFunc(merged, func(m corev1.VolumeMount) bool { return m.Name == w.Name && m.MountPath == w.MountPath })
		if i < 0 {
			i = slices.IndexFunc(have, func(m corev1.VolumeMount) bool { return m.Name == w.Name })
			if i < 0 || replaced[i] {
				merged = append(merged, w)
				continue
			}
		}
		merged[i] = w
		if i < len(have) {
			replaced[i] = true
		}
	}
	return merged
}

// mergeBy replaces the first entry with the same key in place, drops the later ones, which would win over it, and
// appends the others.
func mergeBy[T any](have, want []T, key func(T) string) []T {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h T) bool { return key(h) == key(w) })
		if i < 0 {
			have = append(have, w)
			continue
		}
		rest := slices.DeleteFunc(have[i+1:], func(h T) bool { return key(h) == key(w) })
		have = have[:i+1+len(rest)]
		have[i] = w
	}
	return have
}

func mergeUpstream[T any](o overlay, have, want []T, key func(T) string) []T {
	merged := slices.Clone(have)
	for _, w := range want {
		switch i := slices.IndexFunc(have, func(h T) bool { return key(h) == key(w) }); {
		case i < 0:
			merged = append(merged, w)
		case o == asOLM || len(merged) == len(have):
			merged[i] = w
		}
	}
	return merged
}

func appendNew[T any](have, want []T) []T {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h T) bool { return equality.Semantic.DeepEqual(h, w) }) {
			have = append(have, w)
		}
	}
	return have
}

// mergeAffinity lets each part of the override replace the same part: nil keeps it, empty removes it.
func (o overlay) mergeAffinity(have, want *corev1.Affinity) *corev1.Affinity {
	if equality.Semantic.DeepEqual(want, &corev1.Affinity{}) {
		return nil
	}
	if o != asMeant {
		switch {
		case have == nil || *have == corev1.Affinity{}:
			return want
		case want.PodAntiAffinity != nil && unlessEmpty(want.PodAntiAffinity) == nil:
			return nil
		}
	}
	var out corev1.Affinity
	if have != nil {
		out = *have
	}
	if p := want.NodeAffinity; p != nil {
		out.NodeAffinity = unlessEmpty(p)
	}
	if p := want.PodAffinity; p != nil {
		out.PodAffinity = unlessEmpty(p)
	}
	if p := want.PodAntiAffinity; p != nil {
		out.PodAntiAffinity = unlessEmpty(p)
	}
	return unlessEmpty(&out)
}

func unlessEmpty[T any](p *T) *T {
	var empty T
	if equality.Semantic.DeepEqual(*p, empty) {
		return nil
	}
	return p
}
