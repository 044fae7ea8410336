// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it.
// Gather fills all but Now, KubernetesVersion, ServedAPIs, LastRun, Judged and
// Checkpoint.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object to reconcile, with name, namespace and
	// UID. Required.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	Config                Config
	// LastRun is the adapter's memory of its last Run; optional. Without it a
	// write that the API server refuses is repeated instead of reported.
	LastRun olmcore.LastResults

	// OperatorGroups are those of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// OtherGroups are the OperatorGroups of other namespaces whose annotation lists
	// an API that the CSV provides. More of them do no harm.
	OtherGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Rivals are the CSVs, copies left out, in the namespaces of OtherGroups that
	// provide one of the same APIs. More of them do no harm.
	Rivals olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Neighbours are the other CSVs of the namespace, copies left out, that the
	// decision can depend on: connected by spec.replaces, providing one of the
	// same APIs, owning a Deployment of the same name, or named by the
	// installed-alongside annotations of the CRDs. More of them do no harm.
	Neighbours olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Subscriptions are those of the namespace whose status.installedCSV or
	// status.currentCSV is this CSV. More of them do no harm. What the Deployments
	// should be depends on their spec.config, so that nothing is installed or judged
	// healthy where they were not read.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// OperatorConditions are those of the namespace named like spec.replaces: one at
	// most. More of them do no harm.
	OperatorConditions olmcore.Observed[*operatorsv2.OperatorCondition]
	// CustomResourceDefinitions are those that the CSV owns or requires.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices are those named <version>.<group> that the CSV requires.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// KubernetesVersion is the server's gitVersion, e.g. "v1.36.2"; empty when
	// unknown, which satisfies no spec.minKubeVersion.
	KubernetesVersion string
	// ServedAPIs are kinds that API discovery lists; at least those in
	// spec.nativeAPIs and the required APIServices. Not complete: kinds that this
	// library itself needs (Deployment, Secret, ClusterRole, ...) count as served,
	// and a required APIService is judged by its Available condition alone.
	ServedAPIs olmcore.Observed[schema.GroupVersionKind]
	// ServiceAccounts are those of the namespace that the permissions name.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// Roles and RoleBindings are those of the namespace, ClusterRoles and
	// ClusterRoleBindings those of the cluster; what binds none of the
	// ServiceAccounts, and the roles that nothing of it references, may be left
	// out, unless they have the names that InstallPlans give: Outcome.Repair would
	// take them for missing. The cost of a call is linear in them.
	Roles               olmcore.Observed[*rbacv1.Role]
	RoleBindings        olmcore.Observed[*rbacv1.RoleBinding]
	ClusterRoles        olmcore.Observed[*rbacv1.ClusterRole]
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// Deployments are those of the namespace that carry the CSV's owner labels or
	// have the name of a Deployment of its install strategy.
	Deployments olmcore.Observed[*appsv1.Deployment]

	// Grants are what decides about the rights of the account that installs, with
	// UID and resourceVersion: the Roles, RoleBindings and ServiceAccounts of the
	// namespace, the ClusterRoles that these bind, and the ClusterRoleBindings of the
	// account that the OperatorGroup prescribes, with their roles. They are looked at
	// while the CSV is InstallReady, or Failed with reason
	// InstallComponentFailedNoRetry.
	Grants olmcore.Observed[olmcore.Ref]
	// Judged is Outcome.Judged of the last call for this CSV; optional. Without it a
	// CSV that failed for want of permissions is tried again with growing pauses
	// alone.
	Judged *Judged
	// Checkpoint is what CheckpointOf returned for an earlier converged Input of
	// this CSV; optional.
	Checkpoint *Checkpoint

	// Deletion is what the cleanup looks at besides: read only while the CSV is being
	// deleted.
	Deletion cleanup.Deletion
}

// Config tunes the decisions. The zero value behaves as OLM does, apart from
// its defects (docs/deviations.md). Negative durations and counts are an
// *olmcore.InputError.
type Config struct {
	// InstallTimeout is how long a CSV may be Installing before it is Failed.
	// 0: DefaultInstallTimeout.
	InstallTimeout time.Duration
	// ReplacementGrace is how long a CSV stays Replacing without a successor
	// before it goes back to Pending. 0: DefaultReplacementGrace.
	ReplacementGrace time.Duration
	// HalfMadeGrace is how long a Pending CSV that never ran may lack requirements
	// while its successor has all and waits for it; then it gives way. 0:
	// DefaultHalfMadeGrace.
	HalfMadeGrace time.Duration
	// UnmetGrace is how long a Succeeded CSV may have unmet requirements before it
	// is Failed. 0: none, as in OLM. 10 s keeps an operator from being reinstalled
	// while a CRD is applied anew.
	UnmetGrace time.Duration
	// ExcludedAnnotations are keys of CSV annotations that are not copied to Pod
	// templates. Nil: all are copied, as in OLM, so that editing any of them rolls
	// the operator.
	ExcludedAnnotations []string
	// ProxyEnv are the cluster's proxy variables, given to each container unless
	// the Subscription sets one of HTTP_PROXY, HTTPS_PROXY and NO_PROXY itself.
	ProxyEnv []corev1.EnvVar
	// AdoptForeignDeployments overwrites Deployments that nobody owns instead of
	// refusing to install.
	AdoptForeignDeployments bool
	// CorrectDrift compares the live spec of each Deployment with the wanted one too,
	// and writes it again when somebody changed a field that the CSV sets. It costs
	// time and memory on each call without a Checkpoint. Off as in OLM: the hash
	// label speaks for the spec.
	CorrectDrift bool
	// GateReplacing keeps a CSV Succeeded until the version that replaces it can be
	// installed, instead of making it Replacing as soon as that one exists.
	GateReplacing bool
	// RepairPermissions creates the ServiceAccounts, Roles and bindings that an
	// InstallPlan would have created for the CSV and that are missing. Without it
	// they stand in Outcome.Repair. What it grants stands in the spec of the CSV:
	// set it only where CSVs are written by none but InstallPlans and administrators.
	RepairPermissions bool
	// KeyPrefix starts our own annotation keys. Empty: olmcore.KeyPrefix.
	KeyPrefix string
	Cleanup   cleanup.Config
}

