// SPDX-License-Identifier: Apache-2.0

package operatorgroup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// TestStatusFollowsSpecAccountAndOtherGroups contains OLM's cases of syncOperatorGroups: a selector that matches, a
// selector that matches nothing, explicit targets, all namespaces, a missing ServiceAccount, a second OperatorGroup.
func TestStatusFollowsSpecAccountAndOtherGroups(t *testing.T) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "ns", Name: "limited", UID: "sa"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "limited", UID: "sa", ResourceVersion: "1", Labels: map[string]string{"olm.managed": "true"}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	from := func(age time.Duration, targets ...string) *operatorsv1.OperatorGroupStatus {
		return &operatorsv1.OperatorGroupStatus{Namespaces: targets, LastUpdated: ago(age)}
	}
	for name, c := range map[string]struct {
		change func(in *operatorgroup.Input)
		// want is the status to write, nil for none.
		want *operatorsv1.OperatorGroupStatus
	}{
		"listed namespaces, sorted": {
			func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"b", "a", "b"} }, from(0, "a", "b"),
		},
		"no selector means all": {func(*operatorgroup.Input) {}, from(0, "")},
		"a selector": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.Selector = selector
			in.Namespaces = olmcore.Found(namespace("y", selector.MatchLabels), namespace("x", selector.MatchLabels), namespace("z", nil))
		}, from(0, "x", "y")},
		"a selector that matches nothing is not all": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.Selector, in.Namespaces = selector, olmcore.Found(namespace("z", nil))
		}, &operatorsv1.OperatorGroupStatus{LastUpdated: ago(0)}},
		"a namespace is no longer selected": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.Selector, in.Namespaces = selector, olmcore.Found(namespace("x", selector.MatchLabels), namespace("y", nil))
			in.OperatorGroup.Status = *from(time.Hour, "x", "y")
		}, from(0, "x")},
		"namespaces were not read": {func(in *operatorgroup.Input) { in.OperatorGroup.Spec.Selector = selector }, nil},
		"nothing changed":          {func(in *operatorgroup.Input) { in.OperatorGroup.Status = *from(time.Hour, "") }, nil},
		"changed targets keep the account": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.ServiceAccountName, in.ServiceAccounts = "limited", olmcore.Found(account)
			in.OperatorGroup.Status = operatorsv1.OperatorGroupStatus{Namespaces: []string{"x"}, LastUpdated: ago(time.Hour), ServiceAccountRef: ref}
		}, &operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(0), ServiceAccountRef: ref}},
		"the account is missing": {
			func(in *operatorgroup.Input) {
				in.OperatorGroup.Spec.ServiceAccountName, in.ServiceAccounts.Complete = "limited", true
			},
			&operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(0), Conditions: []metav1.Condition{{
				Type: "OperatorGroupServiceAccount", Status: "True", Reason: "ServiceAccountNotFound",
				Message: "ServiceAccount limited not found", LastTransitionTime: *ago(0),
			}}},
		},
		"the account of a new group may be missing in the cache": {func(in *operatorgroup.Input) {
			in.OperatorGroup.CreationTimestamp = *ago(9 * time.Second)
			in.OperatorGroup.Spec.ServiceAccountName, in.ServiceAccounts.Complete = "limited", true
		}, from(0, "")},
		"there are two groups": {
			func(in *operatorgroup.Input) {
				other := group()
				other.Name = "other"
				in.Siblings = olmcore.Found(other)
			},
			&operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(0), Conditions: []metav1.Condition{{
				Type: "MultipleOperatorGroup", Status: "True", Reason: "MultipleOperatorGroupsFound",
				Message: "Multiple OperatorGroup found in the same namespace", LastTransitionTime: *ago(0),
			}}},
		},
		"a target is removed, unsorted": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.TargetNamespaces = []string{"ns", "a", "ns"}
			in.OperatorGroup.Status = *from(time.Hour, "ns", "b", "a")
		}, from(0, "a", "ns")},
		"another account": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.ServiceAccountName, in.ServiceAccounts = "limited", olmcore.Found(account)
			old := *ref
			old.UID = "before"
			in.OperatorGroup.Status = operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(time.Hour), ServiceAccountRef: &old}
		}, &operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(time.Hour), ServiceAccountRef: ref}},
		"the reference is outdated": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.ServiceAccountName, in.ServiceAccounts = "limited", olmcore.Found(account)
			aged := *ref
			aged.ResourceVersion = "before"
			in.OperatorGroup.Status = operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(time.Hour), ServiceAccountRef: &aged}
		}, nil},
		"the account is removed": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Status = operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: ago(time.Hour), ServiceAccountRef: ref}
		}, from(time.Hour, "")},
		"an empty target among others": {func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"ns", ""} }, nil},
		"the group is being deleted":   {func(in *operatorgroup.Input) { in.OperatorGroup.DeletionTimestamp = ago(0) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := group()
			g.Spec, g.Status = operatorsv1.OperatorGroupSpec{}, operatorsv1.OperatorGroupStatus{}
			in := operatorgroup.Input{Now: now, OperatorGroup: g, Siblings: olmcore.Found[*operatorsv1.OperatorGroup]()}
			c.change(&in)
			res := reconciled(t, in).Result
			after, ok := olmcore.StatusOf[*operatorsv1.OperatorGroup](res.Actions)
			require.Equal(t, c.want != nil, ok)
			if slices.Contains(in.OperatorGroup.Spec.TargetNamespaces, "") {
				require.Equal(t, operatorgroup.ReasonInvalidTargets, res.Diagnostics[0].Reason)
				require.Equal(t, "TargetNamespaces cannot contain NamespaceAll: [ns ]", res.Diagnostics[0].Message)
				require.Len(t, res.Diagnostics, 1)
				require.Empty(t, res.Actions)
			}
			if ok {
				require.Equal(t, *c.want, after.Status)
				in.OperatorGroup = after
				again := reconciled(t, in).Result
				_, twice := olmcore.StatusOf[*operatorsv1.OperatorGroup](again.Actions)
				require.False(t, twice)
			}
		})
	}
	young := alone(group())
	young.OperatorGroup.Spec.ServiceAccountName = "limited"
	for age, wait := range map[time.Duration]time.Duration{9 * time.Second: time.Second, 10 * time.Second: 0, -time.Second: 0} {
		young.OperatorGroup.CreationTimestamp = *ago(age)
		res := reconciled(t, young).Result
		require.Equal(t, wait, res.RequeueAfter)
		require.Equal(t, wait == 0, len(res.Diagnostics) > 0, "%v", res.Diagnostics)
	}
	bare := account.DeepCopy()
	bare.Labels = nil
	g := group()
	g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "limited", ref
	res := reconciled(t, operatorgroup.Input{Now: now, OperatorGroup: g, ServiceAccounts: olmcore.Found(bare)}).Result
	require.Len(t, res.Actions, 1, "the ServiceAccount is labelled, so that caches contain it")
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, in := range map[string]operatorgroup.Input{
		"OperatorGroup":                    {Now: now},
		"OperatorGroup.metadata.name":      {Now: now, OperatorGroup: &operatorsv1.OperatorGroup{}},
		"OperatorGroup.metadata.namespace": {Now: now, OperatorGroup: &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}}},
		"Now":                              {OperatorGroup: group()},
		"Siblings[0]":                      {Now: now, OperatorGroup: group(), Siblings: olmcore.Found[*operatorsv1.OperatorGroup](nil)},
		"Namespaces[0]":                    {Now: now, OperatorGroup: group(), Namespaces: olmcore.Found[*corev1.Namespace](nil)},
		"Namespaces[2]": {
			Now: now, OperatorGroup: group(), Namespaces: olmcore.Found(namespace("b", nil), namespace("a", nil), namespace("b", nil)),
		},
	} {
		_, err := reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

func fail(c *v1alpha1.ClusterServiceVersion, reason v1alpha1.ConditionReason) {
	c.Status.Phase, c.Status.Reason = v1alpha1.CSVPhaseFailed, reason
}

// groupInput returns an Input of a converged OperatorGroup with two members.
func groupInput(t *testing.T) operatorgroup.Input {
	t.Helper()
	g := group()
	g.Spec, g.Status.Namespaces = operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns", "a"}}, []string{"a", "ns"}
	g.Annotations["olm.providedAPIs"] = "Cool.v1.example.com,Hot.v1.example.com"
	hot, cool := operator("hot.v1", "Hot"), operator("cool.v1", "Cool")
	in := alone(g)
	in.ClusterServiceVersions = olmcore.Found(cool, hot)
	in.Namespaces = olmcore.Found(namespace("a", map[string]string{"olm.operatorgroup.uid/group": ""}), namespace("b", nil), namespace("ns", map[string]string{"olm.operatorgroup.uid/group": ""}))
	res := reconciled(t, in).Result
	require.Len(t, res.Actions, 3)
	for _, a := range res.Actions {
		in.ClusterRoles.Items = append(in.ClusterRoles.Items, a.(olmcore.Create).Object.(*rbacv1.ClusterRole))
	}
	res = reconciled(t, in).Result
	require.Empty(t, res)
	return in
}

// TestClusterRolesAggregateTheProvidedAPIs contains OLM's cases of aggregation. The selectors are sorted.
func TestClusterRolesAggregateTheProvidedAPIs(t *testing.T) {
	in := groupInput(t)
	var names []string
	for _, r := range in.ClusterRoles.Items {
		names = append(names, r.Name)
	}
	// Golden: base62 of the SHA-224 of "ns/group/<suffix>".
	require.Equal(t, []string{
		"olm.og.group.admin-5NxkTtw1lQXNWyIzEvjfhis4JcTysjqo3n0p3o", "olm.og.group.edit-6n1CegreSuwSJpRwf5EQucCLyQLX8oLFP6lUWO", "olm.og.group.view-aDWvFCBlX18CQabvEmeGiUdkuVkr0mhl7QOS0S",
	}, names)
	admin := in.ClusterRoles.Items[0]
	require.Equal(t, map[string]string{"olm.managed": "true", "olm.owner": "group", "olm.owner.namespace": "ns", "olm.owner.kind": "OperatorGroup"}, admin.Labels)
	require.Equal(t, &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{"olm.opgroup.permissions/aggregate-to-acc2dcb48df4c1b8-admin": "true"}},
		{MatchLabels: map[string]string{"olm.opgroup.permissions/aggregate-to-c38844a2fa17abf0-admin": "true"}},
	}}, admin.AggregationRule)

	long := groupInput(t)
	long.OperatorGroup.Name = strings.Repeat("g", 63)
	res := reconciled(t, long).Result
	require.Equal(t, long.OperatorGroup.Name, res.Actions[0].(olmcore.Create).Object.GetLabels()["olm.owner"])
	long.OperatorGroup.Name += "g"
	res = reconciled(t, long).Result
	require.Empty(t, res.Actions)
	require.Len(t, res.Diagnostics, 1)
	require.Equal(t, operatorgroup.ReasonGroupNameTooLong, res.Diagnostics[0].Reason)
	require.Equal(t, "no ClusterRoles are created for the OperatorGroup: its name has 64 characters, and a label value has at most 63",
		res.Diagnostics[0].Message)
}

