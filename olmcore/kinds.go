// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"reflect"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Kind is a kind of object that the library knows.
type Kind struct {
	schema.GroupVersionKind
	Namespaced bool
	// Plural is its name in API paths.
	Plural string
	// ReadBy are the packages whose Gather functions read its objects, sorted. Empty: the library only writes them, or
	// reads them where a step names them.
	ReadBy []string
	// Watch says whose changes count for a controller.
	Watch Watch
	// Unknown says what cannot be told when its objects were not read.
	Unknown string

	list runtime.Object // an empty list of the Go type; nil if the kind has none
}

// Watch says which objects of a kind a controller watches.
type Watch string

// Watches.
const (
	// WatchNever: none. They are read when they are needed.
	WatchNever Watch = ""
	// WatchShard: those of its own namespaces, of the global catalogs' and of OLM's.
	WatchShard Watch = "Shard"
	// WatchAll: all of the cluster.
	WatchAll Watch = "All"
)

// Resource returns the name for kubectl get: the plural, of OLM's own kinds with their group, as other groups have
// subscriptions, too.
func (k Kind) Resource() string {
	if k.Group == v1alpha1.GroupName {
		return k.Plural + "." + k.Group
	}
	return k.Plural
}

// Kinds returns the kinds that the library knows, sorted by group and kind. What is in none of them travels as
// *unstructured.Unstructured or *metav1.PartialObjectMetadata.
func Kinds() []Kind {
	all := slices.Clone(kinds)
	slices.SortFunc(all, func(a, b Kind) int {
		if a.Group != b.Group {
			return strings.Compare(a.Group, b.Group)
		}
		return strings.Compare(a.GroupVersionKind.Kind, b.GroupVersionKind.Kind)
	})
	return all
}

// KindOf returns a kind that the library knows.
func KindOf(gk schema.GroupKind) (k Kind, ok bool) {
	k, ok = known.byGroupKind[gk]
	return k, ok
}

const (
	byCatalog, byCSV, byInstallPlan = "catalog", "csv", "installplan"
	byResolution, bySubscription    = "resolution", "subscription"
)

func by(packages ...string) []string { return packages }

// kinds is the table of kinds. To add a kind, add a row.
var kinds = []Kind{
	row(corev1.SchemeGroupVersion, &corev1.ConfigMapList{}, true, "configmaps", WatchShard,
		by(byCatalog, byInstallPlan, bySubscription), "the content of catalogs from ConfigMaps, and which bundles are unpacked"),
	row(corev1.SchemeGroupVersion, &corev1.EventList{}, true, "events", WatchNever,
		by(byCSV), "whether the Events that say that copies of operators are disabled exist"),
	row(corev1.SchemeGroupVersion, &corev1.NamespaceList{}, false, "namespaces", WatchAll,
		by(byCatalog, byCSV, byInstallPlan, bySubscription), "which namespaces an OperatorGroup selects, and which are being deleted"),
	row(corev1.SchemeGroupVersion, &corev1.NodeList{}, false, "nodes", WatchAll,
		by(byCatalog), "whether the Pods of catalogs are on Nodes that answer"),
	row(corev1.SchemeGroupVersion, &corev1.PodList{}, true, "pods", WatchShard,
		by(byCatalog, byCSV, byInstallPlan), "whether catalogs serve, and why a bundle is not unpacked or an API is not served"),
	row(corev1.SchemeGroupVersion, &corev1.SecretList{}, true, "secrets", WatchShard,
		by(byCSV, byInstallPlan, bySubscription), "which Secrets of a running InstallPlan exist, and whether operators have their certificates"),
	row(corev1.SchemeGroupVersion, &corev1.ServiceList{}, true, "services", WatchShard,
		by(byCatalog, byCSV, byInstallPlan, bySubscription), "whether catalogs and the webhooks of operators can be reached"),
	row(corev1.SchemeGroupVersion, &corev1.ServiceAccountList{}, true, "serviceaccounts", WatchShard,
		by(byCatalog, byCSV, byInstallPlan, bySubscription), "whether operators have the accounts that they run as"),

	row(appsv1.SchemeGroupVersion, &appsv1.DeploymentList{}, true, "deployments", WatchShard,
		by(byCSV, bySubscription), "whether operators are installed and run"),
	row(appsv1.SchemeGroupVersion, &appsv1.ReplicaSetList{}, true, "replicasets", WatchNever, nil, ""),
	row(batchv1.SchemeGroupVersion, &batchv1.JobList{}, true, "jobs", WatchShard,
		by(byInstallPlan), "whether a bundle is being unpacked"),
	row(networkingv1.SchemeGroupVersion, &networkingv1.NetworkPolicyList{}, true, "networkpolicies", WatchShard,
		by(byCatalog), "whether the NetworkPolicies of catalogs exist"),
	row(policyv1.SchemeGroupVersion, &policyv1.PodDisruptionBudgetList{}, true, "poddisruptionbudgets", WatchShard,
		by(byCatalog), "whether catalogs with several replicas have their budget"),
	row(rbacv1.SchemeGroupVersion, &rbacv1.ClusterRoleList{}, false, "clusterroles", WatchAll,
		by(byCSV, byInstallPlan, bySubscription), "whether operators have their permissions"),
	row(rbacv1.SchemeGroupVersion, &rbacv1.ClusterRoleBindingList{}, false, "clusterrolebindings", WatchAll,
		by(byCSV, byInstallPlan, bySubscription), "whether operators have their permissions"),
	row(rbacv1.SchemeGroupVersion, &rbacv1.RoleList{}, true, "roles", WatchShard,
		by(byCatalog, byCSV, byInstallPlan, bySubscription), "whether operators have their permissions"),
	row(rbacv1.SchemeGroupVersion, &rbacv1.RoleBindingList{}, true, "rolebindings", WatchShard,
		by(byCatalog, byCSV, byInstallPlan, bySubscription), "whether operators have their permissions"),
	untyped(schedulingv1.SchemeGroupVersion, "PriorityClass", false, "priorityclasses", WatchNever,
		by(byCSV), "which of them a deleted ClusterServiceVersion leaves behind"),
	row(admissionregistrationv1.SchemeGroupVersion, &admissionregistrationv1.MutatingWebhookConfigurationList{},
		false, "mutatingwebhookconfigurations", WatchAll, by(byCSV), "whether operators have their webhooks"),
	row(admissionregistrationv1.SchemeGroupVersion, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		false, "validatingwebhookconfigurations", WatchAll, by(byCSV), "whether operators have their webhooks"),
	row(apiextensionsv1.SchemeGroupVersion, &apiextensionsv1.CustomResourceDefinitionList{}, false, "customresourcedefinitions", WatchAll,
		by(byCSV, byInstallPlan, bySubscription), "whether the CRDs that operators own or require exist"),
	row(apiregistrationv1.SchemeGroupVersion, &apiregistrationv1.APIServiceList{}, false, "apiservices", WatchAll,
		by(byCSV, byInstallPlan, bySubscription), "whether the APIs that operators require or own are served, and who serves an API group"),

	row(v1alpha1.SchemeGroupVersion, &v1alpha1.CatalogSourceList{}, true, "catalogsources", WatchAll,
		by(byCatalog, byInstallPlan, byResolution, bySubscription), "which catalogs there are"),
	row(v1alpha1.SchemeGroupVersion, &v1alpha1.ClusterServiceVersionList{}, true, "clusterserviceversions", WatchAll,
		by(byCSV, byInstallPlan, byResolution, bySubscription), "which operators are installed"),
	row(v1alpha1.SchemeGroupVersion, &v1alpha1.InstallPlanList{}, true, "installplans", WatchAll,
		by(byCSV, byInstallPlan, byResolution, bySubscription), "what is being installed"),
	row(v1alpha1.SchemeGroupVersion, &v1alpha1.SubscriptionList{}, true, "subscriptions", WatchAll,
		by(byCatalog, byCSV, byInstallPlan, byResolution, bySubscription), "which operators are wanted"),
	row(operatorsv1.GroupVersion, &operatorsv1.OLMConfigList{}, false, "olmconfigs", WatchAll,
		by(byCSV), "whether copies of operators that watch all namespaces are disabled"),
	row(operatorsv1.GroupVersion, &operatorsv1.OperatorList{}, false, "operators", WatchAll,
		by(bySubscription), "whether the Operator objects are up to date"),
	row(operatorsv1.GroupVersion, &operatorsv1.OperatorGroupList{}, true, "operatorgroups", WatchAll,
		by(byCSV, byInstallPlan, byResolution, bySubscription), "in which namespaces operators may be installed and what they watch"),
	row(operatorsv2.GroupVersion, &operatorsv2.OperatorConditionList{}, true, "operatorconditions", WatchShard,
		by(byCSV, bySubscription), "whether operators allow their upgrade"),
}

