// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

type pausedInput struct {
	Now        time.Time
	Pod        *corev1.Pod
	Nodes      olmcore.Observed[*corev1.Node]
	Paused     bool
	Checkpoint *olmcore.Checkpoint
}

type pausedOutcome struct {
	olmcore.Result
	Checkpoint *olmcore.Checkpoint
}

// reconcilePaused says something about a Pod with a label, unless it is paused, and
// about a Node without one. forget leaves a field out of the Checkpoint.
func reconcilePaused(forget string) func(in pausedInput) (pausedOutcome, error) {
	cover := func(in *pausedInput, c *checkpoint.Coverage) {
		if forget != "Pod" {
			checkpoint.CoverObject(c, in.Pod)
		}
		if forget != "Nodes" {
			checkpoint.CoverObjects(c, in.Nodes.Items, in.Nodes.Complete)
		}
		if forget != "Paused" {
			checkpoint.CoverValue(c, in.Paused)
		}
	}
	return func(in pausedInput) (out pausedOutcome, err error) {
		c := in.Checkpoint.Compare(in.Now)
		cover(&in, &c)
		if wait, same := c.Holds(); same {
			return pausedOutcome{olmcore.Result{RequeueAfter: wait}, in.Checkpoint}, nil
		}
		if !in.Paused && in.Pod != nil && in.Pod.Labels["a"] == "b" || len(in.Nodes.Items) != 1 {
			out.Diagnostics = append(out.Diagnostics, olmcore.Diagnostic{Reason: "Odd"})
		}
		c = inputs.NewCoverage(in.Now, out.Result)
		if cover(&in, &c); forget != "result" {
			out.Checkpoint = c.Checkpoint()
		} else {
			c = inputs.NewCoverage(in.Now, olmcore.Result{})
			out.Checkpoint = c.Checkpoint()
		}
		return out, nil
	}
}

func TestCheckpointSoundFindsWhatIsNotCovered(t *testing.T) {
	in := pausedInput{
		Now:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Pod:    &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", ResourceVersion: "1", Labels: map[string]string{"a": "b"}}},
		Nodes:  olmcore.Found(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "2", ResourceVersion: "1"}}),
		Paused: true,
	}
	require.NoError(t, invariant.CheckpointSound(reconcilePaused(""), in))
	require.ErrorContains(t, invariant.CheckpointSound(reconcilePaused("Nodes"), in), "another Nodes: Items: list without entry 0")
	require.ErrorContains(t, invariant.CheckpointSound(reconcilePaused("Paused"), in), "another Paused: value")
	calm := in
	calm.Paused, calm.Pod = false, in.Pod.DeepCopy()
	calm.Pod.Labels = nil
	require.NoError(t, invariant.CheckpointSound(reconcilePaused("Pod"), calm), "what is never there cannot be missed")
	require.NoError(t, invariant.CheckpointCovers(reconcilePaused(""), calm))
	require.ErrorContains(t, invariant.CheckpointCovers(reconcilePaused("Pod"), calm), "holds with another Pod: object without annotations", "but it is not covered")
	require.ErrorContains(t, invariant.CheckpointCovers(reconcilePaused("Paused"), calm), "holds with another Paused: value")
	require.NoError(t, invariant.CheckpointCovers(reconcilePaused("Paused"), calm, "Paused"), "which may be meant so")
	require.ErrorContains(t, invariant.CheckpointCovers(reconcilePaused("Nodes"), calm), "holds with another Nodes: Complete: value")
	require.ErrorContains(t, invariant.CheckpointCovers(reconcilePaused(""), pausedInput{}), "no Checkpoint")
	busy := in
	busy.Paused = false
	require.NoError(t, invariant.CheckpointSound(reconcilePaused(""), busy))
	require.ErrorContains(t, invariant.CheckpointSound(reconcilePaused("result"), busy), "asks for something")
}
