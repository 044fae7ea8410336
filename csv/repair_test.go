// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

func TestRepairSaysWhatAnInstallPlanWouldCreate(t *testing.T) {
	in := input(pending, "RequirementsUnknown", "")
	out := reconciled(t, in)
	require.Empty(t, out.Repair, "nothing is missing")

	strategy := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}}}}
	in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]()
	out = reconciled(t, in)
	var got []string
	for _, a := range out.Repair {
		verb, target, _ := a.Describe()
		require.Equal(t, olmcore.VerbCreate, verb)
		got = append(got, target.Kind)
		o := a.(olmcore.Create).Object
		require.Equal(t, target.Namespace == "", len(o.GetOwnerReferences()) == 0)
		require.Equal(t, target.Kind == "ServiceAccount", o.GetLabels()["olm.owner"] == "")
	}
	require.Equal(t, []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}, got)
	for _, a := range out.Actions {
		verb, _, _ := a.Describe()
		require.Equal(t, olmcore.VerbUpdateStatus, verb, "nothing of it is asked for")
	}

	strategy.Permissions, strategy.ClusterPermissions[0].ServiceAccountName = nil, "default"
	out = reconciled(t, in)
	for _, a := range out.Repair {
		_, target, _ := a.Describe()
		require.NotEqual(t, "ServiceAccount", target.Kind, "default is Kubernetes' own")
	}
}

// permissions is Succeeded in the end, and nothing is created twice.
func TestALostServiceAccountComesBack(t *testing.T) {
	ctx := context.Background()
	cluster, driver := newWorld(csv.Config{})
	base := fromFiles("base.yaml", "v1.yaml")
	require.NoError(t, cluster.Create(base[0], base[1], base[len(base)-1]))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Minute))
	v := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, reason("RequirementsNotMet"), v.Status.Reason)
	in, err := csv.Gather(ctx, cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	out := reconciled(t, in)
	require.Len(t, out.Repair, 3)

	require.NoError(t, olmcore.Run(ctx, cluster, out.Repair))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.Equal(t, succeeded, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1").Status.Phase)
}

// The csv package repeats two facts that others own: what an InstallPlan creates for the permissions of a version, and
// which Subscription's configuration counts. These tests hold the two sides together.

// lacking is an Input in which nothing of a CSV's permissions is there.
func lacking(c *v1alpha1.ClusterServiceVersion) csv.Input {
	in := input(pending, "RequirementsUnknown", "")
	c = c.DeepCopy()
	c.Namespace, c.UID, c.ResourceVersion = "ns", "uid", "10"
	c.Spec.CustomResourceDefinitions, c.Spec.APIServiceDefinitions = v1alpha1.CustomResourceDefinitions{}, v1alpha1.APIServiceDefinitions{}
	hold(c, pending, "RequirementsUnknown", "", time.Hour)
	in.ClusterServiceVersion = c
	in.ServiceAccounts, in.Roles, in.RoleBindings = olmcore.Found[*corev1.ServiceAccount](), olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	return in
}

// sameAsThePlans compares what csv would create with what a plan does, bit by bit. Beside the plan's, csv sets the
// marks that steps get when they run.
func sameAsThePlans(t require.TestingT, c *v1alpha1.ClusterServiceVersion) int {
	in := lacking(c)
	out := reconciled(t, in)
	if len(out.Repair) == 0 { // the metadata comes first
		after, ok := metadataOf(out.Actions[0])
		require.True(t, ok)
		in.ClusterServiceVersion = after
		out = reconciled(t, in)
	}
	got := map[olmcore.Key]olmcore.Object{}
	for _, a := range out.Repair {
		o := a.(olmcore.Create).Object.DeepCopyObject().(olmcore.Object)
		labels := o.GetLabels()
		if _, isAccount := o.(*corev1.ServiceAccount); !isAccount {
			require.Equal(t, "true", labels[olmcore.LabelManaged])
			require.Equal(t, o.GetNamespace() == "", labels[olmcore.LabelOwnerUID] == "uid")
		}
		delete(labels, olmcore.LabelManaged)
		delete(labels, olmcore.LabelOwnerUID)
		owners := o.GetOwnerReferences()
		for i := range owners {
			require.EqualValues(t, "uid", owners[i].UID)
			owners[i].UID = ""
		}
		o.SetOwnerReferences(owners)
		got[olmcore.KeyOf(o)] = o
	}
	want := map[olmcore.Key]olmcore.Object{}
	planned, err := olmcore.PermissionObjects(in.ClusterServiceVersion)
	require.NoError(t, err)
	for _, o := range planned {
		if _, isAccount := o.(*corev1.ServiceAccount); isAccount {
			o.SetNamespace("ns") // a step without a namespace gets the plan's
		}
		want[olmcore.KeyOf(o)] = o
	}
	require.Empty(t, cmp.Diff(want, got))
	return len(got)
}

func TestRepairMakesWhatAPlanMakes(t *testing.T) {
	rule := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		word := func(label string) []string {
			return rapid.SliceOfN(rapid.SampledFrom([]string{"", "*", "pods", "get", "apps", "a/b"}), 1, 3).Draw(t, label)
		}
		return rbacv1.PolicyRule{Verbs: word("verbs"), APIGroups: word("groups"), Resources: word("resources")}
	})
	rapid.Check(t, func(t *rapid.T) {
		c := operator(rapid.StringMatching(`[a-z]([a-z0-9.-]{0,50}[a-z0-9])?`).Draw(t, "name"), 1)
		permission := rapid.Custom(func(t *rapid.T) v1alpha1.StrategyDeploymentPermissions {
			return v1alpha1.StrategyDeploymentPermissions{
				ServiceAccountName: rapid.SampledFrom([]string{"cool", "default", "a-very-long-service-account-name-that-has-to-be-cut"}).Draw(t, "account"),
				Rules:              rapid.SliceOfN(rule, 1, 3).Draw(t, "rules"),
			}
		})
		s := &c.Spec.InstallStrategy.StrategySpec
		s.Permissions = rapid.SliceOfN(permission, 1, 3).Draw(t, "permissions")
		s.ClusterPermissions = rapid.SliceOfN(permission, 0, 3).Draw(t, "clusterPermissions")
		require.NotZero(t, sameAsThePlans(t, c))
	})
}

