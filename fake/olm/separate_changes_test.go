// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// requireOwnPlan requires that Subscriptions reference a plan that they own and that installs the version which they
// wait for.
func (w *world) requireOwnPlan(t *testing.T, names ...string) {
	for _, name := range names {
		p := w.planFor(t, name)
		require.Contains(t, owners(p), name)
		require.Contains(t, p.Spec.ClusterServiceVersionNames, w.status(name).CurrentCSV)
	}
}

// TestSeparatePlansSupersedeAPlanOfOLM checks that plans of the sets supersede a shared plan that OLM created. That
// plan has none of the annotations that the library writes.
func TestSeparatePlansSupersedeAPlanOfOLM(t *testing.T) {
	w, _ := neighbours(t, false)
	shared := w.planFor(t, "links")
	require.NoError(t, fake.Edit(w.cluster, namespace, shared.Name, func(p *v1alpha1.InstallPlan) { p.Annotations, p.Finalizers = nil, nil }))
	w.olm.InstallPlan.SeparatePlans = true
	w.restart(t)
	w.run(t, time.Minute)
	w.requireInstalled(t, "links")
	requireWaits(t, w.planFor(t, "mesh"), "mesh.v2.0.0", "mesh")
}

// TestApprovedSharedPlanIsCarriedOut checks that an approval is not lost: a user approves the shared plan before the
// option is switched on, and no step of it is applied yet.
func TestApprovedSharedPlanIsCarriedOut(t *testing.T) {
	w, _ := neighbours(t, false)
	shared := w.planFor(t, "links")
	require.NoError(t, w.approveAll())
	w.olm.InstallPlan.SeparatePlans = true
	w.restart(t)
	w.run(t, time.Minute)
	w.requireInstalled(t, "links", "mesh")
	require.Equal(t, shared.UID, w.planFor(t, "links").UID)
	require.Equal(t, shared.UID, w.planFor(t, "mesh").UID)
}

// TestManualSetWaitsWhileItsNeighbourIsUpgraded checks that the waiting plan of mesh does not change while links is
// upgraded several times.
func TestManualSetWaitsWhileItsNeighbourIsUpgraded(t *testing.T) {
	w, content := neighbours(t, true)
	waiting := w.planFor(t, "mesh")
	for head := 2; head <= 5; head++ {
		w.publish(t, content, "links", head)
		w.restart(t)
		w.run(t, 5*time.Minute)
		w.requireInstalled(t, "links")
		w.requireOwnPlan(t, "links", "mesh")
		now := w.planFor(t, "mesh")
		require.Equal(t, waiting.UID, now.UID)
		require.Equal(t, waiting.Status, now.Status)
		require.Equal(t, []string{"links"}, owners(w.planFor(t, "links")))
	}
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "links", "mesh")
}

// TestSharedPlanStaysUntilItsBundlesAreUnpacked checks that both Subscriptions keep the shared plan until the bundle of
// one set is unpacked.
func TestSharedPlanStaysUntilItsBundlesAreUnpacked(t *testing.T) {
	w, _ := neighbours(t, false)
	shared := w.planFor(t, "links")
	resolve := w.olm.Resolve
	w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		answer, err := resolve(ctx, r, request)
		for i, o := range answer.Operators {
			answer.Operators[i].Bundle = olmcore.Bundle{Image: imageOf(o.Name)}
		}
		return answer, err
	}
	w.olm.InstallPlan.OPMImage, w.olm.InstallPlan.UtilImage, w.olm.InstallPlan.SeparatePlans = "opm:1", "util:1", true
	w.restart(t)
	w.run(t, 5*time.Minute)
	for _, name := range []string{"links", "mesh"} {
		require.Equal(t, shared.UID, w.planFor(t, name).UID, "%s keeps its plan", name)
		require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, w.planFor(t, name).Status.Phase)
	}

	w.finishUnpacking(t, "links", 1)
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "links")
	require.Equal(t, []string{"links"}, owners(w.planFor(t, "links")))
	require.Equal(t, csvName("mesh", 1), w.status("mesh").InstalledCSV)

	w.finishUnpacking(t, "mesh", 2)
	w.run(t, 2*time.Minute)
	requireWaits(t, w.planFor(t, "mesh"), "mesh.v2.0.0", "mesh")
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "links", "mesh")
}

func imageOf(version string) string { return "registry.example.com/" + version }

