// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestHashedNamesAreBitIdentical has the values that OLM's own tests have.
//
// OLM's case: generated names, bit for bit.
func TestHashedNamesAreBitIdentical(t *testing.T) {
	for _, c := range []struct {
		base string
		over []string
		want string
	}{
		{"myname", []string{"something"}, "myname-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT"},
		{strings.Repeat("name", 25), []string{"something", "else"}, "namenamenamenamenamename-6XtefCelEzfYlFOD1fARIK5vhWVfWfGHja7H3q"},
		{strings.Repeat("a", 25), []string{"something"}, "aaaaaaaaaaaaaaaaaaaaaaaaa-5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT"},
	} {
		got, err := olmcore.HashedName(c.base, c.over)
		require.NoError(t, err)
		same(t, c.want, got)
	}
	same(t, "install-johmmfoxkh", "install-"+olmcore.NameSuffix(10, strings.Repeat("0", 64), "1"))
}

// TestTheAlongsideKeyIsBitIdentical: other namespaces' entries are recognised.
func TestTheAlongsideKeyIsBitIdentical(t *testing.T) {
	s := crdStep("etcdoperator.v0.9.4", "v1")
	p := plan("Installing", []*v1alpha1.Step{s}, started(0), func(p *v1alpha1.InstallPlan) { p.Namespace = "operators" })
	g := group()
	g.Namespace = "operators"
	r := reconcile(t, input(p, func(in *installplan.Input) { in.OperatorGroups = olmcore.Found(g) }))
	require.Equal(t, "operators/etcdoperator.v0.9.4",
		r.Actions[1].(olmcore.Create).Object.GetAnnotations()["operatorframework.io/installed-alongside-4b21bc9c2e75a808"])
}
