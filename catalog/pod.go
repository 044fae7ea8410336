// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Class is the class of a registry Pod. The class determines whether the Pod is one of the replicas, and when the Pod
// is replaced and removed.
type Class string

// Pod classes. A Pod has exactly one: the first row of podClasses that matches.
const (
	ClassForeign     Class = "Foreign"     // the Pod is not owned by this CatalogSource and is never changed
	ClassTerminated  Class = "Terminated"  // the Pod has finished, with or without an error
	ClassLost        Class = "Lost"        // the Node of the Pod failed, or the Pod still exists long after its deletion time
	ClassTerminating Class = "Terminating" // the Pod is being deleted
	ClassOutdated    Class = "Outdated"    // the Pod was created from another spec and serves while it is ready
	ClassDisrupted   Class = "Disrupted"   // the Pod is about to be evicted and serves while it is ready
	ClassServing     Class = "Serving"     // the Pod is ready
	ClassUnhealthy   Class = "Unhealthy"   // the Pod is not ready, and a replacement would fail for the same reason
	ClassStuck       Class = "Stuck"       // the Pod does not start on its Node, and its status gives no reason
	ClassStarting    Class = "Starting"    // the Pod is not ready yet
)

// removal says when a Pod of a class is removed, besides being replaced.
type removal int

const (
	removeReplaced  removal = iota // once other Pods serve in its place
	removeFinished                 // at once, unless the Pod records how often the start failed
	removeLost                     // as the ForceDeletePolicy says
	removeDisrupted                // by force, if the ForceDeletePolicy is ForceDeleteUpstream
	removeStuck                    // except the newest Pod, which records how often the start failed
)

// podClass is one row of the table of Pod classes. To add a class, add a row.
type podClass struct {
	Class   Class
	Matches func(*pod) bool

	// Active is true if the Pod runs or is expected to run. The number of active Pods is limited.
	Active bool
	// Live is true if the Pod serves, or may serve soon. A live Pod is active.
	Live bool
	// Leaving is true if the Pod is live and about to be evicted.
	Leaving bool
	// Diagnosed is true if the Pod is checked for start problems: the status of its containers and the time since it was
	// bound.
	Diagnosed bool
	// HoldsPoll is true if no poll may start while there is such a Pod.
	HoldsPoll bool

	// Order is the order in which Pods are replaced. Zero: the Pod is not replaced.
	Order int
	// Purpose is the purpose of the replacement. Reason is the reason of the action that creates the replacement.
	Purpose, Reason string
	// Fails is true if the replacement waits for the backoff.
	Fails bool
	// Avoid is true if new Pods prefer other Nodes.
	Avoid bool
	// Remove says when the Pod is removed.
	Remove removal

	// Complaint returns the reason that the Pod adds to ConditionDegraded, or an empty string. nil: it adds none.
	Complaint func(*pod) string
	// Note describes the Pod in the list of Pods. Explanation describes the Pod in the cause of an action. {node} stands
	// for the name of the Node. If a text is empty, it follows from the Node or from the containers.
	Note, Explanation string
}

