// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

// Finalizer holds a ClusterServiceVersion until its cleanup is done.
const Finalizer = "operators.coreos.com/csv-cleanup"

// The annotations that steer a cleanup.
const (
	// AnnotationCleanup on a ClusterServiceVersion overrides its cleanup:
	// OverrideSkipOperands or OverrideAbandon.
	AnnotationCleanup = olmcore.KeyPrefix + "csv-cleanup"
	// AnnotationKeep on an operand, with any value, keeps it when its operator is
	// uninstalled.
	AnnotationKeep = olmcore.KeyPrefix + "keep-on-uninstall"

	// OverrideSkipOperands leaves the operands that are left where they are.
	OverrideSkipOperands = "skip-operands"
	// OverrideAbandon releases the ClusterServiceVersion at once and leaves everything
	// behind.
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
	// ModeOrphan: the ClusterServiceVersion was deleted with orphan propagation;
	// everything stays.
	ModeOrphan Mode = "Orphan"
	// ModeNamespaceGone: the namespace is Terminating; nothing holds for long.
	ModeNamespaceGone Mode = "NamespaceGone"
)

// facts is what an Input says about a deletion. It is made once and only read.
type facts struct {
	in *Input
	c  *owned.CSV
	// age is the time since the deletion.
	age time.Duration
	// orphaned: it was deleted with orphan propagation. superseded: a newer version goes
	// on. namespaceGone: its namespace is Terminating.
	orphaned, superseded, namespaceGone bool
	// override is the value of AnnotationCleanup, empty for none or an unknown one;
	// badOverride: it has an unknown one.
	override    string
	badOverride bool
	// peers are the other live ClusterServiceVersions that were observed, sorted.
	peers []*owned.CSV
	// terminating are the namespaces that are.
	terminating map[string]bool
	// reach is where operands may be deleted.
	reach group.Targets
	// unread are the lists without which nothing is decided.
	unread []string
}

func factsOf(in *Input) *facts {
	c := in.ClusterServiceVersion
	f := &facts{
		in: in, c: c, age: status.Since(c.DeletionTimestamp, in.Now),
		orphaned: slices.Contains(c.Finalizers, metav1.FinalizerOrphanDependents),
		peers:    peersOf(in), terminating: map[string]bool{}, reach: reachOf(in),
	}
	for _, n := range in.Deletion.Namespaces.Items {
		if n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating {
			f.terminating[n.Name] = true
		}
	}
	f.namespaceGone = f.terminating[c.Namespace]
	f.superseded = isSuperseded(in)
	if value, ok := c.Annotations[AnnotationCleanup]; value == OverrideAbandon || value == OverrideSkipOperands {
		f.override = value
	} else {
		f.badOverride = ok
	}
	if !in.Deletion.Namespaces.Complete {
		f.unread = append(f.unread, "Namespaces")
	}
	if !in.Neighbours.Complete {
		f.unread = append(f.unread, "ClusterServiceVersions")
	}
	return f
}

func (f *facts) mode() Mode {
	switch {
	case f.orphaned:
		return ModeOrphan
	case f.namespaceGone:
		return ModeNamespaceGone
	case f.superseded:
		return ModeSuperseded
	}
	return ModeUninstall
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
		slices.ContainsFunc(chain.Of(in.ClusterServiceVersion, in.Neighbours.Items).Descendants(), live)
}

func peersOf(in *Input) []*owned.CSV {
	c := in.ClusterServiceVersion
	peers := slices.DeleteFunc(slices.Concat(in.Deletion.Peers.Items, in.Neighbours.Items), func(p *owned.CSV) bool {
		return p.DeletionTimestamp != nil || p.IsCopied() || p.Name == c.Name && p.Namespace == c.Namespace
	})
	slices.SortFunc(peers, func(a, b *owned.CSV) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return peers
}

// hasNeighbour reports whether a live version of the namespace passes a test. Those of
// other namespaces may claim what they like: a Service or Deployment of this namespace is
// none of theirs.
func (f *facts) hasNeighbour(test func(*owned.CSV) bool) bool {
	return slices.ContainsFunc(f.peers, func(p *owned.CSV) bool { return p.Namespace == f.c.Namespace && test(p) })
}

// reachOf returns the namespaces in which a cleanup may delete operands. Whoever writes a
// ClusterServiceVersion may write any namespace into its annotations, so they only narrow
// what the OperatorGroup of the namespace selects by its status. The group must be the one
// that the ClusterServiceVersion names, alone in the namespace, and not be on its way out;
// without it nothing but the own namespace is reached, and no cluster-scoped kind.
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
	case annotated.All() && selected.All():
		return selected
	case annotated.All():
		return selected.Named()
	case selected.All():
		return annotated.Named()
	}
	return slices.DeleteFunc(annotated.Named(), func(n string) bool { return !selected.Contains(n) })
}
