// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// newCluster returns a cluster with two nodes, a catalog and an OperatorGroup.
func newCluster(t *testing.T, now time.Time) *fake.Cluster {
	c := fake.NewCluster(now)
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Node("a").Create(nil))
	require.NoError(t, c.Node("b").Create(nil))
	require.NoError(t, c.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec: v1alpha1.CatalogSourceSpec{
				SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
				GrpcPodConfig:  &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted},
				UpdateStrategy: &v1alpha1.UpdateStrategy{}, // what the API type cannot decode
			},
		},
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ops"}},
		},
	))
	return c
}

func subscription(name string, approval v1alpha1.Approval) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name},
		Spec: &v1alpha1.SubscriptionSpec{
			Package: name, Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm", InstallPlanApproval: approval,
		},
	}
}

const bundleText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION}
spec:
  version: VERSION
  minKubeVersion: 1.30.0
  cleanup: {enabled: true}
  installModes: [{type: OwnNamespace, supported: true}]
  customresourcedefinitions:
    owned: [{name: PKGs.example.com, kind: PKG, version: v1}]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: PKG
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
      deployments:
      - name: PKG
        spec:
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              serviceAccountName: PKG
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

// packages is what the catalog holds: operators with one version each.
func packages(t *testing.T, names ...string) []resolution.Package {
	var all []resolution.Package
	for _, name := range names {
		bundle := resolution.Bundle{Name: name + ".v1.0.0"}
		bundle.Properties = []olmcore.Property{{Type: resolution.PropertyPackage, Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"version":"1.0.0"}`, name))}}
		for _, document := range strings.Split(strings.NewReplacer("PKG", name, "VERSION", "1.0.0").Replace(bundleText), "---\n") {
			data, err := yaml.YAMLToJSON([]byte(document))
			require.NoError(t, err)
			inline, err := json.Marshal(map[string][]byte{"data": data})
			require.NoError(t, err)
			bundle.Properties = append(bundle.Properties, olmcore.Property{Type: resolution.PropertyBundleObject, Value: inline})
		}
		all = append(all, resolution.Package{
			Name: name, DefaultChannel: "stable", Bundles: []resolution.Bundle{bundle},
			Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: bundle.Name}}}},
		})
	}
	return all
}

// catalogs is a catalog with the packages alpha and beta.
func catalogs(t *testing.T) *controllers.Catalogs {
	content, problems := resolution.Build(packages(t, "alpha", "beta"))
	require.Empty(t, problems)
	return &controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{
		{Namespace: "olm", Name: "community"}: content,
	}}
}

// serve puts a cluster behind HTTP.
func serve(t *testing.T, c *fake.Cluster) (*apiserver.Server, *rest.Config) {
	s, config, _ := serveBy(t, c)
	return s, config
}

func serveBy(t *testing.T, c *fake.Cluster) (*apiserver.Server, *rest.Config, *httptest.Server) {
	s := apiserver.New(c)
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, &rest.Config{Host: front.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, front
}
