// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Report is what a dry run prints.
type Report struct {
	Now string `json:"now"`
	// GlobalNamespace is the namespace whose catalogs all namespaces see, if it is known.
	GlobalNamespace string `json:"globalNamespace,omitempty"`
	// Catalogs are those of --catalog.
	Catalogs []catalogRead `json:"catalogs,omitempty"`
	// Input is what is odd about the input.
	Input []string `json:"input,omitempty"`
	// NotRead are the kinds that decisions need and the input does not tell of.
	NotRead []unreadKind `json:"notRead,omitempty"`
	// Help says what to do about these, in the table.
	Help    string   `json:"-"`
	Results []Result `json:"results"`
	// Simulated is what a real cluster would not get so.
	Simulated []string `json:"simulated,omitempty"`
	// World holds every object after --settle.
	World []map[string]any `json:"world,omitempty"`
}

// Result is what would be done about one object, and why.
type Result struct {
	Kind        string               `json:"kind"`
	Namespace   string               `json:"namespace"`
	Name        string               `json:"name"`
	Actions     []olmcore.Record     `json:"actions"`
	Transitions []olmcore.Transition `json:"transitions"`
	Diagnostics []olmcore.Diagnostic `json:"diagnostics"`
	Requests    []any                `json:"requests"`
	// Undecided: kinds were not read without which nothing can be said.
	Undecided bool `json:"undecided,omitempty"`
	// Resolution is what the catalogs of --catalog lead to.
	Resolution   *answer `json:"resolution,omitempty"`
	RequeueAfter string  `json:"requeueAfter,omitempty"`
	// Status is the object's status once the actions ran.
	Status any `json:"status"`
}

func newReport(now time.Time) *Report {
	return &Report{Now: now.UTC().Format(time.RFC3339), Results: []Result{}}
}

// Printers are the values of --output.
var Printers = map[string]func(io.Writer, *Report) error{
	"table": printTable, "json": printJSON, "yaml": printYAML,
}

func printJSON(w io.Writer, r *Report) error {
	buffered := bufio.NewWriter(w)
	if err := WriteJSON(buffered, r, false); err != nil {
		return err
	}
	return buffered.Flush()
}

