// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Edges returns the graph of the phases: what Transitions can report. By is the name of a rule, or Cleanup, which a
// deletion begins with. An edge from a phase to itself is a change of the reason alone. Unknown and phases that the API
// does not have count as none.
func Edges() olmcore.Graph[v1alpha1.ClusterServiceVersionPhase] {
	cleanup := rule{Name: "Cleanup", From: everyPhase, To: deleting}
	return olmcore.GraphOf(everyPhase, slices.Concat(gates, rules, []rule{cleanup}))
}

// Assessment is a decision without its objects.
type Assessment struct {
	// Rule names the rule that decided, such as RequirementsNotMet, TooManyOperatorGroups, NotObserved, Cleanup or
	// Copy.
	Rule string
	// Phase, Reason and Message are what the status should say.
	Phase   v1alpha1.ClusterServiceVersionPhase
	Reason  v1alpha1.ConditionReason
	Message string
	// Requirements is the report, nil when it was not needed for the decision.
	Requirements []v1alpha1.RequirementStatus
	// Mode, Stage and Pending describe a cleanup: how much is to be done, how far it got, and how many objects hold it.
	// Empty unless the CSV is being deleted.
	Mode    cleanup.Mode
	Stage   cleanup.Stage
	Pending int
	// Diagnostics are those of Reconcile, and those that Reconcile reports only together with writes, such as
	// ReasonWebhookRulesKept and ReasonAPIGroupShared. They name a list that the decision needs and that was not read.
	Diagnostics []olmcore.Diagnostic
	// RequeueAfter is the time to the next deadline, 0 when there is none.
	RequeueAfter time.Duration
}

// Assess decides as Reconcile does and builds no actions for the CSV itself. The error is the *olmcore.InputError of
// Reconcile.
func Assess(in Input) (Assessment, error) {
	if err := in.validate(); err != nil {
		return Assessment{}, err
	}
	c := in.ClusterServiceVersion
	s := &c.Status
	a := Assessment{Phase: s.Phase, Reason: s.Reason, Message: s.Message}
	switch {
	case c.IsCopied():
		a.Rule = "Copy"
		return a, nil
	case c.DeletionTimestamp != nil:
		return a.ofCleanup(&in)
	}
	f := factsOf(&in)
	d := decide(f)
	if d.reported {
		d.Requirements = f.report.entries()
	}
	d.Diagnostics = slices.Concat(d.Diagnostics, keptDiagnostics(f))
	return d.Assessment, nil
}

func (a Assessment) ofCleanup(in *Input) (Assessment, error) {
	out, err := cleanup.Reconcile(in.ofCleanup())
	a.Rule, a.Mode, a.Stage, a.Pending = "Cleanup", out.Mode, out.Stage, out.Pending
	a.Diagnostics, a.RequeueAfter = out.Diagnostics, out.RequeueAfter
	if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
		a.Phase, a.Reason, a.Message = after.Status.Phase, after.Status.Reason, after.Status.Message
	}
	return a, err
}

// rule is one row of the phase machine. From are the phases in which the row applies, To those that it leads to: its
// own phase if it changes the reason, none if it changes neither.
type rule = olmcore.Rule[phase, *facts, decision]

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
	{Name: ruleNotObserved, From: everyPhase, Decide: neighboursUnread},
	{Name: ruleMetadata, From: everyPhase, Decide: metadataOutdated},
	{Name: "TakenOver", From: notGoing, To: replacing, Decide: takenOver},
	{Name: "PermissionsRefused", From: failed, To: pending, Decide: permissionsRefused},
	{Name: "InvalidSpec", From: notGoing, To: failed, Decide: invalidSpec},
	{Name: ruleNotObserved, From: notGoing, Decide: groupsUnread},
	{Name: "NoOperatorGroup", From: notGoing, To: failed, Decide: noGroup},
	{Name: "TooManyOperatorGroups", From: notGoing, To: failed, Decide: manyGroups},
	{Name: "OperatorGroupNotReady", From: notGoing, Decide: groupNotReady},
	{Name: "NoTargetNamespaces", From: notGoing, To: failed, Decide: noTargets},
	{Name: "InvalidInstallModes", From: notGoing, To: failed, Decide: invalidModes},
	{Name: "UnsupportedOperatorGroup", From: notGoing, To: failed, Decide: unsupportedTargets},
	{Name: ruleNotObserved, From: notGoing, Decide: otherGroupsUnread},
	{Name: "APIConflict", From: notGoing, To: failed, Decide: apiConflict},
	{Name: "RemoveProvidedAPIs", From: notGoing, Decide: removeAPIs},
	{Name: "AddProvidedAPIs", From: notGoing, Decide: addAPIs},
}

// ruleMetadata is the row that writes the CSV's metadata, and so nothing else of it.
const ruleMetadata = "MetadataOutdated"

// ruleNotObserved is the row that waits for a list that was not read.
const ruleNotObserved = "NotObserved"

