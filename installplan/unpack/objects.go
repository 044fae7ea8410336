// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// target is a bundle image and the objects that unpack it.
type target struct {
	image string
	// namespace and name are those of all objects but later Jobs.
	namespace, name string
	catalog         *v1alpha1.CatalogSource
	// owners are the ConfigMap, which owns all other objects, or its own owner before it exists.
	owners []metav1.OwnerReference
	config installplan.Config
}

func targetOf(in Input) target {
	owner := olmcore.Object(in.CatalogSource)
	if in.ConfigMap != nil {
		owner = in.ConfigMap
	}
	return target{
		image: in.Lookup.Path, namespace: in.Lookup.CatalogSourceRef.Namespace, name: bundle.Name(in.Lookup.Path),
		catalog: in.CatalogSource, config: in.Config, owners: []metav1.OwnerReference{olmcore.OwnerReferenceTo(owner)},
	}
}

func (t target) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: t.namespace, Name: t.name, Labels: map[string]string{olmcore.LabelManaged: "true"}, OwnerReferences: slices.Clone(t.owners),
	}
}

func (t target) create(o olmcore.Object, reason string) olmcore.Action {
	return olmcore.CreateOf(o, olmcore.Cause{Reason: reason, Message: "it unpacks bundle " + report.Clip(t.image)})
}

func (t target) update(before, after olmcore.Object) olmcore.Action {
	return olmcore.UpdateOf(before, after, olmcore.Cause{Reason: ReasonObjectDiffers, Message: "it unpacks bundle " + report.Clip(t.image)})
}

func deleteOf(o olmcore.Object, reason, message string) olmcore.Action {
	action := olmcore.DeleteOf(o, olmcore.Cause{Reason: reason, Message: message})
	action.PropagationPolicy = metav1.DeletePropagationBackground
	return action
}

// configMap returns what the ConfigMap or its owner lacks, nil for nothing, and whether it can own the rest. One that
// was not made for the bundle is left alone.
func (t target) configMap(have *corev1.ConfigMap) (lacks olmcore.Action, owns bool) {
	switch {
	case have == nil:
		return t.create(&corev1.ConfigMap{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ConfigMap"), ObjectMeta: t.meta()}, ReasonObjectAbsent), false
	case have.DeletionTimestamp != nil || have.UID == "" || t.isUnmanaged(have):
		return nil, false
	}
	refs, changed := olmcore.AddOwnerReferences(have.OwnerReferences, []metav1.OwnerReference{olmcore.OwnerReferenceTo(t.catalog)})
	if !changed {
		return nil, true
	}
	after := have.DeepCopy()
	after.OwnerReferences = refs
	return t.update(have, after), true
}

// isUnmanaged reports a ConfigMap of the bundle's name that was not made for it.
func (t target) isUnmanaged(cm *corev1.ConfigMap) bool {
	return cm.DeletionTimestamp == nil && cm.UID != "" &&
		cm.Labels[olmcore.LabelManaged] != "true" && cm.Annotations[bundle.AnnotationSourceImage] != t.image &&
		!slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.CatalogSourceKind })
}

// permissions returns what the Role, the ServiceAccount and the RoleBinding lack, and whether all of them are observed
// as they should be.
func (t target) permissions(in Input) (lacks []olmcore.Action, ready bool) {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{t.name}, Verbs: []string{"create", "get", "update"},
	}
	role := &rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "Role"), ObjectMeta: t.meta(), Rules: []rbacv1.PolicyRule{rule}}
	account := &corev1.ServiceAccount{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ServiceAccount"), ObjectMeta: t.meta()}
	binding := &rbacv1.RoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "RoleBinding"), ObjectMeta: t.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: t.name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: t.name, Namespace: t.namespace}},
	}
	ready = true
	// need takes what exists, what should, and what corrects the one that exists, nil where nothing has to.
	need := func(have, desired olmcore.Object, correct func() olmcore.Action) {
		var action olmcore.Action
		if olmcore.KeyOf(have) == (olmcore.Key{}) {
			action = t.create(desired, ReasonObjectAbsent)
		} else if have.GetDeletionTimestamp() == nil {
			action = correct()
		} else {
			ready = false
		}
		if action != nil {
			lacks, ready = append(lacks, action), false
		}
	}
	need(in.Role, role, func() olmcore.Action {
		if slices.ContainsFunc(in.Role.Rules, func(r rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(r, rule) }) {
			return nil
		}
		after := in.Role.DeepCopy()
		after.Rules = append(after.Rules, rule)
		return t.update(in.Role, after)
	})
	need(in.ServiceAccount, account, func() olmcore.Action { return nil })
	need(in.RoleBinding, binding, func() olmcore.Action {
		if in.RoleBinding.RoleRef == binding.RoleRef && apiequality.Semantic.DeepEqual(in.RoleBinding.Subjects, binding.Subjects) {
			return nil
		}
		return deleteOf(in.RoleBinding, ReasonObjectDiffers, "it binds something else")
	})
	return lacks, ready
}

func typeMeta(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}

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
	copyHelper := container("util", t.config.UtilImage, []string{"/bin/cp", "-Rv", "/bin/cpb", "/util/cpb"}, util)
	pullBundle := container("pull", t.image, []string{"/util/cpb", "/bundle"}, bundle, util)
	pullBundle.ImagePullPolicy = pull
	extract := container("extract", t.config.OPMImage, []string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", t.namespace, "-c", t.name, "-z"}, bundle)
	extract.Env = []corev1.EnvVar{{Name: "CONTAINER_IMAGE", Value: t.image}}
	security := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if user := t.config.RunAsUser; user > 0 {
		security.RunAsUser, security.RunAsNonRoot = new(user), new(true)
	}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: t.name, SecurityContext: security,
		NodeSelector:   map[string]string{"kubernetes.io/os": "linux"},
		Volumes:        []corev1.Volume{{Name: "bundle", VolumeSource: empty}, {Name: "util", VolumeSource: empty}},
		InitContainers: []corev1.Container{copyHelper, pullBundle}, Containers: []corev1.Container{extract},
		Tolerations: tolerations(), ImagePullSecrets: t.pullSecrets(),
	}
}

// pullSecrets are those of the CatalogSource; nil for none.
func (t target) pullSecrets() (refs []corev1.LocalObjectReference) {
	for _, secret := range t.catalog.Spec.Secrets {
		refs = append(refs, corev1.LocalObjectReference{Name: secret})
	}
	return refs
}

func container(name, image string, command []string, mounts ...corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Command: command, VolumeMounts: mounts,
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
	for _, role := range [...]string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} {
		list = append(list, corev1.Toleration{Key: role, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range [...]string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		list = append(list, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(120))})
	}
	return list
}
