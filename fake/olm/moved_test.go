// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/subscription/resolution"
)

// owning returns a package whose version v owns the definitions of owned[v-1] beside its own. Each version replaces the
// one before.
func owning(pkg string, owned ...[]string) resolution.Package {
	var entries []resolution.ChannelEntry
	for i := range owned {
		e := resolution.ChannelEntry{Name: csvName(pkg, i+1)}
		if i > 0 {
			e.Replaces = csvName(pkg, i)
		}
		entries = append(entries, e)
	}
	p := packageOf(pkg, entries...)
	for i, plurals := range owned {
		objects := slices.Clone(p.Bundles[i].Objects)
		csv := objects[0].(*v1alpha1.ClusterServiceVersion).DeepCopy()
		objects[0] = csv
		for _, plural := range plurals {
			csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned,
				v1alpha1.CRDDescription{Name: plural + ".example.com", Version: "v1", Kind: plural})
			crd := &apiextensionsv1.CustomResourceDefinition{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
				ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
			}
			crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: plural, Plural: plural},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
			}
			objects = append(objects, crd)
		}
		p.Bundles[i].Objects = objects
	}
	return p
}

// TestDefinitionsMoveBetweenOperators: a plan upgrades alpha and beta at once, and a CustomResourceDefinition of one
// belongs to the other afterwards. Both upgrades succeed, and no custom resource is lost.
func TestDefinitionsMoveBetweenOperators(t *testing.T) {
	for name, c := range map[string]struct {
		alpha, beta [][]string
		refused     bool
	}{
		"from the first to the second": {alpha: [][]string{{"things"}, {}}, beta: [][]string{{}, {"things"}}},
		"from the second to the first": {alpha: [][]string{{}, {"things"}}, beta: [][]string{{"things"}, {}}},
		"each gives one to the other":  {alpha: [][]string{{"things"}, {"others"}}, beta: [][]string{{"others"}, {"things"}}, refused: true},
		"two of several":               {alpha: [][]string{{"things", "others", "kept"}, {"kept"}}, beta: [][]string{{}, {"things", "others"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			serve := func(version int) {
				catalogs, err := catalogsOf(map[string]resolution.Package{
					"alpha": owning("alpha", c.alpha[:version]...), "beta": owning("beta", c.beta[:version]...),
				})
				require.NoError(t, err)
				catalogs.Serve(&w.olm.Options)
				w.olm.CatalogsChanged()
			}
			serve(1)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalAutomatic))
			w.run(t, 5*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())
			before := fake.Find[*apiextensionsv1.CustomResourceDefinition](w.cluster, "", "things.example.com").UID
			serve(2)
			w.poke(t)
			w.run(t, 30*time.Minute)
			if c.refused { // each new version would wait for the other
				require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())
				require.Equal(t, v1alpha1.InstallPlanPhaseFailed, w.planOf(t, "alpha.v2.0.0", "beta.v2.0.0").Status.Phase)
				return
			}
			require.Equal(t, "alpha.v2.0.0 Succeeded, beta.v2.0.0 Succeeded", w.phases())
			require.Equal(t, v1alpha1.InstallPlanPhaseComplete, w.planOf(t, "alpha.v2.0.0", "beta.v2.0.0").Status.Phase)
			require.Equal(t, before, fake.Find[*apiextensionsv1.CustomResourceDefinition](w.cluster, "", "things.example.com").UID)
			w.requireNothingIsAsked(t)
		})
	}
}

// requireNothingIsAsked checks that the world is at rest.
func (w *world) requireNothingIsAsked(t *testing.T) {
	t.Helper()
	before := w.cluster.ResourceVersion()
	w.run(t, time.Hour)
	require.Equal(t, before, w.cluster.ResourceVersion())
}

// servingPackage returns a package whose version v serves the APIService of served[v-1]; "" for none.
func servingPackage(pkg string, served ...string) resolution.Package {
	p := owning(pkg, make([][]string, len(served))...)
	for i, group := range served {
		if group == "" {
			continue
		}
		csv := p.Bundles[i].Objects[0].(*v1alpha1.ClusterServiceVersion)
		csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{
			Name: "things", Group: group, Version: "v1", Kind: "Thing", ContainerPort: 443,
			DeploymentName: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name,
		}}
	}
	return p
}

// TestAnAPIServiceMovesBetweenOperators: a plan upgrades alpha and beta at once, and the APIService of one belongs to
// the other afterwards. Both upgrades succeed.
func TestAnAPIServiceMovesBetweenOperators(t *testing.T) {
	const group = "things.example.com"
	for name, c := range map[string]struct{ alpha, beta []string }{
		"from the first to the second": {alpha: []string{group, ""}, beta: []string{"", group}},
		"from the second to the first": {alpha: []string{"", group}, beta: []string{group, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			serve := func(version int) {
				catalogs, err := catalogsOf(map[string]resolution.Package{
					"alpha": servingPackage("alpha", c.alpha[:version]...), "beta": servingPackage("beta", c.beta[:version]...),
				})
				require.NoError(t, err)
				catalogs.Serve(&w.olm.Options)
				w.olm.CatalogsChanged()
			}
			serve(1)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			require.NoError(t, w.subscribe("beta", v1alpha1.ApprovalAutomatic))
			w.run(t, 5*time.Minute)
			require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())
			serve(2)
			w.poke(t)
			w.run(t, 30*time.Minute)
			require.Equal(t, "alpha.v2.0.0 Succeeded, beta.v2.0.0 Succeeded", w.phases())
			w.requireNothingIsAsked(t)
		})
	}
}
