// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

const kinds = `# Kinds and conditions

This page is made from the tables of the library. After a change of one, ` + "`OLMCORE_UPDATE=1 go test ./internal/reference`" + ` writes it again.

## Kinds of objects

What ` + "`olmcore.Kinds`" + ` returns. Objects of other kinds, such as custom resources and the steps of a plan, travel untyped. "Watched": a
controller watches all objects of the kind, or those of its shard: its own namespaces, those of the global catalogs and of OLM. Kinds that no
package reads are written only, or read where a step of a plan names one. The last column says what cannot be told when the kind was not read:
then nothing is concluded from it.

%s
## Conditions of a Subscription

What ` + "`subscription.Conditions`" + ` returns: conditions that the library writes. All others belong to other writers and stay.

%s`

// Kinds returns docs/kinds.md.
func Kinds() string {
	var table, conditions strings.Builder
	table.WriteString("| kind | version | in a namespace | watched | read by | unknown without it |\n|---|---|---|---|---|---|\n")
	for _, k := range olmcore.Kinds() {
		namespaced := "no"
		if k.Namespaced {
			namespaced = "yes"
		}
		watched := map[olmcore.Watch]string{olmcore.WatchNever: "never", olmcore.WatchShard: "of the shard", olmcore.WatchAll: "all"}[k.Watch]
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s |\n",
			k.Kind, k.GroupVersion(), namespaced, watched, strings.Join(k.ReadBy, ", "), k.Unknown)
	}
	for _, c := range subscription.Conditions() {
		fmt.Fprintf(&conditions, "- %s\n", c)
	}
	return fmt.Sprintf(kinds, table.String(), conditions.String())
}
