// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// deniedWorld has a plan whose ClusterRoles are refused until the returned function is called, and the times of the
// tries by object.
func deniedWorld(t *testing.T, refusal func(name string) error) (w *world, tries map[string][]time.Time, allow func()) {
	w, tries = newWorld(t), map[string][]time.Time{}
	w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if verb != olmcore.VerbCreate || target.Kind != "ClusterRole" || !strings.HasPrefix(target.Name, "alpha") {
			return nil
		}
		tries[target.Name] = append(tries[target.Name], w.cluster.Now())
		return refusal(target.Name)
	}
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	return w, tries, func() { w.cluster.Authorize = nil }
}

func forbid(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, name, errors.New("no right"))
}

// TestADeniedStepIsRetriedWithBackoff checks that a plan tries a step that it may not apply less and less often, keeps
// its status, and completes soon after the permission is granted.
func TestADeniedStepIsRetriedWithBackoff(t *testing.T) {
	w, tries, allow := deniedWorld(t, forbid)
	require.NoError(t, w.driver.RunFor(t.Context(), time.Minute))
	since := len(w.driver.Events)
	require.NoError(t, w.driver.RunFor(t.Context(), time.Hour))
	plan := w.plans()[0]
	require.Equal(t, v1alpha1.InstallPlanPhaseInstalling, plan.Status.Phase, "a missing permission does not fail the plan")
	for _, e := range w.driver.Events[since:] {
		_, isStatus := e.Action.(olmcore.UpdateStatus)
		require.False(t, isStatus && e.Controller == controllers.InstallPlan, "the status stays as it is: %s", e)
	}
	require.NotEmpty(t, tries)
	for name, at := range tries {
		require.Less(t, len(at), 75, name)
		for i := range at[1:] {
			require.LessOrEqual(t, at[i+1].Sub(at[i]), 65*time.Second, name)
		}
	}
	allow()
	require.NoError(t, w.driver.RunFor(t.Context(), 2*time.Minute))
	w.requireInstalled(t, "alpha")
}

// TestAStepThatAWebhookDeniesFailsInTime checks that the pauses between the tries do not move the deadline of a plan.
func TestAStepThatAWebhookDeniesFailsInTime(t *testing.T) {
	w, tries, _ := deniedWorld(t, func(name string) error {
		err := forbid(name).(*apierrors.StatusError)
		err.ErrStatus.Message = `admission webhook "policy.example.com" denied the request: no`
		return err
	})
	start := w.cluster.Now()
	require.NoError(t, w.driver.RunFor(t.Context(), 9*time.Minute))
	require.Equal(t, v1alpha1.InstallPlanPhaseInstalling, w.plans()[0].Status.Phase)
	require.NoError(t, w.driver.RunFor(t.Context(), 2*time.Minute))
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, w.plans()[0].Status.Phase)
	for name, at := range tries {
		require.Less(t, len(at), 20, name)
		require.Less(t, at[len(at)-1].Sub(start), 11*time.Minute)
	}
}
