// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

// TestOneBundleForTwoNamespaces: they have time limits of their own and share the
// Job that unpacks it. Whoever is asked, in whatever order, and whatever a
// webhook makes of the Job, nobody deletes it, there is one at a time, and its
// name is its own.
func TestOneBundleForTwoNamespaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}})
		require.NoError(t, err)
		for _, name := range []string{"one", "two"} {
			require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "group", Annotations: map[string]string{
				unpack.AnnotationTimeout:       rapid.SampledFrom([]string{"30s", "1m", "500ms", "0", "2h"}).Draw(t, "timeout"),
				unpack.AnnotationRetryInterval: rapid.SampledFrom([]string{"0", "1m", "10m"}).Draw(t, "interval"),
			}}}))
		}
		names := map[string]bool{}
		ask := func(namespace string) []olmcore.Action {
			in, err := unpack.Gather(t.Context(), c, namespace, lookup(t), images)
			require.NoError(t, err)
			in.Now = c.Now()
			actions := unpackRound(t, in).Actions
			for i, a := range actions {
				verb, target, _ := a.Describe()
				require.NotEqual(t, olmcore.VerbDelete, verb, "%s is deleted", target)
				if verb == olmcore.VerbCreate && target.Kind == "Job" {
					require.False(t, names[target.Name], "%s is used again", target.Name)
					require.LessOrEqual(t, len(target.Name), 63)
					names[target.Name] = true
					actions[i] = admitted(t, a.(olmcore.Create))
				}
			}
			require.NoError(t, olmcore.Run(t.Context(), c, actions))
			return actions
		}
		for range rapid.IntRange(6, 20).Draw(t, "rounds") {
			ask(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "who"))
			jobs, err := olmcore.List[*batchv1.Job](t.Context(), c, "olm", nil)
			require.NoError(t, err)
			running := 0
			for _, j := range jobs {
				if len(j.Status.Conditions) > 0 {
					continue
				}
				running++
				if len(jobs) < 5 && maybe(t, "fails") {
					after := j.DeepCopy()
					after.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.Now())}}
					require.NoError(t, c.UpdateStatus(after))
				}
			}
			require.LessOrEqual(t, running, 1)
			c.Advance(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "time"))
		}
		c.Advance(time.Hour)
		for range 4 {
			ask("one")
			ask("two")
		}
		require.Empty(t, ask("one"), "it comes to rest")
		require.Empty(t, ask("two"), "it comes to rest")
	})
}

// admitted is a Job as a webhook may make of it.
func admitted(t *rapid.T, a olmcore.Create) olmcore.Create {
	if !maybe(t, "altered") {
		return a
	}
	j := a.Object.DeepCopyObject().(*batchv1.Job)
	j.Spec.ActiveDeadlineSeconds = new(rapid.Int64Range(1, 9999).Draw(t, "deadline"))
	j.Spec.Template.Spec.Tolerations = nil
	j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
	a.Object = j
	return a
}

// TestNothingIsInstalledWithoutApproval, whatever fails and however long it
// takes.
func TestNothingIsInstalledWithoutApproval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(userSubscription("rich", manual), userSubscription("b"))
		require.NoError(t, err)
		faults(t, c)
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich(), operator("b")), things), plans(things), sweeps(things)}}
		require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
		c.Recover()
		require.NoError(t, d.RunFor(t.Context(), 20*time.Minute))
		require.Equal(t, requiresApproval, onlyPlan(t, c).Status.Phase)
		for _, o := range c.Objects() {
			require.NotContains(t, []string{"ClusterServiceVersion", "Service", "ConfigMap", "ClusterRole", "CustomResourceDefinition"}, olmcore.KeyOf(o).Kind)
		}
	})
}

