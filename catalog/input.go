// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains everything that Reconcile reads. Reconcile does not change the Input. Lists may be in any order and
// may contain more objects than needed. No list contains an object twice, or nil. If an optional list was not read,
// Reconcile draws no conclusions from it and creates no objects of its kind.
type Input struct {
	// Now is the time of this reconcile. Required.
	Now time.Time
	// CatalogSource is the object to reconcile, with its UID. Required.
	CatalogSource *v1alpha1.CatalogSource
	// Namespace is the Namespace of the CatalogSource, or nil if it was not found or not read. Its labels determine the
	// security context of the Pods. Without the Namespace, no Pod is created unless
	// spec.grpcPodConfig.securityContextConfig is set.
	Namespace *corev1.Namespace
	// Pods contains the Pods of the namespace that have the label olm.catalogSource or an owner reference to the
	// CatalogSource. The list should also contain other Pods with names that new registry Pods may get, because such names
	// are occupied. Required.
	Pods olmcore.Observed[*corev1.Pod]
	// Nodes contains all Nodes of the cluster. A Node that is missing from a complete list was deleted.
	Nodes olmcore.Observed[*corev1.Node]
	// Services and ServiceAccounts contain at least the objects with the names that the CatalogSource uses. A cache
	// that is filtered by the label olm.managed is not enough. Required.
	Services        olmcore.Observed[*corev1.Service]
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// NetworkPolicies, Roles, RoleBindings and PodDisruptionBudgets contain at least the objects with the names that
	// the CatalogSource uses.
	NetworkPolicies      olmcore.Observed[*networkingv1.NetworkPolicy]
	Roles                olmcore.Observed[*rbacv1.Role]
	RoleBindings         olmcore.Observed[*rbacv1.RoleBinding]
	PodDisruptionBudgets olmcore.Observed[*policyv1.PodDisruptionBudget]
	// ConfigMap is the ConfigMap that spec.configMap names, or nil if a completed read did not find it.
	ConfigMap *corev1.ConfigMap
	// ResolvedDigest is the digest that the image registry returns for spec.image now, for example sha256:1. If the
	// catalog already serves this digest, a poll needs no Pod. Optional.
	ResolvedDigest string
	// Jitter delays the polls of this CatalogSource by up to a tenth of their interval, so that the polls of many
	// CatalogSources are spread. Jitter is at least 0 and less than 1.
	Jitter float64
	// Connection is the state of the caller's gRPC client for this CatalogSource. If the caller has no client,
	// Connection is nil and Reconcile uses status.connectionState of the CatalogSource.
	Connection *Connection
	// Subscribers contains the other namespaces with a Subscription to this CatalogSource. Outcome.Notify contains them if
	// the CatalogSource serves all namespaces.
	Subscribers []string
	// LastRun contains the results of the last actions. Optional.
	LastRun olmcore.LastResults
	// Checkpoint is Outcome.Checkpoint of an earlier call for this CatalogSource. nil is always correct.
	Checkpoint *olmcore.Checkpoint
	// Config is the same for all CatalogSources of a controller. The zero value selects the defaults.
	Config Config
}

// Connection is the state of a gRPC client.
type Connection struct {
	// Address is the address that the client connects to, as host:port.
	Address string
	// State is IDLE, CONNECTING, READY, TRANSIENT_FAILURE or SHUTDOWN.
	State string
	// LastConnect is the time at which the client last became READY, or zero if it never did.
	LastConnect time.Time
	// LastTransition is the time at which State last changed.
	LastTransition time.Time
	// Problem explains why there is no connection. Optional.
	Problem string
}

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "Pods", &in.Pods, inputs.Required)
	inputs.VisitList(v, "Nodes", &in.Nodes, inputs.Optional)
	inputs.VisitList(v, "Services", &in.Services, inputs.Required)
	inputs.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, inputs.Required)
	inputs.VisitList(v, "NetworkPolicies", &in.NetworkPolicies, inputs.Optional)
	inputs.VisitList(v, "Roles", &in.Roles, inputs.Optional)
	inputs.VisitList(v, "RoleBindings", &in.RoleBindings, inputs.Optional)
	inputs.VisitList(v, "PodDisruptionBudgets", &in.PodDisruptionBudgets, inputs.Optional)
}

// cover covers every field except Now and Checkpoint.
func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverObject(&c, in.CatalogSource)
	checkpoint.CoverObject(&c, in.Namespace)
	checkpoint.CoverObject(&c, in.ConfigMap)
	checkpoint.CoverValue(&c, in.ResolvedDigest)
	checkpoint.CoverValue(&c, in.Jitter)
	connection := Connection{}
	if in.Connection != nil {
		connection = *in.Connection
	}
	checkpoint.CoverValue(&c, in.Connection != nil)
	checkpoint.CoverValue(&c, connection)
	checkpoint.CoverValues(&c, in.Subscribers)
	checkpoint.CoverMap(&c, in.LastRun)
	checkpoint.CoverValue(&c, in.Config)
	return c
}

func (in *Input) validate() error {
	if err := in.validateCatalogSource(); err != nil {
		return err
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	if lists.Err() != nil {
		return lists.Err()
	}
	isBetween0And1 := in.Jitter >= 0 && in.Jitter < 1 // false for NaN
	switch {
	case !isBetween0And1:
		return &olmcore.InputError{Field: "Jitter", Problem: "is not between 0 and 1"}
	case in.Namespace != nil && in.Namespace.Name != in.CatalogSource.Namespace:
		return &olmcore.InputError{Field: "Namespace.metadata.name", Problem: "is not that of the CatalogSource's namespace"}
	case in.Connection != nil && in.Connection.State != stateReady && !slices.Contains(disconnectedStates, in.Connection.State):
		return &olmcore.InputError{Field: "Connection.State", Problem: "is not one of IDLE, CONNECTING, READY, TRANSIENT_FAILURE, SHUTDOWN"}
	}
	return in.Config.Validate()
}

func (in *Input) validateCatalogSource() error {
	cs := in.CatalogSource
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case cs == nil:
		return &olmcore.InputError{Field: "CatalogSource", Problem: "is nil"}
	case cs.Name == "":
		return &olmcore.InputError{Field: "CatalogSource.metadata.name", Problem: "is empty"}
	case cs.Namespace == "":
		return &olmcore.InputError{Field: "CatalogSource.metadata.namespace", Problem: "is empty"}
	case cs.UID == "":
		return &olmcore.InputError{Field: "CatalogSource.metadata.uid", Problem: "is empty"}
	}
	return nil
}
