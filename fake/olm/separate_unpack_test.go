// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// unreadableNamespace fails each read of one namespace while isRefused is set.
type unreadableNamespace struct {
	olmcore.Reader
	name      string
	isRefused *bool
}

func (r unreadableNamespace) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if namespace == r.name && *r.isRefused {
		return nil, errors.New("no access to namespace " + namespace)
	}
	return r.Reader.Get(ctx, gvk, namespace, name)
}

func (r unreadableNamespace) List(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector,
) ([]olmcore.Object, error) {
	if namespace == r.name && *r.isRefused {
		return nil, errors.New("no access to namespace " + namespace)
	}
	return r.Reader.List(ctx, gvk, namespace, selector)
}

// TestUnpackingThatFailsForOneSetHoldsUpNoOther checks that links is installed and upgraded while the bundle of mesh
// cannot be unpacked, and that mesh is installed once it can.
func TestUnpackingThatFailsForOneSetHoldsUpNoOther(t *testing.T) {
	const elsewhere = "elsewhere"
	for name, wrong := range map[string]struct {
		catalog   types.NamespacedName
		condition string // BundleUnpackFailed of mesh
		message   string // the end of the Diagnostic, if there is one
	}{
		"its catalog cannot be read": {
			catalog: types.NamespacedName{Namespace: elsewhere, Name: "community"},
			message: "no access to namespace elsewhere",
		},
		"its version names no catalog": {condition: "ErrorPreventedUnpacking"},
	} {
		t.Run(name, func(t *testing.T) {
			w, isWrong := newWorld(t), true
			w.olm.InstallPlan = installplan.Config{SeparatePlans: true, OPMImage: "opm:1", UtilImage: "util:1"}
			w.heads = map[string]int{"links": 1, "mesh": 1}
			w.olm.Resolve = func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
				answer, err := w.resolve(ctx, r, request)
				for i := range answer.Operators {
					if o := &answer.Operators[i]; o.Package == "mesh" {
						if o.Bundle = (olmcore.Bundle{Image: imageOf(o.Name)}); isWrong {
							o.Catalog = wrong.catalog
						}
					}
				}
				return answer, err
			}
			for i := range w.driver.Controllers {
				reconcile := w.driver.Controllers[i].Reconcile
				w.driver.Controllers[i].Reconcile = func(
					ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
				) (olmcore.Result, error) {
					return reconcile(ctx, unreadableNamespace{r, elsewhere, &isWrong}, key, now, last)
				}
			}
			require.NoError(t, w.subscribe("links", v1alpha1.ApprovalAutomatic))
			require.NoError(t, w.subscribe("mesh", v1alpha1.ApprovalAutomatic))
			w.run(t, 2*time.Minute)
			w.requireInstalled(t, "links")
			w.heads["links"]++
			w.restart(t)
			w.run(t, 20*time.Minute)
			w.requireInstalled(t, "links")
			mesh := fake.Find[*v1alpha1.Subscription](w.cluster, namespace, "mesh")
			require.Equal(t, wrong.condition, mesh.Status.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed).Reason)
			require.Equal(t, wrong.message != "", slices.ContainsFunc(w.driver.Events, func(e controller.Event) bool {
				d := e.Diagnostic
				return d != nil && d.Reason == subscription.ReasonErrorPreventedUnpacking && d.Target.Name == "mesh" &&
					strings.HasSuffix(d.Message, wrong.message)
			}))

			isWrong = false
			w.touch(t)
			w.olm.CatalogsChanged()
			w.run(t, 6*time.Minute)
			w.finishUnpacking(t, "mesh", 1)
			w.run(t, 2*time.Minute)
			w.requireInstalled(t, "links", "mesh")
		})
	}
}
