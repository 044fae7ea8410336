// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

// withoutAPIs returns a world whose operator provides no API.
func withoutAPIs(targets ...string) *world {
	w := newWorld(targets...)
	w.csv.Spec.CustomResourceDefinitions.Owned, w.crd = nil, nil
	return w
}

var (
	pods       = rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	namespaces = rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}
	subjects   = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "cool", Namespace: "ns"}}
)

// TestPermissionsAreLiftedForAllNamespaces contains OLM's case of lifting Roles, with the permission to read
// namespaces.
func TestPermissionsAreLiftedForAllNamespaces(t *testing.T) {
	w := withoutAPIs("")
	labels := func(hash string) map[string]string {
		return map[string]string{
			"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.uid": "uid-cool.v1",
			"olm.managed": "true", "olm.copiedFrom": "ns", "olm.permissions.hash": hash,
		}
	}
	why := olmcore.Cause{Reason: permissions.ReasonPermissions, Message: "OperatorGroup group targets all namespaces"}
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: w.role.Name, Labels: labels(w.role.Labels["olm.permissions.hash"])},
		Rules:      []rbacv1.PolicyRule{pods, namespaces},
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: w.role.Name, Labels: labels(w.binding.Labels["olm.permissions.hash"])},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: w.role.Name}, Subjects: subjects,
	}
	requireInTurn(t, w, olmcore.CreateOf(role, why), olmcore.CreateOf(binding, why))
}

// requireInTurn checks that a binding is created after its role exists with the desired content.
func requireInTurn(t *testing.T, w *world, actions ...olmcore.Action) {
	t.Helper()
	for _, a := range actions {
		res := reconciled(t, w.input(t)).Result
		if diff := cmp.Diff(olmcore.Result{Actions: []olmcore.Action{a}}, res); diff != "" {
			t.Fatal(diff)
		}
		w.apply(res.Actions)
	}
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
}

// TestPermissionsAreCopiedIntoTargetNamespaces checks that the copied CSVs own them.
func TestPermissionsAreCopiedIntoTargetNamespaces(t *testing.T) {
	w := withoutAPIs("a", "b", "ns")
	w.more = []olmcore.Object{copyIn("a")} // namespace b has none yet
	labels := func(hash string) map[string]string {
		return map[string]string{
			"olm.owner": "cool.v1", "olm.owner.namespace": "a", "olm.owner.kind": "ClusterServiceVersion",
			"olm.managed": "true", "olm.copiedFrom": "ns", "olm.permissions.hash": hash,
		}
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v1", UID: "copy-a", Controller: new(false), BlockOwnerDeletion: new(false),
	}}
	record := &rbacv1.ClusterRole{ // it grants nothing
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: w.role.Name, Labels: labels(w.role.Labels["olm.permissions.hash"])},
	}
	record.Labels["olm.owner.namespace"], record.Labels["olm.owner.uid"] = "ns", "uid-cool.v1"
	why := olmcore.Cause{Reason: permissions.ReasonPermissions, Message: "OperatorGroup group targets namespace a"}
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: w.role.Name, Labels: labels(w.role.Labels["olm.permissions.hash"]), OwnerReferences: owner},
		Rules:      []rbacv1.PolicyRule{pods},
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: w.role.Name, Labels: labels(w.binding.Labels["olm.permissions.hash"]), OwnerReferences: owner},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: w.role.Name}, Subjects: subjects,
	}
	res := reconciled(t, w.input(t)).Result
	require.Equal(t, olmcore.CreateOf(record, olmcore.Cause{
		Reason:  permissions.ReasonPermissionRecorded,
		Message: "it has no rules, and records a permission of the operator in its target namespaces",
	}), res.Actions[0])
	w.apply(res.Actions[:1])
	requireInTurn(t, w, olmcore.CreateOf(role, why), olmcore.CreateOf(binding, why))
}

// anywhere returns objects by which an administrator grants the ServiceAccount rules in the whole cluster.
func anywhere(rules ...rbacv1.PolicyRule) []olmcore.Object {
	return []olmcore.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "generous", UID: "g", ResourceVersion: "1"}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "generous", UID: "gb", ResourceVersion: "1"},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "generous"}, Subjects: subjects,
		},
	}
}

