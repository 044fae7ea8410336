// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription/resolution"
)

// serveObjects publishes alpha.v1.0.0 with objects, as properties of type olm.bundle.object if asProperties is set.
func (w *world) serveObjects(t *testing.T, image string, asProperties bool, objects []map[string]any) {
	t.Helper()
	p := packageOf("alpha", resolution.ChannelEntry{Name: csvName("alpha", 1)})
	b := &p.Bundles[0]
	b.Image, b.Objects = image, nil
	for _, values := range objects {
		data, err := json.Marshal(values)
		require.NoError(t, err)
		if asProperties {
			value, err := json.Marshal(map[string]any{"data": data})
			require.NoError(t, err)
			b.Properties = append(b.Properties, olmcore.Property{Type: resolution.PropertyBundleObject, Value: value})
			continue
		}
		o, err := decode.Decode(data)
		if err != nil {
			o = &unstructured.Unstructured{Object: values}
		}
		b.Objects = append(b.Objects, o)
	}
	catalogs, err := catalogsOf(map[string]resolution.Package{"alpha": p})
	require.NoError(t, err)
	catalogs.Serve(&w.olm.Options)
	w.olm.CatalogsChanged()
}

// alphaObjects returns the objects of alpha.v1.0.0 as JSON values, the ClusterServiceVersion first.
func alphaObjects(t *testing.T) (objects []map[string]any) {
	for _, o := range bundle("alpha", 1) {
		values, err := olmcore.ToMap(o)
		require.NoError(t, err)
		objects = append(objects, values)
	}
	return objects
}

func unpackFailed(w *world) string {
	s := w.status("alpha")
	c := s.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed)
	if c.Status != corev1.ConditionTrue {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// TestASubscriptionReportsABundleThatCannotBeInstalled: no InstallPlan is made, the Subscription says why, and all
// Events about it are in its namespace. Once the catalog serves a valid bundle, the operator is installed and the
// condition is gone.
func TestASubscriptionReportsABundleThatCannotBeInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(objects []map[string]any) []map[string]any
		want   string
	}{
		"the CSV has no apiVersion": {func(objects []map[string]any) []map[string]any {
			delete(objects[0], "apiVersion")
			return objects
		}, "bundle CSV alpha.v1.0.0 missing APIVersion"},
		"there are two CSVs": {func(objects []map[string]any) []map[string]any {
			return append(objects, objects[0])
		}, "operator alpha.v1.0.0: its bundle has more than one ClusterServiceVersion"},
		"there is no CSV": {func(objects []map[string]any) []map[string]any {
			return objects[1:]
		}, "operator alpha.v1.0.0: its bundle has no ClusterServiceVersion"},
		"the CSV has another name": {func(objects []map[string]any) []map[string]any {
			objects[0]["metadata"] = map[string]any{"name": "other.v1"}
			return objects
		}, `operator alpha.v1.0.0: its bundle's ClusterServiceVersion is named "other.v1"`},
		"the CSV cannot be decoded": {func(objects []map[string]any) []map[string]any {
			objects[0]["spec"].(map[string]any)["version"] = "latest"
			return objects
		}, "operator alpha.v1.0.0: ClusterServiceVersion alpha.v1.0.0 of its bundle cannot be decoded: "},
		"an object has no name": {func(objects []map[string]any) []map[string]any {
			return append(objects, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"})
		}, "operator alpha.v1.0.0: a ConfigMap of its bundle has no name"},
		"an object of another kind has no apiVersion": {func(objects []map[string]any) []map[string]any {
			return append(objects, map[string]any{"kind": "Gizmo", "metadata": map[string]any{"name": "g"}})
		}, "operator alpha.v1.0.0: Gizmo g of its bundle has no apiVersion"},
	} {
		for _, asProperties := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", as properties ", asProperties), func(t *testing.T) {
				w := newWorld(t)
				w.serveObjects(t, "", asProperties, c.change(alphaObjects(t)))
				require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
				w.run(t, time.Minute)
				require.Empty(t, w.plans())
				got := unpackFailed(w)
				require.True(t, strings.HasPrefix(got, create.ReasonErrorPreventedUnpacking+": "+c.want), got)
				for _, e := range w.driver.Events {
					require.False(t, e.Diagnostic != nil && e.Diagnostic.Target.Namespace == "", "%v", e)
				}
				w.requireNothingIsAsked(t)

				w.serveObjects(t, "", asProperties, alphaObjects(t))
				require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) { s.Labels["poke"] = "1" }))
				w.run(t, 5*time.Minute)
				w.requireInstalled(t, "alpha")
				require.Empty(t, unpackFailed(w))
			})
		}
	}
}

// TestABundleWithAnUnreadableObjectIsNotInstalled checks that no object of a bundle is left out silently.
func TestABundleWithAnUnreadableObjectIsNotInstalled(t *testing.T) {
	for asProperties, want := range map[bool]string{
		false: "operator alpha.v1.0.0: object 2 of its bundle is nil or has no kind",
		true:  "operator alpha.v1.0.0: property at index 3 of type olm.bundle.object: the object has no kind",
	} {
		w := newWorld(t)
		w.serveObjects(t, "", asProperties, append(alphaObjects(t), map[string]any{"metadata": map[string]any{"name": "x"}}))
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, time.Minute)
		require.Empty(t, w.plans())
		require.Equal(t, create.ReasonErrorPreventedUnpacking+": "+want, unpackFailed(w))
		w.requireNothingIsAsked(t)
	}
}

