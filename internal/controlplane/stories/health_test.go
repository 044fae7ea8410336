// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	resolutionFailed = "ResolutionFailed"
	unhealthy        = "CatalogSourcesUnhealthy"
)

// unsatisfiable is a condition with these rules of the resolver.
func unsatisfiable(rules string) string {
	return "True ConstraintsNotSatisfiable: constraints not satisfiable: " + rules
}

func TestSubscriptionsSayWhyTheyCannotBeResolved(t *testing.T) {
	t.Parallel()
	one := func() *pack { return pkg("alpha").channel("stable", "alpha.v1.0.0") }
	tell(t, "the package is not in the catalog", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("gamma")
		says[*v1alpha1.Subscription](s, "gamma", resolutionFailed, unsatisfiable(
			"no operators found in package gamma in the catalog referenced by subscription gamma, subscription gamma exists"))
		s.publish("community", one(), pkg("gamma").channel("stable", "gamma.v1.0.0"))
		s.installed("gamma", "gamma.v1.0.0")
		says[*v1alpha1.Subscription](s, "gamma", resolutionFailed, "")
	})
	tell(t, "the package has no such channel", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("alpha", channel("nightly"))
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable(
			"no operators found in channel nightly of package alpha in the catalog referenced by subscription alpha, subscription alpha exists"))
	})
	tell(t, "the channel has no such version", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("alpha", channel("stable"), startingAt("alpha.v9.0.0"))
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable(
			"no operators found with name alpha.v9.0.0 in channel stable of package alpha in the catalog referenced by subscription alpha, subscription alpha exists"))
	})
	tell(t, "there is no such catalog", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("alpha", func(spec *v1alpha1.SubscriptionSpec) { spec.CatalogSource = "nowhere" })
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable(
			"no operators found from catalog nowhere in namespace NS referenced by subscription alpha, subscription alpha exists"))
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "True UnhealthyCatalogSourceFound: targeted catalogsource NS/nowhere missing")
	})
	tell(t, "there is no OperatorGroup, until one is made", func(s *story) {
		s.catalog("community", one())
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, "True OperatorGroupCount: found 0 operatorGroups, expected 1")
		s.group()
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, "")
	})
	tell(t, "there are two OperatorGroups, until one is deleted", func(s *story) {
		s.group()
		s.given(`{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: another}, spec: {targetNamespaces: [NS]}}`)
		s.catalog("community", one())
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, "True OperatorGroupCount: found 2 operatorGroups, expected 1")
		remove[*operatorsv1.OperatorGroup](s, "another")
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "a dependency is in no catalog", func(s *story) {
		s.group()
		s.catalog("community", one().bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")))
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable(
			"bundle alpha.v1.0.0 requires an operator with package: beta and with version in range: >=1.0.0, subscription alpha exists, subscription alpha requires community/NS/stable/alpha.v1.0.0"))
	})
	tell(t, "nothing provides an API that is required", func(s *story) {
		s.group()
		s.catalog("community", one().bundle("alpha.v1.0.0", requires("Widget")))
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable(
			"bundle alpha.v1.0.0 requires an operator providing an API with group: NS.example.com, version: v1, kind: Widget, subscription alpha exists, subscription alpha requires community/NS/stable/alpha.v1.0.0"))
	})
	tell(t, "two operators provide the same API", func(s *story) {
		s.catalog("community", one().bundle("alpha.v1.0.0", owns("Widget")),
			pkg("beta").channel("stable", "beta.v1.0.0").bundle("beta.v1.0.0", owns("Widget")))
		s.subscribe("alpha")
		s.subscribe("beta")
		s.group()
		says[*v1alpha1.Subscription](s, "beta", resolutionFailed, unsatisfiable(
			"community/NS/stable/alpha.v1.0.0 and community/NS/stable/beta.v1.0.0 provide Widget (NS.example.com/v1), subscription alpha exists, subscription alpha requires community/NS/stable/alpha.v1.0.0, "+
				"subscription beta exists, subscription beta requires community/NS/stable/beta.v1.0.0"))
	})
	tell(t, "the channel has two heads", func(s *story) { // OLM: ErrorPreventedResolution, of the whole namespace
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v2.0.0"))
		s.subscribe("alpha", channel("stable"))
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable("a unique replacement chain within a channel is required to determine "+
			`the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "alpha": alpha.v1.0.0, alpha.v2.0.0, subscription alpha exists`))
	})
}

