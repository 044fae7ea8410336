// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// rounds is the maximum number of rounds until a world converges.
const rounds = 12

func controllerFor(name string, kind schema.GroupVersionKind, reconcile controller.ReconcileFunc) controller.Controller {
	return controller.Controller{Name: name, Kinds: []schema.GroupVersionKind{kind}, Reconcile: reconcile}
}

// controllers returns the controllers of OperatorGroups, ClusterServiceVersions and copies, and the one of this
// package.
func controllers() []controller.Controller {
	versions := v1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion")
	checkpoints := map[types.NamespacedName]*olmcore.Checkpoint{}
	return []controller.Controller{
		controllerFor(
			"group",
			operatorsv1.GroupVersion.WithKind("OperatorGroup"),
			func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
				in, err := operatorgroup.Gather(ctx, r, key)
				if err != nil {
					return olmcore.Result{}, err
				}
				in.Now = now
				out, err := operatorgroup.Reconcile(in)
				return out.Result, err
			},
		),
		controllerFor(
			"csv",
			versions,
			func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
				in, err := csv.Gather(ctx, r, key, csv.Config{})
				if err != nil {
					return olmcore.Result{}, err
				}
				in.Now, in.LastRun, in.KubernetesVersion = now, last, "v1.36.2"
				out, err := csv.Reconcile(in)
				return out.Result, err
			},
		),
		{
			Name: "copies", Kinds: []schema.GroupVersionKind{versions}, Namespaces: []string{key.Namespace},
			Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
				in, err := copies.Gather(ctx, r, key, copies.Config{})
				if err != nil {
					return olmcore.Result{}, err
				}
				in.Now = now
				out, err := copies.Reconcile(in)
				return out.Result, err
			},
		},
		controllerFor(
			"permissions",
			versions,
			func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
				in, err := permissions.Gather(ctx, r, key)
				if err != nil {
					return olmcore.Result{}, err
				}
				in.Now, in.LastRun, in.Checkpoint = now, last, checkpoints[key]
				out, err := permissions.Reconcile(in)
				checkpoints[key] = out.Checkpoint
				return out.Result, err
			},
		),
	}
}

// install creates the objects of a file as an InstallPlan does, with what the permissions of the
// ClusterServiceVersion need.
func install(c *fake.Cluster, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	found, err := decode.Read(file, bytes.NewReader(data))
	if err != nil {
		return err
	}
	for _, o := range found {
		if err := c.Create(o.Object); err != nil {
			return err
		}
	}
	v := fake.Find[*v1alpha1.ClusterServiceVersion](c, key.Namespace, key.Name)
	planned, err := olmcore.PermissionObjects(v)
	if err != nil {
		return err
	}
	for _, o := range planned {
		o.SetNamespace(v.Namespace)
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(v)})
	}
	plan := csvtest.Plan(v)
	plan.UID, plan.ResourceVersion = "", ""
	return errors.Join(c.Create(planned...), c.Create(plan.DeepCopy()), fake.Edit(c, plan.Namespace, plan.Name, func(p *v1alpha1.InstallPlan) {
		p.Status = plan.Status // a user could not write them
	}))
}

// newCluster returns a cluster with the operator, an OperatorGroup for all namespaces, and some namespaces.
func newCluster(namespaces ...string) (*fake.Cluster, error) {
	c := fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}}
	failed := []error{c.Node("node").Create(nil), c.Create(group)}
	for _, name := range namespaces {
		failed = append(failed, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return c, errors.Join(append(failed, install(c, "testdata/operator.yaml"))...)
}

// target changes the targets of the OperatorGroup. Copied CSVs in other namespaces are deleted with the objects that
// they own.
func target(c *fake.Cluster, targets ...string) error {
	return fake.Edit(c, "ns", "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = targets })
}

// confineTo makes the OperatorGroup name a ServiceAccount, which it creates. An empty name removes the account.
func confineTo(c *fake.Cluster, account string) error {
	var failed error
	if account != "" {
		failed = c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: account}})
	}
	return errors.Join(failed, fake.Edit(c, "ns", "group", func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = account }))
}

