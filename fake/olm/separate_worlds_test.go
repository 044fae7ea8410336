// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

var meshPackages = []string{"alpha", "beta", "links", "mesh"}

// meshWorld is a world of four packages that may require each other, whose plans are made for each set of
// Subscriptions.
type meshWorld struct {
	*world
	content  map[string]resolution.Package
	requires map[string][]string
	// started are the plans that were observed while they ran.
	started map[string]bool
}

func newMeshWorld(t *rapid.T) *meshWorld {
	m := &meshWorld{world: newWorld(t), content: map[string]resolution.Package{}, requires: map[string][]string{}, started: map[string]bool{}}
	m.heads = map[string]int{}
	m.olm.InstallPlan.SeparatePlans = rapid.Bool().Draw(t, "separate")
	for i, pkg := range meshPackages {
		for _, other := range meshPackages[:i] {
			if rapid.IntRange(0, 3).Draw(t, "requires") == 0 {
				m.requires[pkg] = append(m.requires[pkg], other)
			}
		}
	}
	for _, pkg := range meshPackages {
		m.publish(t, m.content, pkg, 1, m.requires[pkg]...)
	}
	return m
}

// packageOfVersion returns the package of a version of a meshWorld.
func packageOfVersion(version string) string {
	pkg, _, _ := strings.Cut(version, ".v")
	return pkg
}

func (m *meshWorld) subscriptions(t require.TestingT) []*v1alpha1.Subscription {
	subs, err := olmcore.List[*v1alpha1.Subscription](m.ctx, m.cluster, namespace, nil)
	require.NoError(t, err)
	return subs
}

// check requires what must hold at every moment.
func (m *meshWorld) check(t require.TestingT) {
	require.NoError(t, m.safety.Check())
	byUID := map[string]*v1alpha1.Subscription{}
	for _, s := range m.subscriptions(t) {
		byUID[string(s.UID)] = s
	}
	runs := map[string]string{} // by package
	for _, p := range m.plans() {
		if p.Status.StartTime != nil && !m.started[p.Name] {
			m.started[p.Name] = true
			m.checkStart(t, p, byUID)
		}
		if p.Status.Phase != v1alpha1.InstallPlanPhaseInstalling || p.Status.StartTime == nil {
			continue
		}
		open := map[string]bool{}
		for _, s := range p.Status.Plan {
			if !plans.IsStepDone(s) {
				open[packageOfVersion(s.Resolving)] = true
			}
		}
		for pkg := range open {
			require.Empty(t, runs[pkg], "two plans install package %s", pkg)
			runs[pkg] = p.Name
		}
	}
	for _, p := range m.plans() {
		m.checkOwners(t, p, byUID)
	}
}

// checkStart requires that no plan starts without the approval that one of its Subscriptions wants.
func (m *meshWorld) checkStart(t require.TestingT, p *v1alpha1.InstallPlan, byUID map[string]*v1alpha1.Subscription) {
	for _, r := range p.OwnerReferences {
		if s := byUID[string(r.UID)]; s != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual {
			require.Equal(t, v1alpha1.ApprovalManual, p.Spec.Approval, "%s, which %s owns", p.Name, s.Name)
			require.True(t, p.Spec.Approved)
		}
	}
}

// checkOwners requires that a plan of a set is owned by the Subscriptions of its packages, and of packages that require
// one of these, and by no other. Those that reference it own it.
func (m *meshWorld) checkOwners(t require.TestingT, p *v1alpha1.InstallPlan, byUID map[string]*v1alpha1.Subscription) {
	if _, isSeparate := p.Annotations[olmcore.AnnotationSeparatePlan]; !isSeparate {
		return
	}
	var packages []string
	for _, version := range p.Spec.ClusterServiceVersionNames {
		packages = append(packages, packageOfVersion(version))
	}
	for _, r := range p.OwnerReferences {
		s := byUID[string(r.UID)]
		if s == nil {
			continue
		}
		isOfSet := slices.Contains(packages, s.Spec.Package) || slices.ContainsFunc(m.requires[s.Spec.Package], func(other string) bool {
			return slices.Contains(packages, other)
		})
		require.True(t, isOfSet, "%s, which installs %v, is owned by %s", p.Name, p.Spec.ClusterServiceVersionNames, s.Name)
	}
}

// requireReferencesOwn requires, of a world at rest, that Subscriptions own the plans that they reference.
func (m *meshWorld) requireReferencesOwn(t require.TestingT) {
	for _, s := range m.subscriptions(t) {
		for _, p := range m.plans() {
			if ref := s.Status.InstallPlanRef; ref != nil && ref.UID == p.UID {
				require.True(t, olmcore.OwnedBy(p, s.UID), "%s references %s", s.Name, p.Name)
			}
		}
	}
}

