// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/fake/internal/crds"
	"github.com/olmcore/olm/fake/internal/defaults"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// assign gives a new object what the API server picks for it.
func (c *Cluster) assign(o olmcore.Object) {
	switch o := o.(type) {
	case *corev1.Service:
		if o.Spec.ClusterIP == "" && o.Spec.Type != corev1.ServiceTypeExternalName {
			o.Spec.ClusterIP = c.store.NextIP("10.96")
		}
		if len(o.Spec.ClusterIPs) == 0 && o.Spec.ClusterIP != "" {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
	case *batchv1.Job:
		defaults.SelectPods(o)
	case *apiextensionsv1.CustomResourceDefinition:
		crds.StoreVersion(o)
	case *corev1.Pod:
		o.Status.Phase = corev1.PodPending
		o.Status.QOSClass = corev1.PodQOSBurstable
		setZero(&o.Spec.ServiceAccountName, "default")
		o.Spec.DeprecatedServiceAccount = o.Spec.ServiceAccountName
		setDefault(&o.Spec.Priority, 0)
		setDefault(&o.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
		c.mountToken(o)
	}
}

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// mountToken does what the admission plugin ServiceAccount does: a volume with
// the account's token for each container, unless Pod or account opt out.
func (c *Cluster) mountToken(pod *corev1.Pod) {
	spec := &pod.Spec
	automount := spec.AutomountServiceAccountToken
	if account := store.Get[*corev1.ServiceAccount](c.store, store.ServiceAccountKind, pod.Namespace, spec.ServiceAccountName); automount == nil &&
		account != nil {
		automount = account.AutomountServiceAccountToken
	}
	if automount != nil && !*automount {
		return
	}
	name := "kube-api-access-" + olmcore.NameSuffix(5, pod.Namespace, pod.Name) // a real one is random
	mounted := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			mounts := containers[i].VolumeMounts
			if !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath }) {
				containers[i].VolumeMounts = append(slices.Clip(mounts), corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenPath})
				mounted = true
			}
		}
	}
	if mounted {
		spec.Volumes = append(slices.Clip(spec.Volumes), tokenVolume(name))
	}
}

func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		},
	}}}
}

// admitPod refuses a Pod whose ServiceAccount does not exist, as the admission
// plugin does. The account "default" always exists.
func (c *Cluster) admitPod(o olmcore.Object) error {
	pod, ok := o.(*corev1.Pod)
	if !ok || c.store.HasServiceAccount(pod.Namespace, pod.Spec.ServiceAccountName) {
		return nil
	}
	return apierrors.NewForbidden(
		c.store.Table(store.PodKind).Kind.GroupResource(),
		pod.Name,
		fmt.Errorf(
			"error looking up service account %s/%s: serviceaccount %q not found",
			pod.Namespace,
			pod.Spec.ServiceAccountName,
			pod.Spec.ServiceAccountName,
		),
	)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