// podClasses is the table. The first row that matches is the class of a Pod, and the last row matches every Pod.
var podClasses = []podClass{{
	Class: ClassForeign, Matches: func(p *pod) bool { return !p.owned },
	Complaint:   func(*pod) string { return ReasonForeignPod },
	Explanation: "it does not belong to the catalog",
}, {
	Class: ClassTerminated, Matches: func(p *pod) bool { return p.finished },
	Order: 3, Purpose: registry.PurposeRestart, Reason: ReasonPodTerminated, Fails: true, Remove: removeFinished,
	Complaint: func(p *pod) string {
		if p.heldByFinalizer() {
			return ReasonStuckTerminating
		}
		return ""
	},
	Note: "finished", Explanation: "it has finished",
}, {
	Class: ClassLost, Matches: func(p *pod) bool { return p.lost != "" },
	HoldsPoll: true,
	Order:     1, Purpose: registry.PurposeRefill, Remove: removeLost,
	Complaint: func(p *pod) string {
		if p.lost == ReasonOverdue {
			return ReasonStuckTerminating
		}
		return ReasonNodeLost
	},
}, {
	Class: ClassTerminating, Matches: func(p *pod) bool { return p.DeletionTimestamp != nil },
	Order: 2, Purpose: registry.PurposeRefill, Reason: ReasonPodTerminating, Remove: removeDisrupted,
	Note: "terminating", Explanation: "it is being deleted",
}, {
	Class: ClassOutdated, Matches: func(p *pod) bool { return !p.current },
	Active: true, Live: true, HoldsPoll: true,
	Order: 5, Purpose: registry.PurposeRollout, Reason: ReasonPodOutdated,
	Note: "old spec", Explanation: "it was created from another spec",
}, {
	Class: ClassDisrupted, Matches: func(p *pod) bool { return p.node.Evicts || p.hasCondition(corev1.DisruptionTarget) },
	Active: true, Live: true, Leaving: true, HoldsPoll: true,
	Order: 4, Purpose: registry.PurposeRefill, Reason: ReasonPodDisrupted, Avoid: true, Remove: removeDisrupted,
	Note: "about to be evicted", Explanation: "it is about to be evicted",
}, {
	Class: ClassServing, Matches: func(p *pod) bool { return p.ready },
	Active: true, Live: true,
}, {
	Class: ClassUnhealthy, Matches: func(p *pod) bool { return startProblem(p.Pod) != "" },
	Active: true, Live: true, Diagnosed: true,
	Complaint: func(p *pod) string {
		if p.polls {
			return "" // ConditionUpdatePolled reports it
		}
		return p.problem
	},
}, {
	Class: ClassStuck, Matches: func(p *pod) bool { return p.startLeft <= 0 && p.Spec.NodeName != "" && !p.node.mayFail() },
	Active: true, Diagnosed: true,
	Order: 3, Purpose: registry.PurposeRestart, Reason: ReasonPodStuck, Fails: true, Avoid: true, Remove: removeStuck,
	Note: "does not start", Explanation: "it does not start on {node}",
}, {
	Class: ClassStarting, Matches: func(*pod) bool { return true },
	Active: true, Live: true, Diagnosed: true, HoldsPoll: true,
}}

const (
	// stuckTerminatingGrace is how long a Pod may outlive its deletion time.
	stuckTerminatingGrace = 120 * time.Second
	// maxAttempt is the highest number of an attempt to start a Pod.
	maxAttempt = 20
)

// role says whether the Service selects a Pod. It follows from the labels of the Pod.
type role int

const (
	roleNone      role = iota
	roleServing        // the Service selects the Pod
	roleCandidate      // the Service does not select the Pod yet
)

func roleOf(pod *corev1.Pod, catalogSource string) role {
	serving, labelled := pod.Labels[registry.LabelServing]
	switch {
	case labelled && serving == catalogSource:
		return roleServing
	case labelled && serving == "" && pod.Labels[registry.LabelCandidate] == catalogSource:
		return roleCandidate
	}
	return roleNone
}

// pod is one registry Pod, observed and classified. It is read-only.
type pod struct {
	*corev1.Pod
	class *podClass
	role  role

	// The Pod itself.
	owned    bool      // it has an owner reference to the CatalogSource
	finished bool      // its phase is Succeeded or Failed
	current  bool      // it was created from the present spec
	ready    bool      // its Ready condition is True, and it has not finished
	polls    bool      // it is a candidate that was created to poll the image
	content  string    // the digest of the image with its content; empty if unknown, and for ConfigMaps
	purpose  string    // the purpose for which it was created; empty if it is not annotated
	attempt  int       // the number of the attempt to start it
	replaces types.UID // the UID of the Pod that it was created to replace

	// The record of the Pod that stays, see AnnotationKeptPod.
	kept       bool  // the CatalogSource names it as the Pod that stays
	keptNumber int64 // the number of the Pod in the record; see KeyKeptNumber; 0: it has no number

	// Its Node and its containers.
	node      *nodeClass
	nodeSince time.Time
	lost      string // why it is lost: the reason of a Pod of ClassLost
	problem   string // why it does not become ready: the reason of a Pod of ClassUnhealthy
	late      bool   // startLeft is not positive; only for a class that is Diagnosed

	// readyLeft is the remaining time to become ready, counted from the creation of the Pod.
	readyLeft time.Duration
	// startLeft is the remaining time to become ready, counted from when the Pod was bound or was last ready.
	startLeft time.Duration
	// changesIn is the time until the class may change without an event. 0: never.
	changesIn time.Duration
}

