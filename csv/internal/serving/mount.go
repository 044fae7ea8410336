// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/serving"
)

const defaultAccount = "default"

// mounts contains the places where operators expect their certificate, for APIs and for webhooks. Every Deployment that
// is called gets both.
var mounts = []struct{ volume, path, cert, key string }{
	{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
	{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
}

// Mount adds the certificate of a Deployment to its spec: volumes, mounts, and the hash of the authority. If the spec
// names no ServiceAccount, Mount sets the default ServiceAccount. Mount does nothing if the Deployment serves no
// webhook or API.
//
// Source: operator-lifecycle-manager pkg/controller/install/certresources.go.
func (p Certificates) Mount(deployment string, spec *appsv1.DeploymentSpec) {
	b, serves := p.backends[deployment]
	if !serves {
		return
	}
	pod := &spec.Template.Spec
	pod.ServiceAccountName = cmp.Or(pod.ServiceAccountName, defaultAccount)
	for _, m := range mounts {
		pod.Volumes = withVolume(pod.Volumes, corev1.Volume{Name: m.volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: CertificateName(deployment), Items: []corev1.KeyToPath{
				{Key: serving.CertKey, Path: m.cert}, {Key: serving.PrivateKeyKey, Path: m.key},
			}},
		}})
		for i := range pod.Containers {
			c := &pod.Containers[i]
			c.VolumeMounts = withMount(c.VolumeMounts, corev1.VolumeMount{Name: m.volume, MountPath: m.path})
		}
	}
	for key, value := range map[string]string{annotationCAHash: p.Hash(deployment), annotationCertHash: b.certHash} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&spec.Template.ObjectMeta, key, value)
		}
	}
}

// hasVolume reports whether the volumes of a Pod include a Secret.
func hasVolume(pod *corev1.PodSpec, secret string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == secret })
}

// withVolume adds a volume. It replaces volumes with the same name.
func withVolume(have []corev1.Volume, want corev1.Volume) []corev1.Volume {
	have = slices.Clone(have)
	found := false
	for i := range have {
		if have[i].Name == want.Name {
			have[i], found = want, true
		}
	}
	if !found {
		have = append(have, want)
	}
	return have
}

// withMount adds a mount, unless the volume is already mounted. It replaces another volume's mount at the same path.
func withMount(have []corev1.VolumeMount, want corev1.VolumeMount) []corev1.VolumeMount {
	have = slices.Clone(have)
	i := slices.IndexFunc(have, func(m corev1.VolumeMount) bool { return m.Name == want.Name || m.MountPath == want.MountPath })
	switch {
	case i < 0:
		have = append(have, want)
	case have[i].Name != want.Name:
		have[i] = want
	}
	return have
}
