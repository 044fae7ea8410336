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

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. Gather fills all fields except Now,
// KubernetesVersion, ServedAPIs, LastRun, Judged, Issued, Inspected and Checkpoint. Lists may contain more objects than
// their comments name.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object to reconcile. It has a name, a namespace and a UID. Required.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	// Config tunes the decisions. The zero value is valid.
	Config Config
	// LastRun contains the results of the last actions that the caller ran for this CSV. Optional. If LastRun is nil, a
	// write that the API server rejected is retried without backoff, and the failure is not reported.
	LastRun olmcore.LastResults

	// OperatorGroups contains the OperatorGroups of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// OtherGroups contains the OperatorGroups of other namespaces whose annotation lists an API that the CSV provides.
	// Groups that share no target namespace with the OperatorGroup of the CSV have no effect.
	OtherGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// OtherProviders contains the CSVs in the namespaces of OtherGroups that provide at least one API that this CSV also
	// provides. Copied CSVs are not included.
	OtherProviders olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Neighbours contains the other CSVs of the namespace that the decision can depend on, without copies:
	//  - those of the same upgrade chain (spec.replaces)
	//  - those that provide one of the same APIs
	//  - those that have a Deployment with the same name
	//  - those that own the Secret of a certificate
	//  - those that the installed-alongside annotations of the CRDs name
	Neighbours olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Subscriptions contains the Subscriptions of the namespace whose status.installedCSV or status.currentCSV is this
	// CSV. If this list is incomplete, Reconcile installs nothing and considers no Deployment healthy, because the desired
	// Deployments depend on spec.config.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// OperatorConditions contains the OperatorCondition of the replaced version. Its name is the value of spec.replaces.
	// The list is empty if the OperatorCondition does not exist.
	OperatorConditions olmcore.Observed[*operatorsv2.OperatorCondition]
	// CustomResourceDefinitions contains the CRDs that the CSV owns or requires.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// GroupDefinitions contains the CRDs of the API groups in which the CSV owns an APIService. These CRDs are needed
	// while one of the CSV's APIServices does not exist.
	GroupDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices contains the APIServices that the CSV requires or owns. It also contains all other APIServices of the
	// API groups in which the CSV owns an APIService. The names of APIServices are <version>.<group>.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// KubernetesVersion is the gitVersion of the API server, for example "v1.36.2". If it is empty, the version is unknown
	// and no spec.minKubeVersion is met.
	KubernetesVersion string
	// ServedAPIs contains the kinds that API discovery lists, at least those of spec.nativeAPIs and of the required
	// APIServices. If this list is incomplete, the kinds that this library itself uses (Deployment, Secret, ClusterRole,
	// ...) are assumed to be served. For a required APIService, only the condition Available is then checked.
	ServedAPIs olmcore.Observed[schema.GroupVersionKind]
	// ServiceAccounts contains the ServiceAccounts of the namespace that the permissions of the CSV name. It also contains
	// the ServiceAccounts of Deployments that serve webhooks or APIs.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// Roles and RoleBindings contain the objects of the namespace. ClusterRoles and ClusterRoleBindings contain the
	// objects of the cluster. These objects are needed:
	//  - the bindings that include ServiceAccounts, by name or by a group
	//  - the roles that these bindings reference
	//  - the roles and bindings with the names that InstallPlans give them, because Outcome.Repair creates those that are
	//    missing
	Roles               olmcore.Observed[*rbacv1.Role]
	RoleBindings        olmcore.Observed[*rbacv1.RoleBinding]
	ClusterRoles        olmcore.Observed[*rbacv1.ClusterRole]
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// Deployments contains the Deployments of the namespace that have the owner labels of the CSV. It also contains those
	// with the name of a Deployment of the install strategy.
	Deployments olmcore.Observed[*appsv1.Deployment]
	// Serving contains the objects that the webhooks and owned APIServices of the CSV need. Serving may be empty for a CSV
	// without webhooks and owned APIServices.
	Serving serving.Objects

	// Grants contains the UID and resourceVersion of each object that may change the permissions of the account that
	// installs the operator:
	//   - the Roles, RoleBindings and ServiceAccounts of the namespace
	//   - the ClusterRoleBindings of the ServiceAccount that the OperatorGroup names
	//   - the ClusterRoles that these bindings reference
	// Grants is used while the CSV is InstallReady, or Failed with reason InstallComponentFailedNoRetry.
	Grants olmcore.Observed[olmcore.Ref]
	// Judged is Outcome.Judged of the last call for this CSV. Optional. The caller must not change it. If Judged is nil, a
	// CSV that failed because of missing permissions is retried only with backoff. Otherwise the CSV is retried as soon as
	// the permissions may have been granted.
	Judged *Judged
	// Issued contains certificates for the requests in Outcome.Certificates of the last call for this CSV. Some requests
	// may be unanswered. A certificate that is no longer requested is ignored.
	Issued []serving.Issued
	// Inspected is Outcome.Inspected of an earlier call for this CSV. Nil is always correct, but makes the call slower.
	Inspected *serving.Memory
	// Checkpoint is Outcome.Checkpoint of an earlier call for this CSV. Nil is always correct, but makes the call slower.
	Checkpoint *olmcore.Checkpoint

	// Deletion contains the objects that only a cleanup needs. It is used only while the CSV is being deleted.
	Deletion cleanup.Deletion
}

