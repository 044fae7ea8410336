// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the CSVs for which o's addition, change or
// deletion can change the outcome; an empty Name stands for every CSV of the
// Namespace, the zero key for every CSV (olmcore.ExpandKeys). Call it for the old
// and the new object and take both answers.
//
// What a clean-up waits for beyond these, such as CSVs of other namespaces that
// use the same CRDs and instances of CRDs without owner labels, it looks at again
// after at most a minute.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.RefOf(o).Kind == "" {
		return nil
	}
	owned := ownersOf(o)
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		if isCopied(o) {
			keys := []types.NamespacedName{{Namespace: o.Namespace, Name: o.Name}}
			if from := o.Labels[v1alpha1.CopiedLabelKey]; from != "" {
				keys = append(keys, types.NamespacedName{Namespace: from, Name: o.Name}) // whose clean-up deletes it
			}
			return keys
		}
		// Those that replace it are not known from it.
		return []types.NamespacedName{{Namespace: o.Namespace}}
	case *operatorsv1.OperatorGroup:
		if groupAPIs(o) != "" {
			return []types.NamespacedName{{}} // who provides the same is not known from it
		}
		return []types.NamespacedName{{Namespace: o.Namespace}}
	case *rbacv1.Role, *rbacv1.RoleBinding, *corev1.ServiceAccount:
		return []types.NamespacedName{{Namespace: o.GetNamespace()}}
	case *operatorsv2.OperatorCondition, *appsv1.Deployment:
		// A Deployment that nobody owns can stand in the way of any CSV.
		return []types.NamespacedName{{Namespace: o.GetNamespace()}}
	case *v1alpha1.Subscription:
		for _, name := range [...]string{o.Status.InstalledCSV, o.Status.CurrentCSV} {
			if key := (types.NamespacedName{Namespace: o.Namespace, Name: name}); name != "" && (len(owned) == 0 || owned[len(owned)-1] != key) {
				owned = append(owned, key)
			}
		}
		return owned
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: o.Name}}
	case *rbacv1.ClusterRoleBinding:
		return append(owned, subjectNamespaces(o.Subjects)...)
	case *rbacv1.ClusterRole, *apiextensionsv1.CustomResourceDefinition, *apiregistrationv1.APIService:
		return []types.NamespacedName{{}}
	}
	return owned
}

// ownersOf reads the CSV that the owner labels or owner references name.
func ownersOf(o olmcore.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
	}
	for _, r := range o.GetOwnerReferences() {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name}
		if isCSVReference(&r) && key.Namespace != "" && (len(keys) == 0 || keys[0] != key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// subjectNamespaces are the namespaces whose ServiceAccounts a binding can mean.
func subjectNamespaces(subjects []rbacv1.Subject) []types.NamespacedName {
	var keys []types.NamespacedName
	for i := range subjects {
		s := &subjects[i]
		namespace, known := s.Namespace, s.Kind == rbacv1.ServiceAccountKind
		if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok && s.Kind == rbacv1.UserKind {
			namespace, _, known = strings.Cut(rest, ":")
		}
		if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccounts:"); ok && s.Kind == rbacv1.GroupKind {
			namespace, known = rest, true
		}
		switch {
		case known && namespace != "":
			keys = append(keys, types.NamespacedName{Namespace: namespace})
		case s.Kind == rbacv1.GroupKind:
			return []types.NamespacedName{{}}
		}
	}
	return keys
}

// Providers returns the test for original CSVs that provide an API which one of the
// OperatorGroups lists: of those in other namespaces no change of a group concerns
// any other, while Affected, which knows the group alone, returns all.
func Providers(groups ...*operatorsv1.OperatorGroup) func(*v1alpha1.ClusterServiceVersion) bool {
	listed := map[api]bool{}
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, a := range parseAPIs(groupAPIs(g)) {
			listed[a] = true
		}
	}
	return func(c *v1alpha1.ClusterServiceVersion) bool {
		return c != nil && !isCopied(c) && slices.ContainsFunc(providedAPIs(c), func(a api) bool { return listed[a] })
	}
}