// TestNamespaceLabelsClusterRolesAndProvidedAPIs contains OLM's cases of namespace labels (added, removed, unchanged),
// of ClusterRoles (created, unchanged, relabelled) and of static OperatorGroups.
func TestNamespaceLabelsClusterRolesAndProvidedAPIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *operatorgroup.Input)
		want   []string
	}{
		"a namespace is added": {func(in *operatorgroup.Input) { in.Namespaces.Items[0].Labels = nil }, []string{"update Namespace a"}},
		"a namespace is removed": {func(in *operatorgroup.Input) {
			in.Namespaces.Items[1].Labels = map[string]string{"olm.operatorgroup.uid/group": ""}
		}, []string{"update Namespace b"}},
		"the label of another group": {func(in *operatorgroup.Input) {
			in.Namespaces.Items[1].Labels = map[string]string{"olm.operatorgroup.uid/other": ""}
		}, nil},
		"all namespaces need no label": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Spec.TargetNamespaces, in.OperatorGroup.Status.Namespaces = nil, []string{""}
		}, []string{"update Namespace a", "update Namespace ns"}},
		"a role has no labels": {
			func(in *operatorgroup.Input) { in.ClusterRoles.Items[1].Labels = nil }, []string{"update ClusterRole olm.og.group.edit-x"},
		},
		"a role is not managed": {
			func(in *operatorgroup.Input) { delete(in.ClusterRoles.Items[1].Labels, "olm.managed") }, []string{"update ClusterRole olm.og.group.edit-x"},
		},
		"a role lacks one label": {
			func(in *operatorgroup.Input) { delete(in.ClusterRoles.Items[1].Labels, "olm.owner") }, []string{"update ClusterRole olm.og.group.edit-x"},
		},
		"a role selects another value": {func(in *operatorgroup.Input) {
			for key := range in.ClusterRoles.Items[1].AggregationRule.ClusterRoleSelectors[0].MatchLabels {
				in.ClusterRoles.Items[1].AggregationRule.ClusterRoleSelectors[0].MatchLabels[key] = "false"
			}
		}, []string{"update ClusterRole olm.og.group.edit-x"}},
		"a role selects too much": {func(in *operatorgroup.Input) {
			s := &in.ClusterRoles.Items[1].AggregationRule.ClusterRoleSelectors
			*s = append(*s, (*s)[0])
		}, []string{"update ClusterRole olm.og.group.edit-x"}},
		"a role selects by expression": {func(in *operatorgroup.Input) {
			in.ClusterRoles.Items[1].AggregationRule.ClusterRoleSelectors[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Exists"}}
		}, []string{"update ClusterRole olm.og.group.edit-x"}},
		"a role selects another API": {func(in *operatorgroup.Input) {
			in.ClusterRoles.Items[1].AggregationRule.ClusterRoleSelectors[0].MatchLabels = map[string]string{"olm.opgroup.permissions/aggregate-to-1-edit": "true"}
		}, []string{"update ClusterRole olm.og.group.edit-x"}},
		"a role is missing": {
			func(in *operatorgroup.Input) { in.ClusterRoles.Items = in.ClusterRoles.Items[:2] }, []string{"create ClusterRole olm.og.group.view-x"},
		},
		"a role is being deleted": {func(in *operatorgroup.Input) {
			in.ClusterRoles.Items[1].DeletionTimestamp, in.ClusterRoles.Items[1].Labels = ago(0), nil
		}, nil},
		"an operator provides more": {func(in *operatorgroup.Input) {
			d := &in.ClusterServiceVersions.Items[0].Spec.CustomResourceDefinitions
			d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "mores.example.com", Kind: "More", Version: "v1"})
		}, []string{"roles"}},
		"a role selects too little": {
			func(in *operatorgroup.Input) { in.ClusterRoles.Items[2].AggregationRule = nil }, []string{"update ClusterRole olm.og.group.view-x"},
		},
		"the roles were not read": {func(in *operatorgroup.Input) { in.ClusterRoles = olmcore.Observed[*rbacv1.ClusterRole]{} }, nil},
		"unused APIs are removed": {
			func(in *operatorgroup.Input) { in.OperatorGroup.Annotations["olm.providedAPIs"] += ",X.v1.x" }, []string{"annotate Cool.v1.example.com,Hot.v1.example.com", "roles"},
		},
		"a static group keeps them": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Annotations["olm.providedAPIs"] += ",X.v1.x"
			in.OperatorGroup.Spec.StaticProvidedAPIs = true
		}, []string{"roles"}},
		"unread CSVs keep them": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Annotations["olm.providedAPIs"] += ",X.v1.x"
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		}, nil},
		"a CSV is about to add an API": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Annotations["olm.providedAPIs"] = "Hot.v1.example.com,X.v1.x"
			in.ClusterServiceVersions.Items[0].Status.Phase = v1alpha1.CSVPhasePending
		}, []string{"roles"}},
		"a CSV that is being deleted": {func(in *operatorgroup.Input) {
			in.OperatorGroup.Annotations["olm.providedAPIs"] = "Hot.v1.example.com,X.v1.x"
			in.ClusterServiceVersions.Items[0].Status.Phase = v1alpha1.CSVPhasePending
			in.ClusterServiceVersions.Items[0].DeletionTimestamp = ago(0)
		}, []string{"annotate Hot.v1.example.com", "roles"}},
		"a CSV that was stopped because of its APIs": {func(in *operatorgroup.Input) {
			fail(in.ClusterServiceVersions.Items[0], "InterOperatorGroupOwnerConflict")
		}, []string{"annotate Hot.v1.example.com"}},
		"a CSV with unsupported targets": {
			func(in *operatorgroup.Input) { fail(in.ClusterServiceVersions.Items[0], "UnsupportedOperatorGroup") }, nil,
		},
		"a CSV without targets": {func(in *operatorgroup.Input) { fail(in.ClusterServiceVersions.Items[0], "NoTargetNamespaces") }, nil},
		"a copy": {
			func(in *operatorgroup.Input) { in.ClusterServiceVersions.Items[0].Status.Reason = "Copied" }, []string{"annotate Hot.v1.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := groupInput(t)
			c.change(&in)
			res := reconciled(t, in).Result
			var got []string
			for _, a := range res.Actions {
				verb, target, _ := a.Describe()
				switch u, isUpdate := a.(olmcore.Update); {
				case isUpdate && target.Kind == "OperatorGroup":
					got = append(got, "annotate "+u.After.GetAnnotations()["olm.providedAPIs"])
				case target.Kind == "ClusterRole" && len(res.Actions) >= 3 && strings.Contains(target.Name, ".admin-"):
					got = append(got, "roles")
				case target.Kind == "ClusterRole" && len(res.Actions) >= 3:
				case target.Kind == "ClusterRole":
					got = append(got, fmt.Sprintf("%s %s %s-x", verb, target.Kind, target.Name[:strings.LastIndexByte(target.Name, '-')]))
				default:
					got = append(got, fmt.Sprintf("%s %s %s", verb, target.Kind, target.Name))
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestUnreadServiceAccountsAreNotMissing checks that the reference and the condition in the status stay as they are.
func TestUnreadServiceAccountsAreNotMissing(t *testing.T) {
	for name, read := range map[string]bool{"not read": false, "not there": true} {
		t.Run(name, func(t *testing.T) {
			g := group()
			g.Spec.ServiceAccountName = "limited"
			g.Status.ServiceAccountRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "ns", Name: "limited", UID: "a"}
			in := alone(g)
			in.ServiceAccounts.Complete = read
			res := reconciled(t, in).Result
			require.Len(t, res.Diagnostics, 1)
			after, written := olmcore.StatusOf[*operatorsv1.OperatorGroup](res.Actions)
			require.Equal(t, read, written)
			if read {
				require.Nil(t, after.Status.ServiceAccountRef)
				return
			}
			require.Equal(t, operatorgroup.ReasonNotObserved, res.Diagnostics[0].Reason)
			require.Equal(t, 5*time.Second, res.RequeueAfter)
		})
	}
}

// TestUnreadListsAreReported checks that the objects and fields that depend on an unread list stay as they are.
func TestUnreadListsAreReported(t *testing.T) {
	for name, forget := range map[string]func(*operatorgroup.Input){
		"OperatorGroups": func(in *operatorgroup.Input) { in.Siblings = olmcore.Observed[*operatorsv1.OperatorGroup]{} },
		"Namespaces":     func(in *operatorgroup.Input) { in.Namespaces = olmcore.Observed[*corev1.Namespace]{} },
		"ClusterServiceVersions": func(in *operatorgroup.Input) {
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		},
		"ClusterRoles": func(in *operatorgroup.Input) { in.ClusterRoles = olmcore.Observed[*rbacv1.ClusterRole]{} },
	} {
		t.Run(name, func(t *testing.T) {
			in := alone(group())
			whole := reconciled(t, in).Result
			require.Empty(t, whole.Diagnostics)
			forget(&in)
			res := reconciled(t, in).Result
			require.Len(t, res.Diagnostics, 1)
			require.Equal(t, operatorgroup.ReasonNotObserved, res.Diagnostics[0].Reason)
			require.Contains(t, res.Diagnostics[0].Message, "the list of "+name+" (")
			require.Equal(t, 5*time.Second, res.RequeueAfter)
			require.Subset(t, whole.Actions, res.Actions)
		})
	}
}

// TestManyOperatorsInOneNamespaceAreReconciledQuickly checks that the APIs of thousands of operators are compared with
// the annotation in one pass.
func TestManyOperatorsInOneNamespaceAreReconciledQuickly(t *testing.T) {
	cost := func(n int, extra string, want int) float64 {
		in := operatorgroup.Input{Now: now, OperatorGroup: group(), ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion]()}
		var apis []string
		for i := range n {
			c := operator(fmt.Sprintf("cool%05d.v1", i), fmt.Sprintf("Cool%05d", i))
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, c)
			apis = append(apis, c.Spec.CustomResourceDefinitions.Owned[0].Kind+".v1.example.com")
		}
		in.OperatorGroup.Annotations["olm.providedAPIs"] = strings.Join(apis, ",") + extra
		require.Len(t, reconciled(t, in).Actions, want)
		return testing.AllocsPerRun(1, func() { reconciled(t, in) })
	}
	for extra, want := range map[string]int{"": 0, ",Zzz.v1.example.com": 1} {
		require.LessOrEqual(t, cost(10_000, extra, want), 5*cost(2500, extra, want))
	}
}

// TestClusterRolesWithoutAPIsGrantNothing checks that the ClusterRoles of an OperatorGroup without APIs aggregate
// nothing, and that rules that were aggregated before are removed. OLM's case: no APIs, no aggregation.
func TestClusterRolesWithoutAPIsGrantNothing(t *testing.T) {
	g := group()
	g.Annotations, g.Spec = nil, operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns"}}
	res := reconciled(t, alone(g)).Result
	require.Len(t, res.Actions, 3)
	in := alone(g)
	for _, a := range res.Actions {
		role := a.(olmcore.Create).Object.(*rbacv1.ClusterRole)
		require.Nil(t, role.AggregationRule)
		role = role.DeepCopy()
		role.UID, role.ResourceVersion = types.UID(role.Name), "1"
		in.ClusterRoles.Items = append(in.ClusterRoles.Items, role)
	}
	in.ClusterRoles.Complete = true
	for _, action := range reconciled(t, in).Actions {
		require.NotEqual(t, "ClusterRole", action.(olmcore.Update).Target.Kind)
	}

	// The last operator went: who is bound to a role may do nothing more by it.
	aggregated := &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"olm.opgroup.permissions/aggregate-to-1-admin": "true"}}}}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"example.com"}, Resources: []string{"alphas"}}}
	for _, rule := range []*rbacv1.AggregationRule{aggregated, nil} {
		in.ClusterRoles.Items[0] = in.ClusterRoles.Items[0].DeepCopy()
		in.ClusterRoles.Items[0].AggregationRule, in.ClusterRoles.Items[0].Rules = rule, rules
		after := reconciled(t, in).Actions[0].(olmcore.Update).After.(*rbacv1.ClusterRole)
		require.Nil(t, after.AggregationRule)
		require.Empty(t, after.Rules)
	}
}