// finishUnpacking ends the Job that unpacks a version, whose bundle is then in the ConfigMap.
func (w *world) finishUnpacking(t *testing.T, pkg string, version int) {
	image := imageOf(csvName(pkg, version))
	jobs, err := olmcore.List[*batchv1.Job](t.Context(), w.cluster, "olm", nil)
	require.NoError(t, err)
	for _, j := range jobs {
		spec, err := json.Marshal(j.Spec)
		require.NoError(t, err)
		if !strings.Contains(string(spec), image) || len(j.Status.Conditions) > 0 {
			continue
		}
		require.NoError(t, w.cluster.Job("olm", j.Name).Finish(""))
		require.NoError(t, fake.Edit(w.cluster, "olm", j.Labels["operatorframework.io/bundle-unpack-ref"], func(cm *corev1.ConfigMap) {
			cm.Annotations, cm.Data = map[string]string{"olm.sourceImage": image}, map[string]string{}
			for i, o := range bundle(pkg, version) {
				values, err := olmcore.ToMap(o)
				require.NoError(t, err)
				data, err := json.Marshal(values)
				require.NoError(t, err)
				cm.Data[fmt.Sprintf("%d.json", i)] = string(data)
			}
		}))
		return
	}
	t.Fatalf("no Job unpacks %s", image)
}

// TestRefusedPlanOfOneSetHoldsUpNoOther checks that links is installed and upgraded while the API server refuses a step
// of the plan of alpha.
func TestRefusedPlanOfOneSetHoldsUpNoOther(t *testing.T) {
	for name, refuse := range map[string]func(olmcore.Ref) error{"as forbidden": forbidden("no"), "as invalid": invalid} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.olm.InstallPlan.SeparatePlans = true
			w.withSettings(2)
			w.heads = map[string]int{"alpha": 1, "links": 1}
			rejected := true
			w.cluster.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
				if rejected && target.Kind == "ConfigMap" && target.Name == "settings" {
					return refuse(target)
				}
				return nil
			}
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
			w.run(t, 2*time.Minute)
			w.requireInstalled(t, "links")
			for w.heads["links"] < 3 {
				w.heads["links"]++
				w.olm.CatalogsChanged()
				w.touch(t)
				w.run(t, 20*time.Minute)
				w.requireInstalled(t, "links")
				w.requireOwnPlan(t, "alpha", "links")
			}
			rejected = false
			w.run(t, 20*time.Minute)
			w.requireInstalled(t, "alpha", "links")
		})
	}
}

// TestSetsThatMergeGetOnePlan checks that links and mesh get one plan when a version of links requires mesh, whose plan
// waits for approval. The new plan supersedes the waiting one, unless that has started.
func TestSetsThatMergeGetOnePlan(t *testing.T) {
	for _, starts := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("started %v, restarts %v", starts, restarts), func(t *testing.T) {
				w, content := neighbours(t, true)
				waiting := w.planFor(t, "mesh")
				if starts {
					require.NoError(t, w.approveAll())
					w.run(t, time.Second)
					require.NotNil(t, w.planFor(t, "mesh").Status.StartTime)
				}
				w.publish(t, content, "links", 2, "mesh")
				w.touch(t)
				w.runAll(t, restarts)
				if starts {
					w.requireInstalled(t, "mesh")
					require.Equal(t, waiting.UID, w.planFor(t, "mesh").UID)
				} else {
					merged := w.planFor(t, "links")
					require.Equal(t, merged.UID, w.planFor(t, "mesh").UID)
					require.Equal(t, []string{"links", "mesh"}, owners(merged))
					require.Equal(t, []string{"links.v2.0.0", "mesh.v2.0.0"}, merged.Spec.ClusterServiceVersionNames)
					require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, merged.Status.Phase)
				}
				w.requireOwnPlan(t, "links", "mesh")
				require.NoError(t, w.approveAll())
				w.runAll(t, restarts)
				w.requireInstalled(t, "links", "mesh")
			})
		}
	}
}

// TestSetsThatMergeWaitForAStartedPlan checks that a version of links that requires mesh waits while a step of the plan
// of mesh is refused.
func TestSetsThatMergeWaitForAStartedPlan(t *testing.T) {
	w, content := neighbours(t, true)
	rejected := true
	w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if rejected && verb == olmcore.VerbCreate && target.Name == csvName("mesh", 2) {
			return forbidden("no")(target)
		}
		return nil
	}
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	started := w.planFor(t, "mesh")
	require.Equal(t, v1alpha1.InstallPlanPhaseInstalling, started.Status.Phase)
	w.publish(t, content, "links", 2, "mesh")
	w.touch(t)
	w.run(t, 5*time.Minute)
	require.Equal(t, started.UID, w.planFor(t, "mesh").UID)
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("links", 2)))
	rejected = false
	for range 3 {
		w.run(t, 15*time.Minute)
		require.NoError(t, invariant.PlansInOrder(w.cluster.Objects()))
		require.NoError(t, w.approveAll())
	}
	w.run(t, time.Minute)
	w.requireInstalled(t, "links", "mesh")
	w.requireOwnPlan(t, "links", "mesh")
}

