// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

func allowing(verbs, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), APIGroups: []string{""}, Resources: strings.Split(resources, ",")}
}

// gives returns a Role or ClusterRole and its binding to ServiceAccount ops/robot.
func gives(namespace, name string, rules ...rbacv1.PolicyRule) []olmcore.Object {
	to := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "robot"}}
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if namespace == "" {
		return []olmcore.Object{&rbacv1.ClusterRole{ObjectMeta: m, Rules: rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: m, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: to}}
	}
	return []olmcore.Object{&rbacv1.Role{ObjectMeta: m, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: m, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}, Subjects: to}}
}

func TestGainedReturnsNewRules(t *testing.T) {
	type objects = []olmcore.Object
	bindingTo := func(name string) objects { return gives("", name)[1:] }
	labelled := func(rules ...rbacv1.PolicyRule) objects {
		return objects{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, Rules: rules}}
	}
	aggregated := gives("", "sum")
	aggregated[0].(*rbacv1.ClusterRole).AggregationRule = &rbacv1.AggregationRule{}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprint("v", i))
	}
	huge := rbacv1.PolicyRule{Verbs: many, APIGroups: many, Resources: []string{"pods"}}
	for name, tt := range map[string]struct {
		before, after objects
		want          []string
	}{
		"no change":                   {},
		"the same under another name": {gives("ops", "v1", allowing("get", "pods")), gives("ops", "v2", allowing("get", "pods")), nil},
		"fewer rules":                 {gives("ops", "v1", allowing("get,list", "pods")), gives("ops", "v2", allowing("get", "pods")), nil},
		"the first version": {
			nil, gives("ops", "v1", allowing("get", "pods")), []string{"ServiceAccount ops/robot in namespace ops: get pods"},
		},
		"a verb": {
			gives("", "v1", allowing("get", "pods")), gives("", "v2", allowing("get,delete", "pods")), []string{"ServiceAccount ops/robot in the cluster: get,delete pods"},
		},
		"a resource": {
			gives("ops", "v1", allowing("get", "pods")), gives("ops", "v2", allowing("get", "pods"), allowing("get", "secrets")), []string{"ServiceAccount ops/robot in namespace ops: get secrets"},
		},
		"the cluster": {
			gives("ops", "v1", allowing("get", "pods")), gives("", "v2", allowing("get", "pods")), []string{"ServiceAccount ops/robot in the cluster: get pods"},
		},
		"a namespace of the cluster": {gives("", "v1", allowing("get", "pods")), gives("ops", "v2", allowing("get", "pods")), nil},
		"another namespace": {
			gives("ops", "v1", allowing("get", "pods")), gives("db", "v2", allowing("get", "pods")), []string{"ServiceAccount ops/robot in namespace db: get pods"},
		},
		"split into two rules": {
			gives("ops", "v1", allowing("get,list", "pods")), gives("ops", "v2", allowing("get", "pods"), allowing("list", "pods")), nil,
		},
		"a role that does not exist": {
			nil, bindingTo("cluster-admin"), []string{"ServiceAccount ops/robot in the cluster: all that ClusterRole cluster-admin allows"},
		},
		"a role that it had before": {bindingTo("view"), bindingTo("view"), nil},
		"a role without a binding":  {nil, gives("", "v1", allowing("*", "*"))[:1], nil},
		"rules aggregated for users": {
			nil, labelled(allowing("get", "pods")), []string{"users by rbac.authorization.k8s.io/aggregate-to-view in the cluster: get pods"},
		},
		"rules aggregated before":      {labelled(allowing("get,list", "pods")), labelled(allowing("get", "pods")), nil},
		"rules aggregated from others": {nil, aggregated, []string{"ServiceAccount ops/robot in the cluster: all that ClusterRole sum allows"}},
		"a URL": {
			nil, gives("", "v1", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}), []string{"ServiceAccount ops/robot in the cluster: get /metrics"},
		},
		"too many parts to compare": {
			gives("", "v1", allowing("get", "pods"), huge), gives("", "v2", huge), []string{"ServiceAccount ops/robot in the cluster: " + (strings.Join(many, ",") + " pods")[:200]},
		},
		"a name": {gives("ops", "v1", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"a"}}),
			gives("ops", "v2", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"a", "b"}}),
			[]string{"ServiceAccount ops/robot in namespace ops: get deployments of apps named a,b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, permissions.Gained(tt.before, tt.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGainedMatchesBruteForce checks in a small world that Gained returns a rule exactly if some account is allowed an
// action in some place that it was not allowed before.
func TestGainedMatchesBruteForce(t *testing.T) {
	places, verbs, resources := []string{"", "ops", "db"}, []string{"get", "list", "*"}, []string{"pods", "secrets", "*"}
	draw := rapid.Custom(func(t *rapid.T) []olmcore.Object {
		var all []olmcore.Object
		for i := range rapid.IntRange(0, 4).Draw(t, "n") {
			rule := allowing(strings.Join(rapid.SliceOfN(rapid.SampledFrom(verbs), 1, 2).Draw(t, "verbs"), ","), strings.Join(rapid.SliceOfN(rapid.SampledFrom(resources), 1, 2).Draw(t, "resources"), ","))
			all = append(all, gives(rapid.SampledFrom(places).Draw(t, "place"), fmt.Sprint("r", i), rule)...)
		}
		return all
	})
	may := func(objects []olmcore.Object, place, verb, resource string) bool {
		return slices.ContainsFunc(objects, func(o olmcore.Object) bool {
			var rules []rbacv1.PolicyRule
			switch o := o.(type) {
			case *rbacv1.Role:
				rules = o.Rules
			case *rbacv1.ClusterRole:
				rules = o.Rules
			}
			return (o.GetNamespace() == place || o.GetNamespace() == "") && slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
				return (slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, "*")) && (slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*"))
			})
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		before, after := draw.Draw(t, "before"), draw.Draw(t, "after")
		more := false
		for _, place := range append(places, "elsewhere") {
			for _, verb := range append(verbs, "delete") {
				for _, resource := range append(resources, "nodes") {
					more = more || may(after, place, verb, resource) && !may(before, place, verb, resource)
				}
			}
		}
		require.Equal(t, more, len(permissions.Gained(before, after)) > 0, "%v", permissions.Gained(before, after))
		require.Empty(t, permissions.Gained(after, after))
	})
}

