// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

func subscription(name, installed string) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: v1alpha1.SubscriptionStatus{InstalledCSV: installed}}
}

// TestKeptOperandsAreReported checks the reasons why operands are kept, and what the cleanup waits for.
func TestKeptOperandsAreReported(t *testing.T) {
	for says, change := range map[string]func(in *cleanup.Input){
		"left behind: operands are kept: annotation olm.targetNamespaces is absent": func(in *cleanup.Input) { in.ClusterServiceVersion.Annotations = nil },
		"nothing is left to clean up": func(in *cleanup.Input) {
			in.ClusterServiceVersion.Annotations, in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned = nil, nil
		},
		"left behind: operands are kept: Subscription a has this version installed": func(in *cleanup.Input) {
			in.Subscriptions = olmcore.Found(subscription("b", "cool.v1"), subscription("a", "cool.v1"))
		},
		"cleanup stage Operands: waiting for 1 object(s): Cool.example.com ns/one (operator not running)": func(in *cleanup.Input) {
			in.Deployments.Items, in.Operands = nil, operandsOf(cool("one", "example.com/x"))
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(cool("one")): {Class: olmcore.Forbidden, Message: "no", Count: 1, First: now, Last: now}}
		},
		"cleanup stage Operands: waiting for 1 object(s): Cool.example.com ns/one (Terminating, held by example.com/a, example.com/b)": func(in *cleanup.Input) {
			held := cool("one", "example.com/b", "example.com/a")
			held.SetDeletionTimestamp(ago(time.Second))
			in.Operands = operandsOf(held)
		},
	} {
		in := leaving()
		in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
		in.Operands = operandsOf()
		change(&in)
		said := reconciled(t, in).Diagnostics
		require.Equal(t, says, said[len(said)-1].Message)
	}
}

// TestInvisibleCharactersInErrorsAreEscaped checks that invisible characters of an error are escaped in the status. A
// tenant may run the webhook that returned the error.
func TestInvisibleCharactersInErrorsAreEscaped(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: ours("role")}
	in := leaving()
	in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Minute)
	in.Deployments.Items, in.ClusterObjects.Items = nil, []olmcore.Object{role}
	tried := ago(time.Minute).Time
	in.LastRun = olmcore.LastResults{
		olmcore.KeyOf(role): {Class: olmcore.Webhook, Message: "no\u202etext", Count: 1, First: tried, Last: tried},
	}
	status, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](reconciled(t, in).Actions)
	require.True(t, ok)
	require.Contains(t, status.Status.Message, `(rejected: no\u202etext)`)
}

