// SPDX-License-Identifier: Apache-2.0

// Package kinds contains the table of the kinds of InstallPlan steps. A row describes how the objects of a kind are
// applied. The package also determines which other kinds an API server serves.
package kinds

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Kind defines how steps of one kind are applied. It is a row of a Table. Package step uses the rows, and has
// additional rules for ClusterServiceVersions, Subscriptions, CustomResourceDefinitions and copies of pull Secrets.
type Kind struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
	// Owned is true if the object gets an owner reference to the ClusterServiceVersion of the step. Labelled is true if
	// the object gets the owner labels instead, because it is cluster-scoped.
	Owned, Labelled bool
	// CreateOnly is true if any existing object satisfies the step, whatever its content.
	CreateOnly bool
	// Additive is true if the step also adds its content to an unmanaged object. Keep preserves the rest of the object. If
	// Additive is false, the step uses an unmanaged object unchanged, or fails.
	Additive bool
	// ByController is true if the object is written with the permissions of the controller, even if the plan runs as a
	// ServiceAccount.
	ByController bool
	// Keep adds fields of the existing object to an update. If Keep is nil, no field is kept. Immutable finds an immutable
	// field that an update would change. If Immutable is nil, every field can change.
	Keep      Keep
	Immutable Immutable
	// Order determines the position of the steps in a new plan: steps with a lower Order come first. The Order of kinds
	// that are not in Known is OtherKinds.
	Order int
	// Word is the name of the kind in OLM's messages. FailedCreate and FailedUpdate are the formats of OLM's errors, with
	// the name and the message as arguments. If a format is empty, Explain uses the default format.
	Word, FailedCreate, FailedUpdate string
}

// Immutable returns the name of an immutable field in which two objects differ, or an empty string if there is none.
// have is the existing object, and want is the desired one.
type Immutable func(have, want map[string]any) string

// Keep returns the desired object together with the fields of the existing object that a step must keep. have is the
// existing object, and want is the desired one. Keep may change want, and may return another map. managed is true if
// OLM manages the existing object.
type Keep func(have, want map[string]any, managed bool) map[string]any

// Kinds of steps with their own rules, as OLM names them. "Secret" is the copy of a pull Secret, and "BundleSecret" is
// a Secret from a bundle.
const (
	CSV            = v1alpha1.ClusterServiceVersionKind
	CRD            = "CustomResourceDefinition"
	Subscription   = v1alpha1.SubscriptionKind
	PullSecret     = "Secret"
	BundleSecret   = "BundleSecret"
	ServiceAccount = "ServiceAccount"
)

// Table maps OLM's names of kinds to rows.
type Table map[string]Kind

// Known is the table of the kinds of steps.
var Known = Table{
	CSV:          {GVK: olm(CSV), Namespaced: true, CreateOnly: true, Word: "csv"},
	Subscription: {GVK: olm(Subscription), Namespaced: true, CreateOnly: true, Order: 9, Word: "subscription"},
	CRD: {GVK: apiextensionsv1.SchemeGroupVersion.WithKind(CRD), ByController: true, Order: 1, Word: "crd",
		FailedCreate: "%[2]s", FailedUpdate: "error updating CRD %[1]q: %[2]s"},
	PullSecret: {GVK: core("Secret"), Namespaced: true, CreateOnly: true, Order: 3, Word: "secret",
		FailedCreate: "error creating secret %s - %s", FailedUpdate: "error creating secret %s - %s"},
	BundleSecret: {GVK: core("Secret"), Namespaced: true, Owned: true, Keep: keepSecret, Immutable: immutableSecret, Order: 3, Word: "secret",
		FailedCreate: "error updating secret: %s: %s", FailedUpdate: "error updating secret: %s: %s"},
	ServiceAccount: {
		GVK:        core("ServiceAccount"),
		Namespaced: true,
		Owned:      true,
		Additive:   true,
		Keep:       keepAccount,
		Order:      2,
		Word:       "service account:",
	},
	"Service": {
		GVK:          core("Service"),
		Namespaced:   true,
		Owned:        true,
		Keep:         keepService,
		Order:        7,
		Word:         "service:",
		FailedCreate: "error updating service: %s: %s",
	},
	"ConfigMap": {
		GVK:          core("ConfigMap"),
		Namespaced:   true,
		Owned:        true,
		Immutable:    immutableData,
		Order:        4,
		Word:         "configmap:",
		FailedCreate: "error updating configmap: %s: %s",
	},
	"Role":        {GVK: rbac("Role"), Namespaced: true, Owned: true, Order: 5, Word: "role"},
	"RoleBinding": {GVK: rbac("RoleBinding"), Namespaced: true, Owned: true, Immutable: immutableRoleRef, Order: 6, Word: "rolebinding"},

	"ClusterRole":        {GVK: rbac("ClusterRole"), Labelled: true, Order: 5, Word: "clusterrole"},
	"ClusterRoleBinding": {GVK: rbac("ClusterRoleBinding"), Labelled: true, Immutable: immutableRoleRef, Order: 6, Word: "clusterrolebinding"},
}