// rules are the rows of the phase machine behind the gates.
var rules = []rule{
	{Name: "New", From: none, To: pending, Decide: firstSeen},

	{Name: "BeingReplaced", From: succeeded, To: replacing, Decide: giveWay},
	{Name: "FailForward", From: failed, To: replacing, Decide: failForward},
	{Name: ruleNotObserved, From: pending, Decide: requirementsUnread},
	{Name: "NotUpgradeable", From: pending, To: pending, Decide: notUpgradeable},
	{Name: "InvalidStrategy", From: alive, To: failed, Decide: invalidStrategy},
	{Name: "ServiceAccountMissing", From: running, Decide: accountMissing},
	{Name: ruleNotObserved, From: succeeded, Decide: servicesUnread},
	{Name: "APIServiceIssue", From: succeeded, To: failed, Decide: apiServiceIssue},
	{Name: "CertificatesDue", From: succeeded, To: pending, Decide: certificatesDue},
	{Name: "GatePassed", From: failed, To: pending, Decide: gatePassed},
	{Name: ruleNotObserved, From: slices.Concat(succeeded, failed), Decide: requirementsUnread},
	{Name: "UpgradeBegan", From: slices.Concat(pending, failed), To: replacing, Decide: upgradeBegan},
	{Name: "NeverRan", From: pending, To: replacing, Decide: neverRan},
	{Name: "RequirementsNotMet", From: succeeded, To: failed, Decide: requirementsLost},
	{Name: "RequirementsNotMet", From: slices.Concat(pending, failed), To: pending, Decide: requirementsUnmet},
	{Name: ruleNotObserved, From: alive, Decide: deploymentsUnread},
	{Name: ruleNotObserved, From: pending, Decide: servicesUnread},
	{Name: "Conflict", From: slices.Concat(pending, installReady, failed), To: failed, Decide: conflicting},
	{Name: ruleNotObserved, From: slices.Concat(installReady, installing, failed), Decide: servicesUnread},
	{Name: "InstallAgain", From: failed, To: slices.Concat(installing, succeeded, failed), Decide: installAgain},
	{Name: "APIServicesReinstalled", From: failed, To: pending, Decide: apiServicesReinstalled},
	{Name: "CertificatesDue", From: failed, To: pending, Decide: certificatesDue},
	{Name: "WaitingForPredecessor", From: pending, To: pending, Decide: predecessorStays},
	{Name: "RequirementsMet", From: pending, To: installReady, Decide: requirementsMet},
	{Name: "Install", From: installReady, To: slices.Concat(pending, installing, failed), Decide: install},
	{Name: "Health", From: installing, To: alive, Decide: stillInstalling},
	{Name: "Health", From: succeeded, To: slices.Concat(pending, installReady, succeeded, failed), Decide: stillHealthy},
	{Name: "Health", From: failed, To: slices.Concat(pending, installReady, succeeded, failed), Decide: stillFailed},

	{Name: "Replaced", From: replacing, To: deleting, Decide: replaced},
	{Name: "WaitingForOlderVersions", From: replacing, Decide: olderVersions},
	{Name: "WaitingForSuccessor", From: replacing, Decide: successorInstalls},
	{Name: "SuccessorGone", From: replacing, To: pending, Decide: successorGone},
	{Name: "Delete", From: deleting, Decide: deleteCSV},
}

// decide runs the gates and then the phase machine. A CSV whose API another group lists too is looked at again,
// although its own claim is the better one.
func decide(f *facts) decision {
	d, name := olmcore.FirstDecision(gates, f.phase, f)
	if name != "" {
		d.Rule = cmp.Or(d.Rule, name)
		return printed(f, d)
	}
	if d, name = olmcore.FirstDecision(rules, f.phase, f); name == "" {
		d = f.stay()
	}
	d.Rule = cmp.Or(d.Rule, name)
	d = printed(f, keepCertificates(f, d))
	if f.claim.Conflict != nil && (d.RequeueAfter == 0 || contestedPace < d.RequeueAfter) {
		d.RequeueAfter = contestedPace
	}
	return d
}

// printed escapes the characters of a new message that people do not see. The recorded message stays as it is.
func printed(f *facts, d decision) decision {
	d.Message = printable.Keep(f.csv.Status.Message, d.Message)
	return d
}

// decision is what one call makes of its facts, before the status is built. Its status is equal to the recorded one
// when nothing changes.
type decision struct {
	Assessment
	// reported: the report of the facts goes into status.requirementStatus; refresh: without an entry in the history.
	reported, refresh bool
	actions           []olmcore.Action
	attempts          deployment.Attempts // of the installation, for the next call
	certificates      []certificate.Request
	renewAt           *time.Time // what the status says of the certificates from now on, zero for none; nil: what it says now
}

// stay keeps the recorded status.
func (f *facts) stay() decision {
	return move(f.csv.Status.Phase, f.csv.Status.Reason, f.csv.Status.Message)
}

// act keeps the recorded status.
func (f *facts) act(a olmcore.Action) decision {
	d := f.stay()
	d.actions = []olmcore.Action{a}
	return d
}

// waitFor keeps the recorded status until it is time to look again.
func (f *facts) waitFor(d time.Duration) decision {
	next := f.stay()
	next.RequeueAfter = d
	return next
}

func move(to phase, reason v1alpha1.ConditionReason, message string) decision {
	return decision{Assessment: Assessment{Phase: to, Reason: reason, Message: message}}
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
	if d.Phase == f.csv.Status.Phase {
		elapsed = f.sinceTransition()
	}
	d.RequeueAfter = owned.Wait(elapsed, retryLimit)
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
	d.Rule = ruleNotObserved
	d.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(f.csv), "",
		"the list of %s was not read, so nothing is decided", list)}
	return d, true
}
