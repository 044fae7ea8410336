// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmcore/olm/olmcore"
)

// applyDefaults fills the fields that the API server fills, as far as they
// matter to a comparison of live objects with desired ones.
func (k *kind) applyDefaults(o olmcore.Object) {
	switch o := o.(type) {
	case *corev1.Namespace:
		defaultNamespace(o)
	case *corev1.Pod:
		defaultPodSpec(&o.Spec)
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
	k.schemaDefaults(o)
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

func defaultPodSpec(spec *corev1.PodSpec) {
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

// defaultSecret also takes in stringData, which is never stored. A value of null is stored as an empty one.
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

// addDefaultToleration does what the admission plugin DefaultTolerationSeconds
// does: five minutes on a node that went away.
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
	defaultPodSpec(&spec.Template.Spec)
}

func defaultCRD(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
	setZero(&spec.Names.Singular, strings.ToLower(spec.Names.Kind))
	setZero(&spec.Names.ListKind, spec.Names.Kind+"List")
	if spec.Conversion == nil {
		spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
}

// assign gives a new object what the API server picks for it.
func (c *Cluster) assign(o olmcore.Object) {
	switch o := o.(type) {
	case *corev1.Service:
		if o.Spec.ClusterIP == "" && o.Spec.Type != corev1.ServiceTypeExternalName {
			o.Spec.ClusterIP = c.nextIP("10.96")
		}
		if len(o.Spec.ClusterIPs) == 0 && o.Spec.ClusterIP != "" {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
	case *batchv1.Job:
		selectPods(o)
	case *apiextensionsv1.CustomResourceDefinition:
		storeVersion(o)
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
	if account := lookup[*corev1.ServiceAccount](c, serviceAccountKind, pod.Namespace, spec.ServiceAccountName); automount == nil && account != nil {
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

// keepAllocated: an update that names no address keeps the one that there is.
func keepAllocated(next, current olmcore.Object) {
	if service, ok := next.(*corev1.Service); ok && service.Spec.ClusterIP == "" && service.Spec.Type != corev1.ServiceTypeExternalName {
		from := current.(*corev1.Service).Spec
		service.Spec.ClusterIP, service.Spec.ClusterIPs = from.ClusterIP, from.ClusterIPs
	}
}

func (c *Cluster) nextIP(prefix string) string {
	c.lastIP++
	return fmt.Sprintf("%s.%d.%d", prefix, c.lastIP/250%250, c.lastIP%250+1)
}

// admitPod refuses a Pod whose ServiceAccount does not exist, as the admission
// plugin does. The account "default" always exists.
func (c *Cluster) admitPod(o olmcore.Object) error {
	pod, ok := o.(*corev1.Pod)
	if !ok || c.hasServiceAccount(pod.Namespace, pod.Spec.ServiceAccountName) {
		return nil
	}
	return apierrors.NewForbidden(c.tables[podKind].kind.groupResource(), pod.Name,
		fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", pod.Namespace, pod.Spec.ServiceAccountName, pod.Spec.ServiceAccountName))
}

func (c *Cluster) hasServiceAccount(namespace, name string) bool {
	return name == "" || name == "default" || c.tables[serviceAccountKind].get(namespace, name) != nil
}

func slicesSortErrors(problems field.ErrorList) {
	slices.SortFunc(problems, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
}