// requireHeads requires that Subscriptions have the newest versions.
func (m *meshWorld) requireHeads(t require.TestingT, subs []*v1alpha1.Subscription) {
	for _, s := range subs {
		head := csvName(s.Spec.Package, m.heads[s.Spec.Package])
		require.Equal(t, head, s.Status.InstalledCSV, "%s: %+v", s.Name, s.Status)
		require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, s.Status.State, s.Name)
	}
}

// needNoApproval returns the Subscriptions that no chain of dependencies connects to a Manual one.
func (m *meshWorld) needNoApproval(t require.TestingT) []*v1alpha1.Subscription {
	subs := m.subscriptions(t)
	waits := map[string]bool{}
	for _, s := range subs {
		waits[s.Spec.Package] = waits[s.Spec.Package] || s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
	}
	for range meshPackages {
		for pkg, others := range m.requires {
			for _, other := range others {
				waits[pkg] = waits[pkg] || waits[other]
				waits[other] = waits[other] || waits[pkg]
			}
		}
	}
	return slices.DeleteFunc(subs, func(s *v1alpha1.Subscription) bool { return waits[s.Spec.Package] })
}

// TestSeparatePlansInAnyWorld lets users subscribe, approve, publish and switch the option, while writes fail and
// managers restart. In the end each Subscription has the newest version.
func TestSeparatePlansInAnyWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMeshWorld(t)
		pkg := rapid.SampledFrom(meshPackages)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { m.check(t) },
			"subscribe": func(t *rapid.T) {
				name := pkg.Draw(t, "package")
				for _, s := range m.subscriptions(t) {
					if s.Spec.Package == name {
						return // two Subscriptions of one package cannot be resolved
					}
				}
				_ = m.subscribe(name, rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
			},
			"publish": func(t *rapid.T) {
				name := pkg.Draw(t, "package")
				m.publish(t, m.content, name, m.heads[name]+1, m.requires[name]...)
				m.touch(t)
			},
			"approve": func(t *rapid.T) {
				if plans := m.plans(); len(plans) > 0 {
					p := rapid.SampledFrom(plans).Draw(t, "plan")
					require.NoError(t, fake.Edit(m.cluster, namespace, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
				}
			},
			"switch": func(t *rapid.T) {
				m.olm.InstallPlan.SeparatePlans = !m.olm.InstallPlan.SeparatePlans
				m.restart(t)
			},
			"restart": func(t *rapid.T) { m.restart(t) },
			"fault": func(t *rapid.T) {
				m.cluster.Faults().Inject(fake.Fault{
					Verb: rapid.SampledFrom([]olmcore.Verb{olmcore.VerbCreate, olmcore.VerbUpdate, olmcore.VerbUpdateStatus}).Draw(t, "verb"),
					Kind: rapid.SampledFrom([]string{"InstallPlan", "Subscription", "ClusterServiceVersion"}).Draw(t, "kind"),
					Nth:  rapid.IntRange(1, 2).Draw(t, "nth"), Mode: rapid.SampledFrom(faultModes).Draw(t, "mode"),
				})
			},
			"round": func(t *rapid.T) {
				_, err := m.driver.Round(t.Context())
				require.NoError(t, err)
			},
			"run": func(t *rapid.T) {
				require.NoError(t, m.driver.RunFor(t.Context(), rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "time")))
			},
		})
		m.cluster.Faults().Clear()
		m.olm.InstallPlan.SeparatePlans = true
		m.restart(t)
		steps := 4
		for _, head := range m.heads {
			steps += head
		}
		for range steps {
			m.run(t, time.Minute)
			m.check(t)
			m.touch(t)
		}
		m.requireHeads(t, m.needNoApproval(t))
		for range steps {
			m.run(t, time.Minute)
			m.check(t)
			require.NoError(t, m.approveAll())
			m.run(t, time.Minute)
			m.check(t)
			m.touch(t)
		}
		m.run(t, 30*time.Minute)
		m.requireReferencesOwn(t)
		m.requireHeads(t, m.subscriptions(t))
		before := len(m.driver.Events)
		require.NoError(t, m.driver.RunFor(t.Context(), 24*time.Hour))
		for _, e := range m.driver.Events[before:] {
			require.Nil(t, e.Action, "a world at rest stays at rest: %s", e)
		}
	})
}
