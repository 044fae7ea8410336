// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// rounds is the number of rounds in which a world must converge, from a new CSV until its predecessor is cleaned up.
const rounds = 16

// filesRead contains the objects of files of testdata, which are read once.
var filesRead = map[string][]olmcore.Object{}

// fromFiles returns copies of the objects of files.
func fromFiles(names ...string) (all []olmcore.Object) {
	for _, name := range names {
		if filesRead[name] == nil {
			filesRead[name] = readFile(name)
		}
		for _, o := range filesRead[name] {
			all = append(all, o.DeepCopyObject().(olmcore.Object))
		}
	}
	return all
}

func readFile(name string) (all []olmcore.Object) {
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	found, err := decode.Read(name, bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	for _, o := range found {
		all = append(all, o.Object)
	}
	return all
}

func world(steps func(c *fake.Cluster, d *fake.Driver) error, files ...string) invariant.World {
	return invariant.World{
		Rounds: rounds,
		New: func() (*fake.Cluster, error) {
			c, d := newWorld(csv.Config{})
			objects := fromFiles(files...)
			if err := c.Create(objects...); err != nil {
				return nil, err
			}
			return c, steps(c, d)
		},
		Controllers: func(*fake.Cluster) []controller.Controller { return controllers(csv.Config{}) },
		Ignore: []invariant.Ignore{{ // how often a CSV went through its phases is the history of a run
			Kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.ClusterServiceVersionKind}, Path: []string{"status", "conditions"},
		}},
	}
}

func asIs(*fake.Cluster, *fake.Driver) error { return nil }

func TestRandomWorldsConvergeDespiteLostWrites(t *testing.T) {
	installed := func(c *fake.Cluster, d *fake.Driver) error { return d.Settle(context.Background()) }
	for name, w := range map[string]invariant.World{
		"a first installation":            world(asIs, "base.yaml", "v1.yaml"),
		"an installation without a group": world(asIs, "v1.yaml"),
		"an upgrade": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			objects := fromFiles("rbac-v2.yaml", "v2.yaml")
			return c.Create(objects...)
		}, "base.yaml", "v1.yaml"),
		"both versions at once": world(asIs, "base.yaml", "rbac-v2.yaml", "v1.yaml", "v2.yaml"),
		"a removal": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(refOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1")))
		}, "base.yaml", "v1.yaml"),
		"an operator that serves an API": world(asIs, "base.yaml", "api-v1.yaml"),
		"an upgrade of one": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Create(fromFiles("api-v2.yaml")...)
		}, "base.yaml", "api-v1.yaml"),
		"a removal of one": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(refOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "ice.v1")))
		}, "base.yaml", "api-v1.yaml"),
		"a lost APIService": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(olmcore.Ref{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: "v1.ice.example.com"})
		}, "base.yaml", "api-v1.yaml"),
		"a lost certificate": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "ice-service-cert"})
		}, "base.yaml", "api-v1.yaml"),
		"a lost Deployment": world(func(c *fake.Cluster, d *fake.Driver) error {
			if err := installed(c, d); err != nil {
				return err
			}
			return c.Delete(olmcore.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "cool"})
		}, "base.yaml", "v1.yaml"),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.Settles(w))
			require.NoError(t, invariant.Repeatable(w))
			require.NoError(t, invariant.Resumable(w))
		})
	}
}

