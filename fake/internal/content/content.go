// SPDX-License-Identifier: Apache-2.0

// Package content checks fields of objects as the API server does: those that bundles of operators get wrong.
package content

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmcore/olm/olmcore"
)

// Problems returns what the API server rejects in an object, whatever was stored before. An update of an object that
// was loaded with such a problem is not rejected. current is nil for a new object.
//
// Some required fields may be missing, because tests seldom need them: the schema of a CustomResourceDefinition, its
// approval if its group belongs to Kubernetes, the keys of a Secret of type kubernetes.io/tls, the name of a volume's
// ConfigMap.
func Problems(next, current olmcore.Object) field.ErrorList {
	problems := problemsOf(next)
	if len(problems) > 0 && current != nil && len(problemsOf(current)) > 0 {
		return nil
	}
	sortErrors(problems)
	return problems
}

func sortErrors(problems field.ErrorList) {
	slices.SortFunc(problems, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
}

func problemsOf(o olmcore.Object) field.ErrorList {
	spec := field.NewPath("spec")
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return configMap(o)
	case *corev1.Secret:
		return secret(o)
	case *corev1.Service:
		return service(&o.Spec, spec)
	case *policyv1.PodDisruptionBudget:
		return budget(&o.Spec, spec)
	case *rbacv1.Role:
		return rules(o.Rules, true)
	case *rbacv1.ClusterRole:
		return append(rules(o.Rules, false), aggregation(o.AggregationRule)...)
	case *rbacv1.RoleBinding:
		return binding(&o.RoleRef, o.Subjects, true)
	case *rbacv1.ClusterRoleBinding:
		return binding(&o.RoleRef, o.Subjects, false)
	case *apiextensionsv1.CustomResourceDefinition:
		return definition(o)
	case *unstructured.Unstructured:
		if o.GetKind() == "PriorityClass" {
			return priorityClass(o)
		}
	}
	return nil
}
