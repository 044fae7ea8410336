// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/subscription/health"
)

// phases are all phases with what they mean, what is worst first: those of package health, and what cannot be told.
var phases = slices.Insert(health.Phases(), health.Failed.Badness()-health.WaitingForApproval.Badness(),
	health.PhaseRow{Phase: report.Unknown, Meaning: "it cannot be told, as objects were not read or are not valid"})

// rank is the place of a phase in phases.
func rank(phase string) int {
	if i := slices.IndexFunc(phases, func(row health.PhaseRow) bool { return string(row.Phase) == phase }); i >= 0 {
		return i
	}
	return len(phases)
}

// colorOf is the colour of a phase, plain for what is none of a Subscription.
func colorOf(phase string) text.Color {
	switch p := health.Phase(phase); {
	case p == health.Installed:
		return text.Green
	case p == health.Failed, p == health.Stuck, p == health.Degraded:
		return text.Red
	case rank(phase) < len(phases):
		return text.Yellow
	}
	return text.Plain
}

func statusCommand(r *root) *cobra.Command {
	sortBy := ""
	cmd := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Where Subscriptions stand, and what blocks them",
		Example: `  kubectl olm status -A
  kubectl olm status etcd --exit-code      # 0 once it is installed: for pipelines
  kubectl olm status -f cluster.json -o html > status.html`,
		ValidArgsFunction: r.completeNames(subscriptions),
		RunE: func(cmd *cobra.Command, names []string) error {
			if !slices.Contains(sorts, sortBy) {
				return fmt.Errorf("--sort-by %q is none of %s", sortBy, strings.Join(sorts, ", "))
			}
			return r.status(cmd.Context(), names, sortBy)
		},
	}
	cmd.Flags().StringVar(&sortBy, "sort-by", sorts[0], strings.Join(sorts, " or ")+": by namespace and name, the worst phase first, or what is so for the longest time first")
	r.outputs(cmd, "table", "wide", "json", "yaml", "mermaid", "html")
	return cmd
}

// sorts are the values of --sort-by.
var sorts = []string{"name", "phase", "since"}

func (r *root) status(ctx context.Context, names []string, sortBy string) error {
	w, err := r.open(ctx, statusKinds)
	if err != nil {
		return err
	}
	if r.output == "html" || r.output == "mermaid" {
		if err := readContent(ctx, r, w, false); err != nil {
			return err
		}
	}
	subs, err := r.subscriptions(ctx, w, names)
	if err != nil {
		return err
	}
	all, err := r.reports(ctx, w, subs)
	if err != nil {
		return err
	}
	sortReports(all, sortBy)
	status := report.Status{Now: w.Now, Subscriptions: all, Summary: summaryOf(all), NotRead: w.NotRead()}
	if err := r.printStatus(ctx, w, subs, status); err != nil {
		return err
	}
	if r.exitCode && slices.ContainsFunc(all, func(s report.Subscription) bool { return !s.Healthy() }) {
		return errFound
	}
	return nil
}

func sortReports(all []report.Subscription, by string) {
	slices.SortStableFunc(all, func(a, b report.Subscription) int {
		switch by {
		case "phase":
			return cmp.Compare(rank(a.Phase), rank(b.Phase))
		case "since":
			return compareSince(a.Since, b.Since)
		}
		return 0
	})
}

