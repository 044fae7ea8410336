// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// slim is a Reader over a cache that keeps what controllers.Watched.Transform makes of what a client decodes.
func slim(r olmcore.Reader, c cached) olmcore.Reader {
	return controllers.Whole{Cached: slimming{r, c}, Live: r}
}

// slimming reads what such a cache holds.
type slimming struct {
	olmcore.Reader
	cached
}

// cached are the objects in such a cache, by UID and version, with copies of them.
type cached map[string][2]olmcore.Object

func (s cached) slimmed(o olmcore.Object) olmcore.Object {
	version := string(o.GetUID()) + "/" + o.GetResourceVersion()
	if kept, ok := s[version]; ok {
		return kept[0]
	}
	values, err := olmcore.ToMap(o)
	if err != nil {
		panic(err)
	}
	kept, err := controllers.Options{}.Watched().Transform(&unstructured.Unstructured{Object: values})
	if err != nil {
		panic(err)
	}
	object := kept.(olmcore.Object)
	s[version] = [2]olmcore.Object{object, object.DeepCopyObject().(olmcore.Object)}
	return object
}

// requireUnchanged: what objects share must not be changed by who reads it.
func (s cached) requireUnchanged(t *testing.T) {
	t.Helper()
	for _, kept := range s {
		require.Equal(t, kept[1], kept[0])
	}
}

func (s slimming) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o, err := s.Reader.Get(ctx, gvk, namespace, name)
	if err != nil {
		return nil, err
	}
	return s.slimmed(o), nil
}

func (s slimming) List(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	namespace string,
	selector labels.Selector,
) ([]olmcore.Object, error) {
	objects, err := s.Reader.List(ctx, gvk, namespace, selector)
	objects = slices.Clone(objects)
	for i, o := range objects {
		objects[i] = s.slimmed(o)
	}
	return objects, err
}

// writes are what actions do, without what they write.
func writes(r olmcore.Result) (list []string) {
	for _, a := range r.Actions {
		verb, target, cause := a.Describe()
		list = append(list, fmt.Sprint(verb, target, cause))
	}
	return list
}

// mesh is an operator without Deployments, and its OperatorGroup for all namespaces.
func mesh() []olmcore.Object {
	c := &v1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "mesh.v1", Annotations: map[string]string{"alm-examples": "[]"}},
	}
	c.Spec.DisplayName, c.Spec.Replaces = "Mesh", "mesh.v0"
	c.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{}
	return []olmcore.Object{&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "global"}}, c}
}

func disableCopies(on bool) *operatorsv1.OLMConfig {
	return &operatorsv1.OLMConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec:       operatorsv1.OLMConfigSpec{Features: &operatorsv1.Features{DisableCopiedCSVs: &on}},
	}
}

// TestSlimCopiesAreEnough: what every controller decides over a cache of slim copies is what it decides over whole
// ones, through a life in which copies are in the way of each of them.
func TestSlimCopiesAreEnough(t *testing.T) {
	w := newWorld(t)
	w.olm.Operators = true
	w.driver.Controllers = w.olm.Controllers()
	look := func() {
		options := w.olm.Options
		kept := cached{}
		defer kept.requireUnchanged(t)
		whole, over := (&olm.OLM{Options: options, Disconnected: true}).Controllers(), (&olm.OLM{Options: options, Disconnected: true}).Controllers()
		for i, c := range over {
			keys, err := whole[i].Keys(w.ctx, w.cluster)
			require.NoError(t, err)
			slimKeys, err := c.Keys(w.ctx, slim(w.cluster, kept))
			require.NoError(t, err)
			require.Equal(t, keys, slimKeys, c.Name)
			for _, key := range keys {
				want, err := whole[i].Reconcile(w.ctx, w.cluster, key, w.cluster.Now(), nil)
				require.NoError(t, err)
				got, err := c.Reconcile(w.ctx, slim(w.cluster, kept), key, w.cluster.Now(), nil)
				require.NoError(t, err)
				if c.Name == controllers.Copies { // the patches of copies are other ones to the same end
					require.Equal(t, writes(want), writes(got), key)
					want.Actions, got.Actions = nil, nil
				}
				require.Equal(t, invariant.Describe(want), invariant.Describe(got), "%s %s", c.Name, key)
			}
		}
	}
	live := func() {
		for range 8 {
			look()
			require.NoError(t, w.cluster.Settle())
			_, err := w.driver.Round(w.ctx)
			require.NoError(t, err)
			w.cluster.Advance(time.Second)
		}
		require.NoError(t, w.driver.RunFor(w.ctx, time.Minute))
		look()
	}
	require.NoError(t, w.cluster.Create(mesh()...))
	live()
	copied := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, "mesh.v1")
	require.True(t, copied.IsCopied())
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalAutomatic))
	w.heads["mesh"] = 1
	live()
	for _, name := range []string{"mesh", "alpha"} { // what OLM takes for installed, and a copy that takes over a name
		s := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, name).DeepCopy()
		s.Status.InstalledCSV, s.Status.CurrentCSV = "mesh.v1", "mesh.v1"
		require.NoError(t, w.cluster.UpdateStatus(s))
	}
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "install-mesh"}, Spec: v1alpha1.InstallPlanSpec{
		Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{"mesh.v1"}}}
	require.NoError(t, w.cluster.Create(plan))
	live()
	require.NoError(t, fake.Edit(w.cluster, namespace, "mesh.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Finalizers, c.Labels["operators.coreos.com/alpha."+namespace] = []string{"operators.coreos.com/csv-cleanup"}, ""
	}))
	live()
	require.NoError(t, w.cluster.Create(disableCopies(true)))
	live()
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, "mesh.v1"))
	require.NoError(t, fake.Edit(w.cluster, "", "cluster", func(c *operatorsv1.OLMConfig) { c.Spec.Features = nil }))
	live()
	require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, "mesh.v1"))
	require.NoError(
		t,
		w.cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "operators", "mesh.v1")).Unversioned()),
	)
	live()
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, "mesh.v1"))
}

