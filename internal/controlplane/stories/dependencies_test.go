// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
)

func TestDependencies(t *testing.T) {
	t.Parallel()
	const generated = "beta-stable-community-NS"
	beta := func() *pack { return pkg("beta").channel("stable", "beta.v1.0.0", "beta.v1.1.0 replaces beta.v1.0.0") }
	tell(t, "a package that is required is installed along, with a Subscription of its own", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")), beta())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.1.0")
		sub := s.subscription(generated)
		require.Equal(s, &v1alpha1.SubscriptionSpec{
			Package: "beta", Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: s.ns, StartingCSV: "beta.v1.1.0", InstallPlanApproval: v1alpha1.ApprovalAutomatic,
		}, sub.Spec)
		require.Equal(s, s.plan("alpha").Name, sub.Annotations["olm.generated-by"])
		require.Equal(s, s.plan("alpha").Name, s.plan(generated).Name)
	})
	tell(t, "the newest version in the range that is asked for is taken", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", "<1.1.0")), beta())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.0.0")
	})
	tell(t, "an API that is required is provided by another operator", func(s *story) {
		s.group()
		s.catalog("community",
			pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requires("Widget")),
			pkg("beta").channel("stable", "beta.v1.0.0").bundle("beta.v1.0.0", owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.0.0")
	})
	tell(t, "a dependency of a dependency comes along", func(s *story) {
		s.group()
		s.catalog("community",
			pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")),
			pkg("beta").channel("stable", "beta.v1.0.0").bundle("beta.v1.0.0", requiresPackage("gamma", ">=1.0.0")),
			pkg("gamma").channel("stable", "gamma.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.0.0")
		s.installed(s.text("gamma-stable-community-NS"), "gamma.v1.0.0")
		require.Len(s, list[*v1alpha1.InstallPlan](s), 1)
	})
	tell(t, "what another Subscription has installed already serves as it is", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")), beta())
		s.subscribe("beta")
		s.installed("beta", "beta.v1.1.0")
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Len(s, list[*v1alpha1.Subscription](s), 2)
	})
	tell(t, "the catalog of the operator itself is preferred for its dependencies", func(s *story) {
		s.group()
		s.catalog("apart", beta())
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")), beta())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.1.0")
	})
	tell(t, "a dependency in another catalog is found there", func(s *story) {
		s.group()
		s.catalog("apart", beta())
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text("beta-stable-apart-NS"), "beta.v1.1.0")
	})
	tell(t, "with manual approval the dependency waits with its dependent", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")), beta())
		s.subscribe("alpha", manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0", "beta.v1.1.0")
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.1.0")
	})
	tell(t, "either of two packages will do, and the first is taken", func(s *story) {
		s.group()
		anyOf := map[string]any{"failureMessage": "needs a database", "any": map[string]any{"constraints": []any{
			map[string]any{"package": map[string]any{"packageName": "nowhere", "versionRange": ">=1.0.0"}},
			map[string]any{"package": map[string]any{"packageName": "beta", "versionRange": ">=1.0.0"}},
		}}}
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", has("olm.constraint", anyOf)), beta())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text(generated), "beta.v1.1.0")
	})
	tell(t, "an upgrade that needs more brings that along", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").
			bundle("alpha.v1.1.0", requiresPackage("beta", ">=1.0.0")), beta())
		s.installed("alpha", "alpha.v1.1.0")
		s.installed(s.text(generated), "beta.v1.1.0")
	})
	tell(t, "an upgrade of which a dependency is nowhere is not begun", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").
			bundle("alpha.v1.1.0", requiresPackage("beta", ">=1.0.0")))
		s.atRest()
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, "")
	})
}