// observePod classifies one Pod.
func (f *facts) observePod(object *corev1.Pod) *pod {
	attempt, _ := strconv.Atoi(object.Annotations[registry.KeyAttempt])
	number, err := strconv.ParseInt(object.Annotations[registry.KeyKeptNumber], 10, 64)
	p := &pod{
		Pod:      object,
		role:     roleOf(object, f.source.Name),
		owned:    olmcore.OwnedBy(object, f.source.UID),
		finished: object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed,
		current:  !f.standing.runsPods() || f.registry.Current(object),
		purpose:  object.Annotations[registry.KeyPurpose],
		attempt:  min(max(attempt, 1), maxAttempt),
		replaces: types.UID(object.Annotations[registry.KeyReplaces]),
		kept:     object.UID != "" && string(object.UID) == f.source.Annotations[AnnotationKeptPod],
		node:     &noNode,
	}
	if err == nil {
		p.keptNumber = max(number, 0)
	}
	p.ready = p.hasCondition(corev1.PodReady) && (!p.owned || !p.finished)
	p.polls = p.role == roleCandidate && p.owned && p.madeToPoll()
	if f.standing.mode != modeConfigMap {
		p.content = imageID(object)
	}
	p.readyLeft = object.CreationTimestamp.Add(f.config.startDeadline()).Sub(f.now)
	p.startLeft = unreadySince(object).Add(f.config.startDeadline()).Sub(f.now)

	if p.owned && !p.finished {
		p.node, p.nodeSince = f.observeNode(object)
		p.lost, p.changesIn = f.lostReason(p)
		if p.node.Lasts > 0 {
			p.changesIn = olmcore.Nearest(p.changesIn, p.nodeSince.Add(p.node.Lasts).Sub(f.now))
		}
	}

	row := slices.IndexFunc(f.classes, func(c podClass) bool { return c.Matches(p) })
	p.class = &f.classes[row]
	if p.class.Diagnosed {
		p.problem = startProblem(object)
		p.late = p.startLeft <= 0
		p.changesIn = olmcore.Nearest(p.changesIn, p.startLeft)
	}
	return p
}

// lostReason returns why a Pod is lost. If the Pod is not lost, lostIn is the time until it may be.
func (f *facts) lostReason(p *pod) (reason string, lostIn time.Duration) {
	// 1. The Node failed and its grace period is over. A Pod whose Ready condition is True is still serving, unless no
	// kubelet can run it. The node controller sets Ready to False for the Pods of an unreachable Node.
	if p.node.LostReason != "" && (p.node.LosesReadyPods || !p.ready) {
		lostIn = nodeGraceLeft(f, p)
		if lostIn <= 0 {
			return p.node.LostReason, 0
		}
	}
	if p.DeletionTimestamp == nil {
		return "", lostIn
	}
	// 2. Kubernetes evicted the Pod because of a Node that this controller does not observe.
	disruption := podCondition(p.Pod, corev1.DisruptionTarget)
	becauseOfNode := disruption.Reason == "DeletionByTaintManager" || disruption.Reason == "DeletionByPodGC"
	if !f.in.Nodes.Complete && disruption.Status == corev1.ConditionTrue && becauseOfNode {
		return ReasonEvicted, lostIn
	}
	// 3. The Pod outlived its deletion.
	overdueIn := p.DeletionTimestamp.Add(stuckTerminatingGrace).Sub(f.now)
	if overdueIn <= 0 {
		return ReasonOverdue, lostIn
	}
	return "", olmcore.Nearest(lostIn, overdueIn)
}

