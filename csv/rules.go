// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

// decision is what one call makes of its facts, before the status is built.
type decision struct {
	// rule is the name of the row that decided, or of what it found.
	rule string
	// The status to hold: equal to the recorded one when nothing changes.
	phase   phase
	reason  v1alpha1.ConditionReason
	message string
	// report replaces status.requirementStatus when reported is set; refresh writes
	// it without an entry in the history.
	report   []v1alpha1.RequirementStatus
	reported bool
	refresh  bool

	actions     []olmcore.Action
	diagnostics []olmcore.Diagnostic
	requeue     time.Duration
}

// rule is one row of the phase machine. Of the rows that apply in the recorded phase
// the first that decides is the decision.
type rule struct {
	name string
	// phases in which the row applies; nil: in all.
	phases []phase
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

	running  = slices.Concat(installReady, installing, succeeded, failed)
	alive    = slices.Concat(pending, running)
	notGoing = slices.Concat(none, alive)
)

// rules are the rows of the phase machine behind the gates.
var rules = []rule{
	{"New", none, firstSeen},

	{"BeingReplaced", succeeded, giveWay},
	{"FailForward", failed, failForward},
	{"NotObserved", pending, requirementsUnread},
	{"NotUpgradeable", pending, notUpgradeable},
	{"InvalidStrategy", alive, invalidStrategy},
	{"ServiceAccountMissing", running, accountMissing},
	{"GatePassed", failed, gatePassed},
	{"NotObserved", slices.Concat(succeeded, failed), requirementsUnread},
	{"UpgradeBegan", slices.Concat(pending, failed), upgradeBegan},
	{"NeverRan", pending, neverRan},
	{"RequirementsNotMet", slices.Concat(pending, succeeded, failed), requirementsUnmet},
	{"NotObserved", alive, deploymentsUnread},
	{"Conflict", slices.Concat(pending, installReady, failed), conflicting},
	{"WaitingForPredecessor", pending, predecessorStays},
	{"RequirementsMet", pending, requirementsMet},
	{"Install", installReady, install},
	{"Health", slices.Concat(installing, succeeded, failed), health},

	{"Replaced", replacing, replaced},
	{"WaitingForOlderVersions", replacing, olderVersions},
	{"WaitingForSuccessor", replacing, successorInstalls},
	{"SuccessorGone", replacing, successorGone},
	{"Delete", deleting, deleteCSV},
}

// decide runs the gates and then the phase machine. A CSV whose API another group lists
// too is looked at again, although its own claim is the better one.
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

func firstOf(table []rule, f *facts) (d decision, decided bool) {
	for _, r := range table {
		if r.phases != nil && !slices.Contains(r.phases, f.phase) {
			continue
		}
		if d, decided = r.decide(f); decided {
			d.rule = cmp.Or(d.rule, r.name)
			return d, true
		}
	}
	return decision{}, false
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

func beingReplaced(by *version) decision {
	return move(v1alpha1.CSVPhaseReplacing, v1alpha1.CSVReasonBeingReplaced, "being replaced by csv: "+by.Name)
}

// retryLimit is the longest pause between two looks at what may end without an event.
const retryLimit = 5 * time.Minute

// retry looks again at what may end without an event, more rarely the longer the phase
// lasts.
func (f *facts) retry(d decision) decision {
	elapsed := time.Duration(0)
	if d.phase == f.csv.Status.Phase {
		elapsed = status.Since(f.csv.Status.LastTransitionTime, f.Now)
	}
	d.requeue = status.Wait(elapsed, retryLimit)
	return d
}

// reporting adds the report on the requirements.
func (f *facts) reporting(d decision) decision {
	d.report, d.reported = f.report, true
	return d
}

// notReadPace is how soon a caller who did not read a list is asked again.
const notReadPace = 5 * time.Second

// unobserved keeps everything until the caller reads a list; an empty list is none.
func (f *facts) unobserved(list string) (decision, bool) {
	if list == "" {
		return decision{}, false
	}
	d := f.waitFor(notReadPace)
	d.rule = "NotObserved"
	d.diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(f.csv), "",
		"the list of %s was not read, so nothing is decided", list)}
	return d, true
}
