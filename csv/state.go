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
	var g olmcore.Graph[v1alpha1.ClusterServiceVersionPhase]
	for _, from := range everyPhase {
		for _, r := range slices.Concat(gates, rules, []rule{{"Cleanup", everyPhase, deleting, nil}}) {
			for _, to := range r.to {
				if e := (olmcore.Edge[phase]{From: from, To: to, By: r.name}); slices.Contains(r.from, from) && !slices.Contains(g, e) {
					g = append(g, e)
				}
			}
		}
	}
	return g
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
	{ruleNotObserved, everyPhase, nil, neighboursUnread},
	{ruleMetadata, everyPhase, nil, metadataOutdated},
	{"TakenOver", notGoing, replacing, takenOver},
	{"PermissionsRefused", failed, pending, permissionsRefused},
	{"InvalidSpec", notGoing, failed, invalidSpec},
	{ruleNotObserved, notGoing, nil, groupsUnread},
	{"NoOperatorGroup", notGoing, failed, noGroup},
	{"TooManyOperatorGroups", notGoing, failed, manyGroups},
	{"OperatorGroupNotReady", notGoing, nil, groupNotReady},
	{"NoTargetNamespaces", notGoing, failed, noTargets},
	{"InvalidInstallModes", notGoing, failed, invalidModes},
	{"UnsupportedOperatorGroup", notGoing, failed, unsupportedTargets},
	{ruleNotObserved, notGoing, nil, otherGroupsUnread},
	{"APIConflict", notGoing, failed, apiConflict},
	{"RemoveProvidedAPIs", notGoing, nil, removeAPIs},
	{"AddProvidedAPIs", notGoing, nil, addAPIs},
}

// ruleMetadata is the row that writes the CSV's metadata, and so nothing else of it.
const ruleMetadata = "MetadataOutdated"

// ruleNotObserved is the row that waits for a list that was not read.
const ruleNotObserved = "NotObserved"

// rules are the rows of the phase machine behind the gates.
var rules = []rule{
	{"New", none, pending, firstSeen},

	{"BeingReplaced", succeeded, replacing, giveWay},
	{"FailForward", failed, replacing, failForward},
	{ruleNotObserved, pending, nil, requirementsUnread},
	{"NotUpgradeable", pending, pending, notUpgradeable},
	{"InvalidStrategy", alive, failed, invalidStrategy},
	{"ServiceAccountMissing", running, nil, accountMissing},
	{ruleNotObserved, succeeded, nil, servicesUnread},
	{"APIServiceIssue", succeeded, failed, apiServiceIssue},
	{"CertificatesDue", succeeded, pending, certificatesDue},
	{"GatePassed", failed, pending, gatePassed},
	{ruleNotObserved, slices.Concat(succeeded, failed), nil, requirementsUnread},
	{"UpgradeBegan", slices.Concat(pending, failed), replacing, upgradeBegan},
	{"NeverRan", pending, replacing, neverRan},
	{"RequirementsNotMet", succeeded, failed, requirementsLost},
	{"RequirementsNotMet", slices.Concat(pending, failed), pending, requirementsUnmet},
	{ruleNotObserved, alive, nil, deploymentsUnread},
	{ruleNotObserved, pending, nil, servicesUnread},
	{"Conflict", slices.Concat(pending, installReady, failed), failed, conflicting},
	{ruleNotObserved, slices.Concat(installReady, installing, failed), nil, servicesUnread},
	{"InstallAgain", failed, slices.Concat(installing, succeeded, failed), installAgain},
	{"APIServicesReinstalled", failed, pending, apiServicesReinstalled},
	{"CertificatesDue", failed, pending, certificatesDue},
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
	if d, decided := firstOf(gatesFrom, f); decided {
		return printed(f, d)
	}
	d, decided := firstOf(rulesFrom, f)
	if !decided {
		d = f.stay()
	}
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

// The rows by the phase in which they apply.
var gatesFrom, rulesFrom = byPhase(gates), byPhase(rules)

func byPhase(table []rule) map[phase][]rule {
	rows := map[phase][]rule{}
	for _, r := range table {
		for _, from := range r.from {
			rows[from] = append(rows[from], r)
		}
	}
	return rows
}

func firstOf(rows map[phase][]rule, f *facts) (decision, bool) {
	for _, r := range rows[f.phase] {
		if d, decided := r.decide(f); decided {
			d.Rule = cmp.Or(d.Rule, r.name)
			return d, true
		}
	}
	return decision{}, false
}

// decision is what one call makes of its facts, before the status is built. Its status is equal to the recorded one when
// nothing changes.
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
