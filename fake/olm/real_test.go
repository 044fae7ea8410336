// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// published is one operator of the real data, with its versions in order.
type published struct {
	name     string
	versions []realdata.Bundle
	head     int // the newest version that the catalog serves
}

func (p *published) csv(version int) *v1alpha1.ClusterServiceVersion {
	for _, o := range p.versions[version].Objects {
		if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
			return c
		}
	}
	return nil
}

// resolve installs the head over whatever is installed.
func (p *published) resolve(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	answer := olmcore.Resolution{Observed: request.Subscriptions}
	head := p.csv(p.head)
	for _, f := range request.Subscriptions {
		decision := olmcore.SubscriptionDecision{Name: f.Name, CurrentCSV: f.CurrentCSV}
		if f.InstalledCSV != head.Name {
			decision.CurrentCSV, decision.Changed = head.Name, f.CurrentCSV != head.Name
			answer.Operators = append(answer.Operators, olmcore.Operator{
				Name: head.Name, Package: p.name, Channel: "stable", Version: head.Spec.Version.String(), Replaces: f.InstalledCSV,
				Catalog: types.NamespacedName{Namespace: "olm", Name: "community"}, For: []string{f.Name},
				Bundle: olmcore.Bundle{Objects: p.versions[p.head].Objects},
			})
		}
		answer.Decisions = append(answer.Decisions, decision)
	}
	return answer, nil
}

// The namespaces that an operator watches in each install mode, beside its own or in its place; none: all.
var targetsOf = map[v1alpha1.InstallModeType][]string{
	v1alpha1.InstallModeTypeOwnNamespace:    {namespace},
	v1alpha1.InstallModeTypeSingleNamespace: {"tenant-a"},
	v1alpha1.InstallModeTypeMultiNamespace:  {"tenant-a", "tenant-b"},
	v1alpha1.InstallModeTypeAllNamespaces:   nil,
}

// in returns the operator with the versions that support an install mode.
func (p *published) in(mode v1alpha1.InstallModeType) *published {
	of := &published{name: p.name}
	for i := range p.versions {
		if slices.Contains(p.csv(i).Spec.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: true}) {
			of.versions = append(of.versions, p.versions[i])
		}
	}
	return of
}

// lives are what each operator goes through: one install mode, so that all of them occur, or with OLMCORE_BUNDLES=all
// every one that it supports.
func lives(t *testing.T, do func(t *testing.T, p *published, mode v1alpha1.InstallModeType)) {
	modes := slices.Sorted(maps.Keys(targetsOf))
	for n, p := range publishedOperators(t) {
		supported := slices.DeleteFunc(slices.Clone(modes), func(m v1alpha1.InstallModeType) bool { return len(p.in(m).versions) == 0 })
		if os.Getenv("OLMCORE_BUNDLES") != "all" {
			supported = supported[n%len(supported):][:1]
		}
		for _, mode := range supported {
			t.Run(p.name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				do(t, p.in(mode), mode)
			})
		}
	}
}

// required are minimal definitions of those that the versions take for granted,
// and for those that a version owns and whose bundle was recorded without them.
func (p *published) required() []olmcore.Object {
	crd := func(group, version, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
		c := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
		c.Spec.Group, c.Spec.Scope = group, apiextensionsv1.NamespaceScoped
		c.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, ListKind: kind + "List", Singular: kind}
		c.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}}
		return c
	}
	out := []olmcore.Object{crd("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
		crd("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules")}
	seen := map[string]bool{}
	for i := range p.versions {
		for _, o := range p.versions[i].Objects {
			seen[o.GetName()] = true
		}
	}
	for i := range p.versions {
		definitions := p.csv(i).Spec.CustomResourceDefinitions
		for _, d := range slices.Concat(definitions.Required, definitions.Owned) {
			plural, group, _ := cutName(d.Name)
			if !seen[d.Name] {
				seen[d.Name] = true
				out = append(out, crd(group, d.Version, d.Kind, plural))
			}
		}
	}
	return out
}

func cutName(name string) (plural, group string, ok bool) {
	for i := range name {
		if name[i] == '.' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}

func publishedOperators(t *testing.T) []*published {
	var out []*published
	for _, b := range realdata.Bundles(t) {
		if len(out) == 0 || out[len(out)-1].name != b.Operator {
			out = append(out, &published{name: b.Operator})
		}
		p := out[len(out)-1]
		p.versions = append(p.versions, b)
	}
	return append(out, packageServer(t))
}

// packageServer is the operator of OLM's own quick start, which owns an APIService, and a version that replaces it.
func packageServer(t *testing.T) *published {
	p := &published{name: "packageserver"}
	for _, o := range realdata.Objects(t, realdata.Dir(t)+"/manifests/olm-quickstart.yaml") {
		if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
			next := c.DeepCopy()
			next.Name += ".next"
			next.Spec.Version.Minor++
			next.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "example.com/packageserver:next"
			for _, v := range []*v1alpha1.ClusterServiceVersion{c, next} {
				v.Namespace = ""
				p.versions = append(p.versions, realdata.Bundle{Operator: p.name, Version: v.Spec.Version.String(), Objects: []olmcore.Object{v}})
			}
		}
	}
	return p
}

