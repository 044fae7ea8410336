// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

// maxDeadlines bounds the deadlines that are tried within olmcore.ClockTolerance.
const maxDeadlines = 16

// isPublishedAhead reports whether the recorded status is the one that this manager would write within
// olmcore.ClockTolerance if nothing else changes. A manager whose clock is ahead wrote it. It is kept, or the two would
// rewrite the status in turn. The gRPC client of this manager is taken as it is now: the other manager has its own client, and
// clocks that differ do not make the two clients older.
func (r *report) isPublishedAhead(table []traits) bool {
	ahead := r
	for range maxDeadlines {
		_, wait := ahead.leftovers()
		step := ahead.deadline(wait)
		later := r.unapplied
		later.Now = ahead.Now.Add(step)
		if step <= 0 || later.Now.Sub(r.Now) > olmcore.ClockTolerance {
			return false
		}
		f := observe(later, table)
		f.link, f.clientNow = r.link, r.Now
		f.link.wait = 0
		ahead = newReport(f)
		if equality.Semantic.DeepEqual(ahead.status(), r.CatalogSource.Status) {
			return true
		}
	}
	return false
}

// isFuture reports whether a time was not written by a clock within olmcore.ClockTolerance.
func isFuture(at, now time.Time) bool { return at.After(now.Add(olmcore.ClockTolerance)) }
