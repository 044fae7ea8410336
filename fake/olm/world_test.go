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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/internal/operators"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

const namespace = "ops"

// The bundles of the worlds.
var bundle, csvName = operators.Bundle, operators.Name

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a cluster with two packages in a catalog, and all controllers.
type world struct {
	ctx     context.Context
	cluster *fake.Cluster
	olm     *olm.OLM
	driver  *fake.Driver
	safety  *invariant.Safety
	// heads is the newest published version of each package.
	heads map[string]int
	// priorities: each version has a PriorityClass, of a kind that is not watched.
	priorities bool
	// bundles replace those of the package operators, by version.
	bundles map[string][]olmcore.Object
}

func newWorld(t require.TestingT) *world {
	w := &world{ctx: context.Background(), cluster: fake.NewCluster(noon), heads: map[string]int{"alpha": 1, "beta": 1}}
	w.cluster.AutoCreateNamespaces = true
	w.cluster.Sharing().Watch()
	w.olm = &olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2", Resolve: w.resolve, Sweeps: true}}
	w.driver = &fake.Driver{Cluster: w.cluster, Controllers: w.olm.Controllers()}
	w.safety = &invariant.Safety{Cluster: w.cluster}
	require.NoError(t, w.cluster.Node("a").Create(nil))
	require.NoError(t, w.cluster.Node("b").Create(nil))
	require.NoError(t, w.cluster.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}},
		},
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
		},
	))
	return w
}

func (w *world) subscribe(name string, approval v1alpha1.Approval) error {
	return w.cluster.Create(&v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: "olm", InstallPlanApproval: approval},
	})
}

// resolve installs the head, and upgrades version by version.
func (w *world) resolve(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	answer := olmcore.Resolution{Observed: request.Subscriptions}
	for _, f := range request.Subscriptions {
		decision := olmcore.SubscriptionDecision{Name: f.Name, CurrentCSV: f.CurrentCSV}
		next := w.heads[f.Name]
		for v := 1; v < w.heads[f.Name]; v++ {
			switch csvName(f.Name, v) {
			case f.InstalledCSV:
				next = v + 1
			case f.CurrentCSV: // on its way: it arrives before the next one leaves
				if f.InstalledCSV == "" {
					next = v
				}
			}
		}
		if target := csvName(f.Name, next); target != f.InstalledCSV {
			decision.CurrentCSV, decision.Changed = target, target != f.CurrentCSV
			answer.Operators = append(answer.Operators, olmcore.Operator{
				Name: target, Package: f.Name, Channel: "stable", Version: fmt.Sprintf("%d.0.0", next), Replaces: f.InstalledCSV,
				Catalog: types.NamespacedName{Namespace: "olm", Name: "community"}, For: []string{f.Name},
				Bundle: olmcore.Bundle{Objects: w.bundle(f.Name, next)},
			})
		}
		answer.Decisions = append(answer.Decisions, decision)
	}
	return answer, nil
}

func (w *world) bundle(pkg string, version int) []olmcore.Object {
	if objects := w.bundles[csvName(pkg, version)]; objects != nil {
		return objects
	}
	objects := bundle(pkg, version)
	if w.priorities {
		class := &unstructured.Unstructured{Object: map[string]any{"value": int64(7)}}
		class.SetGroupVersionKind(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"})
		class.SetName(csvName(pkg, version))
		objects = append(slices.Clone(objects), class)
	}
	return objects
}

func (w *world) plans() []*v1alpha1.InstallPlan {
	plans, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), w.cluster, namespace, nil)
	if err != nil {
		return nil
	}
	return plans
}

func (w *world) csvs() []*v1alpha1.ClusterServiceVersion {
	csvs, err := olmcore.List[*v1alpha1.ClusterServiceVersion](context.Background(), w.cluster, namespace, nil)
	if err != nil {
		return nil
	}
	return csvs
}

