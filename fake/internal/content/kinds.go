// SPDX-License-Identifier: Apache-2.0

package content

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func configMap(o *corev1.ConfigMap) (problems field.ErrorList) {
	problems = append(keys(o.Data, field.NewPath("data")), keys(o.BinaryData, field.NewPath("binaryData"))...)
	for key := range o.Data {
		if _, both := o.BinaryData[key]; both {
			problems = append(problems, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	return problems
}

// keys checks the keys of a ConfigMap or a Secret.
func keys[T any](data map[string]T, at *field.Path) (problems field.ErrorList) {
	for key := range data {
		for _, problem := range utilvalidation.IsConfigMapKey(key) {
			problems = append(problems, field.Invalid(at.Key(key), key, problem))
		}
	}
	return problems
}

// secret checks the keys of a Secret, and those that its type requires.
//
// Source: kubernetes pkg/apis/core/validation, ValidateSecret.
func secret(o *corev1.Secret) (problems field.ErrorList) {
	data := field.NewPath("data")
	problems = keys(o.Data, data)
	require := func(names ...string) {
		for _, name := range names {
			if _, has := o.Data[name]; !has {
				problems = append(problems, field.Required(data.Key(name), ""))
			}
		}
	}
	switch o.Type {
	case corev1.SecretTypeDockerConfigJson:
		require(corev1.DockerConfigJsonKey)
		if text, has := o.Data[corev1.DockerConfigJsonKey]; has && !json.Valid(text) {
			problems = append(problems, field.Invalid(data.Key(corev1.DockerConfigJsonKey), "<secret contents redacted>", "is no JSON"))
		}
	case corev1.SecretTypeDockercfg:
		require(corev1.DockerConfigKey)
	case corev1.SecretTypeSSHAuth:
		require(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeServiceAccountToken:
		if o.Annotations[corev1.ServiceAccountNameKey] == "" {
			problems = append(problems, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	}
	return problems
}

// service checks the type, the selector and the ports of a Service.
//
// Source: kubernetes pkg/apis/core/validation, ValidateService.
func service(spec *corev1.ServiceSpec, at *field.Path) (problems field.ErrorList) {
	problems = metav1validation.ValidateLabels(spec.Selector, at.Child("selector"))
	types := []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort}
	if spec.Type != "" && !slices.Contains(types, spec.Type) {
		problems = append(problems, field.NotSupported(at.Child("type"), spec.Type, types))
	}
	if spec.Type == corev1.ServiceTypeExternalName && spec.ExternalName == "" {
		problems = append(problems, field.Required(at.Child("externalName"), ""))
	}
	names, numbers := sets.New[string](), sets.New[corev1.ServicePort]()
	for i, p := range spec.Ports {
		port := at.Child("ports").Index(i)
		problems = append(problems, servicePort(p, port)...)
		switch {
		case p.Name == "" && len(spec.Ports) > 1:
			problems = append(problems, field.Required(port.Child("name"), ""))
		case p.Name != "" && names.Has(p.Name):
			problems = append(problems, field.Duplicate(port.Child("name"), p.Name))
		}
		names.Insert(p.Name)
		number := corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}
		if numbers.Has(number) {
			problems = append(problems, field.Duplicate(port, number))
		}
		numbers.Insert(number)
	}
	return problems
}

func servicePort(p corev1.ServicePort, at *field.Path) (problems field.ErrorList) {
	invalid := func(child string, value any, found []string) {
		for _, problem := range found {
			problems = append(problems, field.Invalid(at.Child(child), value, problem))
		}
	}
	if p.Name != "" {
		invalid("name", p.Name, utilvalidation.IsDNS1123Label(p.Name))
	}
	invalid("port", p.Port, utilvalidation.IsValidPortNum(int(p.Port)))
	if p.TargetPort.Type == intstr.String {
		invalid("targetPort", p.TargetPort.StrVal, utilvalidation.IsValidPortName(p.TargetPort.StrVal))
	} else if p.TargetPort.IntVal != 0 { // 0 stands for the port
		invalid("targetPort", p.TargetPort.IntVal, utilvalidation.IsValidPortNum(int(p.TargetPort.IntVal)))
	}
	protocols := []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
	if p.Protocol != "" && !slices.Contains(protocols, p.Protocol) {
		problems = append(problems, field.NotSupported(at.Child("protocol"), p.Protocol, protocols))
	}
	return problems
}

func budget(spec *policyv1.PodDisruptionBudgetSpec, at *field.Path) (problems field.ErrorList) {
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		problems = append(problems, field.Invalid(at, spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	for name, value := range map[string]*intstr.IntOrString{"minAvailable": spec.MinAvailable, "maxUnavailable": spec.MaxUnavailable} {
		switch {
		case value == nil:
		case value.Type == intstr.String:
			for _, problem := range utilvalidation.IsValidPercent(value.StrVal) {
				problems = append(problems, field.Invalid(at.Child(name), value.StrVal, problem))
			}
		case value.IntVal < 0:
			problems = append(problems, field.Invalid(at.Child(name), value.IntVal, "must be greater than or equal to 0"))
		}
	}
	return problems
}

// maxPriority is the highest priority of a PriorityClass of a user.
const maxPriority = 1_000_000_000

// priorityClass checks a PriorityClass. Those of Kubernetes itself exist in every cluster.
func priorityClass(o *unstructured.Unstructured) (problems field.ErrorList) {
	name := o.GetName()
	isSystem := strings.HasPrefix(name, "system-")
	value, _, _ := unstructured.NestedInt64(o.Object, "value")
	switch {
	case isSystem && name != "system-node-critical" && name != "system-cluster-critical":
		problems = append(problems, field.Forbidden(field.NewPath("metadata", "name"),
			"priority class names with 'system-' prefix are reserved for system use only. error: "+name+" is not a known system priority class"))
	case !isSystem && value > maxPriority:
		problems = append(problems, field.Forbidden(field.NewPath("value"), "maximum allowed value of a user defined priority is 1000000000"))
	}
	policies := []string{string(corev1.PreemptLowerPriority), string(corev1.PreemptNever)}
	if policy, has, _ := unstructured.NestedString(o.Object, "preemptionPolicy"); has && !slices.Contains(policies, policy) {
		problems = append(problems, field.NotSupported(field.NewPath("preemptionPolicy"), policy, policies))
	}
	return problems
}
