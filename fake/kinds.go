// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/defaults"
	"github.com/olmcore/olm/olmcore"
)

// kind is what the cluster knows about one group and kind.
type kind struct {
	// gvk carries the version that objects are stored in.
	gvk      schema.GroupVersionKind
	resource string
	// versions that are served, the stored one among them unless a CRD says so.
	versions   []string
	namespaced bool
	// status: the kind has a status subresource.
	status bool
	// generation: the API server counts changes of the spec.
	generation bool
	// statusField is the index of the Status field of the Go type, -1 without.
	statusField int
	goType      reflect.Type
	// custom: a CRD, Serve or Load brought the kind in.
	custom bool
	// terminating: the CRD is being deleted, so nothing new may be created.
	terminating bool
	// defaults are those of the CRD's schema; nil when it has none.
	defaults *defaults.Schema
	// conversion is the webhook that converts between the versions; nil without.
	conversion *conversion
	role       role
}

// role says which simulated controllers care about a kind.
type role uint8

const (
	roleNone role = iota
	roleNamespace
	roleNode
	rolePod
	roleDeployment
	roleCRD
	roleServiceAccount
	roleService
	roleAPIService
)

var (
	namespaceKind      = schema.GroupKind{Kind: "Namespace"}
	nodeKind           = schema.GroupKind{Kind: "Node"}
	podKind            = schema.GroupKind{Kind: "Pod"}
	secretKind         = schema.GroupKind{Kind: "Secret"}
	serviceKind        = schema.GroupKind{Kind: "Service"}
	serviceAccountKind = schema.GroupKind{Kind: "ServiceAccount"}
	deploymentKind     = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	crdKind            = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind     = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	pdbKind            = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
)

var roles = map[schema.GroupKind]role{
	namespaceKind: roleNamespace, nodeKind: roleNode, podKind: rolePod, deploymentKind: roleDeployment,
	crdKind: roleCRD, serviceAccountKind: roleServiceAccount, serviceKind: roleService, apiServiceKind: roleAPIService,
}

// builtin lists the kinds that every cluster serves: those of Kubernetes and
// those of OLM. Versions are separated by commas, the stored one first.
var builtin = []struct{ group, versions, namespaced, cluster string }{
	{"", "v1", "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
		"Namespace Node PersistentVolume"},
	{"apps", "v1", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""},
	{"autoscaling", "v2,v1", "HorizontalPodAutoscaler", ""},
	{"batch", "v1", "CronJob Job", ""},
	{"certificates.k8s.io", "v1", "", "CertificateSigningRequest"},
	{"coordination.k8s.io", "v1", "Lease", ""},
	{"discovery.k8s.io", "v1", "EndpointSlice", ""},
	{"events.k8s.io", "v1", "Event", ""},
	{"flowcontrol.apiserver.k8s.io", "v1", "", "FlowSchema PriorityLevelConfiguration"},
	{"networking.k8s.io", "v1", "Ingress NetworkPolicy", "IngressClass"},
	{"node.k8s.io", "v1", "", "RuntimeClass"},
	{"policy", "v1", "PodDisruptionBudget", ""},
	{"rbac.authorization.k8s.io", "v1", "Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	{"scheduling.k8s.io", "v1", "", "PriorityClass"},
	{"storage.k8s.io", "v1", "CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment"},
	{"admissionregistration.k8s.io", "v1", "",
		"MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
	{"apiextensions.k8s.io", "v1", "", "CustomResourceDefinition"},
	{"apiregistration.k8s.io", "v1", "", "APIService"},
	{"operators.coreos.com", "v1alpha1", "CatalogSource ClusterServiceVersion InstallPlan Subscription", ""},
	{"operators.coreos.com", "v1", "", "OLMConfig Operator"},
	{"operators.coreos.com", "v1,v1alpha2", "OperatorGroup", ""},
	{"operators.coreos.com", "v2,v1", "OperatorCondition", ""},
}

// untypedStatus are the builtin kinds with a status subresource that the library has no Go type for.
var untypedStatus = strings.Fields("CertificateSigningRequest CronJob DaemonSet FlowSchema HorizontalPodAutoscaler Ingress " +
	"PersistentVolume PersistentVolumeClaim PriorityLevelConfiguration ReplicationController ResourceQuota StatefulSet " +
	"ValidatingAdmissionPolicy VolumeAttachment")

var countingGroups = strings.Fields("apps batch networking.k8s.io policy admissionregistration.k8s.io apiextensions.k8s.io " +
	"operators.coreos.com autoscaling flowcontrol.apiserver.k8s.io")

var plurals = map[string]string{
	"Endpoints": "endpoints", "NetworkPolicy": "networkpolicies", "Ingress": "ingresses", "IngressClass": "ingressclasses",
	"RuntimeClass": "runtimeclasses", "PriorityClass": "priorityclasses", "StorageClass": "storageclasses",
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "CSIStorageCapacity": "csistoragecapacities",
}

func builtinKinds() []*kind {
	var kinds []*kind
	for _, b := range builtin {
		versions := strings.Split(b.versions, ",")
		for i, list := range []string{b.namespaced, b.cluster} {
			for _, name := range strings.Fields(list) {
				gvk := schema.GroupVersionKind{Group: b.group, Version: versions[0], Kind: name}
				k := newKind(gvk, versions, i == 0)
				k.generation = name == "Pod" || slices.Contains(countingGroups, b.group)
				if k.goType == nil {
					k.status = slices.Contains(untypedStatus, name)
				}
				kinds = append(kinds, k)
			}
		}
	}
	return kinds
}

func newKind(gvk schema.GroupVersionKind, versions []string, namespaced bool) *kind {
	k := &kind{gvk: gvk, versions: versions, namespaced: namespaced, statusField: -1, role: roles[gvk.GroupKind()]}
	k.resource = plurals[gvk.Kind]
	if k.resource == "" {
		k.resource = strings.ToLower(gvk.Kind) + "s"
	}
	o := olmcore.NewObject(gvk)
	if _, untyped := o.(*unstructured.Unstructured); untyped {
		return k
	}
	k.goType = reflect.TypeOf(o).Elem()
	if field, ok := k.goType.FieldByName("Status"); ok {
		k.statusField, k.status = field.Index[0], true
	}
	return k
}

func (k *kind) serves(version string) bool {
	return version == "" || slices.Contains(k.versions, version)
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

func (k *kind) groupKind() schema.GroupKind { return k.gvk.GroupKind() }

func (c *Cluster) table(gvk schema.GroupVersionKind) (*table, error) {
	if t := c.tables[gvk.GroupKind()]; t != nil && t.kind.serves(gvk.Version) {
		return t, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

func (c *Cluster) resourceOf(target olmcore.Ref) schema.GroupResource {
	if t := c.tables[target.GVK().GroupKind()]; t != nil {
		return t.kind.groupResource()
	}
	return schema.GroupResource{Group: target.GVK().Group, Resource: strings.ToLower(target.Kind)}
}

// applyDefaults fills the omitted fields of an object.
func (k *kind) applyDefaults(o olmcore.Object) {
	defaults.Apply(o)
	if k.custom {
		k.defaults.Apply(o)
	} else {
		defaults.OLM(k.gvk).Apply(o)
	}
}