func (w *world) approveAll() error {
	for _, p := range w.plans() {
		if !p.Spec.Approved && p.DeletionTimestamp == nil {
			if err := fake.Edit(w.cluster, namespace, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) run(t require.TestingT, d time.Duration) {
	require.NoError(t, w.driver.RunFor(context.Background(), d))
	require.NoError(t, w.safety.Check())
}

func TestTwoSubscriptionsShareTheirPlansWhateverTheOrder(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	for range 3 {
		require.NoError(t, w.approveAll())
		w.run(t, time.Minute)
	}
	w.requireInstalled(t, "alpha", "beta")
	for _, p := range w.plans() {
		for _, name := range []string{"alpha", "beta"} {
			s := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, name)
			if ref := s.Status.InstallPlanRef; ref != nil && ref.UID == p.UID {
				require.True(t, olmcore.OwnedBy(p, s.UID), "%s refers to %s, which it does not own", name, p.Name)
				require.Contains(t, p.Labels, olmcore.ComponentLabelPrefix+name+"."+namespace)
			}
		}
	}
}

func (w *world) requireInstalled(t require.TestingT, names ...string) {
	for _, name := range names {
		s := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, name)
		require.NotNil(t, s, name)
		head := csvName(name, w.heads[name])
		require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, s.Status.State, "%s: %+v", name, s.Status)
		require.Equal(t, head, s.Status.InstalledCSV)
		c := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, head)
		require.NotNil(t, c, head)
		require.Equal(t, v1alpha1.CSVPhaseSucceeded, c.Status.Phase, c.Status.Message)
	}
}

// A version is deleted while its plan still installs it: the plan must not make anew what the clean-up deletes.
func TestAPlanDoesNotFightTheCleanUp(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	fought := false
	for range 50 {
		require.NoError(t, w.cluster.Settle())
		_, err := w.driver.Round(t.Context())
		require.NoError(t, err)
		csv := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("alpha", 1))
		if plans := w.plans(); csv != nil && len(csv.Finalizers) > 0 && plans[0].Status.Phase == v1alpha1.InstallPlanPhaseInstalling {
			require.NoError(t, w.cluster.Delete(olmcore.RefOf(csv).Unversioned()))
			fought = true
			break
		}
	}
	require.True(t, fought, "the version was never seen with its finalizer while its plan was Installing")
	w.run(t, 10*time.Minute)
}

var faultModes = []fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}

// TestAStorm lets users and the world do anything in any order, then stops, and requires that nothing forbidden
// happened on the way and that everything that is wanted is there in the end.
func TestAStorm(t *testing.T) {
	kinds := []string{"InstallPlan", "Subscription", "ClusterServiceVersion", "Pod", "Deployment", "ClusterRole", "CatalogSource", "CustomResourceDefinition"}
	verbs := []olmcore.Verb{olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbUpdateStatus, olmcore.VerbDelete}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		name := func(t *rapid.T) string { return rapid.SampledFrom([]string{"alpha", "beta"}).Draw(t, "package") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.NoError(t, w.safety.Check())
				require.NoError(t, w.cluster.Sharing().Verify())
			},
			"subscribe": func(t *rapid.T) {
				_ = w.subscribe(name(t), rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
			},
			"unsubscribe": func(t *rapid.T) {
				_ = w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: name(t)})
			},
			"approve": func(t *rapid.T) { require.NoError(t, w.approveAll()) },
			"publish": func(t *rapid.T) { w.heads[name(t)]++; w.olm.CatalogsChanged() },
			"delete plan": func(t *rapid.T) {
				if plans := w.plans(); len(plans) > 0 {
					_ = w.cluster.Delete(olmcore.RefOf(rapid.SampledFrom(plans).Draw(t, "plan")).Unversioned())
				}
			},
			"delete csv": func(t *rapid.T) {
				if csvs := w.csvs(); len(csvs) > 0 {
					_ = w.cluster.Delete(olmcore.RefOf(rapid.SampledFrom(csvs).Draw(t, "csv")).Unversioned())
				}
			},
			"node fails": func(t *rapid.T) { _ = w.cluster.Node(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")).Fail() },
			"node heals": func(t *rapid.T) { _ = w.cluster.Node(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")).Heal() },
			"fault": func(t *rapid.T) {
				w.cluster.Faults().Inject(fake.Fault{
					Verb: rapid.SampledFrom(verbs).Draw(t, "verb"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
					Nth: rapid.IntRange(1, 2).Draw(t, "nth"), Mode: rapid.SampledFrom(faultModes).Draw(t, "mode"),
				})
			},
			"restart": func(t *rapid.T) { w.olm.Forget() },
			"round": func(t *rapid.T) {
				_, err := w.driver.Round(t.Context())
				require.NoError(t, err)
			},
			"settle": func(t *rapid.T) { require.NoError(t, w.driver.Settle(t.Context())) },
			"run": func(t *rapid.T) {
				require.NoError(t, w.driver.RunFor(t.Context(), rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}).Draw(t, "time")))
			},
		})
		w.calm(t)
	})
}

