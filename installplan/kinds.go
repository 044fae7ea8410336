// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stepKind is how steps of one kind are applied.
type stepKind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	// createOnly: an object that exists satisfies the step whatever its content.
	createOnly bool
	// owned: the object gets an owner reference to the step's
	// ClusterServiceVersion.
	owned bool
	// labelled: it gets the owner labels instead, as it has no namespace.
	labelled bool
	generic  bool
	// word is what messages call it.
	word string
}

const (
	kindCSV          = v1alpha1.ClusterServiceVersionKind
	kindCRD          = "CustomResourceDefinition"
	kindSubscription = v1alpha1.SubscriptionKind
	kindPullSecret   = "Secret"
	kindBundleSecret = "BundleSecret"
)

// knownKinds are the kinds of steps that are applied in a way of their own. The
// kind of a step is OLM's word: "Secret" is the copy of a pull Secret,
// "BundleSecret" a Secret from a bundle.
var knownKinds = map[string]stepKind{
	kindCSV:              {gvk: v1alpha1.SchemeGroupVersion.WithKind(kindCSV), namespaced: true, createOnly: true, word: "csv"},
	kindCRD:              {gvk: apiextensionsv1.SchemeGroupVersion.WithKind(kindCRD), word: "crd"},
	kindSubscription:     {gvk: v1alpha1.SchemeGroupVersion.WithKind(kindSubscription), namespaced: true, createOnly: true, word: "subscription"},
	kindPullSecret:       {gvk: corev1.SchemeGroupVersion.WithKind("Secret"), namespaced: true, createOnly: true, word: "secret"},
	kindBundleSecret:     {gvk: corev1.SchemeGroupVersion.WithKind("Secret"), namespaced: true, owned: true, word: "secret"},
	"ServiceAccount":     {gvk: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), namespaced: true, owned: true, word: "service account:"},
	"Service":            {gvk: corev1.SchemeGroupVersion.WithKind("Service"), namespaced: true, owned: true, word: "service:"},
	"ConfigMap":          {gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespaced: true, owned: true, word: "configmap:"},
	"Role":               {gvk: rbacv1.SchemeGroupVersion.WithKind("Role"), namespaced: true, owned: true, word: "role"},
	"RoleBinding":        {gvk: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), namespaced: true, owned: true, word: "rolebinding"},
	"ClusterRole":        {gvk: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), labelled: true, word: "clusterrole"},
	"ClusterRoleBinding": {gvk: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), labelled: true, word: "clusterrolebinding"},
}

// builtin are the generic kinds that every API server serves.
var builtin = map[schema.GroupVersionKind]bool{ // kind -> namespaced
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):        true,
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"):          true,
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}: false,
}

// served is what can be known about the API of a generic kind.
type served struct {
	versionServed, kindServed, namespaced bool
	// by is the CustomResourceDefinition that defines the kind, nil for others.
	by *apiextensionsv1.CustomResourceDefinition
}

// lookUp says whether the API server serves a kind: kinds of its own, and those
// that a CustomResourceDefinition defines. An aggregated API that no
// CustomResourceDefinition describes is not seen.
func lookUp(gvk schema.GroupVersionKind, crds []*apiextensionsv1.CustomResourceDefinition) served {
	if namespaced, ok := builtin[gvk]; ok {
		return served{versionServed: true, kindServed: true, namespaced: namespaced}
	}
	var answer served
	for known := range builtin {
		answer.versionServed = answer.versionServed || known.GroupVersion() == gvk.GroupVersion()
	}
	for _, crd := range crds {
		if crd == nil || crd.Spec.Group != gvk.Group {
			continue
		}
		live := crd.DeletionTimestamp == nil && established(crd) && slices.ContainsFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served })
		answer.versionServed = answer.versionServed || live
		if crd.Spec.Names.Kind == gvk.Kind {
			answer.by = crd
			answer.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			answer.kindServed = answer.kindServed || live
		}
	}
	return answer
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
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
