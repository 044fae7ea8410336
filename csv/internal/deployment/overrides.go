// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// overlay is a way to merge the lists and the affinity of a configuration into those of a Pod.
type overlay int

const (
	// asMeant merges as a user expects. All writes use it.
	asMeant overlay = iota
	// asOLM merges as OLM does. OLM searches an entry only among the entries of the CSV, and removes more or less affinity
	// than the configuration says.
	asOLM
	// asOLMDetached is like asOLM if OLM must reallocate the list to append an entry. Then OLM loses the replacements that
	// follow an appended entry.
	asOLMDetached
)

// applyConfig merges spec.config of a Subscription and the proxy variables into a Deployment. shared may be nil, and
// the Deployment shares no memory with it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/overrides/inject.
// Differs: see the overlays. An empty podAntiAffinity removes only that part, not the whole affinity.
func (o overlay) applyConfig(d *appsv1.Deployment, shared *v1alpha1.SubscriptionConfig, proxy []corev1.EnvVar) {
	var config v1alpha1.SubscriptionConfig
	if shared != nil {
		shared.DeepCopyInto(&config)
	}
	pod := &d.Spec.Template.Spec
	env := withProxy(config.Env, proxy)
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Env = merge(o, c.Env, env, envName)
		c.EnvFrom = appendNew(c.EnvFrom, config.EnvFrom)
		c.VolumeMounts = o.mergeMounts(c.VolumeMounts, config.VolumeMounts)
		if config.Resources != nil {
			c.Resources = *config.Resources.DeepCopy()
		}
	}
	pod.Volumes = merge(o, pod.Volumes, config.Volumes, func(v corev1.Volume) string { return v.Name })
	pod.Tolerations = appendNew(pod.Tolerations, config.Tolerations)
	if config.NodeSelector != nil {
		pod.NodeSelector = config.NodeSelector
	}
	if config.Affinity != nil {
		pod.Affinity = o.mergeAffinity(pod.Affinity, config.Affinity)
	}
	for _, m := range []*metav1.ObjectMeta{&d.ObjectMeta, &d.Spec.Template.ObjectMeta} {
		for key, value := range config.Annotations {
			if _, taken := m.Annotations[key]; !taken {
				metav1.SetMetaDataAnnotation(m, key, value)
			}
		}
	}
}

func envName(e corev1.EnvVar) string { return e.Name }

func withProxy(env, proxy []corev1.EnvVar) []corev1.EnvVar {
	if slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
		return e.Name == "HTTP_PROXY" || e.Name == "HTTPS_PROXY" || e.Name == "NO_PROXY"
	}) {
		return env
	}
	for _, e := range proxy {
		if e.Value != "" {
			env = append(env, *e.DeepCopy())
		}
	}
	return env
}

// mergeMounts adds mounts. A volume may be mounted at several paths, so a mount replaces the one with the same volume
// and path. Without such a mount, it replaces the first mount of its volume in the CSV, unless another mount already
// replaced that one.
func (o overlay) mergeMounts(have, want []corev1.VolumeMount) []corev1.VolumeMount {
	if o != asMeant {
		return merge(o, have, want, func(m corev1.VolumeMount) string { return m.Name })
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

// merge replaces the first entry with the same name, and appends entries with a new name. It removes later entries with
// the same name, because they would take precedence.
func merge[T any](o overlay, have, want []T, name func(T) string) []T {
	merged := slices.Clone(have)
	for _, w := range want {
		isNamesake := func(h T) bool { return name(h) == name(w) }
		if o == asMeant {
			have = merged
		}
		switch i := slices.IndexFunc(have, isNamesake); {
		case i < 0:
			merged = append(merged, w)
		case o == asMeant:
			merged[i] = w
			merged = append(merged[:i+1], slices.DeleteFunc(merged[i+1:], isNamesake)...)
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

// mergeAffinity replaces each part of the affinity with the same part of the override. A part that is nil in the
// override stays. A part that is empty is removed.
func (o overlay) mergeAffinity(have, want *corev1.Affinity) *corev1.Affinity {
	if equality.Semantic.DeepEqual(want, &corev1.Affinity{}) {
		return nil
	}
	if o != asMeant {
		switch {
		case have == nil || *have == corev1.Affinity{}:
			return want
		case want.PodAntiAffinity != nil && replacePart(nil, want.PodAntiAffinity) == nil:
			return nil
		}
	}
	var out corev1.Affinity
	if have != nil {
		out = *have
	}
	out.NodeAffinity = replacePart(out.NodeAffinity, want.NodeAffinity)
	out.PodAffinity = replacePart(out.PodAffinity, want.PodAffinity)
	out.PodAntiAffinity = replacePart(out.PodAntiAffinity, want.PodAntiAffinity)
	return replacePart(nil, &out)
}

// replacePart returns want, or have if want is nil, or nil if want is empty.
func replacePart[T any](have, want *T) *T {
	var empty T
	switch {
	case want == nil:
		return have
	case equality.Semantic.DeepEqual(*want, empty):
		return nil
	}
	return want
}
