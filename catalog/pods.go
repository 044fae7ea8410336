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

const (
	// stuckTerminatingGrace is how long a Pod may outlive its deletion time.
	stuckTerminatingGrace = 120 * time.Second
	// maxAttempt bounds the number of the attempt to start a Pod.
	maxAttempt = 20
)

// role is what a Pod's labels make it.
type role int

const (
	roleNone      role = iota
	roleServing        // the Service selects it
	roleCandidate      // it waits to take over
)

func roleOf(pod *corev1.Pod, name string) role {
	serving, ok := pod.Labels[registry.LabelServing]
	switch {
	case ok && serving == name:
		return roleServing
	case ok && serving == "" && pod.Labels[registry.LabelCandidate] == name:
		return roleCandidate
	}
	return roleNone
}

// registryPod is one Pod, classified. It is read-only.
type registryPod struct {
	*traits
	*corev1.Pod
	Role      role
	Owned     bool      // it has an owner reference to the CatalogSource
	Finished  bool      // it will not run again
	Current   bool      // it was made from the present spec
	Ready     bool      // its condition Ready is True, and it has not finished
	Node      NodeState // empty for Pods that are not the catalog's or have finished
	NodeSince time.Time
	Lost      string        // why one of ClassLost is lost
	Trouble   string        // what holds up one of ClassUnhealthy, a Reason of ConditionDegraded
	Late      bool          // it is not ready for longer than the deadline
	Left      time.Duration // what it has left of that from its creation
	startLeft time.Duration // what it has left of that from when it was bound, or ready for the last time
	Probe     bool          // it was made to poll the image, and does not serve
	MadeFor   string        // why it was made, empty when it does not say
	Attempt   int           // the number of the attempt
	Replaces  types.UID     // the Pod that it was made for
	Content   string        // the digest that its catalog comes from, empty while it is unknown, and for ConfigMaps
	Wait      time.Duration // until the class may change by the clock alone; 0: never
}

// observePods returns the Pods that are, or pretend to be, the catalog's, by name. Their classes are those of the table.
func (f *facts) observePods(table []traits) podList {
	var list podList
	for _, pod := range f.Pods.Items {
		role := roleOf(pod, f.CatalogSource.Name)
		if pod.Namespace != f.CatalogSource.Namespace || role == roleNone && !olmcore.OwnedBy(pod, f.CatalogSource.UID) {
			continue
		}
		p := f.inspect(pod, role)
		row := max(0, slices.IndexFunc(table, func(t traits) bool { return t.Is(p) }))
		p.traits = &table[row]
		if p.Diagnosed {
			p.Trouble, p.Late = troubleOf(pod), p.startLeft <= 0
			p.Wait = olmcore.Nearest(p.Wait, p.startLeft)
		}
		list.Items = append(list.Items, p)
	}
	slices.SortFunc(list.Items, func(a, b *registryPod) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)),
			strings.Compare(b.ResourceVersion, a.ResourceVersion))
	})
	list.tally = list.count()
	list.Content = list.newestContent()
	list.Disruption = disruptionOf(list.Items, f.Nodes.Items)
	return list
}

// inspect returns what is known of a Pod before it has a class.
func (f *facts) inspect(pod *corev1.Pod, role role) *registryPod {
	attempt, _ := strconv.Atoi(pod.Annotations[registry.KeyAttempt])
	p := &registryPod{
		Pod: pod, Role: role, Owned: olmcore.OwnedBy(pod, f.CatalogSource.UID),
		Current:  !f.standing.runsPods() || f.registry.Current(pod),
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		MadeFor:  pod.Annotations[registry.KeyPurpose], Replaces: types.UID(pod.Annotations[registry.KeyReplaces]),
		Attempt: min(max(attempt, 1), maxAttempt),
		Left:    pod.CreationTimestamp.Add(f.Config.deadline()).Sub(f.Now), startLeft: unreadySince(pod).Add(f.Config.deadline()).Sub(f.Now),
	}
	if f.standing.mode != modeConfigMap {
		p.Content = imageID(pod)
	}
	p.Ready = p.is(corev1.PodReady) && (!p.Owned || !p.Finished)
	p.Probe = role == roleCandidate && p.Owned && p.madeToPoll()
	if p.Owned && !p.Finished {
		p.Node, p.NodeSince = f.nodeOf(pod)
		if p.Node == NodeRecovering {
			p.Wait = p.NodeSince.Add(nodeRecoveryWindow).Sub(f.Now)
		}
		var wait time.Duration
		p.Lost, wait = f.lost(p)
		p.Wait = olmcore.Nearest(p.Wait, wait)
	}
	return p
}

