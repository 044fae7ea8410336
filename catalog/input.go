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
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. Lists may be in any order and may hold more than
// is needed; each object at most once, and none is nil. Of an Observed that is not complete nothing is concluded, and no
// object of its kind is made; without Pods, Services and ServiceAccounts nothing can be decided.
type Input struct {
	Now           time.Time               // the instant of this reconcile; required
	CatalogSource *v1alpha1.CatalogSource // the object to reconcile, with its UID; required
	// Namespace is the Namespace of the CatalogSource; nil when it was not found, or not read. Without it no Pod is made,
	// unless spec.grpcPodConfig.securityContextConfig says what its labels would.
	Namespace *corev1.Namespace
	// Pods are those of the namespace that have the label olm.catalogSource or an owner reference to the CatalogSource. Of
	// others only the names matter: a Pod that has lost both keeps its name. Required.
	Pods  olmcore.Observed[*corev1.Pod]
	Nodes olmcore.Observed[*corev1.Node] // all of the cluster: one that is missing here was deleted
	// Services and ServiceAccounts are those of the namespace, at least the ones with the names that the CatalogSource
	// uses. A read through a cache that is filtered by the label olm.managed is not enough. Required.
	Services        olmcore.Observed[*corev1.Service]
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// NetworkPolicies, Roles, RoleBindings and PodDisruptionBudgets are likewise those of the namespace with the names
	// that the CatalogSource uses.
	NetworkPolicies      olmcore.Observed[*networkingv1.NetworkPolicy]
	Roles                olmcore.Observed[*rbacv1.Role]
	RoleBindings         olmcore.Observed[*rbacv1.RoleBinding]
	PodDisruptionBudgets olmcore.Observed[*policyv1.PodDisruptionBudget]
	ConfigMap            *corev1.ConfigMap // the one that spec.configMap names; nil when a completed read did not find it
	// ResolvedDigest is the digest that the image registry gives for spec.image now, such as sha256:1; optional. When it is
	// the one that is served, a poll needs no Pod.
	ResolvedDigest string
	// Jitter delays the polls of this CatalogSource by up to a tenth of their interval, so that many CatalogSources do not
	// poll at once: 0 to below 1.
	Jitter float64
	// Connection is the state of the caller's gRPC client for this CatalogSource; nil when it has none: then what the
	// status says of one counts.
	Connection *Connection
	// Subscribers are the other namespaces with a Subscription to this CatalogSource. They are only passed on, in
	// Outcome.Notify.
	Subscribers []string
	LastRun     olmcore.LastResults // what became of the last actions; optional
	Checkpoint  *olmcore.Checkpoint // Outcome.Checkpoint of an earlier call for this key; nil is always right
	Config      Config              // the same for all CatalogSources; the zero value holds the defaults
}

// Connection is the state of a gRPC client.
type Connection struct {
	Address        string    // what the client dials, host:port
	State          string    // IDLE, CONNECTING, READY, TRANSIENT_FAILURE or SHUTDOWN; any other is an InputError
	LastConnect    time.Time // when this client became READY for the last time; zero: never
	LastTransition time.Time // when State became what it is
	Problem        string    // why there is no connection, for people; optional
}

// cover covers every field but Now and Checkpoint.
func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	olmcore.CoverObject(&c, in.CatalogSource)
	olmcore.CoverObject(&c, in.Namespace)
	olmcore.CoverObjects(&c, in.Pods)
	olmcore.CoverObjects(&c, in.Nodes)
	olmcore.CoverObjects(&c, in.Services)
	olmcore.CoverObjects(&c, in.ServiceAccounts)
	olmcore.CoverObjects(&c, in.NetworkPolicies)
	olmcore.CoverObjects(&c, in.Roles)
	olmcore.CoverObjects(&c, in.RoleBindings)
	olmcore.CoverObjects(&c, in.PodDisruptionBudgets)
	olmcore.CoverObject(&c, in.ConfigMap)
	olmcore.CoverValue(&c, in.ResolvedDigest)
	olmcore.CoverValue(&c, in.Jitter)
	var connection Connection
	if in.Connection != nil {
		connection = *in.Connection
	}
	olmcore.CoverValue(&c, in.Connection != nil)
	olmcore.CoverValue(&c, connection)
	olmcore.CoverValues(&c, in.Subscribers)
	olmcore.CoverMap(&c, in.LastRun)
	olmcore.CoverValue(&c, in.Config)
	return c
}

