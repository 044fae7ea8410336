// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/olmcore/olm/olmcore"
)

// auto is the value of --separate-plans by which the InstallPlans show whether the controllers make separate plans.
const auto = "auto"

// separatePlans is the value of --separate-plans: auto, true or false. The zero value is auto.
type separatePlans string

func (s *separatePlans) String() string { return cmp.Or(string(*s), auto) }

// Type returns what the help prints for the value.
func (s *separatePlans) Type() string { return "auto|true|false" }

// Set implements pflag.Value.
func (s *separatePlans) Set(text string) error {
	if text != auto {
		isOn, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("it is none of auto, true and false")
		}
		text = strconv.FormatBool(isOn)
	}
	*s = separatePlans(text)
	return nil
}

// flags adds --separate-plans to a command.
func (s *separatePlans) flags(cmd *cobra.Command) {
	flag := cmd.Flags().VarPF(s, "separate-plans", "", "whether the controllers make one InstallPlan for each set of Subscriptions that "+
		"depend on each other, as with their option SeparatePlans; auto: as the newest InstallPlan shows")
	flag.NoOptDefVal = "true"
}

// isOn reports whether the controllers make separate plans. plans are the InstallPlans that show it if the user did not
// say.
func (s *separatePlans) isOn(plans []*v1alpha1.InstallPlan) bool {
	if s.String() != auto {
		return *s == "true"
	}
	newest := map[string]*v1alpha1.InstallPlan{} // by namespace
	for _, p := range plans {
		if other := newest[p.Namespace]; other == nil || other.Spec.Generation < p.Spec.Generation {
			newest[p.Namespace] = p
		}
	}
	if len(newest) == 0 {
		return false
	}
	return olmcore.IsSeparatePlan(slices.MaxFunc(slices.Collect(maps.Values(newest)), func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	}))
}
