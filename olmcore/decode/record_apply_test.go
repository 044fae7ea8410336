// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func TestApply(t *testing.T) {
	stored := func(uid types.UID, version, node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid, ResourceVersion: version},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	why := olmcore.Cause{Reason: "Test"}
	now := stored("1", "5", "a", "Pending")
	moved, running := stored("1", "5", "b", "Pending"), stored("1", "5", "a", "Running")
	update, status := olmcore.UpdateOf(now, moved, why), olmcore.UpdateStatusOf(now, running, why)
	deleted, byUID := olmcore.DeleteOf(now, why), olmcore.Delete{Target: olmcore.RefOf(now).Unversioned(), Cause: why}
	for name, tt := range map[string]struct {
		action  olmcore.Action
		current *corev1.Pod
		want    *corev1.Pod
		refused func(error) bool
	}{
		"create": {action: olmcore.CreateOf(stored("", "", "a", ""), why), want: stored("", "", "a", "")},
		"create what is there": {
			action: olmcore.CreateOf(stored("", "", "a", ""), why), current: now, refused: apierrors.IsAlreadyExists,
		},
		"update":                        {action: update, current: now, want: moved},
		"update of what is gone":        {action: update, refused: apierrors.IsNotFound},
		"update of another incarnation": {action: update, current: stored("2", "5", "a", ""), refused: apierrors.IsNotFound},
		"update of another version":     {action: update, current: stored("1", "6", "a", ""), refused: apierrors.IsConflict},
		"status":                        {action: status, current: now, want: running},
		"status of another version":     {action: status, current: stored("1", "6", "a", ""), refused: apierrors.IsConflict},
		"delete":                        {action: deleted, current: now},
		"delete of another version":     {action: deleted, current: stored("1", "6", "a", ""), refused: apierrors.IsConflict},
		"delete of any version":         {action: byUID, current: stored("1", "6", "a", "")},
		"delete of what is gone":        {action: deleted, refused: apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := olmcore.RecordOf(tt.action)
			require.NoError(t, err)
			before := tt.current.DeepCopy()
			var current olmcore.Object
			if tt.current != nil {
				current = tt.current
			}
			got, err := decode.Apply(r, current)
			require.Empty(t, cmp.Diff(before, tt.current), "what is there is left alone")
			if tt.refused != nil {
				require.True(t, tt.refused(err), "%v", err)
				return
			}
			require.NoError(t, err)
			if tt.want == nil {
				require.Nil(t, got)
				return
			}
			pod := got.(*corev1.Pod)
			pod.TypeMeta = metav1.TypeMeta{}
			require.Empty(t, cmp.Diff(tt.want, pod))
		})
	}
	_, err := decode.Apply(olmcore.Record{Verb: "replace", Target: olmcore.RefOf(now)}, now)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, err = decode.Apply(olmcore.Record{Verb: olmcore.VerbUpdate, Target: olmcore.RefOf(now)}, (*corev1.Pod)(nil))
	require.True(t, apierrors.IsNotFound(err))
}
