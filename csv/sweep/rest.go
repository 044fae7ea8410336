// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"time"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Rest records that Reconcile found no orphan and that the owners have not changed since then. During a Rest, Gather
// skips the kinds that are never watched. The owners are the ClusterServiceVersions, OperatorGroups and InstallPlans of
// the cluster. A Rest takes effect only after two calls, at least ten minutes apart, found the same owners and no
// orphan, because caches may be stale. A Rest ends after an hour, because a user, or a manager with a stale cache, may
// create an orphan without a change of owners.
type Rest struct {
	owners      *olmcore.Checkpoint
	first, last time.Time
	over        bool // the Rest has ended, although the owners have not changed
}

// After returns the Rest for the next call of Gather. It usually returns nil if Reconcile found objects or requested a
// retry. r is the Rest that the caller passed to Gather to read in, and may be nil. out is the Outcome that Reconcile
// returned for in. Do not call After if Reconcile returned an error.
func (r *Rest) After(in Input, out olmcore.Outcome) *Rest {
	switch {
	case r.holds(&in):
		age := in.Now.Sub(r.last)
		next := *r
		next.over = age < 0 || age >= maxRest
		return &next
	case !out.Empty() || out.RequeueAfter > 0:
		return nil
	}
	owners := in.coverOwners(inputs.NewCoverage(in.Now, out.Result)).Checkpoint()
	if owners == nil {
		return nil
	}
	next := &Rest{owners: owners, first: in.Now, last: in.Now}
	if r.same(&in) && r.first.Before(in.Now) {
		next.first = r.first
	}
	return next
}

// maxRest is the time after which a Rest ends. At any time, a manager with a stale cache may create an object for an
// owner that does not exist, and no owner changes then.
const maxRest = time.Hour

// holds reports whether Gather can skip the kinds that are never watched.
func (r *Rest) holds(in *Input) bool {
	return r.same(in) && r.last.Sub(r.first) >= minAge && !r.over
}

// same reports whether the owners have not changed.
func (r *Rest) same(in *Input) bool {
	if r == nil {
		return false
	}
	_, same := in.coverOwners(r.owners.Compare(r.last)).Holds()
	return same
}

// coverOwners covers the Config and the lists of owners.
func (in *Input) coverOwners(c checkpoint.Coverage) checkpoint.Coverage {
	owners := inputs.CoverLists(c)
	in.owners(&owners)
	c = owners.Coverage()
	in.Config.Cover(&c)
	return c
}
