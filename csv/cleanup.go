// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// The annotations that steer a clean-up, with the default key prefix.
const (
	// AnnotationCleanup on a CSV overrides its clean-up: OverrideSkipOperands or
	// OverrideAbandon.
	AnnotationCleanup = olmcore.KeyPrefix + annotationCleanup
	// AnnotationKeep on an operand, with any value, keeps it when its operator is
	// uninstalled.
	AnnotationKeep = olmcore.KeyPrefix + annotationKeep

	// OverrideSkipOperands leaves the operands that are left where they are.
	OverrideSkipOperands = "skip-operands"
	// OverrideAbandon releases the CSV at once and leaves everything behind.
	OverrideAbandon = "abandon"

	annotationCleanup = "csv-cleanup"
	annotationKeep    = "keep-on-uninstall"
)

// Mode says how much a clean-up does.
type Mode string

// Modes of a clean-up.
const (
	// ModeUninstall: all stages.
	ModeUninstall Mode = "Uninstall"
	// ModeSuperseded: a newer version goes on; operands stay.
	ModeSuperseded Mode = "Superseded"
	// ModeOrphan: the CSV was deleted with orphan propagation; everything stays.
	ModeOrphan Mode = "Orphan"
	// ModeNamespaceGone: the namespace is Terminating; nothing holds for long.
	ModeNamespaceGone Mode = "NamespaceGone"
)

// Stage is one step of a clean-up. A stage starts when nothing of the one before
// holds the CSV any more.
type Stage string

// Stages of a clean-up, in order.
const (
	StageOperands    Stage = "Operands"
	StageAdmission   Stage = "Admission"
	StageConversion  Stage = "Conversion"
	StageAPIServices Stage = "APIServices"
	StageWorkload    Stage = "Workload"
	StageRBAC        Stage = "RBAC"
	StageOthers      Stage = "Others"
	StageRelease     Stage = "Release"
)

// stages is the order of work.
var stages = [...]struct {
	name Stage
	run  func(*cleaner)
}{
	{StageOperands, (*cleaner).operands},
	{StageAdmission, (*cleaner).admission},
	{StageConversion, (*cleaner).conversion},
	{StageAPIServices, (*cleaner).apiServices},
	{StageWorkload, (*cleaner).workload},
	{StageRBAC, (*cleaner).rbac},
	{StageOthers, (*cleaner).others},
}

// pendingObject is an object that holds the CSV.
type pendingObject struct {
	ref     olmcore.Ref
	why     string
	operand bool
	// blocked: it will not pass by itself.
	blocked bool
}

// skippedObject is an object, or a whole kind, that is left behind.
type skippedObject struct {
	ref olmcore.Ref
	why string
}

// cleanupAction is a write of a stage. Those that are held back wait for another
// try; they run all the same when the stage has something else to write, because
// an adapter forgets the outcome of what a run leaves out.
type cleanupAction struct {
	olmcore.Action
	held bool
}

// cleaner works through the stages of one call.
type cleaner struct {
	in         *Input
	c          *version
	line       chain
	superseded bool
	orphan     bool
	gone       bool // the namespace is Terminating
	override   string

	stage   Stage
	actions []cleanupAction
	// givenUp are writes that were refused for too long. They run again beside
	// others, because an adapter forgets the outcome of what a run leaves out, and
	// with it how long the object has been refused.
	givenUp    []olmcore.Action
	pending    []pendingObject
	skipped    []skippedObject
	unobserved []string
	need       []schema.GroupVersionKind
	requeue    time.Duration
	notes      []olmcore.Diagnostic
}

// Cleanup decides the next step of the clean-up of a CSV that is being deleted
// and carries the finalizer; for any other it returns the zero Outcome, and for a
// copy that carries the finalizer the removal of it. Reconcile calls it.
func Cleanup(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	if isCopied(in.ClusterServiceVersion) {
		return releaseCopy(in.ClusterServiceVersion), nil
	}
	return cleanup(&in), nil
}

func cleanup(in *Input) Outcome {
	_, out := runCleanup(in)
	return out
}

// runCleanup returns a nil cleaner when there is nothing to clean up after.
func runCleanup(in *Input) (*cleaner, Outcome) {
	c := in.ClusterServiceVersion
	if c.DeletionTimestamp == nil || !slices.Contains(c.Finalizers, Finalizer) {
		return nil, Outcome{}
	}
	k := &cleaner{
		in: in, c: c, line: chainOf(in), stage: StageRelease,
		orphan: slices.Contains(c.Finalizers, metav1.FinalizerOrphanDependents),
	}
	k.readOverride()
	return k, k.run()
}

