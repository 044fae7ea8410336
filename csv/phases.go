// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/csv/internal/read"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

// rules contains the rows of the phase machine. They are tried if no gate decides. Their functions follow in the same
// order, except those that install, in installation.go, and those that judge the health of the operator, in health.go.
var rules = []rule{
	{Name: "New", From: none, To: pending, Decide: startPending},

	{Name: "BeingReplaced", From: succeeded, To: replacing, Decide: allowReplacement},
	{Name: "FailForward", From: failed, To: replacing, Decide: failForward},
	{Name: ruleNotObserved, From: pending, Decide: waitForRequirementLists},
	{Name: "NotUpgradeable", From: pending, To: pending, Decide: waitUntilUpgradeable},
	{Name: "InvalidStrategy", From: alive, To: failed, Decide: rejectStrategy},
	{Name: "ServiceAccountMissing", From: running, Decide: waitForAccount},
	{Name: ruleNotObserved, From: succeeded, Decide: waitForServiceLists},
	{Name: "APIServiceIssue", From: succeeded, To: failed, Decide: failWithAPIServiceIssue},
	{Name: "CertificatesDue", From: succeeded, To: pending, Decide: rotateCertificates},
	{Name: "GatePassed", From: failed, To: pending, Decide: leaveGate},
	{Name: ruleNotObserved, From: slices.Concat(succeeded, failed), Decide: waitForRequirementLists},
	{Name: "UpgradeBegan", From: slices.Concat(pending, failed), To: replacing, Decide: allowStartedUpgrade},
	{Name: "NeverRan", From: pending, To: replacing, Decide: replaceUnstarted},
	{Name: "RequirementsNotMet", From: succeeded, To: failed, Decide: failWithoutRequirements},
	{Name: "RequirementsNotMet", From: slices.Concat(pending, failed), To: pending, Decide: waitForRequirements},
	{Name: ruleNotObserved, From: alive, Decide: waitForDeploymentLists},
	{Name: ruleNotObserved, From: pending, Decide: waitForServiceLists},
	{Name: "Conflict", From: slices.Concat(pending, installReady, failed), To: failed, Decide: failWithConflict},
	{Name: ruleNotObserved, From: slices.Concat(installReady, installing, failed), Decide: waitForServiceLists},
	{Name: "InstallAgain", From: failed, To: slices.Concat(installing, succeeded, failed), Decide: installAgain},
	{Name: "APIServicesReinstalled", From: failed, To: pending, Decide: reinstallAPIServices},
	{Name: "CertificatesDue", From: failed, To: pending, Decide: rotateCertificates},
	{Name: "WaitingForPredecessor", From: pending, To: pending, Decide: waitForPredecessor},
	{Name: "RequirementsMet", From: pending, To: installReady, Decide: startInstallation},
	{Name: "Install", From: installReady, To: slices.Concat(pending, installing, failed), Decide: install},
	{Name: "Health", From: installing, To: alive, Decide: judgeInstalling},
	{Name: "Health", From: succeeded, To: slices.Concat(pending, installReady, succeeded, failed), Decide: judgeSucceeded},
	{Name: "Health", From: failed, To: slices.Concat(pending, installReady, succeeded, failed), Decide: judgeFailed},

	{Name: "Replaced", From: replacing, To: deleting, Decide: deleteReplaced},
	{Name: "WaitingForOlderVersions", From: replacing, Decide: waitForOlderVersions},
	{Name: "WaitingForSuccessor", From: replacing, Decide: waitForSuccessor},
	{Name: "SuccessorGone", From: replacing, To: pending, Decide: reinstallWithoutSuccessor},
	{Name: "Delete", From: deleting, Decide: deleteCSV},
}

// startPending makes a new CSV Pending.
func startPending(f *facts) (decision, bool) {
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsUnknown, "requirements not yet checked").
		diagnose(unknownModes(f.csv)...), true
}

// unknownModes returns a Diagnostic for each install mode that the API does not have.
func unknownModes(c *version) []olmcore.Diagnostic {
	var unknown []olmcore.Diagnostic
	for i, mode := range c.Spec.InstallModes {
		switch mode.Type {
		case v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace,
			v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces:
		default:
			path := fmt.Sprintf("spec.installModes[%d].type", i)
			unknown = append(unknown, olmcore.Diagnose(olmcore.Warning, ReasonUnknownInstallMode, olmcore.RefOf(c), path,
				"install mode %q is unknown and is ignored", mode.Type))
		}
	}
	return unknown
}

// allowReplacement makes a Succeeded CSV Replacing as soon as its successor exists.
func allowReplacement(f *facts) (decision, bool) { return beingReplaced(f.chain.Successor) }