func TestRepairMakesWhatThePlansOfPublishedOperatorsMake(t *testing.T) {
	all := realCSVs(t) // skips without shared/data
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := all[name]
			c.Spec.InstallModes = operator("x", 1).Spec.InstallModes
			require.NotZero(t, sameAsThePlans(t, c))
		})
	}
}

// TestTheConfigurationIsTheSubscriptions: of any Subscriptions the same one counts for the Deployments as
// subscription.EffectiveConfig says.
func TestTheConfigurationIsTheSubscriptions(t *testing.T) {
	names := rapid.SampledFrom([]string{"cool.v1", "cool.v2", ""})
	rapid.Check(t, func(t *rapid.T) {
		in := input(installReady, "AllRequirementsMet", "")
		for i := range rapid.IntRange(0, 4).Draw(t, "subscriptions") {
			s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: rapid.SampledFrom([]string{"ns", "ns", "other"}).Draw(t, "namespace"), Name: fmt.Sprintf("s%d", i)}}
			s.CreationTimestamp = *ago(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second)
			s.Status.InstalledCSV, s.Status.CurrentCSV = names.Draw(t, "installed"), names.Draw(t, "current")
			switch rapid.IntRange(0, 4).Draw(t, "config") {
			case 0:
			case 1:
				s.Spec = &v1alpha1.SubscriptionSpec{}
			default:
				s.Spec = &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"of": s.Name}}}
			}
			in.Subscriptions.Items = append(in.Subscriptions.Items, s)
		}
		want := map[string]string(nil)
		if config, _ := subscription.EffectiveConfig(in.Subscriptions.Items, "ns", "cool.v1"); config != nil {
			want = config.NodeSelector
		}
		out := reconciled(t, in)
		require.Len(t, out.Actions, 1)
		d := out.Actions[0].(olmcore.Create).Object.(*appsv1.Deployment)
		require.Equal(t, want, d.Spec.Template.Spec.NodeSelector)
	})
}
