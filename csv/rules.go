// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// rule is one row of the phase machine. Of the rows that apply in the recorded phase the first that decides is the
// decision.
type rule struct {
	name string
	// from are the phases in which the row applies, to those that it leads to: from itself when it changes the reason,
	// none when it changes neither.
	from, to []phase
	// decide returns no decision when the rows after it are to decide.
	decide func(*facts) (d decision, decided bool)
}

// Sets of phases.
var (
	none         = []phase{v1alpha1.CSVPhaseNone}
	pending      = []phase{v1alpha1.CSVPhasePending}
	installReady = []phase{v1alpha1.CSVPhaseInstallReady}
	installing   = []phase{v1alpha1.CSVPhaseInstalling}
	succeeded    = []phase{v1alpha1.CSVPhaseSucceeded}
	failed       = []phase{v1alpha1.CSVPhaseFailed}
	replacing    = []phase{v1alpha1.CSVPhaseReplacing}
	deleting     = []phase{v1alpha1.CSVPhaseDeleting}

	running    = slices.Concat(installReady, installing, succeeded, failed)
	alive      = slices.Concat(pending, running)
	notGoing   = slices.Concat(none, alive)
	everyPhase = slices.Concat(notGoing, replacing, deleting)
)

// gates are the rows that a CSV passes before its phase machine runs. One that is leaving needs no sound spec and no
// OperatorGroup.
var gates = []rule{
	{"NotObserved", everyPhase, nil, neighboursUnread},
	{ruleMetadata, everyPhase, nil, metadataOutdated},
	{"TakenOver", notGoing, replacing, takenOver},
	{"PermissionsRefused", failed, pending, permissionsRefused},
	{"InvalidSpec", notGoing, failed, invalidSpec},
	{"NotObserved", notGoing, nil, groupsUnread},
	{"NoOperatorGroup", notGoing, failed, noGroup},
	{"TooManyOperatorGroups", notGoing, failed, manyGroups},
	{"OperatorGroupNotReady", notGoing, nil, groupNotReady},
	{"NoTargetNamespaces", notGoing, failed, noTargets},
	{"InvalidInstallModes", notGoing, failed, invalidModes},
	{"UnsupportedOperatorGroup", notGoing, failed, unsupportedTargets},
	{"NotObserved", notGoing, nil, otherGroupsUnread},
	{"APIConflict", notGoing, failed, apiConflict},
	{"RemoveProvidedAPIs", notGoing, nil, removeAPIs},
	{"AddProvidedAPIs", notGoing, nil, addAPIs},
}

// ruleMetadata is the row that writes the CSV's metadata, and so nothing else of it.
const ruleMetadata = "MetadataOutdated"

// rules are the rows of the phase machine behind the gates.
var rules = []rule{
	{"New", none, pending, firstSeen},

	{"BeingReplaced", succeeded, replacing, giveWay},
	{"FailForward", failed, replacing, failForward},
	{"NotObserved", pending, nil, requirementsUnread},
	{"NotUpgradeable", pending, pending, notUpgradeable},
	{"InvalidStrategy", alive, failed, invalidStrategy},
	{"ServiceAccountMissing", running, nil, accountMissing},
	{"GatePassed", failed, pending, gatePassed},
	{"NotObserved", slices.Concat(succeeded, failed), nil, requirementsUnread},
	{"UpgradeBegan", slices.Concat(pending, failed), replacing, upgradeBegan},
	{"NeverRan", pending, replacing, neverRan},
	{"RequirementsNotMet", succeeded, failed, requirementsLost},
	{"RequirementsNotMet", slices.Concat(pending, failed), pending, requirementsUnmet},
	{"NotObserved", alive, nil, deploymentsUnread},
	{"Conflict", slices.Concat(pending, installReady, failed), failed, conflicting},
	{"WaitingForPredecessor", pending, pending, predecessorStays},
	{"RequirementsMet", pending, installReady, requirementsMet},
	{"Install", installReady, slices.Concat(pending, installing, failed), install},
	{"Health", installing, alive, stillInstalling},
	{"Health", succeeded, slices.Concat(pending, installReady, succeeded, failed), stillHealthy},
	{"Health", failed, slices.Concat(pending, installReady, succeeded, failed), stillFailed},

	{"Replaced", replacing, deleting, replaced},
	{"WaitingForOlderVersions", replacing, nil, olderVersions},
	{"WaitingForSuccessor", replacing, nil, successorInstalls},
	{"SuccessorGone", replacing, pending, successorGone},
	{"Delete", deleting, nil, deleteCSV},
}

