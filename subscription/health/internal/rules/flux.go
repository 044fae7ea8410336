// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// HealthCheck is an entry of spec.healthCheckExprs of a Flux Kustomization, with Flux's field names. The expressions
// are CEL. Their variables are the top-level fields of the object. For an object without a status, Flux retries the
// evaluation, so the object is in progress.
type HealthCheck struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

// Flux returns the health check for the objects of a kind. It returns an *olmcore.InputError for a kind that has no
// table.
func Flux(kind string) (HealthCheck, error) {
	t := tableOf(kind)
	if t == nil {
		return HealthCheck{}, noTable(kind)
	}
	return HealthCheck{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind,
		InProgress: t.cel("InProgress"), Failed: t.cel("Failed"), Current: t.cel("Current"),
	}, nil
}

// cel writes an expression that is true when the kstatus of an object is the given one: each row in turn, and those
// that are false and followed by nothing else left out.
func (t *Table) cel(want string) string {
	last := kstatus(Unknown, false) == want
	var b strings.Builder
	rows := t.Rows
	n := len(rows)
	if n > 0 && len(rows[n-1].When) == 0 {
		last, rows = kstatus(rows[n-1].Status, rows[n-1].Passes) == want, rows[:n-1]
	}
	for n := len(rows); n > 0 && (kstatus(rows[n-1].Status, rows[n-1].Passes) == want) == last; n-- {
		rows = rows[:n-1]
	}
	for i := range rows {
		is := kstatus(rows[i].Status, rows[i].Passes) == want
		b.WriteString(strings.Join(rows[i].cel(), " && ") + " ? " + word(is) + " :\n")
	}
	return b.String() + word(last)
}

func word(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// cel writes what must hold for a row, each thing once.
func (r *Row) cel() (all []string) {
	for i := range r.When {
		for _, clause := range r.When[i].cel() {
			if !slices.Contains(all, clause) {
				all = append(all, clause)
			}
		}
	}
	return all
}

// cel writes a Test: all of it must hold.
func (t *Test) cel() (all []string) {
	if t.Field != "" {
		all = append(all, celGuards(t.Field)...)
		switch path := t.Field; len(t.In) {
		case 0:
			all = append(all, "type("+path+") == string", path+" != ''")
		case 1:
			all = append(all, path+" == "+celText(t.In[0]))
		default:
			all = append(all, path+" in "+celList(t.In))
		}
	}
	if t.True != "" {
		all = append(append(all, celGuards(t.True)...), t.True+" == true")
	}
	if t.Condition != "" {
		all = append(append(all, celGuards("status.conditions")...), "type(status.conditions) == list", t.celCondition())
	}
	if t.Not {
		return []string{"!(" + strings.Join(all, " && ") + ")"}
	}
	return all
}

func (t *Test) celCondition() string {
	all := []string{"type(c) == map", "has(c.type)", "c.type == " + celText(t.Condition), "has(c.status)", "c.status == " + celText(t.Status)}
	if len(t.Reasons) > 0 {
		all = append(all, "has(c.reason)", "c.reason in "+celList(t.Reasons))
	}
	return "status.conditions.exists(c, " + strings.Join(all, " && ") + ")"
}

// celGuards says that there is something at a path.
func celGuards(path string) (all []string) {
	keys := strings.Split(path, ".")
	for i := 1; i < len(keys); i++ {
		above, is := strings.Join(keys[:i], "."), strings.Join(keys[:i+1], ".")
		all = append(all, "type("+above+") == map", "has("+is+")")
	}
	return all
}

// celText quotes a word of a table: none has a quote or a backslash.
func celText(word string) string { return "'" + word + "'" }

func celList(words []string) string {
	quoted := slices.Clone(words)
	for i, w := range quoted {
		quoted[i] = celText(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
