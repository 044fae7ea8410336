// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the ClusterServiceVersions whose outcome may change when o is added, updated or deleted.
// A key with an empty Name means all ClusterServiceVersions of the Namespace. The zero key means all
// ClusterServiceVersions of the cluster. See olmcore.ExpandKeys. For an update, call Affected for the old and the new
// object, and use the keys of both calls. If a key has an empty Name, use Concerned to select the
// ClusterServiceVersions to reconcile.
//
// Affected may return no key for an object of another owner that has the name of an object that Reconcile creates.
// Reconcile checks such an object again after at most a minute.
func Affected(o olmcore.Object) []types.NamespacedName {
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		if from := o.Labels[olmcore.LabelCopiedFrom]; from != "" {
			return []types.NamespacedName{{Namespace: from, Name: o.Name}}
		}
		return inNamespace(o.Namespace, o.Name)
	case *operatorsv1.OperatorGroup, *corev1.ServiceAccount:
		return inNamespace(o.GetNamespace(), "")
	case *rbacv1.Role, *rbacv1.RoleBinding:
		owner, labelled := olmcore.OwnerOf(o.GetLabels())
		from := o.GetLabels()[olmcore.LabelCopiedFrom]
		if from != "" && labelled {
			return []types.NamespacedName{{Namespace: from, Name: owner.Name}}
		}
		return inNamespace(o.GetNamespace(), "")
	case *rbacv1.ClusterRole, *apiregistrationv1.APIService:
		return []types.NamespacedName{{}} // Concerned selects those that are affected
	case *rbacv1.ClusterRoleBinding:
		return affectedByBinding(o)
	case *v1alpha1.InstallPlan:
		return affectedByPlan(o)
	case *corev1.Namespace:
		return inNamespace(o.Name, "")
	case *apiextensionsv1.CustomResourceDefinition:
		keys := model.InstalledAlongside(o)
		if owner, labelled := model.LabelledOwner(o); labelled {
			keys = append(keys, owner)
		}
		return keys
	}
	return nil
}

func inNamespace(namespace, name string) []types.NamespacedName {
	if namespace == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: namespace, Name: name}}
}

