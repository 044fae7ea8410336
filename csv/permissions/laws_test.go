// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// atRest returns Inputs of different operators that have their permissions.
func atRest(t testing.TB) map[string]permissions.Input {
	t.Helper()
	inputs := map[string]permissions.Input{}
	for name, targets := range map[string][]string{"all namespaces": {""}, "two namespaces": {"a", "b"}, "its own": {"ns"}} {
		w := newWorld(targets...)
		w.more = append([]olmcore.Object{copyIn("a"), copyIn("b"), service("v1", "ice.example.com")}, anywhere(namespaces)...)
		w.csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice"}}
		inputs[name] = w.converge(t).input(t)
	}
	byHand := newWorld("")
	byHand.crd.Annotations = nil
	inputs["definitions made by hand"] = byHand.converge(t).input(t)
	return inputs
}

func TestReconcileWithCheckpointAllocatesNothing(t *testing.T) {
	for name, in := range atRest(t) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.CheckpointSound(permissions.Reconcile, in))
			require.NoError(t, invariant.CheckpointCovers(permissions.Reconcile, in))
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			in.Checkpoint = out.Checkpoint
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = permissions.Reconcile(in) }))
		})
	}
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, change := range map[string]func(in *permissions.Input){
		"Now":                                      func(in *permissions.Input) { in.Now = time.Time{} },
		"ClusterServiceVersion":                    func(in *permissions.Input) { in.ClusterServiceVersion = nil },
		"ClusterServiceVersion.metadata.uid":       func(in *permissions.Input) { in.ClusterServiceVersion.UID = "" },
		"OperatorGroups[1]":                        func(in *permissions.Input) { in.OperatorGroups.Items = append(in.OperatorGroups.Items, nil) },
		"InstallPlans[0]":                          func(in *permissions.Input) { in.InstallPlans = olmcore.Found[*v1alpha1.InstallPlan](nil) },
		"Namespaces[0]":                            func(in *permissions.Input) { in.Namespaces = olmcore.Found[*corev1.Namespace](nil) },
		"Copies[0]":                                func(in *permissions.Input) { in.Copies = olmcore.Found[*v1alpha1.ClusterServiceVersion](nil) },
		"Roles[2]":                                 func(in *permissions.Input) { in.Roles = olmcore.Found(role("a"), role("b"), role("a")) },
		"ClusterRoleBindings":                      func(in *permissions.Input) { in.ClusterRoleBindings.Complete = false },
		"CustomResourceDefinitions[0]":             func(in *permissions.Input) { in.CustomResourceDefinitions.Items[0] = nil },
		"ServiceAccounts[0].metadata.name":         func(in *permissions.Input) { in.ServiceAccounts.Items[0].Name = "" },
		"ClusterServiceVersion.metadata.name":      func(in *permissions.Input) { in.ClusterServiceVersion.Name = "" },
		"APIServices[0]":                           func(in *permissions.Input) { in.APIServices.Items[0] = nil },
		"RoleBindings[0]":                          func(in *permissions.Input) { in.RoleBindings = olmcore.Found[*rbacv1.RoleBinding](nil) },
		"ClusterRoles[0]":                          func(in *permissions.Input) { in.ClusterRoles.Items[0] = nil },
		"ClusterServiceVersion.metadata.namespace": func(in *permissions.Input) { in.ClusterServiceVersion.Namespace = "" },
	} {
		in := atRest(t)["all namespaces"]
		change(&in)
		_, err := reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
		_, assessed := permissions.Assess(in)
		require.Equal(t, err, assessed)
	}
}

func role(name string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestUnreadListsAreReportedAndChangeNothing(t *testing.T) {
	for _, targets := range [][]string{{""}, {"a"}} {
		w := newWorld(targets...)
		w.more = []olmcore.Object{copyIn("a")}
		w.converge(t)
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions = append(w.csv.Spec.InstallStrategy.StrategySpec.Permissions,
			v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "more", Rules: []rbacv1.PolicyRule{pods}})
		w.more = slices.DeleteFunc(w.more, func(o olmcore.Object) bool { return strings.HasSuffix(o.GetName(), "-edit") })
		whole := reconciled(t, w.input(t)).Result
		for field, name := range map[string]string{
			"OperatorGroups": "OperatorGroups", "Copies": "copies of the ClusterServiceVersion", "ServiceAccounts": "ServiceAccounts", "Roles": "Roles", "RoleBindings": "RoleBindings",
			"ClusterRoles": "ClusterRoles", "ClusterRoleBindings": "ClusterRoleBindings", "CustomResourceDefinitions": "CustomResourceDefinitions",
		} {
			in := w.input(t)
			reflect.ValueOf(&in).Elem().FieldByName(field).SetZero()
			res := reconciled(t, in).Result
			if field == "Copies" && targets[0] == "" {
				require.Equal(t, whole, res)
				continue
			}
			require.Len(t, res.Diagnostics, 1, field)
			require.Equal(t, permissions.ReasonNotObserved, res.Diagnostics[0].Reason)
			require.Equal(t, "the list of "+name+" was not read, so dependent roles and bindings stay as they are", res.Diagnostics[0].Message)
			require.Equal(t, 5*time.Second, res.RequeueAfter)
			require.Subset(t, lines(whole), lines(olmcore.Result{Actions: res.Actions}), field)
		}
	}
}

