// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// gap describes what a permission lacks in the places where it should hold.
type gap struct {
	// missing is true if a role or binding does not exist.
	missing bool
	// changed is true if an existing role or binding has other rules or subjects, or if an earlier CSV of the same name
	// left it behind. Its correction may grant more, or make it a proof.
	changed bool
}

// gapOf compares a permission with what is observed in the places of a scope. While the operator is being installed, a
// target namespace without a copied CSV is a gap, because the plan may be deleted before the namespace is created.
func (g grant) gapOf(f *facts, places []place) (lacks gap) {
	lacks.missing = isBeingInstalled(f.csv) && len(places) < len(f.scope.namespaces)
	for _, to := range places {
		have := f.observed[to.key("Role", g.role.Name)]
		switch {
		case have == nil:
			lacks.missing = true
		case !to.owns(f.csv, have), have.GetDeletionTimestamp() != nil:
		case !to.hasRules(have, g), to.isLeftBehind(f.csv, have):
			lacks.changed = true
		}
		bound := f.observed[to.key("RoleBinding", g.binding.Name)]
		switch {
		case bound == nil:
			lacks.missing = true
		case !to.owns(f.csv, bound), bound.GetDeletionTimestamp() != nil:
		case to.isLeftBehind(f.csv, bound):
			lacks.changed = true
		default:
			live := contentOf(bound)
			lacks.changed = lacks.changed || live.RoleRef == to.roleRef(g) && !slices.Equal(live.Subjects, g.binding.Subjects)
		}
	}
	return lacks
}

// isLeftBehind reports whether an earlier CSV of the same name left a ClusterRole or ClusterRoleBinding behind. Objects
// that OLM created do not record the UID of their CSV. They are treated as objects of every CSV with the name.
func (p place) isLeftBehind(c *v1alpha1.ClusterServiceVersion, o metav1.Object) bool {
	return p.copy == nil && !model.OwnerWithUID(c).Owns(o.GetLabels())
}

// key returns the key of a role or binding in a place. kind is Role or RoleBinding.
func (p place) key(kind, name string) olmcore.Key {
	if p.copy == nil {
		return olmcore.Key{Group: rbacv1.GroupName, Kind: "Cluster" + kind, Name: name}
	}
	return olmcore.Key{Group: rbacv1.GroupName, Kind: kind, Namespace: p.copy.Namespace, Name: name}
}

// hasRules reports whether a role has the rules of a permission in a place, and aggregates no others.
func (p place) hasRules(have olmcore.Object, g grant) bool {
	live := contentOf(have)
	if p.copy == nil {
		n := len(live.Rules) - 1
		if n < 0 || !isSameRule(live.Rules[n], readNamespaces) {
			return false
		}
		live.Rules = live.Rules[:n]
	}
	return live.Aggregated == nil && slices.EqualFunc(live.Rules, g.rules, isSameRule)
}

// isSameRule reports whether two rules are equal. It allocates nothing, because Gather also compares operators at rest.
func isSameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// needProof returns the permissions that would be granted outside the namespace of the operator for the first time.
// Only an InstallPlan or a cluster administrator can prove them. An operator at rest has none of these.
func needProof(f *facts) (open []grant) {
	if !f.isConfirmed {
		return nil
	}
	places := f.barePlaces()
	kept, isMissing := (*records)(nil), false
	changed := map[string]bool{}
	for _, g := range f.grants {
		lacks := g.gapOf(f, places)
		if !lacks.changed && !(lacks.missing && isInstalled(f.csv) && g.problem(f) == "" && g.isCreated(f)) {
			continue
		}
		if kept == nil {
			kept = recordsOf(f)
		}
		if !g.isGrantedBefore(f, kept, places) {
			open, changed[g.role.Name] = append(open, g), lacks.changed
			isMissing = isMissing || !lacks.changed
		}
	}
	if isMissing && !areUnmet(f) { // then nothing is created
		open = slices.DeleteFunc(open, func(g grant) bool { return !changed[g.role.Name] })
	}
	return open
}

// adopted returns the permissions that hold outside the namespace of the operator although the library has no record of
// them. OLM usually granted them, and it grants every Role of the namespace that has the right labels.
func adopted(f *facts) (found []grant) {
	places := f.barePlaces()
	for _, g := range f.grants {
		record := f.observed[place{}.key("Role", g.role.Name)]
		isRecord := record != nil && record.GetLabels()[olmcore.LabelOwnerUID] == string(f.csv.UID)
		holds := func(p place) bool {
			role, binding := f.observed[p.key("Role", g.role.Name)], f.observed[p.key("RoleBinding", g.binding.Name)]
			return role != nil && binding != nil && p.owns(f.csv, role) && p.owns(f.csv, binding)
		}
		if len(g.rules) > 0 && !isRecord && slices.ContainsFunc(places, holds) {
			found = append(found, g)
		}
	}
	return found
}

// isGrantedBefore reports whether the library or OLM granted the rules of a permission to its ServiceAccount before,
// outside the namespace of the operator.
func (g grant) isGrantedBefore(f *facts, kept *records, places []place) bool {
	return len(g.rules) == 0 || kept.prove(g) || slices.ContainsFunc(places, func(p place) bool { return g.isCopied(f, p) })
}

// isCoveredBy reports whether rules allow all that a permission does.
func (g grant) isCoveredBy(rules []rbacv1.PolicyRule) bool {
	granted := rbac.GrantedBy(rules)
	return len(rules) > 0 && !slices.ContainsFunc(g.rules, func(r rbacv1.PolicyRule) bool { return !granted.InNamespace(r) })
}

// roleName returns the name that the Role of a permission has, or an empty name if there is no such Role.
func roleName(version string, account rbac.Account, rules []rbacv1.PolicyRule) string {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: version}}
	strategy := &c.Spec.InstallStrategy
	strategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	strategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account.Name, Rules: rules}}
	planned, err := olmcore.PermissionObjects(c)
	if err != nil {
		return ""
	}
	for _, o := range planned {
		if role, is := o.(*rbacv1.Role); is {
			return role.Name
		}
	}
	return ""
}

// isCopied reports whether a target namespace has the Role and the RoleBinding of a permission, owned by the copied
// ClusterServiceVersion there. A tenant who may write Roles in that namespace and the spec of the CSV can forge them.
// See docs/security.md.
func (g grant) isCopied(f *facts, p place) bool {
	if p.copy == nil {
		return false
	}
	isOurs := func(o olmcore.Object) bool {
		return o.GetDeletionTimestamp() == nil && olmcore.OwnedBy(o, p.copy.UID) && model.OwnerOf(p.copy).Owns(o.GetLabels())
	}
	role, isRole := f.observed[p.key("Role", g.role.Name)].(*rbacv1.Role)
	binding, isBinding := f.observed[p.key("RoleBinding", g.binding.Name)].(*rbacv1.RoleBinding)
	return isRole && isBinding && isOurs(role) && isOurs(binding) && binding.RoleRef == p.roleRef(g) &&
		g.account.IsBound(binding.Subjects, p.copy.Namespace) && g.isCoveredBy(role.Rules)
}
