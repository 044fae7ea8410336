// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// firstSeen begins the life of a CSV.
func firstSeen(f *facts) (decision, bool) {
	d := move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsUnknown, "requirements not yet checked")
	d.Diagnostics = unknownModes(f.csv)
	return d, true
}

// giveWay lets a version that is installed be replaced as soon as a successor exists.
func giveWay(f *facts) (decision, bool) { return beingReplaced(f.Successor) }

func failForward(f *facts) (decision, bool) {
	d, decided := beingReplaced(f.Successor)
	if !decided || f.group.UpgradeStrategy() != operatorsv1.UpgradeStrategyUnsafeFailForward {
		return decision{}, false
	}
	d.Message = "Fail Forward is enabled, allowing Failed csv to be replaced by csv: " + f.Successor.Name
	return d, true
}

func requirementsUnread(f *facts) (decision, bool) {
	list := requirements.unread(&f.Input)
	return f.unread(list == "", list)
}

// upgradeablePace is how often a CSV looks whether its predecessor allows the upgrade.
const upgradeablePace = 30 * time.Second

// notUpgradeable waits while the operator that is to be replaced forbids it. An administrator's override comes first.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, isOperatorUpgradeable.
func notUpgradeable(f *facts) (decision, bool) {
	if f.Predecessor == nil {
		return decision{}, false
	}
	if !f.OperatorConditions.Complete {
		return f.unread(false, "OperatorConditions")
	}
	condition, ok := owned.Find(f.OperatorConditions.Items, f.csv.Namespace, f.Predecessor.Name)
	if !ok {
		return decision{}, false
	}
	var problem string
	override := meta.FindStatusCondition(condition.Spec.Overrides, operatorsv2.Upgradeable)
	c := meta.FindStatusCondition(condition.Status.Conditions, operatorsv2.Upgradeable)
	switch {
	case override != nil && override.Status == metav1.ConditionTrue:
	case override != nil:
		problem = "the operator is not upgradeable: " + override.Message
	case c == nil:
	case c.ObservedGeneration != condition.Generation:
		problem = fmt.Sprintf("the operatorcondition status %q=%q is outdated", c.Type, c.Status)
	case c.Status == metav1.ConditionFalse:
		problem = "the operator is not upgradeable: " + c.Message
	}
	if problem == "" {
		return decision{}, false
	}
	d := move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonOperatorConditionNotUpgradeable, "operator is not upgradeable: "+problem)
	d.RequeueAfter = upgradeablePace
	return d, true
}

func invalidStrategy(f *facts) (decision, bool) {
	problem := strategyError(f.csv)
	return fail(v1alpha1.CSVReasonInvalidStrategy, "install strategy invalid: "+problem), problem != ""
}

// accountPace is how often a CSV looks whether the ServiceAccount of its group exists.
const accountPace = 10 * time.Second

// accountMissing waits for the ServiceAccount that the group prescribes: nothing is installed with wider rights.
func accountMissing(f *facts) (decision, bool) {
	if _, confirmed := olmcore.AccountOf(f.group); confirmed {
		return decision{}, false
	}
	d := f.waitFor(accountPace)
	d.Message = "waiting for OperatorGroup service account " + f.group.Spec.ServiceAccountName
	return d, true
}

// gatePassed leaves a failure that a gate caused: the gates have just been passed.
func gatePassed(f *facts) (decision, bool) {
	message := ""
	switch f.csv.Status.Reason {
	case v1alpha1.CSVReasonNoTargetNamespaces, v1alpha1.CSVReasonNoOperatorGroup,
		v1alpha1.CSVReasonTooManyOperatorGroups, v1alpha1.CSVReasonUnsupportedOperatorGroup:
		message = "InstallModes now support target namespaces"
	case v1alpha1.CSVReasonInterOperatorGroupOwnerConflict:
		message = "OperatorGroup no longer intersecting with conflicting owner"
	case v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs:
		message = "static OperatorGroup and intersecting groups now support providedAPIs"
	default:
		return decision{}, false
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsUnknown, message), true
}

// upgradeBegan lets a CSV be replaced that has run and whose only fault is that the upgrade to its successor has begun.
func upgradeBegan(f *facts) (decision, bool) {
	d, decided := beingReplaced(f.Successor)
	return reporting(d), decided && !f.met && f.csv.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet && f.hasRun() &&
		requirements.takenBy(&f.Input, f.report, f.Successor)
}

// neverRan lets a Pending CSV that never ran give way to a successor that lacks nothing but that this one does: the
// InstallPlan that made it may have failed, and then what it lacks never comes.
func neverRan(f *facts) (decision, bool) {
	d, _ := beingReplaced(f.Successor)
	left, waits := f.successorWaits()
	return reporting(d), !f.met && waits && left <= 0
}

// successorWaits reports whether a successor waits for a CSV that never ran, and what is left of NeverRanGrace.
func (f *facts) successorWaits() (left time.Duration, waits bool) {
	s := f.Successor
	waits = s != nil && s.Status.Phase == v1alpha1.CSVPhasePending && s.Status.Reason == v1alpha1.CSVReasonRequirementsMet && !f.hasRun()
	return NeverRanGrace - f.sinceTransition(), waits
}

