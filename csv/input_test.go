// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

func TestBrokenContractsNameTheField(t *testing.T) {
	for field, change := range map[string]func(in *csv.Input){
		"ClusterServiceVersion":                    func(in *csv.Input) { in.ClusterServiceVersion = nil },
		"ClusterServiceVersion.metadata.name":      func(in *csv.Input) { in.ClusterServiceVersion.Name = "" },
		"ClusterServiceVersion.metadata.namespace": func(in *csv.Input) { in.ClusterServiceVersion.Namespace = "" },
		"ClusterServiceVersion.metadata.uid":       func(in *csv.Input) { in.ClusterServiceVersion.UID = "" },
		"Now":                                      func(in *csv.Input) { in.Now = time.Time{} },
		"Neighbours[0]":                            func(in *csv.Input) { in.Neighbours = olmcore.Found[*v1alpha1.ClusterServiceVersion](nil) },
		"Deployments[1]":                           func(in *csv.Input) { in.Deployments = olmcore.Found(installed(), nil) },
		"Config.InstallTimeout":                    func(in *csv.Input) { in.Config.InstallTimeout = -1 },
	} {
		in := input(pending, "RequirementsUnknown", "")
		change(&in)
		_, err := csv.Reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
		assessed, wrong := csv.Assess(in)
		require.Equal(t, err, wrong)
		require.Equal(t, csv.Assessment{}, assessed)
	}
}

func TestGatherKeepsWhatMatters(t *testing.T) {
	c, d := newWorld(csv.Config{})
	objects := fromFiles("base.yaml", "v1.yaml", "rbac-v2.yaml", "v2.yaml")
	require.NoError(t, c.Create(objects...))
	stranger := operator("stranger.v1", 1)
	stranger.Spec.CustomResourceDefinitions.Owned = nil
	stranger.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
	rival := operator("rival.v1", 1)
	copied := operator("copied.v1", 1)
	copied.Labels["olm.copiedFrom"] = "other"
	for _, o := range []*v1alpha1.ClusterServiceVersion{stranger, rival, copied} {
		o.ResourceVersion, o.UID = "", ""
		require.NoError(t, c.Create(o))
	}
	require.NoError(t, c.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "unrelated"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "somebody", APIGroup: "rbac.authorization.k8s.io"}},
	}))
	require.NoError(t, c.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unrelated"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "x"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "somebody", APIGroup: "rbac.authorization.k8s.io"}},
	}))
	require.NoError(t, d.Cluster.Settle())
	in, err := csv.Gather(context.Background(), c, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	var names []string
	for _, n := range in.Neighbours.Items {
		names = append(names, n.Name)
	}
	require.Equal(t, []string{"cool.v2", "rival.v1"}, names)
	require.Len(t, in.ClusterRoleBindings.Items, 2)
	require.Len(t, in.ClusterRoles.Items, 2)
	require.Empty(t, in.RoleBindings.Items)
	require.True(t, in.Deployments.Complete)
	require.False(t, in.Deletion.Peers.Complete, "what only a clean-up needs is not read")

	_, err = csv.Gather(context.Background(), c, types.NamespacedName{Namespace: "ns", Name: "gone"}, csv.Config{})
	require.True(t, apierrors.IsNotFound(err))
	for n := range 12 {
		_, err := csv.Gather(context.Background(), &failing{Reader: c, after: n}, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
		require.ErrorIs(t, err, errRead, "read %d failed", n)
	}
}

var errRead = errors.New("read failed")

// failing fails every read after the first few.
type failing struct {
	olmcore.Reader
	after int
}

func (f *failing) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if f.after--; f.after < 0 {
		return nil, errRead
	}
	return f.Reader.Get(ctx, gvk, namespace, name)
}

func (f *failing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, s labels.Selector) ([]olmcore.Object, error) {
	if f.after--; f.after < 0 {
		return nil, errRead
	}
	return f.Reader.List(ctx, gvk, namespace, s)
}

func TestAffected(t *testing.T) {
	all, ns := []types.NamespacedName{{}}, []types.NamespacedName{{Namespace: "ns"}}
	one := []types.NamespacedName{{Namespace: "ns", Name: "cool.v1"}}
	fromX := []types.NamespacedName{{Namespace: "ns", Name: "cool.v1"}, {Namespace: "x", Name: "cool.v1"}}
	copied := operator("cool.v1", 1)
	copied.Labels["olm.copiedFrom"] = "x"
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"nil":                  {nil, nil},
		"a typed nil":          {(*corev1.Pod)(nil), nil},
		"a CSV":                {operator("cool.v1", 1), ns},
		"a copy":               {copied, fromX},
		"a group":              {&operatorsv1.OperatorGroup{ObjectMeta: meta}, ns},
		"a condition":          {&operatorsv2.OperatorCondition{ObjectMeta: meta}, ns},
		"a Deployment":         {&appsv1.Deployment{ObjectMeta: meta}, ns},
		"a Role":               {&rbacv1.Role{ObjectMeta: meta}, ns},
		"a CRD":                {establishedCRD(), all},
		"a ClusterRole":        {&rbacv1.ClusterRole{ObjectMeta: ours("r")}, all},
		"a namespace":          {namespace("ns", nil), ns},
		"a Subscription":       {&v1alpha1.Subscription{ObjectMeta: meta, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1", CurrentCSV: "cool.v1"}}, one},
		"a binding by account": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns"}}}, ns},
		"a binding by user":    {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "system:serviceaccount:ns:a"}}}, ns},
		"a binding by group":   {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}}, all},
		"a binding by the accounts of a namespace": {&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:ns"}}}, ns},
		"what we own":      {&corev1.Secret{ObjectMeta: ours("s")}, one},
		"what nobody owns": {&corev1.Secret{ObjectMeta: meta}, nil},
	} {
		require.Equal(t, c.want, csv.Affected(c.object), name)
	}
}

