// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
)

// Purposes of Pods: the values of the annotation KeyPurpose.
const (
	PurposeInitial  = "initial"  // the Pod is one of the first Pods
	PurposeFailover = "failover" // the Pod replaces a Pod of a failed Node
	PurposeRefill   = "refill"   // the Pod replaces a Pod that was deleted or is about to be evicted
	PurposeRestart  = "restart"  // the Pod replaces a Pod that failed
	PurposeRollout  = "rollout"  // the Pod replaces a Pod that was created from another spec or ConfigMap content
	PurposePoll     = "poll"     // the Pod checks the image for new content
)

// PodRequest is a request to create a Pod.
type PodRequest struct {
	Candidate bool          // true if the Service must not select the new Pod yet
	Purpose   string        // one of the Purpose constants
	Attempt   int           // the number of the attempt to start the Pod
	Replaces  types.UID     // the UID of the Pod that the new Pod replaces, or empty
	Cause     olmcore.Cause // the cause of the action that creates the Pod
}

// Pod returns a new Pod of the registry. The scheduler prefers Nodes that are not in avoid.
func (r *Registry) Pod(name string, request PodRequest, avoid []string) *corev1.Pod {
	labels := servingLabels(r.Source.Name)
	if request.Candidate {
		labels[LabelServing], labels[LabelCandidate] = "", r.Source.Name
	}
	labels[labelPodHash] = r.podHash
	owner := olmcore.OwnerReferenceTo(r.Source)
	owner.Controller = new(true)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: r.Source.Name + "-", Namespace: r.Source.Namespace,
			Labels: labels, Annotations: r.podAnnotations(request), OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *r.podSpec.DeepCopy(),
	}
	switch {
	case r.ConfigMap != nil:
		r.serveConfigMap(pod)
	case r.AccountShared:
		// With a token, a user who may create a CatalogSource could act as any ServiceAccount of the namespace. A
		// registry that runs an image does not need the API server.
		pod.Spec.AutomountServiceAccountToken = new(false)
	}
	avoidNodes(&pod.Spec, avoid)
	r.spread(pod, request.Purpose)
	return pod
}

func (r *Registry) podAnnotations(request PodRequest) map[string]string {
	annotations := map[string]string{}
	for key, value := range r.Source.Annotations {
		if key != annotationApplied && !strings.HasPrefix(key, olmcore.KeyPrefix) {
			annotations[key] = value
		}
	}
	annotations[annotationEvict] = "true"
	annotations[KeyAttempt] = strconv.Itoa(request.Attempt)
	annotations[KeyPurpose] = request.Purpose
	if request.Replaces != "" {
		annotations[KeyReplaces] = string(request.Replaces)
		annotations[KeyCause] = request.Cause.Message
	}
	return annotations
}

// serveConfigMap sets the fields that OLM sets after it has computed the hash of a Pod that serves a ConfigMap.
func (r *Registry) serveConfigMap(pod *corev1.Pod) {
	pod.Labels[LabelConfigMapVersion] = r.ConfigMap.ResourceVersion
	pod.Annotations[keyConfigMapHash] = r.contentHash
	pod.Spec.ServiceAccountName = r.Source.Name + SuffixAccount
	pod.Spec.Containers[0].Command = []string{"configmap-server", "-c", r.Source.Spec.ConfigMap, "-n", r.Source.Namespace}
}

// avoidNodes sets a preferred node affinity, unless the user set a node affinity. It is not part of the hash.
func avoidNodes(spec *corev1.PodSpec, nodes []string) {
	if len(nodes) == 0 || spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	term := corev1.PreferredSchedulingTerm{Weight: 100}
	for _, node := range nodes {
		term.Preference.MatchFields = append(term.Preference.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
		})
	}
	spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term},
	}
}

