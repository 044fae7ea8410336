// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/cleanup"
	csvsweep "github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/installplan"
	plansweep "github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

func auditCommand(r *root) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "What does not fit together, and what was left behind",
		Long: `What does not fit together of Subscriptions, InstallPlans and ClusterServiceVersions, and what was left behind.

What deleted operators left in the whole cluster is looked for with all namespaces (-A) alone.`,
		Example: `  kubectl olm audit -A
  kubectl olm audit -f cluster.json --complete --exit-code`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.audit(cmd.Context()) },
	}
	r.outputs(cmd, "table", "wide", "json", "yaml")
	return cmd
}

func (r *root) audit(ctx context.Context) error {
	w, err := r.open(ctx, readBy("csv", "installplan", "subscription"))
	if err != nil {
		return err
	}
	a := auditor{root: r, world: w, found: []report.Finding{}}
	if err := a.run(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(a.found, func(x, y report.Finding) int {
		return cmp.Or(cmp.Compare(x.Object.Namespace, y.Object.Namespace), cmp.Compare(x.Object.Kind, y.Object.Kind),
			cmp.Compare(x.Object.Name, y.Object.Name), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Message, y.Message))
	})
	if r.output == "json" || r.output == "yaml" {
		err = r.encode(report.Audit{Findings: a.found, NotRead: w.NotRead()})
	} else {
		err = write(r.Out, a.table())
	}
	isWrong := func(f report.Finding) bool { return f.Severity != string(olmcore.Info) }
	if err == nil && r.exitCode && slices.ContainsFunc(a.found, isWrong) {
		err = errFound
	}
	return err
}

// auditor collects findings.
type auditor struct {
	*root
	world *world.World
	found []report.Finding
}

func (a *auditor) run(ctx context.Context) error {
	namespaces := sets.New[string]()
	for _, kind := range searched[:3] {
		if err := a.world.Need(kind); err != nil {
			return fmt.Errorf("%w. %s", err, a.readAdvice())
		}
		objects, err := a.world.List(ctx, kind, a.world.Namespace, nil)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if c, is := o.(*v1alpha1.ClusterServiceVersion); !is || !c.IsCopied() {
				namespaces.Insert(o.GetNamespace())
			}
		}
	}
	for _, namespace := range sets.List(namespaces) {
		for _, look := range []func(context.Context, string) error{a.relations, a.plans} {
			if err := a.said(look(ctx, namespace)); err != nil {
				return err
			}
		}
	}
	if a.world.Namespace != "" {
		return nil
	}
	return a.said(a.cluster(ctx))
}

// said turns an error that is about the objects into a line on stderr: one namespace must not hide the others.
func (a *auditor) said(err error) error {
	if errors.Is(err, olmcore.ErrNotRead) || errors.Is(err, olmcore.ErrInvalidInput) {
		fmt.Fprintln(a.ErrOut, "not audited: "+text.Line(err.Error(), 500))
		return nil
	}
	return err
}

// relations finds what does not fit together in a namespace.
func (a *auditor) relations(ctx context.Context, namespace string) error {
	in, err := subscription.Gather(ctx, a.world, namespace, subscription.Config{})
	if err != nil || len(in.Subscriptions.Items)+len(in.InstallPlans.Items) == 0 {
		return err
	}
	if in.Catalogs, err = a.catalogs.Known(ctx, a.world, namespace, a.catalogs.GlobalNamespace); err != nil {
		return err
	}
	in.Now, in.Live = a.world.Now, true
	found, err := audit.Find(in)
	for _, f := range found {
		a.add("subscription", f.Diagnostic, f.Repair)
	}
	return err
}

// plans finds InstallPlans that are not in order.
func (a *auditor) plans(ctx context.Context, namespace string) error {
	in, err := plansweep.Gather(ctx, a.world, namespace, installplan.Config{})
	if err != nil {
		return err
	}
	in.Now = a.world.Now
	out, err := plansweep.Reconcile(in)
	a.outcome("installplan", out)
	return err
}

// cluster finds what operators left behind that are gone.
func (a *auditor) cluster(ctx context.Context) error {
	in, err := csvsweep.Gather(ctx, a.world, cleanup.Config{}, nil)
	if err != nil {
		return err
	}
	in.Now = a.world.Now
	out, err := csvsweep.Reconcile(in)
	a.outcome("csv", out)
	return err
}

// outcome takes what a sweep says, and what it would do of which it says nothing else.
func (a *auditor) outcome(source string, out olmcore.Outcome) {
	repairs := map[olmcore.Key][]olmcore.Action{}
	said := sets.New[olmcore.Key]()
	for _, action := range out.Actions {
		_, ref, _ := action.Describe()
		repairs[ref.Key()] = append(repairs[ref.Key()], action)
	}
	for _, d := range out.Diagnostics {
		if d.Reason == plansweep.ReasonNotRead || d.Reason == csvsweep.ReasonNotObserved {
			continue // open says so once
		}
		said.Insert(d.Target.Key())
		a.add(source, d, repairs[d.Target.Key()])
	}
	for _, action := range out.Actions {
		if _, ref, cause := action.Describe(); !said.Has(ref.Key()) {
			a.add(source, olmcore.Diagnostic{Severity: olmcore.Info, Reason: cause.Reason, Message: cause.Message, Target: ref}, []olmcore.Action{action})
		}
	}
}

func (a *auditor) add(source string, d olmcore.Diagnostic, repair []olmcore.Action) {
	f := report.Finding{Severity: string(d.Severity), Reason: d.Reason, Message: d.Message, Path: d.Path, Source: source, Repair: []string{}}
	if o := report.ObjectOf(d.Target); o != nil {
		f.Object = *o
	}
	for _, action := range repair {
		verb, ref, _ := action.Describe()
		f.Repair = append(f.Repair, string(verb)+" "+ref.Key().String())
	}
	a.found = append(a.found, f)
}

func (a *auditor) table() string {
	if len(a.found) == 0 {
		return "Nothing was found.\n"
	}
	head := []string{"NAMESPACE", "OBJECT", "SEVERITY", "REASON", "SOURCE", "MESSAGE"}
	if a.output == "wide" {
		head = append(head, "REPAIR")
	}
	counts := map[olmcore.Severity]int{}
	rows := make([][]text.Cell, len(a.found))
	for i, f := range a.found {
		counts[olmcore.Severity(f.Severity)]++
		rows[i] = text.Cells(f.Object.Namespace, typeOf(f.Object.Kind)+"/"+f.Object.Name, f.Severity, f.Reason, f.Source, f.Message)
		rows[i][2].Color = map[olmcore.Severity]text.Color{olmcore.Error: text.Red, olmcore.Warning: text.Yellow}[olmcore.Severity(f.Severity)]
		if a.output == "wide" {
			rows[i] = append(rows[i], text.Cell{Text: strings.Join(f.Repair, ", ")})
		}
	}
	var parts []string
	for _, severity := range []olmcore.Severity{olmcore.Error, olmcore.Warning, olmcore.Info} {
		if n := counts[severity]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, severity))
		}
	}
	return a.palette.Table(head, rows) + "\n" + count(len(a.found), "finding") + ": " + strings.Join(parts, ", ") + ".\n"
}
