// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// maxRounds is the number of calls until a plan converges: creation, references, steps, start, versions and
// definitions, their dependants, objects of new kinds, completion, and removal of the finalizer.
const maxRounds = 9

// existing returns objects that exist before the operator is installed: a managed object with other content, an
// immutable one, and one of a user with all desired content and more.
func existing() []olmcore.Object {
	ours := map[string]string{"olm.managed": "true"}
	return []olmcore.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "config", Labels: ours}, Data: map[string]string{"old": "1"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "binding", Labels: ours},
			RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "old"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "service", Labels: map[string]string{"user": "yes"}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"user": "yes"}}},
	}
}

func lawWorld(objects ...olmcore.Object) invariant.World {
	return invariant.World{
		New: func() (*fake.Cluster, error) {
			return NewWorld(append([]olmcore.Object{UserSubscription("rich")}, objects...)...)
		},
		Controllers: func(*fake.Cluster) []controller.Controller {
			return []controller.Controller{makers(Installs(Rich()), Things), plans(Things)}
		},
		Rounds: maxRounds,
		Ignore: []invariant.Ignore{invariant.CreatedOrPresent()},
	}
}

// TestLostAndRepeatedActionsDoNotChangeTheResult checks that plans converge to the same state if any action is lost,
// repeated, or followed by a crash.
func TestLostAndRepeatedActionsDoNotChangeTheResult(t *testing.T) {
	for name, objects := range map[string][]olmcore.Object{"on an empty cluster": nil, "over objects that are there": existing()} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.Settles(lawWorld(objects...)))
			require.NoError(t, invariant.Repeatable(lawWorld(objects...)))
			require.NoError(t, invariant.Resumable(lawWorld(objects...)))
		})
	}
}

func TestNumberOfCallsDoesNotDependOnNumberOfSteps(t *testing.T) {
	o := Rich()
	for i := range 100 {
		o.Bundle.Objects = append(
			o.Bundle.Objects,
			&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: Bare(fmt.Sprintf("c%d", i))},
		)
	}
	w := lawWorld()
	w.Controllers = func(*fake.Cluster) []controller.Controller {
		return []controller.Controller{makers(Installs(o), Things), plans(Things)}
	}
	require.NoError(t, invariant.Settles(w))
}

func onlyPlan(t require.TestingT, c *fake.Cluster) *v1alpha1.InstallPlan {
	all := everyPlan(t, c)
	require.Len(t, all, 1)
	return all[0]
}

// TestUnmanagedObjectIsNotChanged checks that an object of a user is used as it is.
func TestUnmanagedObjectIsNotChanged(t *testing.T) {
	c := World(t, append(existing(), UserSubscription("rich"))...)
	driven(t, c, 0, makers(Installs(Rich()), Things), plans(Things))
	require.Equal(t, Complete, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
	service := fake.Find[*corev1.Service](c, NS, "service")
	require.Empty(t, service.OwnerReferences)
	require.Empty(t, service.Annotations)
	require.Equal(t, map[string]string{"user": "yes"}, service.Labels)
	require.Equal(t, map[string]string{"user": "yes"}, service.Spec.Selector)
	require.Len(t, fake.Find[*corev1.ConfigMap](c, NS, "config").OwnerReferences, 1)
	require.Equal(t, "role", fake.Find[*rbacv1.RoleBinding](c, NS, "binding").RoleRef.Name)
}

// TestDeletedPlanKeepsTheObjectsOfItsSteps checks the deletion of a plan at any time.
func TestDeletedPlanKeepsTheObjectsOfItsSteps(t *testing.T) {
	for rounds := range maxRounds {
		c := World(t, UserSubscription("rich"))
		d := &fake.Driver{Cluster: c, Controllers: []controller.Controller{makers(Installs(Rich()), Things), plans(Things)}}
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
		driven(t, c, 0, plans(Things))
		delete(before, olmcore.KeyOf(all[0]))
		for _, o := range c.Objects() {
			delete(before, olmcore.KeyOf(o))
		}
		require.Empty(t, before, "after %d rounds", rounds)
	}
}

// TestTwoManagersCreateOnePlanWithAllOwners checks managers that observe any Subscriptions and stop at any time.
func TestTwoManagersCreateOnePlanWithAllOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewWorld(UserSubscription("a"), UserSubscription("b"))
		require.NoError(t, err)
		Faults(t, c)
		views := []*fake.View{c.View("one"), c.View("two")}
		making := makers(Installs(Operator("a"), Operator("b")), installplan.Config{})
		reconciling := plans(installplan.Config{})
		owned := map[string]bool{}
		run := func(one controller.Controller, r olmcore.Reader) {
			c.Faults().RestartController()
			keys, err := one.Keys(t.Context(), r)
			require.NoError(t, err)
			for _, key := range keys {
				result, err := one.Reconcile(t.Context(), r, key, c.Now(), nil)
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
					if Maybe(t, "this kind") {
						v.Next(gvk)
					}
				}
			},
			"settle": func(t *rapid.T) { require.NoError(t, c.Settle()) },
			"edit": func(t *rapid.T) {
				edits++
				require.NoError(
					t,
					c.Edit(olmcore.Key{Group: "operators.coreos.com", Kind: "Subscription", Namespace: NS, Name: "a"}, func(o olmcore.Object) {
						o.SetAnnotations(map[string]string{"edit": fmt.Sprint(edits)})
					}),
				)
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
		c.Faults().Clear()
		c.Advance(time.Minute)
		driven(t, c, 0, making, reconciling)
		p := onlyPlan(t, c)
		require.Equal(t, Complete, p.Status.Phase)
		require.Len(t, p.OwnerReferences, 2)
	})
}

