// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

func approveCommand(r *root) *cobra.Command {
	var w writing
	cmd := &cobra.Command{
		Use:   "approve PLAN|SUBSCRIPTION",
		Short: "Show what an InstallPlan would do, ask, and approve it",
		Long: `Show what an InstallPlan would do, ask, and approve it.

It approves what it has shown: when the plan has changed meanwhile, it shows it again. Where no person can be asked it
needs --yes, which approves no plan that something stands in the way of.`,
		Example: `  kubectl olm approve etcd --dry-run
  kubectl olm approve install-abcde -n operators
  kubectl olm approve etcd --dry-run -o json`,
		Args:              one("an InstallPlan or a Subscription"),
		ValidArgsFunction: r.completeNames(installPlans),
		RunE: func(cmd *cobra.Command, args []string) error {
			return (&approval{root: r, may: w}).run(cmd.Context(), args[0])
		},
	}
	w.flags(cmd)
	r.separate.flags(cmd)
	r.outputs(cmd, "table", "wide", "json", "yaml", "html")
	return cmd
}

// writing says whether a command that writes may.
type writing struct{ dryRun, yes bool }

func (w *writing) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.dryRun, "dry-run", false, "show it alone, and write nothing")
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
}

// check refuses to write where there is nothing to write to, and where no person can be asked.
func (w *writing) check(r *root, what string) error {
	switch {
	case w.dryRun:
		return nil
	case len(r.files) > 0:
		return fmt.Errorf("%s writes to a live cluster, not to files: say --dry-run", what)
	case r.all:
		return fmt.Errorf("%s is about one namespace, not about all: say -n", what)
	case !w.yes && !r.terminal(r.In):
		return errors.New("no person can be asked, as the input is no terminal: say --yes, or --dry-run")
	}
	return nil
}

// mostTries is how often a plan that changes is shown again.
const mostTries = 5

// approval is a plan that is shown and approved.
type approval struct {
	*root
	*site
	may writing
}

func (a *approval) run(ctx context.Context, name string) error {
	err := a.may.check(a.root, "approve")
	if err != nil {
		return err
	}
	if a.site, err = a.newSite(ctx, writtenKinds); err != nil {
		return err
	}
	plan, err := a.planNamed(ctx, name)
	if err != nil {
		return err
	}
	for range mostTries {
		p, err := a.shown(ctx, plan)
		if err != nil {
			return err
		}
		observed, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, a.reader, plan.Namespace, plan.Name)
		switch {
		case err != nil:
			return err
		case observed == nil:
			return fmt.Errorf("InstallPlan %s does not exist any more", plan)
		case observed.Spec.Approved:
			say(a.ErrOut, "InstallPlan %s is approved already.", plan)
			return nil
		case a.may.dryRun && a.exitCode && (len(p.Objects) > 0 || len(p.Blocked) > 0):
			return errFound
		case a.may.dryRun:
			return nil
		case a.may.yes && len(p.Blocked) > 0:
			return errors.New("it is not approved: something stands in its way; without --yes you are asked")
		}
		err = a.approveShown(ctx, p, observed)
		if !errors.Is(err, errChanged) {
			return err
		}
		say(a.ErrOut, "InstallPlan %s has changed since it was shown. This is how it is now:", plan)
		if a.may.yes {
			_, err := a.shown(ctx, plan)
			return errors.Join(err, errors.New("it is not approved: run it again if this is what you want"))
		}
	}
	return fmt.Errorf("InstallPlan %s changes all the time", plan)
}

// errChanged: what was shown is not any more.
var errChanged = errors.New("changed")

// shown shows what approving a plan does.
func (a *approval) shown(ctx context.Context, plan types.NamespacedName) (preview.Preview, error) {
	p, err := preview.Run(ctx, a.reader, plan, a.world.Now, a.optionsIn(ctx, plan.Namespace))
	if err != nil {
		return p, notRead(err, a.root)
	}
	return p, a.show(p)
}