func TestGatherReturnsFailedReads(t *testing.T) {
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	_, err = permissions.Gather(context.Background(), nothing, key)
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.ErrorContains(t, err, "everything about a ClusterServiceVersion")
	empty, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	_, err = permissions.Gather(context.Background(), empty, key)
	require.True(t, apierrors.IsNotFound(err))
	// A namespace that was not read makes its lists incomplete.
	w := newWorld("a", "b")
	w.more = []olmcore.Object{copyIn("a")}
	kind := rbacv1.SchemeGroupVersion.WithKind
	scopes := []olmcore.Scope{{Kind: kind("Role").GroupKind(), Namespace: "a"}, {Kind: kind("Role").GroupKind(), Namespace: "ns"}}
	for _, gvk := range []schema.GroupVersionKind{kind("RoleBinding"), kind("ClusterRole"), kind("ClusterRoleBinding")} {
		scopes = append(scopes, olmcore.Scope{Kind: gvk.GroupKind()})
	}
	partial, err := olmcore.NewSnapshot(w.objects(), scopes...)
	require.NoError(t, err)
	in, err := permissions.Gather(context.Background(), partial, key)
	require.NoError(t, err)
	in.Now = now
	require.Equal(t, []string{"report NotObserved"}, lines(reconciled(t, in).Result)[4:], "the ClusterRoles for its API are made")
}

// TestGatherSelectsByNoInvalidLabelValue checks a CSV whose name is not a valid label value. An API server would reject
// such a selector.
func TestGatherSelectsByNoInvalidLabelValue(t *testing.T) {
	w := newWorld("")
	w.csv.Name = strings.Repeat("c", 64)
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{w.csv}, olmcore.Everything)
	require.NoError(t, err)
	in, err := permissions.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: w.csv.Name})
	require.NoError(t, err)
	require.False(t, in.ClusterRoles.Complete)
	in.Now = now
	require.Equal(t, olmcore.Result{}, reconciled(t, in).Result)
}

// TestAffectedNamesCSVsWhoseResultChanges removes each object of some worlds in turn.
func TestAffectedNamesCSVsWhoseResultChanges(t *testing.T) {
	for name, targets := range map[string][]string{"all namespaces": {""}, "two namespaces": {"a", "b"}, "its own": {"ns"}} {
		for _, settled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, settled), func(t *testing.T) {
				w := newWorld(targets...)
				w.more = append([]olmcore.Object{copyIn("a"), copyIn("b"), service("v1", "ice.example.com")}, anywhere(namespaces)...)
				w.csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice"}}
				if settled {
					w.converge(t)
					w.more = append(w.more, anywhere(namespaces, pods)[0])
					w.more = slices.DeleteFunc(w.more, func(o olmcore.Object) bool { return o.GetName() == "generous" })
				} else {
					w.more = append(w.more[:3], anywhere(pods)...)
				}
				all := w.objects()
				want := reconciled(t, inputOf(t, all)).Result
				mattered := 0
				for i, o := range all {
					if o == olmcore.Object(w.csv) {
						continue
					}
					got := reconciled(t, inputOf(t, slices.Delete(slices.Clone(all), i, i+1))).Result
					if !cmp.Equal(want, got) {
						mattered++
						known := []types.NamespacedName{key, {Namespace: "x", Name: "x"}}
						require.Contains(t, olmcore.ExpandKeys(permissions.Affected(o), known), key, "%s", olmcore.KeyOf(o))
					}
				}
				require.GreaterOrEqual(t, mattered, 2)
			})
		}
	}
}

