// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestShuffleReachesWhatPartsOfAnInputObserved, and leaves their settings alone.
func TestShuffleReachesWhatPartsOfAnInputObserved(t *testing.T) {
	type part struct {
		Pods  olmcore.Observed[*corev1.Pod]
		Order []string
	}
	var in struct {
		Part part
		Pods olmcore.Observed[*corev1.Pod]
	}
	var names []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		in.Pods.Items = append(in.Pods.Items, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		names = append(names, name)
	}
	in.Part = part{Pods: in.Pods, Order: names}
	out := invariant.Shuffle(in, 1)
	for _, list := range []olmcore.Observed[*corev1.Pod]{out.Pods, out.Part.Pods} {
		var got []string
		for _, p := range list.Items {
			got = append(got, p.Name)
		}
		require.ElementsMatch(t, names, got)
		require.NotEqual(t, names, got)
	}
	require.Equal(t, names, out.Part.Order)
}