// Config tunes the decisions. The zero value behaves like OLM without the defects in docs/deviations.md. Validate
// returns an *olmcore.InputError if a duration is negative.
type Config struct {
	// InstallTimeout is the maximum time for which a CSV may be Installing. After this time the CSV is Failed. 0 means
	// DefaultInstallTimeout.
	InstallTimeout time.Duration `json:"installTimeout,omitempty"`
	// ExcludedAnnotations contains keys of CSV annotations that are not copied to Pod templates. If the list is empty, all
	// annotations are copied, as in OLM. A change of any annotation then rolls out the operator again.
	ExcludedAnnotations []string `json:"excludedAnnotations,omitempty"`
	// ProxyEnv contains the proxy variables of the cluster. Each container gets them, unless the Subscription sets
	// HTTP_PROXY, HTTPS_PROXY or NO_PROXY itself.
	ProxyEnv []corev1.EnvVar `json:"proxyEnv,omitempty"`
	// AdoptForeignDeployments makes Reconcile overwrite Deployments that have no owner. If AdoptForeignDeployments is
	// false, the CSV is not installed while such a Deployment exists.
	AdoptForeignDeployments bool `json:"adoptForeignDeployments,omitempty"`
	// PackageServerNamespaces contains the namespaces whose operators may serve packages.operators.coreos.com, the API of
	// OLM's package server. Nil means DefaultPackageServerNamespace. An empty list that is not nil means no namespace. An
	// existing APIService of an operator is kept in any case. Package controllers adds the namespaces of OLM and of the
	// global catalogs to a list that is nil or not empty.
	PackageServerNamespaces []string `json:"packageServerNamespaces,omitzero"`
	// Cleanup tunes the cleanup of a CSV that is being deleted.
	Cleanup cleanup.Config `json:"cleanup,omitzero"`
}

// DefaultPackageServerNamespace is the namespace that Config.PackageServerNamespaces contains by default.
const DefaultPackageServerNamespace = "olm"

func (c Config) packageServerNamespaces() []string {
	if c.PackageServerNamespaces == nil {
		return []string{DefaultPackageServerNamespace}
	}
	return c.PackageServerNamespaces
}

