// SPDX-License-Identifier: Apache-2.0

package content

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmcore/olm/fake/internal/defaults"
	"github.com/olmcore/olm/olmcore"
)

// Changes returns the fields that the API server rejects in an object with regard to its stored version: immutable
// fields, and some fields of Pods, Deployments, Jobs and CustomResourceDefinitions. current is nil for a new object.
func Changes(next, current olmcore.Object) field.ErrorList {
	switch o := next.(type) {
	case *corev1.Pod:
		old, _ := current.(*corev1.Pod)
		return podProblems(o, old)
	case *appsv1.Deployment:
		old, _ := current.(*appsv1.Deployment)
		return deploymentProblems(o, old)
	case *corev1.ConfigMap:
		if old, ok := current.(*corev1.ConfigMap); ok && isTrue(old.Immutable) {
			return immutable(isTrue(o.Immutable) && reflect.DeepEqual(o.Data, old.Data) && reflect.DeepEqual(o.BinaryData, old.BinaryData),
				field.NewPath("data"), "field is immutable when `immutable` is set")
		}
	case *corev1.Secret:
		if old, ok := current.(*corev1.Secret); ok {
			return secretProblems(o, old)
		}
	case *corev1.Service:
		old, _ := current.(*corev1.Service)
		return serviceProblems(o, old)
	case *batchv1.Job:
		old, _ := current.(*batchv1.Job)
		return jobProblems(o, old)
	case *rbacv1.RoleBinding:
		if old, ok := current.(*rbacv1.RoleBinding); ok {
			return immutable(o.RoleRef == old.RoleRef, field.NewPath("roleRef"), "cannot change roleRef")
		}
	case *rbacv1.ClusterRoleBinding:
		if old, ok := current.(*rbacv1.ClusterRoleBinding); ok {
			return immutable(o.RoleRef == old.RoleRef, field.NewPath("roleRef"), "cannot change roleRef")
		}
	case *apiextensionsv1.CustomResourceDefinition:
		old, _ := current.(*apiextensionsv1.CustomResourceDefinition)
		return crdProblems(o, old)
	}
	return nil
}

func immutable(same bool, at *field.Path, detail string) field.ErrorList {
	if same {
		return nil
	}
	return field.ErrorList{field.Invalid(at, nil, detail)}
}

func secretProblems(o, old *corev1.Secret) field.ErrorList {
	problems := immutable(o.Type == old.Type, field.NewPath("type"), "field is immutable")
	if isTrue(old.Immutable) {
		same := isTrue(o.Immutable) && reflect.DeepEqual(o.Data, old.Data)
		problems = append(problems, immutable(same, field.NewPath("data"), "field is immutable when `immutable` is set")...)
	}
	return problems
}

func serviceProblems(o, old *corev1.Service) field.ErrorList {
	switch {
	case o.Spec.Type == corev1.ServiceTypeExternalName:
		return nil
	case len(o.Spec.Ports) == 0 && o.Spec.ClusterIP != corev1.ClusterIPNone:
		return field.ErrorList{field.Required(field.NewPath("spec", "ports"), "")}
	case old != nil && old.Spec.ClusterIP != "":
		return immutable(o.Spec.ClusterIP == old.Spec.ClusterIP, field.NewPath("spec", "clusterIPs").Index(0), "may not change once set")
	}
	return nil
}

