// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/olmcore"
)

func whyCommand(r *root) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why NAME|TYPE/NAME",
		Short: "What blocks one object, since when, and what to do",
		Long: `What blocks one object, since when, and what to do.

NAME is a Subscription; else a ClusterServiceVersion, an InstallPlan, a CatalogSource or a package.
TYPE is subscription (sub), installplan (ip), csv or catalogsource (catsrc).
If the Roles and RoleBindings of the namespace can be listed, the answer also names those that do not apply in every namespace that the operator watches.`,
		Example: `  kubectl olm why etcd
  kubectl olm why csv/etcdoperator.v0.9.4 -o json
  kubectl olm why catsrc/community -n olm`,
		Args:              one("NAME or TYPE/NAME"),
		ValidArgsFunction: r.completeNames(subscriptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := parseObject(args[0])
			if err != nil {
				return err
			}
			return r.why(cmd.Context(), of)
		},
	}
	r.outputs(cmd, "table", "json", "yaml")
	return cmd
}

// answer is what why says of one object.
type answer struct {
	// what is said of the object before anything else, words what its phase means.
	what, words string
	report.Report
	chain []link
	// waiting are the Subscriptions that are concerned.
	waiting []string
	// permissions is about Roles that do not hold wherever the operator watches.
	permissions string
}

func (r *root) why(ctx context.Context, of object) error {
	w, err := r.open(ctx, statusKinds, permissionKinds...)
	if err != nil {
		return err
	}
	look := &lookup{r, w}
	found, err := look.find(ctx, of)
	if err != nil {
		return err
	}
	a, err := look.answer(ctx, found)
	if err != nil {
		return err
	}
	if r.output == "table" {
		err = write(r.Out, a.text(r.palette, w))
	} else {
		err = r.encode(a.Report)
	}
	if err == nil && r.exitCode && !a.Healthy() {
		err = errFound
	}
	return err
}

// lookup looks for objects, and says where they stand.
type lookup struct {
	*root
	world *world.World
}

// searched are the kinds in which a bare name is looked for, in this order.
var searched = []schema.GroupVersionKind{subscriptions, csvs, installPlans, catalogs}

// find returns the object that is asked about. The error says which name may be meant.
func (l *lookup) find(ctx context.Context, of object) (olmcore.Object, error) {
	kinds := searched
	if of.kind.Kind != "" {
		kinds = []schema.GroupVersionKind{of.kind}
		if err := l.world.Need(of.kind); err != nil {
			return nil, err
		}
	}
	var known []string
	for _, kind := range kinds {
		if !l.world.Holds(kind.GroupKind(), l.world.Namespace) {
			continue
		}
		objects, err := l.world.List(ctx, kind, l.world.Namespace, nil)
		if err != nil {
			return nil, err
		}
		known = append(known, namesOf(objects)...)
		named := slices.DeleteFunc(slices.Clone(objects), func(o olmcore.Object) bool { return o.GetName() != of.name })
		if len(named) > 0 {
			return only(kind.Kind+" "+of.name, named)
		}
	}
	if of.kind.Kind == "" {
		subs, err := l.subscriptions(ctx, l.world, nil)
		if err != nil {
			return nil, err
		}
		named := slices.DeleteFunc(slices.Clone(subs), func(s *v1alpha1.Subscription) bool { return s.Spec == nil || s.Spec.Package != of.name })
		if len(named) > 0 {
			return only("package "+of.name, named)
		}
		for _, s := range subs {
			if s.Spec != nil {
				known = append(known, s.Spec.Package)
			}
		}
		return nil, unknown("Subscription, CSV, InstallPlan, CatalogSource or package", of.name, l.world.Namespace, known)
	}
	return nil, unknown(of.kind.Kind, of.name, l.world.Namespace, known)
}

// only returns the one of some objects; of several the error names the namespaces.
func only[T olmcore.Object](what string, objects []T) (olmcore.Object, error) {
	if len(objects) == 1 {
		return objects[0], nil
	}
	var places []string
	for _, o := range objects {
		places = append(places, o.GetNamespace()+"/"+o.GetName())
	}
	return nil, fmt.Errorf("%s is there %d times, choose one with -n or by its name: %s", what, len(objects), strings.Join(places[:min(len(places), 10)], ", "))
}

