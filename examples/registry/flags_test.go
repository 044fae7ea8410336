// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/registry"
)

// logged is what a command writes while it reads a catalog.
func logged(t *testing.T, r api.RegistryServer) string {
	var out strings.Builder
	flags := registry.BindFlags(flag.NewFlagSet("", flag.ContinueOnError), true)
	clients, err := flags.Serve(&controllers.Catalogs{}, &controllers.Options{}, &out)
	require.NoError(t, err)
	defer within(t, clients.Close)
	in := catalog.Input{CatalogSource: &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "community", UID: "1"}}}
	clients.Connection(in, listen(t, r).address)
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	defer cancel()
	require.NoError(t, clients.Wait(ctx))
	return out.String()
}

// TestNoCatalogForgesALineOfTheLog: whatever it writes into names, versions and values, as it is or as JSON escapes it.
func TestNoCatalogForgesALineOfTheLog(t *testing.T) {
	const forged = "x\nE1126 olm: forged\r\x1b[31m\u202e"
	for name, change := range map[string]func(*api.Bundle){
		"package":          func(b *api.Bundle) { b.PackageName = forged },
		"channel":          func(b *api.Bundle) { b.ChannelName = forged },
		"bundle":           func(b *api.Bundle) { b.CsvName = forged },
		"replaces":         func(b *api.Bundle) { b.Replaces = forged },
		"skips":            func(b *api.Bundle) { b.Skips = []string{forged} },
		"skipRange":        func(b *api.Bundle) { b.SkipRange = forged },
		"version":          func(b *api.Bundle) { b.Version, b.Properties = forged, nil },
		"type of property": func(b *api.Bundle) { b.Properties[0].Type = forged },
		"package in JSON": func(b *api.Bundle) {
			b.Properties[0].Value = `{"packageName":"x\nE1126 olm: forged\r\u001b[31m\u202e","version":"1.0.0"}`
		},
		"version in JSON": func(b *api.Bundle) {
			b.Properties[0].Value = `{"packageName":"etcd","version":"x\nE1126 olm: forged\r\u001b[31m\u202e"}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := etcd(1)
			change(bad)
			text := logged(t, sends(bad, etcd(2), etcd(3)))
			require.Contains(t, text, "catalog ops/community: ", "something is told")
			require.Equal(t, !strings.HasSuffix(name, "in JSON"), strings.Contains(text, "has characters that cannot be printed"), "such names are refused")
			for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				require.True(t, strings.HasPrefix(line, "catalog ops/community: "), "%q", line)
				require.NotContains(t, strings.Map(func(r rune) rune {
					if r == '\r' || r == '\x1b' || r == '\u202e' {
						return '!'
					}
					return r
				}, line), "!", "%q", line)
			}
		})
	}
}

// TestOnlyTheFirstProblemsAreLogged: a list that others write has an end, also that of what resolution finds.
func TestOnlyTheFirstProblemsAreLogged(t *testing.T) {
	var bundles []*api.Bundle
	for i := range 300 {
		b := etcd(i)
		b.Properties[0].Value = ""
		bundles = append(bundles, b) // it is left out, and its entry has no bundle
	}
	text := logged(t, sends(bundles...))
	require.Equal(t, 202, strings.Count(text, "\n"))
	require.Equal(t, 2, strings.Count(text, "more is left out than is told here"))
}
