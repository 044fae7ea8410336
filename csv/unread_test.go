// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

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
		in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		in.Now, in.KubernetesVersion = now, kubernetesVersion
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
			in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
			require.NoError(t, err)
			in.Now = now
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

// TestAssessOfAnInvalidInputIsAnError, of the field that is wrong.
func TestAssessOfAnInvalidInputIsAnError(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "")
	in.ClusterServiceVersion = &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	_, err := csv.Assess(in)
	var wrong *olmcore.InputError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "ClusterServiceVersion.metadata.uid", wrong.Field)
}
