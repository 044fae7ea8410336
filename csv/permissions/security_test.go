// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

var everything = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}

// right is one action that a subject is allowed.
type right struct{ subject, verb, group, resource, name string }

// rightsOf returns the rights that rules give subjects, one by one, among those that the tests know.
func rightsOf(subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) map[right]bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	rights := map[right]bool{}
	for _, s := range subjects {
		who := strings.Join([]string{s.Kind, s.Namespace, s.Name}, "/")
		for _, r := range rules {
			for _, verb := range []string{"get", "list", "watch", "delete", "escalate", "anything"} {
				for _, group := range []string{"", "apps", "anything"} {
					for _, resource := range []string{"pods", "secrets", "namespaces", "anything"} {
						for _, name := range []string{"", "one", "anything"} {
							named := len(r.ResourceNames) == 0 || name != "" && slices.Contains(r.ResourceNames, name)
							if has(r.Verbs, verb) && has(r.APIGroups, group) && has(r.Resources, resource) && named {
								rights[right{who, verb, group, resource, name}] = true
							}
						}
					}
				}
			}
			for _, url := range r.NonResourceURLs {
				rights[right{who, strings.Join(r.Verbs, ","), "URL", url, ""}] = true
			}
		}
	}
	return rights
}

// granted returns the rights that the spec of a CSV grants in other namespaces, and the right to read namespaces.
func granted(c *v1alpha1.ClusterServiceVersion) map[right]bool {
	rights := map[right]bool{}
	for _, p := range c.Spec.InstallStrategy.StrategySpec.Permissions {
		subject := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.Namespace, Name: p.ServiceAccountName}}
		onResources := slices.DeleteFunc(slices.Clone(p.Rules), func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 })
		for r := range rightsOf(subject, append(onResources, namespaces)) {
			rights[r] = true
		}
	}
	return rights
}

// writtenBy returns the object that an action creates or updates to. It is nil for other actions.
func writtenBy(a olmcore.Action) olmcore.Object {
	switch a := a.(type) {
	case olmcore.Create:
		return a.Object
	case olmcore.Update:
		return a.After
	}
	return nil
}

// requireWithin checks that actions write only to allowed places, and give each subject only allowed rights. Only
// ClusterRoles for APIs of the operator may be aggregated into the roles of users.
func requireWithin(t require.TestingT, w *world, allowed map[right]bool, actions []olmcore.Action) {
	roles, bindings := map[olmcore.Key][]rbacv1.PolicyRule{}, map[olmcore.Key][]rbacv1.Subject{}
	targets := w.group.Status.Namespaces
	all := slices.Equal(targets, []string{""})
	for _, a := range actions {
		after := writtenBy(a)
		if after == nil {
			continue
		}
		if strings.HasPrefix(after.GetName(), "cools.example.com-v1-") {
			continue // the ClusterRoles for the API of the operator
		}
		if record, is := after.(*rbacv1.ClusterRole); is && len(record.Rules) == 0 {
			require.Nil(t, record.AggregationRule)
			continue // it grants nothing
		}
		if after.GetNamespace() == "" {
			require.True(t, all, "%s in the whole cluster", after.GetName())
		} else {
			require.Contains(t, targets, after.GetNamespace())
			require.NotEqual(t, w.csv.Namespace, after.GetNamespace())
		}
		for label := range after.GetLabels() {
			require.NotContains(t, label, "aggregate-to")
		}
		switch o := after.(type) {
		case *rbacv1.Role:
			roles[olmcore.KeyOf(o)] = o.Rules
		case *rbacv1.ClusterRole:
			require.Nil(t, o.AggregationRule)
			roles[olmcore.KeyOf(o)] = o.Rules
		case *rbacv1.RoleBinding:
			require.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: o.Name}, o.RoleRef)
			bindings[olmcore.Key{Group: o.RoleRef.APIGroup, Kind: "Role", Namespace: o.Namespace, Name: o.Name}] = o.Subjects
		case *rbacv1.ClusterRoleBinding:
			require.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: o.Name}, o.RoleRef)
			bindings[olmcore.Key{Group: o.RoleRef.APIGroup, Kind: "ClusterRole", Name: o.Name}] = o.Subjects
		default:
			require.Fail(t, "writes something else", "%T", o)
		}
	}
	for key, rules := range roles {
		who, bound := bindings[key]
		if !bound {
			who = subjects // it is bound already
		}
		for r := range rightsOf(who, rules) {
			require.True(t, allowed[r], "%v by %s", r, key)
		}
	}
	for key, who := range bindings {
		require.Equal(t, subjects, who, "%s", key)
		rules, written := roles[key]
		if !written {
			rules = w.rules(key)
		}
		for r := range rightsOf(who, rules) {
			require.True(t, allowed[r], "%v by a binding of %s", r, key)
		}
	}
}