func requirementsLost(f *facts) (decision, bool) {
	return reporting(fail(v1alpha1.CSVReasonRequirementsNotMet, "requirements no longer met")), !f.met
}

func requirementsUnmet(f *facts) (decision, bool) {
	if f.phase == v1alpha1.CSVPhaseFailed {
		return reporting(move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "requirements not met")), !f.met
	}
	d := f.retry(move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found"))
	if left, waits := f.successorWaits(); waits {
		d.RequeueAfter = min(d.RequeueAfter, left)
	}
	return reporting(d), !f.met
}

// deploymentsUnread waits for what the Deployments are and, with spec.config, should be.
func deploymentsUnread(f *facts) (decision, bool) {
	d, unread := f.unread(f.Deployments.Complete, "Deployments")
	if !unread {
		d, unread = f.unread(f.Subscriptions.Complete, "Subscriptions")
	}
	if f.phase == v1alpha1.CSVPhasePending {
		d = reporting(d)
	}
	return d, unread
}

func conflicting(f *facts) (decision, bool) {
	reason, problem := f.conflict()
	d := fail(reason, problem)
	if about, found := f.apiServiceConflict(); d.Message == about && f.csv.Status.Reason != d.Reason {
		d.Diagnostics = found
	}
	switch {
	case reason == "":
	case f.phase == v1alpha1.CSVPhasePending:
		d = reporting(d)
	case f.phase == v1alpha1.CSVPhaseFailed:
		d = f.retry(d)
	}
	return d, reason != ""
}

func predecessorStays(f *facts) (decision, bool) {
	p := f.Predecessor
	if p == nil || p.Status.Phase == v1alpha1.CSVPhaseReplacing {
		return decision{}, false
	}
	return reporting(f.retry(move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsMet,
		fmt.Sprintf("requirements met; waiting for %s to be replaced (it is %s/%s)", p.Name, p.Status.Phase, p.Status.Reason)))), true
}

func requirementsMet(f *facts) (decision, bool) {
	return reporting(move(v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVReasonRequirementsMet, "all requirements found, attempting install")), true
}

// install writes what is installed. The CSV is Installing once all of it is observed.
func install(f *facts) (decision, bool) {
	todo := f.installation()
	d := afterInstallation(f, todo)
	switch {
	case todo.Incomputable:
		d = move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, deployment.Bad)
		d.Rule = "InstallFailed"
	case todo.Failure == "" && (len(todo.Actions) > 0 || todo.RequeueAfter > 0):
		d.actions, d.certificates, d.Diagnostics = todo.Actions, f.certificates.Requests, f.certificatesMissing()
	}
	return d, true
}

// installAgain repeats an installation that failed, from Failed. What the API server called invalid is not written
// again until it changes; other failures are tried again with backoff. If the operator becomes healthy meanwhile, the
// CSV is Succeeded, unless what failed is a repair that Succeeded would ask for again at once.
func installAgain(f *facts) (decision, bool) {
	if f.csv.Status.Reason != v1alpha1.CSVReasonComponentFailed && !f.refused {
		return decision{}, false
	}
	d, state := f.health(v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonComponentFailed)
	if state == deployment.Healthy && d.Phase == v1alpha1.CSVPhaseSucceeded && !f.needsRepair() {
		d.actions = f.trust()
		return f.untilRenewal(d), true
	}
	todo := f.installation()
	d = afterInstallation(f, todo)
	switch {
	case todo.Incomputable:
		d = f.retry(f.stay())
	case todo.Failure != "":
		d.actions = deployment.Judge(f.trust(), triesOf(f)).Actions // who calls the operator is kept trusting it
		if len(todo.Attempts) == 0 {
			d = f.retry(d) // an object of another is in the way, which may go without an event
		}
	case len(todo.Actions) > 0 || todo.RequeueAfter > 0:
		d.actions, d.certificates, d.Diagnostics = todo.Actions, f.certificates.Requests, f.certificatesMissing()
	}
	return d, true
}

// afterInstallation returns the phase and reason that an installation leads to.
func afterInstallation(f *facts, todo deployment.Installation) (d decision) {
	switch {
	case todo.NoRetry:
		d = fail(v1alpha1.CSVReasonComponentFailedNoRetry, "install strategy failed: "+todo.Failure)
		d.Rule, d.RequeueAfter = "InstallRefused", todo.RequeueAfter
	case todo.Failure != "":
		d = fail(v1alpha1.CSVReasonComponentFailed, "install strategy failed: "+todo.Failure)
		d.Rule, d.RequeueAfter = "InstallFailed", todo.RequeueAfter
	case len(todo.Actions) > 0 || todo.RequeueAfter > 0:
		d = f.waitFor(todo.RequeueAfter)
	default:
		d = move(v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonInstallSuccessful, "waiting for install components to report healthy")
		d.Rule, d.actions = "Installed", deployment.Removals(f.csv, f.Deployments.Items)
		d.Diagnostics = kindMismatches(f.csv, f.CustomResourceDefinitions.Items)
		d.renewAt = renewal(f.csv.Status.CertsRotateAt, f.certificates.RenewAt)
	}
	if todo.Failure != "" && isReportedLater(&f.csv.Status, todo.FailedAt, f.Now) {
		d.Reason, d.Message = f.csv.Status.Reason, f.csv.Status.Message
	}
	d.attempts = todo.Attempts
	return d
}

