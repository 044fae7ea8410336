// SPDX-License-Identifier: Apache-2.0

package operatorgroup_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var now, ago, namespace, group, printRecords = csvtest.Now, csvtest.Ago, csvtest.Namespace, csvtest.Group, csvtest.PrintRecords

// operator returns a Succeeded ClusterServiceVersion that provides one kind of example.com.
func operator(name, kind string) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10"}}
	c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "plural.example.com", Version: "v1", Kind: kind}}
	c.Status.Phase, c.Status.Reason = v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful
	return c
}

// alone returns an Input with only an OperatorGroup. All lists were read.
func alone(g *operatorsv1.OperatorGroup) operatorgroup.Input {
	return operatorgroup.Input{
		Now: now, OperatorGroup: g, Siblings: olmcore.Found[*operatorsv1.OperatorGroup](), Namespaces: olmcore.Found[*corev1.Namespace](),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](), ClusterRoles: olmcore.Found[*rbacv1.ClusterRole](),
		ServiceAccounts: olmcore.Found[*corev1.ServiceAccount](),
	}
}

// reconcile calls operatorgroup.Reconcile and returns only the Result.
func reconcile(in operatorgroup.Input) (olmcore.Result, error) {
	out, err := operatorgroup.Reconcile(in)
	return out.Result, err
}

// reconciled calls operatorgroup.Reconcile with a valid Input.
func reconciled(t require.TestingT, in operatorgroup.Input) olmcore.Outcome {
	out, err := operatorgroup.Reconcile(in)
	require.NoError(t, err)
	return out
}

// converge applies the actions of Reconcile until none are left.
func converge(t testing.TB, in operatorgroup.Input) operatorgroup.Input {
	t.Helper()
	for range 5 {
		res := reconciled(t, in).Result
		for _, a := range res.Actions {
			apply(&in, a)
		}
		if res.Empty() {
			return in
		}
	}
	require.Fail(t, "not converged after five rounds")
	return in
}

func apply(in *operatorgroup.Input, a olmcore.Action) {
	var after olmcore.Object
	switch a := a.(type) {
	case olmcore.Create:
		after = a.Object
		after.SetUID(types.UID("uid-" + after.GetName()))
	case olmcore.Update:
		after = a.After
	case olmcore.UpdateStatus:
		after = a.After
	}
	after.SetResourceVersion(after.GetResourceVersion() + "1")
	switch o := after.(type) {
	case *operatorsv1.OperatorGroup:
		in.OperatorGroup = o
	case *corev1.Namespace:
		in.Namespaces = with(in.Namespaces, o)
	case *corev1.ServiceAccount:
		in.ServiceAccounts = with(in.ServiceAccounts, o)
	case *rbacv1.ClusterRole:
		in.ClusterRoles = with(in.ClusterRoles, o)
	}
}

func with[T olmcore.Object](list olmcore.Observed[T], o T) olmcore.Observed[T] {
	items := []T{}
	for _, have := range list.Items {
		if have.GetName() != o.GetName() {
			items = append(items, have)
		}
	}
	return olmcore.Found(append(items, o)...)
}

// atRest returns Inputs of different OperatorGroups without anything to do, in a cluster with an operator and other
// namespaces.
func atRest(t testing.TB, namespaces int) map[string]operatorgroup.Input {
	t.Helper()
	inputs := map[string]operatorgroup.Input{}
	for name, spec := range map[string]operatorsv1.OperatorGroupSpec{
		"all namespaces":    {},
		"listed":            {TargetNamespaces: []string{"ns"}},
		"listed, unsorted":  {TargetNamespaces: []string{"ns", "a", "ns"}},
		"selected":          {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}},
		"selecting nothing": {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}},
		"with an account":   {TargetNamespaces: []string{"ns"}, ServiceAccountName: "limited"},
	} {
		g := group()
		g.Spec, g.Status = spec, operatorsv1.OperatorGroupStatus{}
		in := alone(g)
		in.ClusterServiceVersions = olmcore.Found(operator("cool.v1", "Cool"))
		in.ServiceAccounts = olmcore.Found(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "limited", UID: "sa", ResourceVersion: "1"}})
		in.Namespaces = olmcore.Found(namespace("ns", nil))
		for i := range namespaces {
			n := namespace("other-"+string(rune('a'+i%26))+time.Duration(i).String(), nil)
			if i%2 == 0 {
				n.Labels = map[string]string{"team": "a"}
			}
			in.Namespaces.Items = append(in.Namespaces.Items, n)
		}
		inputs[name] = converge(t, in)
	}
	return inputs
}