func TestReconcileWithCheckpointAllocatesNothing(t *testing.T) {
	for name, in := range atRest(t, 10) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.CheckpointSound(operatorgroup.Reconcile, in))
			require.NoError(t, invariant.CheckpointCovers(operatorgroup.Reconcile, in))
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			in.Checkpoint = out.Checkpoint
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = operatorgroup.Reconcile(in) }))
		})
	}
}

func TestCheckpointEndsWithTheGracePeriodOfTheServiceAccount(t *testing.T) {
	in := atRest(t, 1)["with an account"]
	in.OperatorGroup = in.OperatorGroup.DeepCopy()
	in.OperatorGroup.CreationTimestamp, in.OperatorGroup.Status.ServiceAccountRef = *ago(time.Second), nil
	in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]()
	out := reconciled(t, in)
	require.NotNil(t, out.Checkpoint)
	require.Equal(t, 9*time.Second, out.RequeueAfter)
	require.NoError(t, invariant.CheckpointSound(operatorgroup.Reconcile, in))
}

// manyGroups returns the objects of a cluster with n namespaces, each with an OperatorGroup.
func manyGroups(n int) (objects []olmcore.Object, keys []types.NamespacedName) {
	for i := range n {
		name := fmt.Sprintf("n%06d", i)
		g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "group", UID: types.UID("group-" + name)}}
		g.Spec.TargetNamespaces, g.Status.Namespaces, g.Status.LastUpdated = []string{name}, []string{name}, ago(time.Hour)
		if i%2 == 1 {
			g.Spec = operatorsv1.OperatorGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}}
		}
		objects = append(objects, g, namespace(name, map[string]string{"team": name}))
		keys = append(keys, types.NamespacedName{Namespace: name, Name: "group"})
	}
	return objects, keys
}