// TestSetsThatSplitGetPlansOfTheirOwn checks what becomes of the waiting plan of alpha and beta when the next version
// of alpha no longer requires beta. The plan stays until it is approved or deleted, as any plan that waits. Afterwards
// each has a plan of its own.
func TestSetsThatSplitGetPlansOfTheirOwn(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("deleted %v, restarts %v", deletes, restarts), func(t *testing.T) {
				w, content := alphaRequiresBeta(t)
				require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
				require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalManual))
				w.runAll(t, restarts)
				shared := w.planFor(t, "alpha")
				w.publish(t, content, "alpha", 2)
				w.touch(t)
				w.runAll(t, restarts)
				require.Equal(t, shared.UID, w.planFor(t, "alpha").UID)
				require.Equal(t, shared.UID, w.planFor(t, "beta").UID)
				if deletes {
					require.NoError(t, w.cluster.Delete(olmcore.RefOf(shared).Unversioned()))
					w.runAll(t, restarts)
					w.requireInstalled(t, "alpha")
					requireWaits(t, w.planFor(t, "beta"), "beta.v1.0.0", "beta")
				}
				require.NoError(t, w.approveAll())
				w.publish(t, content, "beta", 2)
				w.touch(t)
				w.runAll(t, restarts)
				w.touch(t)
				w.runAll(t, restarts)
				w.requireInstalled(t, "alpha")
				requireWaits(t, w.planFor(t, "beta"), "beta.v2.0.0", "beta")
				require.NoError(t, w.approveAll())
				w.runAll(t, restarts)
				w.requireInstalled(t, "alpha", "beta")
			})
		}
	}
}

// runAll runs the controllers for some minutes. If restarts is set, they forget everything after each round.
func (w *world) runAll(t *testing.T, restarts bool) {
	for range 25 {
		if !restarts {
			break
		}
		_, err := w.driver.Round(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.safety.Check())
		w.olm.Forget()
	}
	w.run(t, 3*time.Minute)
}

// TestSeparatePlansAreSwitchedWhilePlansRun checks that the option can be switched on while a shared plan runs, and off
// while the plan of mesh waits. The shared plan is finished first. The next plan of the namespace supersedes that of
// mesh.
func TestSeparatePlansAreSwitchedWhilePlansRun(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts %v", restarts), func(t *testing.T) {
			w, content := neighbours(t, false)
			shared, rejected := w.planFor(t, "links"), true
			w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
				if rejected && verb == olmcore.VerbCreate && target.Name == csvName("mesh", 2) {
					return forbidden("no")(target)
				}
				return nil
			}
			require.NoError(t, w.approveAll())
			w.run(t, time.Minute)
			w.olm.InstallPlan.SeparatePlans = true
			w.restart(t)
			w.runAll(t, restarts)
			require.Equal(t, shared.UID, w.planFor(t, "mesh").UID)
			rejected = false
			w.runAll(t, restarts)
			w.requireInstalled(t, "links", "mesh")
			require.Equal(t, v1alpha1.InstallPlanPhaseComplete, w.planFor(t, "mesh").Status.Phase)

			w.publish(t, content, "mesh", 3)
			w.restart(t)
			w.runAll(t, restarts)
			waiting := w.planFor(t, "mesh")
			requireWaits(t, waiting, "mesh.v3.0.0", "mesh")
			w.olm.InstallPlan.SeparatePlans = false
			w.restart(t)
			w.runAll(t, restarts)
			require.Equal(t, waiting.UID, w.planFor(t, "mesh").UID, "there is nothing to install for another Subscription")
			w.publish(t, content, "links", 2)
			w.restart(t)
			w.runAll(t, restarts)
			require.Equal(t, w.planFor(t, "links").UID, w.planFor(t, "mesh").UID)
			require.Equal(t, []string{"links", "mesh"}, owners(w.planFor(t, "links")))
			require.NoError(t, w.approveAll())
			w.runAll(t, restarts)
			w.requireInstalled(t, "links", "mesh")
		})
	}
}

// TestSeparatePlansSurviveARestartAtEachRound checks that links is installed and mesh waits with a plan of its own, in
// whatever round the managers restart after the option was switched on.
func TestSeparatePlansSurviveARestartAtEachRound(t *testing.T) {
	for _, exists := range []bool{false, true} {
		for at := range 12 {
			t.Run(fmt.Sprintf("shared plan %v, round %d", exists, at), func(t *testing.T) {
				w, _ := neighbours(t, !exists)
				if !exists { // the first rounds of a new world count
					w = newWorld(t)
					content := map[string]resolution.Package{}
					w.olm.InstallPlan.SeparatePlans = true
					w.publish(t, content, "mesh", 1)
					w.publish(t, content, "links", 1)
					require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalManual))
					require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
				} else {
					w.olm.InstallPlan.SeparatePlans = true
					w.restart(t)
				}
				for range at {
					_, err := w.driver.Round(t.Context())
					require.NoError(t, err)
				}
				w.restart(t)
				w.run(t, 2*time.Minute)
				w.requireInstalled(t, "links")
				requireWaits(t, w.planFor(t, "mesh"), csvName("mesh", w.heads["mesh"]), "mesh")
				w.requireOwnPlan(t, "links", "mesh")
			})
		}
	}
}

