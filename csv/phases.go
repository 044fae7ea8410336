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
	"github.com/olmcore/olm/csv/internal/requirement"
	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

// firstSeen begins the life of a CSV.
func firstSeen(f *facts) (decision, bool) {
	d := move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsUnknown, "requirements not yet checked")
	d.diagnostics = unknownModes(f.csv)
	return d, true
}

// giveWay lets a version that is installed be replaced as soon as a successor exists.
func giveWay(f *facts) (decision, bool) {
	if f.successor == nil {
		return decision{}, false
	}
	return beingReplaced(f.successor), true
}

func failForward(f *facts) (decision, bool) {
	if f.successor == nil || f.group.UpgradeStrategy() != operatorsv1.UpgradeStrategyUnsafeFailForward {
		return decision{}, false
	}
	d := beingReplaced(f.successor)
	d.message = "Fail Forward is enabled, allowing Failed csv to be replaced by csv: " + f.successor.Name
	return d, true
}

func requirementsUnread(f *facts) (decision, bool) {
	return f.unobserved(requirement.All.Unread(&f.needs))
}

// upgradeablePace is how often a CSV looks whether its predecessor allows the upgrade.
const upgradeablePace = 30 * time.Second

// notUpgradeable waits while the operator that is to be replaced forbids it. An
// administrator's override comes before what the operator itself says.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, isOperatorUpgradeable.
func notUpgradeable(f *facts) (decision, bool) {
	if f.predecessor == nil {
		return decision{}, false
	}
	if !f.OperatorConditions.Complete {
		return f.unobserved("OperatorConditions")
	}
	condition, ok := owned.Find(f.OperatorConditions.Items, f.csv.Namespace, f.predecessor.Name)
	if !ok {
		return decision{}, false
	}
	problem := ""
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
	d.requeue = upgradeablePace
	return d, true
}

func invalidStrategy(f *facts) (decision, bool) {
	problem := strategyError(f.csv)
	return fail(v1alpha1.CSVReasonInvalidStrategy, "install strategy invalid: "+problem), problem != ""
}

// accountPace is how often a CSV looks whether the ServiceAccount of its group exists.
const accountPace = 10 * time.Second