// TestFaultsDoNotChangeTheResult checks lost writes, lost answers, conflicts and crashes. No object of a step is
// created before the plan has started.
func TestFaultsDoNotChangeTheResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, written := []olmcore.Object{UserSubscription("rich")}, map[string]string{"Service": "service", "ConfigMap": "config"}
		if Maybe(t, "over objects that are there") {
			objects = append(objects, existing()...)
			delete(written, "Service") // of the user
		}
		c, err := NewWorld(objects...)
		require.NoError(t, err)
		Faults(t, c)
		started := false
		watch := func(controller controller.Controller) controller.Controller {
			inner := controller.Reconcile
			controller.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
				result, err := inner(ctx, r, key, now, last)
				plans, _ := olmcore.List[*v1alpha1.InstallPlan](ctx, c, NS, nil)
				for _, p := range plans {
					started = started || p.Status.StartTime != nil && p.Status.Phase == Installing
				}
				for _, a := range result.Actions {
					if _, target, _ := a.Describe(); target.Kind != "InstallPlan" && target.Kind != "Subscription" {
						require.True(t, started, "%s before the start was stored", target)
					}
				}
				return result, err
			}
			return controller
		}
		d := driven(t, c, 3*time.Minute, makers(Installs(Rich()), Things), watch(plans(Things)))
		c.Faults().Clear()
		require.NoError(t, d.RunFor(context.Background(), 3*time.Minute))
		p := onlyPlan(t, c)
		require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
		require.Empty(t, p.Finalizers)
		require.Equal(t, "", p.Status.Message)
		for kind, name := range written {
			o, err := c.Get(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: kind}, NS, name)
			require.NoError(t, err)
			require.NotEmpty(t, o.GetAnnotations()[stepHash])
		}
	})
}

// without returns a list without the entry at an index.
func without[T any](list olmcore.Observed[T], i int) olmcore.Observed[T] {
	return olmcore.Found(slices.Delete(slices.Clone(list.Items), i, i+1)...)
}

func everyPlan(t require.TestingT, c *fake.Cluster) []*v1alpha1.InstallPlan {
	all, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), c, NS, nil)
	require.NoError(t, err)
	return all
}

// kept contains the kinds that the users of the storm do not delete.
var kept = []string{"Namespace", "OperatorGroup", "Subscription", "CatalogSource", "CustomResourceDefinition"}

