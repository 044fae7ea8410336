// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// packageManifests are what OLM's package server serves.
var packageManifests = schema.GroupVersionKind{Group: "packages.operators.coreos.com", Version: "v1", Kind: "PackageManifest"}

func catalogCommand(r *root) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog [PACKAGE]",
		Short: "What catalogs offer: packages, or the channels and versions of one",
		Long: `What catalogs offer: packages, or the channels and versions of one.

The content comes from --catalog, from --registry, or within a cluster from the registries of its CatalogSources. Else it
comes from the PackageManifests of the cluster, which do not say which version upgrades from which.`,
		Example: `  kubectl olm catalog -A
  kubectl olm catalog etcd --catalog olm/community=catalog.json.gz -o mermaid`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return (&offering{r}).run(cmd.Context(), name)
		},
	}
	r.outputs(cmd, "table", "wide", "json", "yaml", "mermaid", "html")
	return cmd
}

// offering is what catalogs offer.
type offering struct{ *root }

func (r *offering) run(ctx context.Context, name string) error {
	isGraph := r.output == "mermaid" || r.output == "html"
	if isGraph && name == "" {
		return fmt.Errorf("-o %s needs a PACKAGE: a whole catalog is no picture", r.output)
	}
	all, err := r.offers(ctx)
	if err != nil {
		return err
	}
	if name != "" {
		var known []string
		for _, p := range all.Packages {
			known = append(known, p.Name)
		}
		all.Packages = slices.DeleteFunc(all.Packages, func(p report.Package) bool { return p.Name != name })
		if len(all.Packages) == 0 {
			return unknown("package", name, "", known)
		}
	}
	switch {
	case isGraph:
		err = r.drawCatalog(all)
	case r.output == "json" || r.output == "yaml":
		err = r.encode(all)
	case name == "":
		err = write(r.Out, r.packagesTable(all))
	default:
		err = write(r.Out, r.entriesTable(all))
	}
	if err == nil && r.exitCode && slices.ContainsFunc(all.Packages, func(p report.Package) bool { return p.Deprecation != "" }) {
		err = errFound
	}
	return err
}

// offers is what catalogs offer, from where their content is known.
func (r *offering) offers(ctx context.Context) (report.Catalogs, error) {
	all := report.Catalogs{Packages: []report.Package{}, NotRead: []string{}}
	isLive := len(r.files) == 0
	if isLive && len(r.catalogs.Packages) == 0 && len(r.registries) == 0 || !isLive {
		kinds := []schema.GroupVersionKind{packageManifests}
		if isLive && inCluster() {
			kinds = append(kinds, catalogs)
		}
		w, err := r.open(ctx, kinds)
		if err != nil {
			return all, err
		}
		if err := readContent(ctx, r.root, w, false); err != nil {
			return all, err
		}
		if len(r.catalogs.Packages) == 0 {
			if err := fromManifests(ctx, w, &all); err != nil {
				return all, err
			}
		}
	} else if err := readContent(ctx, r.root, &world.World{}, false); err != nil {
		return all, err
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.catalogs.Packages), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }) {
		content := r.catalogs.Packages[key]
		source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		described, _ := packages.Describe(source, content)
		for i := range described.Packages {
			all.Packages = append(all.Packages, packageOf(&described.Packages[i], content))
		}
	}
	slices.SortStableFunc(all.Packages, func(a, b report.Package) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Catalog, b.Catalog))
	})
	return all, nil
}

// fromManifests takes what the PackageManifests of a world say, of each catalog once.
func fromManifests(ctx context.Context, w *world.World, all *report.Catalogs) error {
	if !w.Holds(packageManifests.GroupKind(), w.Namespace) {
		return errNoContent
	}
	objects, err := w.List(ctx, packageManifests, w.Namespace, nil)
	if err != nil {
		return err
	}
	type place struct{ catalog, name string }
	seen := map[place]bool{}
	for _, o := range objects {
		u, is := o.(*unstructured.Unstructured)
		if !is {
			return errors.New("a PackageManifest is none")
		}
		document, err := json.Marshal(u)
		if err != nil {
			return err
		}
		var m packages.PackageManifest
		if err := json.Unmarshal(document, &m); err != nil {
			all.NotRead = append(all.NotRead, fmt.Sprintf("PackageManifest %s/%s: %v", u.GetNamespace(), u.GetName(), err))
			continue
		}
		p := packageOf(&m, nil)
		if at := (place{p.Catalog, p.Name}); !seen[at] {
			seen[at] = true
			all.Packages = append(all.Packages, p)
		}
	}
	return nil
}

// packageOf is what is known of a package: content, which may be nil, says which version upgrades from which.
func packageOf(m *packages.PackageManifest, content []resolution.Package) report.Package {
	s := &m.Status
	p := report.Package{
		Catalog: s.CatalogSourceNamespace + "/" + s.CatalogSource, Name: cmp.Or(s.PackageName, m.Name), DefaultChannel: s.DefaultChannel,
		Deprecation: deprecation(s.Deprecation), Channels: []report.Channel{},
	}
	type at struct{ channel, entry string }
	edges := map[at]resolution.ChannelEntry{}
	for _, one := range content {
		if one.Name != p.Name {
			continue
		}
		for _, c := range one.Channels {
			for _, e := range c.Entries {
				edges[at{c.Name, e.Name}] = e
			}
		}
	}
	for _, c := range s.Channels {
		channel := report.Channel{Name: c.Name, Head: c.CurrentCSV, Deprecation: deprecation(c.Deprecation), Entries: []report.Entry{}}
		for _, e := range c.Entries {
			edge := edges[at{c.Name, e.Name}]
			entry := report.Entry{Name: e.Name, Version: e.Version, Deprecation: deprecation(e.Deprecation), Replaces: edge.Replaces, Skips: edge.Skips, SkipRange: edge.SkipRange}
			if entry.Skips == nil {
				entry.Skips = []string{}
			}
			if e.Name == c.CurrentCSV {
				channel.Version = e.Version
			}
			channel.Entries = append(channel.Entries, entry)
		}
		p.Channels = append(p.Channels, channel)
	}
	return p
}

