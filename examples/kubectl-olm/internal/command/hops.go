// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/subscription/resolution/path"
)

// hops returns what each approval for a Subscription would do. Custom resources are judged as approve has them judged,
// where a definition is as the cluster has it: what an earlier hop changes cannot be asked about yet.
func (s *site) hops(ctx context.Context, namespace, subscription string) (report.Hops, error) {
	all := report.Hops{Namespace: namespace, Subscription: subscription, NotRead: []string{}}
	in, err := preview.GatherNamespace(ctx, s.reader, namespace, s.world.Now, s.optionsIn(ctx, namespace))
	if err != nil {
		return all, err
	}
	all.NotRead = append(all.NotRead, in.NotRead...)
	all.Hops, err = preview.Hops(ctx, in, subscription)
	if err != nil || s.options.Judge == nil {
		return all, err
	}
	asked := askable(all.Hops)
	if len(asked) == 0 {
		return all, nil
	}
	verdicts, err := s.options.Judge(ctx, s.reader, asked)
	if err != nil {
		return all, err
	}
	in.CustomResources = olmcore.Found(verdicts...)
	all.Hops, err = preview.Hops(ctx, in, subscription)
	for i := range all.Hops {
		for j, d := range all.Hops[i].CustomResourceDefinitions {
			all.Hops[i].CustomResourceDefinitions[j].Judged = d.Judged && !changes(all.Hops[:i], d.Name)
		}
	}
	return all, err
}

// askable are the changes of definitions that no earlier hop changes.
func askable(hops []preview.Preview) (asked []installplan.SchemaChange) {
	for i, p := range hops {
		for _, c := range p.SchemaChanges {
			if !changes(hops[:i], c.Before.Name) {
				asked = append(asked, c)
			}
		}
	}
	return asked
}

// changes reports whether hops change a definition.
func changes(hops []preview.Preview, definition string) bool {
	return slices.ContainsFunc(hops, func(p preview.Preview) bool {
		return slices.ContainsFunc(p.CustomResourceDefinitions, func(d preview.Definition) bool { return d.Name == definition })
	})
}

// showHops writes a way with what each of its approvals does.
func showHops(ctx context.Context, r *root, s *site, found path.Path) error {
	all, err := s.hops(ctx, found.Namespace, found.Subscription)
	if err != nil {
		return notRead(err, r)
	}
	switch r.output {
	case "json", "yaml":
		err = r.encode(all)
	case "html":
		p := wayPage(found, s.world)
		p.Sections, p.NotRead = nil, all.NotRead
		for i, hop := range all.Hops {
			p.Below = append(p.Below, hopSection(i, hop))
		}
		p.Below = append(p.Below, ending(all, found))
		err = p.Write(r.Out)
	default:
		err = write(r.Out, hopsText(r, all, found))
	}
	if err == nil && r.exitCode && len(all.Hops) > 0 {
		err = errFound
	}
	return err
}

// tableTitles are the sections of a hop that the table has; wide has all.
var tableTitles = []string{titleBlocked, titleVersions, titlePermissions, titleDefinitions, titleRestarts, titleWayBack}

// hopsText is what -o table and wide show.
func hopsText(r *root, all report.Hops, found path.Path) string {
	var b strings.Builder
	title := fmt.Sprintf("Subscription %s/%s: %s", all.Namespace, all.Subscription, count(len(all.Hops), "approval"))
	b.WriteString(r.palette.Paint(text.Bold, text.Line(title, 500)) + "\n")
	isWide := r.output == "wide"
	for i, p := range all.Hops {
		fmt.Fprintf(&b, "\n%s\n%s\n", r.palette.Paint(text.Bold, text.Line(hopTitle(i, p), 500)), summarizePreview(p))
		if !isWide {
			p.Permissions.Removed, p.CustomResourceDefinitions = nil, breaking(p.CustomResourceDefinitions)
		}
		sections := slices.DeleteFunc(hopSections(p, isWide), func(s page.Section) bool { return !isWide && !slices.Contains(tableTitles, s.Title) })
		printSections(&b, r.palette, sections)
	}
	b.WriteString("\n")
	for _, item := range ending(all, found).Items {
		b.WriteString(text.Line(item.Text, 1000) + "\n")
	}
	if len(all.NotRead) > 0 {
		fmt.Fprintf(&b, "\nNot read: %s. What depends on them is told as if there were none.\n", text.Line(strings.Join(all.NotRead, ", "), 1000))
	}
	return b.String()
}

// hopTitle names a hop by the versions that it brings.
func hopTitle(i int, p preview.Preview) string {
	names := make([]string, len(p.Versions))
	for j, v := range p.Versions {
		names[j] = v.Name
	}
	what := strings.Join(names, ", ")
	if what == "" && p.Plan.Name != "" {
		what = "InstallPlan " + p.Plan.Name
	}
	return fmt.Sprintf("Approval %d: %s", i+1, cmp.Or(what, "there is no InstallPlan"))
}

// breaking are the definitions that take something away.
func breaking(all []preview.Definition) []preview.Definition {
	return slices.DeleteFunc(slices.Clone(all), func(d preview.Definition) bool {
		return len(d.Breaking)+len(d.Refused)+len(d.VersionsRemoved) == 0 && d.Change != preview.Deleted
	})
}

// hopSections are those of a preview; where there is no plan there is no way back to speak of.
func hopSections(p preview.Preview, isWide bool) []page.Section {
	return slices.DeleteFunc(previewSections(p, isWide), func(s page.Section) bool { return p.Plan.Name == "" && s.Title == titleWayBack })
}

// hopSection is a hop as one section: the titles of what it says stand above their lines.
func hopSection(i int, p preview.Preview) page.Section {
	s := page.Section{Title: hopTitle(i, p), Items: []page.Item{{Text: summarizePreview(p)}}}
	for _, part := range hopSections(p, true) {
		s.Items = append(s.Items, page.Item{Text: part.Title})
		for _, item := range part.Items {
			item.IsSub = true
			s.Items = append(s.Items, item)
		}
	}
	return s
}

// ending says why there are no more hops.
func ending(all report.Hops, found path.Path) page.Section {
	if n := len(all.Hops); n > 0 && len(all.Hops[n-1].Blocked) > 0 {
		return page.Section{Title: titleEnd, Items: []page.Item{{Class: "bad", Text: fmt.Sprintf("Approval %d would not succeed: what comes after it is not known.", n)}}}
	}
	if len(all.Hops) == preview.MaxHops {
		return page.Section{Title: titleEnd, Items: []page.Item{{Class: "warn", Text: fmt.Sprintf("No more than %d approvals are looked at.", preview.MaxHops)}}}
	}
	return endSection(found)
}
