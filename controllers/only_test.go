// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

func TestOnly(t *testing.T) {
	const there = " There are catalog, subscription, installplan, group, csv, condition, copies, olmconfig, permissions"
	all := []string{"catalog", "subscription", "installplan", "group", "csv", "condition", "copies", "olmconfig", "permissions"}
	for name, tt := range map[string]struct {
		only    []string
		options controllers.Options
		want    []string
		problem string
	}{
		"no names are all":                 {want: all},
		"the order is that of the Set":     {only: []string{"csv", "catalog", "csv"}, want: []string{"catalog", "csv"}},
		"one that an option adds":          {only: []string{controllers.Sweep}, options: controllers.Options{Sweeps: true}, want: []string{"sweep"}},
		"one that its option did not add":  {only: []string{controllers.CSVSweep}, want: all, problem: `"csvsweep" is switched off: set Sweeps`},
		"one that no option added":         {only: []string{controllers.Operator}, want: all, problem: `"operator" is switched off: set Operators`},
		"a typing error":                   {only: []string{"catalog", "subscriptons"}, want: all, problem: `"subscriptons" is no controller: did you mean "subscription"?` + there},
		"capitals":                         {only: []string{"CSV"}, want: all, problem: `"CSV" is no controller: did you mean "csv"?` + there},
		"an empty name":                    {only: []string{""}, want: all, problem: `"" is no controller.` + there},
		"a name that is like nothing here": {only: []string{"olmconfigurations"}, want: all, problem: `"olmconfigurations" is no controller.` + there},
	} {
		t.Run(name, func(t *testing.T) {
			set := controllers.New(&tt.options)
			err := set.Only(tt.only...)
			if tt.problem == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, olmcore.ErrInvalidInput)
				require.EqualError(t, err, "invalid input: only "+tt.problem)
			}
			var got []string
			for _, r := range set.Runners(nil, nil) {
				got = append(got, r.Name)
			}
			require.Empty(t, cmp.Diff(tt.want, got))
		})
	}
}