// spread sets the topology spread constraints of several replicas. They are not part of the hash.
func (r *Registry) spread(pod *corev1.Pod, purpose string) {
	if r.Replicas < 2 || r.SpreadHosts == "" {
		return
	}
	spreadFrom := map[string]string{labelPodHash: pod.Labels[labelPodHash]}
	if purpose == PurposePoll && r.SpreadHosts == corev1.ScheduleAnyway {
		// If the content is new, these Pods replace all others and may use their hosts.
		spreadFrom = map[string]string{LabelCandidate: r.Source.Name}
	}
	constraint := func(topology string, otherwise corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: otherwise,
			LabelSelector: &metav1.LabelSelector{MatchLabels: spreadFrom},
		}
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		constraint(corev1.LabelHostname, r.SpreadHosts),
		constraint(corev1.LabelTopologyZone, corev1.ScheduleAnyway),
	}
}

// Promoted returns a copy of a Pod with the labels by which the Service of a CatalogSource selects it.
func Promoted(pod *corev1.Pod, catalogSource string) *corev1.Pod {
	after := pod.DeepCopy()
	after.Labels[LabelServing] = catalogSource
	after.Labels[LabelCandidate] = ""
	after.Labels[olmcore.LabelManaged] = "true"
	return after
}

// The probes of registry Pods in OLM's releases. The Pod specs of the releases only differ in the probe. Pods with
// the hash of any release are current, so that no Pod is restarted when a cluster is adopted.
var (
	probeMain = corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port}} // the probe of new Pods
	probeV046 = corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"grpc_health_probe", "-addr=:50051", "-rpc-timeout=5s"}}}
	probeV041 = corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"grpc_health_probe", "-addr=:50051"}}}
)

// StartupPeriod is the time between two startup probes, in seconds.
const StartupPeriod = 10

// podShape contains what differs between the Pods of the source types.
type podShape struct {
	registry                         *Registry
	container, image, serviceAccount string
	readinessDelay, livenessDelay    int32
	config                           *v1alpha1.GrpcPodConfig
}

func (r *Registry) podShape() podShape {
	config := r.Source.Spec.GrpcPodConfig
	if !FromConfigMap(r.Source) {
		return podShape{r, "registry-server", r.Source.Spec.Image, r.Source.Name, 5, 10, config}
	}
	// Differs: extractContent is left out. OLM creates Pods without image names, which API servers reject.
	if config != nil && config.ExtractContent != nil {
		kept := *config
		kept.ExtractContent = nil
		config = &kept
	}
	return podShape{r, "configmap-registry-server", r.ServerImage, "", 5, 5, config}
}

// podHash returns OLM's hash of a Pod spec.
func podHash(spec corev1.PodSpec) string {
	hash, err := objecthash.Hash(spec)
	if err != nil {
		return "unknown" // the spec cannot be encoded, so no API server stores it
	}
	return hash
}

// spec returns the Pod spec that is hashed: with a probe, and without hints for the scheduler. It shares memory with
// the Registry and the probe.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, Pod.
// Differs: memoryTarget is not changed, and GOMEMLIMIT always has a value that the Go runtime accepts.
func (s podShape) spec(probe corev1.ProbeHandler) corev1.PodSpec {
	r := s.registry
	failures := r.StartupFailures
	if probe.GRPC == nil {
		failures = 10
	}
	spec := corev1.PodSpec{
		ServiceAccountName: s.serviceAccount,
		ImagePullSecrets:   r.pullSecrets,
		NodeSelector:       map[string]string{corev1.LabelOSStable: "linux"},
		Containers: []corev1.Container{{
			Name: s.container, Image: s.image, ImagePullPolicy: pullPolicy(s.image),
			Ports:          []corev1.ContainerPort{{Name: GRPC, ContainerPort: port}},
			Resources:      r.Resources,
			ReadinessProbe: &corev1.Probe{ProbeHandler: probe, InitialDelaySeconds: s.readinessDelay, TimeoutSeconds: 5},
			LivenessProbe:  &corev1.Probe{ProbeHandler: probe, InitialDelaySeconds: s.livenessDelay, TimeoutSeconds: 5},
			StartupProbe: &corev1.Probe{
				ProbeHandler: probe, TimeoutSeconds: 5, PeriodSeconds: StartupPeriod, FailureThreshold: failures,
			},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)},
		}},
	}
	if c := s.config; c != nil {
		if c.NodeSelector != nil {
			spec.NodeSelector = c.NodeSelector
		}
		if c.PriorityClassName != nil {
			spec.PriorityClassName = *c.PriorityClassName
		}
		spec.Tolerations = c.Tolerations
		spec.Affinity = c.Affinity
		if c.MemoryTarget != nil {
			setMemoryTarget(&spec.Containers[0], *c.MemoryTarget)
		}
		if c.ExtractContent != nil {
			r.extractContent(&spec, s.image, c.ExtractContent)
		}
	}
	spec.PriorityClassName = cmp.Or(r.Source.Annotations[annotationPriority], spec.PriorityClassName)
	if r.Restricted {
		restrict(&spec, r.UserID)
	}
	return spec
}

