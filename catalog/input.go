// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. Lists
// may be in any order and may hold more than is needed; each object at most
// once, and none is nil. A nil or missing object is one that a completed read did not
// find; of an Observed that is not complete nothing is concluded, and no object of
// its kind is made.
type Input struct {
	// Now is the instant of this reconcile; required.
	Now time.Time
	// CatalogSource is the object to reconcile, with its UID; required.
	CatalogSource *v1alpha1.CatalogSource
	// Namespace is the Namespace of the CatalogSource. Without it no Pod is made, unless
	// spec.grpcPodConfig.securityContextConfig says what its labels would.
	Namespace *corev1.Namespace
	// Pods are those of the namespace that have the label olm.catalogSource or an
	// owner reference to the CatalogSource. Of others only the names matter: a Pod that
	// has lost both keeps its name.
	Pods []*corev1.Pod
	// Nodes are all Nodes of the cluster: one that is missing here was deleted.
	Nodes olmcore.Observed[*corev1.Node]
	// Services, ServiceAccounts and NetworkPolicies are those of the namespace, at
	// least the ones with the names that the CatalogSource uses. A read through a
	// cache that is filtered by the label olm.managed is not enough.
	Services        []*corev1.Service
	ServiceAccounts []*corev1.ServiceAccount
	NetworkPolicies olmcore.Observed[*networkingv1.NetworkPolicy]
	// ResolvedDigest is the digest that the image registry gives for spec.image now,
	// such as sha256:1; optional. When it is the one that is served, a poll needs no
	// Pod.
	ResolvedDigest string
	// Jitter delays the polls of this CatalogSource by up to a tenth of their
	// interval, so that many CatalogSources do not poll at once: 0 to below 1.
	Jitter float64
	// Roles, RoleBindings and PodDisruptionBudgets are likewise those of the
	// namespace with the names that the CatalogSource uses.
	Roles                olmcore.Observed[*rbacv1.Role]
	RoleBindings         olmcore.Observed[*rbacv1.RoleBinding]
	PodDisruptionBudgets olmcore.Observed[*policyv1.PodDisruptionBudget]
	// ConfigMap is the one that spec.configMap names; nil when it does not exist.
	ConfigMap *corev1.ConfigMap
	// Connection is the state of the caller's gRPC client for this CatalogSource;
	// nil when it has none: then what the status tells of one counts.
	Connection *Connection
	// Subscribers are the other namespaces with a Subscription to this
	// CatalogSource. They are only passed on, in Outcome.Notify.
	Subscribers []string
	// PodHash is the value that Outcome.PodHash had last time, for the same Config;
	// empty is always right, and slower.
	PodHash string
	// LastRun is what became of the last actions; optional.
	LastRun olmcore.LastResults
	// Config is the same for all CatalogSources; the zero value holds the defaults.
	Config Config
}

// Connection is the state of a gRPC client.
type Connection struct {
	// Address is what the client dials, host:port.
	Address string
	// State is the connectivity state: IDLE, CONNECTING, READY, TRANSIENT_FAILURE
	// or SHUTDOWN; any other is an InputError.
	State string
	// LastConnect is when this client became READY for the last time; zero: never.
	LastConnect time.Time
	// LastTransition is when State became what it is.
	LastTransition time.Time
}

// Defaults of Config.
const (
	DefaultReplicas              = 1
	DefaultNodeUnreachableGrace  = 30 * time.Second
	DefaultNodeNotReadyGrace     = 60 * time.Second
	DefaultNodeGoneGrace         = 40 * time.Second
	DefaultNodeRecoveryWindow    = 120 * time.Second
	DefaultStuckTerminatingGrace = 120 * time.Second
	DefaultFailoverCooldown      = 60 * time.Second
	DefaultProgressDeadline      = 10 * time.Minute
	DefaultCandidateDeadline     = 10 * time.Minute
	DefaultBackoffBase           = 10 * time.Second
	DefaultBackoffMax            = 5 * time.Minute
	DefaultBackoffReset          = 10 * time.Minute
	DefaultConnectionGrace       = 60 * time.Second
	DefaultMinPollInterval       = 30 * time.Second
	DefaultWorkloadUserID        = 1001

	DefaultStartupFailureThreshold = 15
	DefaultConfigMapServerImage    = "quay.io/operator-framework/configmap-operator-registry:latest"
	DefaultOPMImage                = "quay.io/operator-framework/opm:latest"
	DefaultUtilImage               = "quay.io/operator-framework/olm:latest"
)

