// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"
	"slices"
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// AnnotationKeptPod is the annotation of a CatalogSource that holds the UID of the registry Pod that stays. It is written
// before Pods that serve are deleted as surplus or replaced, and only then. Two managers agree on the Pod because the
// write carries the resourceVersion of the CatalogSource.
//
// The Pod confirms it with a number in its own annotation. A Pod that serves is only deleted if the kept Pod serves and has
// a higher number. So a manager with a stale cache cannot delete the kept Pod: the delete carries the resourceVersion that
// the Pod had before it got its number. Of the Pods that managers choose between, the one with the highest number stays,
// whatever they have cached, and whoever writes the annotation of the CatalogSource.
const AnnotationKeptPod = olmcore.KeyPrefix + "kept-pod"

// maxKeptNumber is the highest number of a Pod that is respected. Each change of the kept Pod adds one, so that a higher
// number was not written by a manager.
const maxKeptNumber = 1 << 40

// pendingDelete is the deletion of a Pod that serves.
type pendingDelete struct {
	pod    *registryPod
	action olmcore.Delete
}

// keptPod is the Pod that stays while others that serve are deleted, and what must be written before; the zero value asks
// for nothing.
type keptPod struct {
	pod    *registryPod
	named  bool  // the CatalogSource names it
	number int64 // the number that it must have
}

// mayServe reports whether clients may be connected to the Pod. A Pod of a failed node may serve while it is ready: the
// cache of the Nodes may be stale.
func (p *registryPod) mayServe() bool {
	return p.Owned && p.Role == roleServing && p.Ready && p.DeletionTimestamp == nil
}

// needsKept reports whether the Pod is only deleted while a recorded one stays. A Pod that its class does not let serve is
// deleted without that, unless others were deleted because it stays.
func (f *facts) needsKept(p *registryPod) bool {
	return p.mayServe() && (p.Live || f.isKept(p) || keptNumber(p.Pod) > 0)
}

// keepable reports whether the Pod is good enough to stay because another manager chose it.
func (p *registryPod) keepable() bool {
	return p.selected() && !p.Leaves && !p.Node.doubtful()
}

// selected reports whether the Pod serves and the Service selects it.
func (p *registryPod) selected() bool {
	return p.mayServe() && p.serves() && p.Labels[olmcore.LabelManaged] == "true"
}

// isKept reports whether the CatalogSource names the Pod as the one that stays.
func (f *facts) isKept(p *registryPod) bool {
	return string(p.UID) == f.CatalogSource.Annotations[AnnotationKeptPod] && p.UID != ""
}

// rank sorts Pods: the kept one first if it can stay, then the best. So managers whose caches differ prefer the same Pod.
func (f *facts) rank(list []*registryPod) {
	slices.SortFunc(list, byWorth)
	at := slices.IndexFunc(list, func(p *registryPod) bool { return f.isKept(p) && p.keepable() })
	if at > 0 {
		kept := list[at]
		copy(list[1:at+1], list[:at])
		list[0] = kept
	}
}

// planPending allows the deletions of Pods that serve once the kept Pod is recorded. They wait while no other Pod serves.
func (pl *planner) planPending() {
	if len(pl.pending) == 0 {
		return
	}
	stay := pl.pods.choose(func(p *registryPod) bool { return p.selected() && !pl.dooms(p) })
	if len(stay) == 0 {
		return
	}
	slices.SortFunc(stay, byWorth)
	kept := keptPod{pod: stay[0], number: 1}
	if at := slices.IndexFunc(stay, pl.isKept); at >= 0 {
		kept.pod, kept.named = stay[at], true
	}
	for _, d := range pl.pending {
		if number := keptNumber(d.pod.Pod); number <= maxKeptNumber {
			kept.number = max(kept.number, number+1)
		}
	}
	if !kept.named || keptNumber(kept.pod.Pod) < kept.number {
		pl.kept = kept
		return
	}
	for _, d := range pl.pending {
		pl.deletes = append(pl.deletes, d.action)
	}
}

// keptNumber returns the number of a Pod, 0 if it has none.
func keptNumber(pod *corev1.Pod) int64 {
	number, err := strconv.ParseInt(pod.Annotations[registry.KeyKeptNumber], 10, 64)
	if err != nil {
		return 0
	}
	return max(number, 0)
}

// record returns the writes that record the kept Pod. The Pod's number comes last: a Conflict of the first write, which
// names the Pod, ends the run.
func (k keptPod) record(cs *v1alpha1.CatalogSource) (actions []olmcore.Action) {
	if k.pod == nil {
		return nil
	}
	cause := olmcore.Cause{Reason: ReasonPodKept, Message: "Pod " + k.pod.Name + " stays while others that serve are deleted"}
	if !k.named {
		after := cs.DeepCopy()
		after.Annotations = with(after.Annotations, AnnotationKeptPod, string(k.pod.UID))
		actions = append(actions, olmcore.UpdateOf(cs, after, cause))
	}
	if keptNumber(k.pod.Pod) < k.number {
		after := k.pod.Pod.DeepCopy()
		after.Annotations = with(after.Annotations, registry.KeyKeptNumber, strconv.FormatInt(k.number, 10))
		actions = append(actions, olmcore.UpdateOf(k.pod.Pod, after, cause))
	}
	return actions
}

// with returns annotations with one more.
func with(annotations map[string]string, key, value string) map[string]string {
	after := maps.Clone(annotations)
	if after == nil {
		after = map[string]string{}
	}
	after[key] = value
	return after
}