// nodeGraceLeft returns the rest of the grace period of a failed Node.
func nodeGraceLeft(f *facts, p *pod) time.Duration {
	if p.node.Grace == nil {
		return 0
	}
	grace := p.node.Grace(f.config)
	if p.ready {
		// The Pod may serve on a Node that was just created, if the cache of the Nodes is stale and the clock of this
		// controller is ahead.
		grace += olmcore.ClockTolerance
	}
	return p.nodeSince.Add(grace).Sub(f.now)
}

// isServing reports whether the Pod answers clients of the catalog.
func (p *pod) isServing() bool { return p.role == roleServing && p.ready && p.class.Live }

// isLiveCandidate reports whether the Pod is a candidate that may become active.
func (p *pod) isLiveCandidate() bool { return p.role == roleCandidate && p.class.Live }

// isCurrent reports whether the Pod is live and was created from the present spec.
func (p *pod) isCurrent() bool { return p.class.Live && p.current }

// isOutdated reports whether the Pod is live and was created from another spec.
func (p *pod) isOutdated() bool { return p.class.Live && !p.current }

// staysReady reports whether the Pod is current, ready, and not about to be evicted.
func (p *pod) staysReady() bool { return p.isCurrent() && p.ready && !p.class.Leaving }

// expired reports whether the Pod did not become ready in time after its creation. Candidates that expired are
// replaced.
func (p *pod) expired() bool { return !p.ready && p.readyLeft <= 0 }

// lostWithNode reports whether the Pod is lost because of its Node.
func (p *pod) lostWithNode() bool { return p.lost != "" && p.lost != ReasonOverdue }

// heldByFinalizer reports whether a finalizer keeps a finished Pod that was deleted.
func (p *pod) heldByFinalizer() bool {
	return p.finished && p.DeletionTimestamp != nil && len(p.Finalizers) > 0
}