// interferences returns what users do to a namespace during an installation.
func interferences(c *fake.Cluster, run func(time.Duration)) map[string]func(*rapid.T) {
	anyObject := func(t *rapid.T) olmcore.Object { return rapid.SampledFrom(c.Objects()).Draw(t, "object") }
	edits := 0
	// A user cannot edit an object that was deleted. This is no error here.
	return map[string]func(*rapid.T){
		"run": func(t *rapid.T) { run(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second) },
		"approve": func(t *rapid.T) {
			approved := Maybe(t, "approved")
			for _, p := range everyPlan(t, c) {
				_ = fake.Edit(c, NS, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = approved })
			}
		},
		"change approval": func(t *rapid.T) {
			approval := rapid.SampledFrom([]v1alpha1.Approval{"Manual", "Automatic", ""}).Draw(t, "approval")
			_ = fake.Edit(
				c,
				NS,
				rapid.SampledFrom([]string{"rich", "b"}).Draw(t, "who"),
				func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = approval },
			)
		},
		"delete": func(t *rapid.T) {
			if o := anyObject(t); !slices.Contains(kept, olmcore.KeyOf(o).Kind) && o.GetName() != BundleName {
				_ = c.Delete(olmcore.RefOf(o).Unversioned())
			}
		},
		"lose the bundle": func(*rapid.T) {
			_ = fake.Edit(c, "olm", BundleName, func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
		},
		"edit": func(t *rapid.T) {
			edits++
			_ = c.Edit(olmcore.KeyOf(anyObject(t)), func(o olmcore.Object) { o.SetAnnotations(map[string]string{"edit": fmt.Sprint(edits)}) })
		},
		"wipe": func(t *rapid.T) {
			for _, p := range everyPlan(t, c) {
				_ = c.Edit(olmcore.KeyOf(p), func(o olmcore.Object) {
					o.SetOwnerReferences(nil)
					o.SetLabels(nil)
				})
			}
		},
	}
}

// TestPlansConvergeAfterUsersInterfere checks users who approve, withdraw approvals, delete and edit objects while
// writes fail. Once they stop, every plan that a Subscription references is Complete and has that Subscription as an
// owner.
func TestPlansConvergeAfterUsersInterfere(t *testing.T) {
	inline := Rich()
	image, bundle := ImageOf(t, inline)
	bundle.UID, bundle.ResourceVersion, bundle.CreationTimestamp = "", "", metav1.Time{}
	config := Things
	config.OPMImage, config.UtilImage = Images.OPMImage, Images.UtilImage
	rapid.Check(t, func(t *rapid.T) {
		objects := []olmcore.Object{&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, bundle,
			UserSubscription("rich"), UserSubscription("b", Manual)}
		if Maybe(t, "over objects that are there") {
			objects = append(objects, existing()...)
		}
		c, err := NewWorld(objects...)
		require.NoError(t, err)
		Faults(t, c)
		o := inline
		if Maybe(t, "from an image") {
			o = image
		}
		d := &fake.Driver{
			Cluster:     c,
			Controllers: []controller.Controller{makers(Installs(o, Operator("b")), config), unpackingAgain(config), sweeps(config)},
		}
		run := func(duration time.Duration) { require.NoError(t, d.RunFor(context.Background(), duration)) }
		t.Repeat(interferences(c, run))

		c.Faults().Clear()
		require.NoError(
			t,
			fake.Edit(c, "olm", BundleName, func(cm *corev1.ConfigMap) { cm.Annotations, cm.BinaryData = bundle.Annotations, bundle.BinaryData }),
		)
		for range 3 {
			for _, p := range everyPlan(t, c) {
				require.NoError(t, fake.Edit(c, NS, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
			}
			run(10 * time.Minute)
		}
		run(10 * time.Minute)
		for _, p := range everyPlan(t, c) {
			for _, name := range []string{"rich", "b"} {
				if s := fake.Find[*v1alpha1.Subscription](c, NS, name); s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == p.UID {
					require.Equal(t, Complete, p.Status.Phase, "%s: %s", p.Name, p.Status.Message)
					require.True(t, olmcore.OwnedBy(p, s.UID), "%s does not own %s", name, p.Name)
				}
			}
		}
	})
}

// sweeps returns the controller of package sweep.
func sweeps(config installplan.Config) controller.Controller {
	kind := v1alpha1.SchemeGroupVersion.WithKind("Subscription")
	return controller.Controller{
		Name: "sweep", Kinds: []schema.GroupVersionKind{kind}, KeysOf: controller.NamespaceKey,
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			in, err := sweep.Gather(ctx, r, key.Namespace, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			return SweepResult(in)
		},
	}
}

func controllers() []controller.Controller {
	return []controller.Controller{makers(Installs(Rich()), Things), plans(Things), sweeps(Things)}
}

// endState returns every object of a cluster without fields that differ between runs: numbers, times, and whether the
// object of a step existed before it was observed.
func endState(t require.TestingT, c *fake.Cluster) map[string]any {
	names := map[string]string{}
	for _, o := range c.Objects() {
		names[string(o.GetUID())] = "uid of " + olmcore.KeyOf(o).String()
	}
	out := map[string]any{}
	for _, o := range c.Objects() {
		values, err := olmcore.ToMap(o)
		require.NoError(t, err)
		out[olmcore.KeyOf(o).String()] = masked(values, names)
	}
	return out
}

func masked(v any, names map[string]string) any {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			switch key {
			case "resourceVersion", "generation", "clusterIP", "clusterIPs", "observedGeneration":
				delete(x, key)
			default:
				x[key] = masked(value, names)
			}
		}
	case []any:
		for i := range x {
			x[i] = masked(x[i], names)
		}
	case string:
		if name, isUID := names[x]; isUID {
			return name
		}
		if x == string(Present) {
			return string(Created)
		}
		if _, err := time.Parse(time.RFC3339, x); err == nil {
			return "a time"
		}
	}
	return v
}

