// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func everyPlan(t require.TestingT, c *fake.Cluster) []*v1alpha1.InstallPlan {
	all, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), c, ns, nil)
	require.NoError(t, err)
	return all
}

// kept are the kinds that the users of the storm do not delete.
var kept = []string{"Namespace", "OperatorGroup", "Subscription", "CatalogSource", "CustomResourceDefinition"}

// interferences are what users do to a namespace while it is installed into.
func interferences(c *fake.Cluster, run func(time.Duration)) map[string]func(*rapid.T) {
	anyObject := func(t *rapid.T) olmcore.Object { return rapid.SampledFrom(c.Objects()).Draw(t, "object") }
	edits := 0
	// What does not exist any more is not edited, and that is no error here.
	return map[string]func(*rapid.T){
		"run": func(t *rapid.T) { run(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second) },
		"approve": func(t *rapid.T) {
			approved := maybe(t, "approved")
			for _, p := range everyPlan(t, c) {
				_ = fake.Edit(c, ns, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = approved })
			}
		},
		"change approval": func(t *rapid.T) {
			approval := rapid.SampledFrom([]v1alpha1.Approval{"Manual", "Automatic", ""}).Draw(t, "approval")
			_ = fake.Edit(c, ns, rapid.SampledFrom([]string{"rich", "b"}).Draw(t, "who"), func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = approval })
		},
		"delete": func(t *rapid.T) {
			if o := anyObject(t); !slices.Contains(kept, olmcore.KeyOf(o).Kind) && o.GetName() != bundleName {
				_ = c.Delete(olmcore.RefOf(o).Unversioned())
			}
		},
		"lose the bundle": func(*rapid.T) {
			_ = fake.Edit(c, "olm", bundleName, func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
		},
		"edit": func(t *rapid.T) {
			edits++
			_ = c.Edit(olmcore.KeyOf(anyObject(t)), func(o olmcore.Object) { o.SetAnnotations(map[string]string{"edit": fmt.Sprint(edits)}) })
		},
		"wipe": func(t *rapid.T) {
			for _, p := range everyPlan(t, c) {
				_ = c.Edit(olmcore.KeyOf(p), func(o olmcore.Object) {
					o.SetOwnerReferences(nil)
					o.SetLabels(nil)
				})
			}
		},
	}
}

// TestUsersMayInterfere: they approve and take it back, delete and edit whatever they like while writes fail; once they
// leave it alone, every plan that a Subscription refers to is Complete and owned by it.
func TestUsersMayInterfere(t *testing.T) {
	inline := rich()
	image, bundle := imageOf(t, inline)
	bundle.UID, bundle.ResourceVersion, bundle.CreationTimestamp = "", "", metav1.Time{}
	config := things
	config.OPMImage, config.UtilImage = images.OPMImage, images.UtilImage
	rapid.Check(t, func(t *rapid.T) {
		objects := []olmcore.Object{&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, bundle,
			userSubscription("rich"), userSubscription("b", manual)}
		if maybe(t, "over objects that are there") {
			objects = append(objects, existing()...)
		}
		c, err := newWorld(objects...)
		require.NoError(t, err)
		faults(t, c)
		o := inline
		if maybe(t, "from an image") {
			o = image
		}
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o, operator("b")), config), unpackingAgain(config), sweeps(config)}}
		run := func(duration time.Duration) { require.NoError(t, d.RunFor(context.Background(), duration)) }
		t.Repeat(interferences(c, run))

		c.Recover()
		require.NoError(t, fake.Edit(c, "olm", bundleName, func(cm *corev1.ConfigMap) { cm.Annotations, cm.BinaryData = bundle.Annotations, bundle.BinaryData }))
		for range 3 {
			for _, p := range everyPlan(t, c) {
				require.NoError(t, fake.Edit(c, ns, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
			}
			run(10 * time.Minute)
		}
		run(10 * time.Minute)
		for _, p := range everyPlan(t, c) {
			for _, name := range []string{"rich", "b"} {
				if s := fake.Find[*v1alpha1.Subscription](c, ns, name); s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == p.UID {
					require.Equal(t, complete, p.Status.Phase, "%s: %s", p.Name, p.Status.Message)
					require.True(t, olmcore.OwnedBy(p, s.UID), "%s does not own %s", name, p.Name)
				}
			}
		}
	})
}