func TestConditionsForTheFirstGrant(t *testing.T) {
	name := newWorld("").role.Name
	inCluster, inA := []string{"create ClusterRole " + name}, []string{"create ClusterRole " + name, "create Role a/" + name}
	for title, c := range map[string]struct {
		targets []string
		change  func(w *world)
		want    []string
	}{
		"a group of all namespaces":    {[]string{""}, func(*world) {}, inCluster},
		"a group of its own namespace": {[]string{"ns"}, func(*world) {}, nil},
		"a group of another namespace": {[]string{"a"}, func(*world) {}, inA},
		"a group of several":           {[]string{"a", "ns"}, func(*world) {}, inA},
		"the targets are not computed": {[]string{""}, func(w *world) { w.group.Status.Namespaces, w.group.Status.LastUpdated = nil, nil }, nil},
		"there is no group":            {[]string{""}, func(w *world) { w.group = nil }, nil},
		"there are two groups": {
			[]string{""}, func(w *world) { g := w.group.DeepCopy(); g.Name, g.UID = "two", "two"; w.more = append(w.more, g) }, nil,
		},
		"unsupported targets": {[]string{""}, func(w *world) { w.csv.Spec.InstallModes = w.csv.Spec.InstallModes[:3] }, nil},
		"stopped because of its APIs": {[]string{""}, func(w *world) {
			hold(w.csv, v1alpha1.CSVPhaseFailed, "InterOperatorGroupOwnerConflict", "", time.Hour)
		}, nil},
		"its requirements are not met": {
			[]string{""}, func(w *world) { hold(w.csv, v1alpha1.CSVPhasePending, "RequirementsNotMet", "", time.Hour) }, nil,
		},
		"it has no phase":      {[]string{""}, func(w *world) { hold(w.csv, "", "", "", 0) }, nil},
		"its phase is unknown": {[]string{""}, func(w *world) { hold(w.csv, "Unknown", "x", "", 0) }, nil},
		"it is InstallReady": {
			[]string{""}, func(w *world) { hold(w.csv, v1alpha1.CSVPhaseInstallReady, "AllRequirementsMet", "", 0) }, inCluster,
		},
		"it failed": {
			[]string{""}, func(w *world) { hold(w.csv, v1alpha1.CSVPhaseFailed, "ComponentUnhealthy", "", 0) }, inCluster,
		},
		"a newer version replaces it": {
			[]string{""}, func(w *world) { hold(w.csv, v1alpha1.CSVPhaseReplacing, "BeingReplaced", "", 0) }, inCluster,
		},
		"it is Deleting":        {[]string{""}, func(w *world) { hold(w.csv, v1alpha1.CSVPhaseDeleting, "Replaced", "", 0) }, nil},
		"it is being deleted":   {[]string{""}, func(w *world) { w.csv.DeletionTimestamp = ago(0) }, nil},
		"it is a copy":          {[]string{""}, func(w *world) { w.csv.Labels["olm.copiedFrom"] = "else" }, nil},
		"it has no permissions": {[]string{""}, func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil }, nil},
		"one rule is invalid": {
			[]string{""}, func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = nil }, nil,
		},
		"its ServiceAccount is missing": {[]string{""}, func(w *world) { w.account = nil }, nil},
		"the account is of another CSV": {[]string{""}, func(w *world) { w.account.OwnerReferences[0].UID = "other" }, nil},
		"a user owns the account":       {[]string{""}, func(w *world) { w.account.OwnerReferences = nil }, inCluster},
		"the Role is missing":           {[]string{""}, func(w *world) { w.role = nil }, nil},
		"the RoleBinding is missing":    {[]string{"a"}, func(w *world) { w.binding = nil }, nil},
		"the copy is missing":           {[]string{"a"}, func(w *world) { w.more = nil }, nil},
		"the copy is being deleted": {
			[]string{"a"}, func(w *world) { w.more[0].SetDeletionTimestamp(ago(0)); w.more[0].SetFinalizers([]string{"x"}) }, nil,
		},
		"the copy has no UID":        {[]string{"a"}, func(w *world) { w.more[0].SetUID("") }, nil},
		"the copy is of another CSV": {[]string{"a"}, func(w *world) { w.more[0].GetLabels()["olm.copiedFrom"] = "else" }, nil},
		"granted by the cluster":     {[]string{""}, func(w *world) { w.more = anywhere(pods) }, nil},
		"granted, with two targets":  {[]string{"a"}, func(w *world) { w.more = append(w.more, anywhere(pods)...) }, nil},
		"partly granted by the cluster": {[]string{""}, func(w *world) {
			w.more = anywhere(rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}})
		}, inCluster},
		"the group's account is not confirmed": {[]string{""}, func(w *world) { w.group.Spec.ServiceAccountName = "weak" }, nil},
		"the Role has other owners": {
			[]string{""}, func(w *world) { w.role.OwnerReferences[0].UID = "other" }, []string{"report RoleChanged"},
		},
		"the Role lacks owner labels": {[]string{""}, func(w *world) { w.role.Labels = nil }, []string{"report RoleChanged"}},
		"the Role grants less": {[]string{"a"}, func(w *world) {
			w.role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
		}, []string{"report RoleChanged"}},
		"the Role grants more":         {[]string{"a"}, func(w *world) { w.role.Rules = append(w.role.Rules, namespaces) }, inA},
		"the binding has other owners": {[]string{""}, func(w *world) { w.binding.OwnerReferences = nil }, []string{"report RoleChanged"}},
		"the binding has another role": {[]string{""}, func(w *world) { w.binding.RoleRef.Name = "other" }, []string{"report RoleChanged"}},
		"it binds another account":     {[]string{""}, func(w *world) { w.binding.Subjects[0].Name = "other" }, []string{"report RoleChanged"}},
		"it binds more accounts": {[]string{""}, func(w *world) {
			w.binding.Subjects = append(w.binding.Subjects, rbacv1.Subject{Kind: "User", Name: "eve"})
		}, inCluster},
	} {
		t.Run(title, func(t *testing.T) {
			w := withoutAPIs(c.targets...)
			if c.targets[0] == "a" {
				w.more = []olmcore.Object{copyIn("a")}
			}
			c.change(w)
			require.Equal(t, c.want, lines(reconciled(t, w.input(t)).Result))
		})
	}
}

