// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Judged is what the installation of a CSV was judged by: memory that the caller may keep from Outcome.Judged to the
// next Input, and that must not be changed. A CSV that failed for want of permissions is tried again as soon as any of
// it is different.
type Judged struct {
	// Generation is the CSV's.
	Generation int64
	// Account is the name of the ServiceAccount that the OperatorGroup prescribes, empty when it prescribes none.
	Account string
	// Grants are those of the Input, sorted.
	Grants []olmcore.Ref
}

func (j *Judged) equal(o *Judged) bool {
	return j.Generation == o.Generation && j.Account == o.Account && slices.Equal(j.Grants, o.Grants)
}

// judgedBy returns what the Input judges an installation by, nil when it was not read.
func judgedBy(in *Input) *Judged {
	if !in.Grants.Complete || !in.OperatorGroups.Complete {
		return nil
	}
	j := &Judged{Generation: in.ClusterServiceVersion.Generation, Grants: slices.Clone(in.Grants.Items)}
	slices.SortFunc(j.Grants, func(a, b olmcore.Ref) int {
		return cmp.Or(a.Compare(b), strings.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	j.Grants = slices.Compact(j.Grants)
	if g, _ := group.Alone(in.OperatorGroups.Items, in.ClusterServiceVersion.Namespace); g != nil {
		j.Account = g.Spec.ServiceAccountName
	}
	return j
}

// remembered returns what the caller is to hand back. What a write that failed was judged by is remembered from the
// call that asked for it on: what changed in between is a change.
func (f *facts) remembered(d *decision) *Judged {
	installs := f.phase == v1alpha1.CSVPhaseInstallReady && d.Phase == v1alpha1.CSVPhaseInstallReady
	refused := f.refused && d.Phase == v1alpha1.CSVPhaseFailed || d.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
	switch {
	case refused && f.Judged != nil:
		return f.Judged
	case installs || refused:
		return judgedBy(&f.Input)
	}
	return nil
}

// isRefused reports whether a CSV failed for want of permissions.
func isRefused(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && c.Status.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
}

// refusedRetry is the wait after an installation that was refused: not every grant can be observed.
var refusedRetry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// permissionsRefused holds a CSV that lacks permissions until something changed that may give them, or it is time for
// another try.
func permissionsRefused(f *facts) (decision, bool) {
	if !f.refused {
		return decision{}, false
	}
	again := func(message string) (decision, bool) {
		d := move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonDetectedClusterChange, message)
		d.Rule = "InstallAgain"
		return d, true
	}
	if now := judgedBy(&f.Input); f.Judged != nil && now != nil && !now.equal(f.Judged) {
		return again("Cluster resources changed state")
	}
	s := &f.csv.Status
	tries := owned.CountSinceSuccess(s, v1alpha1.CSVReasonComponentFailedNoRetry)
	left := refusedRetry.After(tries) - owned.Since(s.LastTransitionTime, f.Now)
	if left <= 0 || s.LastTransitionTime == nil {
		return again("trying again, as permissions may have been granted unnoticed")
	}
	return f.waitFor(left), true
}
