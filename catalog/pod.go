// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/olmcore"
)

// Label and annotation keys of OLM.
const (
	labelServing      = "olm.catalogSource"
	labelCandidate    = "catalogsource.operators.coreos.com/update"
	labelPodHash      = "olm.pod-spec-hash"
	labelServiceHash  = "olm.service-spec-hash"
	labelBundleUnpack = "operatorframework.io/bundle-unpack-ref"
	labelPodSecurity  = "pod-security.kubernetes.io/enforce"
	annotationPrio    = "operatorframework.io/priorityclass"
	annotationEvict   = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

const (
	grpcPort     = 50051
	grpcPortText = "50051"
	grpcName     = "grpc"
	serverName   = "registry-server"
)

// Profile is one of the Pod shapes that releases of OLM gave their registry
// Pods; they differ in the probes only.
type Profile string

// Profiles.
const (
	// ProfileMain: native gRPC probes. New Pods are made after it.
	ProfileMain Profile = "main"
	// ProfileV046: releases v0.42 to v0.46.
	ProfileV046 Profile = "v0.46"
	// ProfileV041: releases up to v0.41.
	ProfileV041 Profile = "v0.41"
)

var profiles = [...]Profile{ProfileMain, ProfileV046, ProfileV041}

func (p Profile) index() int {
	for i := range profiles {
		if profiles[i] == p {
			return i
		}
	}
	return -1
}

// podShape is what the registry Pod's spec is made from.
type podShape struct {
	container, image, serviceAccount string
	pullSecrets                      []corev1.LocalObjectReference
	readinessDelay, livenessDelay    int32
	startupFailures                  int32 // of ProfileMain; 0: the default
	restricted                       bool
	userID                           int64
	resources                        corev1.ResourceRequirements
	opmImage, utilImage              string
	config                           *v1alpha1.GrpcPodConfig
	priorityClass                    string
}

// spec returns the Pod spec of a profile before placement hints: the one that is
// hashed. It shares memory with the shape.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, Pod.
// Differs: memoryTarget is not written to, and GOMEMLIMIT is always one that the
// Go runtime accepts.
func (s podShape) spec(profile Profile) corev1.PodSpec {
	spec := corev1.PodSpec{
		ServiceAccountName: s.serviceAccount,
		ImagePullSecrets:   s.pullSecrets,
		NodeSelector:       map[string]string{"kubernetes.io/os": "linux"},
		Containers: []corev1.Container{{
			Name: s.container, Image: s.image, ImagePullPolicy: pullPolicy(s.image),
			Ports:                    []corev1.ContainerPort{{Name: grpcName, ContainerPort: grpcPort}},
			Resources:                s.resources,
			ReadinessProbe:           probe(profile, s.readinessDelay),
			LivenessProbe:            probe(profile, s.livenessDelay),
			StartupProbe:             startupProbe(profile, s.startupFailures),
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
		if c.Tolerations != nil {
			spec.Tolerations = c.Tolerations
		}
		if c.Affinity != nil {
			spec.Affinity = c.Affinity
		}
		if c.MemoryTarget != nil {
			setMemoryTarget(&spec.Containers[0], *c.MemoryTarget)
		}
		if c.ExtractContent != nil {
			s.extract(&spec, c.ExtractContent)
		}
	}
	if s.restricted {
		restrict(&spec, s.userID)
	}
	if s.priorityClass != "" {
		spec.PriorityClassName = s.priorityClass
	}
	return spec
}

// extract makes the Pod serve files from the image with a known opm.
func (s podShape) extract(spec *corev1.PodSpec, c *v1alpha1.ExtractContentConfig) {
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
		Name: "extract-utilities", Image: s.utilImage, Command: []string{"cp"},
		Args:            []string{"/bin/copy-content", copyBinary},
		VolumeMounts:    []corev1.VolumeMount{{Name: utilities, MountPath: utilitiesPath}},
		SecurityContext: readOnly(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}, corev1.Container{
		Name: "extract-content", Image: s.image, ImagePullPolicy: pullPolicy(s.image),
		Command: []string{copyBinary}, Args: args,
		VolumeMounts:    []corev1.VolumeMount{{Name: utilities, MountPath: utilitiesPath}, {Name: content, MountPath: contentPath}},
		SecurityContext: readOnly(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	})
	server := &spec.Containers[0]
	server.Image, server.ImagePullPolicy = s.opmImage, pullPolicy(s.opmImage)
	server.Command, server.Args = []string{"/bin/opm"}, []string{"serve", contentPath + "/catalog"}
	server.SecurityContext.ReadOnlyRootFilesystem = new(true)
	if c.CacheDir != "" {
		server.Args = append(server.Args, "--cache-dir="+contentPath+"/cache")
	} else {
		spec.Volumes = append(spec.Volumes, volume(temporary))
		server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: temporary, MountPath: "/tmp/"})
	}
	server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: content, MountPath: contentPath})
}