// Durations that decisions wait for.
const (
	// DefaultInstallTimeout is the default of Config.InstallTimeout.
	DefaultInstallTimeout = 5 * time.Minute
	// ReplacementGrace is the time after which a Replacing CSV without a successor is Pending again.
	ReplacementGrace = 30 * time.Second
	// NeverRanGrace is the time for which a successor waits for a Pending CSV that never ran and whose requirements are
	// not met. After this time the CSV is Replacing, if the successor waits for nothing else.
	NeverRanGrace = 5 * time.Minute
)

// Validate returns an *olmcore.InputError for the first invalid field, or nil if all fields are valid. The Field of the
// error begins with "Config.".
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

// ofCleanup returns the Input of package cleanup.
func (in *Input) ofCleanup() cleanup.Input {
	return cleanup.Input{
		Now: in.Now, ClusterServiceVersion: in.ClusterServiceVersion, Config: in.Config.Cleanup, LastRun: in.LastRun,
		OperatorGroups: in.OperatorGroups, Neighbours: in.Neighbours, Subscriptions: in.Subscriptions,
		CustomResourceDefinitions: in.CustomResourceDefinitions, Deployments: in.Deployments, Deletion: in.Deletion,
	}
}

func (in *Input) validate() error {
	if err := model.ValidateCSV(in.ClusterServiceVersion, in.Now); err != nil {
		return err
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	return cmp.Or(in.Config.Validate(), lists.Err())
}

// lists visits every list of objects once, except those of Deletion, which package cleanup visits. To add a list, add a
// field and a row. ServedAPIs and Grants are not visited, because they may contain items although they are incomplete.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional)
	inputs.VisitList(v, "OtherGroups", &in.OtherGroups, inputs.Optional)
	inputs.VisitList(v, "OtherProviders", &in.OtherProviders, inputs.Optional)
	inputs.VisitList(v, "Neighbours", &in.Neighbours, inputs.Optional)
	inputs.VisitList(v, "Subscriptions", &in.Subscriptions, inputs.Optional)
	inputs.VisitList(v, "OperatorConditions", &in.OperatorConditions, inputs.Optional)
	inputs.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, inputs.Optional)
	inputs.VisitList(v, "GroupDefinitions", &in.GroupDefinitions, inputs.Optional)
	inputs.VisitList(v, "APIServices", &in.APIServices, inputs.Optional)
	inputs.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, inputs.Optional)
	inputs.VisitList(v, "Roles", &in.Roles, inputs.Optional)
	inputs.VisitList(v, "RoleBindings", &in.RoleBindings, inputs.Optional)
	inputs.VisitList(v, "ClusterRoles", &in.ClusterRoles, inputs.Optional)
	inputs.VisitList(v, "ClusterRoleBindings", &in.ClusterRoleBindings, inputs.Optional)
	inputs.VisitList(v, "Deployments", &in.Deployments, inputs.Optional)
	in.Serving.VisitLists(v)
}

// cover covers every field except Now, Issued, Inspected, Checkpoint and Deletion, which do not change the outcome of a
// CSV at rest.
func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverObject(&c, in.ClusterServiceVersion)
	checkpoint.CoverValue(&c, in.KubernetesVersion)
	checkpoint.CoverList(&c, in.ServedAPIs.Items, in.ServedAPIs.Complete)
	checkpoint.CoverList(&c, in.Grants.Items, in.Grants.Complete)
	checkpoint.CoverValue(&c, in.Judged)
	checkpoint.CoverMap(&c, in.LastRun)
	checkpoint.CoverValue(&c, in.Config.InstallTimeout)
	checkpoint.CoverValues(&c, in.Config.ExcludedAnnotations)
	checkpoint.CoverValues(&c, in.Config.ProxyEnv)
	checkpoint.CoverValue(&c, in.Config.AdoptForeignDeployments)
	checkpoint.CoverValue(&c, in.Config.PackageServerNamespaces == nil)
	checkpoint.CoverValues(&c, in.Config.PackageServerNamespaces)
	in.Config.Cleanup.Cover(&c)
	return c
}