func (in *Input) validate() error {
	cs := in.CatalogSource
	field, problem := "", ""
	switch {
	case in.Now.IsZero():
		field, problem = "Now", "is zero"
	case cs == nil:
		field, problem = "CatalogSource", "is nil"
	case cs.Name == "":
		field, problem = "CatalogSource.metadata.name", "is empty"
	case cs.Namespace == "":
		field, problem = "CatalogSource.metadata.namespace", "is empty"
	case cs.UID == "":
		field, problem = "CatalogSource.metadata.uid", "is empty"
	case !in.Pods.Complete:
		field, problem = "Pods", "were not read"
	case !in.Services.Complete:
		field, problem = "Services", "were not read"
	case !in.ServiceAccounts.Complete:
		field, problem = "ServiceAccounts", "were not read"
	case !(in.Jitter >= 0 && in.Jitter < 1): // also what is no number
		field, problem = "Jitter", "is not between 0 and 1"
	case in.Namespace != nil && in.Namespace.Name != cs.Namespace:
		field, problem = "Namespace.metadata.name", "is not that of the CatalogSource's namespace"
	case in.Connection != nil && in.Connection.State != stateReady && !slices.Contains(unconnected, in.Connection.State):
		field, problem = "Connection.State", "is not one of IDLE, CONNECTING, READY, TRANSIENT_FAILURE, SHUTDOWN"
	default:
		return cmp.Or(
			olmcore.ValidateList("Pods", in.Pods), olmcore.ValidateList("Nodes", in.Nodes),
			olmcore.ValidateList("Services", in.Services), olmcore.ValidateList("ServiceAccounts", in.ServiceAccounts),
			olmcore.ValidateList("NetworkPolicies", in.NetworkPolicies), olmcore.ValidateList("Roles", in.Roles),
			olmcore.ValidateList("RoleBindings", in.RoleBindings), olmcore.ValidateList("PodDisruptionBudgets", in.PodDisruptionBudgets),
			in.Config.Validate(),
		)
	}
	return &olmcore.InputError{Field: field, Problem: problem}
}

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

	// NoWorkloadUser is the Config.WorkloadUserID that leaves the choice of the user to the image or the platform.
	NoWorkloadUser = -1

	maxReplicas = 5
)

// Config holds what is the same for all CatalogSources of a controller. Zero means the Default constant, a negative
// value is an InputError.
type Config struct {
	// Replicas is the number of registry Pods, 1 to 5. The annotation olmcore/replicas of a CatalogSource overrides it.
	Replicas int `json:"replicas,omitempty"`
	// Spread says how several replicas are spread over hosts; empty: SpreadPrefer.
	Spread Spread `json:"spread,omitempty"`
	// Resources are merged over the requests of OLM (cpu 10m, memory 50Mi). The annotation olmcore/resources, a JSON
	// ResourceRequirements, is merged over them in turn. They are part of the Pod hash: a change rolls the Pods. What it
	// points to must not be changed.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeUnreachableGrace, NodeNotReadyGrace and NodeGoneGrace are how long a node may be silent, not ready, or missing
	// before its Pods count as lost. A ready Pod of a missing node counts as lost olmcore.ClockTolerance later: the cache may be stale.
	NodeUnreachableGrace time.Duration `json:"nodeUnreachableGrace,omitempty"`
	NodeNotReadyGrace    time.Duration `json:"nodeNotReadyGrace,omitempty"`
	NodeGoneGrace        time.Duration `json:"nodeGoneGrace,omitempty"`
	// ForceDelete says which lost Pods are removed without their kubelet's consent; empty: ForceDeleteNodeLost. The
	// annotation olmcore/force-delete-policy of a CatalogSource overrides it.
	ForceDelete ForceDeletePolicy `json:"forceDelete,omitempty"`
	// IgnoreNodes makes Gather leave Nodes alone, for controllers that may not read them.
	IgnoreNodes bool `json:"ignoreNodes,omitempty"`

	// MinPollInterval is the least time between two polls of an image, whatever spec.updateStrategy asks for.
	MinPollInterval time.Duration `json:"minPollInterval,omitempty"`

	// OPMImage and UtilImage serve catalogs with grpcPodConfig.extractContent, ConfigMapServerImage those of the source
	// types configmap and internal.
	OPMImage             string `json:"opmImage,omitempty"`
	UtilImage            string `json:"utilImage,omitempty"`
	ConfigMapServerImage string `json:"configMapServerImage,omitempty"`
	// WorkloadUserID is the user that restricted Pods run as. NoWorkloadUser leaves the choice to the image or the
	// platform.
	WorkloadUserID int64 `json:"workloadUserID,omitempty"`
	// StartupFailureThreshold is how many startup probes, one each 10 s, may fail before the registry is restarted: large
	// catalogs need time to load. It is part of the Pod hash. A Pod that is not ready is given up after 10 minutes, or
	// twice the time that the probes leave.
	StartupFailureThreshold int32 `json:"startupFailureThreshold,omitempty"`
	// GlobalCatalogNamespace is the namespace whose CatalogSources serve all namespaces; empty: "olm". Package controllers
	// sets it from Options.GlobalNamespace, so that the two cannot differ in a configuration file.
	GlobalCatalogNamespace string `json:"-"`
}

// Spread says how replicas are spread over hosts.
type Spread string

// Spreads. Zones are always preferred only.
const (
	SpreadOff     Spread = "Off"
	SpreadPrefer  Spread = "Prefer"
	SpreadRequire Spread = "Require"
)