// failForward makes a Failed CSV Replacing if the OperatorGroup allows it.
func failForward(f *facts) (decision, bool) {
	d, decided := beingReplaced(f.chain.Successor)
	if !decided || f.group.UpgradeStrategy() != operatorsv1.UpgradeStrategyUnsafeFailForward {
		return decision{}, false
	}
	d.message = "Fail Forward is enabled, allowing Failed csv to be replaced by csv: " + f.chain.Successor.Name
	return d, true
}

func waitForRequirementLists(f *facts) (decision, bool) {
	list := requirements.unread(f.in)
	return waitForList(f, list == "", list)
}

// upgradeablePace is how often a CSV checks whether its predecessor allows the upgrade.
const upgradeablePace = 30 * time.Second

// waitUntilUpgradeable waits while the OperatorCondition of the predecessor forbids the upgrade.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, isOperatorUpgradeable.
func waitUntilUpgradeable(f *facts) (decision, bool) {
	if f.chain.Predecessor == nil {
		return decision{}, false
	}
	if !f.in.OperatorConditions.Complete {
		return waitForList(f, false, "OperatorConditions")
	}
	condition, exists := model.Find(f.in.OperatorConditions.Items, f.csv.Namespace, f.chain.Predecessor.Name)
	if !exists {
		return decision{}, false
	}
	problem := upgradeProblem(condition)
	d := move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonOperatorConditionNotUpgradeable, "operator is not upgradeable: "+problem)
	return d.requeue(upgradeablePace), problem != ""
}

// upgradeProblem returns why an OperatorCondition forbids the upgrade of its operator. It is empty if the upgrade is
// allowed. An override by an administrator takes precedence over the reported condition.
func upgradeProblem(condition *operatorsv2.OperatorCondition) string {
	override := meta.FindStatusCondition(condition.Spec.Overrides, operatorsv2.Upgradeable)
	reported := meta.FindStatusCondition(condition.Status.Conditions, operatorsv2.Upgradeable)
	switch {
	case override != nil && override.Status == metav1.ConditionTrue:
		return ""
	case override != nil:
		return "the operator is not upgradeable: " + override.Message
	case reported == nil:
		return ""
	case reported.ObservedGeneration != condition.Generation:
		return fmt.Sprintf("the operatorcondition status %q=%q is outdated", reported.Type, reported.Status)
	case reported.Status == metav1.ConditionFalse:
		return "the operator is not upgradeable: " + reported.Message
	}
	return ""
}

func rejectStrategy(f *facts) (decision, bool) {
	problem := strategyError(f.csv)
	return fail(v1alpha1.CSVReasonInvalidStrategy, "install strategy invalid: "+problem), problem != ""
}

// accountPace is how often a CSV checks whether the ServiceAccount of its OperatorGroup exists.
const accountPace = 10 * time.Second

// strategyError returns why the install strategy is invalid. It is empty if the strategy is valid.
func strategyError(c *version) string {
	if c.Spec.InstallStrategy.StrategyName != v1alpha1.InstallStrategyNameDeployment {
		return "unrecognized install strategy"
	}
	permissionError := func(_ int, p *v1alpha1.StrategyDeploymentPermissions) string {
		return first(p.Rules, func(_ int, r *rbacv1.PolicyRule) string { return rbac.RuleError(r) })
	}
	return cmp.Or(
		first(c.Spec.InstallStrategy.StrategySpec.Permissions, permissionError),
		first(c.Spec.InstallStrategy.StrategySpec.ClusterPermissions, permissionError),
	)
}

// waitForAccount waits for the ServiceAccount that the OperatorGroup names, because nothing may be installed with more
// permissions than those of the account.
func waitForAccount(f *facts) (decision, bool) {
	if _, confirmed := olmcore.AccountOf(f.group); confirmed {
		return decision{}, false
	}
	d := f.stay().requeue(accountPace)
	d.message = "waiting for OperatorGroup service account " + f.group.Spec.ServiceAccountName
	return d, true
}

