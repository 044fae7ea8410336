// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// maxRounds is the number of rounds in which a plan comes to rest: create, refer, fill, start, versions and
// definitions, dependants, their kinds, complete, let the finalizer go.
const maxRounds = 9

// existing are objects that the operator's steps meet: one of ours, with another content, one that cannot be changed,
// and one of a user that has what the step wants and more.
func existing() []olmcore.Object {
	ours := map[string]string{"olm.managed": "true"}
	return []olmcore.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "config", Labels: ours}, Data: map[string]string{"old": "1"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "binding", Labels: ours},
			RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "old"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "service", Labels: map[string]string{"user": "yes"}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"user": "yes"}}},
	}
}

func lawWorld(objects ...olmcore.Object) invariant.World {
	return invariant.World{
		New: func() (*fake.Cluster, error) {
			return newWorld(append([]olmcore.Object{userSubscription("rich")}, objects...)...)
		},
		Controllers: func(*fake.Cluster) []fake.Controller {
			return []fake.Controller{makers(installs(rich()), things), plans(things)}
		},
		Rounds: maxRounds,
		Ignore: func(o map[string]any) {
			metadata, _ := o["metadata"].(map[string]any)
			if labels, ok := metadata["labels"].(map[string]any); ok {
				delete(labels, olmcore.LabelOwnerUID) // UIDs are numbered anew in each run
			}
			// A lost status write makes a step Present that would have been Created.
			status, _ := o["status"].(map[string]any)
			steps, _ := status["plan"].([]any)
			for _, s := range steps {
				if step := s.(map[string]any); step["status"] == string(present) {
					step["status"] = string(created)
				}
			}
		},
	}
}

// TestTheWorldComesToRest, to the same end whatever action is lost, repeated, or followed by a crash.
func TestTheWorldComesToRest(t *testing.T) {
	for name, objects := range map[string][]olmcore.Object{"on an empty cluster": nil, "over objects that are there": existing()} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.Settles(lawWorld(objects...)))
			require.NoError(t, invariant.Repeatable(lawWorld(objects...)))
			require.NoError(t, invariant.Resumable(lawWorld(objects...)))
		})
	}
}

// TestTheNumberOfStepsDoesNotCount: a plan of any length takes as many rounds.
func TestTheNumberOfStepsDoesNotCount(t *testing.T) {
	o := rich()
	for i := range 100 {
		o.Bundle.Objects = append(o.Bundle.Objects, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: bare(fmt.Sprintf("c%d", i))})
	}
	w := lawWorld()
	w.Controllers = func(*fake.Cluster) []fake.Controller {
		return []fake.Controller{makers(installs(o), things), plans(things)}
	}
	require.NoError(t, invariant.Settles(w))
}

func onlyPlan(t require.TestingT, c *fake.Cluster) *v1alpha1.InstallPlan {
	all := everyPlan(t, c)
	require.Len(t, all, 1)
	return all[0]
}

// TestAUsersObjectSurvives: it is used as it is.
func TestAUsersObjectSurvives(t *testing.T) {
	c := world(t, append(existing(), userSubscription("rich"))...)
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), plans(things)}}
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, complete, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
	service := fake.Find[*corev1.Service](c, ns, "service")
	require.Empty(t, service.OwnerReferences)
	require.Empty(t, service.Annotations)
	require.Equal(t, map[string]string{"user": "yes"}, service.Labels)
	require.Equal(t, map[string]string{"user": "yes"}, service.Spec.Selector)
	require.Len(t, fake.Find[*corev1.ConfigMap](c, ns, "config").OwnerReferences, 1)
	require.Equal(t, "role", fake.Find[*rbacv1.RoleBinding](c, ns, "binding").RoleRef.Name)
}