// decide runs the gates and then the phase machine. A CSV whose API another group lists too is looked at again,
// although its own claim is the better one.
func decide(f *facts) decision {
	if d, decided := firstOf(gates, f); decided {
		return d
	}
	d, decided := firstOf(rules, f)
	if !decided {
		d = f.stay()
	}
	if f.claim.Conflict != nil && (d.requeue == 0 || contestedPace < d.requeue) {
		d.requeue = contestedPace
	}
	return d
}

func firstOf(table []rule, f *facts) (decision, bool) {
	for _, r := range table {
		if !slices.Contains(r.from, f.phase) {
			continue
		}
		if d, decided := r.decide(f); decided {
			d.rule = cmp.Or(d.rule, r.name)
			return d, true
		}
	}
	return decision{}, false
}

// decision is what one call makes of its facts, before the status is built.
type decision struct {
	// rule is the name of the row that decided, or of what it found.
	rule string
	// The status to hold: equal to the recorded one when nothing changes.
	phase   phase
	reason  v1alpha1.ConditionReason
	message string
	// reported: the report of the facts goes into status.requirementStatus; refresh: without an entry in the history.
	reported, refresh bool

	actions     []olmcore.Action
	diagnostics []olmcore.Diagnostic
	requeue     time.Duration
}

// stay keeps the recorded status.
func (f *facts) stay() decision {
	s := &f.csv.Status
	return decision{phase: s.Phase, reason: s.Reason, message: s.Message}
}

// waitFor keeps the recorded status until it is time to look again.
func (f *facts) waitFor(d time.Duration) decision {
	next := f.stay()
	next.requeue = d
	return next
}

func move(to phase, reason v1alpha1.ConditionReason, message string) decision {
	return decision{phase: to, reason: reason, message: message}
}

func fail(reason v1alpha1.ConditionReason, message string) decision {
	return move(v1alpha1.CSVPhaseFailed, reason, message)
}

// beingReplaced decides when there is a CSV that replaces this one.
func beingReplaced(by *version) (d decision, decided bool) {
	if by == nil {
		return decision{}, false
	}
	return move(v1alpha1.CSVPhaseReplacing, v1alpha1.CSVReasonBeingReplaced, "being replaced by csv: "+by.Name), true
}

// retryLimit is the longest pause between two looks at what may end without an event.
const retryLimit = 5 * time.Minute

// retry looks again at what may end without an event, more rarely the longer the phase lasts.
func (f *facts) retry(d decision) decision {
	elapsed := time.Duration(0)
	if d.phase == f.csv.Status.Phase {
		elapsed = f.sinceTransition()
	}
	d.requeue = owned.Wait(elapsed, retryLimit)
	return d
}

func (f *facts) sinceTransition() time.Duration {
	return owned.Since(f.csv.Status.LastTransitionTime, f.Now)
}

// reporting adds the report on the requirements.
func reporting(d decision) decision {
	d.reported = true
	return d
}

// notReadPace is how soon a caller who did not read a list is asked again.
const notReadPace = 5 * time.Second

// unread keeps everything until the caller reads a list, unless it was read.
func (f *facts) unread(read bool, list string) (decision, bool) {
	if read {
		return decision{}, false
	}
	d := f.waitFor(notReadPace)
	d.rule = "NotObserved"
	d.diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(f.csv), "",
		"the list of %s was not read, so nothing is decided", list)}
	return d, true
}