// TestGrantsAreRepairedAndWithdrawn checks that changed grants are repaired, that grants which are no longer desired
// are deleted, and that objects of other owners stay as they are.
func TestGrantsAreRepairedAndWithdrawn(t *testing.T) {
	name := newWorld("").role.Name
	clusterRole := func(w *world) *rbacv1.ClusterRole { return find[*rbacv1.ClusterRole](w, "", name) }
	clusterBinding := func(w *world) *rbacv1.ClusterRoleBinding { return find[*rbacv1.ClusterRoleBinding](w, "", name) }
	role := func(w *world) *rbacv1.Role { return find[*rbacv1.Role](w, "a", name) }
	binding := func(w *world) *rbacv1.RoleBinding { return find[*rbacv1.RoleBinding](w, "a", name) }
	withdrawn := []string{"delete ClusterRoleBinding " + name, "delete ClusterRole " + name}
	emptied := []string{"update ClusterRole " + name, "delete ClusterRoleBinding " + name}
	everything := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	for title, c := range map[string]struct {
		target string
		change func(w *world)
		want   []string
	}{
		"nothing changed": {"", func(*world) {}, nil},
		"a rule was added": {
			"", func(w *world) { clusterRole(w).Rules = append(clusterRole(w).Rules, everything) }, []string{"update ClusterRole " + name},
		},
		"a rule is missing": {
			"", func(w *world) { clusterRole(w).Rules = clusterRole(w).Rules[:1] }, []string{"update ClusterRole " + name},
		},
		"it aggregates others": {
			"", func(w *world) { clusterRole(w).AggregationRule = &rbacv1.AggregationRule{} }, []string{"update ClusterRole " + name},
		},
		"OLM lifted it": {
			"", func(w *world) { delete(clusterRole(w).Labels, "olm.copiedFrom") }, []string{"update ClusterRole " + name},
		},
		"an earlier CSV lifted it": {
			"", func(w *world) { clusterRole(w).Labels["olm.owner.uid"] = "before" }, []string{"update ClusterRole " + name},
		},
		"a subject was added": {"", func(w *world) {
			clusterBinding(w).Subjects = append(clusterBinding(w).Subjects, rbacv1.Subject{Kind: "User", Name: "eve"})
		}, []string{"update ClusterRoleBinding " + name}},
		"it binds another role": {
			"", func(w *world) { clusterBinding(w).RoleRef.Name = "cluster-admin" }, []string{"delete ClusterRoleBinding " + name},
		},
		"the role is missing": {"", func(w *world) { w.more = w.more[1:] }, []string{"create ClusterRole " + name}},
		"the binding is missing, the role is being deleted": {"", func(w *world) {
			w.more = w.more[:1]
			clusterRole(w).DeletionTimestamp, clusterRole(w).Finalizers = ago(0), []string{"x"}
		}, nil},
		"both have another owner": {
			"", func(w *world) { clusterRole(w).Labels, clusterBinding(w).Labels = nil, nil }, []string{"report NameConflict"},
		},
		"the role has another owner, the binding is being deleted": {"", func(w *world) {
			clusterRole(w).Labels = nil
			clusterBinding(w).DeletionTimestamp, clusterBinding(w).Finalizers = ago(0), []string{"x"}
		}, []string{"report NameConflict"}},
		"withdrawn while one is being deleted": {"", func(w *world) {
			w.group.Status.Namespaces = []string{"ns"}
			clusterRole(w).DeletionTimestamp, clusterRole(w).Finalizers = ago(0), []string{"x"}
		}, withdrawn[:1]},
		"the binding is missing": {"", func(w *world) { w.more = w.more[:1] }, []string{"create ClusterRoleBinding " + name}},
		"binding missing, rule added": {
			"", func(w *world) { w.more = w.more[:1]; clusterRole(w).Rules = append(clusterRole(w).Rules, everything) }, []string{"update ClusterRole " + name},
		},
		"binding missing, role not ours": {"", func(w *world) { w.more = w.more[:1]; clusterRole(w).Labels = nil }, []string{"report NameConflict"}},
		"it is on its way out": {
			"", func(w *world) { clusterRole(w).DeletionTimestamp, clusterRole(w).Finalizers = ago(0), []string{"x"} }, nil,
		},
		"others labelled it": {"", func(w *world) { clusterRole(w).Labels["operators.coreos.com/cool.ns"] = "" }, nil},
		"it is another's": {
			"", func(w *world) { clusterRole(w).Labels = nil }, []string{"delete ClusterRoleBinding " + name, "report NameConflict"},
		},
		"another CSV's": {
			"", func(w *world) { clusterRole(w).Labels["olm.owner"] = "hot.v1" },
			[]string{"delete ClusterRoleBinding " + name, "report NameConflict"},
		},
		"the cluster grants it by now": {"", func(w *world) { w.more = append(w.more, anywhere(pods)...) }, nil},
		"and a form that differs is repaired all the same": {"", func(w *world) {
			w.more = append(w.more, anywhere(pods)...)
			clusterRole(w).Rules = nil
		}, []string{"update ClusterRole " + name}},
		"the Role that it came of was deleted":  {"", func(w *world) { w.role, w.binding = nil, nil }, nil},
		"the ServiceAccount was deleted":        {"", func(w *world) { w.account = nil }, nil},
		"its requirements are not met any more": {"", func(w *world) { hold(w.csv, v1alpha1.CSVPhasePending, "NeedsReinstall", "", 0) }, nil},
		"there is no OperatorGroup":             {"", func(w *world) { w.group = nil }, nil},
		"the group targets its own namespace":   {"", func(w *world) { w.group.Status.Namespaces = []string{"ns"} }, emptied},
		"the group selects nothing":             {"", func(w *world) { w.group.Status.Namespaces = nil }, emptied},
		"the operator does not support all":     {"", func(w *world) { w.csv.Spec.InstallModes = w.csv.Spec.InstallModes[:3] }, emptied},
		"withdrawn although OLM lifted it": {"", func(w *world) {
			w.group.Status.Namespaces = []string{"ns"}
			delete(clusterRole(w).Labels, "olm.copiedFrom")
		}, emptied},
		"stopped because of its APIs": {"", func(w *world) {
			hold(w.csv, v1alpha1.CSVPhaseFailed, "CannotModifyStaticOperatorGroupProvidedAPIs", "", 0)
		}, emptied},
		"the spec has no permissions": {"", func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil }, withdrawn},
		"a ClusterRole of the InstallPlan stays": {"", func(w *world) {
			w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
			delete(clusterRole(w).Labels, "olm.copiedFrom")
		}, withdrawn[:1]},
		"an invalid spec withdraws nothing": {
			"", func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = "" }, nil,
		},
		"an invalid spec keeps no grants outside the targets": {"", func(w *world) {
			w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = nil
			w.group.Status.Namespaces = []string{"ns"}
		}, withdrawn},
		"an invalid spec, copied": {"a", func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = nil }, nil},
		"the account is not confirmed": {"", func(w *world) {
			w.group.Spec.ServiceAccountName = "weak"
			clusterRole(w).Rules = nil
		}, nil},

		"copied, and nothing changed": {"a", func(*world) {}, nil},
		"a rule was added to the copy": {
			"a", func(w *world) { role(w).Rules = append(role(w).Rules, everything) }, []string{"update Role a/" + name},
		},
		"a subject was added to the copy": {"a", func(w *world) {
			binding(w).Subjects = append(binding(w).Subjects, rbacv1.Subject{Kind: "User", Name: "eve"})
		}, []string{"update RoleBinding a/" + name}},
		"the copy binds another role": {
			"a", func(w *world) { binding(w).RoleRef.Kind = "ClusterRole" }, []string{"delete RoleBinding a/" + name},
		},
		"its owner is missing": {
			"a", func(w *world) { role(w).OwnerReferences = nil }, []string{"delete RoleBinding a/" + name, "report NameConflict"},
		},
		"a label is missing": {"a", func(w *world) { delete(role(w).Labels, "olm.managed") }, []string{"update Role a/" + name}},
		"the copied CSV is recreated": {
			"a", func(w *world) { w.more[0].SetUID("again") }, []string{"update Role a/" + name, "update RoleBinding a/" + name},
		},
		"the copied CSV is missing":     {"a", func(w *world) { w.more = w.more[1:] }, nil},
		"the namespace is not targeted": {"a", func(w *world) { w.group.Status.Namespaces = []string{"ns"} }, nil},
		"no permissions, copied": {"a", func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil },
			[]string{"delete RoleBinding a/" + name, "delete ClusterRole " + name, "delete Role a/" + name}},
		"a user created the Role": {
			"a", func(w *world) { role(w).Labels = nil; role(w).OwnerReferences = nil },
			[]string{"delete RoleBinding a/" + name, "report NameConflict"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			w := withoutAPIs(c.target)
			if c.target != "" {
				w.more = []olmcore.Object{copyIn(c.target)}
			}
			w.converge(t)
			c.change(w)
			res := reconciled(t, w.input(t)).Result
			require.Equal(t, c.want, lines(res))
			if len(res.Diagnostics) > 0 {
				require.Equal(t, time.Minute, res.RequeueAfter)
			}
		})
	}
}

