// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// TestADeploymentOnItsWayOutIsNotTheInstalledOne: it is right in all else, and is waited for before another is created.
func TestADeploymentOnItsWayOutIsNotTheInstalledOne(t *testing.T) {
	in := input(installReady, "AllRequirementsMet", "all requirements found, attempting install")
	deploy(t, &in)
	in.Deployments.Items[0].DeletionTimestamp = ago(time.Second)
	check(t, in, requeue(olmcore.Result{}, 4*time.Second))
	in.Deployments.Items[0].DeletionTimestamp = nil
	check(t, in, moves(in, installing, "InstallSucceeded", "waiting for install components to report healthy"))
}

// TestAPILabelsOfEverySort: CRDs and APIServices, owned and required; what is both is required.
func TestAPILabelsOfEverySort(t *testing.T) {
	label := func(kind, version, group string) string {
		h := fnv.New64a()
		h.Write([]byte(kind + "." + version + "." + group))
		return fmt.Sprintf("olm.api.%x", h.Sum64())
	}
	in := input(none, "", "")
	c := in.ClusterServiceVersion
	c.Finalizers = nil
	c.Labels = map[string]string{"mine": "x", label("Old", "v1", "example.com"): "provided"}
	c.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "hots.example.com", Version: "v1", Kind: "Hot"}}
	c.Spec.APIServiceDefinitions = v1alpha1.APIServiceDefinitions{
		Owned:    []v1alpha1.APIServiceDescription{{Kind: "Ice", Version: "v2", Group: "api.example.com"}, {Kind: "Hot", Version: "v1", Group: "example.com"}},
		Required: []v1alpha1.APIServiceDescription{{Kind: "Fire", Version: "v3", Group: "api.example.com"}},
	}
	want := map[string]string{
		"mine": "x", label("Cool", "v1", "example.com"): "provided", label("Hot", "v1", "example.com"): "required",
		label("Ice", "v2", "api.example.com"): "provided", label("Fire", "v3", "api.example.com"): "required",
	}
	out := reconciled(t, in)
	after, ok := metadataOf(firstOf(out.Actions))
	require.True(t, ok)
	require.Equal(t, want, after.Labels)
	in.ClusterServiceVersion = after
	out = reconciled(t, in)
	_, again := metadataOf(firstOf(out.Actions))
	require.False(t, again, "they are as they should be")
}

// TestBindingsOfADeploymentThatAnotherVersionHasStay: the live Deployment is gone by then, so the strategies are
// compared.
func TestBindingsOfADeploymentThatAnotherVersionHasStay(t *testing.T) {
	c := operator("cool.v1", 1)
	c.DeletionTimestamp = ago(time.Minute)
	other := operator("other.v1", 1)
	other.Spec.CustomResourceDefinitions.Owned = nil
	for name, want := range map[string]int{"cool": 1, "warm": 0} {
		other := other.DeepCopy()
		other.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = name
		in := gathered(t, c, other, csvtest.Delegator(), namespace("ns", nil), group())
		require.Len(t, in.Neighbours.Items, want)
		require.Len(t, in.Deletion.WellKnown.Items, 1)
		out := reconciled(t, in)
		require.Len(t, deletions(out.Actions), 1-want, name)
	}
}

// TestAFailedReadIsAnError, whichever of them it is.
func TestAFailedReadIsAnError(t *testing.T) {
	leaver := operator("cool.v1", 1)
	leaver.DeletionTimestamp, leaver.Spec.Cleanup.Enabled = ago(time.Minute), true
	g := group()
	g.Spec.ServiceAccountName = "installer"
	objects := []olmcore.Object{leaver, g, namespace("ns", nil), establishedCRD(), cool("one"), &rbacv1.ClusterRole{ObjectMeta: ours("role")}}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	ctx := context.Background()
	for name, read := range map[string]func(r olmcore.Reader) error{
		"a clean-up": func(r olmcore.Reader) error {
			_, err := csv.Gather(ctx, r, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
			return err
		},
		"a group": func(r olmcore.Reader) error {
			_, err := operatorgroup.Gather(ctx, r, types.NamespacedName{Namespace: "ns", Name: "group"})
			return err
		},
		"a sweep": func(r olmcore.Reader) error {
			_, err := sweep.Gather(ctx, r, cleanup.Config{})
			return err
		},
	} {
		count := &failing{Reader: snapshot, after: 1000}
		require.NoError(t, read(count), name)
		reads := 1000 - count.after
		require.Greater(t, reads, 6, name)
		for n := range reads {
			require.ErrorIs(t, read(&failing{Reader: snapshot, after: n}), errRead, "%s, read %d of %d", name, n, reads)
		}
	}
}

// TestGatherFindsTheCopies of the CSV that goes, and names it when one changes.
func TestGatherFindsTheCopies(t *testing.T) {
	c := operator("cool.v1", 1)
	c.DeletionTimestamp = ago(time.Minute)
	another := copied("b")
	another.Labels["olm.copiedFrom"] = "x"
	requirer := operator("requirer.v1", 1)
	requirer.Namespace, requirer.UID, requirer.Annotations = "elsewhere", "requirer", nil
	d := &requirer.Spec.CustomResourceDefinitions
	d.Owned, d.Required = nil, d.Owned
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c, copied("a"), another, requirer}, olmcore.Everything)
	require.NoError(t, err)
	key := types.NamespacedName{Namespace: "ns", Name: "cool.v1"}
	in, err := csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.NoError(t, err)
	require.Equal(t, olmcore.Found(copied("a")), in.Deletion.Copies)
	require.Equal(t, olmcore.Found(requirer), in.Deletion.Peers, "it is not its own peer, nor are its copies")
	require.Contains(t, csv.Affected(copied("a")), key)
	require.Equal(t, []types.NamespacedName{{Namespace: "b", Name: "cool.v1"}, {Namespace: "x", Name: "cool.v1"}}, csv.Affected(another))
}