// BenchmarkManyGroups reconciles all OperatorGroups of such a cluster.
func BenchmarkManyGroups(b *testing.B) {
	for _, n := range []int{100, 1000} {
		objects, keys := manyGroups(n)
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(b, err)
		b.Run(fmt.Sprint("groups=", n), func(b *testing.B) {
			for b.Loop() {
				for _, key := range keys {
					in, err := operatorgroup.Gather(context.Background(), snapshot, key)
					require.NoError(b, err)
					in.Now = now
					_ = reconciled(b, in).Result
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/group")
		})
	}
}

// BenchmarkReconcile reconciles a converged OperatorGroup, with and without its Checkpoint.
func BenchmarkReconcile(b *testing.B) {
	for _, namespaces := range []int{0, 100, 10000} {
		in := atRest(b, namespaces)["selected"]
		out := reconciled(b, in)
		for name, checkpoint := range map[string]*olmcore.Checkpoint{"plain": nil, "checkpoint": out.Checkpoint} {
			in.Checkpoint = checkpoint
			b.Run(fmt.Sprintf("%s/namespaces=%d", name, namespaces), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if out, err := operatorgroup.Reconcile(in); err != nil || !out.Empty() {
						b.Fatal(out, err)
					}
				}
			})
		}
	}
}

// FuzzReconcile decodes an OperatorGroup and all other objects from any bytes.
func FuzzReconcile(f *testing.F) {
	for _, in := range atRest(f, 1) {
		data, err := json.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"OperatorGroup":{"metadata":{"name":"g","namespace":"n"},"spec":{"selector":{"matchLabels":{"a b":"c"}}}},"Namespaces":{"Complete":true,"Items":[{"metadata":{"name":"x","labels":{"a b":"c"}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := operatorgroup.Input{}
		if json.Unmarshal(data, &in) != nil {
			return
		}
		in.Now, in.Checkpoint = now, nil
		require.NoError(t, invariant.Deterministic(reconcile, in))
		if _, err := reconcile(in); err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
	})
}

func TestLawsHoldForRandomInputs(t *testing.T) {
	vocabulary := gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"group", "other", "cool.v1", "cool.v2"},
		Words: map[string][]string{"phase": {"", "Pending", "Succeeded", "Failed"}, "kind": {"Cool", "Hot"}, "group": {"example.com", ""}, "version": {"v1"}},
	}
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[operatorgroup.Input](vocabulary).Draw(t, "in")
		in.Now, in.Checkpoint = now, nil
		for _, complete := range []*bool{&in.Siblings.Complete, &in.Namespaces.Complete, &in.ClusterServiceVersions.Complete, &in.ClusterRoles.Complete, &in.ServiceAccounts.Complete} {
			*complete = true // an incomplete list with items is an InputError
		}
		require.NoError(t, invariant.Laws(reconcile, in))
		require.NoError(t, invariant.CheckpointSound(operatorgroup.Reconcile, in))
	})
}
