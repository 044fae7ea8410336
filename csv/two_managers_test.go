// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// TestMessageOfTheLatestFailureIsKept checks that a manager replaces the message of another one only if its own attempt
// ended later. Each manager remembers only the failures of its own attempts. Otherwise two managers would overwrite
// each other's message again and again.
func TestMessageOfTheLatestFailureIsKept(t *testing.T) {
	const quota, policy = "install strategy failed: quota", "install strategy failed: policy"
	hourAgo, future := now.Add(-time.Hour), now.Add(olmcore.ClockTolerance+time.Second)
	for name, row := range map[string]struct {
		written, tried time.Time
		want           string
	}{
		"the own try ended before":             {hourAgo, hourAgo.Add(-time.Minute), quota},
		"the own try ended in the same second": {hourAgo, hourAgo.Add(time.Second / 2), quota},
		"the own try ended later":              {hourAgo, hourAgo.Add(time.Second), policy},
		"the status was written in the future": {future, now.Add(-time.Second), policy},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(failed, v1alpha1.CSVReasonComponentFailed, "install strategy failed: quota")
			in.ClusterServiceVersion.Status.LastUpdateTime = new(metav1.NewTime(row.written))
			in.LastRun = olmcore.LastResults{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "cool"}: {
				Class: olmcore.Invalid, Message: "policy", Count: 1, First: row.tried, Last: row.tried,
			}}
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			message := in.ClusterServiceVersion.Status.Message
			if after, is := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); is {
				message = after.Status.Message
			}
			require.Equal(t, row.want, message)
		})
	}
}

// TestRenewalWaitsForTheSlowestClock checks that a CSV leaves Succeeded for a renewal only when a manager whose clock
// is behind by the tolerance also finds the certificate due. Otherwise that manager would end the installation, and the
// other one would begin it again and again.
func TestRenewalWaitsForTheSlowestClock(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	well := calledIn(t, cluster)
	due := well.Now.Add(serving.Validity - serving.RenewBefore)
	at := func(clock time.Time, phase v1alpha1.ClusterServiceVersionPhase) csv.Outcome {
		in := well
		in.Now, in.ClusterServiceVersion = clock, well.ClusterServiceVersion.DeepCopy()
		in.ClusterServiceVersion.Status.Phase = phase
		return reconciled(t, in)
	}
	phaseAfter := func(out csv.Outcome) v1alpha1.ClusterServiceVersionPhase {
		after, is := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		require.True(t, is)
		return after.Status.Phase
	}
	early := at(due.Add(olmcore.ClockTolerance-time.Second), succeeded)
	require.Empty(t, early.Actions)
	require.Equal(t, time.Second, early.RequeueAfter)
	begins := due.Add(olmcore.ClockTolerance)
	require.Equal(t, pending, phaseAfter(at(begins, succeeded)))
	require.Len(t, at(begins.Add(-olmcore.ClockTolerance).Add(time.Second), installReady).Certificates, 1)
	require.Equal(t, installing, phaseAfter(at(due.Add(-time.Second), installReady)), "the certificate is not due")
}