// isReportedLater reports whether a status contains a failed installation that ended no earlier than the given time.
// Two managers remember different failures. Without this rule they would overwrite each other's message without end. A
// time that no clock within olmcore.ClockTolerance can have written does not count.
func isReportedLater(s *v1alpha1.ClusterServiceVersionStatus, failedAt, now time.Time) bool {
	isInstallation := s.Reason == v1alpha1.CSVReasonComponentFailed || s.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
	return s.Phase == v1alpha1.CSVPhaseFailed && isInstallation && !failedAt.IsZero() && s.LastUpdateTime != nil &&
		!olmcore.Timestamp(failedAt).After(s.LastUpdateTime.Time) && s.LastUpdateTime.Sub(now) <= olmcore.ClockTolerance
}

// renewal returns when a certificate must be replaced, zero for never; nil where the status says that already.
func renewal(said *metav1.Time, at time.Time) *time.Time {
	if said == nil {
		said = &metav1.Time{}
	}
	if said.Time.Equal(at) {
		return nil
	}
	return &at
}

// stillHealthy keeps a CSV Succeeded as long as all of its operator is well.
func stillHealthy(f *facts) (decision, bool) {
	d, state := f.health(v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonComponentUnhealthy)
	if state == deployment.Healthy && isAnyUnmet(f.csv.Status.RequirementStatus) {
		d = reporting(d)
		d.refresh = true
	}
	if state == deployment.Healthy {
		d.actions = f.settled()
	}
	d.actions = append(d.actions, f.trust()...)
	return f.untilRenewal(d), true
}

var healthy = move(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors")

// judged has a Deployment that is outdated written again. One that needs time, or does not exist, leads to the phase
// and reason of the caller.
func judged(state deployment.State, why string, to phase, reason v1alpha1.ConditionReason) decision {
	switch state {
	case deployment.Healthy:
		return healthy
	case deployment.Incomputable:
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, why)
	case deployment.TimedOut:
		return fail(v1alpha1.CSVReasonInstallCheckFailed, "install failed: "+why)
	case deployment.Outdated:
		to = v1alpha1.CSVPhaseInstallReady
	}
	return move(to, reason, "installing: "+why)
}

func stillInstalling(f *facts) (decision, bool) {
	d, _ := f.health(v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonWaiting)
	d.actions = f.trust()
	if d.Phase != v1alpha1.CSVPhaseInstalling {
		return d, true
	}
	left := cmp.Or(f.Config.InstallTimeout, DefaultInstallTimeout) - f.sinceTransition()
	if left <= 0 {
		d = fail(v1alpha1.CSVReasonInstallCheckFailed, "install timeout")
		d.Rule = "InstallTimeout"
		return d, true
	}
	d.RequeueAfter = soonest(d.RequeueAfter, left)
	return d, true
}

// stillFailed installs again what is missing or outdated. It stays if everything is as it should be and only not
// available, as installing it again would change nothing.
func stillFailed(f *facts) (decision, bool) {
	d, state := f.health(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall)
	if state == deployment.Waiting && d.Phase == v1alpha1.CSVPhasePending {
		d = fail(v1alpha1.CSVReasonComponentUnhealthy, d.Message)
	}
	d.actions = f.trust()
	return f.untilRenewal(d), true
}

// replaced deletes a version once a later one is installed, the oldest first.
func replaced(f *facts) (decision, bool) {
	return move(v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonReplaced,
		"has been replaced by a newer ClusterServiceVersion that has successfully installed."), f.Followed && f.Predecessor == nil
}

func olderVersions(f *facts) (decision, bool) {
	return f.stay(), f.Predecessor != nil && (f.Followed || f.Successor != nil)
}

func successorInstalls(f *facts) (decision, bool) {
	return f.waitFor(owned.Wait(f.sinceTransition(), retryLimit)), f.Successor != nil
}

// successorGone goes back although a predecessor may wait for this version: else neither would ever end.
func successorGone(f *facts) (decision, bool) {
	if left := ReplacementGrace - f.sinceTransition(); left > 0 {
		return f.waitFor(left), true
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall,
		fmt.Sprintf("replacement of %s disappeared; verifying installation again", f.csv.Name)), true
}

func deleteCSV(f *facts) (decision, bool) {
	return f.act(olmcore.DeleteOf(f.csv, olmcore.Cause{Reason: ReasonReplaced, Message: "a newer version has been installed"})), true
}