// wasForced reports whether the Pod was already deleted with a grace period of 0.
func (p *pod) wasForced() bool {
	return p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// madeToPoll reports whether the Pod was created to poll the image. OLM creates candidates only for polls, and does not
// annotate them.
func (p *pod) madeToPoll() bool {
	return p.purpose == registry.PurposePoll || p.purpose == "" && p.role == roleCandidate
}

func (p *pod) hasCondition(kind corev1.PodConditionType) bool {
	return podCondition(p.Pod, kind).Status == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// boundAt returns when the Pod was bound to its Node. If its status does not contain that time, boundAt returns when
// the Pod was created.
func boundAt(pod *corev1.Pod) time.Time {
	scheduled := podCondition(pod, corev1.PodScheduled)
	if scheduled.Status != corev1.ConditionTrue || scheduled.LastTransitionTime.IsZero() {
		return pod.CreationTimestamp.Time
	}
	return scheduled.LastTransitionTime.Time
}

// unreadySince returns when a bound Pod was ready for the last time, or when it was bound. A Pod that was ready once
// gets the whole deadline again.
func unreadySince(pod *corev1.Pod) time.Time {
	bound := boundAt(pod)
	ready := podCondition(pod, corev1.PodReady)
	if ready.LastTransitionTime.After(bound) {
		return ready.LastTransitionTime.Time
	}
	return bound
}

// containerStatuses returns the statuses of all containers, in the order in which they run.
func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// lastRun returns when the containers of the Pod started and finished for the last time. If the status does not contain
// these times, started is zero and finished is the time at which the Pod stopped being ready.
func (p *pod) lastRun() (started, finished time.Time) {
	for _, status := range containerStatuses(p.Pod) {
		run := status.State.Terminated
		if run != nil && run.FinishedAt.After(finished) {
			started = run.StartedAt.Time
			finished = run.FinishedAt.Time
		}
	}
	if finished.IsZero() {
		return time.Time{}, unreadySince(p.Pod)
	}
	return started, finished
}

// waitingProblems maps the kubelet's reasons for a waiting container to reasons of ConditionDegraded. The kubelet
// alternates between several reasons for one problem.
var waitingProblems = map[string]string{
	"ImagePullBackOff": ReasonImagePullFailed, "ErrImagePull": ReasonImagePullFailed,
	"InvalidImageName": ReasonImagePullFailed, "ErrImageNeverPull": ReasonImagePullFailed,
	"CrashLoopBackOff": ReasonCrashLooping, "CreateContainerConfigError": ReasonCrashLooping, "RunContainerError": ReasonCrashLooping,
}

// startProblem returns why a Pod that is not ready would not become ready on another Node either, as a reason of
// ConditionDegraded. It returns an empty string if no such problem is known. A failed image pull takes precedence.
func startProblem(pod *corev1.Pod) string {
	scheduled := podCondition(pod, corev1.PodScheduled)
	if scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable {
		return ReasonPodUnschedulable
	}
	problem := ""
	for _, s := range containerStatuses(pod) {
		found := ""
		if s.State.Waiting != nil {
			found = waitingProblems[s.State.Waiting.Reason]
		}
		// A container that crashes repeatedly also runs for a moment between two crashes.
		last := s.LastTerminationState.Terminated
		if found == "" && last != nil && !s.Ready && (s.RestartCount > 1 || last.Reason == "OOMKilled") {
			found = ReasonCrashLooping
		}
		if found == ReasonImagePullFailed {
			return found
		}
		problem = cmp.Or(found, problem)
	}
	return problem
}

// imageID returns the digest of the image that contains the catalog of a Pod. It is empty while the digest is unknown.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, imageID.
func imageID(pod *corev1.Pod) string {
	inits := pod.Status.InitContainerStatuses
	containers := pod.Status.ContainerStatuses
	switch {
	case len(inits) == 0 && len(containers) == 1:
		return containers[0].ImageID
	case len(inits) == 2 && len(containers) == 1:
		return inits[1].ImageID
	}
	return ""
}

// problemTexts describe the reasons that startProblem returns.
var problemTexts = map[string]string{
	ReasonImagePullFailed: "cannot pull its image", ReasonCrashLooping: "fails repeatedly", ReasonPodUnschedulable: "cannot be scheduled",
}

// note describes the Pod in a list of Pods. It is empty for a Pod that serves.
func (p *pod) note() string {
	switch {
	case p.class.Note != "":
		return p.class.Note
	case p.lost != "" && p.node.Phrase != "":
		return "lost, its node " + p.node.Phrase
	case p.lost != "":
		return "lost"
	case p.class.Live && p.ready:
		return ""
	case p.node.Phrase != "":
		return "not ready, its node " + p.node.Phrase
	}
	return cmp.Or(problemTexts[p.problem], "not ready")
}

// explanation describes why the Pod is replaced or removed, as the end of a sentence.
func (p *pod) explanation() string {
	node := "node " + p.Spec.NodeName
	switch {
	case p.class.Explanation != "":
		return strings.ReplaceAll(p.class.Explanation, "{node}", node)
	case p.lost == ReasonOverdue || p.lost == ReasonEvicted:
		return "it was deleted but still exists on " + node
	case p.lost != "":
		return node + " " + p.node.Phrase
	}
	return p.note()
}

// complaint returns the reason that the Pod adds to ConditionDegraded, and a text. Both are empty if it adds none.
func (p *pod) complaint() (reason, text string) {
	if p.role == roleNone || p.class.Complaint == nil {
		return "", ""
	}
	reason = p.class.Complaint(p)
	switch reason {
	case ReasonStuckTerminating:
		return reason, "it was deleted but still exists"
	case ReasonForeignPod:
		return reason, "it has the catalog's labels and another owner"
	}
	return reason, p.note()
}
