// SPDX-License-Identifier: Apache-2.0

// Package observed contains what was observed of one operator. The packages deployment, backend, webhook and apiservice
// decide from it.
package observed

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

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Operator is the part of a csv.Input that installing an operator depends on. Package csv fills it in one place, once
// for each call. It is read-only. The caller of a function has read the lists that the function needs. No conclusions
// are drawn from an incomplete list of Objects.
type Operator struct {
	Now time.Time
	CSV *owned.CSV
	// Group is the only OperatorGroup of the namespace, or nil.
	Group *operatorsv1.OperatorGroup
	// Account is the ServiceAccount that writes, or nil for the controller.
	Account *corev1.ObjectReference
	// IsConfined is true if the OperatorGroup names a ServiceAccount, even if its status does not confirm the account yet.
	IsConfined bool
	// Neighbours contains the other CSVs of the namespace, without copies. Relatives contains those of the same upgrade
	// chain. Objects of other Neighbours are not adopted.
	Neighbours []*owned.CSV
	Relatives  sets.Set[*owned.CSV]
	// Deployments contains the Deployments of the namespace, and ServiceAccounts those that the Deployments run as.
	Deployments     []*appsv1.Deployment
	ServiceAccounts []*corev1.ServiceAccount
	// APIServices contains the owned APIServices, those whose owner labels name the CSV, and all of the owned API
	// groups.
	APIServices []*apiregistrationv1.APIService
	// Definitions contains the CustomResourceDefinitions of the owned API groups.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// CRDs contains the CustomResourceDefinitions that the CSV owns or requires. UnreadCRDs names the list if it was
	// not read. Then no webhook is installed, and none of their rules is judged.
	CRDs       []*apiextensionsv1.CustomResourceDefinition
	UnreadCRDs []string
	ServedAPIs olmcore.Observed[schema.GroupVersionKind]
	Objects    *serving.Objects
	// Config is the spec.config of the Subscription that applies, or nil.
	Config *v1alpha1.SubscriptionConfig
	// ProxyEnv, ExcludedAnnotations and PackageServerNamespaces are those of csv.Config, with its defaults.
	ProxyEnv                []corev1.EnvVar
	ExcludedAnnotations     []string
	PackageServerNamespaces []string
	// Issued contains the certificates that were issued since the last call.
	Issued []certificate.Issued
	// Memory contains what is known of certificates from earlier calls. It may be nil.
	Memory *certificate.Memory
}