func jobProblems(job, old *batchv1.Job) field.ErrorList {
	spec, template := field.NewPath("spec"), field.NewPath("spec", "template")
	problems := Template(&job.Spec.Template, template)
	if policy := job.Spec.Template.Spec.RestartPolicy; policy == corev1.RestartPolicyAlways {
		problems = append(problems, field.Required(template.Child("spec", "restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
	if old == nil {
		return problems
	}
	for _, same := range []struct {
		field    string
		was, now any
	}{
		{"completions", old.Spec.Completions, job.Spec.Completions},
		{"selector", old.Spec.Selector, job.Spec.Selector},
		{"template", old.Spec.Template, job.Spec.Template},
	} {
		problems = append(problems, immutable(equality.Semantic.DeepEqual(same.was, same.now), spec.Child(same.field), "field is immutable")...)
	}
	return problems
}

func podProblems(pod, old *corev1.Pod) field.ErrorList {
	if problems := PodSpec(&pod.Spec, field.NewPath("spec")); len(problems) > 0 || old == nil {
		return problems
	}
	was := old.Spec.DeepCopy()
	defaults.PodSpec(was)
	overlayMutable(was.Containers, pod.Spec.Containers)
	overlayMutable(was.InitContainers, pod.Spec.InitContainers)
	was.Tolerations, was.ActiveDeadlineSeconds = pod.Spec.Tolerations, pod.Spec.ActiveDeadlineSeconds
	if equality.Semantic.DeepEqual(*was, pod.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than `spec.containers[*].image`,"+
		"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)")}
}

func overlayMutable(was, is []corev1.Container) {
	for i := range min(len(was), len(is)) {
		was[i].Image = is[i].Image
	}
}

func deploymentProblems(d, old *appsv1.Deployment) field.ErrorList {
	spec := field.NewPath("spec")
	if d.Spec.Selector == nil || len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(spec.Child("selector"), "")}
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("selector"), d.Spec.Selector, err.Error())}
	}
	if !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		return field.ErrorList{field.Invalid(spec.Child("template", "metadata", "labels"), d.Spec.Template.Labels,
			"`selector` does not match template `labels`")}
	}
	if d.Spec.Replicas != nil && *d.Spec.Replicas < 0 {
		return field.ErrorList{field.Invalid(spec.Child("replicas"), *d.Spec.Replicas, "must be greater than or equal to 0")}
	}
	if old != nil && !equality.Semantic.DeepEqual(old.Spec.Selector, d.Spec.Selector) {
		return field.ErrorList{field.Invalid(spec.Child("selector"), d.Spec.Selector, "field is immutable")}
	}
	if old != nil && equality.Semantic.DeepEqual(old.Spec.Template, d.Spec.Template) {
		return nil // a loaded one may lack what the API server adds
	}
	if problems := Template(&d.Spec.Template, spec.Child("template")); len(problems) > 0 {
		return problems
	}
	if problems := Rollout(&d.Spec, spec); len(problems) > 0 {
		return problems
	}
	if policy := d.Spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyAlways && policy != "" {
		return field.ErrorList{field.NotSupported(spec.Child("template", "spec", "restartPolicy"), policy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways})}
	}
	return nil
}

func crdProblems(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	spec := field.NewPath("spec")
	var problems field.ErrorList
	if crd.Spec.Group == "" {
		problems = append(problems, field.Required(spec.Child("group"), ""))
	}
	if crd.Spec.Scope == "" {
		problems = append(problems, field.Required(spec.Child("scope"), ""))
	}
	if crd.Spec.Names.Plural == "" {
		problems = append(problems, field.Required(spec.Child("names", "plural"), ""))
	}
	if crd.Spec.Names.Kind == "" {
		problems = append(problems, field.Required(spec.Child("names", "kind"), ""))
	}
	if want := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != want {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), crd.Name, "must be spec.names.plural+\".\"+spec.group"))
	}
	storage := 0
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			storage++
		}
	}
	if storage != 1 {
		problems = append(problems, field.Invalid(spec.Child("versions"), len(crd.Spec.Versions),
			"must have exactly one version marked as storage version"))
	}
	if old != nil {
		for _, stored := range old.Status.StoredVersions {
			if !hasVersion(crd, stored) {
				problems = append(problems, field.Invalid(field.NewPath("status", "storedVersions"), stored,
					"missing from spec.versions; "+stored+" was previously a storage version, and must remain in spec.versions until "+
						"a storage migration ensures no data remains persisted in "+stored+" and removes "+stored+" from status.storedVersions"))
			}
		}
		if isEstablished(old) && (old.Spec.Scope != crd.Spec.Scope || old.Spec.Names.Kind != crd.Spec.Names.Kind) {
			problems = append(problems, field.Invalid(spec.Child("names", "kind"), crd.Spec.Names.Kind, "field is immutable"))
		}
	}
	sortErrors(problems)
	return problems
}

func isTrue(b *bool) bool { return b != nil && *b }

func hasVersion(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
