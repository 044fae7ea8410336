// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Operator contains the part of a csv.Input that the installation of an operator depends on. Package csv fills it once
// per call. It is read-only. All lists that a function uses must be complete, except for CRDs, ServedAPIs and the lists
// in Objects.
type Operator struct {
	Now time.Time
	CSV *CSV
	// Group is the only OperatorGroup of the namespace, or nil.
	Group *operatorsv1.OperatorGroup
	// Account is the ServiceAccount with which the writes are made, or nil if they are made with the identity of the
	// controller.
	Account *corev1.ObjectReference
	// IsConfined is true if the OperatorGroup names a ServiceAccount, even if the status of the OperatorGroup does not
	// contain the account yet.
	IsConfined bool
	// Neighbours contains the other CSVs of the namespace, without copies. Relatives contains the Neighbours of the same
	// upgrade chain. Objects of a Neighbour that is not in Relatives are not adopted.
	Neighbours []*CSV
	Relatives  sets.Set[*CSV]
	// Deployments contains the Deployments of the namespace. ServiceAccounts contains the ServiceAccounts of these
	// Deployments.
	Deployments     []*appsv1.Deployment
	ServiceAccounts []*corev1.ServiceAccount
	// APIServices contains these APIServices:
	//  - those that the CSV owns
	//  - those with the owner labels of the CSV
	//  - all other APIServices of the API groups in which the CSV owns an APIService
	APIServices []*apiregistrationv1.APIService
	// Definitions contains the CustomResourceDefinitions of the API groups in which the CSV owns an APIService.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// CRDs contains the CustomResourceDefinitions that the CSV owns or requires. If this list was not read, UnreadCRDs
	// contains its name. In that case no webhook is installed, and no rule of a webhook is checked.
	CRDs       []*apiextensionsv1.CustomResourceDefinition
	UnreadCRDs []string
	ServedAPIs olmcore.Observed[schema.GroupVersionKind]
	Objects    *serving.Objects
	// Config is the spec.config of the Subscription that installs the CSV, or nil.
	Config *v1alpha1.SubscriptionConfig
	// ProxyEnv, ExcludedAnnotations and PackageServerNamespaces have the values of the fields of csv.Config, with
	// defaults.
	ProxyEnv                []corev1.EnvVar
	ExcludedAnnotations     []string
	PackageServerNamespaces []string
	// Issued contains the certificates that were issued since the last call.
	Issued []serving.Issued
	// Memory caches the results of inspecting certificates in earlier calls. It may be nil.
	Memory *serving.Memory
}
