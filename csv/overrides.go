// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// applyConfig lays a Subscription's spec.config over a Deployment. Nothing of
// config is shared with the result.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/overrides/inject.
// Differs: an empty podAntiAffinity removes that part only, not all affinity.
func applyConfig(d *appsv1.Deployment, config *v1alpha1.SubscriptionConfig, proxy []corev1.EnvVar) {
	config = config.DeepCopy()
	pod := &d.Spec.Template.Spec
	env := withProxy(config.Env, proxy)
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Env = mergeEnv(c.Env, env)
		c.EnvFrom = appendNew(c.EnvFrom, config.EnvFrom)
		c.VolumeMounts = mergeBy(c.VolumeMounts, config.VolumeMounts, func(m corev1.VolumeMount) string { return m.Name })
		if config.Resources != nil {
			c.Resources = *config.Resources.DeepCopy()
		}
	}
	pod.Volumes = mergeBy(pod.Volumes, config.Volumes, func(v corev1.Volume) string { return v.Name })
	pod.Tolerations = appendNew(pod.Tolerations, config.Tolerations)
	if config.NodeSelector != nil {
		pod.NodeSelector = config.NodeSelector
	}
	if config.Affinity != nil {
		pod.Affinity = mergeAffinity(pod.Affinity, config.Affinity)
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

func mergeEnv(have, want []corev1.EnvVar) []corev1.EnvVar {
	return mergeBy(have, want, func(e corev1.EnvVar) string { return e.Name })
}

// mergeBy replaces entries with the same key in place and appends the others.
func mergeBy[T any](have, want []T, key func(T) string) []T {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h T) bool { return key(h) == key(w) })
		if i >= 0 {
			have[i] = w
		} else {
			have = append(have, w)
		}
	}
	return have
}

func appendNew[T any](have, want []T) []T {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h T) bool { return equality.Semantic.DeepEqual(h, w) }) {
			have = append(have, w)
		}
	}
	return have
}

// mergeAffinity lets each part of the override replace the same part: nil keeps
// it, empty removes it.
func mergeAffinity(have, want *corev1.Affinity) *corev1.Affinity {
	if equality.Semantic.DeepEqual(want, &corev1.Affinity{}) {
		return nil
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
