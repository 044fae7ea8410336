// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

// unpackingAgain is the controller of plans, with what unpacks lost bundles.
func unpackingAgain(config installplan.Config) fake.Controller {
	c := plans(config)
	c.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
		in, err := installplan.Gather(ctx, r, key, config)
		if err != nil {
			return olmcore.Result{}, err
		}
		in.Now, in.LastRun = now, last
		result, err := reconcileResult(in)
		if err != nil {
			return olmcore.Result{}, err
		}
		lost, err := lostBundles(in)
		for _, lookup := range lost {
			in, err := unpack.Gather(ctx, r, key.Namespace, lookup, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			out, err := unpack.Bundle(in)
			if err != nil {
				return olmcore.Result{}, err
			}
			result.Actions = append(result.Actions, out.Actions...)
			result.Requeue(out.RequeueAfter)
		}
		return result, err
	}
	return c
}

// TestALostBundleIsUnpackedAgain: a plan that waits for approval lost what it
// refers to; it is unpacked once more, and what was approved is installed.
func TestALostBundleIsUnpackedAgain(t *testing.T) {
	for name, lose := range map[string]func(c *fake.Cluster, cm *corev1.ConfigMap) error{
		"the ConfigMap is gone": func(c *fake.Cluster, cm *corev1.ConfigMap) error { return c.Delete(olmcore.RefOf(cm).Unversioned()) },
		"its content is gone": func(c *fake.Cluster, cm *corev1.ConfigMap) error {
			return fake.Edit(c, "olm", cm.Name, func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, cm := imageOf(t, rich())
			cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			c := world(t, &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, cm, userSubscription("rich", manual))
			config := things
			config.OPMImage, config.UtilImage = "opm:1", "util:1"
			d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), config), unpackingAgain(config)}}
			require.NoError(t, d.Settle(t.Context()))
			p := onlyPlan(t, c)
			require.Equal(t, requiresApproval, p.Status.Phase)
			require.Len(t, p.Status.BundleLookups, 1)
			require.Equal(t, bundleImage, p.Status.BundleLookups[0].Path)
			require.Empty(t, p.Status.BundleLookups[0].Conditions, "it is unpacked")

			require.NoError(t, lose(c, fake.Find[*corev1.ConfigMap](c, "olm", bundleName)))
			d.Controllers = d.Controllers[1:]
			d = &fake.Driver{Cluster: c, Controllers: d.Controllers}
			require.NoError(t, d.RunFor(t.Context(), time.Minute))
			job := fake.Find[*batchv1.Job](c, "olm", bundleName)
			require.NotNil(t, job, "it is unpacked again")
			require.NoError(t, fake.Edit(c, ns, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			require.Equal(t, failed, onlyPlan(t, c).Status.Phase, "nothing is applied without it")
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, ns, "rich.v1"))

			require.NoError(t, fake.Edit(c, "olm", bundleName, func(have *corev1.ConfigMap) {
				have.Annotations, have.BinaryData = cm.Annotations, cm.BinaryData
			}))
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			require.Equal(t, complete, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
		})
	}
}

// TestLostBundles are those that an image is known of and that the plan is still
// going to need.
func TestLostBundles(t *testing.T) {
	o, cm := imageOf(t, rich())
	base := filledPlan(t, o, cm).DeepCopy()
	started(0)(base)
	for name, c := range map[string]struct {
		change func(in *installplan.Input)
		lost   bool
	}{
		"absent":           {change: func(in *installplan.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]() }, lost: true},
		"broken":           {change: func(in *installplan.Input) { in.ConfigMaps.Items[0].BinaryData["000.json"] = []byte("?") }, lost: true},
		"empty":            {change: func(in *installplan.Input) { in.ConfigMaps.Items[0].BinaryData = nil }, lost: true},
		"there":            {},
		"of other content": {change: func(in *installplan.Input) { in.ConfigMaps.Items[0].BinaryData["x"] = zipped(t, "x") }},
		"of an unknown path": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.BundleLookups[0].Path = olmcore.Found[*corev1.ConfigMap](), "other"
		}},
		"of no catalog": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.BundleLookups[0].CatalogSourceRef = olmcore.Found[*corev1.ConfigMap](), nil
		}},
		"of a finished plan": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.Phase, in.InstallPlan.Finalizers = olmcore.Found[*corev1.ConfigMap](), complete, nil
		}},
		"of no lookup": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.BundleLookups = olmcore.Found[*corev1.ConfigMap](), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(base.DeepCopy(), func(in *installplan.Input) {
				in.ConfigMaps, in.Config = olmcore.Found[*corev1.ConfigMap](cm.DeepCopy()), things
			})
			if c.change != nil {
				c.change(&in)
			}
			lost, err := lostBundles(in)
			require.NoError(t, err)
			if !c.lost {
				require.Empty(t, lost)
				return
			}
			want, err := bundle.NewLookup(o, noon)
			require.NoError(t, err)
			same(t, []v1alpha1.BundleLookup{want}, lost)
		})
	}
	_, err := lostBundles(installplan.Input{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}