// rules returns the rules of a role of the world.
func (w *world) rules(key olmcore.Key) []rbacv1.PolicyRule {
	for _, o := range w.objects() {
		if olmcore.KeyOf(o) != key {
			continue
		}
		switch o := o.(type) {
		case *rbacv1.Role:
			return o.Rules
		case *rbacv1.ClusterRole:
			return o.Rules
		}
	}
	return nil
}

// tamper contains changes that a tenant can make in his namespaces.
var tamper = map[string]func(t *rapid.T, w *world){
	"rules of the Role": func(t *rapid.T, w *world) {
		w.role.Rules = rapid.SampledFrom([][]rbacv1.PolicyRule{nil, {everything}, {pods, everything}, {pods}, {{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}, pods}}).Draw(t, "rules")
	},
	"subjects of the RoleBinding": func(t *rapid.T, w *world) {
		w.binding.Subjects = append(w.binding.Subjects, rapid.SampledFrom([]rbacv1.Subject{
			{Kind: "User", Name: "eve"}, {Kind: "Group", Name: "system:authenticated"}, {Kind: "ServiceAccount", Namespace: "evil", Name: "cool"},
		}).Draw(t, "subject"))
	},
	"role of the RoleBinding": func(t *rapid.T, w *world) {
		w.binding.RoleRef = rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"}
	},
	"labels": func(t *rapid.T, w *world) {
		for _, o := range []metav1.Object{w.role, w.binding, w.account} {
			labels := map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}
			for key, value := range o.GetLabels() {
				if rapid.Bool().Draw(t, "keep") {
					labels[key] = value
				}
			}
			o.SetLabels(labels)
		}
	},
	"owners": func(t *rapid.T, w *world) {
		uid := types.UID(rapid.SampledFrom([]string{"uid-cool.v1", "copy-a", "other"}).Draw(t, "uid"))
		o := rapid.SampledFrom([]metav1.Object{w.role, w.binding, w.account}).Draw(t, "object")
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v1", UID: uid}})
	},
	"a Role of the tenant": func(t *rapid.T, w *world) {
		role := w.role.DeepCopy()
		role.Name, role.UID, role.Rules = w.role.Name+rapid.SampledFrom([]string{"x", ""}).Draw(t, "name"), "mine", []rbacv1.PolicyRule{everything}
		role.Namespace = rapid.SampledFrom([]string{"ns", "a", "b", "evil"}).Draw(t, "namespace")
		role.Labels = map[string]string{"olm.owner": "cool.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": role.Namespace, "olm.copiedFrom": "ns"}
		if role.Name == w.role.Name && role.Namespace == "ns" {
			w.role = role
		} else {
			w.put(role)
		}
	},
	"a RoleBinding of the tenant": func(t *rapid.T, w *world) {
		binding := w.binding.DeepCopy()
		binding.UID, binding.Subjects = "mine", []rbacv1.Subject{{Kind: "User", Name: "eve"}}
		binding.Namespace = rapid.SampledFrom([]string{"a", "b", "evil"}).Draw(t, "namespace")
		binding.Labels = map[string]string{"olm.owner": "cool.v1", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": binding.Namespace, "olm.copiedFrom": "ns"}
		w.put(binding)
	},
	"a copy of the tenant": func(t *rapid.T, w *world) {
		copied := copyIn(rapid.SampledFrom([]string{"a", "b", "evil"}).Draw(t, "namespace"))
		copied.UID = "mine"
		copied.Spec = csvSpecOf(everything)
		w.put(copied)
	},
	"metadata and status of the CSV": func(t *rapid.T, w *world) {
		w.csv.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "ns", "olm.targetNamespaces": rapid.SampledFrom([]string{"", "evil,victim"}).Draw(t, "targets")}
		w.csv.Status.Phase = rapid.SampledFrom([]v1alpha1.ClusterServiceVersionPhase{"InstallReady", "Succeeded", "Replacing"}).Draw(t, "phase")
		w.csv.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}
	},
	"the permissions of the CSV": func(t *rapid.T, w *world) {
		onlyOne := pods
		onlyOne.ResourceNames = []string{"one"}
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = rapid.SampledFrom([][]rbacv1.PolicyRule{
			{pods, everything}, {everything, pods}, {onlyOne}, {onlyOne, secrets}, {},
			{pods, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
			{pods, {Verbs: []string{"get"}, APIGroups: []string{"*"}, Resources: []string{"*/status"}}},
		}).Draw(t, "rules")
	},
	"the CSV, deleted and created again": func(t *rapid.T, w *world) {
		w.csv.UID = "uid-again"
		for _, o := range []metav1.Object{w.role, w.binding, w.account} {
			if rapid.Bool().Draw(t, "owned") {
				o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(w.csv)})
			}
		}
	},
	"objects as of a plan": func(t *rapid.T, w *world) {
		if rapid.Bool().Draw(t, "more") {
			account := rapid.SampledFrom([]string{"cool", "mine"}).Draw(t, "account")
			w.addPermission(account, rapid.SampledFrom([]rbacv1.PolicyRule{everything, secrets, pods}).Draw(t, "rule"))
		}
		planned, err := olmcore.PermissionObjects(w.csv)
		if err != nil {
			return
		}
		for _, o := range planned {
			o.SetNamespace("ns")
			o.SetUID(types.UID("forged-" + olmcore.KeyOf(o).String()))
			o.SetResourceVersion("1")
			o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(w.csv)})
			if key := olmcore.KeyOf(o); key != olmcore.KeyOf(w.role) && key != olmcore.KeyOf(w.binding) && key != olmcore.KeyOf(w.account) {
				o.SetLabels(w.role.Labels)
				w.put(o)
			}
		}
	},
	"an empty Role that looks copied": func(t *rapid.T, w *world) {
		role := w.forged()
		role.Namespace = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace")
		role.UID, role.ResourceVersion, role.Rules = "empty", "1", nil
		role.Labels["olm.owner.namespace"], role.Labels["olm.copiedFrom"] = role.Namespace, "ns"
		role.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(copyIn(role.Namespace))}
		w.put(role)
	},
	"a forged plan for the spec": func(_ *rapid.T, w *world) {
		if _, err := olmcore.PermissionObjects(w.csv); err == nil {
			plan := csvtest.Plan(w.csv)
			plan.Name, plan.UID, plan.Status = "install-2", "install-2", v1alpha1.InstallPlanStatus{}
			w.put(plan)
		}
	},
	"a plan, deleted":              func(_ *rapid.T, w *world) { w.plan = nil },
	"the version that it replaces": func(_ *rapid.T, w *world) { w.csv.Spec.Replaces = "cool.v0" },
	"an account of the tenant": func(t *rapid.T, w *world) {
		w.put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "mine", ResourceVersion: "1"}})
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = "mine"
	},
	"APIs that the CSV claims": func(t *rapid.T, w *world) {
		d := &w.csv.Spec.CustomResourceDefinitions
		d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "victims.example.com", Version: "v1", Kind: "Cool"},
			v1alpha1.CRDDescription{Name: "endpointslices.discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"})
		w.csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "secrets", Group: "apps", Version: "v1", Kind: "Deployment"}}
	},
}

