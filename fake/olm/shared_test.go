// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

// TestTwoPlansShareAnObject: two plans, of one namespace or of two, describe an object of one name, each with a content
// of its own, and are carried out at once. Neither takes it from the other for ever. What cannot be changed stays with
// the first, and the plan of the second says so and fails.
func TestTwoPlansShareAnObject(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	for kind, c := range map[string]struct {
		group, content string
		fixed          bool
	}{
		"ConfigMap":          {"", `"data":{"a":"%d"}`, false},
		"ClusterRole":        {rbac, `"rules":[{"verbs":["get%d"],"apiGroups":[""],"resources":["pods"]}]`, false},
		"RoleBinding":        {rbac, `"roleRef":{"kind":"ClusterRole","name":"role%d"}`, true},
		"ClusterRoleBinding": {rbac, `"roleRef":{"kind":"ClusterRole","name":"role%d"}`, true},
		"CustomResourceDefinition": {"apiextensions.k8s.io", `"spec":{"group":"example.com","scope":"Cluster","names":{"kind":"Shared","plural":"shared"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","description":"%d"}}}]}`, false},
	} {
		for _, namespaces := range [][]string{{"one", "one"}, {"one", "two"}} {
			t.Run(kind+" of "+strings.Join(namespaces, " and "), func(t *testing.T) {
				name := "shared"
				if kind == "CustomResourceDefinition" {
					name = "shared.example.com"
				}
				cluster, d := twoManagers()
				for i, namespace := range namespaces {
					resource := v1alpha1.StepResource{Group: c.group, Version: "v1", Kind: kind, Name: name,
						Manifest: fmt.Sprintf(`{"apiVersion":"`+strings.TrimPrefix(c.group+"/v1", "/")+`","kind":"`+kind+`","metadata":{"name":"`+name+`"},`+c.content+`}`, i)}
					startPlan(t, cluster, namespace, fmt.Sprint("operator", i), resource)
				}
				require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
				var phases []v1alpha1.InstallPlanPhase
				for i, namespace := range namespaces {
					phases = append(phases, fake.Find[*v1alpha1.InstallPlan](cluster, namespace, fmt.Sprint("operator", i)).Status.Phase)
				}
				want := []v1alpha1.InstallPlanPhase{v1alpha1.InstallPlanPhaseComplete, v1alpha1.InstallPlanPhaseComplete}
				if c.fixed && (namespaces[0] == namespaces[1] || kind != "RoleBinding") {
					want[1] = v1alpha1.InstallPlanPhaseFailed
				}
				require.Equal(t, want, phases)
			})
		}
	}
}

// twoManagers is a cluster whose plans two managers look after at once.
func twoManagers() (*fake.Cluster, *fake.Driver) {
	cluster := fake.NewCluster(noon)
	cluster.AutoCreateNamespaces = true
	d := &fake.Driver{Cluster: cluster}
	for range 2 {
		o := &olm.OLM{}
		for _, c := range o.Controllers() {
			if c.Name == controllers.InstallPlan {
				d.Controllers = append(d.Controllers, c)
			}
		}
	}
	return cluster, d
}

// startPlan makes a running plan of one step for an operator that is there.
func startPlan(t *testing.T, cluster *fake.Cluster, namespace, operator string, resource v1alpha1.StepResource) {
	t.Helper()
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}
	if fake.Find[*operatorsv1.OperatorGroup](cluster, namespace, "group") == nil {
		require.NoError(t, cluster.Create(group))
		group.Status.Namespaces = []string{namespace}
		require.NoError(t, cluster.UpdateStatus(group))
	}
	plan := &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator},
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}},
	}
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator + ".v1"}}
	require.NoError(t, cluster.Create(plan, version))
	plan.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{},
		Plan: []*v1alpha1.Step{{Resolving: version.Name, Status: v1alpha1.StepStatusUnknown, Resource: resource}}}
	require.NoError(t, cluster.UpdateStatus(plan))
}