// TestUpgradeChainEndsWithItsHead creates versions that replace each other in any order, with cycles and lost writes.
// In the end, only the head exists.
func TestUpgradeChainEndsWithItsHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, d := newWorld(csv.Config{})
		base := fromFiles("base.yaml")
		require.NoError(t, c.Create(base...))
		v1 := fromFiles("v1.yaml")
		n := rapid.IntRange(1, 5).Draw(t, "versions")
		cycle := rapid.Bool().Draw(t, "cycle")
		order := rapid.Permutation(indices(n)).Draw(t, "order")
		// A version that comes when its successor is gone is no part of the chain.
		between := rapid.Bool().Draw(t, "between") || cycle
		if between {
			slices.Sort(order)
		}
		for _, i := range order {
			v := v1[0].DeepCopyObject().(*v1alpha1.ClusterServiceVersion)
			v.Name = fmt.Sprintf("chain.v%d", i)
			v.Spec.Version.Major = uint64(i)
			if i > 0 {
				v.Spec.Replaces = fmt.Sprintf("chain.v%d", i-1)
			} else if cycle {
				v.Spec.Replaces = fmt.Sprintf("chain.v%d", n-1)
			}
			require.NoError(t, c.Create(needs(v)[1:]...))
			require.NoError(t, c.Create(v))
			if rapid.Bool().Draw(t, "lost") {
				c.Faults().Inject(fake.Fault{Mode: fake.FailWithoutEffect, Nth: rapid.IntRange(1, 6).Draw(t, "nth")})
			}
			for range rapid.IntRange(0, 4).Draw(t, "rounds") {
				if !between {
					break
				}
				_, err := d.Round(context.Background())
				require.NoError(t, err)
				neverWithoutOperator(t, c)
			}
			if between && rapid.Bool().Draw(t, "settle") {
				require.NoError(t, d.Settle(context.Background()))
			}
			require.NoError(t, c.RunFor(time.Second))
		}
		require.NoError(t, d.RunUntilIdle(context.Background(), time.Hour))
		left := csvs(c)
		require.Len(t, left, 1, "%s", controller.Format(d.Events))
		require.Equal(t, fmt.Sprintf("chain.v%d", n-1), left[0].Name)
		require.Equal(t, succeeded, left[0].Status.Phase, left[0].Status.Message)
		for _, o := range c.Objects() {
			if _, ok := o.(*rbacv1.ClusterRole); ok && o.GetLabels()[olmcore.LabelOwnerKind] == "ClusterServiceVersion" &&
				o.GetLabels()[olmcore.LabelOwner] != "cool.v1" {
				require.Equal(t, left[0].Name, o.GetLabels()[olmcore.LabelOwner], "only the head's permissions are left")
			}
		}
	})
}