func csvSpecOf(rules ...rbacv1.PolicyRule) (spec v1alpha1.ClusterServiceVersionSpec) {
	spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: rules}}
	return spec
}

// put adds an object or replaces it.
func (w *world) put(o olmcore.Object) {
	w.more = slices.DeleteFunc(slices.Clone(w.more), func(have olmcore.Object) bool { return olmcore.KeyOf(have) == olmcore.KeyOf(o) })
	w.more = append(w.more, o)
}

// TestTenantsGainNoPermissions checks random changes by a tenant to Roles, bindings, labels, owner references, copies
// and the CSV, before and after the library wrote its objects. Each subject gets at most the rights that the spec
// granted when the InstallPlan ran, and only in the targets of the OperatorGroup.
func TestTenantsGainNoPermissions(t *testing.T) {
	names := []string{}
	for name := range tamper {
		names = append(names, name)
	}
	slices.Sort(names)
	wrote := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.SampledFrom([][]string{{""}, {"a", "b"}, {"ns"}, {"a", "ns"}}).Draw(t, "targets")...)
		allowed := granted(w.csv)
		victims := definition("victims", "example.com", "v1")
		victims.Annotations = nil
		w.more = []olmcore.Object{copyIn("a"), copyIn("b"), victims, definition("endpointslices", "discovery.k8s.io", "v1")}
		for range 3 {
			if rapid.Bool().Draw(t, "written") {
				res := reconciled(t, w.input(t)).Result
				requireWithin(t, w, allowed, res.Actions)
				w.apply(res.Actions)
				wrote += len(res.Actions)
			}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "tampers") {
				tamper[name](t, w)
			}
		}
		res := reconciled(t, w.input(t)).Result
		requireWithin(t, w, allowed, res.Actions)
		wrote += len(res.Actions)
	})
	require.NotZero(t, wrote)
}

