// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
)

// fromGlobal makes a Subscription to a package of the catalog NS of the global namespace.
func fromGlobal(s *story) func(*v1alpha1.SubscriptionSpec) {
	return func(spec *v1alpha1.SubscriptionSpec) {
		spec.CatalogSource, spec.CatalogSourceNamespace = s.ns, controllers.DefaultGlobalNamespace
	}
}

// global makes a catalog of the global namespace, called NS.
func global(s *story, packages ...*pack) {
	serveIn(s, controllers.DefaultGlobalNamespace, s.ns, packages...)
	s.given(`
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: NS, namespace: olm}
spec: {sourceType: grpc, address: "NS.olm.svc:50051"}
`)
}

// These catalogs are what every namespace sees: the stories are told alone.
func TestGlobalCatalogs(t *testing.T) {
	one := func() *pack { return pkg("alpha").channel("stable", "alpha.v1.0.0") }
	tellAlone(t, "serve every namespace", func(s *story) {
		s.group()
		global(s, one())
		s.subscribe("alpha", fromGlobal(s))
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", unhealthy, "False AllCatalogSourcesHealthy: all available catalogsources are healthy")
	})
	tellAlone(t, "bring dependencies that the catalog of the namespace lacks", func(s *story) {
		s.group()
		global(s, pkg("beta").channel("stable", "beta.v1.0.0"))
		s.catalog("community", one().bundle("alpha.v1.0.0", requiresPackage("beta", ">=1.0.0")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.installed(s.text("beta-stable-NS-olm"), "beta.v1.0.0")
	})
	tellAlone(t, "are not for a namespace whose OperatorGroup excludes them", func(s *story) {
		s.group()
		edit(s, "group", func(o *operatorsv1.OperatorGroup) {
			o.Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
		})
		global(s, one())
		s.subscribe("alpha", fromGlobal(s))
		says[*v1alpha1.Subscription](s, "alpha", resolutionFailed, unsatisfiable(
			"no operators found from catalog NS in namespace olm referenced by subscription alpha, subscription alpha exists"))
		edit(s, "group", func(o *operatorsv1.OperatorGroup) { o.Annotations = nil })
		s.installed("alpha", "alpha.v1.0.0")
	})
	tellAlone(t, "have their bundles unpacked beside them", func(s *story) {
		s.group()
		global(s, one().bundle("alpha.v1.0.0", inImage(nil)))
		s.subscribe("alpha", fromGlobal(s))
		s.installed("alpha", "alpha.v1.0.0")
		require.Empty(s, unpackJobs(s))
	})
}
