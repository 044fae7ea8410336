// SPDX-License-Identifier: Apache-2.0

package olmgitops_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/gitops/olmgitops"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription/resolution"
)

const bundle = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: alpha.v1}
spec:
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: alpha
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
      deployments:
      - name: alpha
        spec:
          selector: {matchLabels: {app: alpha}}
          template:
            metadata: {labels: {app: alpha}}
            spec:
              serviceAccountName: alpha
              containers: [{name: operator, image: "registry.example.com/alpha:1"}]
`

func options(t *testing.T) *controllers.Options {
	objects, err := decode.Read("bundle", strings.NewReader(bundle))
	require.NoError(t, err)
	content, problems := resolution.Build([]resolution.Package{{
		Name: "alpha", DefaultChannel: "stable",
		Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: "alpha.v1"}}}},
		Bundles: []resolution.Bundle{{Name: "alpha.v1", Bundle: olmcore.Bundle{
			Objects:    []olmcore.Object{objects[0].Object},
			Properties: []olmcore.Property{{Type: resolution.PropertyPackage, Value: json.RawMessage(`{"packageName":"alpha","version":"1.0.0"}`)}},
		}}},
	}})
	require.Empty(t, problems)
	o := &controllers.Options{KubernetesVersion: "v1.36.2"}
	catalogs := controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{{Namespace: "olm", Name: "community"}: content}}
	catalogs.Serve(o)
	return o
}

// TestPlansAreALife installs an operator and removes it again by plans alone: the cluster is exported, planned for and
// brought in line by a tool that knows nothing but the folder, again and again. Nothing is remembered in between.
func TestPlansAreALife(t *testing.T) {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Node("a").Create(nil))
	require.NoError(t, c.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:latest",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}},
		},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ops"}}},
		&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "alpha"}, Spec: &v1alpha1.SubscriptionSpec{
			Package: "alpha", Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm",
		}},
	))
	dir, applied := t.TempDir(), map[string]string{}
	rest := func() (plans int) {
		for plans := range 60 {
			if !plan(t, c, dir) {
				return plans
			}
			apply(t, c, dir, applied)
			require.NoError(t, c.RunFor(5*time.Second))
		}
		t.Fatalf("still planned: %v", written(t, dir))
		return 0
	}
	t.Logf("installed by %d plans", rest())
	csv := fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "alpha.v1")
	require.NotNil(t, csv)
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, csv.Status.Phase)
	require.Equal(t, v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateAtLatest), fake.Find[*v1alpha1.Subscription](c, "ops", "alpha").Status.State)

	for _, o := range []olmcore.Object{fake.Find[*v1alpha1.Subscription](c, "ops", "alpha"), csv} {
		require.NoError(t, c.Delete(olmcore.RefOf(o).Unversioned()))
	}
	t.Logf("removed by %d plans", rest())
	require.Empty(t, slices.DeleteFunc(c.Objects(), func(o olmcore.Object) bool { return o.GetLabels()["olm.owner"] != "alpha.v1" }))
	require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "alpha.v1"), "no manifest made it anew")
	for file := range written(t, dir) {
		require.NotContains(t, file, "alpha", "what is gone has no manifest")
	}
}

// plan writes a plan for the cluster as it is, and reports whether it does anything.
func plan(t *testing.T, c *fake.Cluster, dir string) bool {
	observed, err := olmcore.NewSnapshot(objectsIn(t, export(t, c.Objects())), olmcore.Everything)
	require.NoError(t, err)
	p := olmgitops.New(observed)
	p.Now = c.Now
	require.NoError(t, controller.Pass(t.Context(), controllers.New(options(t)).Runners(observed, p), c.Now))
	require.NoError(t, p.Write(dir))
	return p.Snapshot != observed
}

func objectsIn(t *testing.T, text []byte) []olmcore.Object {
	read, err := decode.Read("text", strings.NewReader(string(text)))
	require.NoError(t, err)
	objects := make([]olmcore.Object, len(read))
	for i, o := range read {
		objects[i] = o.Object
	}
	return objects
}

// apply does with the folder what kubectl would: replace, delete, and apply what
// is not as it was applied last. What is refused the next plan repeats.
func apply(t *testing.T, c *fake.Cluster, dir string, applied map[string]string) {
	files := written(t, dir)
	each := func(name string, do func(olmcore.Object) error) {
		for _, o := range objectsIn(t, []byte(files[name])) {
			if err := do(o); err != nil {
				require.Contains(t, []olmcore.ErrorClass{olmcore.Conflict, olmcore.Gone}, olmcore.Classify(err), "%s: %v", name, err)
			}
		}
	}
	each("status.yaml", c.UpdateStatus)
	each("replace.yaml", c.Update)
	each("delete.yaml", func(o olmcore.Object) error { return c.Delete(olmcore.RefOf(o)) })
	for round := range 2 { // a Pod comes before its ServiceAccount
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if !strings.HasPrefix(name, "apply/") {
				continue
			}
			for _, o := range objectsIn(t, []byte(files[name])) {
				err := c.Create(o)
				if apierrors.IsAlreadyExists(err) && applied[name] == files[name] {
					err = nil
				} else if apierrors.IsAlreadyExists(err) {
					err = c.Update(o)
				}
				if err == nil {
					applied[name] = files[name]
				}
				require.True(t, err == nil || round == 0, "%s: %v", name, err)
			}
		}
	}
}