// TestPublishedOperatorsLiveAndGo: each is installed from its catalog, upgraded where there is a second version, and
// removed, after which nothing is left but its CustomResourceDefinitions. Succeeded means that all of it is there, and
// had OLM made it, it would be taken over without a write.
func TestPublishedOperatorsLiveAndGo(t *testing.T) {
	lives(t, func(t *testing.T, p *published, mode v1alpha1.InstallModeType) {
		c := fake.NewCluster(noon)
		c.AutoCreateNamespaces = true
		o := &olm.OLM{Options: controllers.Options{
			KubernetesVersion: "v1.36.2", Resolve: p.resolve, Issuer: olm.Issuer{}, Sweeps: true, InstallPlan: installplan.Config{MaxStatusBytes: 4 << 20},
			CSV: csv.Config{PackageServerNamespaces: []string{namespace}}, // one of the operators is the package server
		}}
		d := &fake.Driver{Cluster: c, Controllers: o.Controllers()}
		safety := &invariant.Safety{Cluster: c}
		require.NoError(t, c.Node("a").Create(nil))
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}
		group.Spec.TargetNamespaces = targetsOf[mode]
		require.NoError(t, c.Create(group))
		for _, name := range []string{"olm", "kube-system", "tenant-a", "tenant-b"} {
			if err := c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); !apierrors.IsAlreadyExists(err) {
				require.NoError(t, err)
			}
		}
		require.NoError(t, c.Create(p.required()...))
		require.NoError(t, d.RunFor(t.Context(), time.Minute))
		before := keysOf(c)

		require.NoError(t, c.Create(&v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sub"},
			Spec:       &v1alpha1.SubscriptionSpec{Package: p.name, Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm"},
		}))
		for p.head = range p.versions {
			o.CatalogsChanged()
			require.NoError(t, fake.Edit(c, namespace, "sub", func(s *v1alpha1.Subscription) {
				s.Annotations = map[string]string{"head": p.versions[p.head].Version}
			}))
			require.NoError(t, d.RunFor(t.Context(), 5*time.Minute))
			require.NoError(t, safety.Check())
			p.requireHead(t, c)
			head := fake.Find[*v1alpha1.ClusterServiceVersion](c, namespace, p.csv(p.head).Name)
			requireWhole(t, c, head, targetsOf[mode])
			requireReach(t, c, head, targetsOf[mode])
			requireTakenOver(t, c, o.Options)
		}
		require.NoError(
			t,
			c.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: namespace, Name: "sub"}),
		)
		for _, o := range c.Objects() {
			if csv, ok := o.(*v1alpha1.ClusterServiceVersion); ok && csv.Namespace == namespace {
				require.NoError(t, c.Delete(olmcore.RefOf(csv).Unversioned()))
			}
		}
		require.NoError(t, d.RunFor(t.Context(), 10*time.Minute))
		requireNothingLeft(t, c, before)
	})
}

// requireHead: the newest version is Succeeded, the one before is gone, and the plans are Complete.
func (p *published) requireHead(t *testing.T, c *fake.Cluster) {
	head := p.csv(p.head).Name
	csv := fake.Find[*v1alpha1.ClusterServiceVersion](c, namespace, head)
	require.NotNil(t, csv, head)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, csv.Status.Phase, csv.Status.Message)
	if p.head > 0 && p.csv(p.head-1).Name != head {
		require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, namespace, p.csv(p.head-1).Name), "the version before")
	}
	p.requireObjects(t, c)
	for _, plan := range plansOf(c) {
		require.Equal(t, v1alpha1.InstallPlanPhaseComplete, plan.Status.Phase, plan.Status.Message)
	}
}

// requireObjects: what the head's bundle brings is there, and did not go with the version before.
func (p *published) requireObjects(t *testing.T, c *fake.Cluster) {
	for _, o := range p.versions[p.head].Objects {
		want := olmcore.KeyOf(o)
		there := slices.ContainsFunc(c.Objects(), func(o olmcore.Object) bool {
			key := olmcore.KeyOf(o)
			return key.Kind == want.Kind && key.Name == want.Name
		})
		require.True(t, there, "%s is gone", want)
	}
}

func keysOf(c *fake.Cluster) map[olmcore.Key]bool {
	keys := map[olmcore.Key]bool{}
	for _, o := range c.Objects() {
		keys[olmcore.KeyOf(o)] = true
	}
	return keys
}

func plansOf(c *fake.Cluster) []*v1alpha1.InstallPlan {
	plans, _ := olmcore.List[*v1alpha1.InstallPlan](context.Background(), c, namespace, nil)
	return plans
}
