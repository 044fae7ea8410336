// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
)

func TestOptionsThatBreakTheirContractAreAllNamed(t *testing.T) {
	o := controllers.Options{GlobalNamespace: "Olm", Namespaces: []string{"a", ""}}
	require.NoError(t, (&controllers.Options{}).Validate())
	require.NoError(t, (&controllers.Options{GlobalNamespace: "olm", Namespaces: []string{"a"}}).Validate())
	o.Catalog.Replicas = 9
	o.Catalog.GlobalCatalogNamespace = "a.b"
	o.Subscription.MissingGrace = -1
	o.InstallPlan.MaxInstallPlans = -1
	o.InstallPlan.OLMNamespace = "-"
	o.InstallPlan.GlobalNamespace = "x_y"
	o.CSV.Cleanup.OperandTimeout = -1
	o.Copies.ProtectedNamespaces = []string{"kube system"}
	var got []string
	for line := range strings.SplitSeq(o.Validate().Error(), "\n") {
		problem, _, _ := strings.Cut(line, ", which is no name of a namespace: ")
		got = append(got, problem)
	}
	require.Empty(t, cmp.Diff([]string{
		"invalid input: Catalog.Replicas is not between 1 and 5",
		"invalid input: Subscription.MissingGrace is negative",
		"invalid input: InstallPlan.MaxInstallPlans is negative",
		"invalid input: CSV.Cleanup.OperandTimeout is negative",
		`invalid input: GlobalNamespace is "Olm"`,
		`invalid input: Catalog.GlobalCatalogNamespace is "a.b"`,
		`invalid input: InstallPlan.OLMNamespace is "-"`,
		`invalid input: InstallPlan.GlobalNamespace is "x_y"`,
		`invalid input: Namespaces[1] is ""`,
		`invalid input: Copies.ProtectedNamespaces[0] is "kube system"`,
	}, got))
}

// TestWhereThePackageServerMayRun checks that the namespaces of OLM and of the global catalogs are added to those of
// the options, unless the options have an empty list.
func TestWhereThePackageServerMayRun(t *testing.T) {
	for name, c := range map[string]struct{ configured, want []string }{
		"the default":   {nil, []string{"market", "system"}},
		"one namespace": {[]string{"ns"}, []string{"ns", "market", "system"}},
		"an empty list": {[]string{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := controllers.Options{GlobalNamespace: "market", CSV: csv.Config{InstallTimeout: 1, PackageServerNamespaces: c.configured}}
			o.InstallPlan.OLMNamespace = "system"
			want := csv.Config{InstallTimeout: 1, PackageServerNamespaces: c.want}
			require.Equal(t, want, o.CSVConfig())
			require.Equal(t, c.configured, o.CSV.PackageServerNamespaces)
		})
	}
	require.Equal(t, []string{"olm", "olm"}, (&controllers.Options{}).CSVConfig().PackageServerNamespaces)
}