// waitForServiceLists waits for the lists of objects that webhooks and APIServices need. A Pending CSV needs only the
// lists that show which operator owns its APIServices.
func waitForServiceLists(f *facts) (decision, bool) {
	var lists []string
	isPending := f.phase == v1alpha1.CSVPhasePending
	if len(f.csv.Spec.APIServiceDefinitions.Owned) > 0 {
		lists = read.Missing(f.in.APIServices, "APIServices")
	}
	if internalserving.NeedsClaims(f.services.Clients) {
		lists = append(lists, read.Missing(f.in.GroupDefinitions, "CustomResourceDefinitions of the owned API groups")...)
	}
	if isCalled(f.csv) && !isPending {
		lists = append(lists, unreadServing(f.in)...)
	}
	if len(f.csv.Spec.WebhookDefinitions) > 0 && !isPending {
		lists = append(lists, read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions")...)
	}
	d, isUnread := waitForList(f, len(lists) == 0, strings.Join(lists[:min(1, len(lists))], ""))
	if isPending {
		d = d.reporting()
	}
	return d, isUnread
}

// failWithAPIServiceIssue leaves Succeeded if an object that was created for an owned APIService was changed.
func failWithAPIServiceIssue(f *facts) (decision, bool) {
	problem, _ := f.services.Clients.Issue()
	return fail(v1alpha1.CSVReasonAPIServiceResourceIssue, problem), problem != ""
}

// rotateCertificates makes a CSV Pending if a certificate must be replaced, so that the operator is installed again.
func rotateCertificates(f *facts) (decision, bool) {
	message := "CSV owns resources that require a cert refresh"
	if f.phase == v1alpha1.CSVPhaseFailed {
		message = "owned APIServices need cert refresh"
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsCertRotation, message), f.services.Certificates.Renew != ""
}

// unreadServing returns the names of the lists that a CSV with webhooks or APIServices needs and that were not read.
func unreadServing(in *Input) []string {
	s := &in.Serving
	return slices.Concat(
		read.Missing(in.ServiceAccounts, "ServiceAccounts"),
		read.Missing(s.Services, "Services"), read.Missing(s.Secrets, "Secrets"), read.Missing(s.Roles, "Roles"),
		read.Missing(s.RoleBindings, "RoleBindings"), read.Missing(s.ClusterRoleBindings, "ClusterRoleBindings"),
		read.Missing(s.ValidatingWebhookConfigurations, "ValidatingWebhookConfigurations"),
		read.Missing(s.MutatingWebhookConfigurations, "MutatingWebhookConfigurations"))
}

// leaveGate makes a CSV Pending if a gate made it Failed. All gates have been passed in this call.
func leaveGate(f *facts) (decision, bool) {
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

// allowStartedUpgrade makes a CSV Replacing that ran before and whose requirements are unmet only because the upgrade
// to its successor has begun.
func allowStartedUpgrade(f *facts) (decision, bool) {
	d, decided := beingReplaced(f.chain.Successor)
	return d.reporting(), decided && !f.isMet && f.csv.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet && f.hasRun() &&
		requirements.takenBy(f.in, f.report, f.chain.Successor)
}

// replaceUnstarted makes a Pending CSV that never ran Replacing if its successor waits only for it. The InstallPlan of
// the CSV may have failed, and then its requirements are never met.
func replaceUnstarted(f *facts) (decision, bool) {
	d, _ := beingReplaced(f.chain.Successor)
	left, waits := successorWaits(f)
	return d.reporting(), !f.isMet && waits && left <= 0
}

// successorWaits reports whether the successor waits only for this CSV, which never ran. left is the rest of
// NeverRanGrace.
func successorWaits(f *facts) (left time.Duration, waits bool) {
	s := f.chain.Successor
	waits = s != nil && s.Status.Phase == v1alpha1.CSVPhasePending && s.Status.Reason == v1alpha1.CSVReasonRequirementsMet && !f.hasRun()
	return NeverRanGrace - f.sinceTransition(), waits
}

func failWithoutRequirements(f *facts) (decision, bool) {
	return fail(v1alpha1.CSVReasonRequirementsNotMet, "requirements no longer met").reporting(), !f.isMet
}

func waitForRequirements(f *facts) (decision, bool) {
	if f.phase == v1alpha1.CSVPhaseFailed {
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "requirements not met").reporting(), !f.isMet
	}
	d := move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found").
		reporting().requeue(f.retryIn(v1alpha1.CSVPhasePending))
	if left, waits := successorWaits(f); waits {
		d = d.requeue(left)
	}
	return d, !f.isMet
}

// waitForDeploymentLists waits for the Deployments, and for the Subscriptions whose spec.config they depend on.
func waitForDeploymentLists(f *facts) (decision, bool) {
	d, isUnread := waitForList(f, f.in.Deployments.Complete, "Deployments")
	if !isUnread {
		d, isUnread = waitForList(f, f.in.Subscriptions.Complete, "Subscriptions")
	}
	if f.phase == v1alpha1.CSVPhasePending {
		d = d.reporting()
	}
	return d, isUnread
}

func failWithConflict(f *facts) (decision, bool) {
	c := findConflict(f)
	d := fail(c.reason, c.message)
	if f.csv.Status.Reason != c.reason {
		d = d.diagnose(c.diagnostics...)
	}
	switch f.phase {
	case v1alpha1.CSVPhasePending:
		d = d.reporting()
	case v1alpha1.CSVPhaseFailed:
		d = d.requeue(f.retryIn(v1alpha1.CSVPhaseFailed))
	}
	return d, c.reason != ""
}

// conflict is a problem that keeps a CSV from being installed although its requirements are met. The zero value means
// that there is none.
type conflict struct {
	reason      v1alpha1.ConditionReason
	message     string
	diagnostics []olmcore.Diagnostic
}

// findConflict returns the first conflict: invalid webhooks, or an object that belongs to another operator.
func findConflict(f *facts) conflict {
	if problem := f.services.Clients.Problem(); problem != "" {
		return conflict{reason: v1alpha1.CSVReasonInvalidWebhookDescription, message: problem}
	}
	crds := model.OwnedCRDNames(f.csv)
	for _, other := range f.in.Neighbours.Items {
		isOwner := model.IsNeighbour(f.csv, other) && model.DescribesAnyCRD(other.Spec.CustomResourceDefinitions.Owned, crds)
		if isOwner && !f.chain.Relatives.Has(other) {
			return conflict{reason: v1alpha1.CSVReasonOwnerConflict, message: "conflicting CRD owner in namespace"}
		}
	}
	if c := findAPIServiceConflict(f); c.reason != "" {
		return c
	}
	adopts := f.in.Config.AdoptForeignDeployments
	problem := deployment.Conflict(f.csv, f.chain.Relatives, f.in.Neighbours.Items, f.in.Deployments.Items, adopts)
	if problem != "" {
		return conflict{reason: v1alpha1.CSVReasonOwnerConflict, message: problem}
	}
	return conflict{}
}

// findAPIServiceConflict returns a conflict if an owned APIService belongs to another owner, or if it does not exist
// yet and its API group is reserved or belongs to another operator.
func findAPIServiceConflict(f *facts) conflict {
	if !isCalled(f.csv) {
		return conflict{}
	}
	explain := func(reason, why string) []olmcore.Diagnostic {
		return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Error, reason, olmcore.RefOf(f.csv), ownedAPIServicesPath, "%s", why)}
	}
	if why := f.services.Clients.Conflict(); why != "" {
		// The message is that of OLM.
		return conflict{v1alpha1.CSVReasonOwnerConflict, "unable to adopt APIService", explain(ReasonAPIServiceConflict, why)}
	}
	if why := internalserving.Refusal(f.services.Clients); why != "" {
		return conflict{v1alpha1.CSVReasonOwnerConflict, why, explain(ReasonAPIGroupConflict, why)}
	}
	return conflict{}
}

