// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"errors"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// clockRounds is the number of calls of each manager until both converge while time stands still.
const clockRounds = 40

var clockPauses = []time.Duration{time.Second, 20 * time.Second, 70 * time.Second, 4 * time.Minute}

// TestManagersWithDifferentClocksConverge runs two managers in turn whose clocks differ by up to the tolerance, while
// users interfere and writes of a kind are rejected. While time stands still, both stop writing.
func TestManagersWithDifferentClocksConverge(t *testing.T) {
	inline := Rich()
	image, bundle := ImageOf(t, inline)
	bundle.UID, bundle.ResourceVersion, bundle.CreationTimestamp = "", "", metav1.Time{}
	config := Things
	config.OPMImage, config.UtilImage = Images.OPMImage, Images.UtilImage
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		objects := []olmcore.Object{&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, bundle,
			UserSubscription("rich"), UserSubscription("b", Manual)}
		if Maybe(t, "over objects that are there") {
			objects = append(objects, existing()...)
		}
		c, err := NewWorld(objects...)
		require.NoError(t, err)
		o := inline
		if Maybe(t, "from an image") {
			o = image
		}
		var refused refusal
		c.Authorize = refused.of
		clocks := invariant.TwoClocks{
			Cluster: c, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
		}
		for who := range clocks.Managers {
			clocks.Managers[who] = []controller.Controller{makers(Installs(o, Operator("b")), config), unpackingAgain(config), sweeps(config)}
		}
		d := &fake.Driver{Cluster: c, Controllers: clocks.Managers[0]}
		steps := interferences(c, func(duration time.Duration) { require.NoError(t, d.RunFor(context.Background(), duration)) })
		steps["refuse"] = refused.draw
		steps["refuse for minutes"] = func(t *rapid.T) {
			refused.draw(t)
			require.NoError(t, clocks.RunFor(context.Background(), 12*time.Minute, 30*time.Second))
		}
		second := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "second"}}
		steps["a second OperatorGroup"] = func(t *rapid.T) { // with which nothing can be installed
			if err := c.Create(second.DeepCopy()); err != nil {
				require.NoError(t, c.Delete(olmcore.RefOf(second).Unversioned()))
			}
		}
		steps["agree"] = func(t *rapid.T) {
			require.NoError(t, clocks.Agree(context.Background()))
			require.NoError(t, c.RunFor(rapid.SampledFrom(clockPauses).Draw(t, "pause")))
			if rapid.IntRange(0, 3).Draw(t, "slowly") == 0 {
				require.NoError(t, clocks.RunFor(context.Background(), 70*time.Second, 5*time.Second))
			}
		}
		t.Repeat(steps)
		passed += clocks.Passed
	})
	t.Logf("%d results waited for a deadline that the other clock had passed", passed)
	require.NotZero(t, passed, "no decision depends on a clock")
}

// refusal rejects every write of a kind with an error.
type refusal struct {
	kind string
	err  error
}

func (r *refusal) draw(t *rapid.T) {
	r.kind = rapid.SampledFrom([]string{"", "Role", "ConfigMap", "Service"}).Draw(t, "refused")
	r.err = rapid.SampledFrom([]error{
		apierrors.NewInternalError(errors.New("etcd does not answer")),
		apierrors.NewInternalError(errors.New("failed calling webhook \"w\": timeout")),
		apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "thing", errors.New("no")),
		apierrors.NewBadRequest("no"),
	}).Draw(t, "error")
}

func (r *refusal) of(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
	if target.Kind != r.kind {
		return nil
	}
	return r.err
}