func TestConvergenceDespiteLostWrites(t *testing.T) {
	type steps struct {
		namespaces []string
		prepare    func(c *fake.Cluster, converge func() error) error
	}
	for name, world := range map[string]steps{
		"all namespaces": {nil, func(*fake.Cluster, func() error) error { return nil }},
		"two namespaces": {[]string{"a", "b"}, func(c *fake.Cluster, _ func() error) error { return target(c, "a", "b") }},
		"other targets": {[]string{"a"}, func(c *fake.Cluster, converge func() error) error {
			return errors.Join(converge(), target(c, "a"))
		}},
		"an account that is removed": {[]string{"a", "b"}, func(c *fake.Cluster, converge func() error) error {
			return errors.Join(confineTo(c, "weak"), target(c, "a"), converge(), confineTo(c, ""), target(c, "a", "b"))
		}},
		"a deletion": {nil, func(c *fake.Cluster, converge func() error) error {
			return errors.Join(converge(), c.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1"))))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := invariant.World{
				Rounds: rounds,
				New: func() (*fake.Cluster, error) {
					c, err := newCluster(world.namespaces...)
					if err != nil {
						return nil, err
					}
					d := &fake.Driver{Cluster: c, Controllers: controllers()}
					return c, world.prepare(c, func() error { return d.Settle(context.Background()) })
				},
				Controllers: func(*fake.Cluster) []controller.Controller { return controllers() },
				Ignore: []invariant.Ignore{{ // the number of phase changes differs between runs
					Kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.ClusterServiceVersionKind}, Path: []string{"status", "conditions"},
				}},
			}
			require.NoError(t, invariant.Settles(w))
			require.NoError(t, invariant.Repeatable(w))
			require.NoError(t, invariant.Resumable(w))
			w.SettleTime = time.Minute
			require.NoError(t, invariant.TwoManagers(w))
		})
	}
}

// TestGrantsAreDeletedWithTheOperator checks that lifted objects are deleted by their owner labels, copied objects with
// the copied CSV, and the ClusterRoles for an API with its CustomResourceDefinition.
func TestGrantsAreDeletedWithTheOperator(t *testing.T) {
	count := func(c *fake.Cluster, mentions string) (n int) {
		for _, o := range c.Objects() {
			if o.GetLabels()["olm.copiedFrom"] != "" && olmcore.RefOf(o).Kind == mentions {
				n++
			}
		}
		return n
	}
	c, err := newCluster("a", "b")
	require.NoError(t, err)
	d := &fake.Driver{Cluster: c, Controllers: controllers()}
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, []int{1, 1}, []int{count(c, "ClusterRole"), count(c, "ClusterRoleBinding")})
	require.NoError(t, target(c, "a", "b"))
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, []int{1, 0}, []int{count(c, "ClusterRole"), count(c, "ClusterRoleBinding")})
	require.Equal(t, []int{2, 2}, []int{count(c, "Role"), count(c, "RoleBinding")})
	for _, o := range c.Objects() {
		if role, is := o.(*rbacv1.ClusterRole); is && role.Labels["olm.copiedFrom"] != "" {
			require.Empty(t, role.Rules, "it only records the permission")
		}
	}
	require.NoError(t, target(c, "a"))
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, []int{1, 1}, []int{count(c, "Role"), count(c, "RoleBinding")})

	require.NoError(t, target(c))
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, 1, count(c, "ClusterRole"))
	require.NoError(t, c.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1")), metav1.DeleteOptions{}))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1"))
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		require.Zero(t, count(c, kind), kind)
	}
	require.NotNil(t, fake.Find[*rbacv1.ClusterRole](c, "", "cools.example.com-v1-edit"), "it is not deleted with the CSV")
	require.NoError(
		t,
		c.Delete(
			olmcore.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "cools.example.com"},
			metav1.DeleteOptions{},
		),
	)
	require.NoError(t, c.Settle())
	require.Nil(t, fake.Find[*rbacv1.ClusterRole](c, "", "cools.example.com-v1-edit"))
}

// TestAnAccountWithoutPermissionsGrantsNothing checks that rejected writes are reported and retried with backoff.
func TestAnAccountWithoutPermissionsGrantsNothing(t *testing.T) {
	c, err := newCluster()
	require.NoError(t, err)
	c.Authorize = func(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if as != nil && target.Namespace == "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: target.Kind}, target.Name, errors.New("not you"))
		}
		return nil
	}
	require.NoError(t, confineTo(c, "weak"))
	d := &fake.Driver{Cluster: c, Controllers: controllers()}
	require.NoError(t, d.RunFor(t.Context(), 30*time.Minute))
	tries, refused := 0, false
	for _, e := range d.Events {
		if e.Controller != "permissions" {
			continue
		}
		if e.Diagnostic != nil && e.Diagnostic.Reason == permissions.ReasonRefused {
			refused = true
		}
		if e.Action != nil {
			if _, target, _ := e.Action.Describe(); e.Action.Identity() != nil && target.Kind == "ClusterRole" {
				tries++
			}
		}
	}
	require.True(t, refused)
	require.Greater(t, tries, 2)
	require.Less(t, tries, 12)
	for _, o := range c.Objects() {
		require.NotEqual(t, "ClusterRoleBinding", olmcore.RefOf(o).Kind)
	}
	require.NotNil(t, fake.Find[*rbacv1.ClusterRole](c, "", "cools.example.com-v1-edit"))
}

