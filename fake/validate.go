// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake/internal/content"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// validate checks what the API server checks and OLM can run into: metadata of every kind, and of some kinds the fields
// that make a write Invalid. current is nil for a new object.
func (c *Cluster) validate(k *store.Kind, next, current olmcore.Object) error {
	metadata := field.NewPath("metadata")
	problems := validation.ValidateObjectMetaAccessor(next, k.Namespaced, nameRule(k), metadata)
	if current != nil && current.GetDeletionTimestamp() != nil {
		problems = append(
			problems,
			validation.ValidateNoNewFinalizers(next.GetFinalizers(), current.GetFinalizers(), metadata.Child("finalizers"))...)
	}
	problems = append(problems, finalizerProblems(k, next.GetFinalizers(), metadata.Child("finalizers"))...)
	problems = append(problems, content.Changes(next, current)...)
	problems = append(problems, content.Problems(next, current)...)
	if len(problems) > 0 {
		return apierrors.NewInvalid(k.GroupKind(), next.GetName(), problems)
	}
	return nil
}

func nameRule(k *store.Kind) validation.ValidateNameFunc {
	switch {
	case k.GVK.Group == rbacv1.GroupName:
		return pathSegment
	case k.GroupKind() == store.NamespaceKind:
		return validation.NameIsDNSLabel
	case k.GroupKind() == store.ServiceKind:
		return validation.NameIsDNS1035Label // as before Kubernetes 1.34; later ones also take a digit first
	}
	return validation.NameIsDNSSubdomain
}

// finalizerProblems: the kinds of Kubernetes itself take a finalizer without a domain only when it is one of their own.
func finalizerProblems(k *store.Kind, finalizers []string, at *field.Path) (problems field.ErrorList) {
	switch {
	case k.Custom, k.GVK.Group == "operators.coreos.com", k.GVK.Group == apiextensionsv1.GroupName, k.GVK.Group == apiregistrationv1.GroupName:
		return nil
	}
	for i, f := range finalizers {
		switch {
		case strings.Contains(f, "/"),
			f == string(corev1.FinalizerKubernetes),
			f == metav1.FinalizerOrphanDependents,
			f == metav1.FinalizerDeleteDependents:
		default:
			problems = append(problems, field.Invalid(at.Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return problems
}

// pathSegment accepts what fits into a URL: the rule for RBAC names.
func pathSegment(name string, _ bool) []string {
	switch {
	case name == "." || name == "..":
		return []string{"may not be '" + name + "'"}
	case strings.ContainsAny(name, "/%"):
		return []string{"may not contain '/' or '%'"}
	}
	return nil
}
