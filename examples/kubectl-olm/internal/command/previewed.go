// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/preview"
)

// Titles of what is said of a preview.
const (
	titleBlocked     = "In its way"
	titleVersions    = "Versions"
	titlePermissions = "Permissions"
	titleDefinitions = "CustomResourceDefinitions"
	titleRestarts    = "Restarts"
	titleWayBack     = "Way back"
)

// summarizePreview says a preview in a line.
func summarizePreview(p preview.Preview) string {
	if len(p.Blocked) > 0 {
		return "It would not succeed: " + count(len(p.Blocked), "obstacle") + "."
	}
	counts := map[preview.Change]int{}
	for _, o := range p.Objects {
		counts[o.Change]++
	}
	var parts []string
	for _, change := range []preview.Change{preview.Created, preview.Changed, preview.Replaced, preview.Deleted} {
		if n := counts[change]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, change))
		}
	}
	if len(parts) == 0 {
		return "It changes nothing."
	}
	return count(len(p.Objects), "object") + ": " + strings.Join(parts, ", ") + "."
}

// previewSections are what a preview says, what matters most first. Only when isWide each object is named with its
// fields.
func previewSections(p preview.Preview, isWide bool) []page.Section {
	all := []page.Section{
		{Title: titleBlocked, Items: blocks(p)},
		{Title: titleVersions, Items: versionItems(p)},
		{Title: titlePermissions, Items: append(grants("bad", "+", p.Permissions.Added), grants("", "-", p.Permissions.Removed)...)},
		{Title: titleDefinitions, Items: definitions(p)},
		{Title: "Images", Items: images(p)},
		{Title: titleRestarts, Items: restarts(p)},
		{Title: "Webhooks", Items: webhooks(p)},
		{Title: "Said about it", Items: remarks(p)},
		{Title: titleWayBack, Items: wayBack(p)},
	}
	if isWide {
		all = append(all, page.Section{Title: "Objects", Items: objectItems(p)})
	}
	var some []page.Section
	for _, s := range all {
		if len(s.Items) > 0 {
			some = append(some, s)
		}
	}
	return some
}

func blocks(p preview.Preview) (items []page.Item) {
	for _, b := range p.Blocked {
		items = append(items, page.Item{Class: "bad", Text: fmt.Sprintf("%s: %s (%s)", b.Object.Key(), b.Message, b.Reason)})
	}
	return items
}

func versionItems(p preview.Preview) (items []page.Item) {
	for _, v := range p.Versions {
		line := v.Namespace + "/" + v.Name
		if v.Replaces != "" {
			line += " replaces " + v.Replaces
		}
		items = append(items, page.Item{Text: line})
	}
	return items
}

// grants are what is given or taken away; the class is for what deserves a second look.
func grants(class, sign string, list []permissions.Grant) (items []page.Item) {
	for _, g := range list {
		item := page.Item{Text: fmt.Sprintf("%s %s, %s: %s", sign, g.Subject, g.Scope, g)}
		if len(g.Escalation) > 0 {
			marks := make([]string, len(g.Escalation))
			for i, e := range g.Escalation {
				marks[i] = string(e)
			}
			item.Class, item.Text = class, item.Text+"  [look twice: "+strings.Join(marks, ", ")+"]"
		}
		items = append(items, item)
	}
	return items
}

