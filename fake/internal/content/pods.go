// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Template returns what the API server rejects in the template of a Deployment or a Job.
func Template(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	problems := metav1validation.ValidateLabels(template.Labels, at.Child("labels"))
	return append(problems, PodSpec(&template.Spec, at.Child("spec"))...)
}

// Rollout returns what the API server rejects in the strategy and the deadline of a Deployment.
func Rollout(spec *appsv1.DeploymentSpec, at *field.Path) (problems field.ErrorList) {
	strategy := at.Child("strategy")
	switch rolling := spec.Strategy.RollingUpdate; {
	case rolling == nil:
	case spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		problems = append(problems, field.Forbidden(strategy.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
	case isZero(rolling.MaxSurge) && isZero(rolling.MaxUnavailable):
		problems = append(problems, field.Invalid(strategy.Child("rollingUpdate", "maxUnavailable"), 0, "may not be 0 when `maxSurge` is 0"))
	}
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil && *deadline <= spec.MinReadySeconds {
		problems = append(problems, field.Invalid(at.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
	}
	return problems
}

func isZero(value *intstr.IntOrString) bool {
	return value != nil && (value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && value.StrVal == "0%")
}

// PodSpec returns what the API server rejects in the fields of a Pod that bundles get wrong: names of containers,
// volumes and environment variables, images, mounts and ports.
func PodSpec(spec *corev1.PodSpec, at *field.Path) (problems field.ErrorList) {
	volumes := sets.New[string]()
	for i, v := range spec.Volumes {
		volume := at.Child("volumes").Index(i)
		problems = append(problems, uniqueLabelProblems(v.Name, volumes, volume.Child("name"))...)
		problems = append(problems, sourceProblems(&v.VolumeSource, volume)...)
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
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	if spec.RestartPolicy != "" && !slices.Contains(policies, spec.RestartPolicy) {
		problems = append(problems, field.NotSupported(at.Child("restartPolicy"), spec.RestartPolicy, policies))
	}
	problems = append(problems, metav1validation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	for i, t := range spec.Tolerations {
		if t.Operator == corev1.TolerationOpExists && t.Value != "" {
			problems = append(problems, field.Invalid(at.Child("tolerations").Index(i).Child("operator"), t.Value,
				"value must be empty when `operator` is 'Exists'"))
		}
	}
	return problems
}

// sourceProblems checks that a volume has one source at most, and the name of its Secret.
func sourceProblems(source *corev1.VolumeSource, at *field.Path) (problems field.ErrorList) {
	set := 0
	for _, kind := range reflect.ValueOf(*source).Fields() {
		if !kind.IsNil() {
			set++
		}
	}
	if set > 1 {
		problems = append(problems, field.Forbidden(at, "may not specify more than 1 volume type"))
	}
	if source.Secret != nil && source.Secret.SecretName == "" {
		problems = append(problems, field.Required(at.Child("secret", "secretName"), ""))
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
	for _, problem := range utilvalidation.IsDNS1123Label(name) {
		problems = append(problems, field.Invalid(at, name, problem))
	}
	names.Insert(name)
	return problems
}

func containerProblems(c *corev1.Container, names, volumes sets.Set[string], at *field.Path) field.ErrorList {
	problems := uniqueLabelProblems(c.Name, names, at.Child("name"))
	if c.Image == "" {
		problems = append(problems, field.Required(at.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		problems = append(problems, field.Invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	if c.ImagePullPolicy != "" && !slices.Contains(policies, c.ImagePullPolicy) {
		problems = append(problems, field.NotSupported(at.Child("imagePullPolicy"), c.ImagePullPolicy, policies))
	}
	problems = append(problems, portProblems(c.Ports, at.Child("ports"))...)
	for i := range c.Env {
		problems = append(problems, variableProblems(&c.Env[i], at.Child("env").Index(i))...)
	}
	for i, e := range c.EnvFrom {
		if (e.ConfigMapRef == nil) == (e.SecretRef == nil) {
			problems = append(problems, field.Invalid(at.Child("envFrom").Index(i), "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	problems = append(problems, probeProblems(c.LivenessProbe, at.Child("livenessProbe"))...)
	problems = append(problems, probeProblems(c.ReadinessProbe, at.Child("readinessProbe"))...)
	problems = append(problems, probeProblems(c.StartupProbe, at.Child("startupProbe"))...)
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
		request := c.Resources.Requests[name]
		if limit, has := c.Resources.Limits[name]; has && request.Cmp(limit) > 0 {
			problems = append(problems, field.Invalid(at.Child("resources", "requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return append(problems, mountProblems(c.VolumeMounts, volumes, at.Child("volumeMounts"))...)
}

func portProblems(ports []corev1.ContainerPort, at *field.Path) (problems field.ErrorList) {
	names := sets.New[string]()
	for i, p := range ports {
		if p.Name != "" {
			name := at.Index(i).Child("name")
			for _, problem := range utilvalidation.IsValidPortName(p.Name) {
				problems = append(problems, field.Invalid(name, p.Name, problem))
			}
			if names.Has(p.Name) {
				problems = append(problems, field.Duplicate(name, p.Name))
			}
			names.Insert(p.Name)
		}
		number := at.Index(i).Child("containerPort")
		if p.ContainerPort == 0 {
			problems = append(problems, field.Required(number, ""))
			continue
		}
		for _, problem := range utilvalidation.IsValidPortNum(int(p.ContainerPort)) {
			problems = append(problems, field.Invalid(number, p.ContainerPort, problem))
		}
	}
	return problems
}

func probeProblems(p *corev1.Probe, at *field.Path) field.ErrorList {
	if p == nil || p.Exec != nil || p.HTTPGet != nil || p.TCPSocket != nil || p.GRPC != nil {
		return nil
	}
	return field.ErrorList{field.Required(at, "must specify a handler type")}
}

func variableProblems(v *corev1.EnvVar, at *field.Path) (problems field.ErrorList) {
	if v.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	for _, problem := range utilvalidation.IsRelaxedEnvVarName(v.Name) {
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
	case v.ValueFrom.ConfigMapKeyRef != nil && v.ValueFrom.ConfigMapKeyRef.Key == "":
		problems = append(problems, field.Required(at.Child("valueFrom", "configMapKeyRef", "key"), ""))
	case v.ValueFrom.SecretKeyRef != nil && v.ValueFrom.SecretKeyRef.Key == "":
		problems = append(problems, field.Required(at.Child("valueFrom", "secretKeyRef", "key"), ""))
	case v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "":
		problems = append(problems, field.Required(at.Child("valueFrom", "fieldRef", "fieldPath"), ""))
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
		if slices.Contains(strings.Split(m.SubPath, "/"), "..") {
			problems = append(problems, field.Invalid(at.Index(i).Child("subPath"), m.SubPath, "must not contain '..'"))
		}
	}
	return problems
}