// hosts is what the scheduler does about each Spread.
var hosts = map[Spread]corev1.UnsatisfiableConstraintAction{
	SpreadOff: "", SpreadPrefer: corev1.ScheduleAnyway, SpreadRequire: corev1.DoNotSchedule,
}

// ForceDeletePolicy says which Pods are deleted with a grace period of 0. Pods that have finished always are.
type ForceDeletePolicy string

// Force delete policies. A force delete is only hygiene: no replacement waits for it.
const (
	ForceDeleteNever    ForceDeletePolicy = "Never"        // none
	ForceDeleteNodeGone ForceDeletePolicy = "NodeGoneOnly" // Pods of nodes that are deleted or out of service
	// ForceDeleteNodeLost: also Pods that are past their deletion time on a node that is unreachable or not ready, and
	// stuck ones unless their node is known to be healthy.
	ForceDeleteNodeLost ForceDeletePolicy = "NodeLost"
	ForceDeleteUpstream ForceDeletePolicy = "Upstream" // also each Pod with the condition DisruptionTarget, as OLM does it
)

func (p ForceDeletePolicy) known() bool {
	return p == ForceDeleteNever || p == ForceDeleteNodeGone || p == ForceDeleteNodeLost || p == ForceDeleteUpstream
}

// Validate returns an *olmcore.InputError for the first field that breaks its contract, nil for none. Field begins with
// "Config.".
func (c Config) Validate() error {
	for _, number := range []struct {
		field string
		value int64
	}{
		{"NodeUnreachableGrace", int64(c.NodeUnreachableGrace)}, {"NodeNotReadyGrace", int64(c.NodeNotReadyGrace)},
		{"NodeGoneGrace", int64(c.NodeGoneGrace)}, {"MinPollInterval", int64(c.MinPollInterval)},
		{"StartupFailureThreshold", int64(c.StartupFailureThreshold)},
	} {
		if number.value < 0 {
			return &olmcore.InputError{Field: "Config." + number.field, Problem: "is negative"}
		}
	}
	_, known := hosts[c.Spread]
	switch {
	case c.WorkloadUserID < NoWorkloadUser:
		return &olmcore.InputError{Field: "Config.WorkloadUserID", Problem: "is negative, and not the -1 of NoWorkloadUser"}
	case c.Replicas < 0 || c.Replicas > maxReplicas:
		return &olmcore.InputError{Field: "Config.Replicas", Problem: "is not between 1 and 5"}
	case c.Spread != "" && !known:
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
		field  string
		values corev1.ResourceList
	}{{"Requests", c.Resources.Requests}, {"Limits", c.Resources.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			quantity := list.values[name]
			if quantity.Sign() < 0 {
				return &olmcore.InputError{Field: fmt.Sprintf("Config.Resources.%s[%s]", list.field, name), Problem: "is negative"}
			}
		}
	}
	return nil
}

// Annotations of a CatalogSource that override Config.
const (
	keyReplicas    = olmcore.KeyPrefix + "replicas"
	keyForceDelete = olmcore.KeyPrefix + "force-delete-policy"
	keyResources   = olmcore.KeyPrefix + "resources"
)

// applied returns the Config with its defaults and a CatalogSource's annotations applied, and those of the annotations
// that cannot be used.
func (c Config) applied(cs *v1alpha1.CatalogSource) (applied Config, unusable []string) {
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
		corev1.ResourceCPU: *resource.NewMilliQuantity(10, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(50<<20, resource.BinarySI),
	}}
	if c.Resources != nil {
		mergeResources(&resources, c.Resources)
	}
	c.Resources = &resources

	if text, ok := cs.Annotations[keyReplicas]; ok {
		if len(text) == 1 && text[0] >= '1' && text[0] <= '0'+maxReplicas {
			c.Replicas = int(text[0] - '0')
		} else {
			unusable = append(unusable, keyReplicas)
		}
	}
	if text, ok := cs.Annotations[keyForceDelete]; ok {
		if policy := ForceDeletePolicy(text); policy.known() {
			c.ForceDelete = policy
		} else {
			unusable = append(unusable, keyForceDelete)
		}
	}
	if text := cs.Annotations[keyResources]; text != "" {
		var own corev1.ResourceRequirements
		if json.Unmarshal([]byte(text), &own) == nil {
			mergeResources(&resources, &own)
		} else {
			unusable = append(unusable, keyResources)
		}
	}
	return c, unusable
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

// deadline is how long a Pod may be on its node, or since its creation, without becoming ready. It leaves room for twice
// the startup probes, those of a day at most.
func (c *Config) deadline() time.Duration {
	const least, mostProbes = 10 * time.Minute, 24 * 60 * 60 / registry.StartupPeriod
	return max(least, 2*registry.StartupPeriod*time.Second*time.Duration(min(c.StartupFailureThreshold, mostProbes)))
}