// extractContent changes a Pod spec so that init containers copy the content out of the image, and opm serves it.
func (r *Registry) extractContent(spec *corev1.PodSpec, image string, c *v1alpha1.ExtractContentConfig) {
	const (
		utilities, content, temporary          = "utilities", "catalog-content", "tmpdir"
		utilitiesPath, contentPath, copyBinary = "/utilities", "/extracted-catalog", "/utilities/copy-content"
	)
	volume := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	readOnly := func() *corev1.SecurityContext { return &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)} }
	spec.Volumes = append(spec.Volumes, volume(utilities), volume(content))
	args := []string{"--catalog.from=" + c.CatalogDir, "--catalog.to=" + contentPath + "/catalog"}
	if c.CacheDir != "" {
		args = append(args, "--cache.from="+c.CacheDir, "--cache.to="+contentPath+"/cache")
	}
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name: "extract-utilities", Image: r.UtilImage, Command: []string{"cp"}, Args: []string{"/bin/copy-content", copyBinary},
		VolumeMounts:    []corev1.VolumeMount{{Name: utilities, MountPath: utilitiesPath}},
		SecurityContext: readOnly(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}, corev1.Container{
		Name: "extract-content", Image: image, ImagePullPolicy: pullPolicy(image),
		Command: []string{copyBinary}, Args: args,
		VolumeMounts:    []corev1.VolumeMount{{Name: utilities, MountPath: utilitiesPath}, {Name: content, MountPath: contentPath}},
		SecurityContext: readOnly(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	})
	server := &spec.Containers[0]
	server.Image = r.OPMImage
	server.ImagePullPolicy = pullPolicy(r.OPMImage)
	server.Command = []string{"/bin/opm"}
	server.Args = []string{"serve", contentPath + "/catalog"}
	server.SecurityContext.ReadOnlyRootFilesystem = new(true)
	if c.CacheDir != "" {
		server.Args = append(server.Args, "--cache-dir="+contentPath+"/cache")
	} else {
		spec.Volumes = append(spec.Volumes, volume(temporary))
		server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: temporary, MountPath: "/tmp/"})
	}
	server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: content, MountPath: contentPath})
}

// restrict sets the security context of the restricted Pod security standard.
func restrict(spec *corev1.PodSpec, userID int64) {
	spec.SecurityContext = &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if userID > 0 {
		spec.SecurityContext.RunAsUser = &userID
		spec.SecurityContext.RunAsNonRoot = new(true)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].SecurityContext.AllowPrivilegeEscalation = new(false)
			containers[i].SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		}
	}
}

func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

// setMemoryTarget requests memory and sets GOMEMLIMIT. The value is OLM's text if the Go runtime accepts it, and
// otherwise the number of bytes, at most the highest number that the Go runtime accepts.
func setMemoryTarget(c *corev1.Container, target resource.Quantity) {
	requests := maps.Clone(c.Resources.Requests)
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	requests[corev1.ResourceMemory] = target.DeepCopy()
	c.Resources.Requests = requests
	text := target.DeepCopy()
	text.Format = resource.BinarySI
	limit := text.String() + "B"
	switch {
	case target.CmpInt64(math.MaxInt64) > 0:
		limit = strconv.FormatInt(math.MaxInt64, 10) + "B"
	case !memoryLimit.MatchString(limit):
		limit = strconv.FormatInt(target.Value(), 10) + "B"
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: limit})
}

// memoryLimit matches the values of GOMEMLIMIT that the Go runtime accepts.
var memoryLimit = regexp.MustCompile(`^[0-9]+([KMGT]i)?B$`)
