// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Lag says how stale a Controller's View is, for each kind: the number of its turns for which it has not seen what
// happened. With 1 it sees what there was at its turn before, never what it wrote then; 0 and below mean no lag. The
// entry of the zero GroupKind counts for all kinds that have none of their own.
//
//	fake.Lag{{}: 1}                                                     // a cache that is a turn behind
//	fake.Lag{{Group: "operators.coreos.com", Kind: "InstallPlan"}: 3}   // one informer is slow, the others are not
//
// A turn is one round of Driver.Settle, so that a cluster in which nothing happens is seen as it is after as many
// rounds: Settle ends as it does without, after more rounds. A View that several controllers share is as stale as the
// least stale of them says.
type Lag map[schema.GroupKind]int

func (l Lag) of(kind schema.GroupKind) int {
	turns, set := l[kind]
	if !set {
		turns = l[schema.GroupKind{}]
	}
	return max(0, turns)
}

// logEnds is how many events there were of each kind.
type logEnds map[schema.GroupKind]int

// sight is what a reconcile could see: the cluster's version, and how often its View had moved.
type sight struct{ version, moves uint64 }

// unseen is the sight of no cluster.
var unseen = sight{version: ^uint64(0)}

func sightOf(c *Cluster, r olmcore.Reader) sight {
	seen := sight{version: c.store.Version()}
	if view, ok := r.(*View); ok {
		seen.moves = view.Moves()
	}
	return seen
}

// readerOf returns what a controller reads in its turn that begins now, and whether it is behind the present.
func (d *Driver) readerOf(index int) (reader olmcore.Reader, behind bool, err error) {
	c := &d.Controllers[index]
	view, isView := c.Reader.(*View)
	switch {
	case len(c.Lag) > 0 && (isView || c.Reader == nil):
		view = d.lagging(index)
		d.beginTurn(index, view)
		return view, len(view.Behind()) > 0, nil
	case len(c.Lag) > 0:
		return nil, false, &olmcore.InputError{Field: "Lag", Problem: fmt.Sprintf("needs a Reader that is a *View, or none: it is a %T", c.Reader)}
	case isView:
		view.Sync()
	case c.Reader == nil:
		return d.Cluster, false, nil
	}
	return c.Reader, false, nil
}

// lagging returns the View of a controller with a Lag.
func (d *Driver) lagging(index int) *View {
	c := &d.Controllers[index]
	if view, ok := c.Reader.(*View); ok {
		return view
	}
	return d.Cluster.View(fmt.Sprintf("controller %d, %s", index, c.Name))
}

// beginTurn moves a view to where its controller's Lag wants it.
func (d *Driver) beginTurn(index int, view *View) {
	lag, ends := d.Controllers[index].Lag, logEnds{}
	longest := 0
	for _, turns := range lag {
		longest = max(longest, turns)
	}
	turns := d.turns[index]
	for _, gvk := range view.Behind() {
		kind := gvk.GroupKind()
		ends[kind] = view.Seen(kind) + view.Lag(gvk)
		until := ends[kind]
		if n := lag.of(kind); n > 0 {
			until = 0
			if n <= len(turns) {
				until = turns[len(turns)-n][kind]
			}
		}
		view.SyncUntil(kind, until)
	}
	turns = append(turns, ends)
	if d.turns == nil {
		d.turns = map[int][]logEnds{}
	}
	d.turns[index] = turns[max(0, len(turns)-longest):]
}