// answer says where an object stands.
func (l *lookup) answer(ctx context.Context, o olmcore.Object) (answer, error) {
	subs, err := l.concerned(ctx, o)
	if err != nil {
		return answer{}, err
	}
	reports, err := l.reports(ctx, l.world, subs)
	if err != nil {
		return answer{}, err
	}
	var a answer
	switch o := o.(type) {
	case *v1alpha1.Subscription:
		a = answer{what: "Subscription " + o.Namespace + "/" + o.Name, Report: reports[0].Report}
		if s := reports[0]; s.Package != "" {
			a.what += ": package " + s.Package + ", channel " + cmp.Or(s.Channel, "(the default one)")
		}
		if i := rank(a.Phase); i < len(phases) {
			a.words = clause(phases[i].Meaning)
		}
	case *v1alpha1.InstallPlan:
		a = whyPlan(o, reports)
	case *v1alpha1.ClusterServiceVersion:
		a = whyCSV(o, reports)
	case *v1alpha1.CatalogSource:
		a = whyCatalog(o)
	}
	for i, s := range subs {
		if _, self := o.(*v1alpha1.Subscription); !self {
			a.waiting = append(a.waiting, fmt.Sprintf("%s/%s (%s)", s.Namespace, s.Name, reports[i].Phase))
		}
	}
	if a.permissions, err = l.missingPermissions(ctx, o); err != nil {
		return answer{}, err
	}
	if len(subs) == 1 {
		a.chain = chainOf(ctx, l.world, subs[0], reports[0].Report)
	}
	return a, nil
}

// clause is the first sentence of a text as the part of another.
func clause(meaning string) string {
	first, _, _ := strings.Cut(strings.TrimSuffix(meaning, "."), ". ")
	if first == "" {
		return ""
	}
	return strings.ToLower(first[:1]) + first[1:]
}

// concerned are the Subscriptions that an object is about, sorted by namespace and name.
func (l *lookup) concerned(ctx context.Context, o olmcore.Object) ([]*v1alpha1.Subscription, error) {
	if s, is := o.(*v1alpha1.Subscription); is {
		return []*v1alpha1.Subscription{s}, nil
	}
	if !l.world.Holds(subscriptions.GroupKind(), l.world.Namespace) {
		return nil, nil
	}
	all, err := olmcore.List[*v1alpha1.Subscription](ctx, l.world, l.world.Namespace, nil)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *v1alpha1.Subscription) bool { return !concerns(o, s) }), nil
}

func concerns(o olmcore.Object, s *v1alpha1.Subscription) bool {
	ref := s.Status.InstallPlanRef
	switch o.(type) {
	case *v1alpha1.InstallPlan:
		return s.Namespace == o.GetNamespace() && ref != nil && ref.Name == o.GetName()
	case *v1alpha1.ClusterServiceVersion:
		return s.Namespace == o.GetNamespace() && (s.Status.InstalledCSV == o.GetName() || s.Status.CurrentCSV == o.GetName())
	}
	return s.Spec != nil && s.Spec.CatalogSourceNamespace == o.GetNamespace() && s.Spec.CatalogSource == o.GetName()
}

// textWidth is how much of a message is shown: a tenant may write any length.
const textWidth = 3000

// text is the answer for a person, on one screen.
func (a answer) text(p text.Palette, w *world.World) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s", p.Paint(text.Bold, text.Line(a.what, 300)), p.Paint(a.color(), text.Line(a.Phase, 100)))
	if a.words != "" {
		fmt.Fprintf(&b, ": %s", a.words)
	}
	b.WriteString(".\n\n")
	blocked := "Blocked by"
	if a.Healthy() {
		blocked = "Object"
	}
	var object, since string
	if o := a.Object; o != nil {
		object = o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
	}
	if a.Since != nil {
		since = fmt.Sprintf("%s (%s ago)", a.Since.Format("2006-01-02 15:04:05 UTC"), age(a.Since, w.Now))
	}
	for _, line := range []struct{ name, text string }{
		{blocked, object}, {"Reason", a.Reason}, {"Message", a.Message}, {"Since", since}, {"To do", a.advice()}, {"Command", a.command()},
		{"Permissions", a.permissions}, {"Subscriptions", strings.Join(a.waiting, ", ")},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "%-14s %s\n", line.name, text.Line(line.text, textWidth))
		}
	}
	if len(a.chain) > 0 {
		b.WriteByte('\n')
		printChain(&b, p, a.chain)
	}
	return b.String()
}

// advice is what to do; a person also wants to read that there is nothing.
func (a answer) advice() string {
	switch {
	case a.Advice != "":
		return a.Advice
	case a.permissions != "":
		return "" // the line about permissions says it
	case a.Healthy():
		return "Nothing."
	}
	return "Nothing but to wait."
}

// command is the one that helps, if any.
func (a answer) command() string {
	if o := a.Object; o != nil && o.Kind == v1alpha1.InstallPlanKind && a.Reason == string(v1alpha1.InstallPlanPhaseRequiresApproval) {
		return "kubectl olm approve " + o.Name + " -n " + o.Namespace
	}
	return ""
}

func (a answer) color() text.Color {
	if a.Healthy() {
		return text.Green
	}
	return cmp.Or(colorOf(a.Phase), text.Yellow)
}