func TestOperandDeletion(t *testing.T) {
	answer := func(in *cleanup.Input, items ...olmcore.Object) {
		in.Deletion.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{{Group: "example.com", Kind: "Cool"}: olmcore.Found(items...)}
	}
	other := func(in *cleanup.Input) *v1alpha1.ClusterServiceVersion {
		p := operator("other.v1", 1)
		p.Namespace, p.Annotations = "elsewhere", nil
		in.Deletion.Peers.Items = append(in.Deletion.Peers.Items, p)
		return p
	}
	for name, c := range map[string]struct {
		change func(in *cleanup.Input)
		want   []string
	}{
		"they are deleted":       {func(*cleanup.Input) {}, []string{"delete Cool one", "delete Cool two"}},
		"cleanup is not enabled": {func(in *cleanup.Input) { in.ClusterServiceVersion.Spec.Cleanup.Enabled = false }, release},
		"they are skipped by annotation": {func(in *cleanup.Input) {
			in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideSkipOperands
		}, release},
		"a newer version exists":             {func(in *cleanup.Input) { successorOf(in, pending) }, release},
		"the version was replaced":           {func(in *cleanup.Input) { in.ClusterServiceVersion.Status.Reason = "Replaced" }, release},
		"a Subscription has it installed":    {func(in *cleanup.Input) { in.Subscriptions = olmcore.Found(subscription("s", "cool.v1")) }, release},
		"a Subscription has another version": {func(in *cleanup.Input) { in.Subscriptions = olmcore.Found(subscription("s", "cool.v2")) }, []string{"delete Cool one", "delete Cool two"}},
		"a Subscription with it is being deleted": {func(in *cleanup.Input) {
			in.Subscriptions = olmcore.Found(subscription("s", "cool.v1"))
			in.Subscriptions.Items[0].DeletionTimestamp = ago(0)
		}, []string{"delete Cool one", "delete Cool two"}},
		"another operator owns the CRD": {func(in *cleanup.Input) { other(in) }, release},
		"another operator requires it": {func(in *cleanup.Input) {
			d := &other(in).Spec.CustomResourceDefinitions
			d.Owned, d.Required = nil, d.Owned
		}, release},
		"the other operator is being deleted too": {func(in *cleanup.Input) { other(in).DeletionTimestamp = ago(0) }, []string{"delete Cool one", "delete Cool two"}},
		"the CRD is being deleted":                {func(in *cleanup.Input) { in.CustomResourceDefinitions.Items[0].DeletionTimestamp = ago(0) }, release},
		"the CRD is gone":                         {func(in *cleanup.Input) { in.CustomResourceDefinitions.Items = nil }, release},
		"the targets are unknown":                 {func(in *cleanup.Input) { delete(in.ClusterServiceVersion.Annotations, "olm.targetNamespaces") }, release},
		"the kind is cluster-scoped": {func(in *cleanup.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Scope = apiextensionsv1.ClusterScoped
		}, release},
		"they are in other namespaces": {func(in *cleanup.Input) {
			o := cool("one")
			o.SetNamespace("elsewhere")
			answer(in, o)
		}, release},
		"one is kept": {func(in *cleanup.Input) {
			o := cool("one")
			o.SetAnnotations(map[string]string{cleanup.AnnotationKeep: ""})
			answer(in, o, cool("two"))
		}, []string{"delete Cool two"}},
		"one has a finalizer, and its operator is being deleted": {func(in *cleanup.Input) {
			in.Deployments.Items[0].DeletionTimestamp = ago(time.Second)
			answer(in, cool("one", "example.com/x"), cool("two"))
		}, []string{"delete Cool two"}},
		"one has a finalizer, and another operator runs": {func(in *cleanup.Input) {
			in.Deployments.Items[0].Labels["olm.owner"] = "other.v1"
			answer(in, cool("one", "example.com/x"), cool("two"))
		}, []string{"delete Cool two"}},
		"one is kept, but already being deleted": {func(in *cleanup.Input) {
			o := cool("one", "example.com/x")
			o.SetAnnotations(map[string]string{cleanup.AnnotationKeep: ""})
			o.SetDeletionTimestamp(ago(time.Second))
			answer(in, o)
		}, nil},
		"one has a finalizer, and its operator is not available": {func(in *cleanup.Input) {
			in.Deployments.Items[0].Status.Conditions = []appsv1.DeploymentCondition{}
			answer(in, cool("one", "example.com/x"), cool("two"))
		}, []string{"delete Cool two"}},
		"one is Terminating already": {func(in *cleanup.Input) {
			o := cool("one", "example.com/x")
			o.SetDeletionTimestamp(ago(time.Hour))
			answer(in, o)
		}, nil},
		"the Deployments were not read":   {func(in *cleanup.Input) { in.Deployments = olmcore.Observed[*appsv1.Deployment]{} }, nil},
		"the Subscriptions were not read": {func(in *cleanup.Input) { in.Subscriptions = olmcore.Observed[*v1alpha1.Subscription]{} }, nil},
		"the peers were not read":         {func(in *cleanup.Input) { in.Deletion.Peers = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{} }, nil},
		"the CRDs were not read": {func(in *cleanup.Input) {
			in.CustomResourceDefinitions = olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]{}
		}, nil},
		"the version after the next one exists": {func(in *cleanup.Input) {
			next := successorOf(in, succeeded)
			next.DeletionTimestamp = ago(time.Second)
			last := operator("cool.v3", 3)
			last.Spec.Replaces = next.Name
			in.Neighbours.Items = append(in.Neighbours.Items, last)
			for _, n := range in.Neighbours.Items {
				n.Spec.CustomResourceDefinitions.Owned = nil
			}
		}, release},
		"the timeout is over": {func(in *cleanup.Input) { in.Config.OperandTimeout = 10 * time.Second }, release},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
			answer(&in, cool("two"), cool("one"))
			c.change(&in)
			require.Equal(t, c.want, does(t, in))
		})
	}
	in := leaving()
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	out := reconciled(t, in)
	require.Equal(t, []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Cool"}}, out.Operands, "an unread kind is asked for")
	require.Empty(t, out.Actions)
}