// TestASharedObjectOutlivesOneOfItsOperators checks that an object of the cluster that two plans contain stays when one
// of both operators is uninstalled, as the other's, whoever wrote it last and in whatever order they go, and that it
// goes with the last of them. The plans may be gone by then.
func TestASharedObjectOutlivesOneOfItsOperators(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	both := []string{"operator0", "operator1"}
	for kind, c := range map[string]struct{ group, content string }{
		"ClusterRole":        {rbac, `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`},
		"ClusterRoleBinding": {rbac, `"roleRef":{"apiGroup":"` + rbac + `","kind":"ClusterRole","name":"role"}`},
		"PriorityClass":      {"scheduling.k8s.io", `"value":5`},
	} {
		for _, namespaces := range [][]string{{"one", "one"}, {"one", "two"}} {
			for name, story := range map[string]struct {
				deleted  []string
				together bool
				swept    bool
				adopted  bool
			}{
				"the first goes":                {both[:1], false, false, false},
				"the last writer goes":          {both[1:], false, false, false},
				"its plans are gone":            {both[1:], false, true, false},
				"it was recorded in plans only": {both[1:], false, false, true},
				"one after the other":           {both, false, false, false},
				"the last writer first":         {[]string{both[1], both[0]}, false, false, false},
				"both at once":                  {both, true, false, false},
			} {
				t.Run(kind+" of "+strings.Join(namespaces, " and ")+", "+name, func(t *testing.T) {
					cluster := fake.NewCluster(noon)
					cluster.AutoCreateNamespaces = true
					d := &fake.Driver{Cluster: cluster, Controllers: (&olm.OLM{Options: controllers.Options{Sweeps: true}}).Controllers()}
					resource := v1alpha1.StepResource{Group: c.group, Version: "v1", Kind: kind, Name: "shared",
						Manifest: `{"apiVersion":"` + c.group + `/v1","kind":"` + kind + `","metadata":{"name":"shared"},` + c.content + `}`}
					find := func() olmcore.Object {
						for _, o := range cluster.Objects() {
							if o.GetName() == "shared" {
								return o
							}
						}
						return nil
					}
					for i, namespace := range namespaces {
						startPlan(t, cluster, namespace, both[i], resource)
						require.NoError(t, d.RunFor(t.Context(), time.Minute))
						require.Equal(t, both[i]+".v1", find().GetLabels()["olm.owner"], "the last writer's")
					}
					namespaceOf := map[string]string{both[0]: namespaces[0], both[1]: namespaces[1]}
					for i, namespace := range namespaces {
						if story.swept {
							require.NoError(t, cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.InstallPlan](cluster, namespace, both[i])).Unversioned()))
						}
					}
					if story.adopted {
						o := find()
						o.SetAnnotations(nil)
						require.NoError(t, cluster.Update(o))
					}
					for _, operator := range story.deleted {
						version := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespaceOf[operator], operator+".v1")
						require.NoError(t, cluster.Delete(olmcore.RefOf(version).Unversioned()))
						if !story.together {
							require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
						}
					}
					require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
					o := find()
					if len(story.deleted) == 2 {
						require.Nil(t, o)
						return
					}
					require.NotNil(t, o)
					nextOwner := both[1]
					if story.deleted[0] == nextOwner {
						nextOwner = both[0]
					}
					live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespaceOf[nextOwner], nextOwner+".v1")
					require.Equal(t, live.Namespace+"/"+live.Name, o.GetLabels()["olm.owner.namespace"]+"/"+o.GetLabels()["olm.owner"])
					require.Equal(t, string(live.UID), o.GetLabels()["olm.owner.uid"])
					require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespaceOf[story.deleted[0]], story.deleted[0]+".v1"))
				})
			}
		}
	}
}

// sharing is a world of two operators whose plans contain one ClusterRole.
type sharing struct {
	*testing.T
	*fake.Cluster
	driver *fake.Driver
}

func newSharing(t *testing.T) *sharing {
	w := &sharing{T: t, Cluster: fake.NewCluster(noon)}
	w.AutoCreateNamespaces = true
	w.restart()
	w.install("one", "operator0")
	w.install("two", "operator1")
	w.requireOwner("two/operator1.v1")
	return w
}

// restart replaces the controllers by new ones, which remember nothing.
func (w *sharing) restart() {
	w.driver = &fake.Driver{Cluster: w.Cluster, Controllers: (&olm.OLM{Options: controllers.Options{Sweeps: true}}).Controllers()}
}

func (w *sharing) run(d time.Duration) {
	w.Helper()
	require.NoError(w, w.driver.RunFor(w.Context(), d))
}

func (w *sharing) install(namespace, operator string) {
	w.Helper()
	startPlan(w.T, w.Cluster, namespace, operator, sharedRole)
	w.run(time.Minute)
}

var sharedRole = v1alpha1.StepResource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "shared",
	Manifest: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"shared"},` +
		`"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`}

func (w *sharing) version(namespace, name string) *v1alpha1.ClusterServiceVersion {
	return fake.Find[*v1alpha1.ClusterServiceVersion](w.Cluster, namespace, name)
}

func (w *sharing) uninstall(namespace, name string) {
	w.Helper()
	require.NoError(w, w.Delete(olmcore.RefOf(w.version(namespace, name)).Unversioned()))
}

// vanish removes a version without a cleanup.
func (w *sharing) vanish(namespace, name string) {
	w.Helper()
	w.uninstall(namespace, name)
	if w.version(namespace, name) != nil {
		require.NoError(w, fake.Edit(w.Cluster, namespace, name, func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = nil }))
	}
	require.Nil(w, w.version(namespace, name))
}