// TestSeparatePlansKeepTheApprovalOfTheirSubscriptions checks that mesh is not upgraded before its plan is approved,
// whatever others write in the namespace.
func TestSeparatePlansKeepTheApprovalOfTheirSubscriptions(t *testing.T) {
	for name, attack := range map[string]func(*testing.T, *world, map[string]resolution.Package){
		"an Automatic Subscription requires mesh": func(t *testing.T, w *world, content map[string]resolution.Package) {
			w.publish(t, content, "alpha", 1, "mesh")
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		},
		"an Automatic Subscription of the same package": func(t *testing.T, w *world, _ map[string]resolution.Package) {
			require.NoError(t, w.cluster.Create(&v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"},
				Spec: &v1alpha1.SubscriptionSpec{Package: "mesh", Channel: "stable", CatalogSource: "community",
					CatalogSourceNamespace: "olm", InstallPlanApproval: v1alpha1.ApprovalAutomatic},
			}))
		},
		"an Automatic Subscription references the plan": func(t *testing.T, w *world, _ map[string]resolution.Package) {
			p := w.planFor(t, "mesh")
			w.editStatus(t, "links", func(s *v1alpha1.SubscriptionStatus) {
				s.InstallPlanRef.Name, s.InstallPlanRef.UID = p.Name, p.UID
			})
		},
		"an Automatic Subscription follows the version": func(t *testing.T, w *world, _ map[string]resolution.Package) {
			w.editStatus(t, "links", func(s *v1alpha1.SubscriptionStatus) {
				s.CurrentCSV, s.InstallPlanRef = csvName("mesh", 2), nil
			})
		},
		"the plan has no annotations": func(t *testing.T, w *world, _ map[string]resolution.Package) {
			name := w.planFor(t, "mesh").Name
			require.NoError(t, fake.Edit(w.cluster, namespace, name, func(p *v1alpha1.InstallPlan) { p.Annotations = nil }))
		},
		"the plan has no owners": func(t *testing.T, w *world, _ map[string]resolution.Package) {
			require.NoError(t, fake.Edit(w.cluster, namespace, w.planFor(t, "mesh").Name, func(p *v1alpha1.InstallPlan) {
				p.Annotations, p.OwnerReferences = nil, nil
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, content := neighbours(t, true)
			attack(t, w, content)
			w.touch(t)
			for range 3 {
				w.run(t, 20*time.Minute)
				w.restart(t)
			}
			require.Equal(t, csvName("mesh", 1), w.status("mesh").InstalledCSV)
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csvName("mesh", 2)))
			p := w.planFor(t, "mesh")
			require.Equal(t, v1alpha1.ApprovalManual, p.Spec.Approval)
			require.False(t, p.Spec.Approved)
			require.Contains(t, owners(p), "mesh")
		})
	}
}

// editStatus changes the status of a Subscription.
func (w *world) editStatus(t *testing.T, name string, change func(*v1alpha1.SubscriptionStatus)) {
	after := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, name).DeepCopy()
	change(&after.Status)
	require.NoError(t, w.cluster.UpdateStatus(after))
}

// TestPreviewShowsThePlanOfTheSet checks that the next approval for links is shown to install links alone. Without the
// option it upgrades mesh, too.
func TestPreviewShowsThePlanOfTheSet(t *testing.T) {
	for _, isSeparate := range []bool{false, true} {
		t.Run(fmt.Sprintf("separate %v", isSeparate), func(t *testing.T) {
			w, content := neighbours(t, isSeparate)
			if isSeparate {
				w.publish(t, content, "links", 2)
			}
			in, err := preview.GatherNamespace(t.Context(), w.cluster, namespace, w.cluster.Now(), w.olm.Options)
			require.NoError(t, err)
			hops, err := preview.Hops(t.Context(), in, "links")
			require.NoError(t, err)
			require.NotEmpty(t, hops)
			var versions []string
			for _, v := range hops[0].Versions {
				versions = append(versions, v.Name)
			}
			if isSeparate {
				require.Equal(t, []string{csvName("links", 2)}, versions)
			} else {
				require.Equal(t, []string{csvName("links", 1), csvName("mesh", 2)}, versions)
			}
		})
	}
}