const maxReplicas = 5

// Config holds what is the same for all CatalogSources of a controller. Zero
// means the Default constant, a negative value is an InputError.
type Config struct {
	// Replicas is the number of registry Pods, 1 to 5. The annotation
	// olmcore/replicas of a CatalogSource overrides it.
	Replicas int
	// Spread says how several replicas are spread over hosts; empty: SpreadPrefer.
	Spread Spread
	// Resources are merged over the requests of OLM (cpu 10m, memory 50Mi). The
	// annotation olmcore/resources, a JSON ResourceRequirements, is merged over
	// them in turn. They are part of the Pod hash: a change rolls the Pods.
	Resources *corev1.ResourceRequirements

	// NodeUnreachableGrace, NodeNotReadyGrace and NodeGoneGrace are how long a node
	// may be silent, not ready, or missing before its Pods count as lost.
	NodeUnreachableGrace, NodeNotReadyGrace, NodeGoneGrace time.Duration
	// NodeRecoveryWindow is how long a node that came back is not trusted over a
	// replacement.
	NodeRecoveryWindow time.Duration
	// StuckTerminatingGrace is how long a Pod may outlive its deletion time.
	StuckTerminatingGrace time.Duration
	// ForceDelete says which lost Pods are removed without their kubelet's consent;
	// empty: ForceDeleteNodeLost. The annotation olmcore/force-delete-policy of a
	// CatalogSource overrides it.
	ForceDelete ForceDeletePolicy
	// FailoverCooldown is the least distance between two replacements because of
	// nodes.
	FailoverCooldown time.Duration
	// ProgressDeadline is how long a Pod may be on its node without becoming
	// ready; CandidateDeadline is the same for a Pod that shall replace a serving
	// one, from its creation. Zero leaves room for twice the StartupFailureThreshold.
	ProgressDeadline, CandidateDeadline time.Duration
	// BackoffBase doubles with each failed attempt up to BackoffMax; a Pod that ran
	// for BackoffReset starts over.
	BackoffBase, BackoffMax, BackoffReset time.Duration
	// ConnectionGrace is how long a client may be without a connection to ready
	// Pods before that is reported.
	ConnectionGrace time.Duration

	// MinPollInterval is the least time between two polls of an image, whatever
	// spec.updateStrategy asks for.
	MinPollInterval time.Duration
	// StrictUpstreamPolling polls as OLM does: also images with a digest; without a
	// deadline for the Pods that poll; they stay when polling is switched off, and go
	// when any content is not known, even while nothing serves.
	StrictUpstreamPolling bool

	// OPMImage and UtilImage serve catalogs with grpcPodConfig.extractContent,
	// ConfigMapServerImage those of the source types configmap and internal.
	OPMImage, UtilImage, ConfigMapServerImage string
	// StartupFailureThreshold is how many startup probes, one each 10 s, may fail
	// before the registry is restarted: large catalogs need time to load. It is part
	// of the Pod hash of ProfileMain.
	StartupFailureThreshold int32
	// WorkloadUserID is the user that restricted Pods run as. NoWorkloadUser leaves
	// the choice to the image or the platform.
	WorkloadUserID int64
	NoWorkloadUser bool
	// AcceptProfiles are the hash profiles whose Pods count as current, besides
	// ProfileMain; nil: all. So adopting a running cluster restarts nothing.
	AcceptProfiles []Profile
	// NoPodDisruptionBudget leaves several replicas without a PodDisruptionBudget.
	NoPodDisruptionBudget bool
	// DisruptiveFallback lets a new Pod that no node takes push out an old one after
	// CandidateDeadline, though that serves.
	DisruptiveFallback bool
	// PinDigest makes the Pods that stand in for others run the very content that is
	// served, by digest, whatever the image's tag points to by then.
	PinDigest bool
	// AdoptUserConfigMap labels and owns the ConfigMap of the user, as OLM does: it is
	// garbage collected with the CatalogSource, stays owned when another one is named,
	// and each edit of it, also of its labels, replaces the Pods.
	AdoptUserConfigMap bool
	// MountSharedAccounts gives the Pods of a catalog whose name is that of another's
	// ServiceAccount the token of that, as OLM does.
	MountSharedAccounts bool
	// KeepLeftovers leaves alone what a former source type needed.
	KeepLeftovers bool
	// IgnoreNodes makes Gather leave Nodes alone, for controllers that may not read
	// them.
	IgnoreNodes bool
	// GlobalCatalogNamespace is the namespace whose CatalogSources serve all
	// namespaces; empty: "olm".
	GlobalCatalogNamespace string
	// KeyPrefix starts the annotations that this package reads and writes; empty:
	// olmcore.KeyPrefix.
	KeyPrefix string
}