// lost returns why a Pod counts as lost, and how long it is until it may.
func (f *facts) lost(p *registryPod) (reason string, wait time.Duration) {
	switch {
	case p.Node == NodeOutOfService:
		return ReasonNodeOutOfService, 0
	// The node controller takes Ready from the Pods of a silent node. While a Pod still has it, it counts as serving.
	case p.Node == NodeGone || p.Node.doubtful() && !p.Ready:
		grace := f.Config.grace(p.Node)
		if p.Ready {
			// The Pod may serve on a Node that was just created, if the cache of the Nodes is stale and this clock is ahead.
			grace += olmcore.ClockTolerance
		}
		if wait = p.NodeSince.Add(grace).Sub(f.Now); wait <= 0 {
			return "Node" + string(p.Node), 0 // ReasonNodeGone, ReasonNodeUnreachable or ReasonNodeNotReady
		}
	}
	if p.DeletionTimestamp == nil {
		return "", wait
	}
	if c := podCondition(p.Pod, corev1.DisruptionTarget); !f.Nodes.Complete && c.Status == corev1.ConditionTrue &&
		(c.Reason == "DeletionByTaintManager" || c.Reason == "DeletionByPodGC") {
		return ReasonEvicted, wait
	}
	overdue := p.DeletionTimestamp.Add(stuckTerminatingGrace).Sub(f.Now)
	if overdue <= 0 {
		return ReasonOverdue, wait
	}
	return "", olmcore.Nearest(wait, overdue)
}

func (p *registryPod) is(kind corev1.PodConditionType) bool {
	return podCondition(p.Pod, kind).Status == corev1.ConditionTrue
}

func (p *registryPod) serves() bool       { return p.Role == roleServing && p.Ready && p.Live } // it answers clients of the catalog
func (p *registryPod) stays() bool        { return p.Ready && p.Present && !p.Leaves }          // it is ready and not about to be evicted
func (p *registryPod) outdated() bool     { return p.Live && !p.Present }                       // it may serve and was made from another spec
func (p *registryPod) usable() bool       { return p.Present && !p.expired() }                  // as a candidate it may still take over
func (p *registryPod) expired() bool      { return !p.Ready && p.Left <= 0 }                    // it did not become ready by its deadline
func (p *registryPod) lostWithNode() bool { return p.Lost != "" && p.Lost != ReasonOverdue }    // it is lost because of its Node

// held reports whether a finalizer keeps a finished Pod that has been deleted.
func (p *registryPod) held() bool {
	return p.Finished && p.DeletionTimestamp != nil && len(p.Finalizers) > 0
}

// troubles says in words what holds up a Pod.
var troubles = map[string]string{
	ReasonImagePullFailed: "cannot pull its image", ReasonCrashLooping: "does not stay up", ReasonPodUnschedulable: "no node takes it",
}

// describe is what a list of Pods says about one, empty for a Pod that serves.
func (p *registryPod) describe() string {
	word := p.Node.word()
	switch {
	case p.Note != "":
		return p.Note
	case p.Lost != "" && word != "":
		return "lost, its node " + word
	case p.Lost != "":
		return "lost"
	case p.Live && p.Ready:
		return ""
	case word != "":
		return "not ready, its node " + word
	}
	return cmp.Or(troubles[p.Trouble], "not ready")
}