// row returns a kind with a Go type. list is an empty list of that type.
func row(gv schema.GroupVersion, list runtime.Object, namespaced bool, plural string, watch Watch, readBy []string, unknown string) Kind {
	k := untyped(gv, itemType(list).Name(), namespaced, plural, watch, readBy, unknown)
	k.list = list
	return k
}

// itemType returns the type of the items of a list, such as corev1.Pod.
func itemType(list runtime.Object) reflect.Type {
	items, _ := reflect.TypeOf(list).Elem().FieldByName("Items")
	return items.Type.Elem()
}

func untyped(gv schema.GroupVersion, kind string, namespaced bool, plural string, watch Watch, readBy []string, unknown string) Kind {
	return Kind{GroupVersionKind: gv.WithKind(kind), Namespaced: namespaced, Plural: plural, Watch: watch, ReadBy: readBy, Unknown: unknown}
}

// NewList returns an empty list of the Go type of a kind, such as *corev1.PodList. It returns nil if the kind has no Go
// type.
func (k Kind) NewList() runtime.Object {
	if k.list == nil {
		return nil
	}
	return k.list.DeepCopyObject()
}

// kindTable contains the rows of the table by the keys that look-ups use.
type kindTable struct {
	byGroupKind map[schema.GroupKind]Kind
	byType      map[reflect.Type]typeNames
	typeByGVK   map[schema.GroupVersionKind]reflect.Type
}

// typeNames are the names of the kind of a Go type. apiVersion is its group and version in the form that objects use.
type typeNames struct {
	gvk        schema.GroupVersionKind
	apiVersion string
}

var known = newKindTable(kinds)

func newKindTable(rows []Kind) kindTable {
	table := kindTable{
		byGroupKind: map[schema.GroupKind]Kind{},
		byType:      map[reflect.Type]typeNames{},
		typeByGVK:   map[schema.GroupVersionKind]reflect.Type{},
	}
	for _, k := range rows {
		table.byGroupKind[k.GroupKind()] = k
		if k.list == nil {
			continue
		}
		t := itemType(k.list)
		table.byType[reflect.PointerTo(t)] = typeNames{k.GroupVersionKind, k.GroupVersion().String()}
		table.typeByGVK[k.GroupVersionKind] = t
	}
	return table
}
