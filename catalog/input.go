// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"

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
}

// cover covers every field but Now and Checkpoint.
func (in *Input) cover(c *olmcore.Coverage) {
	olmcore.CoverObject(c, in.CatalogSource)
	olmcore.CoverObject(c, in.Namespace)
	olmcore.CoverObjects(c, in.Pods)
	olmcore.CoverObjects(c, in.Nodes)
	olmcore.CoverObjects(c, in.Services)
	olmcore.CoverObjects(c, in.ServiceAccounts)
	olmcore.CoverObjects(c, in.NetworkPolicies)
	olmcore.CoverObjects(c, in.Roles)
	olmcore.CoverObjects(c, in.RoleBindings)
	olmcore.CoverObjects(c, in.PodDisruptionBudgets)
	olmcore.CoverObject(c, in.ConfigMap)
	olmcore.CoverValue(c, in.ResolvedDigest)
	olmcore.CoverValue(c, in.Jitter)
	var connection Connection
	if in.Connection != nil {
		connection = *in.Connection
	}
	olmcore.CoverValue(c, in.Connection != nil)
	olmcore.CoverValue(c, connection)
	olmcore.CoverValues(c, in.Subscribers)
	olmcore.CoverMap(c, in.LastRun)
	olmcore.CoverValue(c, in.Config)
}

// validate returns the first breach of the contract, nil when there is none.
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
			in.Config.validate(),
		)
	}
	return &olmcore.InputError{Field: field, Problem: problem}
}