// TestDeletingAPlanDeletesNoStep at any time of its life.
func TestDeletingAPlanDeletesNoStep(t *testing.T) {
	for rounds := range maxRounds {
		c := world(t, userSubscription("rich"))
		making := makers(installs(rich()), things)
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{making, plans(things)}}
		for range rounds {
			require.NoError(t, c.Settle())
			_, err := d.Round(t.Context())
			require.NoError(t, err)
		}
		all := everyPlan(t, c)
		if len(all) == 0 {
			continue
		}
		before := map[olmcore.Key]bool{}
		for _, o := range c.Objects() {
			before[olmcore.KeyOf(o)] = true
		}
		require.NoError(t, c.Delete(olmcore.RefOf(all[0]).Unversioned()))
		d.Controllers = d.Controllers[1:]
		require.NoError(t, (&fake.Driver{Cluster: c, Controllers: d.Controllers}).Settle(t.Context()))
		delete(before, olmcore.KeyOf(all[0]))
		for _, o := range c.Objects() {
			delete(before, olmcore.KeyOf(o))
		}
		require.Empty(t, before, "after %d rounds", rounds)
	}
}

// faults strike any write of a run.
func faults(t *rapid.T, c *fake.Cluster) {
	for range rapid.IntRange(0, 4).Draw(t, "faults") {
		c.Inject(fake.Fault{
			Verb: rapid.SampledFrom([]olmcore.Verb{"", olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbUpdateStatus}).Draw(t, "verb"),
			Nth:  rapid.IntRange(1, 8).Draw(t, "nth"),
			Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "mode"),
		})
	}
}

// TestTwoCreatorsEndWithTheUnion, whatever they see and whenever they stop.
func TestTwoCreatorsEndWithTheUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newWorld(userSubscription("a"), userSubscription("b"))
		require.NoError(t, err)
		faults(t, c)
		views := []*fake.View{c.View("one"), c.View("two")}
		making := makers(installs(operator("a"), operator("b")), installplan.Config{})
		reconciling := plans(installplan.Config{})
		owned := map[string]bool{}
		run := func(controller fake.Controller, r olmcore.Reader) {
			c.RestartController()
			for _, key := range controller.Keys(r) {
				result, err := controller.Reconcile(t.Context(), r, key, c.Now(), nil)
				if err == nil {
					_ = olmcore.Run(t.Context(), c, result.Actions)
				}
			}
		}
		edits := 0
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) { run(making, views[rapid.IntRange(0, 1).Draw(t, "who")]) },
			"reconcile": func(t *rapid.T) {
				run(reconciling, views[rapid.IntRange(0, 1).Draw(t, "who")])
			},
			"see": func(t *rapid.T) {
				v := views[rapid.IntRange(0, 1).Draw(t, "who")]
				for _, gvk := range v.Behind() {
					if maybe(t, "this kind") {
						v.Next(gvk)
					}
				}
			},
			"settle": func(t *rapid.T) { require.NoError(t, c.Settle()) },
			"edit": func(t *rapid.T) {
				edits++
				require.NoError(t, c.Edit(olmcore.Key{Group: "operators.coreos.com", Kind: "Subscription", Namespace: ns, Name: "a"}, func(o olmcore.Object) {
					o.SetAnnotations(map[string]string{"edit": fmt.Sprint(edits)})
				}))
			},
			"": func(t *rapid.T) {
				all := everyPlan(t, c)
				for _, p := range all {
					for _, ref := range p.OwnerReferences {
						owned[p.Name+"/"+string(ref.UID)] = true
					}
					require.Contains(t, p.Labels, "operators.coreos.com/a.ops")
					require.Contains(t, p.Labels, "operators.coreos.com/b.ops")
				}
				for key := range owned {
					found := false
					for _, p := range all {
						for _, ref := range p.OwnerReferences {
							found = found || key == p.Name+"/"+string(ref.UID)
						}
					}
					require.True(t, found, "owner %s was dropped", key)
				}
			},
		})
		c.Recover()
		c.Advance(time.Minute)
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{making, reconciling}}
		require.NoError(t, d.Settle(t.Context()))
		p := onlyPlan(t, c)
		require.Equal(t, complete, p.Status.Phase)
		require.Len(t, p.OwnerReferences, 2)
	})
}
