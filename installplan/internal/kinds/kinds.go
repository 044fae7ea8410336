// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of the kinds of InstallPlan steps, and says which other
// kinds an API server serves.
package kinds

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Kind is how steps of one kind are applied.
type Kind struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
	// CreateOnly: an object that exists satisfies the step whatever its content.
	CreateOnly bool
	// Owned: the object gets an owner reference to the step's
	// ClusterServiceVersion.
	Owned bool
	// Labelled: it gets the owner labels instead, as it has no namespace.
	Labelled bool
	// Generic: it is no row of Known.
	Generic bool
	// Word is what messages call it.
	Word string
}

// Kinds of steps as OLM names them.
const (
	CSV          = v1alpha1.ClusterServiceVersionKind
	CRD          = "CustomResourceDefinition"
	Subscription = v1alpha1.SubscriptionKind
	PullSecret   = "Secret"
	BundleSecret = "BundleSecret"
)

// Known are the kinds of steps that are applied in a way of their own. The
// kind of a step is OLM's word: "Secret" is the copy of a pull Secret,
// "BundleSecret" a Secret from a bundle.
var Known = map[string]Kind{
	CSV:                  {GVK: v1alpha1.SchemeGroupVersion.WithKind(CSV), Namespaced: true, CreateOnly: true, Word: "csv"},
	CRD:                  {GVK: apiextensionsv1.SchemeGroupVersion.WithKind(CRD), Word: "crd"},
	Subscription:         {GVK: v1alpha1.SchemeGroupVersion.WithKind(Subscription), Namespaced: true, CreateOnly: true, Word: "subscription"},
	PullSecret:           {GVK: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true, CreateOnly: true, Word: "secret"},
	BundleSecret:         {GVK: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true, Owned: true, Word: "secret"},
	"ServiceAccount":     {GVK: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Namespaced: true, Owned: true, Word: "service account:"},
	"Service":            {GVK: corev1.SchemeGroupVersion.WithKind("Service"), Namespaced: true, Owned: true, Word: "service:"},
	"ConfigMap":          {GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true, Owned: true, Word: "configmap:"},
	"Role":               {GVK: rbacv1.SchemeGroupVersion.WithKind("Role"), Namespaced: true, Owned: true, Word: "role"},
	"RoleBinding":        {GVK: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Namespaced: true, Owned: true, Word: "rolebinding"},
	"ClusterRole":        {GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Labelled: true, Word: "clusterrole"},
	"ClusterRoleBinding": {GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), Labelled: true, Word: "clusterrolebinding"},
}

// KeyOf returns the object that a step of a plan in a namespace names, going by its
// resource alone. ok is false when its kind is not served.
func KeyOf(s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition) (key olmcore.Key, ok bool) {
	key = olmcore.Key{Group: s.Resource.Group, Kind: s.Resource.Kind, Name: s.Resource.Name}
	namespaced := false
	if k, known := Known[s.Resource.Kind]; known {
		key.Group, key.Kind, namespaced, ok = k.GVK.Group, k.GVK.Kind, k.Namespaced, true
	} else {
		api := LookUp(schema.GroupVersionKind{Group: key.Group, Version: s.Resource.Version, Kind: key.Kind}, crds)
		namespaced, ok = api.Namespaced, api.Kind
	}
	if namespaced {
		key.Namespace = namespace
	}
	return key, ok
}

// Builtin are the kinds besides Known that every API server serves.
var Builtin = map[schema.GroupVersionKind]bool{ // kind -> namespaced
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):        true,
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"):          true,
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}: false,
}

// Served is what is known about the API of a kind that is no row of Known.
type Served struct {
	Version, Kind, Namespaced bool
	// By is the CustomResourceDefinition that defines the kind, nil for others.
	By *apiextensionsv1.CustomResourceDefinition
}

// LookUp says whether the API server serves a kind: kinds of its own, and those
// that a CustomResourceDefinition defines. An aggregated API that no
// CustomResourceDefinition describes is not seen.
func LookUp(gvk schema.GroupVersionKind, crds []*apiextensionsv1.CustomResourceDefinition) Served {
	if namespaced, ok := Builtin[gvk]; ok {
		return Served{Version: true, Kind: true, Namespaced: namespaced}
	}
	var answer Served
	for known := range Builtin {
		answer.Version = answer.Version || known.GroupVersion() == gvk.GroupVersion()
	}
	for _, crd := range crds {
		if crd == nil || crd.Spec.Group != gvk.Group {
			continue
		}
		live := crd.DeletionTimestamp == nil && Established(crd) && slices.ContainsFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served })
		answer.Version = answer.Version || live
		if crd.Spec.Names.Kind == gvk.Kind {
			answer.By = crd
			answer.Namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			answer.Kind = answer.Kind || live
		}
	}
	return answer
}

// Established reports whether the API of a definition is served.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	var up, named bool
	for _, c := range crd.Status.Conditions {
		switch c.Type {
		case apiextensionsv1.Established:
			up = c.Status == apiextensionsv1.ConditionTrue
		case apiextensionsv1.NamesAccepted:
			named = c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return up && named
}