// TestAStormInstallsWhatIsWanted leaves out deletions, so that in the end every
// Subscription must have the newest version running.
func TestAStormInstallsWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		wanted := map[string]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { require.NoError(t, w.safety.Check()) },
			"subscribe": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"alpha", "beta"}).Draw(t, "package")
				_ = w.subscribe(name, rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
				wanted[name] = true
			},
			"approve": func(t *rapid.T) { require.NoError(t, w.approveAll()) },
			"publish": func(t *rapid.T) {
				w.heads[rapid.SampledFrom([]string{"alpha", "beta"}).Draw(t, "package")]++
				w.olm.CatalogsChanged()
			},
			"fault": func(t *rapid.T) {
				w.cluster.Faults().Inject(fake.Fault{
					Verb: rapid.SampledFrom([]olmcore.Verb{olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbUpdateStatus}).Draw(t, "verb"),
					Kind: rapid.SampledFrom([]string{"InstallPlan", "Subscription", "ClusterServiceVersion"}).Draw(t, "kind"),
					Nth:  rapid.IntRange(1, 2).Draw(t, "nth"), Mode: rapid.SampledFrom(faultModes).Draw(t, "mode"),
				})
			},
			"restart": func(t *rapid.T) { w.olm.Forget() },
			"round": func(t *rapid.T) {
				_, err := w.driver.Round(t.Context())
				require.NoError(t, err)
			},
			"run": func(t *rapid.T) {
				require.NoError(t, w.driver.RunFor(t.Context(), rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "time")))
			},
		})
		w.calm(t)
		for range w.heads["alpha"] + w.heads["beta"] {
			w.olm.CatalogsChanged() // the resolver upgrades one version at a time
			require.NoError(t, fake.Edit(w.cluster, "olm", "community", func(c *v1alpha1.CatalogSource) {
				c.Spec.Description += "." // a watch on the catalog
			}))
			w.run(t, time.Minute)
			require.NoError(t, w.approveAll())
			w.run(t, time.Minute)
		}
		for name := range wanted {
			w.requireInstalled(t, name)
		}
	})
}

// calm stops all faults and requires what every world must come to.
func (w *world) calm(t *rapid.T) {
	w.cluster.Faults().Clear()
	_ = w.cluster.Node("a").Heal()
	_ = w.cluster.Node("b").Heal()
	for range 8 {
		require.NoError(t, w.approveAll())
		w.run(t, 15*time.Minute)
	}
	cs := fake.Find[*v1alpha1.CatalogSource](w.cluster, "olm", "community")
	available := meta.FindStatusCondition(cs.Status.Conditions, "Available")
	require.NotNil(t, available)
	require.Equal(t, metav1.ConditionTrue, available.Status, available.Message)
	for _, p := range w.plans() {
		for _, name := range []string{"alpha", "beta"} {
			s := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, name)
			if s != nil && s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == p.UID {
				require.True(t, olmcore.OwnedBy(p, s.UID), "%s refers to %s, which it does not own", name, p.Name)
			}
		}
	}
	before := len(w.driver.Events)
	require.NoError(t, w.driver.RunFor(t.Context(), 24*time.Hour))
	writes := slices.DeleteFunc(slices.Clone(w.driver.Events[before:]), func(e controller.Event) bool { return e.Action == nil })
	require.Empty(t, controller.Format(writes), "a world at rest stays at rest")
}
