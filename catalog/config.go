// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Defaults of Config.
const (
	DefaultReplicas                = 1
	DefaultNodeUnreachableGrace    = 30 * time.Second
	DefaultNodeNotReadyGrace       = 60 * time.Second
	DefaultNodeGoneGrace           = 40 * time.Second
	DefaultMinPollInterval         = 30 * time.Second
	DefaultConfigMapServerImage    = "quay.io/operator-framework/configmap-operator-registry:latest"
	DefaultOPMImage                = "quay.io/operator-framework/opm:latest"
	DefaultUtilImage               = "quay.io/operator-framework/olm:latest"
	DefaultWorkloadUserID          = 1001
	DefaultStartupFailureThreshold = 15

	// NoWorkloadUser is the value of Config.WorkloadUserID that lets the image or the platform choose the user.
	NoWorkloadUser = -1

	maxReplicas = 5
)

// Config configures the registry Pods of all CatalogSources of a controller. If a field is zero, its default applies,
// for example DefaultReplicas. Validate returns an *olmcore.InputError if a number is negative, except NoWorkloadUser.
type Config struct {
	// Replicas is the number of registry Pods, 1 to 5. The annotation olmcore/replicas of a CatalogSource overrides it.
	Replicas int `json:"replicas,omitempty"`
	// Spread determines how several replicas are spread over hosts. Empty means SpreadPrefer.
	Spread Spread `json:"spread,omitempty"`
	// Resources contains the resource requirements of registry Pods. They are merged over OLM's requests (cpu 10m, memory
	// 50Mi). The annotation olmcore/resources of a CatalogSource contains further requirements as JSON, which are merged
	// over Resources. A change of the result rolls out new Pods. The caller must not change the object later.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeUnreachableGrace is the time that a Node may be unreachable before its Pods are treated as lost.
	NodeUnreachableGrace time.Duration `json:"nodeUnreachableGrace,omitempty"`
	// NodeNotReadyGrace is the time that a Node may be not ready before its Pods are treated as lost.
	NodeNotReadyGrace time.Duration `json:"nodeNotReadyGrace,omitempty"`
	// NodeGoneGrace is the time that a Node may be missing before its Pods are treated as lost. For a ready Pod,
	// olmcore.ClockTolerance is added, because a stale cache may not contain a new Node yet.
	NodeGoneGrace time.Duration `json:"nodeGoneGrace,omitempty"`
	// ForceDelete selects the lost Pods that are deleted with a grace period of 0. Empty means ForceDeleteNodeLost. The
	// annotation olmcore/force-delete-policy of a CatalogSource overrides it.
	ForceDelete ForceDeletePolicy `json:"forceDelete,omitempty"`
	// IgnoreNodes makes Gather skip Nodes, for controllers without permission to read them.
	IgnoreNodes bool `json:"ignoreNodes,omitempty"`

	// MinPollInterval is the minimum time between two polls of an image. A shorter interval in spec.updateStrategy is
	// increased to this time.
	MinPollInterval time.Duration `json:"minPollInterval,omitempty"`

	// OPMImage and UtilImage are the images that serve catalogs with grpcPodConfig.extractContent.
	OPMImage  string `json:"opmImage,omitempty"`
	UtilImage string `json:"utilImage,omitempty"`
	// ConfigMapServerImage is the image that serves catalogs of the source types configmap and internal.
	ConfigMapServerImage string `json:"configMapServerImage,omitempty"`
	// WorkloadUserID is the user that restricted Pods run as. With NoWorkloadUser, the image or the platform chooses the
	// user.
	WorkloadUserID int64 `json:"workloadUserID,omitempty"`
	// StartupFailureThreshold is the number of startup probes that may fail before the registry is restarted. There is one
	// probe every 10 seconds. Increase the threshold for large catalogs, which load slowly. A change of the threshold
	// rolls out new Pods. A Pod that does not become ready is replaced after 10 minutes, or after 20 seconds for each
	// probe if that is longer. That time is at most two days.
	StartupFailureThreshold int32 `json:"startupFailureThreshold,omitempty"`
	// GlobalCatalogNamespace is the namespace whose CatalogSources serve all namespaces. Empty means "olm". Package
	// controllers sets this field from Options.GlobalNamespace, so a configuration file cannot set another value.
	GlobalCatalogNamespace string `json:"-"`
}

