// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"slices"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// TestAnIndexWakesWhomTheListDoes changes one object after the other: with the index of a cache, which takes in each
// change, it concerns those whom it concerns when all are asked.
func TestAnIndexWakesWhomTheListDoes(t *testing.T) {
	woken := 0
	rapid.Check(t, func(t *rapid.T) {
		watched := controllers.Watched{}
		for _, k := range olmcore.Kinds() {
			watched[k.GroupVersionKind] = nil
		}
		indexes := &controllers.Indexes{Watched: watched}
		set := controllers.New(&controllers.Options{Sweeps: true})
		world := map[olmcore.Key]olmcore.Object{}
		for i := range 40 {
			o := drawObject(t, permissionsIn(world))
			o.SetResourceVersion(fmt.Sprint(i))
			key := olmcore.KeyOf(o)
			change := controller.Change{Old: world[key], New: o, At: noon}
			if world[key] = o; change.Old != nil && rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
				change = controller.Change{New: change.Old, Deleted: true, At: noon}
				delete(world, key)
			}
			objects := []olmcore.Object{}
			for _, o := range world {
				objects = append(objects, o)
			}
			snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(t, err)
			indexes.Drop(change.New)
			for _, c := range set.Controllers {
				want, err := c.Changed(t.Context(), snapshot, change)
				require.NoError(t, err)
				got, err := c.Changed(t.Context(), indexedSnapshot{snapshot, indexes}, change)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s of %s", c.Name, key)
				if o.GetNamespace() == "" {
					woken += len(got)
				}
			}
		}
	})
	require.NotZero(t, woken)
}

// permissionsIn are the names of the roles that the versions have for their permissions, sorted.
func permissionsIn(world map[olmcore.Key]olmcore.Object) (names []string) {
	for _, o := range world {
		version, _ := o.(*v1alpha1.ClusterServiceVersion)
		if version == nil {
			continue
		}
		objects, _ := olmcore.PermissionObjects(version)
		for _, o := range objects {
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// drawObject is one of a few of each kind whose changes concern others.
func drawObject(t *rapid.T, permissions []string) olmcore.Object {
	word := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	some := func(what string, of ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(of), 0, 2).Draw(t, what)
	}
	meta := func(namespace string, names ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: namespace, Name: word("name", names...)}
		if rapid.Bool().Draw(t, "owned") {
			m.Labels = olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: word("owner", "a", "b"), Name: "v1"}.Labels()
		}
		return m
	}
	rules := func() (rules []rbacv1.PolicyRule) {
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			rule := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: some("groups", "", "apps", "*", "example.com"), Resources: []string{"*"}}
			if rapid.IntRange(0, 4).Draw(t, "urls") == 0 {
				rule = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}
			}
			rules = append(rules, rule)
		}
		return rules
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2:
		return drawVersion(t, rules)
	case 3, 4:
		return drawPlan(t)
	case 5:
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: meta("", "xs.example.com", "ys.example.com"), Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: word("defined", "X", "Y")}}}
	case 6:
		return &apiregistrationv1.APIService{ObjectMeta: meta("", "v1.example.com", "v1.other.com"), Spec: apiregistrationv1.APIServiceSpec{Group: word("group", "example.com", "other.com", "x")}}
	case 7:
		return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: word("in", "a", "b"), Name: "group",
			Annotations: map[string]string{"olm.providedAPIs": word("provided", "", "X.v1.example.com", "X.v1.example.com,Y.v1.example.com", "x")}}}
	case 8:
		return &v1alpha1.Subscription{ObjectMeta: meta(word("in", "a", "b"), "s"), Spec: &v1alpha1.SubscriptionSpec{}}
	}
	names := append(permissions, "role", "v1-abc", "xs.example.com-v1-edit", "xs.example.com-v1-crdview", "xs-v1-crdview", "xs-v1-view")
	role := &rbacv1.ClusterRole{ObjectMeta: meta("", names...), Rules: rules()}
	if rapid.IntRange(0, 5).Draw(t, "aggregates") == 0 {
		role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	}
	return role
}

func drawVersion(t *rapid.T, rules func() []rbacv1.PolicyRule) *v1alpha1.ClusterServiceVersion {
	word := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	v := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: word("in", "a", "b", "c"), Name: word("version", "v1", "a-version-with-a-long-name")}}
	if rapid.IntRange(0, 4).Draw(t, "copied") == 0 {
		v.Labels = map[string]string{olmcore.LabelCopiedFrom: "a"}
		v.Finalizers = rapid.SampledFrom([][]string{nil, {"operators.coreos.com/csv-cleanup"}}).Draw(t, "held")
	}
	if rapid.IntRange(0, 4).Draw(t, "deleting") == 0 {
		v.DeletionTimestamp = &metav1.Time{Time: noon}
	}
	v.Status.Phase = v1alpha1.ClusterServiceVersionPhase(word("phase", "Succeeded", "Succeeded", "Pending"))
	plurals := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y"}), 0, 2, rapid.ID[string])
	describe := func(what string) (list []v1alpha1.CRDDescription) {
		for _, kind := range plurals.Draw(t, what) {
			list = append(list, v1alpha1.CRDDescription{Name: kind + "s.example.com", Version: "v1", Kind: string(kind[0] - 'a' + 'A')})
		}
		return list
	}
	serve := func(what string) (list []v1alpha1.APIServiceDescription) {
		for _, group := range rapid.SliceOfN(rapid.SampledFrom([]string{"example.com", "other.com"}), 0, 1).Draw(t, what) {
			list = append(list, v1alpha1.APIServiceDescription{Name: "xs", Group: group, Version: "v1", Kind: "X"})
		}
		return list
	}
	v.Spec.CustomResourceDefinitions.Owned, v.Spec.CustomResourceDefinitions.Required = describe("owned"), describe("required")
	v.Spec.APIServiceDefinitions.Owned, v.Spec.APIServiceDefinitions.Required = serve("served"), serve("called")
	v.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	strategy := &v.Spec.InstallStrategy.StrategySpec
	strategy.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "account", Rules: rules()}}
	strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "account", Rules: rules()}}
	return v
}

func drawPlan(t *rapid.T) *v1alpha1.InstallPlan {
	word := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: word("in", "a", "b"), Name: word("plan", "p", "q")}}
	p.Status.Phase = v1alpha1.InstallPlanPhase(word("phase", "Complete", "Complete", "Installing"))
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		s := &v1alpha1.Step{Status: v1alpha1.StepStatus(word("status", "Created", "Present", "NotCreated"))}
		s.Resource = rapid.SampledFrom([]v1alpha1.StepResource{
			{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "xs.example.com"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "role"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Name: "role"},
			{Group: "example.com", Version: "v1", Kind: "X", Name: "role"},
			{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Name: "class"},
		}).Draw(t, "resource")
		s.Resource.Manifest = word("manifest", "{}", `{"metadata":{"name":"v1-abc"}}`, `{"metadata":{"name":"ys.example.com"}}`, "role", `{"apiVersion":"x/v1","kind":"X","metadata":{"name":"role"}}`)
		p.Status.Plan = append(p.Status.Plan, s)
	}
	if len(p.Status.Plan) > 0 && rapid.IntRange(0, 5).Draw(t, "hole") == 0 {
		p.Status.Plan = append(slices.Clip(p.Status.Plan), nil)
	}
	return p
}
