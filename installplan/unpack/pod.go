// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podSpec is the Pod that unpacks: the image itself brings its files, a helper copies them out, and a tool writes them
// into the ConfigMap.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, job.
func (t target) podSpec() corev1.PodSpec {
	pull := corev1.PullAlways
	if strings.Contains(t.image, "@") {
		pull = corev1.PullIfNotPresent
	}
	bundle := corev1.VolumeMount{Name: "bundle", MountPath: "/bundle"}
	util := corev1.VolumeMount{Name: "util", MountPath: "/util"}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	extract := container("extract", t.config.OPMImage, bundle)
	extract.Command = []string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/",
		"-n", t.namespace, "-c", t.name, "-z"}
	extract.Env = []corev1.EnvVar{{Name: "CONTAINER_IMAGE", Value: t.image}}
	copyHelper := container("util", t.config.UtilImage, util)
	copyHelper.Command = []string{"/bin/cp", "-Rv", "/bin/cpb", "/util/cpb"}
	pullBundle := container("pull", t.image, bundle, util)
	pullBundle.Command, pullBundle.ImagePullPolicy = []string{"/util/cpb", "/bundle"}, pull
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: t.name,
		SecurityContext:  &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		NodeSelector:     map[string]string{"kubernetes.io/os": "linux"},
		Volumes:          []corev1.Volume{{Name: "bundle", VolumeSource: empty}, {Name: "util", VolumeSource: empty}},
		InitContainers:   []corev1.Container{copyHelper, pullBundle},
		Containers:       []corev1.Container{extract},
		Tolerations:      tolerations(),
		ImagePullSecrets: t.pullSecrets(),
	}
	if user := t.config.RunAsUser; user > 0 {
		spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsNonRoot = new(user), new(true)
	}
	return spec
}

// pullSecrets are those of the CatalogSource; nil for none.
func (t target) pullSecrets() (refs []corev1.LocalObjectReference) {
	for _, secret := range t.catalog.Spec.Secrets {
		refs = append(refs, corev1.LocalObjectReference{Name: secret})
	}
	return refs
}

func container(name, image string, mounts ...corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, VolumeMounts: mounts,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func tolerations() (list []corev1.Toleration) {
	for _, arch := range [...]string{"amd64", "arm64", "ppc64le", "s390x"} {
		list = append(list, corev1.Toleration{Key: "kubernetes.io/arch", Operator: corev1.TolerationOpEqual, Value: arch})
	}
	for _, role := range [...]string{"master", "control-plane"} {
		list = append(list, corev1.Toleration{
			Key: "node-role.kubernetes.io/" + role, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	for _, taint := range [...]string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		list = append(list, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(120)),
		})
	}
	return list
}
