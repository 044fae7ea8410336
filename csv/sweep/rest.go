// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"time"

	"github.com/olmcore/olm/olmcore"
)

// Rest spares Gather the kinds that no watch delivers: nothing was left behind by the ClusterServiceVersions,
// OperatorGroups and InstallPlans of the cluster, and these have not changed since. Whoever creates what such an owner
// leaves writes the owner too, or the plan whose step it is. As that write may come later, from a stale cache, a Rest
// holds once two calls, as far apart as an object must be old to count as an orphan, found the same. What a user or a
// manager with an older cache writes afterwards is found within an hour, when the Rest ends.
type Rest struct {
	owners      *olmcore.Checkpoint
	first, last time.Time
	over        bool // the kinds are read again, although the owners are as they were
}

// After returns the Rest to hand to the next Gather, nil when something was left behind; r, which may be nil, is the
// one that Gather had for the Input, and out what Reconcile made of it without an error.
func (r *Rest) After(in Input, out Outcome) *Rest {
	switch {
	case r.holds(&in):
		age := in.Now.Sub(r.last)
		next := *r
		next.over = age < 0 || age >= maxRest
		return &next
	case !out.Empty() || out.RequeueAfter > 0:
		return nil
	}
	owners := in.coverOwners(olmcore.NewCoverage(in.Now, out.Result)).Checkpoint()
	if owners == nil {
		return nil
	}
	next := &Rest{owners: owners, first: in.Now, last: in.Now}
	if r.same(&in) && r.first.Before(in.Now) {
		next.first = r.first
	}
	return next
}

// maxRest is how long a Rest holds. A manager with a stale cache may create an object for an owner that is gone at any
// time, and no owner changes then.
const maxRest = time.Hour

// holds reports whether kinds that no watch delivers need not be read.
func (r *Rest) holds(in *Input) bool {
	return r.same(in) && r.last.Sub(r.first) >= minAge && !r.over
}

// same reports whether the owners are as they were.
func (r *Rest) same(in *Input) bool {
	if r == nil {
		return false
	}
	_, same := in.coverOwners(r.owners.Compare(r.last)).Holds()
	return same
}

// coverOwners covers the configuration and the owners.
func (in *Input) coverOwners(c olmcore.Coverage) olmcore.Coverage {
	owners := olmcore.CoverLists(c)
	in.owners(&owners)
	c = owners.Coverage()
	in.Config.Cover(&c)
	return c
}
