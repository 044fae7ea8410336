// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Finalizer is the finalizer that keeps a ClusterServiceVersion until its cleanup is done.
const Finalizer = olmcore.FinalizerCSVCleanup

// Annotations that change a cleanup, and their values.
const (
	// AnnotationCleanup is an annotation of a ClusterServiceVersion that shortens its cleanup. Its value is
	// OverrideSkipOperands or OverrideAbandon.
	AnnotationCleanup = olmcore.KeyPrefix + "csv-cleanup"
	// AnnotationKeep is an annotation of an operand. An operand with this annotation is kept when its operator is
	// uninstalled. The value has no effect.
	AnnotationKeep = olmcore.KeyPrefix + "keep-on-uninstall"

	// OverrideSkipOperands means that no more operands are deleted, and the cleanup continues with the next stage.
	OverrideSkipOperands = "skip-operands"
	// OverrideAbandon means that the ClusterServiceVersion is released at once. No more objects are deleted.
	OverrideAbandon = "abandon"
)

// Mode is the extent of a cleanup.
type Mode string

// Modes of a cleanup.
const (
	// ModeUninstall means that all stages run.
	ModeUninstall Mode = "Uninstall"
	// ModeSuperseded means that a newer version replaces this one, so the operands are kept.
	ModeSuperseded Mode = "Superseded"
	// ModeOrphan means that the ClusterServiceVersion was deleted with orphan propagation, so nothing is deleted.
	ModeOrphan Mode = "Orphan"
	// ModeNamespaceGone means that the namespace is Terminating, so the ClusterServiceVersion is released after 30
	// seconds.
	ModeNamespaceGone Mode = "NamespaceGone"
)

// facts contains the classified objects of an Input. factsOf fills it once. Afterwards it is read-only.
type facts struct {
	in   *Input // as the caller passed it
	c    *model.CSV
	age  time.Duration // since the deletion
	mode Mode
	// superseded reports whether a newer version replaces this one, whatever the mode.
	superseded bool
	// override is the value of AnnotationCleanup. It is empty if there is none, or an unknown one.
	override string
	// peers contains the other observed ClusterServiceVersions that are neither copies nor being deleted, sorted.
	peers []*model.CSV
	// terminating contains the names of the Terminating namespaces.
	terminating map[string]bool
	// reach contains the namespaces in which operands may be deleted.
	reach model.Targets
	// labelled contains the objects whose owner labels name this ClusterServiceVersion, by the stage that deletes them.
	// The empty stage contains those that are left behind, for example because they have another owner.
	labelled map[Stage]found
}

// factsOf returns the facts of an Input.
func factsOf(in *Input) *facts {
	c := in.ClusterServiceVersion
	f := &facts{
		in: in, c: c, age: model.Since(c.DeletionTimestamp, in.Now), superseded: isSuperseded(in),
		peers: peersOf(in), terminating: terminatingNamespaces(in), reach: reachOf(in),
	}
	f.mode = f.observeMode()
	value := c.Annotations[AnnotationCleanup]
	if value == OverrideAbandon || value == OverrideSkipOperands {
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

// isSuperseded reports whether a newer version replaces the ClusterServiceVersion. The result does not depend on the
// status that the cleanup itself writes.
func isSuperseded(in *Input) bool {
	s := &in.ClusterServiceVersion.Status
	reason := s.Reason
	for _, c := range slices.Backward(s.Conditions) {
		if reason != v1alpha1.CSVReasonWaitingForCleanupToComplete {
			break
		}
		reason = c.Reason
	}
	live := func(c *model.CSV) bool { return c.DeletionTimestamp == nil }
	return s.Phase == v1alpha1.CSVPhaseReplacing || reason == v1alpha1.CSVReasonReplaced || reason == v1alpha1.CSVReasonBeingReplaced ||
		slices.ContainsFunc(model.ChainOf(in.ClusterServiceVersion, in.Neighbours.Items).Descendants, live)
}

func peersOf(in *Input) []*model.CSV {
	c := in.ClusterServiceVersion
	peers := slices.DeleteFunc(slices.Concat(in.Peers.Items, in.Neighbours.Items), func(p *model.CSV) bool {
		return p.DeletionTimestamp != nil || p.IsCopied() || p.Name == c.Name && p.Namespace == c.Namespace
	})
	slices.SortFunc(peers, func(a, b *model.CSV) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return peers
}

// reachOf returns the namespaces in which a cleanup may delete operands. A user who can write a ClusterServiceVersion
// can write any namespaces into its annotations. So the annotations can only narrow the namespaces in the status of the
// OperatorGroup. That group must be the one that the annotations name, must be the only one of the namespace, and must
// not be deleted. Without it, operands are deleted only in the namespace of the ClusterServiceVersion, and no
// cluster-scoped ones.
func reachOf(in *Input) model.Targets {
	c := in.ClusterServiceVersion
	annotated, ok := model.AnnotatedTargets(c)
	if !ok {
		return nil
	}
	selected := model.Targets{c.Namespace}
	g, _ := model.OnlyGroup(in.OperatorGroups.Items, c.Namespace)
	if g != nil && g.DeletionTimestamp == nil && model.IsMemberOf(c, g) {
		if t, computed := model.TargetsOf(g); computed {
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
