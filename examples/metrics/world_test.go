// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/metrics"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/resolution"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a cluster with a catalog, all controllers, and Metrics of them.
type world struct {
	*fake.Cluster
	metrics  *metrics.Metrics
	registry *prometheus.Registry
	set      *controllers.Set
	runners  []*controller.Runner
	content  *controllers.Catalogs
}

func newWorld(t require.TestingT) *world {
	w := &world{Cluster: fake.NewCluster(noon), registry: prometheus.NewPedanticRegistry()}
	w.AutoCreateNamespaces = true
	w.content = &controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{}}
	w.publish(t, 1)
	o := &olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2", Sweeps: true, Live: true}}
	o.Controllers() // which play the clients of catalogs
	w.content.Serve(&o.Options)
	w.metrics = metrics.New(&o.Options)
	w.metrics.Now, w.metrics.Catalogs = w.Now, w.content
	w.metrics.Read(w.Cluster)
	require.NoError(t, w.registry.Register(w.metrics))
	w.set = controllers.New(&o.Options)
	w.runners = w.set.Runners(w.Cluster, w.Cluster)
	for _, r := range w.runners {
		r.OnReport = w.metrics.OnReport
	}
	require.NoError(t, w.Node("a").Create(nil))
	require.NoError(t, w.Node("b").Create(nil))
	require.NoError(t, w.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec: v1alpha1.CatalogSourceSpec{
				SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted},
			},
		},
		group("ops"), group("apps"),
	))
	return w
}

func group(namespace string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}
}

func sub(namespace, name string, approval v1alpha1.Approval) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{
			Package: name, Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm", InstallPlanApproval: approval,
		},
	}
}

const bundleText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION.0.0}
spec:
  version: VERSION.0.0
  REPLACES
  cleanup: {enabled: true}
  installModes: [{type: OwnNamespace, supported: true}]
  customresourcedefinitions:
    owned: [{name: PKGs.example.com, kind: PKG, version: v1}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: PKG
        spec:
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              containers: [{name: operator, image: "registry.example.com/PKG:VERSION"}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PKGs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: PKG, listKind: PKGList, plural: PKGs, singular: PKG}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// publish makes the versions up to head the content of the catalog, of four packages.
func (w *world) publish(t require.TestingT, head int) {
	var packages []resolution.Package
	for _, name := range []string{"alpha", "beta", "delta", "gamma"} {
		pkg := resolution.Package{Name: name, DefaultChannel: "stable", Channels: []resolution.Channel{{Name: "stable"}}}
		for v := 1; v <= head; v++ {
			bundle, entry := resolution.Bundle{Name: fmt.Sprintf("%s.v%d.0.0", name, v)}, resolution.ChannelEntry{}
			entry.Name = bundle.Name
			replaces := "description: x"
			if v > 1 {
				entry.Replaces = fmt.Sprintf("%s.v%d.0.0", name, v-1)
				replaces = "replaces: " + entry.Replaces
			}
			bundle.Properties = []olmcore.Property{{Type: resolution.PropertyPackage, Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"version":"%d.0.0"}`, name, v))}}
			text := strings.NewReplacer("PKG", name, "VERSION", fmt.Sprint(v), "REPLACES", replaces).Replace(bundleText)
			for document := range strings.SplitSeq(text, "---\n") {
				data, err := yaml.YAMLToJSON([]byte(document))
				require.NoError(t, err)
				inline, err := json.Marshal(map[string][]byte{"data": data})
				require.NoError(t, err)
				bundle.Properties = append(bundle.Properties, olmcore.Property{Type: resolution.PropertyBundleObject, Value: inline})
			}
			pkg.Bundles = append(pkg.Bundles, bundle)
			pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, entry)
		}
		packages = append(packages, pkg)
	}
	content, problems := resolution.Build(packages)
	require.Empty(t, problems)
	key := types.NamespacedName{Namespace: "olm", Name: "community"}
	w.content.Put(resolution.CatalogState{Key: key, Content: content})
	if w.set != nil {
		w.set.CatalogsChanged()
	}
}

// run lets the world go on for a while.
func (w *world) run(t require.TestingT, d time.Duration) {
	for until := w.Now().Add(d); w.Now().Before(until); w.Advance(5 * time.Second) {
		for range 20 {
			before := w.ResourceVersion()
			require.NoError(t, w.Settle())
			if err := controller.Pass(w.context(), w.runners, w.Now); err != nil {
				t.Errorf("%v", err)
				t.FailNow()
			}
			if w.ResourceVersion() == before {
				break
			}
		}
	}
}

// text is what a scrape gives.
func (w *world) text(t *testing.T) string { return expose(t, w.registry) }
