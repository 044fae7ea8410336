// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

func TestEventIsOneLine(t *testing.T) {
	key := types.NamespacedName{Namespace: "olm", Name: "cool"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "3"}}
	remove := olmcore.DeleteOf(pod, olmcore.Cause{Reason: "NodeNotReady"})
	remove.GracePeriodSeconds, remove.PropagationPolicy = new(int64(0)), "Foreground"
	remove.As = &corev1.ObjectReference{Namespace: "olm", Name: "sa"}
	update := olmcore.UpdateStatusOf(pod, pod, olmcore.Cause{Reason: "R"})
	inferred := &olmcore.Transition{Type: "Phase", To: "Installing", Reason: "R", Certainty: olmcore.CertaintyInferred}
	failed := controller.Event{Controller: "c", Key: key, Action: update, Err: errors.New("boom")}
	ofCluster := controller.Event{Controller: "c", Key: types.NamespacedName{Name: "cool"}, Transition: inferred}
	ofNamespace := controller.Event{Controller: "c", Key: types.NamespacedName{Namespace: "olm"}}
	deleted := controller.Event{Controller: "c", Key: key, Action: remove}
	for want, e := range map[string]controller.Event{
		"c olm/cool: delete Pod ns/p uid=3 grace=0 foreground as olm/sa (NodeNotReady)": deleted,
		"c olm/cool: update status of Pod ns/p (R) failed: boom":                        failed,
		"c cool: Phase none -> Installing (R) inferred":                                 ofCluster,
		"c olm: nothing": ofNamespace,
	} {
		require.Equal(t, want, e.String())
	}
	require.True(t, strings.HasPrefix(controller.Format([]controller.Event{{At: noon}}), "12:00:00  "))
}