// manyTeams is a world with namespaces for copies, of which one has something else of the name, one a copy of nothing,
// and one goes.
func manyTeams() (*fake.Cluster, error) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	objects := append(mesh(), disableCopies(false))
	for i := range 3 {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("team-", i)}})
	}
	taken := mesh()[1].(*v1alpha1.ClusterServiceVersion)
	taken.Namespace = "team-1"
	stray := mesh()[1].(*v1alpha1.ClusterServiceVersion)
	stray.Namespace, stray.Name = "team-2", "gone.v1"
	stray.Labels, stray.Annotations = map[string]string{"olm.copiedFrom": "operators"}, map[string]string{"olm.operatorNamespace": "operators"}
	return c, c.Create(append(objects, taken, stray)...)
}

// TestCopiesComeWhateverHappens: the same copies are there in the end with two managers, lost and repeated writes, and
// restarts in between; over whole copies and slim ones.
func TestCopiesComeWhateverHappens(t *testing.T) {
	for name, reader := range map[string]func(olmcore.Reader) olmcore.Reader{
		"whole": func(r olmcore.Reader) olmcore.Reader { return r },
		"slim":  func(r olmcore.Reader) olmcore.Reader { return slim(r, cached{}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := invariant.World{New: manyTeams, Rounds: 20, SettleTime: 2 * time.Minute}
			w.Controllers = func(c *fake.Cluster) []controller.Controller {
				all := slices.DeleteFunc((&olm.OLM{Disconnected: true}).Controllers(), func(c controller.Controller) bool {
					return !slices.Contains([]string{controllers.CSV, controllers.Copies, controllers.OLMConfig, controllers.Group}, c.Name)
				})
				for i := range all {
					own, reconcile := reader(c), all[i].Reconcile
					all[i].Reconcile = func(
						ctx context.Context, _ olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
					) (olmcore.Result, error) {
						return reconcile(ctx, own, key, now, last)
					}
				}
				return all
			}
			require.NoError(t, invariant.Settles(w))
			require.NoError(t, invariant.Repeatable(w))
			require.NoError(t, invariant.Resumable(w))
			require.NoError(t, invariant.TwoManagers(w))
		})
	}
}

// TestADeletedOriginalLeavesNoCopy, whether its cleanup or the controller of copies gets there first, or the finalizer
// was taken off while no controller ran.
func TestADeletedOriginalLeavesNoCopy(t *testing.T) {
	for name, only := range map[string][]string{
		"both": {controllers.CSV, controllers.Copies, controllers.Group}, "the cleanup": {controllers.CSV, controllers.Group}, "the copies": {controllers.Copies},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := manyTeams()
			require.NoError(t, err)
			d := &fake.Driver{Cluster: c, Controllers: (&olm.OLM{Disconnected: true}).Controllers()}
			require.NoError(t, d.Settle(t.Context()))
			copies := func() (n int) {
				for _, o := range c.Objects() {
					if o.GetLabels()["olm.copiedFrom"] == "operators" && o.GetName() == "mesh.v1" {
						n++
					}
				}
				return n
			}
			require.Equal(t, 2, copies())
			original := fake.Find[*v1alpha1.ClusterServiceVersion](c, "operators", "mesh.v1")
			if !slices.Contains(only, controllers.CSV) {
				require.NoError(t, fake.Edit(c, "operators", "mesh.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = nil }))
			}
			require.NoError(t, c.Delete(olmcore.RefOf(original).Unversioned()))
			d = &fake.Driver{
				Cluster: c,
				Controllers: slices.DeleteFunc(
					(&olm.OLM{Disconnected: true}).Controllers(),
					func(c controller.Controller) bool { return !slices.Contains(only, c.Name) },
				),
			}
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "operators", "mesh.v1"))
			require.Zero(t, copies())
			require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "team-1", "mesh.v1"), "an original stays")
		})
	}
}