func restrict(spec *corev1.PodSpec, userID int64) {
	spec.SecurityContext = &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if userID > 0 {
		spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsNonRoot = &userID, new(true)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].SecurityContext.AllowPrivilegeEscalation = new(false)
			containers[i].SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		}
	}
}

func probe(profile Profile, delay int32) *corev1.Probe {
	p := &corev1.Probe{InitialDelaySeconds: delay, TimeoutSeconds: 5}
	switch profile {
	case ProfileV046:
		p.Exec = &corev1.ExecAction{Command: []string{"grpc_health_probe", "-addr=:50051", "-rpc-timeout=5s"}}
	case ProfileV041:
		p.Exec = &corev1.ExecAction{Command: []string{"grpc_health_probe", "-addr=:50051"}}
	default:
		p.GRPC = &corev1.GRPCAction{Port: grpcPort}
	}
	return p
}

// startupPeriod is the time between two startup probes, in seconds.
const startupPeriod = 10

func startupProbe(profile Profile, failures int32) *corev1.Probe {
	p := probe(profile, 0)
	p.PeriodSeconds, p.FailureThreshold = startupPeriod, cmp.Or(failures, DefaultStartupFailureThreshold)
	if profile != ProfileMain {
		p.FailureThreshold = 10
	}
	return p
}

func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

func setMemoryTarget(c *corev1.Container, target resource.Quantity) {
	requests := corev1.ResourceList{}
	for name, quantity := range c.Resources.Requests {
		requests[name] = quantity
	}
	requests[corev1.ResourceMemory] = target.DeepCopy()
	c.Resources.Requests = requests
	c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: memoryLimit(target)})
}

// memoryLimit returns the value of GOMEMLIMIT: the text that OLM would give
// where the Go runtime accepts it, else the number of bytes, and the most that it
// accepts for more.
func memoryLimit(target resource.Quantity) string {
	if target.CmpInt64(math.MaxInt64) > 0 {
		return strconv.FormatInt(math.MaxInt64, 10) + "B"
	}
	text := target.DeepCopy()
	text.Format = resource.BinarySI
	limit := text.String() + "B"
	digits := strings.TrimLeft(limit, "0123456789")
	if len(digits) < len(limit) {
		switch digits {
		case "B", "KiB", "MiB", "GiB", "TiB":
			return limit
		}
	}
	return strconv.FormatInt(target.Value(), 10) + "B"
}

func parsedQuantity(text string) resource.Quantity {
	q, _ := resource.ParseQuantity(text)
	return q
}

// servingLabels select the Pods that serve: never a candidate.
func servingLabels(name string) map[string]string {
	return map[string]string{labelServing: name, olmcore.LabelManaged: "true"}
}

// serviceName returns the Service's name: dots are not allowed in it.
func serviceName(name string) string { return strings.ReplaceAll(name, ".", "-") }
