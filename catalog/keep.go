// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"
	"slices"
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// AnnotationKeptPod is the annotation of a CatalogSource with the UID of the kept Pod. The kept Pod is a registry Pod
// that stays while other Pods that serve are deleted. The annotation is written only before such a deletion.
//
// Managers whose caches differ may choose different Pods. They agree on one Pod, because a write of the annotation
// contains the resourceVersion of the CatalogSource.
//
// The kept Pod is also annotated with a number. A Pod that serves is deleted only if the kept Pod serves and has a
// higher number. So a manager with a stale cache cannot delete the kept Pod, because its delete request contains the
// resourceVersion that the Pod had before the number was written.
const AnnotationKeptPod = olmcore.KeyPrefix + "kept-pod"

// maxKeptNumber is the highest valid number of a kept Pod. Every change of the kept Pod adds one, so a higher number
// was not written by a manager.
const maxKeptNumber = 1 << 40

// keptPod contains the Pod that stays while other Pods that serve are deleted, and the records that must be written
// before. The zero value means that no record must be written.
type keptPod struct {
	pod    *pod
	named  bool  // the annotation of the CatalogSource names the Pod
	number int64 // the number that the Pod must have
}

// keepOnePod returns a decision without the deletions of Pods that serve, until the Pod that stays is recorded.
func keepOnePod(f *facts, d decision) decision {
	isHeld := func(o deletion) bool { return o.needsKeptPod && o.pod.needsKeptPod() }
	if !slices.ContainsFunc(d.deletes, isHeld) {
		return d
	}
	var held, others []deletion
	for _, o := range d.deletes {
		if isHeld(o) {
			held = append(held, o)
		} else {
			others = append(others, o)
		}
	}
	kept := chooseKeptPod(f, d, held)
	if kept.pod != nil && kept.isRecorded() {
		return d
	}
	d.deletes = others
	d.kept = kept
	return d
}

// chooseKeptPod returns the Pod that stays: the one that the CatalogSource names, or else the best one. It returns
// the zero value if no Pod that serves stays.
func chooseKeptPod(f *facts, d decision, held []deletion) keptPod {
	staying := f.pods.all.where(func(p *pod) bool { return p.isSelected() && !d.deletesPod(p) }).best()
	if len(staying) == 0 {
		return keptPod{}
	}
	kept := keptPod{pod: staying[0], number: 1}
	i := slices.IndexFunc(staying, func(p *pod) bool { return p.kept })
	if i >= 0 {
		kept.pod = staying[i]
		kept.named = true
	}
	for _, o := range held {
		if o.pod.keptNumber <= maxKeptNumber {
			kept.number = max(kept.number, o.pod.keptNumber+1)
		}
	}
	return kept
}

func (k keptPod) isRecorded() bool { return k.named && k.pod.keptNumber >= k.number }

// record returns the writes that record the kept Pod. The CatalogSource is written first, because a Conflict of that
// write ends the run.
func (k keptPod) record(cs *v1alpha1.CatalogSource) (actions []olmcore.Action) {
	if k.pod == nil {
		return nil
	}
	cause := olmcore.Cause{Reason: ReasonPodKept, Message: "Pod " + k.pod.Name + " is kept while other Pods that serve are deleted"}
	if !k.named {
		after := cs.DeepCopy()
		after.Annotations = withAnnotation(after.Annotations, AnnotationKeptPod, string(k.pod.UID))
		actions = append(actions, olmcore.UpdateOf(cs, after, cause))
	}
	if k.pod.keptNumber < k.number {
		after := k.pod.Pod.DeepCopy()
		after.Annotations = withAnnotation(after.Annotations, registry.KeyKeptNumber, strconv.FormatInt(k.number, 10))
		actions = append(actions, olmcore.UpdateOf(k.pod.Pod, after, cause))
	}
	return actions
}

// needsKeptPod reports whether the Pod may only be deleted while a recorded Pod stays. A Pod of a class that does not
// serve is included if other Pods were deleted because it stays.
func (p *pod) needsKeptPod() bool {
	return p.mayServe() && (p.class.Live || p.kept || p.keptNumber > 0)
}

// mayServe reports whether clients may be connected to the Pod. A ready Pod of a failed Node may serve, because the
// cache of the Nodes may be stale.
func (p *pod) mayServe() bool {
	return p.owned && p.role == roleServing && p.ready && p.DeletionTimestamp == nil
}

// isSelected reports whether the Pod serves and the Service selects it.
func (p *pod) isSelected() bool {
	return p.mayServe() && p.isServing() && p.Labels[olmcore.LabelManaged] == "true"
}

// withAnnotation returns a copy of annotations with one more.
func withAnnotation(annotations map[string]string, key, value string) map[string]string {
	after := maps.Clone(annotations)
	if after == nil {
		after = map[string]string{}
	}
	after[key] = value
	return after
}
