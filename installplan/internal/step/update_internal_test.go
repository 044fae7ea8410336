// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDefinitionNamesItsFirstNamespace checks which namespace a definition names as the one that installed it first.
func TestDefinitionNamesItsFirstNamespace(t *testing.T) {
	list := func(records ...string) []string { return records }
	for name, c := range map[string]struct {
		named     string
		live      []string
		namespace string // of the plan
		want      string
	}{
		"a first installation":                      {namespace: "a"},
		"an upgrade":                                {live: list("a/x.v1"), namespace: "a"},
		"another namespace follows":                 {live: list("a/x.v1"), namespace: "b", want: "a"},
		"whatever their order":                      {live: list("b/y.v1"), namespace: "a", want: "b"},
		"several versions of the first":             {live: list("a/x.v1", "a/x.v2"), namespace: "b", want: "a"},
		"a third namespace follows":                 {named: "a", live: list("a/x.v1", "b/y.v1"), namespace: "c", want: "a"},
		"the first upgrades":                        {named: "a", live: list("b/y.v1", "a/x.v1"), namespace: "a", want: "a"},
		"an administrator's choice":                 {named: "b", live: list("a/x.v1", "b/y.v1"), namespace: "a", want: "b"},
		"an administrator's choice of no owner":     {named: "d", live: list("a/x.v1", "b/y.v1"), namespace: "a", want: "d"},
		"several recorded by OLM":                   {live: list("a/x.v1", "b/y.v1"), namespace: "c"},
		"the first is deleted":                      {named: "a", live: list("b/y.v1"), namespace: "b", want: "a"},
		"the first is deleted, and installed again": {named: "a", live: list("b/y.v1"), namespace: "a", want: "a"},
		"all others are deleted":                    {named: "a", live: list("a/x.v1"), namespace: "a", want: "a"},
		"all are deleted":                           {named: "a", namespace: "b", want: "a"},
		"a similar name":                            {live: list("ab/x.v1"), namespace: "a", want: "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, firstInstalledBy(c.named, c.live, c.namespace))
		})
	}
}
