// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. Gather fills all but Now, KubernetesVersion,
// ServedAPIs, LastRun, Judged, Issued, Inspected and Checkpoint. Lists may hold more than the objects that their
// comments name.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object to reconcile, with name, namespace and UID. Required.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	Config                Config
	// LastRun is the adapter's memory of its last Run; optional. Without it a write that the API server refuses is
	// repeated instead of reported.
	LastRun olmcore.LastResults

	// OperatorGroups are those of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// OtherGroups are the OperatorGroups of other namespaces whose annotation lists an API that the CSV provides; of
	// those that watch no namespace which its own group watches, none counts.
	OtherGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// OtherProviders are the CSVs, copies left out, in the namespaces of OtherGroups that provide one of the same APIs.
	OtherProviders olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Neighbours are the other CSVs of the namespace, copies left out, that the decision can depend on: connected by
	// spec.replaces, providing one of the same APIs, owning a Deployment of the same name or the Secret of a
	// certificate, or named by the installed-alongside annotations of the CRDs.
	Neighbours olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Subscriptions are those of the namespace whose status.installedCSV or status.currentCSV is this CSV. Nothing is
	// installed or judged healthy where they were not read: what the Deployments should be depends on their
	// spec.config.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// OperatorConditions are those of the namespace named like spec.replaces: one at most.
	OperatorConditions olmcore.Observed[*operatorsv2.OperatorCondition]
	// CustomResourceDefinitions are those that the CSV owns or requires.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// GroupDefinitions are those of the API groups of which the CSV owns an APIService. They are needed as long as one
	// of its APIServices does not exist.
	GroupDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices are those named <version>.<group> that the CSV requires or owns, and all others of the groups that it
	// owns.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// KubernetesVersion is the server's gitVersion, e.g. "v1.36.2"; empty when unknown, which satisfies no
	// spec.minKubeVersion.
	KubernetesVersion string
	// ServedAPIs are kinds that API discovery lists; at least those in spec.nativeAPIs and the required APIServices.
	// Not complete: kinds that this library itself needs (Deployment, Secret, ClusterRole, ...) count as served, and a
	// required APIService is judged by its Available condition alone.
	ServedAPIs olmcore.Observed[schema.GroupVersionKind]
	// ServiceAccounts are those of the namespace that the permissions name, and those that Deployments with webhooks or
	// APIs run as.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// Roles and RoleBindings are those of the namespace, ClusterRoles and ClusterRoleBindings those of the cluster;
	// what binds none of the ServiceAccounts, and the roles that nothing of it references, may be left out, unless they
	// have the names that InstallPlans give: Outcome.Repair would take them for missing.
	Roles               olmcore.Observed[*rbacv1.Role]
	RoleBindings        olmcore.Observed[*rbacv1.RoleBinding]
	ClusterRoles        olmcore.Observed[*rbacv1.ClusterRole]
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// Deployments are those of the namespace that carry the CSV's owner labels or have the name of a Deployment of its
	// install strategy.
	Deployments olmcore.Observed[*appsv1.Deployment]
	// Serving is what the webhooks and the owned APIServices of the CSV need; looked at only where it has any.
	Serving serving.Objects

	// Grants are what decides about the rights of the account that installs, with UID and resourceVersion: the Roles,
	// RoleBindings and ServiceAccounts of the namespace, the ClusterRoles that these bind, and the ClusterRoleBindings
	// of the account that the OperatorGroup prescribes, with their roles. They are looked at while the CSV is
	// InstallReady, or Failed with reason InstallComponentFailedNoRetry.
	Grants olmcore.Observed[olmcore.Ref]
	// Judged is Outcome.Judged of the last call for this CSV; optional. It must not be changed. Without it a CSV that
	// failed for want of permissions is tried again with growing pauses alone.
	Judged *Judged
	// Issued answers Outcome.Certificates of the last call for this CSV, also in part. It is looked at only while the
	// same would be asked for again, so an old answer does no harm.
	Issued []certificate.Issued
	// Inspected is Outcome.Inspected of an earlier call; nil is always right.
	Inspected *certificate.Memory
	// Checkpoint is Outcome.Checkpoint of an earlier call for this CSV; nil is always right.
	Checkpoint *olmcore.Checkpoint

	// Deletion is what the cleanup looks at besides: read only while the CSV is being deleted.
	Deletion cleanup.Deletion
}

// Config tunes the decisions. The zero value behaves as OLM does, apart from its defects (docs/deviations.md). Negative
// durations are an *olmcore.InputError.
type Config struct {
	// InstallTimeout is how long a CSV may be Installing before it is Failed. 0: DefaultInstallTimeout.
	InstallTimeout time.Duration `json:"installTimeout,omitempty"`
	// ExcludedAnnotations are keys of CSV annotations that are not copied to Pod templates. Nil: all are copied, as in
	// OLM, so that editing any of them rolls the operator.
	ExcludedAnnotations []string `json:"excludedAnnotations,omitempty"`
	// ProxyEnv are the cluster's proxy variables, given to each container unless the Subscription sets one of
	// HTTP_PROXY, HTTPS_PROXY and NO_PROXY itself.
	ProxyEnv []corev1.EnvVar `json:"proxyEnv,omitempty"`
	// AdoptForeignDeployments overwrites Deployments that have no owner instead of refusing to install.
	AdoptForeignDeployments bool `json:"adoptForeignDeployments,omitempty"`
	// PackageServerNamespaces are the namespaces whose operators may serve packages.operators.coreos.com, the API of
	// OLM's package server. Nil: DefaultPackageServerNamespace. Empty and not nil: none. Package controllers adds the
	// namespace of OLM and that of the global catalogs, except to an empty list that is not nil. An APIService that
	// exists stays in any case.
	PackageServerNamespaces []string `json:"packageServerNamespaces,omitzero"`
	// Cleanup tunes what happens to what a CSV leaves behind.
	Cleanup cleanup.Config `json:"cleanup,omitzero"`
}

