// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// refusing is an API server that takes no Pods, and says so in other words each time.
type refusing struct {
	*fake.Cluster
	tries []time.Time
}

func (r *refusing) Do(ctx context.Context, a olmcore.Action) error {
	if verb, target, _ := a.Describe(); verb == olmcore.VerbCreate && target.Kind == "Pod" {
		r.tries = append(r.tries, r.Now())
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, target.Name, fmt.Errorf("request %d: %w", len(r.tries), errBroken))
	}
	return r.Cluster.Do(ctx, a)
}

// operate does what a controller does for a time: it reconciles after each write and
// at each deadline, and remembers what became of its last actions.
func operate(t *testing.T, c *fake.Cluster, x olmcore.Executor, config catalog.Config, d time.Duration) catalog.Assessment {
	var last olmcore.LastResults
	for until := c.Now().Add(d); ; {
		require.NoError(t, c.Settle())
		in, err := catalog.Gather(t.Context(), c, coolKey, config)
		require.NoError(t, err)
		in.Now, in.LastRun = c.Now(), last
		require.NoError(t, invariant.Laws(result, in))
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		if len(out.Actions) > 0 {
			last = olmcore.LastResultsOf(last, out.Actions, olmcore.Run(t.Context(), x, out.Actions), c.Now())
			continue
		}
		if !c.Now().Before(until) {
			return catalog.Assess(in)
		}
		next := until
		if at := c.Now().Add(out.RequeueAfter); out.RequeueAfter > 0 && at.Before(until) {
			next = at
		}
		require.NoError(t, c.RunFor(next.Sub(c.Now())))
	}
}

// TestAPodThatIsRefusedIsTriedAgainWithBackoff instead of a few times at once and
// then only by chance. What serves goes on serving.
func TestAPodThatIsRefusedIsTriedAgainWithBackoff(t *testing.T) {
	for name, serves := range map[string]bool{"the first Pod": false, "the Pod of a new spec": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, catalog.Config{}, cool())
			if serves {
				w.run(t, time.Minute)
				require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Image = "quay.io/example/catalog:v2" }))
			}
			api := &refusing{Cluster: w.Cluster}
			a := operate(t, w.Cluster, api, catalog.Config{}, time.Hour)
			require.Equal(t, serves, a.Ready == 1)
			require.Equal(t, catalog.ReasonBackOff, a.WaitingFor)
			require.Equal(t, catalog.ReasonPodRejected, a.Conditions[2].Reason)
			require.Contains(t, a.Conditions[2].Message, `pods "cool-`)
			require.Contains(t, a.Conditions[2].Message, "request "+strconv.Itoa(len(api.tries)-1), "the answer before the last one")
			var waits []time.Duration
			for i := 1; i < len(api.tries); i++ {
				waits = append(waits, api.tries[i].Sub(api.tries[i-1]))
			}
			// The second try goes with the write of the status.
			require.Equal(t, []time.Duration{0, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute}, waits[:6])
			require.Len(t, api.tries, 6+(3600-300)/300)

			a = operate(t, w.Cluster, w.Cluster, catalog.Config{}, 5*time.Minute)
			require.Equal(t, catalog.StateServing, a.State)
			require.Empty(t, a.WaitingFor)
			require.Equal(t, catalog.ReasonAsExpected, a.Conditions[2].Reason)
		})
	}
}
