// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

// confine makes the OperatorGroup name a ServiceAccount, and its status confirm it. An empty name removes the account.
func (w *world) confine(account string) {
	w.group.Spec.ServiceAccountName, w.group.Status.ServiceAccountRef = account, nil
	if account != "" {
		w.group.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: account}
	}
}

// rejectAccountWrites runs some rounds in which the API server rejects each write as the ServiceAccount of the
// OperatorGroup.
func (w *world) rejectAccountWrites(t *testing.T) {
	t.Helper()
	for range 3 {
		isAsAccount := func(a olmcore.Action) bool { return a.Identity() != nil }
		w.apply(slices.DeleteFunc(reconciled(t, w.input(t)).Actions, isAsAccount))
	}
}

// TestARecordProvesNothingForAnotherAccount checks that a permission that the API server never let the ServiceAccount
// of the OperatorGroup grant is not granted once the group names another account, or none.
func TestARecordProvesNothingForAnotherAccount(t *testing.T) {
	for _, isPlanKept := range []bool{false, true} {
		for name, change := range map[string]func(w *world){
			"no account":                        func(w *world) { w.confine("") },
			"another account":                   func(w *world) { w.confine("strong") },
			"no account, another namespace":     func(w *world) { w.confine(""); w.target("b") },
			"no account, all namespaces":        func(w *world) { w.confine(""); w.target("") },
			"another account, all namespaces":   func(w *world) { w.confine("strong"); w.target("") },
			"no account, while it is installed": func(w *world) { w.confine(""); installAgain(w) },
			"no account, a namespace more":      func(w *world) { w.confine(""); w.target("a", "b") },
		} {
			t.Run(fmt.Sprint(name, isPlanKept), func(t *testing.T) {
				w := withoutAPIs("ns")
				w.target("a")
				w.confine("weak")
				w.plan.Status.AttenuatedServiceAccountRef = w.group.Status.ServiceAccountRef
				w.rejectAccountWrites(t)
				if !isPlanKept {
					w.deletePlan()
				}
				change(w)
				out := reconciled(t, w.input(t))
				require.Empty(t, out.Actions)
				requireNotApproved(t, out.Diagnostics, w.role.Name)
				w.requireGranted(t)
				w.confine("weak")
				w.target("a")
				w.converge(t)
				w.requireGranted(t, "a")
			})
		}
	}
}

// TestASuccessorOfALimitedVersionIsLimited checks that the record of a replaced version proves nothing for another
// account.
func TestASuccessorOfALimitedVersionIsLimited(t *testing.T) {
	for account, isGranted := range map[string]bool{"weak": true, "": false, "strong": false} {
		w := withoutAPIs("a")
		w.claim("cool", pods)
		w.more = append(w.more, copyIn("a"))
		record := w.more[0].(*rbacv1.ClusterRole)
		record.Rules, record.Annotations = nil, map[string]string{"olmcore/limited-to-account": "weak"}
		w.more = slices.Delete(w.more, 1, 2) // the binding of the replaced version
		w.confine(account)
		if isGranted {
			w.converge(t)
			w.requireGranted(t, "a")
			continue
		}
		require.Empty(t, reconciled(t, w.input(t)).Actions)
		requireNotApproved(t, reconciled(t, w.input(t)).Diagnostics, w.forged().Name)
	}
}

