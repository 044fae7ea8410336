// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// channelOf returns the entries of a channel in which each version replaces the one before.
func channelOf(pkg string, head int) (entries []resolution.ChannelEntry) {
	for v := 1; v <= head; v++ {
		e := resolution.ChannelEntry{Name: csvName(pkg, v)}
		if v > 1 {
			e.Replaces = csvName(pkg, v-1)
		}
		entries = append(entries, e)
	}
	return entries
}

// publish makes the catalog offer the versions of a package up to a head. Each requires the other packages.
func (w *world) publish(t require.TestingT, content map[string]resolution.Package, pkg string, head int, requires ...string) {
	w.heads[pkg] = head
	p := packageOf(pkg, channelOf(pkg, head)...)
	for i := range p.Bundles {
		for _, other := range requires {
			p.Bundles[i].Bundle.Properties = append(p.Bundles[i].Bundle.Properties, olmcore.Property{
				Type: resolution.PropertyPackageRequired, Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"versionRange":">=1.0.0"}`, other)),
			})
		}
	}
	content[pkg] = p
	catalogs, err := catalogsOf(content)
	require.NoError(t, err)
	catalogs.Serve(&w.olm.Options)
}

// neighbours returns a world in which mesh is Manual and installed, and its next version is published. links is new and
// Automatic.
func neighbours(t *testing.T, isSeparate bool) (*world, map[string]resolution.Package) {
	w, content := newWorld(t), map[string]resolution.Package{}
	w.olm.InstallPlan.SeparatePlans = isSeparate
	w.publish(t, content, "mesh", 1)
	w.publish(t, content, "links", 1)
	require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "mesh")
	w.publish(t, content, "mesh", 2)
	require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	return w, content
}

// alphaRequiresBeta returns a world with separate plans, and its catalog content, in which alpha requires beta. Nothing
// is subscribed yet.
func alphaRequiresBeta(t *testing.T) (*world, map[string]resolution.Package) {
	w, content := newWorld(t), map[string]resolution.Package{}
	w.olm.InstallPlan.SeparatePlans = true
	w.publish(t, content, "beta", 1)
	w.publish(t, content, "alpha", 1, "beta")
	return w, content
}

// restart makes the controllers forget everything and reconcile the namespace.
func (w *world) restart(t require.TestingT) {
	w.olm.Forget()
	w.touch(t)
}

// touch makes the namespace be reconciled.
func (w *world) touch(t require.TestingT) {
	require.NoError(t, fake.Edit(w.cluster, "olm", "community", func(c *v1alpha1.CatalogSource) { c.Spec.Description += "." }))
}

// owners returns the names of the Subscriptions that own a plan.
func owners(p *v1alpha1.InstallPlan) (names []string) {
	for _, r := range p.OwnerReferences {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// planFor returns the plan that a Subscription references.
func (w *world) planFor(t *testing.T, name string) *v1alpha1.InstallPlan {
	ref := w.status(name).InstallPlanRef
	require.NotNil(t, ref, name)
	p := fake.Find[*v1alpha1.InstallPlan](w.cluster, namespace, ref.Name)
	require.NotNil(t, p, name)
	return p
}

// requireWaits requires that a plan waits for its approval, that it installs one version, and that one Subscription
// owns it.
func requireWaits(t *testing.T, p *v1alpha1.InstallPlan, version, owner string) {
	require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, p.Status.Phase)
	require.Equal(t, v1alpha1.ApprovalManual, p.Spec.Approval)
	require.False(t, p.Spec.Approved)
	require.Equal(t, []string{version}, p.Spec.ClusterServiceVersionNames)
	require.Equal(t, []string{owner}, owners(p))
}

// TestSubscriptionWaitsForAManualNeighbour checks that one plan serves both Subscriptions without the option, and that
// it is Manual.
func TestSubscriptionWaitsForAManualNeighbour(t *testing.T) {
	w, _ := neighbours(t, false)
	shared := w.planFor(t, "links")
	require.Equal(t, shared.UID, w.planFor(t, "mesh").UID)
	require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, shared.Status.Phase)
	require.Equal(t, []string{"links.v1.0.0", "mesh.v2.0.0"}, shared.Spec.ClusterServiceVersionNames)
	require.Equal(t, []string{"links", "mesh"}, owners(shared))
	require.EqualValues(t, v1alpha1.SubscriptionStateUpgradePending, w.status("links").State)
}

// TestSeparatePlansDoNotWaitForAManualNeighbour checks that links is installed at once with the option, and that mesh
// waits with a plan of its own.
func TestSeparatePlansDoNotWaitForAManualNeighbour(t *testing.T) {
	w, content := neighbours(t, true)
	w.requireInstalled(t, "links")
	require.Equal(t, []string{"links"}, owners(w.planFor(t, "links")))
	waiting := w.planFor(t, "mesh")
	requireWaits(t, waiting, "mesh.v2.0.0", "mesh")
	require.Equal(t, csvName("mesh", 1), w.status("mesh").InstalledCSV)

	w.publish(t, content, "links", 2) // the next upgrade does not wait either
	w.restart(t)
	w.run(t, 10*time.Minute)
	w.requireInstalled(t, "links")
	require.Equal(t, waiting.UID, w.planFor(t, "mesh").UID, "mesh keeps its plan")

	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "links", "mesh")
}

// TestSeparatePlansSupersedeASharedPlan checks that links is installed and mesh waits with a plan of its own if the
// option is switched on while both share a plan.
func TestSeparatePlansSupersedeASharedPlan(t *testing.T) {
	w, _ := neighbours(t, false)
	shared := w.planFor(t, "links")
	w.olm.InstallPlan.SeparatePlans = true
	w.restart(t)
	w.run(t, time.Minute)
	w.requireInstalled(t, "links")
	require.Equal(t, []string{"links"}, owners(w.planFor(t, "links")))
	requireWaits(t, w.planFor(t, "mesh"), "mesh.v2.0.0", "mesh")
	left := fake.Find[*v1alpha1.InstallPlan](w.cluster, namespace, shared.Name)
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, left.Status.Phase)
	require.EqualValues(t, "Superseded", left.Status.GetCondition(v1alpha1.InstallPlanInstalled).Reason)

	w.restart(t)
	before := len(w.driver.Events)
	w.run(t, 12*time.Hour)
	for _, e := range w.driver.Events[before:] {
		require.True(t, e.Action == nil || e.Controller == controllers.Catalog, "%s", e)
	}
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "links", "mesh")
}

// TestSeparatePlansLeaveAPinnedNeighbourBehind checks that links gets a plan that needs no approval if the shared plan
// is Manual only because of mesh, which has nothing to install.
func TestSeparatePlansLeaveAPinnedNeighbourBehind(t *testing.T) {
	w, content := newWorld(t), map[string]resolution.Package{}
	w.publish(t, content, "mesh", 1)
	w.publish(t, content, "links", 1)
	require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalManual))
	w.run(t, time.Minute)
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	require.NoError(t, fake.Edit(w.cluster, namespace, "mesh", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{resolution.AnnotationVersionRange: "<2.0.0"}
	}))
	w.publish(t, content, "mesh", 2)
	require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, w.planFor(t, "links").Status.Phase)

	w.olm.InstallPlan.SeparatePlans = true
	w.restart(t)
	w.run(t, time.Minute)
	w.requireInstalled(t, "links")
	require.Equal(t, csvName("mesh", 1), w.status("mesh").InstalledCSV)
	require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, w.status("mesh").State)
}

// TestSharedPlanKeepsItsSubscriptionsWithoutCatalogContent checks that the shared plan, its approval and the references
// to it stay until there is a resolution.
func TestSharedPlanKeepsItsSubscriptionsWithoutCatalogContent(t *testing.T) {
	for _, approves := range []bool{false, true} {
		t.Run(fmt.Sprintf("approved %v", approves), func(t *testing.T) {
			w, content := neighbours(t, false)
			shared := w.planFor(t, "links")
			w.olm.InstallPlan.SeparatePlans = true
			w.olm.Resolve = func(context.Context, olmcore.Reader, subscription.ResolveRequest) (olmcore.Resolution, error) {
				return olmcore.Resolution{}, controllers.ErrPending
			}
			w.restart(t)
			w.run(t, 24*time.Hour)
			for _, name := range []string{"links", "mesh"} {
				require.Equal(t, shared.UID, w.planFor(t, name).UID)
			}
			require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, w.planFor(t, "links").Status.Phase)
			if approves {
				require.NoError(t, w.approveAll())
				w.run(t, time.Minute)
				require.Equal(t, v1alpha1.InstallPlanPhaseComplete, w.planFor(t, "mesh").Status.Phase)
				require.Equal(t, shared.UID, w.planFor(t, "mesh").UID)
			}
			w.publish(t, content, "links", 1)
			w.touch(t)
			w.run(t, time.Minute)
			w.requireInstalled(t, "links")
			if approves {
				w.requireInstalled(t, "mesh")
			}
		})
	}
}

// TestDependentSubscriptionsShareOnePlan checks that alpha, which requires beta, shares a plan with it. beta is Manual,
// so their plan waits. The plan of mesh does not.
func TestDependentSubscriptionsShareOnePlan(t *testing.T) {
	w, content := alphaRequiresBeta(t)
	w.publish(t, content, "mesh", 1)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalManual))
	require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	w.requireInstalled(t, "mesh")
	shared := w.planFor(t, "alpha")
	require.Equal(t, shared.UID, w.planFor(t, "beta").UID)
	require.Equal(t, []string{"alpha", "beta"}, owners(shared))
	require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, shared.Status.Phase)
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "alpha", "beta", "mesh")
}

// TestSubscriptionsThatNeedOneBundleShareOnePlan checks that alpha and mesh share a plan because both require beta,
// which no Subscription follows yet.
func TestSubscriptionsThatNeedOneBundleShareOnePlan(t *testing.T) {
	w, content := alphaRequiresBeta(t)
	w.publish(t, content, "mesh", 1, "beta")
	w.publish(t, content, "links", 1)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalManual))
	require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	w.requireInstalled(t, "links")
	shared := w.planFor(t, "alpha")
	require.Equal(t, shared.UID, w.planFor(t, "mesh").UID)
	require.Equal(t, []string{"alpha", "mesh"}, owners(shared))
	require.Equal(t, []string{"alpha.v1.0.0", "beta.v1.0.0", "mesh.v1.0.0"}, shared.Spec.ClusterServiceVersionNames)
	require.NoError(t, w.approveAll())
	w.run(t, time.Minute)
	w.requireInstalled(t, "alpha", "mesh", "links")
	require.Equal(t, []string{"alpha", "beta-stable-community-olm", "mesh"}, owners(w.planFor(t, "alpha")))

	// The next version of beta concerns both. mesh is Manual.
	w.publish(t, content, "beta", 2)
	w.touch(t)
	w.run(t, time.Minute)
	next := w.planFor(t, "beta-stable-community-olm")
	require.Equal(t, v1alpha1.InstallPlanPhaseRequiresApproval, next.Status.Phase)
	require.Equal(t, []string{"alpha", "beta-stable-community-olm", "mesh"}, owners(next))
}

// TestBrokenSetHoldsUpNoOther checks that links is installed, and that only alpha has the condition, if the plan of
// alpha cannot be made.
func TestBrokenSetHoldsUpNoOther(t *testing.T) {
	image := olmcore.Bundle{Image: "registry.example.com/alpha:1"}
	for name, tt := range map[string]struct {
		bundle olmcore.Bundle
		reason string
		breaks func(*world)
	}{
		"an image that is not unpacked": {image, "BundleUnpacking", func(w *world) {
			w.olm.InstallPlan.OPMImage, w.olm.InstallPlan.UtilImage = "opm:1", "util:1"
		}},
		"an image and nothing to unpack it with": {image, "BundleNotUnpacked", func(*world) {}},
		"a bundle that is not valid": {
			olmcore.Bundle{Objects: bundle("alpha", 1), Invalid: "it is odd"}, "ErrorPreventedUnpacking", func(*world) {},
		},
		"a plan that is too large": {olmcore.Bundle{Objects: bundle("alpha", 1)}, "PlanTooLarge", func(w *world) {
			large := bundle("alpha", 1)[0].DeepCopyObject().(*v1alpha1.ClusterServiceVersion)
			w.olm.InstallPlan.MaxStatusBytes = 64 << 10
			large.Spec.Description = strings.Repeat("x", 64<<10)
			w.bundles = map[string][]olmcore.Object{csvName("alpha", 1): {large}}
		}},
		"a plan that the API server rejects": {olmcore.Bundle{Objects: bundle("alpha", 1)}, "EnsureInstallPlanFailed", func(w *world) {
			allowed := "" // the first plan that is new once links exists: the one of alpha has been tried before
			tried := map[string]bool{}
			w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
				if verb != olmcore.VerbCreate || target.Kind != v1alpha1.InstallPlanKind {
					return nil
				}
				isNew := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, "links") != nil && !tried[target.Name]
				if tried[target.Name] = true; isNew && allowed == "" {
					allowed = target.Name
				}
				if target.Name == allowed {
					return nil
				}
				return errors.New("no")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.olm.InstallPlan.SeparatePlans = true
			w.heads = map[string]int{"alpha": 1, "links": 1}
			w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
				answer, err := w.resolve(ctx, r, request)
				for i, o := range answer.Operators {
					if o.Package == "alpha" && w.bundles == nil {
						answer.Operators[i].Bundle = tt.bundle
					}
				}
				return answer, err
			}
			tt.breaks(w)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			w.run(t, time.Minute)
			require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
			w.run(t, 2*time.Minute)
			w.requireInstalled(t, "links")
			reasons := func(name string) (found []string) {
				for _, c := range w.status(name).Conditions {
					if c.Status == corev1.ConditionTrue {
						found = append(found, string(c.Type), c.Reason)
					}
				}
				return found
			}
			require.Contains(t, reasons("alpha"), tt.reason)
			require.Empty(t, reasons("links"))
		})
	}
}

// TestBundleThatCannotBeUnpackedHoldsUpNoOtherSet checks that links is installed while the Job that unpacks the bundle
// of alpha fails again and again.
func TestBundleThatCannotBeUnpackedHoldsUpNoOtherSet(t *testing.T) {
	w := newWorld(t)
	w.olm.InstallPlan = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1", SeparatePlans: true}
	w.heads = map[string]int{"alpha": 1, "links": 1}
	w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
		answer, err := w.resolve(ctx, r, request)
		for i, o := range answer.Operators {
			if o.Package == "alpha" {
				answer.Operators[i].Bundle = olmcore.Bundle{Image: "registry.example.com/alpha:1"}
			}
		}
		return answer, err
	}
	fail := func() {
		jobs, err := olmcore.List[*batchv1.Job](t.Context(), w.cluster, "olm", nil)
		require.NoError(t, err)
		for _, j := range jobs {
			if len(j.Status.Conditions) == 0 {
				require.NoError(t, w.cluster.Job("olm", j.Name).Finish("DeadlineExceeded"))
			}
		}
	}
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
	w.run(t, time.Minute)
	fail()
	w.run(t, time.Minute)
	w.requireInstalled(t, "links")
	alpha, links := w.status("alpha"), w.status("links")
	require.Equal(t, "BundleUnpackFailed", alpha.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed).Reason)
	require.NotEqual(t, corev1.ConditionTrue, links.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed).Status)
	w.heads["links"] = 2
	w.olm.CatalogsChanged()
	w.touch(t)
	for range 5 {
		w.run(t, 5*time.Minute)
		fail()
	}
	w.requireInstalled(t, "links")
	require.Empty(t, w.status("alpha").CurrentCSV)
}