// Spread determines how replicas are spread over hosts.
type Spread string

// Spreads. Zones are only preferred.
const (
	SpreadOff     Spread = "Off"
	SpreadPrefer  Spread = "Prefer"
	SpreadRequire Spread = "Require"
)

// spreadConstraints maps each Spread to the scheduler's constraint for hosts.
var spreadConstraints = map[Spread]corev1.UnsatisfiableConstraintAction{
	SpreadOff: "", SpreadPrefer: corev1.ScheduleAnyway, SpreadRequire: corev1.DoNotSchedule,
}

// ForceDeletePolicy selects the Pods that are deleted with a grace period of 0. Pods that have finished are always
// deleted with a grace period of 0.
type ForceDeletePolicy string

// Force delete policies. No replacement waits for a forced deletion.
const (
	// ForceDeleteNever deletes no running Pod by force.
	ForceDeleteNever ForceDeletePolicy = "Never"
	// ForceDeleteNodeGone deletes Pods by force if their Node is deleted or out of service.
	ForceDeleteNodeGone ForceDeletePolicy = "NodeGoneOnly"
	// ForceDeleteNodeLost also deletes these Pods by force:
	//   - Pods that are past their deletion time, on a Node that is unreachable or not ready
	//   - Pods that still exist two minutes after their deletion time, unless their Node is known to work
	//   - Pods that Kubernetes evicted because of their Node, if the Nodes were not read
	ForceDeleteNodeLost ForceDeletePolicy = "NodeLost"
	// ForceDeleteUpstream also deletes every Pod with the condition DisruptionTarget by force, as OLM does.
	ForceDeleteUpstream ForceDeletePolicy = "Upstream"
)

func (p ForceDeletePolicy) known() bool {
	return p == ForceDeleteNever || p == ForceDeleteNodeGone || p == ForceDeleteNodeLost || p == ForceDeleteUpstream
}

// Validate returns an *olmcore.InputError for the first invalid field, or nil. The Field of the error begins with
// "Config.".
func (c Config) Validate() error {
	for _, number := range []struct {
		field string
		value int64
	}{
		{"NodeUnreachableGrace", int64(c.NodeUnreachableGrace)},
		{"NodeNotReadyGrace", int64(c.NodeNotReadyGrace)},
		{"NodeGoneGrace", int64(c.NodeGoneGrace)},
		{"MinPollInterval", int64(c.MinPollInterval)},
		{"StartupFailureThreshold", int64(c.StartupFailureThreshold)},
	} {
		if number.value < 0 {
			return &olmcore.InputError{Field: "Config." + number.field, Problem: "is negative"}
		}
	}
	_, knownSpread := spreadConstraints[c.Spread]
	switch {
	case c.WorkloadUserID < NoWorkloadUser:
		return &olmcore.InputError{Field: "Config.WorkloadUserID", Problem: "is negative and not NoWorkloadUser (-1)"}
	case c.Replicas < 0 || c.Replicas > maxReplicas:
		return &olmcore.InputError{Field: "Config.Replicas", Problem: "is not between 1 and 5"}
	case c.Spread != "" && !knownSpread:
		return &olmcore.InputError{Field: "Config.Spread", Problem: "is not one of Off, Prefer, Require"}
	case c.ForceDelete != "" && !c.ForceDelete.known():
		return &olmcore.InputError{Field: "Config.ForceDelete", Problem: "is not one of Never, NodeGoneOnly, NodeLost, Upstream"}
	}
	return c.validateResources()
}

func (c Config) validateResources() error {
	if c.Resources == nil {
		return nil
	}
	for _, list := range []struct {
		field      string
		quantities corev1.ResourceList
	}{
		{"Requests", c.Resources.Requests},
		{"Limits", c.Resources.Limits},
	} {
		for _, name := range slices.Sorted(maps.Keys(list.quantities)) {
			quantity := list.quantities[name]
			if quantity.Sign() < 0 {
				return &olmcore.InputError{Field: fmt.Sprintf("Config.Resources.%s[%s]", list.field, name), Problem: "is negative"}
			}
		}
	}
	return nil
}

