// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/path"
)

func pathCommand(r *root) *cobra.Command {
	var how following
	cmd := &cobra.Command{
		Use:   "path SUBSCRIPTION[=BUNDLE]",
		Short: "The upgrades that a Subscription has before it, hop by hop",
		Long: `The upgrades that a Subscription has before it, hop by hop: to where it ends, or to a bundle.

The content of catalogs comes from --catalog, from --registry, or within a cluster from the registries of its CatalogSources.

With --preview it says what approving each hop would do, as approve does for the first one. It writes nothing. Of a catalog that names images
alone the hops are known, and what they bring is not.`,
		Example: `  kubectl olm path etcd --catalog olm/community=catalog.json.gz
  kubectl olm path etcd --preview --catalog olm/community=catalog.json.gz
  kubectl olm path etcd=etcdoperator.v0.9.4 --registry olm/community=localhost:50051 -o mermaid`,
		Args:              one("SUBSCRIPTION or SUBSCRIPTION=BUNDLE"),
		ValidArgsFunction: r.completeNames(subscriptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, bundle, err := parseWay(args[0])
			if err != nil {
				return err
			}
			return r.path(cmd.Context(), name, bundle, how)
		},
	}
	cmd.Flags().BoolVar(&how.across, "across-channels", false, "the way may lead through other channels of the package")
	cmd.Flags().BoolVar(&how.preview, "preview", false, "say what approving each hop would do")
	cmd.MarkFlagsMutuallyExclusive("across-channels", "preview")
	r.separate.flags(cmd)
	r.outputs(cmd, "table", "wide", "json", "yaml", "mermaid", "html")
	return cmd
}

// following is how a way is looked for, and what is said of it.
type following struct{ across, preview bool }

// check refuses what does not fit together.
func (f following) check(r *root, bundle string) error {
	switch {
	case !f.preview && r.separate != "":
		return errors.New("--separate-plans needs --preview: a way has no InstallPlans")
	case !f.preview && r.output == "wide":
		return errors.New("-o wide needs --preview: a way has no more to show")
	case f.preview && r.output == "mermaid":
		return errors.New("-o mermaid shows no previews: leave out --preview")
	case f.preview && bundle != "":
		return errors.New("--preview shows what comes of approving whatever waits: name the Subscription alone, without a bundle")
	case f.preview && r.all:
		return errors.New("--preview is about one namespace, not about all: say -n")
	}
	return nil
}

// pathWorld opens what a way is looked for in.
func pathWorld(ctx context.Context, r *root, f following) (*site, error) {
	if f.preview {
		return r.newSite(ctx, resolutionKinds)
	}
	w, err := r.open(ctx, resolutionKinds)
	if err != nil {
		return nil, err
	}
	return &site{world: w}, readContent(ctx, r, w, false)
}

func (r *root) path(ctx context.Context, name, bundle string, how following) error {
	if err := how.check(r, bundle); err != nil {
		return err
	}
	s, err := pathWorld(ctx, r, how)
	if err != nil {
		return err
	}
	w := s.world
	subs, err := r.subscriptions(ctx, w, []string{name})
	if err != nil {
		return err
	}
	o, err := only("Subscription "+name, subs)
	if err != nil {
		return err
	}
	if len(r.catalogs.Content) == 0 {
		return errNoContent
	}
	in, err := r.catalogs.Input(ctx, w, o.GetNamespace())
	if err != nil {
		return notRead(err, r)
	}
	found, err := path.Find(path.Question{Input: in, Subscription: name, Target: bundle, AcrossChannels: how.across})
	if err != nil {
		return err
	}
	if how.preview {
		return showHops(ctx, r, s, found)
	}
	switch r.output {
	case "json", "yaml":
		err = r.encode(found)
	case "mermaid":
		err = write(r.Out, text.Mermaid(found.Mermaid()))
	case "html":
		err = wayPage(found, w).Write(r.Out)
	default:
		err = write(r.Out, text.Lines(found.String()))
	}
	if err == nil && r.exitCode && (len(found.Hops) > 0 || !found.Reached) {
		err = errFound
	}
	return err
}

// notRead says what to do about kinds that were not read.
func notRead(err error, r *root) error {
	if errors.Is(err, olmcore.ErrNotRead) {
		return fmt.Errorf("%w. %s", err, r.readAdvice())
	}
	return err
}