// neverWithoutOperator checks that after the first success, one version is always Succeeded or Replacing, or has a
// successor that is.
func neverWithoutOperator(t *rapid.T, c *fake.Cluster) {
	all := csvs(c)
	for _, v := range all {
		if v.DeletionTimestamp == nil || v.Status.Phase == succeeded {
			continue
		}
		require.True(t, slices.ContainsFunc(all, func(s *v1alpha1.ClusterServiceVersion) bool {
			return s.Name != v.Name && s.Status.Phase != none && s.DeletionTimestamp == nil
		}), "%s goes and nothing follows it", v.Name)
	}
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// csvs returns the original versions, without copies.
func csvs(c *fake.Cluster) []*v1alpha1.ClusterServiceVersion {
	var found []*v1alpha1.ClusterServiceVersion
	for _, o := range c.Objects() {
		if v, ok := o.(*v1alpha1.ClusterServiceVersion); ok && v.Labels["olm.copiedFrom"] == "" {
			found = append(found, v)
		}
	}
	return found
}

// TestSweepDeletesObjectsOfDeletedCSVAndGroup removes the finalizer by hand, and deletes the OperatorGroup. A sweep
// deletes what both left behind.
func TestSweepDeletesObjectsOfDeletedCSVAndGroup(t *testing.T) {
	ctx := context.Background()
	cluster, driver := install(t, small(t))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	bare := live.DeepCopy()
	bare.Finalizers = nil
	require.NoError(t, cluster.Do(ctx, olmcore.UpdateOf(live, bare, olmcore.Cause{})))
	require.NoError(t, cluster.Delete(refOf(live)))
	require.NoError(
		t,
		cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup", Namespace: "ns", Name: "group"}),
	)
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.NoError(t, cluster.RunFor(time.Hour))
	require.NotEmpty(t, clusterObjectsOf(cluster, live))

	in, err := sweep.Gather(ctx, cluster, cleanup.Config{SweepDelete: true}, nil)
	require.NoError(t, err)
	in.Now = cluster.Now()
	res, err := sweep.Reconcile(in)
	require.NoError(t, err)
	require.NoError(t, olmcore.Run(ctx, cluster, res.Actions))
	require.Empty(t, clusterObjectsOf(cluster, live))
	for _, o := range cluster.Objects() {
		_, owned := olmcore.OwnerOf(o.GetLabels())
		require.False(t, owned && o.GetNamespace() == "", "%s", olmcore.KeyOf(o))
	}
	in, err = sweep.Gather(ctx, cluster, cleanup.Config{}, nil)
	require.NoError(t, err)
	in.Now = cluster.Now()
	res, err = sweep.Reconcile(in)
	require.NoError(t, err)
	require.Empty(t, res.Result)
}

// TestTwoControllersWithStaleCaches runs two controllers on the same versions at once. Each reads from caches that are
// stale for some kinds. No object of a live version is deleted, and no installed version is replaced by an older one.
// Once the caches are up to date, the desired state is reached.
func TestTwoControllersWithStaleCaches(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		base := fromFiles("base.yaml", "v1.yaml", "rbac-v2.yaml")
		for _, o := range base[3:] {
			require.NoError(t, h.c.Create(o))
		}
		if rapid.Bool().Draw(t, "installed") {
			require.NoError(t, h.d.RunUntilIdle(ctx, time.Hour))
		}
		views := [2]*fake.View{h.c.View("one"), h.c.View("two")}
		kinds := []schema.GroupVersionKind{
			csvKind, csvKind, groupKind, appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Namespace"),
			rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		}
		work := func(t *rapid.T) {
			view := views[rapid.IntRange(0, 1).Draw(t, "worker")]
			for _, controller := range h.d.Controllers {
				keys, err := controller.Keys(context.Background(), view)
				require.NoError(t, err)
				if len(keys) == 0 || rapid.IntRange(0, 2).Draw(t, "idle") == 0 {
					continue
				}
				key := rapid.SampledFrom(keys).Draw(t, "key")
				res, err := controller.Reconcile(ctx, view, key, h.c.Now(), nil)
				if apierrors.IsNotFound(err) {
					continue
				}
				require.NoError(t, err)
				_ = olmcore.Run(ctx, h.c, res.Actions) // what an old cache asks for may be refused
			}
		}
		last := "" // who had the Deployment
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.NoError(t, h.violation)
				owner := ""
				if d := fake.Find[*appsv1.Deployment](h.c, "ns", "cool"); d != nil {
					owner = d.Labels[olmcore.LabelOwner]
				}
				require.False(t, last == "cool.v2" && owner == "cool.v1", "the old version took its Deployment back")
				last = owner
			},
			"work": work, "work on": work,
			"news": func(t *rapid.T) {
				view := views[rapid.IntRange(0, 1).Draw(t, "view")]
				for range rapid.IntRange(1, 4).Draw(t, "events") {
					view.Next(rapid.SampledFrom(kinds).Draw(t, "kind"))
				}
			},
			"synced": func(t *rapid.T) { views[rapid.IntRange(0, 1).Draw(t, "view")].Sync() },
			"settle": func(t *rapid.T) { require.NoError(t, h.c.RunFor(time.Second)) },
			"later":  func(t *rapid.T) { require.NoError(t, h.c.RunFor(time.Minute)) },
			"upgrade": func(t *rapid.T) {
				v2 := fromFiles("v2.yaml")
				_ = h.c.Create(v2...)
			},
			"delete": func(t *rapid.T) {
				if v1 := fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", "cool.v1"); v1 != nil && len(v1.Finalizers) > 0 {
					require.NoError(t, h.c.Delete(refOf(v1)))
				}
			},
		})
		require.NoError(t, h.d.RunUntilIdle(ctx, 2*time.Hour))
		require.NoError(t, h.violation)
		left := csvs(h.c)
		for _, v := range left {
			require.Nil(t, v.DeletionTimestamp, "%s: %s", v.Name, v.Status.Message)
			require.Equal(t, succeeded, v.Status.Phase, "%s: %s %s", v.Name, v.Status.Reason, v.Status.Message)
		}
		require.LessOrEqual(t, len(left), 1)
		if fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", "cool.v1") == nil {
			gone := &v1alpha1.ClusterServiceVersion{}
			gone.Namespace, gone.Name = "ns", "cool.v1"
			require.Empty(t, clusterObjectsOf(h.c, gone))
		}
	})
}