// TestRejectedPermissionsAreNotGrantedWithoutTheAccount checks that a permission that the API server rejected for the
// ServiceAccount of the OperatorGroup is not granted once the account is removed, although the InstallPlan was deleted
// and a record exists.
func TestRejectedPermissionsAreNotGrantedWithoutTheAccount(t *testing.T) {
	c, err := newCluster("a")
	require.NoError(t, err)
	isAllowed := false
	c.Authorize = func(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if as != nil && target.Namespace == "a" && !isAllowed {
			return apierrors.NewForbidden(schema.GroupResource{Resource: target.Kind}, target.Name, errors.New("not you"))
		}
		return nil
	}
	plan := func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Namespace: "ns", Name: "weak"}
	}
	require.NoError(t, errors.Join(confineTo(c, "weak"), target(c, "a"), fake.Edit(c, "ns", "install-1", plan)))
	d := &fake.Driver{Cluster: c, Controllers: controllers()}
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.NoError(t, c.Delete(olmcore.RefOf(fake.Find[*v1alpha1.InstallPlan](c, "ns", "install-1")).Unversioned()))
	copied := func() (n int) {
		for _, o := range c.Objects() {
			if o.GetNamespace() == "a" && o.GetLabels()[olmcore.LabelCopiedFrom] == "ns" && olmcore.KeyOf(o).Group == rbacv1.GroupName {
				n++
			}
		}
		return n
	}
	require.NoError(t, confineTo(c, ""))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.Zero(t, copied())
	require.NoError(t, target(c))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	for _, o := range c.Objects() {
		require.NotEqual(t, "ClusterRoleBinding", olmcore.RefOf(o).Kind)
	}
	isAllowed = true
	require.NoError(t, errors.Join(target(c, "a"), fake.Edit(c, "ns", "group", func(g *operatorsv1.OperatorGroup) {
		g.Spec.ServiceAccountName = "weak"
	})))
	require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
	require.Equal(t, 2, copied(), "the record proves it for the account")
}

func TestScenarios(t *testing.T) {
	commands := map[string]scenario.Command{
		// install FILE: what the InstallPlan of an operator does.
		"install": func(w *scenario.World, args []string, _ []byte) (string, error) {
			return "", install(w.Cluster, w.Dir+"/"+args[0])
		},
	}
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{Controllers: controllers(), Commands: commands}))
}

// many returns a world whose OperatorGroup targets n namespaces, each with a copied CSV.
func many(n int) *world {
	targets := make([]string, 0, n)
	for i := range n {
		targets = append(targets, fmt.Sprintf("team-%04d", i))
	}
	w := newWorld(targets...)
	for _, name := range targets {
		w.more = append(w.more, copyIn(name))
	}
	return w
}

// BenchmarkReconcile reconciles an operator at rest, with and without its Checkpoint, and for the first time.
func BenchmarkReconcile(b *testing.B) {
	run := func(name string, in permissions.Input, actions int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out, err := permissions.Reconcile(in); err != nil || len(out.Actions) != actions {
					b.Fatal(len(out.Actions), err)
				}
			}
		})
	}
	for _, n := range []int{0, 40, 400} {
		w := many(n)
		if n == 0 {
			w.group.Status.Namespaces = []string{""}
		}
		run(fmt.Sprintf("first/namespaces=%d", n), w.input(b), 5+n)
		for range 3 {
			w.apply(reconciled(b, w.input(b)).Actions)
		}
		in := w.input(b)
		run(fmt.Sprintf("plain/namespaces=%d", n), in, 0)
		in.Checkpoint = reconciled(b, in).Checkpoint
		run(fmt.Sprintf("checkpoint/namespaces=%d", n), in, 0)
	}
}

// BenchmarkGather reads the Input of an operator at rest.
func BenchmarkGather(b *testing.B) {
	for _, n := range []int{0, 400} {
		w := many(n)
		for range 2 {
			w.apply(reconciled(b, w.input(b)).Actions)
		}
		snapshot, err := olmcore.NewSnapshot(w.objects(), olmcore.Everything)
		require.NoError(b, err)
		b.Run(fmt.Sprintf("namespaces=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := permissions.Gather(context.Background(), snapshot, key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTheCostGrowsLinearlyWithNamespacesAndObjects also adds objects that the operator does not need.
func TestTheCostGrowsLinearlyWithNamespacesAndObjects(t *testing.T) {
	cost := func(n int) float64 {
		w := many(n)
		in := w.input(t)
		for i := range 4 * n {
			r := role(fmt.Sprintf("other-%d", i))
			in.Roles.Items = append(in.Roles.Items, r)
			in.ClusterRoles.Items = append(in.ClusterRoles.Items, clusterRole(r.Name, nil))
		}
		require.Len(t, reconciled(t, in).Actions, 5+n)
		return testing.AllocsPerRun(1, func() { reconciled(t, in) })
	}
	require.LessOrEqual(t, cost(1000), 5*cost(250))
	require.True(t, slices.IsSorted([]float64{cost(10), cost(100)}))
}
