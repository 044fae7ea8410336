// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/olmcore"
)

// profile is one of the Pod specs that releases of OLM gave their registry Pods; they differ in the probes only. The
// hashes of all count as current, so that adopting a cluster restarts nothing.
type profile string

const (
	profileMain profile = "main"  // native gRPC probes; new Pods are made after it
	profileV046 profile = "v0.46" // releases v0.42 to v0.46
	profileV041 profile = "v0.41" // releases up to v0.41
)

var profiles = []profile{profileMain, profileV046, profileV041}

// StartupPeriod is the time between two startup probes, in seconds.
const StartupPeriod = 10

// shape is what the spec of a registry Pod is made from.
type shape struct {
	*Registry
	container, image, serviceAccount string
	readinessDelay, livenessDelay    int32
	config                           *v1alpha1.GrpcPodConfig
}

func (r *Registry) shape() shape {
	config := r.Source.Spec.GrpcPodConfig
	if !FromConfigMap(r.Source) {
		return shape{r, "registry-server", r.Source.Spec.Image, r.Source.Name, 5, 10, config}
	}
	// Differs: extractContent is left out; OLM makes Pods with empty image names of it, which API servers refuse.
	if config != nil && config.ExtractContent != nil {
		kept := *config
		kept.ExtractContent = nil
		config = &kept
	}
	return shape{r, "configmap-registry-server", r.ServerImage, "", 5, 5, config}
}

// podHash returns OLM's hash of a spec. No label has that of a spec that cannot be encoded, which no API server stores.
func podHash(spec corev1.PodSpec) string {
	hash, err := olmcore.Hash(spec)
	if err != nil {
		return "unknown"
	}
	return hash
}

// spec returns the Pod spec of a profile before placement hints: the one that is hashed. It shares memory with the shape.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, Pod.
// Differs: memoryTarget is not written to, and GOMEMLIMIT is always one that the Go runtime accepts.
func (s shape) spec(p profile) corev1.PodSpec {
	spec := corev1.PodSpec{
		ServiceAccountName: s.serviceAccount,
		ImagePullSecrets:   s.pullSecrets,
		NodeSelector:       map[string]string{corev1.LabelOSStable: "linux"},
		PriorityClassName:  s.Source.Annotations[annotationPriority],
		Containers: []corev1.Container{{
			Name: s.container, Image: s.image, ImagePullPolicy: pullPolicy(s.image),
			Ports:                    []corev1.ContainerPort{{Name: GRPC, ContainerPort: port}},
			Resources:                s.Resources,
			ReadinessProbe:           probe(p, s.readinessDelay),
			LivenessProbe:            probe(p, s.livenessDelay),
			StartupProbe:             startupProbe(p, s.StartupFailures),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)},
		}},
	}
	if c := s.config; c != nil {
		s.configure(&spec, c)
	}
	if s.Restricted {
		restrict(&spec, s.UserID)
	}
	return spec
}

func (s shape) configure(spec *corev1.PodSpec, c *v1alpha1.GrpcPodConfig) {
	if c.NodeSelector != nil {
		spec.NodeSelector = c.NodeSelector
	}
	if c.PriorityClassName != nil && spec.PriorityClassName == "" { // the annotation counts for more
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
		s.extract(spec, c.ExtractContent)
	}
}

// extract makes the Pod serve files from the image with a known opm.
func (s shape) extract(spec *corev1.PodSpec, c *v1alpha1.ExtractContentConfig) {
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
		Name: "extract-utilities", Image: s.UtilImage, Command: []string{"cp"},
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
	server.Image, server.ImagePullPolicy = s.OPMImage, pullPolicy(s.OPMImage)
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

func probe(p profile, delay int32) *corev1.Probe {
	made := &corev1.Probe{InitialDelaySeconds: delay, TimeoutSeconds: 5}
	switch p {
	case profileV046:
		made.Exec = &corev1.ExecAction{Command: []string{"grpc_health_probe", "-addr=:50051", "-rpc-timeout=5s"}}
	case profileV041:
		made.Exec = &corev1.ExecAction{Command: []string{"grpc_health_probe", "-addr=:50051"}}
	default:
		made.GRPC = &corev1.GRPCAction{Port: port}
	}
	return made
}

func startupProbe(p profile, failures int32) *corev1.Probe {
	made := probe(p, 0)
	made.PeriodSeconds, made.FailureThreshold = StartupPeriod, failures
	if p != profileMain {
		made.FailureThreshold = 10
	}
	return made
}

func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

func setMemoryTarget(c *corev1.Container, target resource.Quantity) {
	requests := corev1.ResourceList{}
	maps.Copy(requests, c.Resources.Requests)
	requests[corev1.ResourceMemory] = target.DeepCopy()
	c.Resources.Requests = requests
	c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: memoryLimit(target)})
}

// memoryLimit returns the value of GOMEMLIMIT: the text that OLM would give where the Go runtime accepts it, else the
// number of bytes, and the most that it accepts for more.
func memoryLimit(target resource.Quantity) string {
	if target.CmpInt64(math.MaxInt64) > 0 {
		return strconv.FormatInt(math.MaxInt64, 10) + "B"
	}
	text := target.DeepCopy()
	text.Format = resource.BinarySI
	limit := text.String() + "B"
	unit := strings.TrimLeft(limit, "0123456789")
	if len(unit) < len(limit) {
		switch unit {
		case "B", "KiB", "MiB", "GiB", "TiB":
			return limit
		}
	}
	return strconv.FormatInt(target.Value(), 10) + "B"
}