// TestOperandsAreDeletedOnlyIfEnabled checks that spec.cleanup must be enabled, that the operator must be uninstalled
// and not replaced, and that no other live version may use the CRD.
func TestOperandsAreDeletedOnlyIfEnabled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out := reconciled(t, in)
		c := in.ClusterServiceVersion
		if !slices.ContainsFunc(deletions(out), func(s string) bool { return strings.Contains(s, "Cool") }) {
			return
		}
		require.True(t, c.Spec.Cleanup.Enabled)
		require.NotContains(t, []string{cleanup.OverrideAbandon, cleanup.OverrideSkipOperands}, c.Annotations[cleanup.AnnotationCleanup])
		require.NotContains(t, c.Finalizers, "orphan")
		require.False(t, terminatingNamespace(&in))
		require.NotEqual(t, replacing, c.Status.Phase)
		require.NotContains(t, []reason{"Replaced", "BeingReplaced"}, c.Status.Reason)
		require.Empty(t, in.Deletion.Peers.Items, "another one owns the CRD")
		require.Empty(t, in.Subscriptions.Items, "a Subscription has it installed")
		for _, n := range in.Neighbours.Items {
			require.True(t, n.Name != "claimant.v1" || n.DeletionTimestamp != nil, "a neighbour owns the CRD")
			require.False(t, n.Spec.Replaces == c.Name && n.DeletionTimestamp == nil && c.Spec.Replaces != n.Name, "%s goes on", n.Name)
		}
	})
}

// TestSupersededVersionKeepsItsOperands checks that operands are kept, whatever spec.cleanup contains.
func TestSupersededVersionKeepsItsOperands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
		why := rapid.SampledFrom([]string{"phase", "reason", "successor"}).Draw(t, "why")
		switch why {
		case "phase":
			in.ClusterServiceVersion.Status.Phase = replacing
		case "reason":
			hold(in.ClusterServiceVersion, deleting, rapid.SampledFrom([]reason{"Replaced", "BeingReplaced"}).Draw(t, "reason"), "", time.Hour)
		case "successor":
			in.Neighbours = olmcore.Found[*v1alpha1.ClusterServiceVersion]()
			in.ClusterServiceVersion.Spec.Replaces = ""
			successorOf(&in, phaseOf(t, "successor"))
		}
		for range 8 {
			out := reconciled(t, in)
			for _, key := range deletions(out) {
				require.NotContains(t, key, "Cool", why)
			}
			require.Empty(t, out.Operands)
			var gone bool
			if in, gone = applied(t, in, out.Actions); gone || len(out.Actions) == 0 {
				return
			}
		}
	})
}

// TestOperandsAreReadInStorageVersion checks that the first served version is used if the storage version is not
// served.
func TestOperandsAreReadInStorageVersion(t *testing.T) {
	v := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}
	for want, versions := range map[string][]apiextensionsv1.CustomResourceDefinitionVersion{
		"v2": {v("v1", true, false), v("v2", true, true), v("v3", true, false)},
		"v3": {v("v2", false, true), v("v3", true, false), v("v4", true, false)},
		"":   {v("v1", false, true)},
	} {
		in := leaving()
		in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
		in.CustomResourceDefinitions.Items[0].Spec.Versions = versions
		out := reconciled(t, in)
		if want == "" {
			require.True(t, releases(t, out))
			continue
		}
		require.Equal(t, []schema.GroupVersionKind{{Group: "example.com", Version: want, Kind: "Cool"}}, out.Operands)
	}
}

// forbidding is a Reader whose API server forbids to list operands.
type forbidding struct{ olmcore.Reader }

func (r forbidding) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if kind.GroupKind() == coolKind {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: "cools"}, "", errors.New("no rule allows it"))
	}
	return r.Reader.List(ctx, kind, namespace, selector)
}

// TestForbiddenOperandKindsAreReported checks that a cleanup that may not list operands reports this and what helps.
// The error of the read itself is only in the log of the controller.
func TestForbiddenOperandKindsAreReported(t *testing.T) {
	in := leaving()
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	cluster, err := olmcore.NewSnapshot([]olmcore.Object{in.ClusterServiceVersion, in.Namespaces.Items[0]})
	require.NoError(t, err)
	in.Deletion, err = cleanup.Gather(t.Context(), forbidding{cluster}, in)
	require.NoError(t, err)
	require.Equal(t, []schema.GroupKind{coolKind}, in.Deletion.Refused)
	out := reconciled(t, in)
	require.Empty(t, out.Actions)
	require.Equal(t, []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, cleanup.ReasonNotObserved, olmcore.RefOf(in.ClusterServiceVersion), "",
		"the list of Cool.example.com (the controller needs the permissions list and delete; to skip the operands, set the annotation olmcore/csv-cleanup=skip-operands) was not read, so cleanup waits")}, out.Diagnostics)

	in.ClusterServiceVersion.Annotations = map[string]string{cleanup.AnnotationCleanup: cleanup.OverrideSkipOperands}
	require.NotEqual(t, cleanup.StageOperands, reconciled(t, in).Stage, "the cleanup goes on without them")
}