// TestNothingIsConcludedFromWhatWasNotRead: a healthy CSV of a Snapshot that lacks any one kind stays as it is, and
// what is missing is named; with all of them read it is at rest.
func TestNothingIsConcludedFromWhatWasNotRead(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool", UID: "uid-sub"},
		Spec:       &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"disk": "fast"}}},
		Status:     v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
	}
	in.Subscriptions = olmcore.Found(sub)
	deploy(t, &in)
	healthy := []olmcore.Object{
		in.ClusterServiceVersion, in.OperatorGroups.Items[0], in.CustomResourceDefinitions.Items[0], in.ServiceAccounts.Items[0],
		in.Roles.Items[0], in.RoleBindings.Items[0], in.Deployments.Items[0], sub,
	}
	scopes := map[string]olmcore.Scope{}
	for _, kind := range olmcore.Kinds() {
		scopes[kind.GroupVersionKind.Kind] = olmcore.Scope{Kind: kind.GroupKind()}
	}
	reconciled := func(without string) csv.Outcome {
		var objects []olmcore.Object
		for _, o := range healthy {
			if olmcore.RefOf(o).Kind != without {
				objects = append(objects, o)
			}
		}
		var read []olmcore.Scope
		for kind, scope := range scopes {
			if kind != without {
				read = append(read, scope)
			}
		}
		snapshot, err := olmcore.NewSnapshot(objects, read...)
		require.NoError(t, err)
		in := gather(t, snapshot)
		out, err := outcome(in)
		require.NoError(t, err)
		a := assess(t, in)
		require.Equal(t, succeeded, a.Phase)
		require.Equal(t, out.Diagnostics, a.Diagnostics)
		return out
	}
	require.Equal(t, csv.Outcome{}, reconciled("Pod"))
	for _, kind := range []string{
		"OperatorGroup", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding", "Deployment", "Subscription",
	} {
		out := reconciled(kind)
		require.Empty(t, out.Actions, kind)
		require.Equal(t, 5*time.Second, out.RequeueAfter, kind)
		require.Len(t, out.Diagnostics, 1, kind)
		require.Equal(t, csv.ReasonNotObserved, out.Diagnostics[0].Reason)
		require.Contains(t, out.Diagnostics[0].Message, kind+"s")
	}
}

// TestWhatCannotBeDoneWithoutIsAnError of Gather, which says what is unknown.
func TestWhatCannotBeDoneWithoutIsAnError(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "ns", Name: "x"}
	_, err = csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.ErrorContains(t, err, "everything about a ClusterServiceVersion")
}

// TestAPredecessorsConditionThatWasNotRead holds the upgrade.
func TestAPredecessorsConditionThatWasNotRead(t *testing.T) {
	in := input(pending, "RequirementsUnknown", "requirements not yet checked")
	predecessorOf(&in, replacing)
	unread(&in.OperatorConditions)
	out, err := outcome(in)
	require.NoError(t, err)
	require.Empty(t, out.Actions)
	require.Equal(t, "the list of OperatorConditions was not read, so nothing is decided", out.Diagnostics[0].Message)
}

// TestACleanUpWaitsForWhatWasNotRead: of a kind that it looks for, and of the custom resources themselves.
func TestACleanUpWaitsForWhatWasNotRead(t *testing.T) {
	for name, without := range map[string]string{"cluster objects": "ClusterRole", "operands": "Cool", "the group": "OperatorGroup"} {
		t.Run(name, func(t *testing.T) {
			world := append(uninstalling(t), selecting(""))
			kinds := []schema.GroupKind{{Group: "example.com", Kind: "Cool"}}
			for _, kind := range olmcore.Kinds() {
				kinds = append(kinds, kind.GroupKind())
			}
			for _, kind := range []string{"ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample"} {
				kinds = append(kinds, schema.GroupKind{Group: "console.openshift.io", Kind: kind})
			}
			var objects []olmcore.Object
			var read []olmcore.Scope
			for _, o := range world {
				if olmcore.RefOf(o).Kind != without {
					objects = append(objects, o)
				}
			}
			for _, kind := range kinds {
				if kind.Kind != without {
					read = append(read, olmcore.Scope{Kind: kind})
				}
			}
			snapshot, err := olmcore.NewSnapshot(objects, read...)
			require.NoError(t, err)
			in := gather(t, snapshot)
			if without == "ClusterRole" {
				in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
				in.ClusterServiceVersion.Spec.Cleanup.Enabled = false
			}
			out := reconciled(t, in)
			require.NotEqual(t, release, does(t, in))
			if without != "Cool" { // that is asked for
				require.Contains(t, out.Diagnostics[0].Message, without)
			}
			for _, a := range out.Actions {
				_, target, _ := a.Describe()
				require.NotEqual(t, "Cool", target.Kind)
			}
		})
	}
}