// override is an annotation of a CatalogSource that overrides a field of Config. To add one, add a row to overrides.
type override struct {
	annotation string
	// apply changes the Config. It returns false if the value of the annotation cannot be used.
	apply func(c *Config, value string) bool
}

var overrides = []override{
	{olmcore.KeyPrefix + "replicas", overrideReplicas},
	{olmcore.KeyPrefix + "force-delete-policy", overrideForceDelete},
	{olmcore.KeyPrefix + "resources", overrideResources},
}

func overrideReplicas(c *Config, value string) bool {
	if len(value) != 1 || value[0] < '1' || value[0] > '0'+maxReplicas {
		return false
	}
	c.Replicas = int(value[0] - '0')
	return true
}

func overrideForceDelete(c *Config, value string) bool {
	policy := ForceDeletePolicy(value)
	if !policy.known() {
		return false
	}
	c.ForceDelete = policy
	return true
}

func overrideResources(c *Config, value string) bool {
	if value == "" {
		return true
	}
	var resources corev1.ResourceRequirements
	if json.Unmarshal([]byte(value), &resources) != nil {
		return false
	}
	mergeResources(c.Resources, &resources)
	return true
}

// effective returns the Config with the defaults and the annotations of a CatalogSource applied. badAnnotations are the
// annotations that cannot be used.
func (c Config) effective(cs *v1alpha1.CatalogSource) (effective Config, badAnnotations []string) {
	c.Replicas = cmp.Or(c.Replicas, DefaultReplicas)
	c.Spread = cmp.Or(c.Spread, SpreadPrefer)
	c.ForceDelete = cmp.Or(c.ForceDelete, ForceDeleteNodeLost)
	c.NodeUnreachableGrace = cmp.Or(c.NodeUnreachableGrace, DefaultNodeUnreachableGrace)
	c.NodeNotReadyGrace = cmp.Or(c.NodeNotReadyGrace, DefaultNodeNotReadyGrace)
	c.NodeGoneGrace = cmp.Or(c.NodeGoneGrace, DefaultNodeGoneGrace)
	c.MinPollInterval = min(cmp.Or(c.MinPollInterval, DefaultMinPollInterval), maxPollInterval)
	c.OPMImage = cmp.Or(c.OPMImage, DefaultOPMImage)
	c.UtilImage = cmp.Or(c.UtilImage, DefaultUtilImage)
	c.ConfigMapServerImage = cmp.Or(c.ConfigMapServerImage, DefaultConfigMapServerImage)
	c.WorkloadUserID = cmp.Or(c.WorkloadUserID, DefaultWorkloadUserID)
	c.StartupFailureThreshold = cmp.Or(c.StartupFailureThreshold, DefaultStartupFailureThreshold)
	c.GlobalCatalogNamespace = cmp.Or(c.GlobalCatalogNamespace, "olm")

	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(10, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(50<<20, resource.BinarySI),
	}}
	if c.Resources != nil {
		mergeResources(&resources, c.Resources)
	}
	c.Resources = &resources

	for _, o := range overrides {
		value, found := cs.Annotations[o.annotation]
		if found && !o.apply(&c, value) {
			badAnnotations = append(badAnnotations, o.annotation)
		}
	}
	return c, badAnnotations
}

func mergeResources(into, from *corev1.ResourceRequirements) {
	from = from.DeepCopy()
	maps.Copy(into.Requests, from.Requests)
	if into.Limits == nil && len(from.Limits) > 0 {
		into.Limits = corev1.ResourceList{}
	}
	maps.Copy(into.Limits, from.Limits)
	into.Claims = append(into.Claims, from.Claims...)
}

// startDeadline is how long a Pod may be on its Node, or exist, without becoming ready: twice the time of the startup
// probes, which is at most a day, and at least 10 minutes.
func (c *Config) startDeadline() time.Duration {
	const minimum, maxProbes = 10 * time.Minute, 24 * 60 * 60 / registry.StartupPeriod
	probes := time.Duration(min(c.StartupFailureThreshold, maxProbes))
	return max(minimum, 2*registry.StartupPeriod*time.Second*probes)
}