// deprecation is the message of a deprecation, which may be empty.
func deprecation(d *packages.Deprecation) string {
	if d == nil {
		return ""
	}
	return cmp.Or(d.Message, "deprecated")
}

func (r *offering) packagesTable(all report.Catalogs) string {
	if len(all.Packages) == 0 {
		return "No packages.\n"
	}
	head := []string{"CATALOG", "PACKAGE", "DEFAULT-CHANNEL", "HEAD", "VERSION", "CHANNELS", "DEPRECATED"}
	var rows [][]text.Cell
	for _, p := range all.Packages {
		var first report.Channel
		var names []string
		for _, c := range p.Channels {
			names = append(names, c.Name)
			if c.Name == p.DefaultChannel {
				first = c
			}
		}
		const most = 4
		if len(names) > most && r.output != "wide" {
			names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
		}
		row := text.Cells(p.Catalog, p.Name, p.DefaultChannel, first.Head, first.Version, strings.Join(names, ","), r.deprecated(p.Deprecation))
		row[6].Color = text.Yellow
		rows = append(rows, row)
	}
	return r.palette.Table(head, rows)
}

// deprecated is the cell of a deprecation: its message is for -o wide.
func (r *offering) deprecated(message string) string {
	if message != "" && r.output != "wide" {
		return "yes"
	}
	return message
}

func (r *offering) entriesTable(all report.Catalogs) string {
	head := []string{"CATALOG", "CHANNEL", "ENTRY", "VERSION", "REPLACES", "SKIPS", "DEPRECATED"}
	var rows [][]text.Cell
	for _, p := range all.Packages {
		for _, c := range p.Channels {
			channel := c.Name
			if c.Name == p.DefaultChannel {
				channel += " (default)"
			}
			for _, e := range c.Entries {
				skips := e.SkipRange
				if n := len(e.Skips); n > 0 {
					skips = strings.TrimPrefix(skips+" and "+strings.Join(e.Skips[:min(n, 3)], ","), " and ")
					if n > 3 {
						skips += fmt.Sprintf(" and %d more", n-3)
					}
				}
				row := text.Cells(p.Catalog, channel, e.Name, e.Version, e.Replaces, skips, r.deprecated(cmp.Or(e.Deprecation, c.Deprecation, p.Deprecation)))
				row[6].Color = text.Yellow
				if e.Name == c.Head {
					row[2].Color = text.Bold
				}
				rows = append(rows, row)
			}
		}
	}
	return r.palette.Table(head, rows)
}

// drawCatalog draws the upgrades within the channels of one package.
func (r *offering) drawCatalog(all report.Catalogs) error {
	if len(r.catalogs.Packages) == 0 {
		return errors.New("PackageManifests do not say which version upgrades from which: " + errNoContent.Error())
	}
	var graphs []page.Graph
	for _, p := range all.Packages {
		graphs = append(graphs, channelGraphs(p)...)
	}
	if r.output == "mermaid" {
		return write(r.Out, mermaidOf(graphs))
	}
	p := page.Page{Title: "Upgrades of package " + all.Packages[0].Name, Summary: count(len(graphs), "channel") + "."}
	for _, g := range graphs {
		p.Graphs = append(p.Graphs, g.Draw())
	}
	return p.Write(r.Out)
}

// channelGraphs draws each channel of a package, its head on top.
func channelGraphs(p report.Package) []page.Graph {
	var all []page.Graph
	for _, c := range p.Channels {
		g := page.Graph{Title: p.Catalog + ", channel " + c.Name, Up: true}
		for _, e := range c.Entries {
			n := page.Node{ID: e.Name, Label: e.Name, Note: e.Version}
			switch {
			case e.Deprecation != "":
				n.Class, n.Note = "warn", e.Version+", deprecated"
			case e.Name == c.Head:
				n.Class, n.Note = "good", e.Version+", head"
			}
			g.Nodes = append(g.Nodes, n)
			if e.Replaces != "" {
				g.Edges = append(g.Edges, page.Edge{From: e.Replaces, To: e.Name})
			}
			for _, skipped := range e.Skips {
				if skipped != e.Replaces {
					g.Edges = append(g.Edges, page.Edge{From: skipped, To: e.Name, Dashed: true})
				}
			}
		}
		all = append(all, g)
	}
	return all
}

// mermaidOf is graphs in the form of Mermaid, each a part of one.
func mermaidOf(graphs []page.Graph) string {
	var b strings.Builder
	b.WriteString("flowchart BT\n")
	for i, g := range graphs {
		fmt.Fprintf(&b, "  subgraph g%d[%s]\n", i, quote(g.Title))
		ids := map[string]string{}
		for j, n := range g.Nodes {
			ids[n.ID] = fmt.Sprintf("g%dn%d", i, j)
			fmt.Fprintf(&b, "    %s[%s]\n", ids[n.ID], quote(n.Label))
		}
		for _, e := range g.Edges {
			arrow := "-->"
			if e.Dashed {
				arrow = "-.->"
			}
			if ids[e.From] != "" && ids[e.To] != "" {
				fmt.Fprintf(&b, "    %s %s %s\n", ids[e.From], arrow, ids[e.To])
			}
		}
		b.WriteString("  end\n")
	}
	return b.String()
}