func definitions(p preview.Preview) (items []page.Item) {
	for _, d := range p.CustomResourceDefinitions {
		line := d.Name + " is " + string(d.Change)
		if len(d.VersionsAdded) > 0 {
			line += "; it comes to serve " + strings.Join(d.VersionsAdded, ", ")
		}
		if len(d.VersionsRemoved) > 0 {
			line += "; it ceases to serve " + strings.Join(d.VersionsRemoved, ", ")
		}
		if d.StorageBefore != d.StorageAfter && d.StorageBefore != "" && d.StorageAfter != "" {
			line += "; stored as " + d.StorageAfter + " instead of " + d.StorageBefore
		}
		items = append(items, page.Item{Text: line})
		for _, b := range d.Breaking {
			items = append(items, page.Item{Class: "bad", IsSub: true, Text: "breaking: " + b})
		}
		for _, r := range d.Refused {
			items = append(items, page.Item{Class: "bad", IsSub: true, Text: fmt.Sprintf("not valid any more: %s (%s): %s", strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"), r.Version, r.Why)})
		}
		if !d.Judged && len(d.Breaking) > 0 {
			items = append(items, page.Item{Class: "warn", IsSub: true, Text: "its custom resources were not held against the new schemas"})
		}
	}
	return items
}

func images(p preview.Preview) (items []page.Item) {
	for _, i := range p.Images {
		line := fmt.Sprintf("%s/%s, container %s: ", i.Namespace, i.Deployment, i.Container)
		if i.Before == i.After {
			line += i.After
		} else {
			line += cmp.Or(i.Before, "none") + " -> " + cmp.Or(i.After, "none")
		}
		items = append(items, page.Item{Text: line})
	}
	return items
}

func restarts(p preview.Preview) (items []page.Item) {
	for _, r := range p.Restarts {
		item := page.Item{Text: fmt.Sprintf("%s/%s: %s replaced", r.Namespace, r.Deployment, count(int(r.Replicas), "Pod"))}
		if r.Recreate {
			item.Class, item.Text = "warn", item.Text+", all stopped before one is started"
		}
		items = append(items, item)
	}
	return items
}

func webhooks(p preview.Preview) (items []page.Item) {
	for _, w := range p.Webhooks {
		line := fmt.Sprintf("%s %s is %s: %s", strings.TrimSuffix(w.Kind, "Configuration"), w.Name, w.Change, strings.Join(w.Rules, "; "))
		items = append(items, page.Item{Text: line + " (when it does not answer: " + w.FailurePolicy + ")"})
	}
	return items
}

// remarks are what operators and catalogs say.
func remarks(p preview.Preview) (items []page.Item) {
	for _, g := range p.Gates {
		item := page.Item{Text: fmt.Sprintf("%s says Upgradeable=%s", g.Operator, g.Upgradeable)}
		if g.Message != "" || g.Reason != "" {
			item.Text += ": " + strings.TrimPrefix(g.Reason+": "+g.Message, ": ")
		}
		if g.Overridden {
			item.Text += " (overridden)"
		}
		if g.Upgradeable == "False" {
			item.Class = "bad"
		}
		items = append(items, item)
	}
	for _, d := range p.Deprecations {
		items = append(items, page.Item{Class: "warn", Text: fmt.Sprintf("%s of Subscription %s: %s", d.Of, d.Subscription, d.Message)})
	}
	return items
}

func wayBack(p preview.Preview) []page.Item {
	item := page.Item{Class: "good", Text: "There is one: kubectl olm rollback."}
	if !p.Undo.Possible {
		item = page.Item{Class: "warn", Text: "There is none."}
	}
	items := []page.Item{item}
	for _, why := range p.Undo.Because {
		items = append(items, page.Item{Class: item.Class, IsSub: true, Text: why})
	}
	return items
}

func objectItems(p preview.Preview) (items []page.Item) {
	for _, o := range p.Objects {
		items = append(items, page.Item{Text: fmt.Sprintf("%s %s", o.Change, o.Object.Key())})
		for _, f := range o.Fields {
			items = append(items, page.Item{IsSub: true, Text: fmt.Sprintf("%s: %s -> %s", f.Path, cmp.Or(f.Before, "none"), cmp.Or(f.After, "none"))})
		}
		if o.More > 0 {
			items = append(items, page.Item{IsSub: true, Text: "and " + count(o.More, "field") + " more"})
		}
	}
	return items
}

// versionsGraph draws the versions that come and those that they replace.
func versionsGraph(p preview.Preview) page.Graph {
	g := page.Graph{Title: titleVersions}
	seen := map[string]bool{}
	for _, v := range p.Versions {
		id := v.Namespace + "/" + v.Name
		if v.Replaces != "" {
			if before := v.Namespace + "/" + v.Replaces; !seen[before] {
				seen[before] = true
				g.Nodes = append(g.Nodes, page.Node{ID: before, Label: v.Replaces, Note: "goes"})
			}
			g.Edges = append(g.Edges, page.Edge{From: v.Namespace + "/" + v.Replaces, To: id})
		}
		if !seen[id] {
			seen[id] = true
			g.Nodes = append(g.Nodes, page.Node{ID: id, Label: v.Name, Note: cmp.Or(v.Version, "comes"), Class: "good"})
		}
	}
	return g
}