// TestPermissionsWithoutRulesKeepGrantsOfOLM checks that a permission without rules is not granted elsewhere. Grants of
// OLM are kept in every phase, and withdrawn with the right reason.
func TestPermissionsWithoutRulesKeepGrantsOfOLM(t *testing.T) {
	narrow := func(w *world) { w.group.Status.Namespaces = []string{"ns"} }
	drop := func(w *world) { w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil }
	unsupported := func(w *world) { w.csv.Spec.InstallModes = w.csv.Spec.InstallModes[:3] }
	const noTargets, gone = "OperatorGroup group does not target all namespaces",
		"ClusterServiceVersion cool.v1 does not have this permission any more"
	for title, c := range map[string]struct {
		target  string
		change  func(*world)
		message string // of the deletion, empty if nothing is deleted
	}{
		"in the cluster":          {"", func(*world) {}, ""},
		"copied into a namespace": {"a", func(*world) {}, ""},
		"the group is narrowed":   {"", narrow, noTargets},
		"the targets are not supported": {
			"", unsupported, "ClusterServiceVersion cool.v1 does not support the targets of OperatorGroup group",
		},
		"the permission is removed":         {"", drop, gone},
		"the permission is removed, copied": {"a", drop, gone},
		"stopped because of its APIs": {"", func(w *world) {
			hold(w.csv, v1alpha1.CSVPhaseFailed, "InterOperatorGroupOwnerConflict", "", 0)
		}, "ClusterServiceVersion cool.v1 is stopped because of the APIs that it provides"},
	} {
		for kind, rules := range map[string][]rbacv1.PolicyRule{"none": nil,
			"on URLs": {{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}}, "pods": {pods}} {
			t.Run(title+"/"+kind, func(t *testing.T) {
				w := withoutAPIs(c.target)
				w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = rules
				w.install()
				w.liftAsOLM(c.target)
				if c.change(w); c.message == gone { // objects of OLM are recognized only by their name
					for _, o := range w.more {
						o.GetLabels()["olm.copiedFrom"] = "ns"
					}
				}
				res := reconciled(t, w.input(t)).Result
				for _, a := range res.Actions {
					_, _, cause := a.Describe()
					require.Equal(t, c.message, cause.Message)
				}
				require.Equal(t, c.message != "", len(res.Actions) == 2, lines(res))
				w.apply(res.Actions)
				if w.csv.Status.Phase == v1alpha1.CSVPhaseFailed {
					return
				}
				for _, phase := range []v1alpha1.ClusterServiceVersionPhase{"", v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseUnknown} {
					hold(w.csv, phase, "RequirementsNotMet", "", 0)
					require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, phase)
				}
			})
		}
	}
}