// requireOwner checks which version the owner labels of the ClusterRole name, empty if it must be gone.
func (w *sharing) requireOwner(want string) {
	w.Helper()
	role, got := fake.Find[*rbacv1.ClusterRole](w.Cluster, "", "shared"), ""
	if role != nil {
		got = role.Labels["olm.owner.namespace"] + "/" + role.Labels["olm.owner"]
	}
	require.Equal(w, want, got)
}

// TestASharedObjectSurvivesARestart replaces the controllers after each number of rounds of a cleanup, and after every
// round.
func TestASharedObjectSurvivesARestart(t *testing.T) {
	for rounds := range 8 {
		t.Run(fmt.Sprint("after ", rounds, " rounds"), func(t *testing.T) {
			w := newSharing(t)
			w.uninstall("two", "operator1.v1")
			for i := range 20 {
				if i == rounds || rounds == 0 {
					w.restart()
				}
				_, err := w.driver.Round(t.Context())
				require.NoError(t, err)
				require.NotNil(t, fake.Find[*rbacv1.ClusterRole](w.Cluster, "", "shared"))
			}
			w.run(5 * time.Minute)
			w.requireOwner("one/operator0.v1")
			require.Nil(t, w.version("two", "operator1.v1"))
			w.uninstall("one", "operator0.v1")
			_, err := w.driver.Round(t.Context())
			require.NoError(t, err)
			w.restart()
			w.run(5 * time.Minute)
			w.requireOwner("")
		})
	}
}

// TestASharedObjectAndAnUpgrade upgrades one of both owners, and then uninstalls both, in each order.
func TestASharedObjectAndAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, operator string
		first, second       [2]string
	}{
		"the co-owner, which leaves first":         {"one", "operator0", [2]string{"one", "operator0.v2"}, [2]string{"two", "operator1.v1"}},
		"the co-owner, which leaves last":          {"one", "operator0", [2]string{"two", "operator1.v1"}, [2]string{"one", "operator0.v2"}},
		"the labelled owner, which leaves first":   {"two", "operator1", [2]string{"two", "operator1.v2"}, [2]string{"one", "operator0.v1"}},
		"the labelled owner, which leaves at last": {"two", "operator1", [2]string{"one", "operator0.v1"}, [2]string{"two", "operator1.v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharing(t)
			next := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.operator + ".v2"}}
			next.Spec.Replaces = c.operator + ".v1"
			plan := &v1alpha1.InstallPlan{
				ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.operator + "-v2"},
				Spec: v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true,
					ClusterServiceVersionNames: []string{next.Name}},
			}
			require.NoError(t, w.Create(plan, next))
			plan.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{},
				Plan: []*v1alpha1.Step{{Resolving: next.Name, Status: v1alpha1.StepStatusUnknown, Resource: sharedRole}}}
			require.NoError(t, w.UpdateStatus(plan))
			w.run(2 * time.Minute)
			w.requireOwner(c.namespace + "/" + next.Name)
			if w.version(c.namespace, c.operator+".v1") != nil {
				w.uninstall(c.namespace, c.operator+".v1") // as the upgrade does once its successor runs
				w.run(2 * time.Minute)
			}
			w.requireOwner(c.namespace + "/" + next.Name)
			w.uninstall(c.first[0], c.first[1])
			w.run(5 * time.Minute)
			w.requireOwner(c.second[0] + "/" + c.second[1])
			w.uninstall(c.second[0], c.second[1])
			w.run(5 * time.Minute)
			w.requireOwner("")
		})
	}
}

// TestASharedObjectIsNotLeaked removes the version that the owner labels name without a cleanup. The object goes with
// the last of its co-owners.
func TestASharedObjectIsNotLeaked(t *testing.T) {
	w := newSharing(t)
	w.install("three", "operator2")
	w.requireOwner("three/operator2.v1")
	w.vanish("three", "operator2.v1")
	w.run(20 * time.Minute)
	require.NotNil(t, fake.Find[*rbacv1.ClusterRole](w.Cluster, "", "shared"))
	w.uninstall("one", "operator0.v1")
	w.run(5 * time.Minute)
	w.requireOwner("two/operator1.v1")
	w.vanish("two", "operator1.v1")
	w.run(20 * time.Minute)
	w.requireOwner("two/operator1.v1") // no co-owner is left: the sweep reports it
}

// TestASharedObjectGoesWithTheLastCoOwner is the case of two operators.
func TestASharedObjectGoesWithTheLastCoOwner(t *testing.T) {
	w := newSharing(t)
	w.vanish("two", "operator1.v1")
	w.run(20 * time.Minute)
	w.requireOwner("two/operator1.v1")
	w.restart()
	w.uninstall("one", "operator0.v1")
	w.run(5 * time.Minute)
	w.requireOwner("")
	require.Nil(t, w.version("one", "operator0.v1"))
}
