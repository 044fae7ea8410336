// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// unpackedInput is a plan that refers to a bundle, of which nothing is applied yet.
func unpackedInput(t *testing.T) installplan.Input {
	o, cm := ImageOf(t, Rich())
	cm.UID, cm.ResourceVersion = "bundle", "1"
	plan := filledPlan(t, o, cm)
	Started(0)(plan)
	return input(plan, func(in *installplan.Input) {
		in.ConfigMaps, in.Config = olmcore.Found(cm), Things
	})
}

// TestWhatWasUnpackedEarlierChangesNoDecision, whatever happened to the bundle or to the plan since.
func TestWhatWasUnpackedEarlierChangesNoDecision(t *testing.T) {
	base := unpackedInput(t)
	more := Zipped(t, "more")
	changes := map[string]func(in *installplan.Input, cm *corev1.ConfigMap){
		"nothing": func(*installplan.Input, *corev1.ConfigMap) {},
		"content": func(_ *installplan.Input, cm *corev1.ConfigMap) {
			cm.ResourceVersion, cm.BinaryData["more"] = cm.ResourceVersion+"0", more
		},
		"lost": func(_ *installplan.Input, cm *corev1.ConfigMap) {
			cm.ResourceVersion, cm.BinaryData = cm.ResourceVersion+"0", nil
		},
		"made anew": func(_ *installplan.Input, cm *corev1.ConfigMap) { cm.UID, cm.BinaryData["more"] = cm.UID+"0", more },
		"gone":      func(in *installplan.Input, _ *corev1.ConfigMap) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]() },
		"no versions": func(_ *installplan.Input, cm *corev1.ConfigMap) {
			cm.UID, cm.ResourceVersion, cm.BinaryData["more"] = "", "", more
		},
		"replaces": func(in *installplan.Input, _ *corev1.ConfigMap) {
			for _, s := range in.InstallPlan.Status.Plan {
				s.Resource.Manifest = strings.Replace(s.Resource.Manifest, `"replaces":"`, `"replaces":"x`, 1)
			}
		},
		"properties": func(in *installplan.Input, _ *corev1.ConfigMap) {
			for _, s := range in.InstallPlan.Status.Plan {
				s.Resource.Manifest = strings.Replace(s.Resource.Manifest, `"properties":"{`, `"properties":"?`, 1)
			}
		},
		"applied": func(in *installplan.Input, _ *corev1.ConfigMap) {
			in.InstallPlan.Status.Plan[0].Status = v1alpha1.StepStatusCreated
		},
		"over": func(in *installplan.Input, _ *corev1.ConfigMap) { in.InstallPlan.Status.Phase = Complete },
	}
	names := rapid.SampledFrom([]string{"nothing", "content", "lost", "made anew", "gone", "no versions", "replaces", "properties", "applied", "over"})
	rapid.Check(t, func(rt *rapid.T) {
		in := base
		var memory *installplan.Memory
		for _, name := range rapid.SliceOfN(names, 1, 6).Draw(rt, "changes") {
			in.InstallPlan, in.ConfigMaps.Items = in.InstallPlan.DeepCopy(), copies(in.ConfigMaps.Items)
			cm := &corev1.ConfigMap{BinaryData: map[string][]byte{}}
			if len(in.ConfigMaps.Items) > 0 && in.ConfigMaps.Items[0].BinaryData != nil {
				cm = in.ConfigMaps.Items[0]
			}
			changes[name](&in, cm)
			in.Unpacked = nil
			want, err := installplan.Reconcile(in)
			require.NoError(rt, err)
			in.Unpacked = memory
			got, err := installplan.Reconcile(in)
			require.NoError(rt, err)
			memory, want.Unpacked, got.Unpacked = got.Unpacked, nil, nil
			require.Equal(rt, want, got, "%s", name)
		}
	})
}

func copies(items []*corev1.ConfigMap) (all []*corev1.ConfigMap) {
	for _, cm := range items {
		all = append(all, cm.DeepCopy())
	}
	return all
}

// TestABundleIsDecodedOnce for all the rounds of a plan, unless it is large: who writes it would fill the memory.
func TestABundleIsDecodedOnce(t *testing.T) {
	in := unpackedInput(t)
	rounds := func() float64 {
		return testing.AllocsPerRun(10, func() { _, _ = installplan.Reconcile(in) })
	}
	plain := rounds()
	out, err := installplan.Reconcile(in)
	require.NoError(t, err)
	in.Unpacked = out.Unpacked
	require.Less(t, rounds(), plain/2)

	in.InstallPlan = in.InstallPlan.DeepCopy()
	in.InstallPlan.Status.Phase = Complete
	over, err := installplan.Reconcile(in)
	require.NoError(t, err)
	require.Nil(t, over.Unpacked, "nothing is kept of a plan that is over")

	in = unpackedInput(t)
	in.ConfigMaps.Items[0].BinaryData["large"] = Zipped(t, strings.Repeat("x", 9<<20))
	out, err = installplan.Reconcile(in)
	require.NoError(t, err)
	require.Nil(t, out.Unpacked)
}