// DefaultPackageServerNamespace is the default of Config.PackageServerNamespaces.
const DefaultPackageServerNamespace = "olm"

func (c Config) packageServerNamespaces() []string {
	if c.PackageServerNamespaces == nil {
		return []string{DefaultPackageServerNamespace}
	}
	return c.PackageServerNamespaces
}

// The times that decisions wait for.
const (
	// DefaultInstallTimeout is that of Config.InstallTimeout.
	DefaultInstallTimeout = 5 * time.Minute
	// ReplacementGrace is how long a CSV stays Replacing without a successor before it goes back to Pending.
	ReplacementGrace = 30 * time.Second
	// NeverRanGrace is how long a Pending CSV that never ran may lack requirements while its successor has all and
	// waits for it; then it gives way.
	NeverRanGrace = 5 * time.Minute
)

// Validate returns an *olmcore.InputError for the first field that breaks its contract, nil for none. Field begins with
// "Config.".
func (c Config) Validate() error {
	if c.InstallTimeout < 0 {
		return &olmcore.InputError{Field: "Config.InstallTimeout", Problem: "is negative"}
	}
	for i, name := range c.PackageServerNamespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return &olmcore.InputError{Field: fmt.Sprintf("Config.PackageServerNamespaces[%d]", i), Problem: "is not the name of a namespace"}
		}
	}
	for i := range c.ProxyEnv {
		if len(validation.IsRelaxedEnvVarName(c.ProxyEnv[i].Name)) > 0 {
			return &olmcore.InputError{Field: fmt.Sprintf("Config.ProxyEnv[%d].Name", i), Problem: "is no name of an environment variable"}
		}
	}
	return c.Cleanup.Validate()
}

// ofCleanup is what package cleanup looks at.
func (in *Input) ofCleanup() cleanup.Input {
	return cleanup.Input{
		Now: in.Now, ClusterServiceVersion: in.ClusterServiceVersion, Config: in.Config.Cleanup, LastRun: in.LastRun,
		OperatorGroups: in.OperatorGroups, Neighbours: in.Neighbours, Subscriptions: in.Subscriptions,
		CustomResourceDefinitions: in.CustomResourceDefinitions, Deployments: in.Deployments, Deletion: in.Deletion,
	}
}

func (in *Input) validate() error {
	if err := owned.Validate(in.ClusterServiceVersion, in.Now); err != nil {
		return err
	}
	lists := olmcore.ValidateLists()
	in.lists(&lists)
	return cmp.Or(in.Config.Validate(), lists.Err())
}

// lists names every list of objects once, except those of Deletion, which package cleanup visits. To add a list, add a
// field and a row. ServedAPIs and Grants are no such lists: they may contain the result of an incomplete read.
func (in *Input) lists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Optional)
	olmcore.VisitList(v, "OtherGroups", &in.OtherGroups, olmcore.Optional)
	olmcore.VisitList(v, "OtherProviders", &in.OtherProviders, olmcore.Optional)
	olmcore.VisitList(v, "Neighbours", &in.Neighbours, olmcore.Optional)
	olmcore.VisitList(v, "Subscriptions", &in.Subscriptions, olmcore.Optional)
	olmcore.VisitList(v, "OperatorConditions", &in.OperatorConditions, olmcore.Optional)
	olmcore.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, olmcore.Optional)
	olmcore.VisitList(v, "GroupDefinitions", &in.GroupDefinitions, olmcore.Optional)
	olmcore.VisitList(v, "APIServices", &in.APIServices, olmcore.Optional)
	olmcore.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, olmcore.Optional)
	olmcore.VisitList(v, "Roles", &in.Roles, olmcore.Optional)
	olmcore.VisitList(v, "RoleBindings", &in.RoleBindings, olmcore.Optional)
	olmcore.VisitList(v, "ClusterRoles", &in.ClusterRoles, olmcore.Optional)
	olmcore.VisitList(v, "ClusterRoleBindings", &in.ClusterRoleBindings, olmcore.Optional)
	olmcore.VisitList(v, "Deployments", &in.Deployments, olmcore.Optional)
	in.Serving.VisitLists(v)
}

// cover covers every field except Now, Issued, Inspected, Checkpoint and Deletion, which do not change the outcome of a
// CSV at rest.
func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	lists := olmcore.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	olmcore.CoverObject(&c, in.ClusterServiceVersion)
	olmcore.CoverValue(&c, in.KubernetesVersion)
	olmcore.CoverObserved(&c, in.ServedAPIs)
	olmcore.CoverObserved(&c, in.Grants)
	olmcore.CoverValue(&c, in.Judged)
	olmcore.CoverMap(&c, in.LastRun)
	olmcore.CoverValue(&c, in.Config.InstallTimeout)
	olmcore.CoverValues(&c, in.Config.ExcludedAnnotations)
	olmcore.CoverValues(&c, in.Config.ProxyEnv)
	olmcore.CoverValue(&c, in.Config.AdoptForeignDeployments)
	olmcore.CoverValue(&c, in.Config.PackageServerNamespaces == nil)
	olmcore.CoverValues(&c, in.Config.PackageServerNamespaces)
	in.Config.Cleanup.Cover(&c)
	return c
}
