// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/shared"
	"github.com/olmcore/olm/olmcore"
)

// Finalizer holds a ClusterServiceVersion until its cleanup is done.
const Finalizer = olmcore.FinalizerCSVCleanup

// The annotations that steer a cleanup.
const (
	// AnnotationCleanup on a ClusterServiceVersion overrides its cleanup: OverrideSkipOperands or OverrideAbandon.
	AnnotationCleanup = olmcore.KeyPrefix + "csv-cleanup"
	// AnnotationKeep on an operand, with any value, keeps it when its operator is uninstalled.
	AnnotationKeep = olmcore.KeyPrefix + "keep-on-uninstall"

	// OverrideSkipOperands leaves the operands that are left where they are.
	OverrideSkipOperands = "skip-operands"
	// OverrideAbandon releases the ClusterServiceVersion at once and leaves everything behind.
	OverrideAbandon = "abandon"
)

// Mode says how much a cleanup does.
type Mode string

// Modes of a cleanup.
const (
	// ModeUninstall: all stages.
	ModeUninstall Mode = "Uninstall"
	// ModeSuperseded: a newer version goes on; operands stay.
	ModeSuperseded Mode = "Superseded"
	// ModeOrphan: the ClusterServiceVersion was deleted with orphan propagation; everything stays.
	ModeOrphan Mode = "Orphan"
	// ModeNamespaceGone: the namespace is Terminating; nothing holds for long.
	ModeNamespaceGone Mode = "NamespaceGone"
)

// facts is what an Input says about a deletion. It is made once and only read.
type facts struct {
	*Input
	c    *owned.CSV
	age  time.Duration // since the deletion
	mode Mode
	// superseded: a newer version goes on, whatever the mode.
	superseded bool
	// override is the value of AnnotationCleanup, empty for none or an unknown one.
	override string
	// peers are the other live ClusterServiceVersions that were observed, sorted.
	peers []*owned.CSV
	// terminating are the namespaces that are.
	terminating map[string]bool
	// reach is where operands may be deleted.
	reach group.Targets
	// labelled are the objects whose owner labels name this very ClusterServiceVersion, by the stage in which they go,
	// empty for never. What another one is the owner of is left behind.
	labelled map[Stage]found
}

func factsOf(in *Input) *facts {
	c := in.ClusterServiceVersion
	f := &facts{
		Input: in, c: c, age: owned.Since(c.DeletionTimestamp, in.Now), superseded: isSuperseded(in),
		peers: peersOf(in), terminating: terminatingNamespaces(in), reach: reachOf(in),
	}
	f.mode = f.observeMode()
	if value := c.Annotations[AnnotationCleanup]; value == OverrideAbandon || value == OverrideSkipOperands {
		f.override = value
	}
	f.labelled = f.observeLabelled()
	return f
}

func terminatingNamespaces(in *Input) map[string]bool {
	terminating := map[string]bool{}
	for _, n := range in.Namespaces.Items {
		if n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating {
			terminating[n.Name] = true
		}
	}
	return terminating
}

func (f *facts) observeMode() Mode {
	switch {
	case slices.Contains(f.c.Finalizers, metav1.FinalizerOrphanDependents):
		return ModeOrphan
	case f.terminating[f.c.Namespace]:
		return ModeNamespaceGone
	case f.superseded:
		return ModeSuperseded
	}
	return ModeUninstall
}

// observeLabelled returns the cluster-scoped objects of the ClusterServiceVersion by the stage that deletes them or hands
// them over.
func (f *facts) observeLabelled() map[Stage]found {
	sharers := shared.NewIndex(shared.Sources{
		ClusterServiceVersions: f.Sharers.Items, InstallPlans: f.InstallPlans.Items, OperatorGroups: f.SharerGroups.Items,
	})
	labelled := map[Stage]found{}
	for _, o := range f.ClusterObjects.Items {
		key := olmcore.KeyOf(o)
		isOurs := owned.ByIncarnation(f.c).Owns(o.GetLabels()) || f.isLeftToCoOwner(o)
		if !isOurs || f.isYounger(o) || !countsByLabel(key) {
			continue
		}
		stage := stageOf(key)
		all := labelled[stage]
		nextOwner := sharers.NextOwnerOf(o)
		switch {
		case owned.ByAnother(o.GetOwnerReferences(), f.c.UID):
			all.skipped = append(all.skipped, skip(olmcore.RefOf(o), "owned by another ClusterServiceVersion"))
		case nextOwner != nil && o.GetDeletionTimestamp() == nil && stage != "":
			all.targets = append(all.targets, handoverOf(f, o, nextOwner))
		default:
			all.targets = append(all.targets, deletionOf(f, o))
		}
		labelled[stage] = all
	}
	return labelled
}