// TestGainedDoesNotDependOnOrder checks that the order of objects, rules, subjects and labels has no effect.
func TestGainedDoesNotDependOnOrder(t *testing.T) {
	lines := func(t *rapid.T, of ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(of), 1, 2).Draw(t, "words")
	}
	draw := rapid.Custom(func(t *rapid.T) (all []olmcore.Object) {
		for i := range rapid.IntRange(1, 5).Draw(t, "roles") {
			rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
				return rbacv1.PolicyRule{Verbs: lines(t, "get", "list", "*"), APIGroups: lines(t, "", "apps"), Resources: lines(t, "pods", "secrets"), ResourceNames: lines(t, "a", "b")}
			}), 0, 4).Draw(t, "rules")
			objects := gives(rapid.SampledFrom([]string{"", "ops", "db"}).Draw(t, "place"), fmt.Sprint("r", i), rules...)
			labels := rapid.MapOfN(rapid.SampledFrom([]string{"x/aggregate-to-view", "x/aggregate-to-edit", "y/aggregate-to-edit", "other"}), rapid.Just("true"), 0, 4).Draw(t, "labels")
			objects[0].SetLabels(labels)
			if b, bound := objects[1].(*rbacv1.ClusterRoleBinding); bound {
				b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "Group", Name: "all"})
			}
			all = append(all, rapid.SampledFrom([][]olmcore.Object{objects, objects, objects[1:]}).Draw(t, "known")...)
		}
		return all
	})
	shuffle := func(t *rapid.T, objects []olmcore.Object) (other []olmcore.Object) {
		for _, o := range rapid.Permutation(objects).Draw(t, "objects") {
			o = o.DeepCopyObject().(olmcore.Object)
			switch o := o.(type) {
			case *rbacv1.Role:
				o.Rules = rapid.Permutation(o.Rules).Draw(t, "rules")
			case *rbacv1.ClusterRole:
				o.Rules = rapid.Permutation(o.Rules).Draw(t, "rules")
			case *rbacv1.ClusterRoleBinding:
				o.Subjects = rapid.Permutation(o.Subjects).Draw(t, "subjects")
			}
			other = append(other, o)
		}
		return other
	}
	rapid.Check(t, func(t *rapid.T) {
		before, after := draw.Draw(t, "before"), draw.Draw(t, "after")
		want := permissions.Gained(before, after)
		require.Equal(t, want, permissions.Gained(before, after))
		require.Equal(t, want, permissions.Gained(shuffle(t, before), shuffle(t, after)))
	})
}

func FuzzGained(f *testing.F) {
	f.Add(`{"metadata":{"name":"a","labels":{"x/aggregate-to-view":""}},"rules":[{"verbs":["*"],"resources":["*"],"apiGroups":["*"]}]}`, `{"roleRef":{"kind":"ClusterRole","name":"a"},"subjects":[{}]}`)
	f.Fuzz(func(t *testing.T, role, binding string) {
		clusterRole, clusterBinding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
		if json.Unmarshal([]byte(role), clusterRole) != nil || json.Unmarshal([]byte(binding), clusterBinding) != nil {
			return
		}
		objects := []olmcore.Object{clusterRole, clusterBinding}
		gained := permissions.Gained(nil, objects)
		require.True(t, slices.IsSorted(gained))
		require.Equal(t, gained, permissions.Gained(nil, []olmcore.Object{clusterBinding, clusterRole}))
	})
}
