// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestPollingAsOLMDoesIt holds each row of OLM's table of Pods that poll against
// what is done by default.
func TestPollingAsOLMDoesIt(t *testing.T) {
	const name = "cool-zz"
	crashes := func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	differs := func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "repo@sha256:new" }
	old := func(p *corev1.Pod) { unready(p); p.CreationTimestamp = metav1.NewTime(start) }
	for row, test := range map[string]struct {
		change         func(*catalog.Input)
		strict, normal []string
	}{
		"P0 polling is off and a Pod is left": {probe(nil), nil, []string{"delete " + name + " CandidateObsolete"}},
		"P1 a poll is due":                    {pollAgo(time.Hour, nil), []string{"create a Pod PollDue"}, []string{"create a Pod PollDue"}},
		"P2 a poll is not due":                {pollAgo(time.Minute, nil), nil, nil},
		"P3 the Pod crashes":                  {pollAgo(time.Minute, probe(crashes)), []string{"delete " + name + " CandidateFailed"}, []string{"delete " + name + " CandidateFailed"}},
		"P3 the Pod failed":                   {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })), []string{"delete " + name + " CandidateFailed"}, []string{"delete " + name + " PodTerminated"}},
		"P3 the Pod is in an unknown state":   {pollAgo(time.Minute, probe(func(p *corev1.Pod) { unready(p); p.Status.Phase = corev1.PodUnknown })), []string{"delete " + name + " CandidateFailed"}, []string{"delete " + name + " CandidateFailed"}},
		"P4 the Pod is not ready for an hour": {pollAgo(time.Minute, probe(old)), nil, []string{"delete " + name + " CandidateTimedOut"}},
		"P4 the Pod has finished":             {pollAgo(time.Minute, probe(func(p *corev1.Pod) { unready(p); p.Status.Phase = corev1.PodSucceeded })), nil, []string{"delete " + name + " PodTerminated"}},
		"P5 other content":                    {pollAgo(time.Minute, probe(differs)), []string{"update " + name + " CandidateReady"}, []string{"update " + name + " CandidateReady"}},
		"P6 the same content":                 {pollAgo(time.Minute, probe(nil)), []string{"delete " + name + " UpToDate"}, []string{"delete " + name + " UpToDate"}},
		"P6 its content is unknown": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "" })),
			[]string{"delete " + name + " UpToDate"}, nil},
		"P6 the served content is unknown": {pollAgo(time.Minute, func(in *catalog.Input) {
			probe(differs)(in)
			waiting(in, "ImagePullBackOff")
			in.Pods[0].Status.ContainerStatuses[0].ImageID = ""
		}), []string{"delete " + name + " UpToDate"}, []string{"update " + name + " CandidateReady"}},
		"an image with a digest": {func(in *catalog.Input) {
			pollAgo(time.Hour, nil)(in)
			in.CatalogSource.Spec.Image, in.PodHash = "repo@sha256:1", ""
			fresh, _ := catalog.Reconcile(*in)
			for _, a := range fresh.Actions {
				if c, ok := a.(olmcore.Create); ok && c.Target.Kind == "Pod" {
					in.Pods[0].Labels["olm.pod-spec-hash"] = c.Object.GetLabels()["olm.pod-spec-hash"]
				}
			}
		}, []string{"create a Pod PollDue"}, nil},
		"a Pod of another spec": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { differs(p); p.Labels["olm.pod-spec-hash"] = "old" })),
			[]string{"delete " + name + " CandidateObsolete"}, []string{"delete " + name + " CandidateObsolete"}},
	} {
		t.Run(row, func(t *testing.T) {
			for _, strict := range []bool{true, false} {
				base := converged(t, catalog.Config{StrictUpstreamPolling: strict}, cool())
				want := test.normal
				if strict {
					want = test.strict
				}
				require.Equal(t, want, done(reconcile(t, base, test.change)), "strict %v", strict)
			}
		})
	}
}

// TestPollingAsOLMDoesItFindsNewContent in a world: the tag moves, and the new
// content is served without a gap.
func TestPollingAsOLMDoesItFindsNewContent(t *testing.T) {
	cs := cool()
	cs.Spec.UpdateStrategy = polling("15m")
	w := newWorld(t, catalog.Config{StrictUpstreamPolling: true}, cs)
	w.run(t, 10*time.Minute)
	w.SetImage("quay.io/example/catalog:v1", "sha256:new")
	w.run(t, 10*time.Minute)
	in := w.input(t)
	require.Len(t, in.Pods, 1)
	require.Contains(t, in.Pods[0].Status.ContainerStatuses[0].ImageID, "sha256:new")
	status := in.CatalogSource.Status
	require.Equal(t, catalog.ReasonUpdatePromoted, meta.FindStatusCondition(status.Conditions, "UpdatePolled").Reason)
	require.True(t, meta.FindStatusCondition(status.Conditions, "Available").LastTransitionTime.Time.Equal(start), "it served all the time")
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.UpdateStrategy = nil }))
	w.run(t, time.Hour)
	require.Len(t, w.input(t).Pods, 1)
}