// complain returns the Reason of ConditionDegraded that the Pod gives, and what is wrong; empty for none.
func (p *registryPod) complain() (reason, text string) {
	if p.Role == roleNone || p.Complaint == nil {
		return "", ""
	}
	switch reason = p.Complaint(p); reason {
	case ReasonStuckTerminating:
		return reason, "it was deleted and is still there"
	case ReasonForeignPod:
		return reason, "it has the catalog's labels and another owner"
	}
	return reason, p.describe()
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func boundAt(pod *corev1.Pod) time.Time {
	if c := podCondition(pod, corev1.PodScheduled); c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// unreadySince is when a bound Pod that is not ready started to be late: a Pod that was ready once gets the whole
// deadline again.
func unreadySince(pod *corev1.Pod) time.Time {
	since := boundAt(pod)
	if c := podCondition(pod, corev1.PodReady); c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	return since
}

// allContainers returns the statuses of all containers, in the order in which they run.
func allContainers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// ran returns when the Pod's containers started last and when they finished. A Pod without that status finished when
// it stopped being ready, or never began.
func (p *registryPod) ran() (started, finished time.Time) {
	for _, status := range allContainers(p.Pod) {
		if t := status.State.Terminated; t != nil && t.FinishedAt.After(finished) {
			started, finished = t.StartedAt.Time, t.FinishedAt.Time
		}
	}
	if finished.IsZero() {
		return time.Time{}, unreadySince(p.Pod)
	}
	return started, finished
}

// waitingTroubles are the words of the kubelet for what a container waits for in vain. It alternates between several words for
// one trouble; one Reason stands for all of them.
var waitingTroubles = map[string]string{
	"ImagePullBackOff": ReasonImagePullFailed, "ErrImagePull": ReasonImagePullFailed,
	"InvalidImageName": ReasonImagePullFailed, "ErrImageNeverPull": ReasonImagePullFailed,
	"CrashLoopBackOff": ReasonCrashLooping, "CreateContainerConfigError": ReasonCrashLooping, "RunContainerError": ReasonCrashLooping,
}

// troubleOf returns why a Pod that is not ready would not become ready elsewhere either; empty when nothing is known.
func troubleOf(pod *corev1.Pod) (trouble string) {
	if c := podCondition(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return ReasonPodUnschedulable
	}
	for _, s := range allContainers(pod) {
		found := ""
		if w := s.State.Waiting; w != nil {
			found = waitingTroubles[w.Reason]
		}
		// Between two crashes the container runs for a moment; it is no better then.
		if t := s.LastTerminationState.Terminated; t != nil && !s.Ready && (s.RestartCount > 1 || t.Reason == "OOMKilled") {
			found = cmp.Or(found, ReasonCrashLooping)
		}
		if found == ReasonImagePullFailed {
			return found
		}
		trouble = cmp.Or(found, trouble)
	}
	return trouble
}

// imageID returns the digest that a Pod's image has, empty while it is unknown.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, imageID.
func imageID(pod *corev1.Pod) string {
	inits, containers := pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses
	switch {
	case len(inits) == 0 && len(containers) == 1:
		return containers[0].ImageID
	case len(inits) == 2 && len(containers) == 1:
		return inits[1].ImageID
	}
	return ""
}

// podList is the Pods of a catalog, by name. It is read-only.
type podList struct {
	Items []*registryPod
	tally
	Content    string     // the content that shall win, empty while none is known
	Disruption disruption // how much of the cluster fails at once
}

// tally counts own Pods.
type tally struct {
	Current, CurrentReady, Steady int // in the serving role, of the present spec: all, ready ones, those not about to be evicted
	Outdated, OutdatedReady       int // in the serving role, of another spec: all, ready ones
	Lost, Ended                   int // in the serving role and of no use any more: because of a Node, or otherwise
	Candidates, CandidatesReady   int // of the present spec, which may still become something: all, ready ones
	Active, Unfinished            int // of any role: those that run or are expected to, those that have not finished
	Ready                         int // those that serve
}

func (l podList) count() (t tally) {
	for _, p := range l.Items {
		if !p.Owned || p.Role == roleNone {
			continue // its labels were changed: it neither serves nor takes room
		}
		t.Active += one(p.Active)
		t.Unfinished += one(!p.Finished)
		if p.Role == roleCandidate {
			t.Candidates += one(p.usable())
			t.CandidatesReady += one(p.usable() && p.Ready)
			continue
		}
		t.Current += one(p.Present)
		t.CurrentReady += one(p.Present && p.Ready)
		t.Steady += one(p.Present && !p.Leaves)
		t.Outdated += one(p.outdated())
		t.OutdatedReady += one(p.outdated() && p.Ready)
		t.Lost += one(p.lostWithNode())
		t.Ended += one(!p.Live && !p.lostWithNode())
	}
	t.Ready = t.CurrentReady + t.OutdatedReady
	return t
}

func one(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

func (l podList) choose(keep func(*registryPod) bool) (list []*registryPod) {
	for _, p := range l.Items {
		if keep(p) {
			list = append(list, p)
		}
	}
	return list
}

// newest returns the newest Pod that keep accepts, nil when there is none.
func (l podList) newest(keep func(*registryPod) bool) *registryPod {
	if list := l.choose(keep); len(list) > 0 {
		return slices.MaxFunc(list, byAge)
	}
	return nil
}

func byAge(a, b *registryPod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// live returns the Pods of a role that may serve now or soon, readyCandidates the candidates that may take over now, oldSpec
// the Pods of the serving role that were made from another spec.
func (l podList) live(r role) []*registryPod {
	return l.choose(func(p *registryPod) bool { return p.Role == r && p.Live })
}
func (l podList) readyCandidates() []*registryPod {
	return l.choose(func(p *registryPod) bool { return p.Role == roleCandidate && p.Ready && p.usable() })
}
func (l podList) oldSpec() []*registryPod {
	return l.choose(func(p *registryPod) bool { return p.Role == roleServing && p.outdated() })
}

func (l podList) starting(purpose string) bool {
	return slices.ContainsFunc(l.Items, func(p *registryPod) bool { return p.Live && !p.Ready && p.MadeFor == purpose })
}

func (l podList) uniformCandidates(n int) bool {
	ready := l.readyCandidates()
	return len(ready) >= n && !slices.ContainsFunc(ready, func(p *registryPod) bool { return p.Content != ready[0].Content })
}

// mostTelling is the order of the Reasons of ConditionDegraded that Pods give; others follow.
var mostTelling = []string{
	ReasonNodeLost, ReasonPodUnschedulable, ReasonImagePullFailed, ReasonCrashLooping, ReasonStuckTerminating, ReasonForeignPod,
}

// complaints returns what Pods complain of, the most telling first.
func (l podList) complaints() (list []complaint) {
	for _, p := range l.Items {
		reason, text := p.complain()
		if reason == "" {
			continue
		}
		at := slices.IndexFunc(list, func(c complaint) bool { return c.reason == reason })
		if at < 0 {
			at, list = len(list), append(list, complaint{reason: reason})
		}
		item := p.Name
		if p.Spec.NodeName != "" {
			item += " on " + p.Spec.NodeName
		}
		list[at].texts = append(list[at].texts, item+": "+text)
	}
	slices.SortStableFunc(list, func(a, b complaint) int { // an index of -1 is the largest
		return cmp.Compare(uint(slices.Index(mostTelling, a.reason)), uint(slices.Index(mostTelling, b.reason)))
	})
	return list
}

// newestContent is that of the newest Pod that serves. Pods of the same second leave it to the number of those that stay.
func (l podList) newestContent() string {
	serving := l.choose(func(p *registryPod) bool { return p.serves() && p.Content != "" })
	if len(serving) == 0 {
		return ""
	}
	staying := map[string]int{}
	for _, p := range serving {
		staying[p.Content] += one(p.stays())
	}
	return slices.MaxFunc(serving, func(a, b *registryPod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), staying[a.Content]-staying[b.Content], byAge(a, b))
	}).Content
}