// TestPermissionsAddedToTheSpecLaterAreNotGranted checks permissions for which no InstallPlan created Roles. The names
// of Roles are hashes of their rules.
func TestPermissionsAddedToTheSpecLaterAreNotGranted(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs(target)
		w.more = []olmcore.Object{copyIn("a")}
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = []rbacv1.PolicyRule{everything}
		require.Empty(t, reconciled(t, w.input(t)).Actions)
		w = withoutAPIs(target)
		w.more = []olmcore.Object{copyIn("a")}
		w.converge(t)
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = []rbacv1.PolicyRule{everything}
		w.converge(t)
		require.Empty(t, find[*rbacv1.ClusterRole](w, "", w.role.Name), "existing grants are withdrawn")
		require.Empty(t, find[*rbacv1.Role](w, "a", w.role.Name))
	}
}

// TestLabelsOfRolesAreNotCopied checks that a user who labels the Role of an operator cannot aggregate its rules into
// the roles of all users.
func TestLabelsOfRolesAreNotCopied(t *testing.T) {
	w := withoutAPIs("")
	w.role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] = "true"
	w.converge(t)
	require.NotContains(t, find[*rbacv1.ClusterRole](w, "", w.role.Name).Labels, "rbac.authorization.k8s.io/aggregate-to-admin")
}

// TestPermissionsAreGrantedAsTheServiceAccountOfTheGroup checks that the controller withdraws them.
func TestPermissionsAreGrantedAsTheServiceAccountOfTheGroup(t *testing.T) {
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}
	for _, target := range []string{"", "a"} {
		w := withoutAPIs(target)
		w.more = []olmcore.Object{copyIn("a")}
		w.group.Spec.ServiceAccountName, w.group.Status.ServiceAccountRef = "weak", account
		for range 2 {
			res := reconciled(t, w.input(t)).Result
			grants := slices.DeleteFunc(slices.Clone(res.Actions), isRecord)
			require.Len(t, grants, 1)
			require.Equal(t, account, grants[0].Identity())
			w.apply(res.Actions)
		}
		for _, o := range w.more {
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				if target == "" {
					o.Rules = nil
				}
			case *rbacv1.Role:
				o.Rules = nil
			}
		}
		require.Equal(t, account, reconciled(t, w.input(t)).Actions[0].Identity(), "a repair needs the permissions of the account, too")
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		for _, a := range reconciled(t, w.input(t)).Actions {
			require.Nil(t, a.Identity(), "a withdrawal does not need the permissions of the account")
		}
	}
}

// isRecord reports whether an action creates a ClusterRole without rules, which the controller writes.
func isRecord(a olmcore.Action) bool {
	create, is := a.(olmcore.Create)
	if !is || a.Identity() != nil {
		return false
	}
	role, is := create.Object.(*rbacv1.ClusterRole)
	return is && len(role.Rules) == 0
}