// Supported contains the kinds that steps may have in addition to Known, for any API group. Every API server serves the
// kinds with a GVK. A CustomResourceDefinition defines the others.
var Supported = Table{
	"PodDisruptionBudget": {GVK: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), Namespaced: true},
	"NetworkPolicy":       {GVK: networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), Namespaced: true},
	"PriorityClass":       {GVK: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), Immutable: immutablePriority},

	"PrometheusRule": {}, "ServiceMonitor": {}, "VerticalPodAutoscaler": {},
	"ConsoleYAMLSample": {}, "ConsoleQuickStart": {}, "ConsoleCLIDownload": {}, "ConsoleLink": {}, "ConsolePlugin": {},
}

func olm(kind string) schema.GroupVersionKind  { return v1alpha1.SchemeGroupVersion.WithKind(kind) }
func core(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }
func rbac(kind string) schema.GroupVersionKind { return rbacv1.SchemeGroupVersion.WithKind(kind) }

func keepSecret(have, want map[string]any, _ bool) map[string]any {
	_, set := want["type"]
	if !set && have["type"] != nil {
		want["type"] = have["type"]
	}
	return want
}

func immutableSecret(have, want map[string]any) string {
	t, ok := want["type"]
	if ok && t != "" && t != have["type"] && !(have["type"] == nil && t == "Opaque") {
		return "type"
	}
	return immutableData(have, want)
}

func immutableData(have, want map[string]any) string {
	switch {
	case have["immutable"] != true:
		return ""
	case !reflect.DeepEqual(have["data"], want["data"]) || !reflect.DeepEqual(have["binaryData"], want["binaryData"]):
		return "data"
	case want["immutable"] != true:
		return "immutable"
	}
	return ""
}

// keepAccount keeps the secrets that others added to a ServiceAccount. For an unmanaged ServiceAccount, it keeps
// everything else too.
func keepAccount(have, want map[string]any, managed bool) map[string]any {
	unionByName(want, have, "secrets")
	unionByName(want, have, "imagePullSecrets")
	if managed {
		return want
	}
	return map[string]any{"secrets": want["secrets"], "imagePullSecrets": want["imagePullSecrets"],
		"automountServiceAccountToken": have["automountServiceAccountToken"]}
}

// unionByName returns the entries of a list in have, followed by those of want with other names.
func unionByName(want, have map[string]any, field string) {
	kept, _ := have[field].([]any)
	added, _ := want[field].([]any)
	out, seen := append([]any{}, kept...), map[string]bool{}
	nameOf := func(entry any) string {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		return name
	}
	for _, entry := range kept {
		seen[nameOf(entry)] = true
	}
	for _, entry := range added {
		if name := nameOf(entry); !seen[name] {
			seen[name] = true
			out = append(out, entry)
		}
	}
	if len(out) > 0 {
		want[field] = out
	}
}

// keepService keeps the addresses and ports that the API server assigned.
func keepService(have, want map[string]any, _ bool) map[string]any {
	from, _ := have["spec"].(map[string]any)
	to, ok := want["spec"].(map[string]any)
	if !ok || from == nil {
		return want
	}
	for _, field := range [...]string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
		if isEmpty(to[field]) && !isEmpty(from[field]) {
			to[field] = runtime.DeepCopyJSONValue(from[field])
		}
	}
	if to["type"] == "NodePort" || to["type"] == "LoadBalancer" {
		keepNodePorts(from, to)
	}
	return want
}

func keepNodePorts(from, to map[string]any) {
	type port struct{ name, number, protocol string }
	key := func(p map[string]any) port {
		protocol, _ := p["protocol"].(string)
		return port{fmt.Sprint(p["name"]), fmt.Sprint(p["port"]), cmp.Or(protocol, "TCP")}
	}
	assigned := map[port]any{}
	old, _ := from["ports"].([]any)
	for _, entry := range old {
		p, ok := entry.(map[string]any)
		if ok && !isEmpty(p["nodePort"]) {
			assigned[key(p)] = p["nodePort"]
		}
	}
	ports, _ := to["ports"].([]any)
	for _, entry := range ports {
		p, ok := entry.(map[string]any)
		if ok && isEmpty(p["nodePort"]) && assigned[key(p)] != nil {
			p["nodePort"] = assigned[key(p)]
		}
	}
}

func immutableRoleRef(have, want map[string]any) string {
	roleRef := func(binding map[string]any) [3]any {
		ref, _ := binding["roleRef"].(map[string]any)
		group := ref["apiGroup"]
		if isEmpty(group) {
			group = "rbac.authorization.k8s.io"
		}
		return [3]any{group, ref["kind"], ref["name"]}
	}
	if !reflect.DeepEqual(roleRef(have), roleRef(want)) {
		return "roleRef"
	}
	return ""
}