// accountMissing waits for the ServiceAccount that the group prescribes: nothing is
// installed with wider rights than it has.
func accountMissing(f *facts) (decision, bool) {
	if _, confirmed := olmcore.AccountOf(f.group); confirmed {
		return decision{}, false
	}
	d := f.waitFor(accountPace)
	d.message = "waiting for OperatorGroup service account " + f.group.Spec.ServiceAccountName
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

// upgradeBegan lets a CSV be replaced that was Succeeded before and whose only fault is
// that the upgrade to its successor has begun.
func upgradeBegan(f *facts) (decision, bool) {
	if f.met || f.successor == nil || f.csv.Status.Reason != v1alpha1.CSVReasonRequirementsNotMet || !f.hasRun() ||
		!requirement.All.TakenBy(&f.needs, f.successor) {
		return decision{}, false
	}
	return f.reporting(beingReplaced(f.successor)), true
}

// neverRan lets a Pending CSV that never ran give way to a successor that lacks nothing
// but that this one does: the InstallPlan that made it may have failed, and then what
// it lacks never comes.
func neverRan(f *facts) (decision, bool) {
	if left, waits := f.successorWaits(); f.met || !waits || left > 0 {
		return decision{}, false
	}
	return f.reporting(beingReplaced(f.successor)), true
}

// successorWaits reports whether a successor waits for a CSV that never ran, and what
// is left of NeverRanGrace.
func (f *facts) successorWaits() (left time.Duration, waits bool) {
	s := f.successor
	if s == nil || f.hasRun() || s.Status.Phase != v1alpha1.CSVPhasePending || s.Status.Reason != v1alpha1.CSVReasonRequirementsMet {
		return 0, false
	}
	return NeverRanGrace - status.Since(f.csv.Status.LastTransitionTime, f.Now), true
}

func requirementsUnmet(f *facts) (decision, bool) {
	if f.met {
		return decision{}, false
	}
	switch f.phase {
	case v1alpha1.CSVPhaseSucceeded:
		return f.reporting(fail(v1alpha1.CSVReasonRequirementsNotMet, "requirements no longer met")), true
	case v1alpha1.CSVPhaseFailed:
		return f.reporting(move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "requirements not met")), true
	}
	d := f.retry(move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found"))
	if left, waits := f.successorWaits(); waits {
		d.requeue = min(d.requeue, left)
	}
	return f.reporting(d), true
}

// deploymentsUnread waits for what the Deployments are and, with spec.config, should be.
func deploymentsUnread(f *facts) (decision, bool) {
	list := ""
	switch {
	case !f.Deployments.Complete:
		list = "Deployments"
	case !f.Subscriptions.Complete:
		list = "Subscriptions"
	}
	d, unread := f.unobserved(list)
	if f.phase == v1alpha1.CSVPhasePending {
		d = f.reporting(d)
	}
	return d, unread
}

func conflicting(f *facts) (decision, bool) {
	reason, problem := f.conflict()
	d := fail(reason, problem)
	switch f.phase {
	case v1alpha1.CSVPhasePending:
		d = f.reporting(d)
	case v1alpha1.CSVPhaseFailed:
		d = f.retry(d)
	}
	return d, reason != ""
}

func predecessorStays(f *facts) (decision, bool) {
	p := f.predecessor
	if p == nil || p.Status.Phase == v1alpha1.CSVPhaseReplacing {
		return decision{}, false
	}
	return f.reporting(f.retry(move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsMet,
		fmt.Sprintf("requirements met; waiting for %s to be replaced (it is %s/%s)", p.Name, p.Status.Phase, p.Status.Reason)))), true
}

func requirementsMet(f *facts) (decision, bool) {
	return f.reporting(move(v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVReasonRequirementsMet, "all requirements found, attempting install")), true
}

// installRetry is the wait after an installation that failed.
var installRetry = olmcore.Backoff{Base: 5 * time.Second, Max: 10 * time.Minute}

// install writes the Deployments. The CSV is Installing once all of them are observed.
func install(f *facts) (decision, bool) {
	account, _ := olmcore.AccountOf(f.group)
	todo := f.source.Install(f.Deployments.Items, account, f.LastRun, f.Now)
	var d decision
	switch {
	case todo.Incomputable:
		d = move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, deployment.Bad)
		d.rule = "InstallFailed"
	case todo.NoRetry:
		d = fail(v1alpha1.CSVReasonComponentFailedNoRetry, "install strategy failed: "+todo.Failure)
		d.rule = "InstallRefused"
	case todo.Failure != "":
		tries := status.CountSinceSuccess(&f.csv.Status, v1alpha1.CSVReasonComponentFailed) + 1
		d = fail(v1alpha1.CSVReasonComponentFailed,
			fmt.Sprintf("install strategy failed: %s (attempt %d, next retry in %s)", todo.Failure, tries, installRetry.After(tries)))
		d.rule, d.requeue = "InstallFailed", installRetry.After(tries)
	case len(todo.Actions) > 0 || todo.RequeueAfter > 0:
		d = f.waitFor(todo.RequeueAfter)
		d.actions = todo.Actions
	default:
		d = move(v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonInstallSuccessful, "waiting for install components to report healthy")
		d.rule, d.actions = "Installed", deployment.Removals(f.csv, f.Deployments.Items)
		d.diagnostics = append(notInstalled(f.csv), kindMismatches(f.csv, f.CustomResourceDefinitions.Items)...)
	}
	return d, true
}