// groupSpecs returns specs of OperatorGroups that an operator for single namespaces supports, or specs that it does not
// support.
func groupSpecs(fit bool) map[string]operatorsv1.OperatorGroupSpec {
	if fit {
		return map[string]operatorsv1.OperatorGroupSpec{
			"own":      {TargetNamespaces: []string{"ns"}},
			"single":   {TargetNamespaces: []string{"target"}},
			"selector": {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "target"}}},
		}
	}
	return map[string]operatorsv1.OperatorGroupSpec{
		"all": {}, "many": {TargetNamespaces: []string{"ns", "target"}},
		"none":    {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}},
		"invalid": {TargetNamespaces: []string{""}},
		"account": {TargetNamespaces: []string{"ns"}, ServiceAccountName: "nobody"},
	}
}

func drawSpec(t *rapid.T, specs map[string]operatorsv1.OperatorGroupSpec) operatorsv1.OperatorGroupSpec {
	names := make([]string, 0, len(specs))
	for name := range specs {
		names = append(names, name)
	}
	slices.Sort(names)
	return specs[rapid.SampledFrom(names).Draw(t, "spec")]
}

func groupsOf(c *fake.Cluster) []*operatorsv1.OperatorGroup {
	found, _ := olmcore.List[*operatorsv1.OperatorGroup](context.Background(), c, "ns", nil)
	return found
}

// changeGroups creates an OperatorGroup (0, 1), or deletes (2) or changes (3) one.
func changeGroups(t *rapid.T, cluster *fake.Cluster, step int) {
	groups := groupsOf(cluster)
	if step > 1 && len(groups) == 0 {
		return
	}
	if step == 2 {
		require.NoError(t, cluster.Delete(refOf(groups[0])))
		return
	}
	if step == 3 {
		spec := drawSpec(t, groupSpecs(rapid.Bool().Draw(t, "fits")))
		require.NoError(t, fake.Edit(cluster, "ns", groups[len(groups)-1].Name, func(g *operatorsv1.OperatorGroup) { g.Spec = spec }))
		return
	}
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	spec := drawSpec(t, groupSpecs(rapid.Bool().Draw(t, "fits")))
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: spec}
	require.NoError(t, ignoreExisting(cluster.Create(g)))
}

// TestOperatorGroupMayChangeAtAnyTime replaces, duplicates, breaks and deletes the OperatorGroup while versions are
// installed and upgraded. Nothing is installed without exactly one matching group. With one, all operators run in the
// end, and watch the namespaces of the group.
func TestOperatorGroupMayChangeAtAnyTime(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		base := fromFiles("base.yaml")
		require.NoError(t, cluster.Create(base[1:]...))
		require.NoError(t, cluster.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "target"}}))
		require.NoError(t, cluster.RunFor(time.Second))
		var violation error
		cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
			if groups := groupsOf(cluster); target.Kind == "Deployment" && verb == olmcore.VerbCreate && len(groups) != 1 {
				violation = fmt.Errorf("%s %s with %d groups", verb, target, len(groups))
			}
			return nil
		}
		v1 := fromFiles("v1.yaml")
		require.NoError(t, cluster.Create(v1...))
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 6).Draw(t, "step"); step {
			case 0, 1, 2, 3:
				changeGroups(t, cluster, step)
			case 4:
				for _, o := range fromFiles("rbac-v2.yaml", "v2.yaml") {
					require.NoError(t, ignoreExisting(cluster.Create(o)))
				}
			case 5:
				cluster.Faults().Inject(fake.Fault{
					Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "fault"),
					Nth:  rapid.IntRange(1, 4).Draw(t, "nth"),
				})
			case 6:
				require.NoError(t, cluster.RunFor(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds"))*time.Second))
			}
			for range rapid.IntRange(0, 4).Draw(t, "rounds") {
				_, err := driver.Round(ctx)
				require.NoError(t, err)
				require.NoError(t, violation, "%s", controller.Format(driver.Events))
			}
		}
		cluster.Faults().Clear()
		for _, g := range groupsOf(cluster) {
			require.NoError(t, cluster.Delete(refOf(g)))
		}
		last := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "last"}, Spec: drawSpec(t, groupSpecs(true))}
		require.NoError(t, cluster.Create(last))
		require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
		require.NoError(t, violation)
		left := csvs(cluster)
		require.Len(t, left, 1, "%s", controller.Format(driver.Events))
		status := left[0].Status
		require.Equal(t, succeeded, status.Phase, "%s: %s\n%s", status.Reason, status.Message, controller.Format(driver.Events))
		last = groupsOf(cluster)[0]
		require.Equal(t, "last", left[0].Annotations["olm.operatorGroup"])
		require.Equal(t, strings.Join(last.Status.Namespaces, ","), left[0].Annotations["olm.targetNamespaces"])
		require.Equal(t, "Cool.v1.example.com", last.Annotations["olm.providedAPIs"])
	})
}