// TestAReferenceMakesAnOwner: creators that install different things, and see
// different Subscriptions, leave after one sweep no Subscription that refers to a
// plan which it does not own.
func TestAReferenceMakesAnOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(userSubscription("a"), userSubscription("b"))
		require.NoError(t, err)
		faults(t, c)
		views := []*fake.View{c.View("one"), c.View("two")}
		creators := []fake.Controller{
			makers(installs(operator("a")), installplan.Config{}), makers(installs(operator("b")), installplan.Config{}), makers(installs(operator("a"), operator("b")), installplan.Config{}),
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			who, view := rapid.IntRange(0, 2).Draw(t, "who"), views[rapid.IntRange(0, 1).Draw(t, "view")]
			c.RestartController()
			if r, err := creators[who].Reconcile(t.Context(), view, types.NamespacedName{Namespace: ns}, c.Now(), nil); err == nil {
				_ = olmcore.Run(t.Context(), c, r.Actions)
			}
			if maybe(t, "see") {
				views[rapid.IntRange(0, 1).Draw(t, "which")].Sync()
			}
			c.Advance(time.Second)
		}
		c.Recover()
		in, err := sweep.Gather(t.Context(), c, ns, installplan.Config{})
		require.NoError(t, err)
		in.Now = c.Now()
		require.NoError(t, olmcore.Run(t.Context(), c, swept(t, in).Actions))
		for _, name := range []string{"a", "b"} {
			s := fake.Find[*v1alpha1.Subscription](c, ns, name)
			if ref := s.Status.InstallPlanRef; ref != nil {
				if p := fake.Find[*v1alpha1.InstallPlan](c, ns, ref.Name); p != nil {
					require.True(t, olmcore.OwnedBy(p, s.UID), "%s refers to %s", name, p.Name)
				}
			}
		}
	})
}

// TestAnImageInstallsWhatItsObjectsWould: references change where a manifest
// comes from, and nothing else.
func TestAnImageInstallsWhatItsObjectsWould(t *testing.T) {
	contents := func(o olmcore.Operator, objects ...olmcore.Object) map[string]any {
		c := world(t, append(objects, userSubscription("rich"))...)
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), things), plans(things)}}
		require.NoError(t, d.Settle(t.Context()))
		require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
		all := endState(t, c)
		for key := range all {
			if strings.HasPrefix(key, "InstallPlan") || strings.HasPrefix(key, "Subscription") || strings.Contains(key, bundleName) || key == "Namespace olm" {
				delete(all, key)
			}
		}
		return all
	}
	inline := rich()
	inline.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"x"}`)}}
	image, cm := imageOf(t, rich())
	if diff := cmp.Diff(contents(inline), contents(image, cm)); diff != "" {
		t.Error(diff)
	}
}

// TestTheOrderOfANewPlan: by class, then by operator, whatever the order of the
// resolution.
func TestTheOrderOfANewPlan(t *testing.T) {
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: bare("s")}
	b := operator("b", secret)
	b.Catalog.Name = "another"
	generated := subscription("dep", func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "" })
	want := []string{
		"ClusterServiceVersion b.v1", "ClusterServiceVersion rich.v1", "CustomResourceDefinition things.example.com", "ServiceAccount rich", "BundleSecret s",
		"ConfigMap config", "ClusterRole role", "ClusterRole rich.v1", "RoleBinding binding", "ClusterRoleBinding rich.v1", "Service service", "Thing thing", "Subscription dep",
	}
	for _, operators := range [][]olmcore.Operator{{b, rich()}, {rich(), b}} {
		subs := []*v1alpha1.Subscription{subscription("rich"), subscription("b")}
		in := createInput(subs, operators...)
		in.Resolution.Generated = []*v1alpha1.Subscription{generated}
		p := made(t, planned(t, in))
		require.Equal(t, []string{"b.v1", "rich.v1"}, p.Spec.ClusterServiceVersionNames)
		in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(referring(subs, p)...)
		got, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](planned(t, in).Actions)
		require.True(t, ok)
		var steps []string
		for _, s := range got.Status.Plan {
			name := s.Resource.Name
			if strings.HasPrefix(name, "rich.v1-") {
				name = "rich.v1" // the rest is a hash
			}
			steps = append(steps, s.Resource.Kind+" "+name)
		}
		require.Equal(t, want, steps)
		require.Equal(t, []string{"another", "cool"}, got.Status.CatalogSources, "sorted, each once, none without a name")
	}
}

// TestTheContentOfAPlanHasNoOrder: a bundle that lists its objects otherwise is
// the same content, and meets the same plan.
func TestTheContentOfAPlanHasNoOrder(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("rich")}
	o, other := rich(), rich()
	slices.Reverse(other.Bundle.Objects)
	p := made(t, planned(t, createInput(subs, o)))
	require.Equal(t, p.Name, made(t, planned(t, createInput(subs, other))).Name)
	other.Bundle.Objects[0].SetAnnotations(map[string]string{"x": "y"})
	require.NotEqual(t, p.Name, made(t, planned(t, createInput(subs, other))).Name)
}
