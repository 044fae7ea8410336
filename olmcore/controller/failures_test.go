// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// failing is an Executor whose writes all fail.
type failing struct{ err error }

func (x failing) Do(context.Context, olmcore.Action) error { return x.err }

// TestWritesToMissingObjectsAreRetriedWithoutAnError checks which failed writes Run returns as an error, and that the
// others are retried with backoff.
func TestWritesToMissingObjectsAreRetriedWithoutAnError(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "1"}}
	after := pod.DeepCopy()
	after.Labels = map[string]string{"a": "b"}
	update, create := olmcore.UpdateOf(pod, after, olmcore.Cause{Reason: "R"}), olmcore.CreateOf(pod.DeepCopy(), olmcore.Cause{Reason: "R"})
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "a", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		action  olmcore.Action
		err     error
		isError bool
	}{
		"an update of an object that is gone":     {update, apierrors.NewNotFound(pods, "a"), false},
		"a create in a namespace that is gone":    {create, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), false},
		"a create in a namespace that terminates": {create, terminating, false},
		"a create that finds something else gone": {create, apierrors.NewNotFound(pods, "a"), true},
		"a kind that is not served":               {update, apierrors.NewNotFound(pods, ""), true},
		"a missing permission":                    {update, apierrors.NewForbidden(pods, "a", errors.New("no")), true},
		"an unknown error":                        {update, errors.New("no"), true},
	} {
		t.Run(name, func(t *testing.T) {
			reconcile := func(context.Context, olmcore.Reader, types.NamespacedName, time.Time, olmcore.LastResults) (olmcore.Result, error) {
				return olmcore.Result{Actions: []olmcore.Action{test.action}}, nil
			}
			r := &Runner{Executor: failing{test.err}, Controller: Controller{Reconcile: reconcile}}
			now := time.Now()
			for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
				again, err := r.Run(t.Context(), types.NamespacedName{Name: "a"}, now)
				if test.isError {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, want*time.Second, again)
				now = now.Add(again)
			}
		})
	}
	gone := &olmcore.ActionError{Action: update, Err: apierrors.NewNotFound(pods, "a")}
	require.True(t, isMoot(errors.Join(gone, gone)))
	require.False(t, isMoot(errors.Join(gone, &olmcore.ActionError{Action: update, Err: errors.New("no")})))
}