// Spread says how replicas are spread over hosts.
type Spread string

// Spreads. Zones are always preferred only.
const (
	SpreadOff     Spread = "Off"
	SpreadPrefer  Spread = "Prefer"
	SpreadRequire Spread = "Require"
)

// ForceDeletePolicy says which Pods are deleted with a grace period of 0.
// Pods that have finished always are.
type ForceDeletePolicy string

// Force delete policies. A force delete is only hygiene: no replacement waits
// for it.
const (
	// ForceDeleteNever: none.
	ForceDeleteNever ForceDeletePolicy = "Never"
	// ForceDeleteNodeGone: Pods of nodes that are deleted or out of service.
	ForceDeleteNodeGone ForceDeletePolicy = "NodeGoneOnly"
	// ForceDeleteNodeLost: also Pods that are past their deletion time on a node
	// that is unreachable or not ready, and stuck ones unless their node is known
	// to be healthy.
	ForceDeleteNodeLost ForceDeletePolicy = "NodeLost"
	// ForceDeleteUpstream: also each Pod with the condition DisruptionTarget, as OLM
	// does it.
	ForceDeleteUpstream ForceDeletePolicy = "Upstream"
)

// validate returns the first breach of the contract, nil when there is none.
func (in *Input) validate() error {
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.CatalogSource == nil:
		return &olmcore.InputError{Field: "CatalogSource", Problem: "is nil"}
	case in.CatalogSource.Name == "":
		return &olmcore.InputError{Field: "CatalogSource.metadata.name", Problem: "is empty"}
	case in.CatalogSource.Namespace == "":
		return &olmcore.InputError{Field: "CatalogSource.metadata.namespace", Problem: "is empty"}
	case in.CatalogSource.UID == "":
		return &olmcore.InputError{Field: "CatalogSource.metadata.uid", Problem: "is empty"}
	case !(in.Jitter >= 0 && in.Jitter < 1): // also what is no number
		return &olmcore.InputError{Field: "Jitter", Problem: "is not between 0 and 1"}
	case in.Namespace != nil && in.Namespace.Name != in.CatalogSource.Namespace:
		return &olmcore.InputError{Field: "Namespace.metadata.name", Problem: "is not that of the CatalogSource's namespace"}
	case in.Connection != nil && !isConnectionState(in.Connection.State):
		return &olmcore.InputError{Field: "Connection.State", Problem: "is not one of IDLE, CONNECTING, READY, TRANSIENT_FAILURE, SHUTDOWN"}
	}
	if err := in.validateLists(); err != nil {
		return err
	}
	return in.Config.validate()
}

