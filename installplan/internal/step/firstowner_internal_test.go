// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstInstalledBy checks which namespace a definition names as the one that installed it first.
func TestFirstInstalledBy(t *testing.T) {
	list := func(records ...string) []string { return records }
	for name, c := range map[string]struct {
		named     string
		live, own []string
		want      string
	}{
		"nothing is recorded":                       {},
		"nothing is recorded any more":              {named: "a"},
		"a first installation":                      {own: list("a/x.v1")},
		"an upgrade":                                {live: list("a/x.v1"), own: list("a/x.v2")},
		"another namespace follows":                 {live: list("a/x.v1"), own: list("b/y.v1"), want: "a"},
		"whatever their order":                      {live: list("b/y.v1"), own: list("a/x.v1"), want: "b"},
		"several versions of the first":             {live: list("a/x.v1", "a/x.v2"), own: list("b/y.v1"), want: "a"},
		"a third namespace follows":                 {named: "a", live: list("a/x.v1", "b/y.v1"), own: list("c/z.v1"), want: "a"},
		"the first upgrades":                        {named: "a", live: list("b/y.v1", "a/x.v1"), own: list("a/x.v2"), want: "a"},
		"an administrator's choice":                 {named: "b", live: list("a/x.v1", "b/y.v1"), own: list("a/x.v2"), want: "b"},
		"an administrator's choice of no owner":     {named: "d", live: list("a/x.v1", "b/y.v1"), own: list("a/x.v2")},
		"several recorded by OLM":                   {live: list("a/x.v1", "b/y.v1"), own: list("c/z.v1")},
		"the first is gone, one is left":            {named: "a", live: list("b/y.v1"), own: list("c/z.v1"), want: "b"},
		"the first is gone, several are left":       {named: "a", live: list("b/y.v1", "c/z.v1"), own: list("b/y.v2")},
		"the first is gone, and is installed again": {named: "a", live: list("b/y.v1"), own: list("a/x.v1"), want: "b"},
		"all others are gone":                       {named: "a", live: list("a/x.v1"), own: list("a/x.v2")},
		"the plan's namespace is the only one left": {named: "a", own: list("b/y.v1")},
		"a similar name":                            {named: "a", live: list("ab/x.v1", "b/y.v1"), own: list("ab/x.v2")},
		"an annotation without value":               {live: list("a/x.v1", "b/y.v1"), own: list("b/y.v2")},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(append([]string(nil), c.live...), c.own...)
			require.Equal(t, c.want, firstInstalledBy(c.named, c.live, all))
		})
	}
}