// liftAsOLM creates the objects that OLM creates to grant the Role and RoleBinding of the CSV, in the whole cluster or
// in the namespace of a copied CSV.
func (w *world) liftAsOLM(target string) {
	if target == "" {
		w.more = []olmcore.Object{
			&rbacv1.ClusterRole{ObjectMeta: lifted("ClusterRole", w.role.ObjectMeta),
				Rules: append(slices.DeleteFunc(slices.Clone(w.role.Rules), func(r rbacv1.PolicyRule) bool {
					return len(r.NonResourceURLs) > 0 // the API server rejects them in a Role
				}), namespaces)},
			&rbacv1.ClusterRoleBinding{ObjectMeta: lifted("ClusterRoleBinding", w.binding.ObjectMeta), Subjects: w.binding.Subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: w.binding.RoleRef.APIGroup, Kind: "ClusterRole", Name: w.binding.RoleRef.Name}},
		}
		return
	}
	home := copyIn(target)
	role, binding := w.role.DeepCopy(), w.binding.DeepCopy()
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 })
	w.more = []olmcore.Object{home, role, binding}
	for _, o := range w.more[1:] {
		labels := lifted("", metav1.ObjectMeta{Labels: o.GetLabels()}).Labels
		labels["olm.owner.namespace"], labels["olm.copiedFrom"] = target, "ns"
		o.SetLabels(labels)
		o.SetNamespace(target)
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(home)})
	}
}

// lifted returns the metadata of an object that is lifted into the cluster.
func lifted(kind string, of metav1.ObjectMeta) metav1.ObjectMeta {
	labels := map[string]string{"olm.managed": "true"}
	for key, value := range of.Labels {
		if key != "olm.owner.uid" {
			labels[key] = value
		}
	}
	return metav1.ObjectMeta{Name: of.Name, UID: types.UID("lifted-" + kind), ResourceVersion: "1", Labels: labels}
}

// TestRulesOnURLsAreNotLifted checks that a ClusterRole does not get the rules on URLs of a Role, because a Role cannot
// grant them.
func TestRulesOnURLsAreNotLifted(t *testing.T) {
	w := withoutAPIs("")
	rules := &w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules
	*rules = append(*rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}})
	w.install()
	w.converge(t)
	require.Equal(t, []rbacv1.PolicyRule{pods, namespaces}, find[*rbacv1.ClusterRole](w, "", w.role.Name).Rules)
	*rules = (*rules)[1:]
	w.install()
	w.converge(t)
	require.Empty(t, w.more)
}
