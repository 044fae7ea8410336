// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/internal/inputs"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func listed(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"}}
}

func TestValidateListNamesTheEntry(t *testing.T) {
	for want, list := range map[string]olmcore.Observed[*corev1.Pod]{
		"": olmcore.Found(listed("a", "x"), listed("a", "y")),
		"Pods has items of a read that was not completed": {Items: []*corev1.Pod{listed("a", "x")}},
		"Pods[1] is nil":                             olmcore.Found(listed("a", "x"), nil),
		"Pods[0].metadata.name is empty":             olmcore.Found(listed("a", "")),
		"Pods[2] is a/x, as is Pods[0]":              olmcore.Found(listed("a", "x"), listed("a", "y"), listed("a", "x")),
		`Pods[1].metadata.namespace is "b", not "a"`: olmcore.Found(listed("a", "x"), listed("b", "x")),
	} {
		err := inputs.ValidateList("Pods", list, inputs.InNamespace("a"))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(
		t,
		inputs.ValidateList("Pods", olmcore.Found(listed("a", "x")), inputs.Writable),
		"Pods[0].metadata.resourceVersion is empty",
	)
}

// TestWhatIsInAListTwiceIsNamed whatever the order of the list: the first entry that repeats an earlier one, and that
// one.
func TestWhatIsInAListTwiceIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		list := olmcore.Found(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *corev1.Pod {
			return listed(name.Draw(t, "namespace"), name.Draw(t, "name"))
		}), 0, 6).Draw(t, "pods")...)
		if rapid.Bool().Draw(t, "as a Reader returns it") {
			slices.SortFunc(list.Items, func(a, b *corev1.Pod) int { return olmcore.KeyOf(a).Compare(olmcore.KeyOf(b)) })
		}
		want := ""
		for i, o := range list.Items {
			same := func(other *corev1.Pod) bool { return olmcore.KeyOf(other) == olmcore.KeyOf(o) }
			if before := slices.IndexFunc(list.Items, same); before < i && want == "" {
				want = fmt.Sprintf("Pods[%d] is %s/%s, as is Pods[%d]", i, o.Namespace, o.Name, before)
			}
		}
		err := inputs.ValidateList("Pods", list)
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
	})
}

func TestASortedListIsValidatedWithoutAnAllocation(t *testing.T) {
	list := olmcore.Found[*corev1.Pod]()
	for i := range 100 {
		list.Items = append(list.Items, listed(fmt.Sprintf("n%02d", i/10), fmt.Sprint(i%10)))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = inputs.ValidateList("Pods", list) }))
}