func printYAML(w io.Writer, r *Report) error {
	text, err := printable.YAML(r)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func printTable(w io.Writer, r *Report) error {
	var b strings.Builder
	row(&b, "At %s:", r.Now)
	if r.GlobalNamespace != "" {
		row(&b, "Catalogs of namespace %s are treated as global.", r.GlobalNamespace)
	}
	for _, c := range r.Catalogs {
		c.print(&b)
	}
	section(&b, "In the input", r.Input)
	printUnread(&b, r.NotRead, r.Help)
	for _, result := range r.Results {
		result.print(&b)
	}
	if len(r.Results) == 0 {
		b.WriteString("no CatalogSource, Subscription, InstallPlan or ClusterServiceVersion in the input\n")
	}
	section(&b, "Simulated", r.Simulated)
	if len(r.World) > 0 {
		b.WriteString("\n")
		row(&b, "The world, which was the input and nothing else, then holds %d objects (--output json or yaml prints them).", len(r.World))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// row adds one line to a table, whatever the values contain. Blanks at the start of format indent it.
func row(b *strings.Builder, format string, args ...any) {
	text := strings.TrimLeft(format, " ")
	b.WriteString(format[:len(format)-len(text)] + printable.OneLine(fmt.Sprintf(text, args...)) + "\n")
}

// section adds a title and a line for each item, if there are any.
func section(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	b.WriteString("\n")
	row(b, "%s:", title)
	for _, item := range items {
		row(b, "  %s", item)
	}
}

func (r Result) print(b *strings.Builder) {
	b.WriteString("\n")
	row(b, "%s", olmcore.Key{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	r.printActions(b)
	for _, t := range r.Transitions {
		what := "state       "
		if isStatus(t.From) && isStatus(t.To) {
			what = "condition    " + t.Type
		}
		row(b, "  %s %s -> %s%s", what, orNone(t.From), orNone(t.To), because(t.Reason, t.Message))
	}
	r.printUnmet(b)
	for _, d := range r.Diagnostics {
		row(b, "  %-12s %s: %s", strings.ToLower(string(d.Severity)), d.Reason, d.Message)
	}
	for _, request := range r.Requests {
		text, _ := json.Marshal(request)
		row(b, "  asks         %s", text)
	}
	if r.Resolution != nil {
		r.Resolution.print(b)
	}
	if r.Undecided {
		b.WriteString("  undecided    without what is not in the input\n")
	}
	if !r.Undecided && r.Resolution == nil && len(r.Actions)+len(r.Transitions)+len(r.Diagnostics)+len(r.Requests) == 0 {
		b.WriteString("  nothing to do\n")
	}
	if r.RequeueAfter != "" {
		row(b, "  look again   after %s", r.RequeueAfter)
	}
}

// printUnmet names the requirements that a ClusterServiceVersion waits for: its own message says only that there are
// some.
func (r Result) printUnmet(b *strings.Builder) {
	held, _ := r.Status.(status)
	status, _ := held.value().(map[string]any)
	if status["phase"] != "Pending" && status["phase"] != "Failed" {
		return
	}
	list, _ := status["requirementStatus"].([]any)
	for _, entry := range list {
		requirement, _ := entry.(map[string]any)
		if requirement["status"] == "Present" || requirement["status"] == "DeploymentFound" {
			continue
		}
		row(b, "  lacks        %v %v (%v)", requirement["kind"], requirement["name"], requirement["status"])
		dependents, _ := requirement["dependents"].([]any)
		for _, d := range dependents {
			if rule, _ := d.(map[string]any); rule["status"] != "Satisfied" {
				row(b, "               %v: %v", rule["kind"], rule["message"])
			}
		}
	}
}

// maxAlike is how many actions that are the same but for their target have a line each.
const maxAlike = 5

// printActions prints a line for each action, and one for many that are alike: a version may have a thousand copies.
func (r Result) printActions(b *strings.Builder) {
	type sort struct { // what actions have in common
		verb  olmcore.Verb
		kind  string
		cause olmcore.Cause
	}
	sortOf := func(a olmcore.Record) sort { return sort{a.Verb, a.Target.Kind, a.Cause} }
	alike := map[sort]int{}
	for _, a := range r.Actions {
		alike[sortOf(a)]++
	}
	for _, a := range r.Actions {
		of, more := sortOf(a), ""
		if n := alike[of]; n > maxAlike {
			alike[of], more = -1, fmt.Sprintf(" and %d more", n-1)
		} else if n < 0 {
			continue
		}
		row(b, "  %-12s %s%s%s", a.Verb, a.Target, more, because(a.Cause.Reason, a.Cause.Message))
	}
}

// isStatus reports whether a state is that of a condition, or of none.
func isStatus(state string) bool {
	return state == "" || state == "True" || state == "False"
}

func because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return " (" + reason + ")"
	default:
		return " (" + reason + ": " + message + ")"
	}
}

func orNone(state string) string {
	if state == "" {
		return "none"
	}
	return state
}

// Only leaves the results of one namespace, and of objects that are in none, and of the kinds that were not read those
// of which scopes do not hold the objects of that namespace.
func (r *Report) Only(namespace string, scopes []olmcore.Scope) {
	held := map[schema.GroupKind]bool{}
	for _, s := range scopes {
		held[s.Kind] = held[s.Kind] || s.Namespace == "" || s.Namespace == namespace
	}
	r.NotRead = slices.DeleteFunc(r.NotRead, func(k unreadKind) bool { return held[k.of] })
	r.Results = slices.DeleteFunc(r.Results, func(one Result) bool { return one.Namespace != namespace && one.Namespace != "" })
}

// Asks reports whether anything would be done, is wrong or cannot be decided.
func (r *Report) Asks() bool {
	return slices.ContainsFunc(r.Results, func(one Result) bool {
		isWrong := slices.ContainsFunc(one.Diagnostics, func(d olmcore.Diagnostic) bool { return d.Severity != olmcore.Info })
		return len(one.Actions) > 0 || isWrong || one.Undecided
	})
}