// affectedByPlan returns the keys of the ClusterServiceVersions whose Roles a plan lists.
func affectedByPlan(p *v1alpha1.InstallPlan) (keys []types.NamespacedName) {
	for _, s := range p.Status.Plan {
		if s == nil || s.Resolving == "" || s.Resource.Kind != "Role" && s.Resource.Kind != "RoleBinding" {
			continue
		}
		if key := (types.NamespacedName{Namespace: p.Namespace, Name: s.Resolving}); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// affectedByBinding returns the key of the ClusterServiceVersion that a ClusterRoleBinding was lifted for, and keys for
// those whose ServiceAccounts it may bind.
func affectedByBinding(b *rbacv1.ClusterRoleBinding) []types.NamespacedName {
	namespaces, all := rbac.SubjectNamespaces(b.Subjects)
	if all {
		return []types.NamespacedName{{}}
	}
	var keys []types.NamespacedName
	if owner, labelled := model.LabelledOwner(b); labelled {
		keys = append(keys, owner)
	}
	for _, n := range namespaces {
		keys = append(keys, types.NamespacedName{Namespace: n})
	}
	return keys
}

// Terms calls add with each index term of a ClusterServiceVersion. If Concerned returns terms for a change that affects
// the ClusterServiceVersion, they contain at least one of these terms.
func Terms(c *v1alpha1.ClusterServiceVersion, add func(olmcore.Term)) {
	if !isDecided(c) {
		return
	}
	add(model.OwnerTerm(c))
	if replaced := replacedBy(c); replaced != nil {
		add(model.OwnerTerm(replaced))
	}
	add(ofBeginning(c.Name[:min(len(c.Name), namePrefix)]))
	for _, a := range providedAPIs(c) {
		add(ofRoles(a.base()))
		if a.service != "" {
			add(ofGroup(a.Group))
			add(ofService(a.service))
		}
	}
	for _, p := range c.Spec.InstallStrategy.StrategySpec.Permissions {
		for _, rule := range p.Rules {
			rbac.AddTerms(rule, add)
		}
	}
}

// replacedBy returns an object with only the metadata of the version that c replaces, or nil if it replaces none.
func replacedBy(c *v1alpha1.ClusterServiceVersion) *v1alpha1.ClusterServiceVersion {
	name := c.Spec.Replaces
	if name != "" && name != c.Name && model.IsLabelValue(name) {
		return &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	}
	return nil
}

// The following functions return index terms: for the beginning of a name, for the ClusterRoles for an API, for an API
// group, and for an APIService.

func ofBeginning(name string) olmcore.Term { return olmcore.Term{Of: "name", Value: name} }
func ofRoles(base string) olmcore.Term     { return olmcore.Term{Of: "roles", Value: base} }
func ofGroup(name string) olmcore.Term     { return olmcore.Term{Of: "group", Value: name} }
func ofService(name string) olmcore.Term   { return olmcore.Term{Of: "service", Value: name} }

// termsOfRole returns the index terms of the ClusterServiceVersions that a ClusterRole with a name may belong to.
func termsOfRole(name string) (terms []olmcore.Term) {
	for n := range min(len(name), namePrefix) + 1 {
		terms = append(terms, ofBeginning(name[:n]))
	}
	for _, suffix := range roleSuffixes() {
		if base, is := strings.CutSuffix(name, "-"+suffix); is {
			terms = append(terms, ofRoles(base))
		}
	}
	return terms
}

// Concerned selects the ClusterServiceVersions that the change of an object from old to next affects. If Affected
// returns a key for several ClusterServiceVersions, use Concerned to select among them. old is nil if the old object is
// not known. isConcerned reports whether the change affects a ClusterServiceVersion. terms contains the index terms of
// those that may be affected, see Terms. Nil means that all may be affected.
func Concerned(old, next olmcore.Object) (isConcerned func(*v1alpha1.ClusterServiceVersion) bool, terms []olmcore.Term) {
	concerns := func(*v1alpha1.ClusterServiceVersion, olmcore.Object) bool { return true }
	switch next := next.(type) {
	case *rbacv1.ClusterRole:
		before, _ := old.(*rbacv1.ClusterRole)
		granted := rbac.Changed(before, next).Terms()
		terms = slices.Concat(granted, termsOfRole(next.Name), ownersOfRoles(before, next))
		touched := hasAnyTerm(granted)
		concerns = func(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool { return concernsRole(c, o, touched) }
	case *rbacv1.ClusterRoleBinding:
		concerns = func(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool {
			return model.OwnerOf(c).Owns(o.GetLabels()) || len(c.Spec.InstallStrategy.StrategySpec.Permissions) > 0
		}
	case *corev1.Namespace:
		before, is := old.(*corev1.Namespace)
		isSame := is && before.Annotations[AnnotationAllowed] == next.Annotations[AnnotationAllowed] && before.UID == next.UID
		concerns = func(*v1alpha1.ClusterServiceVersion, olmcore.Object) bool { return !isSame }
	case *apiregistrationv1.APIService:
		terms = []olmcore.Term{ofService(next.Name), ofGroup(next.Spec.Group)}
		if before, is := old.(*apiregistrationv1.APIService); is {
			terms = append(terms, ofGroup(before.Spec.Group))
		}
		concerns = func(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool {
			service, is := o.(*apiregistrationv1.APIService)
			return is && slices.ContainsFunc(providedAPIs(c), func(a providedAPI) bool { return a.isOfGroup(service) })
		}
	}
	return func(c *v1alpha1.ClusterServiceVersion) bool {
		return isDecided(c) && (concerns(c, next) || old != nil && concerns(c, old))
	}, terms
}

// concernsRole reports whether a ClusterRole belongs to a ClusterServiceVersion, has a name that it needs, or has
// changed rules that may grant a permission of its operator.
func concernsRole(c *v1alpha1.ClusterServiceVersion, role olmcore.Object, touched func(rbacv1.PolicyRule) bool) bool {
	isNeeded := func(a providedAPI) bool { return slices.Contains(a.roleNames(), role.GetName()) }
	replaced := replacedBy(c)
	isOfReplaced := replaced != nil && model.OwnerOf(replaced).Owns(role.GetLabels()) // it may prove permissions
	if model.OwnerOf(c).Owns(role.GetLabels()) || isOfReplaced || slices.ContainsFunc(providedAPIs(c), isNeeded) {
		return true
	}
	touches := func(rules []rbacv1.PolicyRule) bool { return slices.ContainsFunc(rules, touched) }
	permissions := c.Spec.InstallStrategy.StrategySpec.Permissions
	isTouched := slices.ContainsFunc(permissions, func(p v1alpha1.StrategyDeploymentPermissions) bool { return touches(p.Rules) })
	if !isTouched && !strings.HasPrefix(role.GetName(), c.Name[:min(len(c.Name), namePrefix)]) {
		return false // computing the names of its permissions, which are hashes, is not necessary
	}
	grants, _ := grantsOf(c)
	return namesOf(grants).Has(role.GetName()) || slices.ContainsFunc(grants, func(g grant) bool { return touches(g.rules) })
}

// ownersOfRoles returns the index terms of the owners of two versions of a ClusterRole. before may be nil.
func ownersOfRoles(before, next *rbacv1.ClusterRole) []olmcore.Term {
	if before == nil {
		return model.OwnerTerms(next)
	}
	return append(model.OwnerTerms(next), model.OwnerTerms(before)...)
}

// hasAnyTerm returns a function that reports whether a required rule has one of the index terms.
func hasAnyTerm(terms []olmcore.Term) func(rbacv1.PolicyRule) bool {
	wanted := sets.New(terms...)
	return func(rule rbacv1.PolicyRule) (has bool) {
		rbac.AddTerms(rule, func(term olmcore.Term) { has = has || wanted.Has(term) })
		return has
	}
}

// namePrefix is the number of characters of a CSV's name that the names of its Roles contain at least.
const namePrefix = 16