func (in *Input) validateLists() error {
	return cmp.Or(
		validateList("Pods", true, in.Pods), validateList("Nodes", in.Nodes.Complete, in.Nodes.Items),
		validateList("Services", true, in.Services), validateList("ServiceAccounts", true, in.ServiceAccounts),
		validateList("NetworkPolicies", in.NetworkPolicies.Complete, in.NetworkPolicies.Items),
		validateList("Roles", in.Roles.Complete, in.Roles.Items), validateList("RoleBindings", in.RoleBindings.Complete, in.RoleBindings.Items),
		validateList("PodDisruptionBudgets", in.PodDisruptionBudgets.Complete, in.PodDisruptionBudgets.Items),
	)
}

// validateList refuses a nil entry, an object that is there twice, and entries of a
// read that was not completed.
func validateList[T any, O interface {
	*T
	olmcore.Object
}](field string, complete bool, list []O) error {
	if !complete && len(list) > 0 {
		return &olmcore.InputError{Field: field, Problem: "has items of a read that was not completed"}
	}
	if i := slices.Index(list, nil); i >= 0 {
		return &olmcore.InputError{Field: field, Problem: "holds nil"}
	}
	byName := func(a, b O) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	}
	if !slices.IsSortedFunc(list, byName) { // as lists that were read are
		list = slices.SortedFunc(slices.Values(list), byName)
	}
	for i := 1; i < len(list); i++ {
		if byName(list[i-1], list[i]) == 0 {
			return &olmcore.InputError{Field: field, Problem: "holds " + list[i].GetNamespace() + "/" + list[i].GetName() + " twice"}
		}
	}
	return nil
}

func (c *Config) validate() error {
	for _, d := range [...]struct {
		field string
		value time.Duration
	}{
		{"NodeUnreachableGrace", c.NodeUnreachableGrace}, {"NodeNotReadyGrace", c.NodeNotReadyGrace},
		{"NodeGoneGrace", c.NodeGoneGrace}, {"NodeRecoveryWindow", c.NodeRecoveryWindow},
		{"StuckTerminatingGrace", c.StuckTerminatingGrace}, {"FailoverCooldown", c.FailoverCooldown},
		{"ProgressDeadline", c.ProgressDeadline}, {"CandidateDeadline", c.CandidateDeadline},
		{"BackoffBase", c.BackoffBase}, {"BackoffMax", c.BackoffMax}, {"BackoffReset", c.BackoffReset},
		{"ConnectionGrace", c.ConnectionGrace}, {"MinPollInterval", c.MinPollInterval}, {"WorkloadUserID", time.Duration(c.WorkloadUserID)}, {"StartupFailureThreshold", time.Duration(c.StartupFailureThreshold)},
	} {
		if d.value < 0 {
			return &olmcore.InputError{Field: "Config." + d.field, Problem: "is negative"}
		}
	}
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		return &olmcore.InputError{Field: "Config.Replicas", Problem: "is not between 1 and 5"}
	}
	if c.Spread != "" && !c.Spread.known() {
		return &olmcore.InputError{Field: "Config.Spread", Problem: "is not one of Off, Prefer, Require"}
	}
	if c.ForceDelete != "" && !c.ForceDelete.known() {
		return &olmcore.InputError{Field: "Config.ForceDelete", Problem: "is not one of Never, NodeGoneOnly, NodeLost, Upstream"}
	}
	for _, p := range c.AcceptProfiles {
		if p.index() < 0 {
			return &olmcore.InputError{Field: "Config.AcceptProfiles", Problem: "holds an unknown profile"}
		}
	}
	return nil
}

func (s Spread) known() bool { return s == SpreadOff || s == SpreadPrefer || s == SpreadRequire }

func (p ForceDeletePolicy) known() bool {
	return p == ForceDeleteNever || p == ForceDeleteNodeGone || p == ForceDeleteNodeLost || p == ForceDeleteUpstream
}
