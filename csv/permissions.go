// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/olmcore"
)

// Judged is the memory of an installation: what its permissions were judged by, and which of its writes failed. The
// caller may keep it from Outcome.Judged to the next Input, and must not change it. A CSV that lacks permissions is
// tried again as soon as the CSV, the account or its grants are different.
type Judged struct {
	// Generation is the CSV's.
	Generation int64
	// Account is the name of the ServiceAccount that the OperatorGroup prescribes, empty when it prescribes none.
	Account string
	// Grants are those of the Input, sorted.
	Grants []olmcore.Ref
	// attempts are the writes of the installation and how they ended.
	attempts deployment.Attempts
}

// Equal reports whether two memories are the same; nil equals nil alone.
func (j *Judged) Equal(o *Judged) bool {
	if j == nil || o == nil {
		return j == o
	}
	return j.sameRights(o) && j.attempts.Equal(o.attempts)
}

// sameRights reports whether nothing changed that can give an installation the permissions that it lacks.
func (j *Judged) sameRights(o *Judged) bool {
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
	failed := d.Phase == v1alpha1.CSVPhaseFailed && d.Reason == v1alpha1.CSVReasonComponentFailed
	refused := f.refused && d.Phase == v1alpha1.CSVPhaseFailed || d.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
	switch {
	case refused && f.Judged != nil && (len(d.attempts) == 0 || d.attempts.Equal(f.Judged.attempts)):
		return f.Judged
	case refused && f.Judged != nil:
		next := *f.Judged // what a write was refused by is remembered from the call that asked for it
		next.attempts = d.attempts
		return &next
	case !installs && !failed && !refused, failed && len(d.attempts) == 0:
		return nil
	}
	now := judgedBy(&f.Input)
	if len(d.attempts) > 0 {
		now = cmp.Or(now, &Judged{Generation: f.csv.Generation})
		now.attempts = d.attempts
	}
	if now.Equal(f.Judged) {
		return f.Judged // the same memory, so that a Checkpoint holds
	}
	return now
}

// triesOf returns what is known of earlier tries to install this generation of the CSV.
func triesOf(f *facts) deployment.Tries {
	t := deployment.Tries{Now: f.Now, LastRun: f.LastRun, Again: f.phase == v1alpha1.CSVPhaseFailed}
	if at := f.csv.Status.LastTransitionTime; at != nil && !t.Again {
		t.Since = at.Time
	}
	switch {
	case f.Judged == nil:
	case f.Judged.Generation == f.csv.Generation:
		t.Attempts = f.Judged.attempts
	default:
		t.LastRun = nil
	}
	return t
}

// isRefused reports whether a CSV failed for want of permissions.
func isRefused(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && c.Status.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
}

// permissionsRefused holds a CSV that lacks permissions until something changed that may give them. From time to time
// the rules go on and InstallAgain repeats the installation, because not every grant can be observed.
func permissionsRefused(f *facts) (decision, bool) {
	if !f.refused {
		return decision{}, false
	}
	now, tries := judgedBy(&f.Input), triesOf(f)
	if f.Judged != nil && now != nil && !now.sameRights(f.Judged) {
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonDetectedClusterChange, "Cluster resources changed state"), true
	}
	left := tries.Held().RequeueAfter
	if at := f.csv.Status.LastTransitionTime; len(tries.Attempts) == 0 && at != nil {
		left = deployment.RefusedRetry.After(1) - f.sinceTransition()
	}
	return f.waitFor(left), left > 0
}
