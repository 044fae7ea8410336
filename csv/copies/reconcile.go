// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

const (
	// eventPace is how often the Event of disabled copies is checked. An API server deletes Events after an hour.
	eventPace = time.Hour
	// takenPace is how often a namespace is checked in which another ClusterServiceVersion has the name of a copy.
	takenPace = time.Minute
	// maxRefused is the number of rejected writes that have their own Diagnostic.
	maxRefused = 5
)

// Reconcile returns the creations, updates and deletions of all copies of one ClusterServiceVersion. If a list was not
// read, the copies that depend on it stay as they are. There is nothing to do if the Outcome contains only a Checkpoint
// or RequeueAfter. The error is an *olmcore.InputError.
//
// A new copy has no status until a later call observes the copy and writes the status. For a copy from Slim, the update
// writes the whole content.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, ensureCSVsInNamespaces, and
// operator.go, syncCopyCSV and syncGcCsv.
// Differs: this library also deletes copies if the original is uncopiable, has no targets or is being deleted. It
// deletes a copy whose label and annotation name different namespaces. It does not change an original that has the name
// of a copy.
func Reconcile(in Input) (olmcore.Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in) })
}

func decide(in Input) (olmcore.Result, error) {
	f := observe(&in)
	unread := read.NotRead(f.unread(), f.ref, "", "dependent copies and Events stay as they are")
	if !in.Sources.Complete || !in.Copies.Complete {
		return unread, nil
	}
	res := unread.And(deleteWithoutOriginal(f), deleteUnjustified(f))
	if f.knowsDesired() {
		copies, err := writeCopies(f)
		if err != nil {
			return olmcore.Result{}, err
		}
		res = res.And(copies, reportDisabled(f))
	}
	slices.SortFunc(res.Actions, deployment.ByTarget)
	in.LastRun.ConflictsLast(res.Actions)
	return holdRejected(f, res), nil
}

// holdRejected returns the Result without the writes that the API server rejected a short time ago, and with
// Diagnostics about them.
func holdRejected(f *facts, res olmcore.Result) olmcore.Result {
	due, rejected := model.DueWrites(res.Actions, f.in.LastRun, f.in.Now)
	res.Actions = due
	return res.And(reportRejected(f, rejected))
}

// reportRejected reports the rejected writes of copies. It names at most maxRefused of them.
func reportRejected(f *facts, rejected []model.RejectedWrite) olmcore.Result {
	var res olmcore.Result
	for _, w := range rejected {
		res.Requeue(w.RetryIn)
	}
	for _, w := range rejected[:min(len(rejected), maxRefused)] {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonRefused, w.Target, "",
			"the API server rejected the last write (%s): %s", w.Verb, w.Message))
	}
	if more := len(rejected) - maxRefused; more > 0 {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonRefused, f.ref, "",
			"the API server rejected the writes of %d more copies", more))
	}
	return res
}

// deleteWithoutOriginal deletes the ClusterServiceVersion with the key if it is marked as a copy but has no original.
func deleteWithoutOriginal(f *facts) olmcore.Result {
	c := f.named
	switch {
	case c == nil || f.source != nil || c.DeletionTimestamp != nil || model.OriginalKey(c) != f.in.Key:
		return olmcore.Result{}
	case !v1alpha1.IsCopied(c):
		return olmcore.Result{Diagnostics: []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonUnmarked, f.ref, "status.reason",
			"its status says that it is a copy, but no label or annotation names the original. Delete it, or reinstall the operator")}}
	}
	return olmcore.Result{Actions: []olmcore.Action{olmcore.DeleteOf(c, olmcore.Cause{
		Reason: ReasonMarksDisagree, Message: "label olm.copiedFrom and annotation olm.operatorNamespace name no original in another namespace",
	})}}
}

// deleteUnjustified deletes the copies that should not exist.
func deleteUnjustified(f *facts) olmcore.Result {
	var deletions []olmcore.Action
	for i := range f.others {
		if o := &f.others[i]; o.deleteFor.Reason != "" {
			deletions = append(deletions, olmcore.DeleteOf(o.csv, o.deleteFor))
		}
	}
	return olmcore.Result{Actions: deletions}
}

// writeCopies writes the copies in the namespaces that should have one.
func writeCopies(f *facts) (olmcore.Result, error) {
	namespaces := f.toggle.Namespaces(f.in.Key.Namespace, f.targets, f.in.Namespaces.Items)
	if len(namespaces) == 0 {
		return olmcore.Result{}, nil // most operators watch only their own namespace
	}
	desired, err := prototypeOf(f.source)
	if err != nil {
		return olmcore.Result{}, &olmcore.InputError{Field: "Sources[0]", Problem: "cannot be encoded: " + err.Error()}
	}
	found, err := compareCopies(f, desired, namespaces)
	if err != nil {
		return olmcore.Result{}, err
	}
	missing := olmcore.Cause{
		Reason: ReasonCopyMissing, Message: "the operator of ClusterServiceVersion " + f.in.Key.String() + " watches the namespace",
	}
	var creations []olmcore.Action
	for _, namespace := range found.missing {
		creations = append(creations, olmcore.CreateOf(desired.in(namespace), missing))
	}
	writes := olmcore.Result{Actions: append(creations, desired.updates(found.outdated)...)}
	return writes.And(reportNamesTaken(f, found.taken)), nil
}

// reportNamesTaken reports the namespaces in which another ClusterServiceVersion has the name of the copy.
func reportNamesTaken(f *facts, namespaces []string) olmcore.Result {
	var res olmcore.Result
	for _, namespace := range namespaces {
		res.Requeue(takenPace)
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNameTaken, f.ref, "",
			"namespace %s has no copy, because its ClusterServiceVersion %s is not a copy of this one. Delete one of the two",
			namespace, f.in.Key.Name))
	}
	return res
}