func TestAffectedReturnsCSVs(t *testing.T) {
	all, ns, one := []types.NamespacedName{{}}, []types.NamespacedName{{Namespace: "ns"}}, []types.NamespacedName{key}
	w := newWorld("a")
	bound := anywhere()[1].(*rbacv1.ClusterRoleBinding)
	everybody := bound.DeepCopy()
	everybody.Subjects = []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}
	copied := w.role.DeepCopy()
	copied.Namespace, copied.Labels["olm.owner.namespace"], copied.Labels["olm.copiedFrom"] = "a", "a", "ns"
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"the CSV":                              {w.csv, one},
		"a copy of it":                         {copyIn("a"), one},
		"its group":                            {w.group, ns},
		"its account":                          {w.account, ns},
		"its Role":                             {w.role, ns},
		"a copied Role":                        {copied, one},
		"a ClusterRole":                        {clusterRole("x", nil), all},
		"a binding of its account":             {bound, ns},
		"a binding of all users":               {everybody, all},
		"the CRD that came with it":            {w.crd, one},
		"a CRD without owner":                  {definition("x", "y"), one},
		"an APIService":                        {service("v1", "x"), all},
		"an OLMConfig":                         {&operatorsv1.OLMConfig{}, nil},
		"the plan with its Role":               {w.plan, one},
		"a plan without steps":                 {&v1alpha1.InstallPlan{}, nil},
		"its Namespace":                        {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, ns},
		"an OperatorGroup without a namespace": {&operatorsv1.OperatorGroup{}, nil},
	} {
		require.Equal(t, c.want, permissions.Affected(c.object), name)
	}
}

func vocabulary(hostile bool) gen.Vocabulary {
	return gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"group", "cool.v1", "cool", "cools.example.com", newWorld("").role.Name}, Hostile: hostile,
		Words: map[string][]string{
			"phase": {"", "Pending", "InstallReady", "Succeeded", "Failed"}, "kind": {"Cool", "ServiceAccount", "Role", "ClusterServiceVersion"},
			"group": {"example.com", ""}, "version": {"v1"}, "strategyname": {"deployment"}, "type": {"AllNamespaces", "MultiNamespace"},
			"namespaces": {"", "a", "ns"}, "serviceaccountname": {"cool", "weak"}, "labels": {"olm.owner", "olm.copiedFrom", "olm.owner.kind"},
		},
	}
}

// TestLawsHoldForRandomInputs checks random Inputs. In half of them the operator is Succeeded.
func TestLawsHoldForRandomInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[permissions.Input](vocabulary(false)).Draw(t, "in")
		in.Now, in.Checkpoint = now, nil
		lists := reflect.ValueOf(&in).Elem()
		for i := range lists.NumField() {
			if field := lists.Field(i); field.Kind() == reflect.Struct && field.FieldByName("Complete").IsValid() {
				field.FieldByName("Complete").SetBool(true) // an incomplete list with items is an InputError
			}
		}
		if rapid.Bool().Draw(t, "well") {
			w := newWorld(rapid.SampledFrom([][]string{{""}, {"a"}}).Draw(t, "targets")...)
			w.more = []olmcore.Object{copyIn("a")}
			base := w.input(t)
			in.ClusterServiceVersion, in.OperatorGroups, in.Copies = base.ClusterServiceVersion, base.OperatorGroups, base.Copies
			in.ServiceAccounts, in.Roles, in.RoleBindings = base.ServiceAccounts, base.Roles, base.RoleBindings
			if rapid.Bool().Draw(t, "planned") {
				in.InstallPlans, in.Namespaces = base.InstallPlans, base.Namespaces
			}
			if rapid.Bool().Draw(t, "defined") {
				in.CustomResourceDefinitions = base.CustomResourceDefinitions
			}
		}
		require.NoError(t, invariant.Laws(reconcile, in))
		require.NoError(t, invariant.CheckpointSound(permissions.Reconcile, in))
	})
}

// encoded contains the fields of an Input that the fuzz test reads from JSON.
type encoded struct {
	permissions.Input
	LastRun *int `json:",omitempty"`
}

// FuzzReconcile decodes a ClusterServiceVersion and all other objects from any bytes.
func FuzzReconcile(f *testing.F) {
	inputs := atRest(f)
	inputs["new"], inputs["new, in a namespace"] = newWorld("").input(f), newWorld("a").input(f)
	for _, in := range inputs {
		data, err := json.Marshal(encoded{Input: in})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var decoded encoded
		if json.Unmarshal(data, &decoded) != nil {
			return
		}
		in := decoded.Input
		in.Now, in.Checkpoint = now, nil
		require.NoError(t, invariant.Deterministic(reconcile, in))
		if _, err := reconcile(in); err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
		for _, o := range in.Roles.Items {
			if o != nil {
				permissions.Affected(o)
			}
		}
	})
}

func TestHostileInputsDoNotPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[permissions.Input](vocabulary(true)).Draw(t, "in")
		in.Now, in.Checkpoint = now, nil
		if _, err := permissions.Reconcile(in); err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
	})
}
