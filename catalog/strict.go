// SPDX-License-Identifier: Apache-2.0

package catalog

import corev1 "k8s.io/api/core/v1"

// strictly reports whether a Pod polls as OLM's do: then nothing else is decided
// about it than what planStrictPolling says.
func (v *view) strictly(p *podFacts) bool {
	return p.probe && v.in.Config.StrictUpstreamPolling && v.mode == modeImage && p.class != ClassOutdated && p.class != ClassLost
}

// planStrictPolling polls as OLM does: the Pods that poll are looked at one after
// the other; the first that failed goes, the first that is not ready is waited for
// without end, and one that is ready takes over when its content is known to
// differ from what all the others are known to have, and goes otherwise.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, ensureUpdatePod.
// Differs: a Pod of another spec is never promoted, and the old Pods go once the
// new one is seen to serve.
func (v *view) planStrictPolling(pl *plan) {
	found := false
	for i := range v.pods {
		p := &v.pods[i]
		if p.class == ClassForeign || !v.strictly(p) {
			continue
		}
		found = true
		switch {
		case p.pod.DeletionTimestamp != nil:
			return
		case crashed(p.pod):
			v.poll.outcome, v.poll.text = ReasonCandidateFailed, "crashes"
			v.poll.failed = v.failedProbe(p.pod)
			pl.delete(p, 1, ReasonCandidateFailed, "the Pod that polls the image crashes")
			return
		case !p.ready:
			return
		}
	}
	if !found {
		v.startPoll(pl)
		return
	}
	for i := range v.pods {
		p := &v.pods[i]
		switch {
		case p.class == ClassForeign || !v.strictly(p):
		case v.imageChanged(p.pod):
			pl.phase, pl.halt = ReasonContentUpdate, ""
			pl.promote(p)
			return
		default:
			v.poll.outcome, v.poll.text = ReasonUpToDate, ""
			pl.delete(p, 1, ReasonUpToDate, "the image is not known to have changed")
		}
	}
}

// crashed is what OLM takes for the failure of a Pod that polls.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, podFailed.
func crashed(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodUnknown {
		return true
	}
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
				return true
			}
		}
	}
	return false
}

// imageChanged reports whether a Pod's content is known to differ from that of the
// first Pod of the serving role that has any, with no unknown one before it.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, imageChanged.
func (v *view) imageChanged(pod *corev1.Pod) bool {
	id := imageID(pod)
	for i := range v.pods {
		p := &v.pods[i]
		if p.class == ClassForeign || p.role != roleServing {
			continue
		}
		served := imageID(p.pod)
		if id == "" || served == "" {
			return false
		}
		if served != id {
			return true
		}
	}
	return false
}
