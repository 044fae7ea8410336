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

// Judged is the memory of an installation: the grants that its permissions were judged by, and its failed writes. The
// caller may pass Outcome.Judged in the next Input, and must not change it. A CSV that lacks permissions is installed
// again as soon as the CSV, the account or its grants differ.
type Judged struct {
	// Generation is the generation of the CSV.
	Generation int64
	// Account is the name of the ServiceAccount that the OperatorGroup names. It is empty if it names none.
	Account string
	// Grants contains the Grants of the Input, sorted.
	Grants []olmcore.Ref
	// attempts contains the writes of the installation and their results.
	attempts deployment.Attempts
}

// Equal reports whether two memories are the same. Nil equals only nil.
func (j *Judged) Equal(o *Judged) bool {
	if j == nil || o == nil {
		return j == o
	}
	return j.sameRights(o) && j.attempts.Equal(o.attempts)
}

// sameRights reports whether nothing changed that may grant an installation the permissions that it lacks.
func (j *Judged) sameRights(o *Judged) bool {
	return j.Generation == o.Generation && j.Account == o.Account && slices.Equal(j.Grants, o.Grants)
}

// judgedBy returns the grants of an Input, without attempts. It is nil if they were not read.
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

// rememberInstallation returns the memory for the next call. A failed write is remembered with the grants of the call
// that requested it, so that a grant that changes in the meantime counts as a change.
func rememberInstallation(f *facts, d decision) *Judged {
	remembered := f.in.Judged
	isFailed := d.phase == v1alpha1.CSVPhaseFailed
	switch {
	case d.reason == v1alpha1.CSVReasonComponentFailedNoRetry, isFailed && isRefused(f.csv):
		if remembered != nil {
			return remembered.withAttempts(d.attempts)
		}
		if d.reason == v1alpha1.CSVReasonComponentFailed && len(d.attempts) == 0 {
			return nil
		}
	case isFailed && d.reason == v1alpha1.CSVReasonComponentFailed && len(d.attempts) > 0:
	case f.phase == v1alpha1.CSVPhaseInstallReady && d.phase == v1alpha1.CSVPhaseInstallReady:
	default:
		return nil
	}
	next := judgedBy(f.in)
	if len(d.attempts) > 0 {
		next = cmp.Or(next, &Judged{Generation: f.csv.Generation})
		next.attempts = d.attempts
	}
	if next.Equal(remembered) {
		return remembered // the same memory, so that a Checkpoint holds
	}
	return next
}

// withAttempts returns the memory with the attempts of a later call.
func (j *Judged) withAttempts(attempts deployment.Attempts) *Judged {
	if len(attempts) == 0 || attempts.Equal(j.attempts) {
		return j
	}
	next := *j
	next.attempts = attempts
	return &next
}

// triesOf returns what is known of earlier attempts to install this generation of the CSV.
func triesOf(f *facts) deployment.Tries {
	t := deployment.Tries{Now: f.now, LastRun: f.in.LastRun, Again: f.phase == v1alpha1.CSVPhaseFailed}
	if at := f.csv.Status.LastTransitionTime; at != nil && !t.Again {
		t.Since = at.Time
	}
	switch {
	case f.in.Judged == nil:
	case f.in.Judged.Generation == f.csv.Generation:
		t.Attempts = f.in.Judged.attempts
	default:
		t.LastRun = nil
	}
	return t
}

// isRefused reports whether a CSV failed because permissions are missing.
func isRefused(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && c.Status.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
}

// waitForPermissions holds a CSV that lacks permissions until something changes that may grant them. From time to time
// it decides nothing, and installAgain repeats the installation, because not every grant can be observed.
func waitForPermissions(f *facts) (decision, bool) {
	if !isRefused(f.csv) {
		return decision{}, false
	}
	now := judgedBy(f.in)
	if f.in.Judged != nil && now != nil && !now.sameRights(f.in.Judged) {
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonDetectedClusterChange, "Cluster resources changed state"), true
	}
	tries := triesOf(f)
	left := tries.Held().RequeueAfter
	if at := f.csv.Status.LastTransitionTime; len(tries.Attempts) == 0 && at != nil {
		left = deployment.RefusedRetry.After(1) - f.sinceTransition()
	}
	return f.stay().requeue(left), left > 0
}
