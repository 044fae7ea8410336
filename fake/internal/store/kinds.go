// SPDX-License-Identifier: Apache-2.0

package store

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/defaults"
	"github.com/olmcore/olm/olmcore"
)

// Kind describes one group and kind that the API server serves.
type Kind struct {
	// GVK contains the version in which objects are stored.
	GVK schema.GroupVersionKind
	// Resource is the plural name.
	Resource string
	// Versions are the served versions, including the stored one unless the CRD does not serve it.
	Versions   []string
	Namespaced bool
	// HasStatus reports whether the kind has a status subresource.
	HasStatus bool
	// HasGeneration reports whether the API server counts changes of the spec.
	HasGeneration bool
	// Custom reports whether the kind was added by a CRD, Serve or Load.
	Custom bool
	// Terminating reports whether the CRD is being deleted, so that no object can be created.
	Terminating bool
	// Defaults are those of the CRD's schema. Nil means none.
	Defaults *defaults.Schema
	// Conversion is the webhook that converts between the versions. Nil means none.
	Conversion *apiextensionsv1.WebhookConversion

	statusField int // the index of the Status field of goType, or -1
	goType      reflect.Type
}

// Tables contains the objects of every kind that the API server serves.
type Tables struct {
	tables map[schema.GroupKind]*Table
}

// The kinds with a meaning of their own in the simulation.
var (
	NamespaceKind      = schema.GroupKind{Kind: "Namespace"}
	NodeKind           = schema.GroupKind{Kind: "Node"}
	PodKind            = schema.GroupKind{Kind: "Pod"}
	SecretKind         = schema.GroupKind{Kind: "Secret"}
	ServiceKind        = schema.GroupKind{Kind: "Service"}
	ServiceAccountKind = schema.GroupKind{Kind: "ServiceAccount"}
	DeploymentKind     = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	CRDKind            = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	APIServiceKind     = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	MutatingKind       = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
	ValidatingKind     = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	PDBKind            = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
)

// builtin contains the kinds that every cluster serves: those of Kubernetes and those of OLM. Versions are separated by
// commas, the stored one first.
var builtin = []struct{ group, versions, namespaced, cluster string }{
	{"", "v1", "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController " +
		"ResourceQuota Secret Service ServiceAccount",
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

func builtinKinds() []*Kind {
	var kinds []*Kind
	for _, b := range builtin {
		versions := strings.Split(b.versions, ",")
		for i, list := range []string{b.namespaced, b.cluster} {
			for _, name := range strings.Fields(list) {
				gvk := schema.GroupVersionKind{Group: b.group, Version: versions[0], Kind: name}
				k := NewKind(gvk, versions, i == 0)
				k.HasGeneration = name == "Pod" || slices.Contains(countingGroups, b.group)
				if k.goType == nil {
					k.HasStatus = slices.Contains(untypedStatus, name)
				}
				kinds = append(kinds, k)
			}
		}
	}
	return kinds
}

// NewKind returns a kind that stores objects in the version of gvk.
func NewKind(gvk schema.GroupVersionKind, versions []string, namespaced bool) *Kind {
	k := &Kind{GVK: gvk, Versions: versions, Namespaced: namespaced, statusField: -1}
	k.Resource = plurals[gvk.Kind]
	if k.Resource == "" {
		k.Resource = strings.ToLower(gvk.Kind) + "s"
	}
	o := olmcore.NewObject(gvk)
	if _, untyped := o.(*unstructured.Unstructured); untyped {
		return k
	}
	k.goType = reflect.TypeOf(o).Elem()
	if field, ok := k.goType.FieldByName("Status"); ok {
		k.statusField, k.HasStatus = field.Index[0], true
	}
	return k
}

// Serves reports whether a version is served. The empty version stands for the stored one.
func (k *Kind) Serves(version string) bool {
	return version == "" || slices.Contains(k.Versions, version)
}

// GroupResource returns the group and plural name.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.GVK.Group, Resource: k.Resource}
}

// GroupKind returns the group and kind.
func (k *Kind) GroupKind() schema.GroupKind { return k.GVK.GroupKind() }

// Served returns the table of a kind, or a *meta.NoKindMatchError if its version is not served.
func (s *Tables) Served(gvk schema.GroupVersionKind) (*Table, error) {
	if t := s.tables[gvk.GroupKind()]; t != nil && t.Kind.Serves(gvk.Version) {
		return t, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// Resource returns the group and plural name of the kind of an object.
func (s *Tables) Resource(target olmcore.Ref) schema.GroupResource {
	if t := s.tables[target.GVK().GroupKind()]; t != nil {
		return t.Kind.GroupResource()
	}
	return schema.GroupResource{Group: target.GVK().Group, Resource: strings.ToLower(target.Kind)}
}

// ApplyDefaults fills the omitted fields of an object.
func (k *Kind) ApplyDefaults(o olmcore.Object) {
	defaults.Apply(o)
	if k.Custom {
		k.Defaults.Apply(o)
	} else {
		defaults.OLM(k.GVK).Apply(o)
	}
}

// Serve serves a custom kind without a CRD, with a status subresource.
func (s *Tables) Serve(gvk schema.GroupVersionKind, namespaced bool) {
	if t := s.tables[gvk.GroupKind()]; t != nil {
		if t.Kind.Custom && !t.Kind.Serves(gvk.Version) {
			t.Kind.Versions = append(t.Kind.Versions, gvk.Version)
		}
		return
	}
	k := NewKind(gvk, []string{gvk.Version}, namespaced)
	k.Custom, k.HasStatus, k.HasGeneration = true, true, true
	s.tables[gvk.GroupKind()] = NewTable(k)
}

// IsTyped reports whether the library has a Go type for the kind.
func (k *Kind) IsTyped() bool { return k.goType != nil }

// Table returns the objects of a kind, or nil if the kind is not served.
func (s *Tables) Table(k schema.GroupKind) *Table { return s.tables[k] }

// All returns the objects of every served kind. The caller must not change the map.
func (s *Tables) All() map[schema.GroupKind]*Table { return s.tables }

// AddTable serves a kind that is not served yet.
func (s *Tables) AddTable(t *Table) { s.tables[t.Kind.GroupKind()] = t }

// RemoveTable stops to serve a kind without objects.
func (s *Tables) RemoveTable(k schema.GroupKind) { delete(s.tables, k) }

// SortedKinds returns the kinds that have objects, sorted by kind and group.
func (s *Tables) SortedKinds() []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(s.tables))
	for k, t := range s.tables {
		if t.count > 0 {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return olmcore.Key{Kind: a.Kind, Group: a.Group}.Compare(olmcore.Key{Kind: b.Kind, Group: b.Group})
	})
	return kinds
}
