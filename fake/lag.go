// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Lag is how many turns of its controller a View lags behind the cluster, by kind. With 1 the controller reads the
// objects as they were at its previous turn, without the writes of that turn. With 0 or less, a kind does not lag. The
// zero GroupKind stands for all kinds without an entry.
//
//	fake.Lag{{}: 1}                                                     // a cache that is one turn behind
//	fake.Lag{{Group: "operators.coreos.com", Kind: "InstallPlan"}: 3}   // one informer is slow
//
// A turn is one round of Driver.Settle. Settle therefore ends in the same state as without a Lag, after more rounds. A
// View that several controllers share lags as little as the smallest of their Lags.
type Lag map[schema.GroupKind]int

func (l Lag) of(kind schema.GroupKind) int {
	turns, set := l[kind]
	if !set {
		turns = l[schema.GroupKind{}]
	}
	return max(0, turns)
}

// logEnds contains the number of events of each kind so far.
type logEnds map[schema.GroupKind]int

// sight identifies what a reconcile could read: the version of the cluster, and how often its View was updated.
type sight struct{ version, moves uint64 }

// unseen is a sight that no cluster has.
var unseen = sight{version: ^uint64(0)}

func sightOf(c *Cluster, r olmcore.Reader) sight {
	seen := sight{version: c.store.Version()}
	if view, ok := r.(*View); ok {
		seen.moves = view.Moves()
	}
	return seen
}

// readerOf returns the Reader of a controller for the turn that begins now, and whether it lags behind the cluster.
func (d *Driver) readerOf(index int) (reader olmcore.Reader, behind bool, err error) {
	name := d.Controllers[index].Name
	reader = d.Readers[name]
	view, isView := reader.(*View)
	switch {
	case len(d.Lags[name]) > 0 && (isView || reader == nil):
		view = d.lagging(index)
		d.beginTurn(index, view)
		return view, len(view.Behind()) > 0, nil
	case len(d.Lags[name]) > 0:
		return nil, false, &olmcore.InputError{Field: "Lags", Problem: fmt.Sprintf("needs a Reader that is a *View, or none: it is a %T", reader)}
	case isView:
		view.Sync()
	case reader == nil:
		return d.Cluster, false, nil
	}
	return reader, false, nil
}

// lagging returns the View of a controller with a Lag.
func (d *Driver) lagging(index int) *View {
	name := d.Controllers[index].Name
	if view, ok := d.Readers[name].(*View); ok {
		return view
	}
	return d.Cluster.View(fmt.Sprintf("controller %d, %s", index, name))
}

// beginTurn updates a View as far as the Lag of its controller allows.
func (d *Driver) beginTurn(index int, view *View) {
	lag, ends := d.Lags[d.Controllers[index].Name], logEnds{}
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