// TestGrantsOfAnAccountFollowTheTargets checks that a permission that a ServiceAccount granted is granted in further
// namespaces after the InstallPlan was deleted, even if the group then names another account. At rest, nothing is
// written.
func TestGrantsOfAnAccountFollowTheTargets(t *testing.T) {
	for _, account := range []string{"weak", "strong", ""} {
		for name, c := range map[string]struct {
			change func(w *world)
			to     [][]string
		}{
			"a namespace is added":           {func(*world) {}, [][]string{{"a", "b"}}},
			"another namespace":              {func(*world) {}, [][]string{{"b"}}},
			"all namespaces":                 {func(*world) {}, [][]string{{""}}},
			"all namespaces, then some":      {func(*world) {}, [][]string{{""}, {"b"}}},
			"its own, then back":             {func(*world) {}, [][]string{{"ns"}, {"a"}}},
			"the copied CSV is recreated":    {copyAgain, [][]string{{"a"}}},
			"its bindings are lost":          {loseBindings, [][]string{{"a", "b"}}},
			"its Roles are emptied":          {emptyRoles, [][]string{{"a"}}},
			"its record is lost":             {loseClusterRole, [][]string{{"a", "b"}}},
			"an operator is installed again": {installAgain, [][]string{{"a", "b"}}},
		} {
			t.Run(account+"/"+name, func(t *testing.T) {
				w := withoutAPIs("ns")
				w.target("a")
				w.confine("weak")
				w.converge(t)
				w.deletePlan()
				require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
				w.confine(account)
				w.converge(t)
				c.change(w)
				w.converge(t)
				for _, targets := range c.to {
					w.target(targets...)
					w.converge(t)
				}
				w.requireGranted(t, c.to[len(c.to)-1]...)
				require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
			})
		}
	}
}

// TestLostWritesOfAnAccountKeepTheProof deletes the InstallPlan right after the permission was granted, and loses one
// write after the other.
func TestLostWritesOfAnAccountKeepTheProof(t *testing.T) {
	for _, accounts := range [][]string{{"weak", "weak"}, {"weak", ""}, {"weak", "strong"}, {"", "weak"}} {
		for lost := range 8 {
			w := withoutAPIs("ns")
			w.target("a", "b")
			n := 0
			for i, account := range accounts {
				w.confine(account)
				for range 6 {
					for _, a := range reconciled(t, w.input(t)).Actions {
						if n++; n != lost {
							w.apply([]olmcore.Action{a})
						}
					}
					if i == 0 && find[*rbacv1.RoleBinding](w, "a", w.role.Name) != nil {
						w.deletePlan()
					}
				}
			}
			w.target("c")
			w.converge(t)
			w.requireGranted(t, "c")
		}
	}
}

// TestARecordOfAnEarlierCSVIsTakenOver checks that a ClusterRole that an earlier CSV of the same name left behind
// becomes the record of the new CSV once an InstallPlan proves the permission.
func TestARecordOfAnEarlierCSVIsTakenOver(t *testing.T) {
	for _, rules := range [][]rbacv1.PolicyRule{nil, {pods, namespaces}} {
		w := withoutAPIs("ns")
		w.target("a")
		left := liftedOf("cool.v1", "before")[0].(*rbacv1.ClusterRole)
		left.Rules, left.Annotations = rules, map[string]string{"olmcore/limited-to-account": "weak"}
		w.more = append(w.more, left)
		w.converge(t)
		w.deletePlan()
		record := find[*rbacv1.ClusterRole](w, "", w.role.Name)
		require.Empty(t, record.Rules)
		require.Empty(t, record.Annotations)
		require.Equal(t, "uid-cool.v1", record.Labels[olmcore.LabelOwnerUID])
		w.target("b")
		w.converge(t)
		w.requireGranted(t, "b")
	}
}

// TestInstallPlansOfAFormerAccountAreReported checks that the Diagnostic contains why an InstallPlan with the right
// steps proves nothing.
func TestInstallPlansOfAFormerAccountAreReported(t *testing.T) {
	w := withoutAPIs("")
	w.plan.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Namespace: "ns", Name: "weak"}
	res := reconciled(t, w.input(t)).Result
	require.Equal(t, []string{"report " + permissions.ReasonPermissionNotApproved}, lines(res))
	require.Contains(t, res.Diagnostics[0].Message,
		"because InstallPlan install-1 ran as ServiceAccount weak, which the OperatorGroup does not name any more.")
	hold(w.csv, v1alpha1.CSVPhaseSucceeded, "InstallSucceeded", "", 0)
}