// TestJumpingClockDoesNoHarm changes the clock of the controllers back and forth during an installation, an upgrade and
// a deletion. Waits stay limited, recorded times never prevent a later step, and the desired state is reached.
func TestJumpingClockDoesNoHarm(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		skews := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, 0, -time.Hour, -time.Minute, time.Minute, 24 * time.Hour}), 5, 5).
			Draw(t, "skews")
		calls := 0
		driver.Controllers = controllersWith(csv.Config{}, func(in *csv.Input) {
			if len(skews) > 0 {
				in.Now = in.Now.Add(skews[calls%len(skews)])
			}
			calls++
		})
		live := func(name string) *v1alpha1.ClusterServiceVersion {
			return fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", name)
		}
		bring := func(files ...string) {
			objects := fromFiles(files...)
			require.NoError(t, cluster.Create(objects...))
			for range rapid.IntRange(0, 12).Draw(t, "rounds") {
				_, err := driver.Round(ctx)
				require.NoError(t, err)
				require.NoError(t, cluster.RunFor(time.Second))
				for _, d := range driver.Deadlines() {
					require.LessOrEqual(t, d.At.Sub(cluster.Now()), csv.DefaultInstallTimeout, "%s waits too long", d.Key)
				}
			}
		}
		bring("base.yaml", "v1.yaml")
		bring("rbac-v2.yaml", "v2.yaml")
		if v2 := live("cool.v2"); rapid.Bool().Draw(t, "deleted") {
			require.NoError(t, cluster.Delete(refOf(v2)))
			bring()
		}
		skews = nil
		require.NoError(t, driver.RunUntilIdle(ctx, 48*time.Hour))
		for _, v := range csvs(cluster) {
			require.Nil(t, v.DeletionTimestamp, "%s: %s", v.Name, v.Status.Message)
			require.Equal(t, succeeded, v.Status.Phase, "%s: %s %s\n%s", v.Name, v.Status.Reason, v.Status.Message, controller.Format(driver.Events))
		}
	})
}

func TestEveryPublishedCSVReachesSucceededAndIsCleanedUp(t *testing.T) {
	csvs := realCSVs(t)
	for _, name := range slices.Sorted(maps.Keys(csvs)) {
		t.Run(name, func(t *testing.T) {
			cluster, driver := install(t, csvs[name])
			namespace := csvs[name].Namespace
			if namespace == "" {
				namespace = "operators"
			}
			live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespace, name)
			require.Equal(
				t,
				v1alpha1.CSVPhaseSucceeded,
				live.Status.Phase,
				"%s: %s\n%s",
				live.Status.Reason,
				live.Status.Message,
				controller.Format(driver.Events),
			)

			in, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: namespace, Name: name}, csv.Config{})
			require.NoError(t, err)
			in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
			out, err := outcome(in)
			require.NoError(t, err)
			require.Equal(t, live.Status.CertsRotateAt == nil, out.RequeueAfter == 0, "it waits for nothing but the end of its certificates")
			out.RequeueAfter = 0
			require.Equal(t, csv.Outcome{}, out, "a converged CSV asks for nothing")

			require.NoError(t, cluster.Delete(refOf(live)))
			require.NoError(t, driver.RunUntilIdle(context.Background(), 600e9))
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, namespace, name))
			require.Empty(t, clusterObjectsOf(cluster, live), "nothing cluster-scoped is left")
		})
	}
}