// compareSince orders what is so for a longer time first, what is not known last.
func compareSince(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

func summaryOf(all []report.Subscription) report.Summary {
	s := report.Summary{Total: len(all), Phases: map[string]int{}}
	for _, one := range all {
		s.Phases[one.Phase]++
	}
	return s
}

// summarize says a Summary in a line, what is worst first.
func summarize(s report.Summary) string {
	if s.Total == 0 {
		return "No Subscriptions."
	}
	var parts []string
	for _, phase := range slices.SortedFunc(maps.Keys(s.Phases), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) }) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Phases[phase], phase))
	}
	return count(s.Total, "Subscription") + ": " + strings.Join(parts, ", ") + "."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *root) printStatus(ctx context.Context, w *world.World, subs []*v1alpha1.Subscription, s report.Status) error {
	switch r.output {
	case "json", "yaml":
		return r.encode(s)
	case "mermaid":
		return write(r.Out, statusMermaid(s))
	case "html":
		graphs, err := ways(ctx, r, w, subs)
		if err != nil {
			return err
		}
		return page.Status(r.Out, s, summarize(s.Summary), graphs)
	}
	head := []string{"NAMESPACE", "NAME", "PACKAGE", "CHANNEL", "PHASE", "VERSION", "BLOCKED-BY", "SINCE", "REASON"}
	if r.output == "wide" {
		head = append(head, "MESSAGE", "ADVICE")
	}
	rows := make([][]text.Cell, len(s.Subscriptions))
	for i, one := range s.Subscriptions {
		rows[i] = text.Cells(one.Namespace, one.Name, one.Package, one.Channel, one.Phase, versions(one), blockedBy(one), age(one.Since, w.Now), one.Reason)
		rows[i][4].Color = colorOf(one.Phase)
		if r.output == "wide" {
			rows[i] = append(rows[i], text.Cells(one.Message, one.Advice)...)
		}
	}
	table := ""
	if len(rows) > 0 {
		table = r.palette.Table(head, rows) + "\n"
	}
	summary := summarize(s.Summary)
	if w.Namespace != "" && r.selector == "" && s.Summary.Total == 0 {
		summary = "No Subscriptions in namespace " + text.Line(w.Namespace, 100) + ". With -A all namespaces are looked at."
	}
	return write(r.Out, table+summary+"\n")
}

// versions is what is installed, and what is to take its place.
func versions(s report.Subscription) string {
	v := cmp.Or(s.Version, s.InstalledCSV)
	if s.CurrentCSV != "" && s.CurrentCSV != s.InstalledCSV && v != "" {
		return v + " -> " + s.CurrentCSV
	}
	return v
}

// blockedBy names what blocks, as kubectl does.
func blockedBy(s report.Subscription) string {
	if s.Healthy() || s.Object == nil {
		return ""
	}
	name := typeOf(s.Object.Kind) + "/" + s.Object.Name
	if s.Object.Namespace != s.Namespace && s.Object.Namespace != "" {
		return name + " in " + s.Object.Namespace
	}
	return name
}

// typeOf is what kubectl calls a kind.
func typeOf(kind string) string {
	if kind == v1alpha1.ClusterServiceVersionKind {
		return "csv"
	}
	return strings.ToLower(kind)
}

// age is how long something is so, as kubectl says it; empty when it is not known.
func age(since *time.Time, now time.Time) string {
	if since == nil {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(*since))) // clocks differ
}

// statusMermaid draws the Subscriptions and what blocks them.
func statusMermaid(s report.Status) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	blockers := map[report.Object]string{}
	for i, one := range s.Subscriptions {
		fmt.Fprintf(&b, "  s%d[%s]:::%s\n", i, quote(one.Namespace+"/"+one.Name+": "+one.Phase), []string{"ok", "waits", "bad"}[severity(one.Phase)])
		if one.Healthy() || one.Object == nil {
			continue
		}
		id, known := blockers[*one.Object]
		if !known {
			id = fmt.Sprintf("b%d", len(blockers))
			blockers[*one.Object] = id
			fmt.Fprintf(&b, "  %s([%s])\n", id, quote(one.Object.Kind+" "+one.Object.Name))
		}
		fmt.Fprintf(&b, "  s%d -->|%s| %s\n", i, quote(cmp.Or(one.Reason, "waits for")), id)
	}
	b.WriteString("  classDef ok stroke:#2a7d3f\n  classDef waits stroke:#b58900\n  classDef bad stroke:#c0392b,stroke-width:3px\n")
	return b.String()
}

// severity of a phase is 0 for what is well, 1 for what waits, 2 for what is bad.
func severity(phase string) int {
	switch colorOf(phase) {
	case text.Green:
		return 0
	case text.Red:
		return 2
	}
	return 1
}

// quote is a text in a graph for Mermaid, as one safe line: names may hold what means something to Mermaid.
func quote(s string) string {
	var b strings.Builder
	for _, c := range text.Line(s, 200) {
		if strings.ContainsRune("\"#<>&;`", c) {
			fmt.Fprintf(&b, "#%d;", c)
		} else {
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}