// approveShown asks, and approves the version of the plan that was shown and no other.
func (a *approval) approveShown(ctx context.Context, p preview.Preview, observed *v1alpha1.InstallPlan) error {
	if !a.may.yes {
		ok, err := a.ask(fmt.Sprintf("Approve InstallPlan %s/%s?", p.Plan.Namespace, p.Plan.Name))
		if err != nil || !ok {
			return err
		}
	}
	if observed.UID != p.Plan.UID || observed.ResourceVersion != p.Plan.ResourceVersion {
		return errChanged
	}
	approved := observed.DeepCopy()
	approved.Spec.Approved = true
	err := a.cluster.Do(ctx, olmcore.Update{Target: olmcore.RefOf(observed), Before: observed, After: approved, Cause: olmcore.Cause{Reason: "Approved", Message: "approved with kubectl olm"}})
	switch {
	case apierrors.IsConflict(err):
		return errChanged
	case err != nil:
		return err
	}
	say(a.ErrOut, "InstallPlan %s/%s is approved.", p.Plan.Namespace, p.Plan.Name)
	return nil
}

// ask asks a question whose answer is no unless it is yes.
func (r *root) ask(question string) (bool, error) {
	fmt.Fprint(r.ErrOut, text.Line(question, 500)+" [y/N] ")
	if r.answers == nil {
		r.answers = bufio.NewReader(r.In)
	}
	answer, err := r.answers.ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	case "":
		if err != nil {
			fmt.Fprintln(r.ErrOut)
		}
	}
	fmt.Fprintln(r.ErrOut, "Nothing was written.")
	return false, nil
}

// planNamed returns the InstallPlan of a name, or the one that the Subscription of that name refers to.
func (a *approval) planNamed(ctx context.Context, name string) (types.NamespacedName, error) {
	of, err := parseObject(name)
	if err != nil {
		return types.NamespacedName{}, err
	}
	if of.kind.Kind == "" {
		// A plan's name is chosen at random, so that no Subscription has it.
		if plans, err := a.world.List(ctx, installPlans, a.world.Namespace, nil); err == nil {
			for _, p := range plans {
				if p.GetName() == of.name {
					of.kind = installPlans
				}
			}
		}
		of.kind.Group, of.kind.Version, of.kind.Kind = installPlans.Group, installPlans.Version, cmp.Or(of.kind.Kind, v1alpha1.SubscriptionKind)
	}
	found, err := (&lookup{a.root, a.world}).find(ctx, of)
	if err != nil {
		return types.NamespacedName{}, err
	}
	key := types.NamespacedName{Namespace: found.GetNamespace(), Name: found.GetName()}
	switch o := found.(type) {
	case *v1alpha1.InstallPlan:
	case *v1alpha1.Subscription:
		if o.Status.InstallPlanRef == nil {
			return key, fmt.Errorf("there is no InstallPlan of Subscription %s: kubectl olm why %s says why", key, key.Name)
		}
		key.Name = o.Status.InstallPlanRef.Name
	default:
		return key, fmt.Errorf("%q is neither an InstallPlan nor a Subscription", name)
	}
	return key, nil
}

// show writes a preview in the form that -o says.
func (a *approval) show(p preview.Preview) error {
	title := "InstallPlan " + p.Plan.Namespace + "/" + p.Plan.Name
	switch a.output {
	case "json", "yaml":
		return a.encode(p)
	case "html":
		of := page.Page{Title: "What approving " + title + " does", Summary: summarizePreview(p), Sections: previewSections(p, true), NotRead: p.NotRead}
		if g := versionsGraph(p); len(g.Nodes) > 0 {
			of.Graphs = []page.Drawing{g.Draw()}
		}
		return of.Write(a.Out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", a.palette.Paint(text.Bold, text.Line(title, 500)), summarizePreview(p))
	printSections(&b, a.palette, previewSections(p, a.output == "wide"))
	if len(p.NotRead) > 0 {
		fmt.Fprintf(&b, "\nNot read: %s. What depends on them is told as if there were none.\n", text.Line(strings.Join(p.NotRead, ", "), 1000))
	}
	return write(a.Out, b.String())
}

// printSections writes sections as text.
func printSections(b *strings.Builder, p text.Palette, sections []page.Section) {
	colors := map[string]text.Color{"good": text.Green, "warn": text.Yellow, "bad": text.Red}
	for _, s := range sections {
		fmt.Fprintf(b, "\n%s\n", p.Paint(text.Bold, s.Title))
		for _, item := range s.Items {
			indent := "  "
			if item.IsSub {
				indent = "    "
			}
			b.WriteString(indent + p.Paint(colors[item.Class], text.Line(item.Text, 1000)) + "\n")
		}
	}
}