// TestPermissionsRejectedForAnAccountAreNeverGranted checks in random histories that a permission of an InstallPlan
// that ran as a ServiceAccount is granted as another identity only after the API server let the account grant it.
func TestPermissionsRejectedForAnAccountAreNeverGranted(t *testing.T) {
	grants := 0
	rapid.Check(t, func(t *rapid.T) {
		w := withoutAPIs("ns")
		w.confine("weak")
		w.plan.Status.AttenuatedServiceAccountRef = w.group.Status.ServiceAccountRef
		isGranted := false
		for range 12 {
			switch rapid.SampledFrom([]string{"target", "account", "sweep", "phase", "copies", "nothing"}).Draw(t, "change") {
			case "target":
				w.target(rapid.SampledFrom([][]string{{""}, {"a"}, {"b"}, {"a", "b"}, {"ns"}}).Draw(t, "targets")...)
			case "account":
				w.confine(rapid.SampledFrom([]string{"", "weak", "strong"}).Draw(t, "account"))
			case "sweep":
				w.deletePlan()
			case "phase":
				phase := rapid.SampledFrom([]v1alpha1.ClusterServiceVersionPhase{"InstallReady", "Succeeded", "Failed"}).Draw(t, "phase")
				hold(w.csv, phase, "", "", 0)
			case "copies":
				targets := w.group.Status.Namespaces
				w.target("ns")
				w.target(targets...)
			}
			for _, a := range reconciled(t, w.input(t)).Actions {
				if !isGrant(a) {
					w.apply([]olmcore.Action{a})
					continue
				}
				isLimited := a.Identity() != nil && a.Identity().Name == "weak"
				require.True(t, isGranted || isLimited, "%s", lines(olmcore.Result{Actions: []olmcore.Action{a}}))
				if !isLimited || rapid.Bool().Draw(t, "allowed") {
					w.apply([]olmcore.Action{a})
					_, target, _ := a.Describe() // the API server checks the rules of a ClusterRole against the rights of the account
					isGranted = isGranted || target.Kind == "RoleBinding" || target.Kind == "ClusterRole"
					grants++
				}
			}
		}
	})
	require.NotZero(t, grants)
}

// TestTheNumberOfAdoptedPermissionsIsReported checks that permissions that are not named are counted.
func TestTheNumberOfAdoptedPermissionsIsReported(t *testing.T) {
	w := withoutAPIs("")
	for i := range 6 {
		w.addPermission("cool", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{fmt.Sprint("things", i)}})
	}
	planned, err := olmcore.PermissionObjects(w.csv)
	require.NoError(t, err)
	w.forge()
	for _, o := range planned {
		switch o := o.(type) {
		case *rbacv1.Role:
			rules := append(slices.Clone(o.Rules), namespaces)
			w.put(&rbacv1.ClusterRole{ObjectMeta: lifted("ClusterRole", o.ObjectMeta), Rules: rules})
		case *rbacv1.RoleBinding:
			subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}}
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: o.RoleRef.Name}
			w.put(&rbacv1.ClusterRoleBinding{ObjectMeta: lifted("ClusterRoleBinding", o.ObjectMeta), Subjects: subjects, RoleRef: ref})
		}
	}
	w.deletePlan()
	reported, err := permissions.Assess(w.input(t))
	require.NoError(t, err)
	require.Len(t, reported, 6)
	for _, d := range reported {
		require.Equal(t, permissions.ReasonAdoptedPermission, d.Reason)
	}
	require.Equal(t, "the operator has 2 more permissions in all namespaces that no InstallPlan proves. "+
		"Allow or remove the ones that are named first", reported[5].Message)
}

// isGrant reports whether an action creates or updates a binding, or a role with rules.
func isGrant(a olmcore.Action) bool {
	switch o := writtenBy(a).(type) {
	case nil:
		return false
	case *rbacv1.Role:
		return len(o.Rules) > 0
	case *rbacv1.ClusterRole:
		return len(o.Rules) > 0
	}
	return true
}
