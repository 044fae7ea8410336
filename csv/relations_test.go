// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// TestObjectsThatChangeTheResultConcernTheCSV creates and replaces objects of a random world. If that changes the
// result, the object must have a term of the CSV, Concerned must select the CSV, and Affected must return it.
func TestObjectsThatChangeTheResultConcernTheCSV(t *testing.T) {
	changed, cases := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		cases++
		c := drawRelated(t)
		key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
		world := []olmcore.Object{
			c, group(), namespace("ns", nil), bindingTo("cool"),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool"}},
		}
		result := func(objects []olmcore.Object) csv.Outcome {
			snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(t, err)
			in, err := csv.Gather(t.Context(), snapshot, key, csv.Config{})
			require.NoError(t, err)
			in.Now, in.KubernetesVersion = now, kubernetesVersion
			out, err := outcome(in)
			require.NoError(t, err)
			return out
		}
		for i := range 30 {
			next := drawConcerning(t)
			next.SetResourceVersion(fmt.Sprint(100 + i))
			before, old := result(world), objectLike(world, next)
			world = withObject(world, next)
			diff := cmp.Diff(before, result(world))
			if diff == "" {
				continue
			}
			changed[olmcore.KeyOf(next).Kind]++
			isConcerned, terms := csv.Concerned(old, next)
			require.True(t, isConcerned(c), diff)
			isFound := terms == nil
			csv.Terms(c, func(term olmcore.Term) { isFound = isFound || slices.Contains(terms, term) })
			require.True(t, isFound, diff)
			affected := csv.Affected(next)
			if old != nil {
				affected = append(affected, csv.Affected(old)...)
			}
			require.Contains(t, olmcore.ExpandKeys(affected, []types.NamespacedName{key}), key, diff)
		}
	})
	if cases < 20 {
		return // too few for every kind
	}
	for _, kind := range []string{"CustomResourceDefinition", "APIService", "ClusterRole", "OperatorGroup"} {
		require.NotZero(t, changed[kind], "no %s changed the result: %v", kind, changed)
	}
}

// objectLike returns the object with the key of o, or nil if there is none.
func objectLike(objects []olmcore.Object, o olmcore.Object) olmcore.Object {
	for _, have := range objects {
		if olmcore.KeyOf(have) == olmcore.KeyOf(o) {
			return have
		}
	}
	return nil
}

// bindingTo returns a ClusterRoleBinding of the ClusterRole role to a ServiceAccount.
func bindingTo(account string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "role"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "role"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: account}},
	}
}

// withObject returns the objects with o, which replaces an object of the same key.
func withObject(objects []olmcore.Object, o olmcore.Object) []olmcore.Object {
	isReplaced := func(have olmcore.Object) bool { return olmcore.KeyOf(have) == olmcore.KeyOf(o) }
	return append(slices.DeleteFunc(slices.Clone(objects), isReplaced), o)
}

// drawRelated returns a CSV with random requirements.
func drawRelated(t *rapid.T) *v1alpha1.ClusterServiceVersion {
	c := operator("cool.v1", 1)
	some := func(what string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"cool", "hot"}), 0, 2, rapid.ID[string]).Draw(t, what)
	}
	describe := func(what string) (list []v1alpha1.CRDDescription) {
		for _, name := range some(what) {
			list = append(list, v1alpha1.CRDDescription{Name: name + "s.example.com", Version: "v1", Kind: name})
		}
		return list
	}
	serve := func(what string) (list []v1alpha1.APIServiceDescription) {
		for _, name := range some(what) {
			list = append(list, v1alpha1.APIServiceDescription{
				Name: name, Group: name + ".example.com", Version: "v1", Kind: name, DeploymentName: "cool",
			})
		}
		return list
	}
	c.Spec.CustomResourceDefinitions = v1alpha1.CustomResourceDefinitions{Owned: describe("owned"), Required: describe("required")}
	c.Spec.APIServiceDefinitions = v1alpha1.APIServiceDefinitions{Required: serve("required APIs")}
	if rapid.IntRange(0, 3).Draw(t, "serves") == 0 {
		c.Spec.APIServiceDefinitions.Owned = serve("owned APIs")
	}
	c.Status.Phase = rapid.SampledFrom([]v1alpha1.ClusterServiceVersionPhase{"Pending", "Pending", "Succeeded"}).Draw(t, "phase")
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{
		{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{drawRule(t)}},
	}
	return c
}

func drawRule(t *rapid.T) rbacv1.PolicyRule {
	group := rapid.SampledFrom([]string{"", "apps", "*"}).Draw(t, "granted group")
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{group}, Resources: []string{"pods"}}
}

// drawConcerning returns a random object that a CSV may depend on.
func drawConcerning(t *rapid.T) olmcore.Object {
	name := rapid.SampledFrom([]string{"cool", "hot", "warm"}).Draw(t, "name")
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		crd := establishedCRD()
		crd.Name, crd.Spec.Group = name+"s.example.com", "example.com"
		if rapid.IntRange(0, 3).Draw(t, "in a group") == 0 {
			crd.Spec.Group = name + ".example.com"
		}
		if rapid.Bool().Draw(t, "not established") {
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		}
		return crd
	case 1:
		service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1." + name + ".example.com"}}
		service.Spec.Group, service.Spec.Version = name+".example.com", "v1"
		if rapid.Bool().Draw(t, "available") {
			service.Status.Conditions = []apiregistrationv1.APIServiceCondition{
				{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue},
			}
		}
		return service
	case 2:
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role"}, Rules: []rbacv1.PolicyRule{drawRule(t)}}
	case 3:
		return bindingTo(name)
	case 4:
		o := group()
		o.Namespace, o.UID = rapid.SampledFrom([]string{"ns", "x"}).Draw(t, "namespace"), "other"
		o.Name = rapid.SampledFrom([]string{"group", "other"}).Draw(t, "group")
		o.Annotations = map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: name + ".v1.example.com"}
		return o
	case 5:
		return &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sub"}, Spec: &v1alpha1.SubscriptionSpec{},
			Status: v1alpha1.SubscriptionStatus{InstalledCSV: name + ".v1"},
		}
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}
