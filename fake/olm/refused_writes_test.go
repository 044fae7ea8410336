// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// kindOfWrite is what a policy refuses: one verb on one kind.
type kindOfWrite struct {
	verb olmcore.Verb
	kind string
}

// refusals are the errors with which an API server may refuse a write for good.
var refusals = map[string]func(target olmcore.Ref) error{
	"forbidden": func(target olmcore.Ref) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: target.Kind}, target.Name, errors.New("a policy says no"))
	},
	"internal error": func(olmcore.Ref) error { return apierrors.NewInternalError(errors.New("a webhook does not answer")) },
	"invalid": func(target olmcore.Ref) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: target.Kind}, target.Name, nil)
	},
}

// stagesOfLife are the stages of liveOn: operators are installed, upgraded, and one is deleted.
const stagesOfLife = 3

// liveOn installs operators, upgrades them and deletes one. refuse decides about each write. It returns the events of
// all, and those of the last hour, in which no user changes anything.
func liveOn(t require.TestingT, refuse func(stage int, verb olmcore.Verb, target olmcore.Ref) error) (all, last []controller.Event) {
	w, stage := newWorld(t), 0
	w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		return refuse(stage, verb, target)
	}
	require.NoError(t, fake.Edit(w.cluster, namespace, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil }))
	for _, pkg := range []string{"alpha", "delta", "epsilon"} {
		w.heads[pkg] = 1
		require.NoError(t, w.subscribe(pkg, v1alpha1.ApprovalAutomatic))
	}
	require.NoError(t, w.driver.RunFor(w.ctx, 15*time.Minute))

	stage = 1
	for pkg := range w.heads {
		w.heads[pkg] = 2
	}
	w.olm.CatalogsChanged()
	require.NoError(t, fake.Edit(w.cluster, namespace, "alpha", func(s *v1alpha1.Subscription) {
		metav1.SetMetaDataLabel(&s.ObjectMeta, "example.com/changed", "true")
	}))
	require.NoError(t, w.driver.RunFor(w.ctx, 30*time.Minute))

	stage = 2
	for kind, names := range map[string][]string{
		v1alpha1.SubscriptionKind:          {"alpha"},
		v1alpha1.ClusterServiceVersionKind: {csvName("alpha", 1), csvName("alpha", 2)},
	} {
		for _, name := range names {
			target := olmcore.Ref{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Namespace: namespace, Name: name}
			_ = w.cluster.Delete(target) // one of the versions is not there
		}
	}
	require.NoError(t, w.driver.RunFor(w.ctx, 30*time.Minute))

	since := len(w.driver.Events)
	require.NoError(t, w.driver.RunFor(w.ctx, time.Hour))
	return w.driver.Events, w.driver.Events[since:]
}

// writesOf counts the writes of events by verb and kind; with an effect, or all of them.
func writesOf(events []controller.Event, withEffect bool) map[kindOfWrite]int {
	counts := map[kindOfWrite]int{}
	for _, e := range events {
		if e.Action != nil && (e.Err == nil || !withEffect) {
			verb, target, _ := e.Action.Describe()
			counts[kindOfWrite{verb, target.Kind}]++
		}
	}
	return counts
}

// maxEffects is how many writes may have an effect in an hour in which something is refused. If the status of
// Subscriptions is refused, an InstallPlan that no Subscription references ends after some minutes, and a new one is
// created.
const maxEffects = 60

// TestRefusedWritesLeadToRest checks that the controllers do not change objects over and over, whichever writes the API
// server refuses for good, with which error, and from which time on.
func TestRefusedWritesLeadToRest(t *testing.T) {
	all, _ := liveOn(t, func(int, olmcore.Verb, olmcore.Ref) error { return nil })
	kinds := slices.SortedFunc(maps.Keys(writesOf(all, true)), func(a, b kindOfWrite) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.verb, b.verb))
	})
	require.Greater(t, len(kinds), 30)
	rapid.Check(t, func(t *rapid.T) {
		refused := rapid.SampledFrom(kinds).Draw(t, "refused")
		refusal := refusals[rapid.SampledFrom(slices.Sorted(maps.Keys(refusals))).Draw(t, "error")]
		from := rapid.IntRange(0, stagesOfLife-1).Draw(t, "from")
		_, last := liveOn(t, func(stage int, verb olmcore.Verb, target olmcore.Ref) error {
			if stage < from || refused != (kindOfWrite{verb, target.Kind}) {
				return nil
			}
			return refusal(target)
		})
		effects := writesOf(last, true)
		require.LessOrEqual(t, sumOf(effects), maxEffects, "%v", effects)
		require.Less(t, sumOf(writesOf(last, false)), 1000, fmt.Sprint(writesOf(last, false)))
	})
}

func sumOf(counts map[kindOfWrite]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// TestARejectedPlanStaysFailed checks that a plan does not start again and again if the message of the API server
// begins like one of the messages of a plan that was refused before anything was applied.
func TestARejectedPlanStaysFailed(t *testing.T) {
	_, last := liveOn(t, func(_ int, verb olmcore.Verb, target olmcore.Ref) error {
		if verb == olmcore.VerbCreate && target.Kind == "CustomResourceDefinition" {
			return refusals["invalid"](target)
		}
		return nil
	})
	require.Empty(t, writesOf(last, true))
	require.Equal(t, map[kindOfWrite]int{{olmcore.VerbCreate, "CustomResourceDefinition"}: 12}, writesOf(last, false),
		"both definitions are tried every 10 minutes")
}
