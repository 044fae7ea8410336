// SPDX-License-Identifier: Apache-2.0

// Package defaults fills omitted fields of objects as the API server does.
package defaults

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/olmcore"
)

// Apply fills the fields of an object of Kubernetes that matter to a comparison of observed objects with desired ones.
func Apply(o olmcore.Object) {
	switch o := o.(type) {
	case *corev1.Namespace:
		defaultNamespace(o)
	case *corev1.Pod:
		PodSpec(&o.Spec)
		setDefault(&o.Spec.EnableServiceLinks, true)
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			addDefaultToleration(&o.Spec, key)
		}
		defaultRequests(&o.Spec)
	case *corev1.Secret:
		defaultSecret(o)
	case *corev1.Service:
		defaultService(&o.Spec)
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *batchv1.Job:
		defaultJob(&o.Spec)
	case *apiextensionsv1.CustomResourceDefinition:
		defaultCRD(&o.Spec)
	default:
		defaultOthers(o)
	}
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

func defaultNamespace(o *corev1.Namespace) {
	if o.Labels[corev1.LabelMetadataName] != o.Name {
		labels := make(map[string]string, len(o.Labels)+1)
		for k, v := range o.Labels {
			labels[k] = v
		}
		labels[corev1.LabelMetadataName] = o.Name
		o.Labels = labels
	}
	if len(o.Spec.Finalizers) == 0 && o.DeletionTimestamp == nil {
		o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	}
	setZero(&o.Status.Phase, corev1.NamespaceActive)
}

// PodSpec fills a Pod spec, without the fields that only Pods have.
func PodSpec(spec *corev1.PodSpec) {
	setZero(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setZero(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setZero(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i].VolumeSource)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			defaultContainer(&containers[i])
		}
	}
}

func defaultContainer(c *corev1.Container) {
	setZero(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setZero(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if tag := c.Image[strings.LastIndex(c.Image, "/")+1:]; !strings.Contains(tag, ":") || strings.HasSuffix(tag, ":latest") {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range c.Ports {
		setZero(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				defaultHTTPGet(handler.HTTPGet)
			}
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			setZero(&probe.TimeoutSeconds, 1)
			setZero(&probe.PeriodSeconds, 10)
			setZero(&probe.SuccessThreshold, 1)
			setZero(&probe.FailureThreshold, 3)
			if probe.GRPC != nil {
				setDefault(&probe.GRPC.Service, "")
			}
			defaultHTTPGet(probe.HTTPGet)
		}
	}
}

func defaultHTTPGet(action *corev1.HTTPGetAction) {
	if action != nil {
		setZero(&action.Path, "/")
		setZero(&action.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		setZero(&ref.APIVersion, "v1")
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	const mode = 0o644
	switch {
	case v.ConfigMap != nil:
		setDefault(&v.ConfigMap.DefaultMode, mode)
	case v.Secret != nil:
		setDefault(&v.Secret.DefaultMode, mode)
	case v.HostPath != nil:
		setDefault(&v.HostPath.Type, corev1.HostPathUnset)
	case v.DownwardAPI != nil:
		setDefault(&v.DownwardAPI.DefaultMode, mode)
		for i := range v.DownwardAPI.Items {
			defaultFieldRef(v.DownwardAPI.Items[i].FieldRef)
		}
	case v.Projected != nil:
		setDefault(&v.Projected.DefaultMode, mode)
		for _, from := range v.Projected.Sources {
			if from.ServiceAccountToken != nil {
				setDefault(&from.ServiceAccountToken.ExpirationSeconds, 3600)
			}
			if from.DownwardAPI != nil {
				for i := range from.DownwardAPI.Items {
					defaultFieldRef(from.DownwardAPI.Items[i].FieldRef)
				}
			}
		}
	}
}

// defaultRequests makes a Pod request what it is limited to.
func defaultRequests(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			requests := maps.Clone(r.Requests)
			for name, limit := range r.Limits {
				if _, set := requests[name]; !set {
					if requests == nil {
						requests = corev1.ResourceList{}
					}
					requests[name] = limit
				}
			}
			r.Requests = requests
		}
	}
}

// defaultSecret also moves stringData to data: stringData is never stored. A null value is stored as an empty one.
func defaultSecret(o *corev1.Secret) {
	setZero(&o.Type, corev1.SecretTypeOpaque)
	isNull := func(value []byte) bool { return value == nil }
	if len(o.StringData) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(o.Data)), isNull) {
		return
	}
	data := map[string][]byte{}
	for key, value := range o.Data {
		data[key] = append([]byte{}, value...)
	}
	for key, value := range o.StringData {
		data[key] = []byte(value)
	}
	o.Data, o.StringData = data, nil
}

// addDefaultToleration does what the admission plugin DefaultTolerationSeconds does: it tolerates an unreachable or
// unready node for five minutes.
func addDefaultToleration(spec *corev1.PodSpec, key string) {
	for _, t := range spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return
		}
	}
	spec.Tolerations = append(slices.Clip(spec.Tolerations), corev1.Toleration{
		Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
	})
}

func defaultService(spec *corev1.ServiceSpec) {
	setZero(&spec.Type, corev1.ServiceTypeClusterIP)
	setZero(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	setDefault(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	setDefault(&spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	for i := range spec.Ports {
		setZero(&spec.Ports[i].Protocol, corev1.ProtocolTCP)
		setZero(&spec.Ports[i].TargetPort, intstr.FromInt32(spec.Ports[i].Port))
	}
}

func defaultDeployment(spec *appsv1.DeploymentSpec) {
	setDefault(&spec.Replicas, 1)
	setDefault(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.ProgressDeadlineSeconds, 600)
	setZero(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if spec.Strategy.RollingUpdate == nil {
			spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		setDefault(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		setDefault(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
	}
	PodSpec(&spec.Template.Spec)
}

func defaultCRD(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
	setZero(&spec.Names.Singular, strings.ToLower(spec.Names.Kind))
	setZero(&spec.Names.ListKind, spec.Names.Kind+"List")
	if spec.Conversion == nil {
		spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
}
