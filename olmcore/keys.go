// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ExpandKeys replaces the wildcards in the keys that a package's Affected
// returned by the keys that exist: an empty Name stands for every known key of
// that Namespace, the zero key for every known key. The result is sorted and
// holds each key once; keys without wildcard stay, known or not.
func ExpandKeys(affected, known []types.NamespacedName) []types.NamespacedName {
	var out []types.NamespacedName
	for _, key := range affected {
		if key.Name != "" {
			out = append(out, key)
			continue
		}
		for _, k := range known {
			if key.Namespace == "" || key.Namespace == k.Namespace {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
