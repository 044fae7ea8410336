// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// TestNothingIsCreatedInANamespaceThatIsBeingDeleted: at whichever action of an installation the deletion begins, while
// the objects of the namespace are still there.
func TestNothingIsCreatedInANamespaceThatIsBeingDeleted(t *testing.T) {
	said := map[string]bool{}
	doomedAfter := func(t *testing.T, n int, images bool) (began bool) {
		w := newWorld(t)
		if images {
			w.olm.InstallPlan = installplan.Config{OPMImage: "opm:1", UtilImage: "util:1"}
			w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
				answer, err := w.resolve(ctx, r, request)
				for i := range answer.Operators {
					answer.Operators[i].Catalog = types.NamespacedName{Namespace: namespace, Name: "own"}
					answer.Operators[i].Bundle = olmcore.Bundle{Image: "registry.example.com/alpha-bundle:1"}
				}
				return answer, err
			}
		}
		require.NoError(t, w.cluster.Create(&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
			Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/own:latest",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}},
		}))
		require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
		actions := 0
		w.driver.AfterAction = func(e controller.Event) error {
			if actions++; actions == n {
				began = true
				return w.cluster.Delete(olmcore.RefOf(fake.Find[*corev1.Namespace](w.cluster, "", namespace)))
			}
			return nil
		}
		for range 40 {
			_, err := w.driver.Round(t.Context())
			require.NoError(t, err)
			if began {
				w.driver.Events = nil // what was decided before may be refused
				break
			}
			require.NoError(t, w.cluster.Settle())
			w.cluster.Advance(time.Second)
		}
		for range 3 { // without Settle nothing of the namespace goes
			_, err := w.driver.Round(t.Context())
			require.NoError(t, err)
		}
		for _, e := range w.driver.Events {
			if e.Err != nil {
				require.NotContains(t, e.Err.Error(), "is being terminated", "%d: %s", n, e)
			}
			if e.Diagnostic != nil && e.Diagnostic.Reason == "NamespaceTerminating" {
				said[e.Controller] = true
			}
		}
		return began
	}
	for _, images := range []bool{false, true} {
		for n := 1; doomedAfter(t, n, images); n++ {
		}
	}
	require.Equal(t, map[string]bool{"subscription": true, "installplan": true, "csv": true, "condition": true}, said, "who had something to create")
}