// TestPublishedCSVsSurviveDowntimeAtAnyTime installs and deletes published operators, two at once, while the
// controllers are down at random times and writes get lost. Each operator becomes Succeeded, and leaves nothing behind.
func TestPublishedCSVsSurviveDowntimeAtAnyTime(t *testing.T) {
	all := realCSVs(t)
	names := slices.Sorted(maps.Keys(all))
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cluster, driver := newWorld(csv.Config{})
		disturb := func() { disturb(t, cluster, driver) }
		var live []*v1alpha1.ClusterServiceVersion
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(names)-1), 1, 2, rapid.ID).Draw(t, "operators") {
			c := all[names[i]].DeepCopy()
			c.Namespace, c.Spec.Replaces = fmt.Sprintf("ns-%d", i), ""
			live = append(live, c)
		}
		for _, crd := range definitionsFor(live...) {
			require.NoError(t, cluster.Create(crd))
		}
		for _, c := range live {
			g := groupFor(c)
			require.NoError(t, cluster.Create(needs(c)...))
			require.NoError(t, cluster.Create(g, c))
			disturb()
		}
		shared := len(live) == 2 && sharesAnAPI(live[0], live[1])
		cluster.Faults().Clear()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		ready := 0
		for _, c := range live {
			got := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, c.Namespace, c.Name)
			if got.Status.Phase == succeeded {
				ready++
			} else {
				require.True(t, shared, "%s: %s %s", c.Name, got.Status.Phase, got.Status.Message)
				require.Equal(t, v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, got.Status.Reason)
			}
		}
		require.NotZero(t, ready, "one of two that provide the same runs")
		for _, c := range live {
			got := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, c.Namespace, c.Name)
			require.NoError(t, cluster.Delete(refOf(got)))
			disturb()
		}
		cluster.Faults().Clear()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		for _, c := range live {
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, c.Namespace, c.Name))
			require.Empty(t, clusterObjectsOf(cluster, c))
		}
	})
}

// disturb runs a few rounds with lost writes, and with downtime of controllers in between.
func disturb(t *rapid.T, cluster *fake.Cluster, driver *fake.Driver) {
	for range rapid.IntRange(0, 6).Draw(t, "rounds") {
		if rapid.IntRange(0, 2).Draw(t, "fault") == 0 {
			cluster.Faults().Inject(fake.Fault{
				Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "mode"),
				Nth:  rapid.IntRange(1, 3).Draw(t, "nth"),
			})
		}
		_, err := driver.Round(context.Background())
		require.NoError(t, err)
		require.NoError(t, cluster.RunFor(time.Duration(rapid.SampledFrom([]int{0, 1, 40, 400}).Draw(t, "down"))*time.Second))
	}
}

func sharesAnAPI(a, b *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(a.Spec.CustomResourceDefinitions.Owned, func(x v1alpha1.CRDDescription) bool {
		return slices.ContainsFunc(b.Spec.CustomResourceDefinitions.Owned, func(y v1alpha1.CRDDescription) bool { return x.Name == y.Name })
	})
}