func summarizeWay(p path.Path) string {
	s := count(len(p.Hops), "upgrade")
	if len(p.Hops) == 0 {
		s = "No upgrade"
	}
	if p.Target == "" {
		return s + "."
	}
	if p.Reached {
		return s + ", and " + p.Target + " is reached."
	}
	return s + ", and " + p.Target + " is not reached."
}

// wayPage is what -o html shows.
func wayPage(found path.Path, w *world.World) page.Page {
	return page.Page{
		Title: "The way of " + found.Namespace + "/" + found.Subscription, Now: w.Now, Summary: summarizeWay(found),
		Sections: waySections(found), Graphs: []page.Drawing{wayGraph(found).Draw()}, NotRead: w.NotRead(),
	}
}

// waySections are the hops of a way in words.
func waySections(p path.Path) []page.Section {
	var all []page.Section
	for i, hop := range p.Hops {
		s := page.Section{Title: fmt.Sprintf("Upgrade %d", i+1)}
		if hop.Approval {
			s.Items = append(s.Items, page.Item{Class: "warn", Text: "It waits for the approval of its InstallPlan."})
		}
		if hop.Channel != "" {
			s.Items = append(s.Items, page.Item{Class: "warn", Text: "Change the channel of the Subscription to " + hop.Channel + "."})
		}
		for _, m := range hop.Moves {
			s.Items = append(s.Items, page.Item{Text: m.String()})
			for _, d := range m.Deprecations {
				s.Items = append(s.Items, page.Item{Class: "warn", Text: "Deprecated: " + d})
			}
		}
		all = append(all, s)
	}
	return append(all, endSection(p))
}

// titleEnd is the title of what is said of the end of a way.
const titleEnd = "Where it ends"

// endSection says where a way ends.
func endSection(p path.Path) page.Section {
	end := page.Section{Title: titleEnd}
	for _, stop := range p.Stops {
		class := "warn"
		if stop.Code == path.Head {
			class = "good"
		}
		end.Items = append(end.Items, page.Item{Class: class, Text: cmp.Or(stop.At, nothing) + ": " + stop.Summary})
	}
	return end
}

// nothing is the name of the box from which first versions come.
const nothing = "nothing installed"

// wayGraph draws a way.
func wayGraph(p path.Path) page.Graph {
	g := page.Graph{Title: "Upgrades of " + strings.TrimPrefix(p.Namespace+"/"+p.Subscription, "/")}
	known := map[string]int{}
	add := func(name, note, class string) {
		if i, there := known[name]; there {
			if note != "" {
				g.Nodes[i].Note, g.Nodes[i].Class = note, class
			}
			return
		}
		known[name] = len(g.Nodes)
		g.Nodes = append(g.Nodes, page.Node{ID: name, Label: name, Note: note, Class: class})
	}
	for i, hop := range p.Hops {
		for _, m := range hop.Moves {
			from := cmp.Or(m.From, nothing)
			if m.From != "" || len(m.RequiredBy) == 0 { // a new dependency comes with the one that needs it
				add(from, "", "")
			}
			class, note := "", m.Version
			if len(m.Deprecations) > 0 {
				class, note = "warn", m.Version+", deprecated"
			}
			add(m.To, note, class)
			g.Edges = append(g.Edges, page.Edge{From: from, To: m.To, Label: fmt.Sprintf("%d: %s", i+1, m.Channel)}) // left out without its box
			for _, by := range m.RequiredBy {
				g.Edges = append(g.Edges, page.Edge{From: by, To: m.To, Label: "needs", Dashed: true})
			}
		}
	}
	for _, stop := range p.Stops {
		class := "warn"
		if stop.Code == path.Head {
			class = "good"
		}
		add(cmp.Or(stop.At, nothing), string(stop.Code), class)
	}
	return g
}

// ways are the ways that Subscriptions have before them, where the content of their catalogs is known.
func ways(ctx context.Context, r *root, w *world.World, subs []*v1alpha1.Subscription) ([]page.Graph, error) {
	if len(r.catalogs.Content) == 0 {
		return nil, nil
	}
	const most = 30 // each is a chain of resolutions
	var graphs []page.Graph
	for _, s := range subs[:min(len(subs), most)] {
		in, err := r.catalogs.Input(ctx, w, s.Namespace)
		if errors.Is(err, olmcore.ErrNotRead) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := path.Find(path.Question{Input: in, Subscription: s.Name})
		if err == nil && len(found.Hops) > 0 {
			graphs = append(graphs, wayGraph(found))
		}
	}
	return graphs, nil
}
