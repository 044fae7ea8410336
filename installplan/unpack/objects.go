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
	"github.com/olmcore/olm/internal/ownerrefs"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// target is a bundle image and the objects that unpack it.
type target struct {
	image string
	// namespace and name are those of all objects, except for the Jobs of later tries.
	namespace, name string
	catalog         *v1alpha1.CatalogSource
	// owners references the owner of new objects: the ConfigMap if it exists, or the CatalogSource, which owns the
	// ConfigMap.
	owners []metav1.OwnerReference
	config installplan.Config
}

func targetOf(in *Input) target {
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
	return olmcore.CreateOf(o, olmcore.Cause{Reason: reason, Message: "it unpacks bundle " + printable.Clip(t.image)})
}

func (t target) update(before, after olmcore.Object) olmcore.Action {
	return olmcore.UpdateOf(before, after, olmcore.Cause{Reason: ReasonObjectDiffers, Message: "it unpacks bundle " + printable.Clip(t.image)})
}

func deleteOf(o olmcore.Object, reason, message string) olmcore.Action {
	action := olmcore.DeleteOf(o, olmcore.Cause{Reason: reason, Message: message})
	action.PropagationPolicy = metav1.DeletePropagationBackground
	return action
}

// keepConfigMap returns the action that creates the ConfigMap or repairs its owner, or nil. owns reports whether it can
// own the other objects. An unmanaged ConfigMap is not changed.
func (t target) keepConfigMap(have *corev1.ConfigMap) (action olmcore.Action, owns bool) {
	switch {
	case have == nil:
		return t.create(
			&corev1.ConfigMap{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ConfigMap"), ObjectMeta: t.meta()},
			ReasonObjectAbsent,
		), false
	case have.DeletionTimestamp != nil || have.UID == "" || t.isUnmanaged(have):
		return nil, false
	}
	refs, changed := ownerrefs.Add(have.OwnerReferences, []metav1.OwnerReference{olmcore.OwnerReferenceTo(t.catalog)})
	if !changed {
		return nil, true
	}
	after := have.DeepCopy()
	after.OwnerReferences = refs
	return t.update(have, after), true
}

// isUnmanaged reports whether a ConfigMap with the name of the bundle was not created for it.
func (t target) isUnmanaged(cm *corev1.ConfigMap) bool {
	return cm.DeletionTimestamp == nil && cm.UID != "" &&
		cm.Labels[olmcore.LabelManaged] != "true" && cm.Annotations[bundle.AnnotationSourceImage] != t.image &&
		!slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.CatalogSourceKind })
}

// keepPermissions creates and corrects the Role, the ServiceAccount and the RoleBinding. ready reports whether all of
// them are observed as desired.
func (t target) keepPermissions(in *Input) (actions []olmcore.Action, ready bool) {
	role, hasRole := t.keepRole(in.Role)
	account, hasAccount := t.keepAccount(in.ServiceAccount)
	binding, hasBinding := t.keepBinding(in.RoleBinding)
	actions = slices.DeleteFunc([]olmcore.Action{role, account, binding}, func(a olmcore.Action) bool { return a == nil })
	return actions, hasRole && hasAccount && hasBinding
}

// keepRole returns the action that creates or corrects the Role, or nil. ready reports whether the Role is as desired.
func (t target) keepRole(have *rbacv1.Role) (action olmcore.Action, ready bool) {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{t.name}, Verbs: []string{"create", "get", "update"},
	}
	switch {
	case have == nil:
		desired := &rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "Role"), ObjectMeta: t.meta(), Rules: []rbacv1.PolicyRule{rule}}
		return t.create(desired, ReasonObjectAbsent), false
	case have.DeletionTimestamp != nil:
		return nil, false
	case slices.ContainsFunc(have.Rules, func(r rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(r, rule) }):
		return nil, true
	}
	after := have.DeepCopy()
	after.Rules = append(after.Rules, rule)
	return t.update(have, after), false
}

// keepAccount returns the action that creates the ServiceAccount, or nil. ready reports whether it exists.
func (t target) keepAccount(have *corev1.ServiceAccount) (action olmcore.Action, ready bool) {
	if have == nil {
		desired := &corev1.ServiceAccount{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "ServiceAccount"), ObjectMeta: t.meta()}
		return t.create(desired, ReasonObjectAbsent), false
	}
	return nil, have.DeletionTimestamp == nil
}

// keepBinding returns the action that creates the RoleBinding, or deletes one that binds something else, or nil. ready
// reports whether the RoleBinding is as desired.
func (t target) keepBinding(have *rbacv1.RoleBinding) (action olmcore.Action, ready bool) {
	desired := &rbacv1.RoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion, "RoleBinding"), ObjectMeta: t.meta(),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: t.name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: t.name, Namespace: t.namespace}},
	}
	switch {
	case have == nil:
		return t.create(desired, ReasonObjectAbsent), false
	case have.DeletionTimestamp != nil:
		return nil, false
	case have.RoleRef == desired.RoleRef && apiequality.Semantic.DeepEqual(have.Subjects, desired.Subjects):
		return nil, true
	}
	return deleteOf(have, ReasonObjectDiffers, "it has another role or other subjects"), false
}

func typeMeta(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}

// podSpec returns the spec of the Pod that unpacks the image. A container of the image itself copies its files into a
// volume, with a copy tool from another image. Then opm writes the files into the ConfigMap.
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
	extract := container(
		"extract",
		t.config.OPMImage,
		[]string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", t.namespace, "-c", t.name, "-z"},
		bundle,
	)
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

// pullSecrets returns the Secrets of the CatalogSource, or nil.
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
		list = append(
			list,
			corev1.Toleration{
				Key:               taint,
				Operator:          corev1.TolerationOpExists,
				Effect:            corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(120)),
			},
		)
	}
	return list
}
