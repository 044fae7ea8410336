// SPDX-License-Identifier: Apache-2.0

package fake

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// templateProblems returns what the API server rejects in the template of a Deployment or a Job.
func templateProblems(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	problems := metav1validation.ValidateLabels(template.Labels, at.Child("labels"))
	return append(problems, podSpecProblems(&template.Spec, at.Child("spec"))...)
}

// podSpecProblems returns what the API server rejects in the fields of a Pod that bundles get wrong: names of containers, volumes
// and environment variables, images, mounts and ports.
func podSpecProblems(spec *corev1.PodSpec, at *field.Path) (problems field.ErrorList) {
	volumes := sets.New[string]()
	for i, v := range spec.Volumes {
		problems = append(problems, uniqueLabelProblems(v.Name, volumes, at.Child("volumes").Index(i).Child("name"))...)
	}
	if len(spec.Containers) == 0 {
		problems = append(problems, field.Required(at.Child("containers"), ""))
	}
	names := sets.New[string]()
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"containers", spec.Containers}, {"initContainers", spec.InitContainers}} {
		for i := range list.containers {
			problems = append(problems, containerProblems(&list.containers[i], names, volumes, at.Child(list.field).Index(i))...)
		}
	}
	return problems
}

// uniqueLabelProblems checks that a name is a DNS label that is not among the names, and adds it to them.
func uniqueLabelProblems(name string, names sets.Set[string], at *field.Path) (problems field.ErrorList) {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "")}
	case names.Has(name):
		problems = append(problems, field.Duplicate(at, name))
	}
	for _, problem := range validation.IsDNS1123Label(name) {
		problems = append(problems, field.Invalid(at, name, problem))
	}
	names.Insert(name)
	return problems
}

func containerProblems(c *corev1.Container, names, volumes sets.Set[string], at *field.Path) field.ErrorList {
	problems := uniqueLabelProblems(c.Name, names, at.Child("name"))
	if c.Image == "" {
		problems = append(problems, field.Required(at.Child("image"), ""))
	}
	for i, p := range c.Ports {
		port := at.Child("ports").Index(i).Child("containerPort")
		if p.ContainerPort == 0 {
			problems = append(problems, field.Required(port, ""))
			continue
		}
		for _, problem := range validation.IsValidPortNum(int(p.ContainerPort)) {
			problems = append(problems, field.Invalid(port, p.ContainerPort, problem))
		}
	}
	for i := range c.Env {
		problems = append(problems, variableProblems(&c.Env[i], at.Child("env").Index(i))...)
	}
	for i, e := range c.EnvFrom {
		if (e.ConfigMapRef == nil) == (e.SecretRef == nil) {
			problems = append(problems, field.Invalid(at.Child("envFrom").Index(i), "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return append(problems, mountProblems(c.VolumeMounts, volumes, at.Child("volumeMounts"))...)
}

func variableProblems(v *corev1.EnvVar, at *field.Path) (problems field.ErrorList) {
	if v.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	for _, problem := range validation.IsRelaxedEnvVarName(v.Name) {
		problems = append(problems, field.Invalid(at.Child("name"), v.Name, problem))
	}
	if v.ValueFrom == nil {
		return problems
	}
	sources := 0
	for _, set := range []bool{v.ValueFrom.FieldRef != nil, v.ValueFrom.ResourceFieldRef != nil, v.ValueFrom.ConfigMapKeyRef != nil,
		v.ValueFrom.SecretKeyRef != nil, v.ValueFrom.FileKeyRef != nil} {
		if set {
			sources++
		}
	}
	switch {
	case sources != 1:
		problems = append(problems, field.Invalid(at.Child("valueFrom"), "", "must specify one source"))
	case v.Value != "":
		problems = append(problems, field.Invalid(at.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
	}
	return problems
}

func mountProblems(mounts []corev1.VolumeMount, volumes sets.Set[string], at *field.Path) (problems field.ErrorList) {
	paths := sets.New[string]()
	for i, m := range mounts {
		switch name := at.Index(i).Child("name"); {
		case m.Name == "":
			problems = append(problems, field.Required(name, ""))
		case !volumes.Has(m.Name):
			problems = append(problems, field.NotFound(name, m.Name))
		}
		switch path := at.Index(i).Child("mountPath"); {
		case m.MountPath == "":
			problems = append(problems, field.Required(path, ""))
		case paths.Has(m.MountPath):
			problems = append(problems, field.Invalid(path, m.MountPath, "must be unique"))
		}
		paths.Insert(m.MountPath)
	}
	return problems
}