func TestSubscriptionsSayHowTheirCatalogsAre(t *testing.T) {
	t.Parallel()
	one := func() *pack { return pkg("alpha").channel("stable", "alpha.v1.0.0") }
	community := func(s *story) types.NamespacedName { return types.NamespacedName{Namespace: s.ns, Name: "community"} }
	tell(t, "all are healthy", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "False AllCatalogSourcesHealthy: all available catalogsources are healthy")
	})
	tell(t, "there are none", func(s *story) {
		s.group()
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "True NoCatalogSourcesFound: dependency resolution requires at least one catalogsource")
	})
	tell(t, "the one that the Subscription names is not healthy, and what is installed stays", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		contents.setDown(community(s), true)
		s.touch("community")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "True UnhealthyCatalogSourceFound: targeted catalogsource NS/community unhealthy")
		s.installed("alpha", "alpha.v1.0.0")
		contents.setDown(community(s), false)
		s.touch("community")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "False AllCatalogSourcesHealthy: all available catalogsources are healthy")
	})
	tell(t, "another one is not healthy, and is named", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.given(`{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: other}, spec: {sourceType: grpc, address: "other.NS.svc:50051"}}`)
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "True UnhealthyCatalogSourceFound: catalogsource NS/other unhealthy")
	})
	tell(t, "the one that the Subscription names is deleted", func(s *story) {
		s.group()
		s.catalog("community", one())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		contents.publish(community(s), nil)
		remove[*v1alpha1.CatalogSource](s, "community")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "True NoCatalogSourcesFound: dependency resolution requires at least one catalogsource")
	})
	tell(t, "the one that the Subscription names comes later", func(s *story) {
		s.group()
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "True NoCatalogSourcesFound: dependency resolution requires at least one catalogsource")
		s.catalog("community", one())
		s.installed("alpha", "alpha.v1.0.0")
	})
}

func TestSubscriptionsPassOnDeprecations(t *testing.T) {
	t.Parallel()
	old := func() *pack { return pkg("alpha").channel("stable", "alpha.v1.0.0") }
	tell(t, "of the package", func(s *story) {
		s.group()
		s.catalog("community", old().deprecate("package", "use beta"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "PackageDeprecated", "True: olm.package/alpha: use beta")
		says[*v1alpha1.Subscription](s, "alpha", "Deprecated", "True: olm.package/alpha: use beta")
		says[*v1alpha1.Subscription](s, "alpha", "ChannelDeprecated", "")
	})
	tell(t, "of the channel", func(s *story) {
		s.group()
		s.catalog("community", old().deprecate("channel stable", "use fast"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "ChannelDeprecated", "True: olm.channel/stable: use fast")
	})
	tell(t, "not of a channel that the Subscription does not name", func(s *story) {
		s.group()
		s.catalog("community", old().deprecate("channel stable", "use fast").deprecate("package", "use beta"))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "Deprecated", "True: olm.package/alpha: use beta")
		says[*v1alpha1.Subscription](s, "alpha", "ChannelDeprecated", "")
	})
	tell(t, "of the version, until another one is installed", func(s *story) {
		s.group()
		s.catalog("community", old().deprecate("bundle alpha.v1.0.0", "it has a hole"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "BundleDeprecated", "True: olm.bundle/alpha.v1.0.0: it has a hole")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").deprecate("bundle alpha.v1.0.0", "it has a hole"))
		s.installed("alpha", "alpha.v1.1.0")
		says[*v1alpha1.Subscription](s, "alpha", "BundleDeprecated", "")
		says[*v1alpha1.Subscription](s, "alpha", "Deprecated", "")
	})
	tell(t, "all of them together in one condition", func(s *story) {
		s.group()
		s.catalog("community", old().deprecate("bundle alpha.v1.0.0", "it has a hole").deprecate("channel stable", "use fast").deprecate("package", "use beta"))
		s.subscribe("alpha", channel("stable"))
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "Deprecated", "True: olm.package/alpha: use beta; olm.channel/stable: use fast; olm.bundle/alpha.v1.0.0: it has a hole")
	})
}