func (k *cleaner) run() Outcome {
	switch {
	case k.in.Config.Cleanup.Disabled:
		return k.release("clean-up is disabled")
	case k.orphan:
		k.leaveAll("deleted with orphan propagation")
		return k.release("deleted with orphan propagation")
	}
	k.readMode()
	k.work()
	hold := orDefault(k.in.Config.Cleanup.NamespaceHold, DefaultNamespaceHold)
	switch {
	case k.override == OverrideAbandon:
		return k.abandon("abandoned by annotation")
	case k.gone && k.elapsed() >= hold:
		return k.abandon("the namespace is Terminating")
	case len(k.actions)+len(k.pending)+len(k.unobserved)+len(k.need) == 0:
		return k.release("nothing is left to clean up")
	}
	if k.gone {
		k.requeueAfter(hold - k.elapsed())
	}
	return k.hold()
}

// work runs the stages up to the first that holds.
func (k *cleaner) work() {
	if len(k.unobserved) > 0 {
		return
	}
	for _, s := range stages {
		k.stage = s.name
		s.run(k)
		if len(k.actions)+len(k.pending)+len(k.unobserved)+len(k.need) > 0 {
			return
		}
	}
	k.stage = StageRelease
}

// readMode finds out how much is to be done. The mode never depends on what the
// clean-up itself writes into the status.
func (k *cleaner) readMode() {
	if !k.in.Deletion.Namespaces.Complete {
		k.unobserved = append(k.unobserved, "Namespaces")
	}
	if !k.in.Neighbours.Complete {
		k.unobserved = append(k.unobserved, "ClusterServiceVersions")
	}
	k.gone = k.isTerminating(k.c.Namespace)
	reason := effectiveReason(&k.c.Status)
	k.superseded = k.c.Status.Phase == v1alpha1.CSVPhaseReplacing ||
		reason == v1alpha1.CSVReasonReplaced || reason == v1alpha1.CSVReasonBeingReplaced ||
		slices.ContainsFunc(k.line.descendants(), func(s *version) bool { return s.DeletionTimestamp == nil })
}

func (k *cleaner) mode() Mode {
	switch {
	case k.orphan:
		return ModeOrphan
	case k.gone:
		return ModeNamespaceGone
	case k.superseded:
		return ModeSuperseded
	}
	return ModeUninstall
}

// effectiveReason looks behind the reason that the clean-up writes.
func effectiveReason(s *v1alpha1.ClusterServiceVersionStatus) v1alpha1.ConditionReason {
	if s.Reason != v1alpha1.CSVReasonWaitingForCleanupToComplete {
		return s.Reason
	}
	for _, c := range slices.Backward(s.Conditions) {
		if c.Reason != v1alpha1.CSVReasonWaitingForCleanupToComplete {
			return c.Reason
		}
	}
	return ""
}

func (k *cleaner) isTerminating(namespace string) bool {
	for _, n := range k.in.Deletion.Namespaces.Items {
		if n.Name == namespace && isLeaving(n) {
			return true
		}
	}
	return false
}

func (k *cleaner) key(name string) string {
	if k.in.Config.KeyPrefix == "" {
		return olmcore.KeyPrefix + name
	}
	return k.in.Config.KeyPrefix + name
}

func (k *cleaner) readOverride() {
	value, ok := k.c.Annotations[k.key(annotationCleanup)]
	switch {
	case !ok:
	case value == OverrideAbandon || value == OverrideSkipOperands:
		k.override = value
	default:
		k.note(olmcore.Warning, ReasonBadOverride, "annotation "+k.key(annotationCleanup)+" has the unknown value "+value)
	}
}

func (k *cleaner) note(severity olmcore.Severity, reason, message string) {
	k.notes = append(k.notes, olmcore.Diagnostic{Severity: severity, Reason: reason, Message: message, Target: olmcore.RefOf(k.c)})
}

// elapsed is the time since the CSV was deleted.
func (k *cleaner) elapsed() time.Duration { return since(k.c.DeletionTimestamp, k.in.Now) }

// isPaused reports whether all that the stage could write waits for another try.
func (k *cleaner) isPaused() bool {
	return len(k.actions) > 0 && !slices.ContainsFunc(k.actions, func(a cleanupAction) bool { return !a.held })
}

func (k *cleaner) requeueAfter(d time.Duration) {
	if d > 0 && (k.requeue == 0 || d < k.requeue) {
		k.requeue = d
	}
}

func (k *cleaner) skip(ref olmcore.Ref, why string) {
	k.skipped = append(k.skipped, skippedObject{ref.Unversioned(), why})
}

// leaveAll records everything that is known to belong to the CSV as left behind.
func (k *cleaner) leaveAll(why string) {
	for _, o := range k.in.Deletion.ClusterObjects.Items {
		if k.isOurs(o) {
			k.skip(olmcore.RefOf(o), why)
		}
	}
}