// TestWhatIsNotDescribedNeedsNotBeRead: a CSV without CRDs, APIServices and permissions is at rest whether those lists
// were read or not.
func TestWhatIsNotDescribedNeedsNotBeRead(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	spec := &in.ClusterServiceVersion.Spec
	spec.CustomResourceDefinitions, spec.InstallStrategy.StrategySpec.Permissions = v1alpha1.CustomResourceDefinitions{}, nil
	in.ClusterServiceVersion.Labels = nil
	deploy(t, &in)
	for _, list := range []func(){
		func() { unread(&in.CustomResourceDefinitions) }, func() { unread(&in.APIServices) }, func() { unread(&in.ServiceAccounts) },
		func() { unread(&in.Roles) }, func() { unread(&in.RoleBindings) }, func() { unread(&in.ClusterRoles) },
		func() { unread(&in.ClusterRoleBindings) }, func() { unread(&in.OtherGroups) }, func() { unread(&in.OtherProviders) },
	} {
		list()
		check(t, in, olmcore.Result{})
	}
	in = input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	deploy(t, &in)
	unread(&in.OtherProviders)
	unread(&in.APIServices)
	check(t, in, olmcore.Result{}) // no other group lists its APIs
}

// TestWhoHasTheDeploymentIsANeighbour, though its strategy does not name it any more.
func TestWhoHasTheDeploymentIsANeighbour(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "")
	deploy(t, &in)
	d := in.Deployments.Items[0]
	other := operator("other.v1", 1)
	other.Spec.CustomResourceDefinitions.Owned, other.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil, nil
	for owner, want := range map[string]int{"other.v1": 1, "third.v1": 0} {
		d := d.DeepCopy()
		d.Labels["olm.owner"] = owner
		got := gathered(t, in.ClusterServiceVersion, other, d)
		require.Len(t, got.Neighbours.Items, want, owner)
	}
}

// TestAStoredReportThatIsUnmetIsRefreshed while Succeeded, without an entry in the history.
func TestAStoredReportThatIsUnmetIsRefreshed(t *testing.T) {
	in := healthy(t)
	in.ClusterServiceVersion.Status.RequirementStatus = metReport()
	check(t, in, olmcore.Result{})
	in.ClusterServiceVersion.Status.RequirementStatus[0].Status = "NotPresent"
	out := reconciled(t, in)
	require.Len(t, out.Actions, 1)
	require.Empty(t, out.Transitions)
	want := in.ClusterServiceVersion.Status.DeepCopy()
	want.RequirementStatus, want.LastUpdateTime = metReport(), ago(0)
	after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
	require.True(t, ok)
	require.Equal(t, *want, after.Status)
}

// TestTheNoteNoticesEverySource: whatever a Deployment was made from and is no more, it is made again.
func TestTheNoteNoticesEverySource(t *testing.T) {
	for name, change := range map[string]func(in *csv.Input){
		"the spec of the CSV": func(in *csv.Input) {
			in.ClusterServiceVersion.Generation++
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = new(int32(3))
		},
		"an annotation of the CSV went": func(in *csv.Input) { delete(in.ClusterServiceVersion.Annotations, "mine") },
		"an annotation is excluded now": func(in *csv.Input) { in.Config.ExcludedAnnotations = []string{"mine"} },
		"the proxy":                     func(in *csv.Input) { in.Config.ProxyEnv[0].Value = "q" },
		"the config of the Subscription": func(in *csv.Input) {
			in.Subscriptions.Items[0].Generation++
			in.Subscriptions.Items[0].Spec.Config.NodeSelector["x"] = "z"
		},
		"no Subscription": func(in *csv.Input) { in.Subscriptions.Items = nil },
	} {
		t.Run(name, func(t *testing.T) {
			in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
			in.ClusterServiceVersion.Annotations["mine"] = "x"
			in.Config.ProxyEnv = []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "p"}}
			in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s", Generation: 1},
				Spec:       &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"x": "y"}}},
				Status:     v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
			})
			deploy(t, &in)
			check(t, in, olmcore.Result{})
			change(&in)
			a := assess(t, in)
			require.Equal(t, installReady, a.Phase, a.Message)
			require.Contains(t, a.Message, "deployment changed old hash=")
		})
	}
}

// TestAMiddleVersionStaysWhileALaterOneRuns, though the one between is on its way out: its predecessor goes first.
func TestAMiddleVersionStaysWhileALaterOneRuns(t *testing.T) {
	in := input(replacing, "BeingReplaced", "being replaced by csv: cool.v2")
	predecessorOf(&in, replacing)
	next := successorOf(&in, replacing)
	next.DeletionTimestamp = ago(time.Second)
	last := operator("cool.v3", 3)
	last.Spec.Replaces = next.Name
	hold(last, succeeded, "InstallSucceeded", "", time.Minute)
	in.Neighbours.Items = append(in.Neighbours.Items, last)
	require.Equal(t, "WaitingForOlderVersions", assess(t, in).Rule)
	in.ClusterServiceVersion.Spec.Replaces = ""
	require.Equal(t, deleting, assess(t, in).Phase, "it is the oldest now")
}