func historyWorld(t require.TestingT, over bool) *fake.Cluster {
	objects := []olmcore.Object{UserSubscription("rich")}
	if over {
		objects = append(objects, existing()...)
	}
	c, err := NewWorld(objects...)
	require.NoError(t, err)
	return c
}

// undisturbed contains the final states of clusters without faults.
var undisturbed = sync.OnceValue(func() map[bool]map[string]any {
	out := map[bool]map[string]any{}
	for _, over := range []bool{false, true} {
		t := panicking{}
		c := historyWorld(t, over)
		d := &fake.Driver{Cluster: c, Controllers: controllers()}
		require.NoError(t, d.RunFor(context.Background(), 15*time.Minute))
		require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
		out[over] = endState(t, c)
	}
	return out
})

type panicking struct{}

func (panicking) Errorf(string, ...any) {}
func (panicking) FailNow()              { panic("the undisturbed world fails") }

// disturbed returns which actions of a reconcile are run: all of them, those up to any action, all but one, all with
// one repeated, or none.
func disturbed(t *rapid.T, actions []olmcore.Action) []olmcore.Action {
	if len(actions) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(actions)-1).Draw(t, "action")
	switch rapid.SampledFrom([]string{"run", "run", "cut", "drop", "repeat"}).Draw(t, "how") {
	case "cut":
		return actions[:i]
	case "drop":
		return append(append([]olmcore.Action{}, actions[:i]...), actions[i+1:]...)
	case "repeat":
		return append(append([]olmcore.Action{}, actions[:i+1]...), actions[i:]...)
	}
	return actions
}

// TestInterruptedControllersReachTheSameState checks controllers that stop anywhere, lose or repeat writes, read a
// stale cache, and forget their memory.
func TestInterruptedControllersReachTheSameState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over := Maybe(t, "over objects that are there")
		c := historyWorld(t, over)
		view := c.View("stale")
		all := controllers()
		memory := map[string]olmcore.LastResults{}
		for range rapid.IntRange(1, 25).Draw(t, "rounds") {
			for _, controller := range all {
				if !Maybe(t, "runs") {
					continue
				}
				keys, err := controller.Keys(t.Context(), view)
				require.NoError(t, err)
				for _, key := range keys {
					name := controller.Name + key.String()
					result, err := controller.Reconcile(t.Context(), view, key, c.Now(), memory[name])
					if err != nil {
						continue // deleted meanwhile
					}
					actions := disturbed(t, result.Actions)
					err = olmcore.Run(t.Context(), c, actions)
					memory[name] = olmcore.LastResultsOf(memory[name], actions, err, c.Now())
				}
			}
			switch rapid.SampledFrom([]string{"sync", "lag", "settle", "restart", "later"}).Draw(t, "then") {
			case "sync":
				view.Sync()
			case "lag":
				for _, gvk := range view.Behind() {
					if Maybe(t, "sees") {
						view.Next(gvk)
					}
				}
			case "settle":
				require.NoError(t, c.Settle())
			case "restart":
				clear(memory)
			case "later":
				c.Advance(time.Second)
			}
		}
		d := &fake.Driver{Cluster: c, Controllers: all}
		require.NoError(t, d.RunFor(context.Background(), 15*time.Minute))
		if diff := cmp.Diff(undisturbed()[over], endState(t, c)); diff != "" {
			t.Fatalf("the end differs (-undisturbed +this):\n%s", diff)
		}
	})
}