// isSuperseded never depends on what the cleanup itself writes into the status.
func isSuperseded(in *Input) bool {
	s := &in.ClusterServiceVersion.Status
	reason := s.Reason
	for _, c := range slices.Backward(s.Conditions) {
		if reason != v1alpha1.CSVReasonWaitingForCleanupToComplete {
			break
		}
		reason = c.Reason
	}
	live := func(c *owned.CSV) bool { return c.DeletionTimestamp == nil }
	return s.Phase == v1alpha1.CSVPhaseReplacing || reason == v1alpha1.CSVReasonReplaced || reason == v1alpha1.CSVReasonBeingReplaced ||
		slices.ContainsFunc(chain.Of(in.ClusterServiceVersion, in.Neighbours.Items).Descendants, live)
}

func peersOf(in *Input) []*owned.CSV {
	c := in.ClusterServiceVersion
	peers := slices.DeleteFunc(slices.Concat(in.Peers.Items, in.Neighbours.Items), func(p *owned.CSV) bool {
		return p.DeletionTimestamp != nil || p.IsCopied() || p.Name == c.Name && p.Namespace == c.Namespace
	})
	slices.SortFunc(peers, func(a, b *owned.CSV) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return peers
}

// hasNeighbour reports whether a live version of the namespace passes a test. Those of other namespaces may claim what
// they like: a Service or Deployment of this namespace is none of theirs.
func (f *facts) hasNeighbour(test func(*owned.CSV) bool) bool {
	return slices.ContainsFunc(f.peers, func(p *owned.CSV) bool { return p.Namespace == f.c.Namespace && test(p) })
}

// wasLeft reports whether all of some versions that something belongs to are of the namespace and exist no more: the one
// before left it to this one, which was deleted before it took it over.
func (f *facts) wasLeft(by ...types.NamespacedName) bool {
	stays := func(v types.NamespacedName) bool {
		is := func(p *owned.CSV) bool { return p.Name == v.Name && p.Namespace == v.Namespace }
		return v.Namespace != f.c.Namespace || v.Name == f.c.Name ||
			slices.ContainsFunc(f.Neighbours.Items, is) || slices.ContainsFunc(f.Peers.Items, is)
	}
	return len(by) > 0 && f.Neighbours.Complete && !slices.ContainsFunc(by, stays)
}

// wasLeftByLabel is wasLeft of an object with owner labels.
func (f *facts) wasLeftByLabel(o olmcore.Object) bool {
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	return ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && f.wasLeft(types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
}

// isLeftToCoOwner reports whether an object belongs to this CSV because the CSV that its owner labels name is gone, without a
// cleanup, and the object records this CSV as a co-owner.
func (f *facts) isLeftToCoOwner(o olmcore.Object) bool {
	if !isCoOwned(o, f.c) {
		return false
	}
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	_, exists := owned.Find(f.Sharers.Items, owner.Namespace, owner.Name)
	return !exists && !slices.ContainsFunc(f.InstallPlans.Items, func(p *v1alpha1.InstallPlan) bool { return installsOwner(p, o) })
}

// isCoOwned reports whether the owner labels of a cluster-scoped object name another CSV, and its annotations record c.
func isCoOwned(o olmcore.Object, c *owned.CSV) bool {
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	return ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && o.GetNamespace() == metav1.NamespaceAll &&
		(owner.Namespace != c.Namespace || owner.Name != c.Name) &&
		owned.IsCoOwner(c, o)
}

// installsOwner reports whether an unfinished InstallPlan is about to create the CSV that the owner labels of an object name.
func installsOwner(p *v1alpha1.InstallPlan, o olmcore.Object) bool {
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	return p.Namespace == owner.Namespace && slices.Contains(p.Spec.ClusterServiceVersionNames, owner.Name) &&
		p.Status.Phase != v1alpha1.InstallPlanPhaseComplete && p.Status.Phase != v1alpha1.InstallPlanPhaseFailed
}

// isYounger reports whether an object was made after the deletion, as one of the next installation would be. One with the
// UID of this CSV is of no other: who made it did not know of the deletion yet.
func (f *facts) isYounger(o olmcore.Object) bool {
	if o.GetLabels()[olmcore.LabelOwnerUID] == string(f.c.UID) {
		return false
	}
	created := o.GetCreationTimestamp()
	return created.After(f.c.DeletionTimestamp.Time)
}

// reachOf returns the namespaces in which a cleanup may delete operands. Whoever writes a ClusterServiceVersion may
// write any namespace into its annotations, so they only narrow what the OperatorGroup of the namespace selects by its
// status. The group must be the one that the ClusterServiceVersion names, alone in the namespace, and not be on its way
// out; without it nothing but the own namespace is reached, and no cluster-scoped kind.
func reachOf(in *Input) group.Targets {
	c := in.ClusterServiceVersion
	annotated, ok := group.AnnotatedTargets(c)
	if !ok {
		return nil
	}
	selected := group.Targets{c.Namespace}
	if g, _ := group.Alone(in.OperatorGroups.Items, c.Namespace); g != nil && g.DeletionTimestamp == nil && group.IsMember(c, g) {
		if t, computed := group.TargetsOf(g); computed {
			selected = t
		}
	}
	switch {
	case !annotated.All():
		return slices.DeleteFunc(annotated.Named(), func(n string) bool { return !selected.Contains(n) })
	case selected.All():
		return selected
	}
	return selected.Named()
}