// TestObjectsWithoutAGroupAreInstalled: a bundle names the kinds of its objects without their groups, as OLM accepts
// it.
func TestObjectsWithoutAGroupAreInstalled(t *testing.T) {
	for _, asProperties := range []bool{false, true} {
		w := newWorld(t)
		objects := alphaObjects(t)
		for _, values := range objects {
			apiVersion := values["apiVersion"].(string)
			values["apiVersion"] = apiVersion[strings.LastIndex(apiVersion, "/")+1:]
		}
		role := map[string]any{"apiVersion": "v1", "kind": "Role", "metadata": map[string]any{"name": "extra"}, "rules": []any{}}
		w.serveObjects(t, "", asProperties, append(objects, role))
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, 5*time.Minute)
		w.requireInstalled(t, "alpha")
		require.Equal(t, "alpha.v1.0.0 Succeeded", w.phases())
	}
}

// TestAClusterServiceVersionOfAnyGroupIsInstalled: the apiVersion of the ClusterServiceVersion in a bundle is not the
// one that the API server serves, as in bundles of early releases. OLM recognizes a ClusterServiceVersion by its kind.
func TestAClusterServiceVersionOfAnyGroupIsInstalled(t *testing.T) {
	for _, apiVersion := range []string{"app.coreos.com/v1alpha1", "operators.coreos.com/v1", "v1", "/v1alpha1"} {
		for _, asProperties := range []bool{false, true} {
			w := newWorld(t)
			objects := alphaObjects(t)
			objects[0]["apiVersion"] = apiVersion
			w.serveObjects(t, "", asProperties, objects)
			require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
			w.run(t, 5*time.Minute)
			require.Empty(t, unpackFailed(w), apiVersion)
			w.requireInstalled(t, "alpha")
		}
	}
}

// TestAPlanThatIsTooLarge: the bundle is unpacked from its image if it has one, and its steps refer to the ConfigMap.
// Without an image no plan is made, and the Subscription names the size and the largest step.
func TestAPlanThatIsTooLarge(t *testing.T) {
	large := func(t *testing.T) []map[string]any {
		return append(alphaObjects(t), map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "big"},
			"data": map[string]any{"x": strings.Repeat("x", 700<<10)}}, map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "bigger"}, "data": map[string]any{"x": strings.Repeat("x", 720<<10)}})
	}
	t.Run("without an image", func(t *testing.T) {
		w := newWorld(t)
		w.serveObjects(t, "", false, large(t))
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, time.Minute)
		require.Empty(t, w.plans())
		require.Regexp(t, `^PlanTooLarge: the plan's steps take 14\d{5} bytes, more than 1048576; `+
			`the largest are ConfigMap bigger \(7\d{5} bytes\), ConfigMap big \(`, unpackFailed(w))
		w.requireNothingIsAsked(t)
	})
	t.Run("with an image that nothing unpacks", func(t *testing.T) {
		w := newWorld(t)
		w.serveObjects(t, "registry.example.com/alpha@sha256:1", false, large(t))
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, time.Minute)
		require.Empty(t, w.plans())
		require.Equal(t, "BundleNotUnpacked: operator alpha.v1.0.0: the objects of bundle image registry.example.com/alpha@sha256:1 are not known, "+
			"and the controller has no images to unpack it with", unpackFailed(w))
		w.requireNothingIsAsked(t)
	})
	t.Run("with an image", func(t *testing.T) {
		const image = "registry.example.com/alpha@sha256:1"
		w := newWorld(t)
		w.olm.InstallPlan = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}
		w.serveObjects(t, image, false, large(t))
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		w.run(t, time.Minute)
		require.Empty(t, w.plans())
		s := w.status("alpha")
		require.Equal(t, corev1.ConditionTrue, s.GetCondition(v1alpha1.SubscriptionBundleUnpacking).Status)
		jobs, err := olmcore.List[*batchv1.Job](t.Context(), w.cluster, "olm", nil)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		require.NoError(t, fake.Edit(w.cluster, "olm", jobs[0].Labels["operatorframework.io/bundle-unpack-ref"], func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{"olm.sourceImage": image}
			cm.Data = map[string]string{}
			for i, values := range large(t) {
				data, err := json.Marshal(values)
				require.NoError(t, err)
				cm.Data[fmt.Sprintf("%d.json", i)] = string(data)
			}
		}))
		after := jobs[0].DeepCopy()
		after.Status.Conditions = []batchv1.JobCondition{{
			Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.cluster.Now())}}
		require.NoError(t, w.cluster.UpdateStatus(after))
		w.run(t, 5*time.Minute)
		w.requireInstalled(t, "alpha")
		require.Empty(t, unpackFailed(w))
		plans := w.plans()
		require.Len(t, plans, 1)
		require.False(t, slices.ContainsFunc(plans[0].Status.Plan, func(s *v1alpha1.Step) bool { return len(s.Resource.Manifest) > 1000 }))
		w.requireNothingIsAsked(t)
	})
}
