// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/create"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestLargestBundlesAreUnpackedIfThePlanIsTooLarge checks which bundles of a plan of at most 100,000 bytes are unpacked from
// their images, and that no bundle is unpacked if the plan is too large in any case.
func TestLargestBundlesAreUnpackedIfThePlanIsTooLarge(t *testing.T) {
	type sized struct {
		image               bool
		content, properties int // bytes
	}
	type plan map[string]sized
	for name, c := range map[string]struct {
		operators plan
		want      []string
	}{
		"it fits":                                {plan{"a": {true, 40_000, 0}, "b": {true, 40_000, 0}}, nil},
		"the largest":                            {plan{"a": {true, 40_000, 0}, "b": {true, 70_000, 0}}, []string{"b"}},
		"the first by name of two equal bundles": {plan{"b": {true, 60_000, 0}, "a": {true, 60_000, 0}}, []string{"a"}},
		"the one that has an image":              {plan{"a": {true, 40_000, 0}, "b": {false, 70_000, 0}}, []string{"a"}},
		"as many as needed": {
			plan{"a": {true, 50_000, 0}, "b": {true, 60_000, 0}, "c": {true, 90_000, 0}}, []string{"b", "c"},
		},
		"properties stay in the plan":    {plan{"a": {true, 10_000, 45_000}, "b": {true, 50_000, 0}}, []string{"b"}},
		"properties alone are too large": {plan{"a": {true, 10, 110_000}}, []string{create.ReasonPlanTooLarge}},
		"no image is left":               {plan{"a": {false, 110_000, 0}, "b": {true, 40_000, 0}}, []string{create.ReasonPlanTooLarge}},
		"no image at all":                {plan{"a": {false, 60_000, 0}, "b": {false, 60_000, 0}}, []string{create.ReasonPlanTooLarge}},
	} {
		t.Run(name, func(t *testing.T) {
			var operators []olmcore.Operator
			var subs []*v1alpha1.Subscription
			for name, of := range c.operators {
				data := map[string]string{"x": strings.Repeat("x", of.content)}
				o := Operator(name, &corev1.ConfigMap{ObjectMeta: Bare(name), Data: data})
				if of.image {
					o.Bundle.Image = "registry.example.com/" + name + ":1"
				}
				if of.properties > 0 {
					value, err := json.Marshal(strings.Repeat("p", of.properties))
					require.NoError(t, err)
					o.Bundle.Properties = append(o.Bundle.Properties, olmcore.Property{Type: "example.com/large", Value: value})
				}
				operators, subs = append(operators, o), append(subs, Subscription(name))
			}
			in := CreateInput(subs, operators...)
			in.Config.MaxStatusBytes = 100_000
			out := Planned(t, in)
			var got []string
			for _, lookup := range out.Lookups {
				got = append(got, strings.TrimSuffix(lookup.Identifier, ".v1"))
			}
			if out.Refused.Reason != "" {
				got = append(got, out.Refused.Reason)
			}
			require.Equal(t, c.want, got)
		})
	}
}
