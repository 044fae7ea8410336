// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

const states = `# State diagrams

This page is made from the state graphs that the packages export, and that their Transitions obey: no other edge occurs. After a
change of a graph, ` + "`OLMCORE_UPDATE=1 go test ./internal/reference`" + ` writes it again.

A label names the rule that takes the edge, in the words of the package.

## InstallPlan

The phases (` + "`installplan.Phases`" + `); the label is the state that ` + "`installplan.Assess`" + ` reports. Where there is none, package
` + "`installplan/create`" + ` takes the edge.

%s
## Subscription

The stages of the InstallPlan that a Subscription refers to (` + "`subscription.Graph`" + `). From any of them it goes to Missing when the plan is
deleted, and to NoPlan when the reference is cleared or moves to another plan.

%s
## ClusterServiceVersion

The phases (` + "`csv.Edges`" + `); the label is the rule that ` + "`csv.Assess`" + ` names.

%s
These rules lead to the same phase from many, and are not drawn:

%s
## CatalogSource

The state follows from the conditions Available and Progressing. It is a view of the cluster, which may have gone anywhere since the reconcile
before, so almost every state can follow another. The table says which may (` + "`catalog.State.CanFollow`" + `):

%s`

// States returns docs/states.md.
func States() string {
	drawn, common := split(csv.Edges())
	return fmt.Sprintf(states, diagram(installplan.Phases()), diagram(subscription.Graph), diagram(drawn), commonTable(common), follows())
}

// diagram draws a graph in the notation of Mermaid: one arrow for each pair of states, labelled with its rules.
func diagram[S ~string](g olmcore.Graph[S]) string {
	type pair struct{ from, to S }
	var pairs []pair
	by := map[pair][]string{}
	for _, e := range g {
		p := pair{e.From, e.To}
		if _, known := by[p]; !known {
			pairs = append(pairs, p)
			by[p] = nil
		}
		if e.By != "" {
			by[p] = append(by[p], e.By)
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, p := range pairs {
		fmt.Fprintf(&b, "    %s --> %s", drawnAs(p.from), drawnAs(p.to))
		if rules := by[p]; len(rules) > 0 {
			fmt.Fprintf(&b, ": %s", strings.Join(rules, ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString("```\n")
	return b.String()
}

// drawnAs returns the name of a state; the empty one is the start.
func drawnAs[S ~string](s S) string {
	if s == "" {
		return "[*]"
	}
	return string(s)
}

// common is a rule that leads to one phase from many.
type common[S ~string] struct {
	rule string
	to   S
	from []S
}

// fromMany is how many phases a rule leads from to be left out of the diagram.
const fromMany = 4

// split takes the edges of rules that lead from many states to the same one out of a graph.
func split[S ~string](g olmcore.Graph[S]) (drawn olmcore.Graph[S], commons []common[S]) {
	for _, e := range g {
		i := slices.IndexFunc(commons, func(c common[S]) bool { return c.rule == e.By && c.to == e.To })
		if i < 0 {
			i = len(commons)
			commons = append(commons, common[S]{rule: e.By, to: e.To})
		}
		commons[i].from = append(commons[i].from, e.From)
	}
	commons = slices.DeleteFunc(commons, func(c common[S]) bool { return len(c.from) < fromMany })
	for _, e := range g {
		if !slices.ContainsFunc(commons, func(c common[S]) bool { return c.rule == e.By && c.to == e.To }) {
			drawn = append(drawn, e)
		}
	}
	return drawn, commons
}

func commonTable[S ~string](commons []common[S]) string {
	var b strings.Builder
	b.WriteString("| rule | leads to | from |\n|---|---|---|\n")
	for _, c := range commons {
		names := make([]string, len(c.from))
		for i, s := range c.from {
			names[i] = named(s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.rule, named(c.to), strings.Join(names, ", "))
	}
	return b.String()
}

// named returns the name of a state in a sentence.
func named[S ~string](s S) string {
	if s == "" {
		return "none"
	}
	return string(s)
}

// follows returns which state of a CatalogSource may follow which.
func follows() string {
	all := []catalog.State{
		catalog.StateNew, catalog.StateStarting, catalog.StateServing, catalog.StateUpdating, catalog.StateRecovering,
		catalog.StateUnavailable, catalog.StateUnknown, catalog.StateInvalid, catalog.StateDeleting,
	}
	var b strings.Builder
	b.WriteString("| from | to |\n|---|---|\n")
	for _, from := range all {
		var next []string
		for _, to := range all {
			if to.CanFollow(from) {
				next = append(next, named(to))
			}
		}
		if next == nil {
			next = []string{"it is the last"}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", named(from), strings.Join(next, ", "))
	}
	return b.String()
}