// reinstallAPIServices makes a Failed CSV Pending if another installation repairs the objects of its APIServices.
func reinstallAPIServices(f *facts) (decision, bool) {
	problem, isRepairable := f.services.Clients.Issue()
	switch {
	case problem == "":
		return decision{}, false
	case !isRepairable:
		return f.stay().requeue(f.retryIn(f.csv.Status.Phase)), true
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonAPIServiceResourcesNeedReinstall, problem), true
}

func waitForPredecessor(f *facts) (decision, bool) {
	p := f.chain.Predecessor
	if p == nil || p.Status.Phase == v1alpha1.CSVPhaseReplacing {
		return decision{}, false
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsMet,
		fmt.Sprintf("requirements met; waiting for %s to be replaced (it is %s/%s)", p.Name, p.Status.Phase, p.Status.Reason)).
		reporting().requeue(f.retryIn(v1alpha1.CSVPhasePending)), true
}

func startInstallation(*facts) (decision, bool) {
	const message = "all requirements found, attempting install"
	return move(v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVReasonRequirementsMet, message).reporting(), true
}

// deleteReplaced makes a CSV Deleting once a later version is installed. The oldest version is deleted first.
func deleteReplaced(f *facts) (decision, bool) {
	const message = "has been replaced by a newer ClusterServiceVersion that has successfully installed."
	return move(v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonReplaced, message), f.chain.Followed && f.chain.Predecessor == nil
}

func waitForOlderVersions(f *facts) (decision, bool) {
	return f.stay(), f.chain.Predecessor != nil && (f.chain.Followed || f.chain.Successor != nil)
}

func waitForSuccessor(f *facts) (decision, bool) {
	return f.stay().requeue(model.NextCheck(f.sinceTransition(), retryLimit)), f.chain.Successor != nil
}

// reinstallWithoutSuccessor makes a Replacing CSV Pending if its successor no longer exists. It does so even if a
// predecessor waits for this CSV, because otherwise both would wait without end.
func reinstallWithoutSuccessor(f *facts) (decision, bool) {
	if left := ReplacementGrace - f.sinceTransition(); left > 0 {
		return f.stay().requeue(left), true
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall,
		fmt.Sprintf("replacement of %s disappeared; verifying installation again", f.csv.Name)), true
}

func deleteCSV(f *facts) (decision, bool) {
	cause := olmcore.Cause{Reason: ReasonReplaced, Message: "a newer version has been installed"}
	return f.stay().write(olmcore.DeleteOf(f.csv, cause)), true
}