// Defaults of Config.
const (
	DefaultInstallTimeout   = 5 * time.Minute
	DefaultReplacementGrace = 30 * time.Second
	DefaultHalfMadeGrace    = 5 * time.Minute
)

// ofCleanup is what package cleanup looks at.
func (in *Input) ofCleanup() cleanup.Input {
	return cleanup.Input{
		Now: in.Now, ClusterServiceVersion: in.ClusterServiceVersion, Config: in.Config.Cleanup, KeyPrefix: in.Config.KeyPrefix, LastRun: in.LastRun,
		OperatorGroups: in.OperatorGroups, Neighbours: in.Neighbours, Subscriptions: in.Subscriptions,
		CustomResourceDefinitions: in.CustomResourceDefinitions, Deployments: in.Deployments, Deletion: in.Deletion,
	}
}

func orDefault[T time.Duration | int](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

func (in *Input) validate() error {
	c := in.ClusterServiceVersion
	switch {
	case c == nil:
		return &olmcore.InputError{Field: "ClusterServiceVersion", Problem: "is nil"}
	case c.Name == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.name", Problem: "is empty"}
	case c.Namespace == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.namespace", Problem: "is empty"}
	case c.UID == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.uid", Problem: "is empty, so nothing could refer to its owner"}
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	if err := in.Config.validate(); err != nil {
		return err
	}
	return in.validateLists()
}

func (in *Input) validateLists() error {
	for _, err := range [...]error{
		sound("OperatorGroups", in.OperatorGroups.Items),
		sound("OtherGroups", in.OtherGroups.Items),
		sound("Rivals", in.Rivals.Items),
		sound("Neighbours", in.Neighbours.Items),
		sound("Subscriptions", in.Subscriptions.Items),
		sound("OperatorConditions", in.OperatorConditions.Items),
		sound("CustomResourceDefinitions", in.CustomResourceDefinitions.Items),
		sound("APIServices", in.APIServices.Items),
		sound("ServiceAccounts", in.ServiceAccounts.Items),
		sound("Roles", in.Roles.Items),
		sound("RoleBindings", in.RoleBindings.Items),
		sound("ClusterRoles", in.ClusterRoles.Items),
		sound("ClusterRoleBindings", in.ClusterRoleBindings.Items),
		sound("Deployments", in.Deployments.Items),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// sound refuses a list with an entry that is nil, and one with an object twice.
func sound[P interface {
	*T
	metav1.Object
}, T any](field string, items []P) error {
	ordered := true
	for i, item := range items {
		if item == nil {
			return &olmcore.InputError{Field: fmt.Sprintf("%s.Items[%d]", field, i), Problem: "is nil"}
		}
		ordered = ordered && (i == 0 || compareNames(items[i-1], item) < 0)
	}
	if ordered { // as Readers list them
		return nil
	}
	if len(items) > few {
		items = slices.SortedFunc(slices.Values(items), compareNames[P])
	}
	for i, item := range items {
		for _, before := range items[max(0, i-few):i] {
			if compareNames(before, item) == 0 {
				return &olmcore.InputError{Field: field + ".Items", Problem: fmt.Sprintf("holds %s/%s twice", item.GetNamespace(), item.GetName())}
			}
		}
	}
	return nil
}

func compareNames[P metav1.Object](a, b P) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

func (c *Config) validate() error {
	for _, d := range [...]struct {
		field string
		value time.Duration
	}{
		{"Config.InstallTimeout", c.InstallTimeout},
		{"Config.ReplacementGrace", c.ReplacementGrace},
		{"Config.HalfMadeGrace", c.HalfMadeGrace},
		{"Config.UnmetGrace", c.UnmetGrace},
	} {
		if d.value < 0 {
			return &olmcore.InputError{Field: d.field, Problem: "is negative"}
		}
	}
	return c.Cleanup.Validate()
}
