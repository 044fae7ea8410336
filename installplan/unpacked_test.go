// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// filledPlan returns the plan that Create fills for the operator of an image.
func filledPlan(t *testing.T, o olmcore.Operator, cm *corev1.ConfigMap) *v1alpha1.InstallPlan {
	c := world(t, cm, userSubscription(o.Package))
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), installplan.Config{})}}
	require.NoError(t, d.Settle(t.Context()))
	return onlyPlan(t, c)
}

// TestStepsOfAnImageAreReferences has cases of OLM.
//
// OLM's case: steps of an image refer to its ConfigMap.
func TestStepsOfAnImageAreReferences(t *testing.T) {
	o, cm := imageOf(t, rich())
	p := filledPlan(t, o, cm)
	for _, s := range p.Status.Plan {
		var ref map[string]string
		require.NoError(t, json.Unmarshal([]byte(s.Resource.Manifest), &ref))
		digest := ref["digest"]
		require.Len(t, digest, 64)
		delete(ref, "digest")
		want := map[string]string{"kind": "ConfigMap", "name": bundleName, "namespace": "olm", "catalogSourceName": "cool",
			"catalogSourceNamespace": "olm", "replaces": "", "properties": ""}
		if s.Resource.Kind == "ClusterServiceVersion" {
			want["properties"] = `{"properties":[{"type":"olm.package","value":{"packageName":"x"}}]}`
		}
		require.Equal(t, want, ref)
	}
	inline, _, err := create.StepsFromBundle(rich(), ns)
	require.NoError(t, err)
	names := func(steps []*v1alpha1.Step) map[string]int {
		out := map[string]int{}
		for _, s := range steps {
			out[s.Resource.Group+s.Resource.Version+s.Resource.Kind+s.Resource.Name]++
		}
		return out
	}
	require.True(t, maps.Equal(names(inline), names(p.Status.Plan)))
}

// TestAPlanInstallsWhatWasPlanned: content that is gone, broken or another is
// never applied.
func TestAPlanInstallsWhatWasPlanned(t *testing.T) {
	for name, c := range map[string]struct {
		change func(cm *corev1.ConfigMap)
		step   func(s *v1alpha1.Step)
		want   string
	}{
		"R4: content that cannot be decoded": {change: func(cm *corev1.ConfigMap) { cm.BinaryData["000.json"] = []byte("?") },
			want: "error loading unpacked bundle configmap for ref {ConfigMap " + bundleName + " olm cool olm  {\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"x\"}}]}}: failed to extract bundle from configmap - 000.json: unexpected EOF"},
		"R4: content without a version": {change: func(cm *corev1.ConfigMap) { cm.BinaryData = nil },
			want: "failed to extract bundle from configmap - bundle has no ClusterServiceVersion"},
		"R5: properties that are none": {step: func(s *v1alpha1.Step) {
			s.Resource.Manifest = `{"kind":"ConfigMap","name":"` + bundleName + `","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","properties":"{"}`
		}, want: `failed to load bundle properties for "rich.v1": failed to unmarshal properties annotation: unexpected end of JSON input`},
		"R6: an object that it does not hold": {step: func(s *v1alpha1.Step) { s.Resource.Name = "other" }, want: "couldn't find unpacked step for "},
		"R7: other content": {change: func(cm *corev1.ConfigMap) { cm.BinaryData["x"] = zipped(t, "x") },
			want: "bundle content of rich.v1 changed since the plan was made"},
	} {
		t.Run(name, func(t *testing.T) {
			o, cm := imageOf(t, rich())
			p := filledPlan(t, o, cm).DeepCopy()
			started(0)(p)
			if c.change != nil {
				cm = cm.DeepCopy()
				c.change(cm)
			}
			if c.step != nil {
				for _, s := range p.Status.Plan {
					if s.Resource.Kind == "ConfigMap" {
						c.step(s)
					}
				}
			}
			in := input(p, func(in *installplan.Input) { in.ConfigMaps, in.Config = olmcore.Found[*corev1.ConfigMap](cm), things })
			got := reconcile(t, in)
			require.Contains(t, statusOf(in, got).Message, c.want)
			for _, a := range got.Actions {
				_, target, _ := a.Describe()
				require.Equal(t, "InstallPlan", target.Kind)
			}
		})
	}
}

// TestPublishedBundlesAreInstalledFromTheirImages: references take the place of
// manifests, some of which would not fit into one plan.
func TestPublishedBundlesAreInstalledFromTheirImages(t *testing.T) {
	t.Parallel()
	var tooLarge []string
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			subs := []*v1alpha1.Subscription{subscription("sub", func(s *v1alpha1.Subscription) { s.Spec.Package = b.Operator })}
			if inline := planned(t, createInput(subs, publishedOperator(b))); slices.Contains(reasons(inline.Result), create.ReasonPlanTooLarge) {
				require.Empty(t, inline.Actions)
				tooLarge = append(tooLarge, b.Operator)
			}
			o, cm := imageOf(t, publishedOperator(b))
			size := 0
			for _, data := range cm.BinaryData {
				size += len(data)
			}
			require.Less(t, size, 1<<20, "it fits into one ConfigMap")
			c := world(t, append(monitoring(), cm, &v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sub"}, Spec: &v1alpha1.SubscriptionSpec{Package: b.Operator},
			})...)
			for _, one := range []fake.Controller{makers(installs(o), installplan.Config{}), plans(installplan.Config{})} {
				require.NoError(t, (&fake.Driver{Cluster: c, Controllers: []fake.Controller{one}}).Settle(t.Context()))
			}
			p := onlyPlan(t, c)
			require.Equal(t, complete, p.Status.Phase, p.Status.Message)
		})
	}
	require.Equal(t, []string{"stackgres-community"}, tooLarge, "their manifests do not fit")
}

// TestAPlanHealsWhenItsBundleComesBack with the content that was planned, and
// with no other.
func TestAPlanHealsWhenItsBundleComesBack(t *testing.T) {
	o, cm := imageOf(t, rich())
	c := world(t, cm, userSubscription("rich"))
	making := makers(installs(o), things)
	require.NoError(t, (&fake.Driver{Cluster: c, Controllers: []fake.Controller{making}}).Settle(t.Context()))
	back := fake.Find[*corev1.ConfigMap](c, "olm", bundleName).DeepCopy()
	require.NoError(t, c.Delete(olmcore.RefOf(back).Unversioned()))
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(things)}}
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	require.Equal(t, failed, onlyPlan(t, c).Status.Phase)
	require.Contains(t, onlyPlan(t, c).Status.Message, "error finding unpacked bundle configmap")

	back.UID, back.ResourceVersion, back.CreationTimestamp = "", "", metav1.Time{}
	other := back.DeepCopy()
	other.BinaryData["more"] = zipped(t, "more")
	require.NoError(t, c.Create(other))
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	require.Equal(t, failed, onlyPlan(t, c).Status.Phase, "other content")

	require.NoError(t, fake.Edit(c, "olm", bundleName, func(cm *corev1.ConfigMap) { cm.BinaryData = back.BinaryData }))
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	require.Equal(t, complete, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
}