// health makes a phase of how the Deployments fare.
func health(f *facts) (decision, bool) {
	state, why := f.source.Health(f.Deployments.Items)
	switch {
	case state == deployment.Healthy:
		return f.healthy(), true
	case f.phase == v1alpha1.CSVPhaseInstalling:
		return f.stillInstalling(state, why), true
	case f.phase == v1alpha1.CSVPhaseFailed:
		return f.stillFailed(state, why), true
	}
	return unhealthy(state, why, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonComponentUnhealthy), true
}

func (f *facts) healthy() decision {
	d := move(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors")
	if f.phase == v1alpha1.CSVPhaseSucceeded {
		if !requirement.AllMet(f.csv.Status.RequirementStatus) {
			d = f.reporting(d)
			d.refresh = true
		}
		d.actions = deployment.Removals(f.csv, f.Deployments.Items)
	}
	return d
}

// unhealthy has a Deployment that is outdated written again. One that needs time, or
// does not exist, leads to the phase and reason of the caller.
func unhealthy(state deployment.State, why string, to phase, reason v1alpha1.ConditionReason) decision {
	switch state {
	case deployment.Incomputable:
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, why)
	case deployment.TimedOut:
		return fail(v1alpha1.CSVReasonInstallCheckFailed, "install failed: "+why)
	case deployment.Outdated:
		to = v1alpha1.CSVPhaseInstallReady
	}
	return move(to, reason, "installing: "+why)
}

func (f *facts) stillInstalling(state deployment.State, why string) decision {
	d := unhealthy(state, why, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonWaiting)
	if d.phase != v1alpha1.CSVPhaseInstalling {
		return d
	}
	timeout := cmp.Or(f.Config.InstallTimeout, DefaultInstallTimeout)
	if d.requeue = timeout - status.Since(f.csv.Status.LastTransitionTime, f.Now); d.requeue <= 0 {
		d = fail(v1alpha1.CSVReasonInstallCheckFailed, "install timeout")
		d.rule = "InstallTimeout"
	}
	return d
}

// stillFailed installs again, after a while what could not be installed; not where a
// Deployment is right and only not available, as that would change nothing.
func (f *facts) stillFailed(state deployment.State, why string) decision {
	s := &f.csv.Status
	if state == deployment.Waiting {
		return fail(v1alpha1.CSVReasonComponentUnhealthy, "installing: "+why)
	}
	if s.Reason == v1alpha1.CSVReasonComponentFailed {
		tries := status.CountSinceSuccess(s, v1alpha1.CSVReasonComponentFailed)
		if left := installRetry.After(tries) - status.Since(s.LastTransitionTime, f.Now); left > 0 {
			return f.waitFor(left)
		}
	}
	return unhealthy(state, why, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall)
}

// replaced deletes a version once a later one is installed, the oldest first.
func replaced(f *facts) (decision, bool) {
	return move(v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonReplaced,
		"has been replaced by a newer ClusterServiceVersion that has successfully installed."), f.followed && f.predecessor == nil
}

func olderVersions(f *facts) (decision, bool) {
	return f.stay(), f.predecessor != nil && (f.followed || f.successor != nil)
}

func successorInstalls(f *facts) (decision, bool) {
	return f.waitFor(status.Wait(status.Since(f.csv.Status.LastTransitionTime, f.Now), retryLimit)), f.successor != nil
}

// successorGone goes back, whatever comes before this version: a predecessor waits for
// it, so that neither would ever end.
func successorGone(f *facts) (decision, bool) {
	if left := ReplacementGrace - status.Since(f.csv.Status.LastTransitionTime, f.Now); left > 0 {
		return f.waitFor(left), true
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall,
		fmt.Sprintf("replacement of %s disappeared; verifying installation again", f.csv.Name)), true
}

func deleteCSV(f *facts) (decision, bool) {
	d := f.stay()
	d.actions = []olmcore.Action{olmcore.DeleteOf(f.csv, olmcore.Cause{Reason: ReasonReplaced, Message: "a newer version has been installed"})}
	return d, true
}