func immutablePriority(have, want map[string]any) string {
	byDefault := map[string]any{"value": int64(0), "preemptionPolicy": "PreemptLowerPriority"}
	for _, field := range [...]string{"value", "preemptionPolicy"} {
		a, b := have[field], want[field]
		if a == nil {
			a = byDefault[field]
		}
		if b == nil {
			b = byDefault[field]
		}
		if !reflect.DeepEqual(a, b) {
			return field
		}
	}
	return ""
}

// isEmpty reports whether a JSON value is the zero value of its type.
func isEmpty(v any) bool {
	list, isList := v.([]any)
	return v == nil || v == "" || v == int64(0) || isList && len(list) == 0
}

// OtherKinds is the Order of kinds that are not in Known.
const OtherKinds = 8

// OrderOf returns the Order of the kind of a step. Steps with a lower Order come first in a new plan.
func OrderOf(s *v1alpha1.Step) int {
	if k, known := Known[s.Resource.Kind]; known {
		return k.Order
	}
	return OtherKinds
}

// IsGeneric reports whether the kind of a step is not in Known.
func IsGeneric(s *v1alpha1.Step) bool {
	_, known := Known[s.Resource.Kind]
	return !known
}

// IsSupported reports whether steps may have the given kind, which is not in Known. supported contains the allowed
// kinds. If supported is nil, the kinds of the table Supported are allowed.
func IsSupported(supported []string, kind string) bool {
	_, byDefault := Supported[kind]
	return slices.Contains(supported, kind) || supported == nil && byDefault
}

// Find returns the row of a kind that Known or Supported contains. Every API server serves these kinds. served is false
// if no row has the kind.
func Find(gvk schema.GroupVersionKind) (k Kind, served bool) {
	for _, table := range [...]Table{Known, Supported} {
		for _, k := range table {
			if k.GVK == gvk {
				return k, true
			}
		}
	}
	return Kind{}, false
}

// GVKOf returns the kind of the object of a step. It uses only the resource of the step, and does not read the
// manifest.
func GVKOf(s *v1alpha1.Step) schema.GroupVersionKind {
	if k, known := Known[s.Resource.Kind]; known {
		return k.GVK
	}
	return schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
}

// KeyOf returns the key of the object of a step. It uses only the resource of the step, and does not read the manifest.
// namespace is the namespace of the plan. ok is false if the kind is not served.
func KeyOf(s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition) (key olmcore.Key, ok bool) {
	gvk := GVKOf(s)
	k, known := Known[s.Resource.Kind]
	if !known {
		api := LookUp(gvk, crds)
		k.Namespaced, known = api.Namespaced, api.Kind
	}
	key = olmcore.Key{Group: gvk.Group, Kind: gvk.Kind, Name: s.Resource.Name}
	if k.Namespaced {
		key.Namespace = namespace
	}
	return key, known
}

// Served is the result of LookUp. Version is true if the API server serves the group and version of a kind. Kind is
// true if it also serves the kind. Namespaced is true if the kind is namespaced.
type Served struct {
	Version, Kind, Namespaced bool
}

// LookUp reports whether the API server serves a kind. LookUp knows the built-in kinds of Supported, and the kinds that
// the CustomResourceDefinitions in crds define. It does not know kinds of aggregated APIs.
func LookUp(gvk schema.GroupVersionKind, crds []*apiextensionsv1.CustomResourceDefinition) (answer Served) {
	k, ok := Supported[gvk.Kind]
	if ok && k.GVK == gvk {
		return Served{Version: true, Kind: true, Namespaced: k.Namespaced}
	}
	for _, k := range Supported {
		answer.Version = answer.Version || k.GVK.Kind != "" && k.GVK.GroupVersion() == gvk.GroupVersion()
	}
	for _, crd := range crds {
		if crd.Spec.Group != gvk.Group {
			continue
		}
		live := crd.DeletionTimestamp == nil && Established(crd) && slices.ContainsFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served })
		answer.Version = answer.Version || live
		if crd.Spec.Names.Kind == gvk.Kind {
			answer.Namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			answer.Kind = answer.Kind || live
		}
	}
	return answer
}

// Established reports whether the API of a CustomResourceDefinition is served.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	is := map[apiextensionsv1.CustomResourceDefinitionConditionType]bool{}
	for _, c := range crd.Status.Conditions {
		is[c.Type] = c.Status == apiextensionsv1.ConditionTrue
	}
	return is[apiextensionsv1.Established] && is[apiextensionsv1.NamesAccepted]
}

// Explain returns the message of OLM for a write that the API server rejected. name is the name of the object, and
// message is the error of the API server. exists is true for an update, and false for a creation.
func (k Kind) Explain(name string, exists bool, message string) string {
	verb, format := "creating", k.FailedCreate
	if exists {
		verb, format = "updating", k.FailedUpdate
	}
	if format == "" {
		return fmt.Sprintf("error %s %s %s: %s", verb, k.Word, name, message)
	}
	return fmt.Sprintf(format, name, message)
}

// IsVersionReference reports whether an owner reference is to a ClusterServiceVersion.
func IsVersionReference(r metav1.OwnerReference) bool {
	return r.Kind == CSV && strings.HasPrefix(r.APIVersion, v1alpha1.GroupName+"/")
}