// publishedUpgrades returns the operators of which two versions are published, the second replacing the first.
func publishedUpgrades(t *testing.T) [][2]*v1alpha1.ClusterServiceVersion {
	var found [][2]*v1alpha1.ClusterServiceVersion
	last := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, b := range realdata.ClusterServiceVersions(t) { // skips without them
		for _, o := range b.Objects {
			c, ok := o.(*v1alpha1.ClusterServiceVersion)
			if !ok {
				continue
			}
			c = c.DeepCopy()
			c.Namespace, c.Spec.Replaces = "ns", ""
			if before := last[b.Operator]; before != nil {
				c.Spec.Replaces = before.Name
				found = append(found, [2]*v1alpha1.ClusterServiceVersion{before, c})
			}
			last[b.Operator] = c
		}
	}
	return found
}

// define writes the CRDs of a version, as its InstallPlan does. Versions of a CRD that it does not describe are no
// longer served.
func define(t require.TestingT, cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) {
	for _, crd := range definitionsFor(c) {
		if fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", crd.Name) == nil {
			require.NoError(t, cluster.Create(crd))
			continue
		}
		require.NoError(t, fake.Edit(cluster, "", crd.Name, func(live *apiextensionsv1.CustomResourceDefinition) {
			for i := range live.Spec.Versions {
				live.Spec.Versions[i].Served = false
			}
			for _, v := range crd.Spec.Versions {
				i := slices.IndexFunc(live.Spec.Versions, func(l apiextensionsv1.CustomResourceDefinitionVersion) bool { return l.Name == v.Name })
				if i < 0 {
					v.Storage, i = false, len(live.Spec.Versions)
					live.Spec.Versions = append(live.Spec.Versions, v)
				}
				live.Spec.Versions[i].Served = true
			}
		}))
	}
}

// TestPublishedUpgradesSurviveDowntimeAtAnyTime creates the second version of each published operator at any time in
// the life of the first one, while writes get lost and controllers are down. The first version is deleted with all its
// own objects. No object that the second version needs is deleted, and in the end neither leaves anything behind.
func TestPublishedUpgradesSurviveDowntimeAtAnyTime(t *testing.T) {
	ctx := context.Background()
	upgrades := publishedUpgrades(t)
	require.NotEmpty(t, upgrades)
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.SampledFrom(upgrades).Draw(t, "upgrade")
		first, second := pair[0], pair[1]
		cluster, driver := newWorld(csv.Config{})
		define(t, cluster, first)
		require.NoError(t, cluster.Create(needs(first)...))
		require.NoError(t, cluster.Create(groupFor(first), first))
		disturb(t, cluster, driver)
		if rapid.Bool().Draw(t, "installed") { // otherwise the second comes while the first is on its way
			require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
			define(t, cluster, second)
		} else {
			for _, crd := range definitionsFor(first, second) {
				require.NoError(t, ignoreExisting(cluster.Create(crd)))
			}
		}
		for _, o := range needs(second) {
			require.NoError(t, ignoreExisting(cluster.Create(o)))
		}
		require.NoError(t, cluster.Create(second))
		disturb(t, cluster, driver)
		if live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", first.Name); live != nil && len(live.Finalizers) > 0 &&
			rapid.Bool().Draw(t, "impatient") {
			require.NoError(t, cluster.Delete(refOf(live)))
			disturb(t, cluster, driver)
		}
		cluster.Faults().Clear()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", first.Name), "%s", controller.Format(driver.Events))
		require.Empty(t, clusterObjectsOf(cluster, first))
		live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", second.Name)
		require.Equal(t, succeeded, live.Status.Phase, "%s: %s\n%s", live.Status.Reason, live.Status.Message, controller.Format(driver.Events))
		exists := map[olmcore.Key]bool{}
		for _, o := range cluster.Objects() {
			exists[olmcore.KeyOf(o)] = true
		}
		for _, o := range needs(second) {
			require.True(t, exists[olmcore.KeyOf(o)], "%s went with the first version", olmcore.KeyOf(o))
		}
		require.NoError(t, cluster.Delete(refOf(live)))
		disturb(t, cluster, driver)
		cluster.Faults().Clear()
		require.NoError(t, driver.RunUntilIdle(ctx, 2*time.Hour))
		require.Empty(t, csvs(cluster), "%s", controller.Format(driver.Events))
		require.Empty(t, clusterObjectsOf(cluster, second))
	})
}
