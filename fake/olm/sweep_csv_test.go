// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// sweptWorld has alpha installed, and a sweep that acts or only reports.
func sweptWorld(t require.TestingT, acts bool) *world {
	w := newWorld(t)
	w.olm.CSV.Cleanup.SweepDelete, w.priorities = acts, true
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 10*time.Minute)
	w.requireInstalled(t, "alpha")
	return w
}

// vanish removes a version as a user does who takes its finalizer off.
func (w *world) vanish(name string) error {
	if err := fake.Edit(w.cluster, namespace, name, func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = nil }); err != nil {
		return err
	}
	return w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: namespace, Name: name})
}

func (w *world) deleteGroup() error {
	return w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup", Namespace: namespace, Name: "group"})
}

func (w *world) createGroup() error {
	return w.cluster.Create(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	})
}

// orphans are the objects outside the namespaces whose owner is gone, and the namespaces with the mark of a group that
// is.
func (w *world) orphans() []string {
	exists := func(owner olmcore.Owner) bool {
		if owner.Kind == operatorsv1.OperatorGroupKind {
			return fake.Find[*operatorsv1.OperatorGroup](w.cluster, owner.Namespace, owner.Name) != nil
		}
		return fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, owner.Namespace, owner.Name) != nil
	}
	var found []string
	group := fake.Find[*operatorsv1.OperatorGroup](w.cluster, namespace, "group")
	for _, o := range w.cluster.Objects() {
		owner, owned := olmcore.OwnerOf(o.GetLabels())
		if owned && o.GetNamespace() == "" && !exists(owner) {
			found = append(found, olmcore.KeyOf(o).String())
		}
		if _, isNamespace := o.(*corev1.Namespace); !isNamespace {
			continue
		}
		for key := range o.GetLabels() {
			if uid, marked := strings.CutPrefix(key, "olm.operatorgroup.uid/"); marked && (group == nil || uid != string(group.UID)) {
				found = append(found, "label of "+o.GetName())
			}
		}
	}
	return found
}

// TestWhatVanishedIsSweptUp: a version without its finalizer and an OperatorGroup go; what they leave is reported and,
// when the sweep may, removed once it is ten minutes old.
func TestWhatVanishedIsSweptUp(t *testing.T) {
	for name, acts := range map[string]bool{"reports": false, "acts": true} {
		t.Run(name, func(t *testing.T) {
			w := sweptWorld(t, acts)
			require.NoError(t, w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: "alpha"}))
			require.NoError(t, w.vanish(csvName("alpha", 1)))
			require.NoError(t, w.deleteGroup())
			w.run(t, 20*time.Minute)
			said := 0
			for _, e := range w.driver.Events {
				if e.Diagnostic != nil && e.Controller == controllers.CSVSweep && e.Diagnostic.Reason == sweep.ReasonOrphaned {
					said++
				}
			}
			require.Equal(t, 7, said, "three of the version, three roles of the group, one namespace")
			if acts {
				require.Empty(t, w.orphans())
			} else {
				require.Len(t, w.orphans(), 7)
			}
			require.Empty(t, w.csvs())
		})
	}
}

// TestAStormOfSweeps lets versions and groups vanish at any moment while plans install and writes fail. In the end
// nothing is without its owner, and what is wanted runs: the sweep takes nothing that anybody needs.
func TestAStormOfSweeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := sweptWorld(t, true)
		wanted := map[string]bool{"alpha": true}
		pkg := func(t *rapid.T) string { return rapid.SampledFrom([]string{"alpha", "beta"}).Draw(t, "package") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.NoError(t, w.safety.Check())
				require.NoError(t, w.cluster.Sharing().Verify())
			},
			"subscribe": func(t *rapid.T) {
				name := pkg(t)
				_ = w.subscribe(name, v1alpha1.ApprovalAutomatic)
				wanted[name] = true
			},
			"publish": func(t *rapid.T) { w.heads[pkg(t)]++; w.olm.CatalogsChanged() },
			"unsubscribe and vanish": func(t *rapid.T) {
				name := pkg(t)
				_ = w.cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: name})
				for v := 1; v <= w.heads[name]; v++ {
					_ = w.vanish(csvName(name, v))
				}
				delete(wanted, name)
				// A finalizer that a user takes off in the middle of a clean-up promises
				// nothing any more: what stays is the sweep's.
				w.safety = &invariant.Safety{Cluster: w.cluster}
			},
			"group goes":  func(*rapid.T) { _ = w.deleteGroup() },
			"group comes": func(*rapid.T) { _ = w.createGroup() },
			"fault": func(t *rapid.T) {
				w.cluster.Faults().Inject(fake.Fault{
					Verb: rapid.SampledFrom([]olmcore.Verb{olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbDelete}).Draw(t, "verb"),
					Kind: rapid.SampledFrom([]string{"ClusterRole", "ClusterRoleBinding", "Namespace", "ClusterServiceVersion"}).Draw(t, "kind"),
					Nth:  rapid.IntRange(1, 2).Draw(t, "nth"), Mode: rapid.SampledFrom(faultModes).Draw(t, "mode"),
				})
			},
			"restart": func(*rapid.T) { w.olm.Forget() },
			"round": func(t *rapid.T) {
				_, err := w.driver.Round(t.Context())
				require.NoError(t, err)
			},
			"run": func(t *rapid.T) {
				require.NoError(t, w.driver.RunFor(t.Context(), rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 11 * time.Minute}).Draw(t, "time")))
			},
		})
		_ = w.createGroup()
		w.calm(t)
		require.Empty(t, w.orphans(), "%s", controller.Format(w.driver.Events))
		for range w.heads["alpha"] + w.heads["beta"] {
			w.olm.CatalogsChanged() // the resolver upgrades one version at a time
			require.NoError(t, fake.Edit(w.cluster, "olm", "community", func(c *v1alpha1.CatalogSource) { c.Spec.Description += "." }))
			w.run(t, time.Minute)
		}
		for name := range wanted {
			w.requireInstalled(t, name)
		}
	})
}

// TestASweepWithoutObjects: a cluster that never had a version is swept as well.
func TestASweepWithoutObjects(t *testing.T) {
	cluster := fake.NewCluster(noon)
	o := &olm.OLM{Options: controllers.Options{Sweeps: true}}
	d := &fake.Driver{Cluster: cluster, Controllers: o.Controllers()}
	require.NoError(t, d.Settle(context.Background()))
	require.Empty(t, d.Events)
}
