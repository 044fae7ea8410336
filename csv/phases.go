// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// strategyFailure is the same in every phase that needs the strategy.
func (m *machine) strategyFailure(rule string) (decision, bool) {
	if problem := strategyError(m.c()); problem != "" {
		return fail(rule, v1alpha1.CSVReasonInvalidStrategy, "install strategy invalid: "+problem), true
	}
	return decision{}, false
}

// requirementsObserved names a list that the requirements need and that was not
// read; empty when all were.
func (m *machine) requirementsObserved() string {
	in, spec := m.in, &m.c().Spec
	permitted := len(spec.InstallStrategy.StrategySpec.Permissions)+len(spec.InstallStrategy.StrategySpec.ClusterPermissions) > 0
	switch {
	case !in.CustomResourceDefinitions.Complete && len(spec.CustomResourceDefinitions.Owned)+len(spec.CustomResourceDefinitions.Required) > 0:
		return "CustomResourceDefinitions"
	case !in.APIServices.Complete && len(spec.APIServiceDefinitions.Required) > 0:
		return "APIServices"
	case !in.ServiceAccounts.Complete && permitted:
		return "ServiceAccounts"
	case !in.Roles.Complete && permitted:
		return "Roles"
	case !in.RoleBindings.Complete && permitted:
		return "RoleBindings"
	case !in.ClusterRoles.Complete && permitted:
		return "ClusterRoles"
	case !in.ClusterRoleBindings.Complete && permitted:
		return "ClusterRoleBindings"
	}
	return ""
}

// deploymentsObserved names a list that decides what the Deployments should be or
// tells what they are and that was not read; empty when all were.
func (m *machine) deploymentsObserved() string {
	switch {
	case !m.in.Deployments.Complete:
		return "Deployments"
	case !m.in.Subscriptions.Complete: // spec.config
		return "Subscriptions"
	}
	return ""
}

func (m *machine) pending() decision {
	if what := m.requirementsObserved(); what != "" {
		return m.unobserved(what)
	}
	p := m.line().predecessor()
	if p != nil {
		if !m.in.OperatorConditions.Complete {
			return m.unobserved("OperatorConditions")
		}
		if problem := notUpgradeable(m.in, p); problem != "" {
			d := move("T10", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonOperatorConditionNotUpgradeable, "operator is not upgradeable: "+problem)
			d.requeue = 30 * time.Second
			return d
		}
	}
	if d, bad := m.strategyFailure("T11"); bad {
		return d
	}
	met, report := requirements(m.in)
	d := m.pendingWith(met, report, p)
	d.report, d.reported = report, true
	return d
}

func (m *machine) pendingWith(met bool, report []v1alpha1.RequirementStatus, p *version) decision {
	if !met {
		if s := m.replaceable(report); s != nil {
			return beingReplaced("T50'", s)
		}
		d := m.retry(move("T12", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found"))
		if s, left := m.halfMade(); s != nil && left > 0 {
			d.requeue = min(d.requeue, left)
		} else if s != nil {
			return beingReplaced("HalfMade", s)
		}
		return d
	}
	if what := m.deploymentsObserved(); what != "" {
		return m.unobserved(what)
	}
	if reason, problem := conflict(m.in); reason != "" {
		return fail("T15", reason, problem)
	}
	if p != nil && p.Status.Phase != v1alpha1.CSVPhaseReplacing {
		return m.retry(move("T17'", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsMet,
			fmt.Sprintf("requirements met; waiting for %s to be replaced (it is %s/%s)", p.Name, p.Status.Phase, p.Status.Reason)))
	}
	return move("T18", v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVReasonRequirementsMet, "all requirements found, attempting install")
}

func (m *machine) installReady() decision {
	if d, bad := m.strategyFailure("T20"); bad {
		return d
	}
	if d, missing := m.accountMissing(); missing {
		return d
	}
	if what := m.deploymentsObserved(); what != "" {
		return m.unobserved(what)
	}
	if reason, problem := conflict(m.in); reason != "" {
		return fail("T15", reason, problem)
	}
	todo := install(m.in)
	switch {
	case todo.bad:
		return move("T31", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, "calculated deployment install is bad")
	case todo.failure != "" && todo.noRetry:
		return fail("T21", v1alpha1.CSVReasonComponentFailedNoRetry, "install strategy failed: "+todo.failure)
	case todo.failure != "":
		n := failedInstalls(&m.c().Status) + 1
		d := fail("T22'", v1alpha1.CSVReasonComponentFailed,
			fmt.Sprintf("install strategy failed: %s (attempt %d, next retry in %s)", todo.failure, n, retryDelay(n)))
		d.requeue = retryDelay(n)
		return d
	case len(todo.actions) > 0 || todo.requeue > 0:
		d := m.waitFor("Install", todo.requeue)
		d.actions = todo.actions
		return d
	}
	d := move("T23", v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonInstallSuccessful, "waiting for install components to report healthy")
	d.actions = removals(m.in)
	d.diagnostics = append(m.notInstalled(), m.kindMismatches()...)
	return d
}

// notInstalled says what this version leaves to the user, once per installation.
func (m *machine) notInstalled() []olmcore.Diagnostic {
	var said []olmcore.Diagnostic
	say := func(reason, path, what string) {
		said = append(said, olmcore.Diagnostic{
			Severity: olmcore.Warning, Reason: reason, Target: olmcore.RefOf(m.c()), Path: path,
			Message: what + " and their serving certificates are not installed by this version of the library",
		})
	}
	if len(m.c().Spec.APIServiceDefinitions.Owned) > 0 {
		say(ReasonAPIServicesNotInstalled, "spec.apiservicedefinitions.owned", "owned APIServices")
	}
	if len(m.c().Spec.WebhookDefinitions) > 0 {
		say(ReasonWebhooksNotInstalled, "spec.webhookdefinitions", "webhooks")
	}
	return said
}

func (m *machine) installing() decision {
	if d, bad := m.strategyFailure("T30"); bad {
		return d
	}
	if d, missing := m.accountMissing(); missing {
		return d
	}
	if what := m.deploymentsObserved(); what != "" {
		return m.unobserved(what)
	}
	what, why, _ := health(m.in)
	d := m.judgeHealth("T32", what, why, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonWaiting)
	if d.phase != v1alpha1.CSVPhaseInstalling {
		return d
	}
	timeout := orDefault(m.in.Config.InstallTimeout, DefaultInstallTimeout)
	left := timeout - since(m.c().Status.LastTransitionTime, m.in.Now)
	if left <= 0 {
		return fail("T33", v1alpha1.CSVReasonInstallCheckFailed, "install timeout")
	}
	d.requeue = left
	return d
}

func (m *machine) succeeded() decision {
	if s := m.line().successor(); s != nil && !m.gated(s) {
		return beingReplaced("T40", s)
	}
	if d, bad := m.strategyFailure("T45"); bad {
		return d
	}
	if d, missing := m.accountMissing(); missing {
		return d
	}
	if what := m.requirementsObserved(); what != "" {
		return m.unobserved(what)
	}
	if !requirementsMet(m.in) {
		return m.unmet()
	}
	if what := m.deploymentsObserved(); what != "" {
		return m.unobserved(what)
	}
	what, why, stale := health(m.in)
	d := m.judgeHealth("T48", what, why, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonComponentUnhealthy)
	if what != healthy {
		return d
	}
	if !reportIsCurrent(&m.c().Status) {
		_, d.report = requirements(m.in)
		d.reported, d.touch = true, true
	}
	if stale {
		d.actions = staleOrigins(m.in)
	}
	d.actions = append(d.actions, removals(m.in)...)
	return d
}

// gated reports whether Config.GateReplacing keeps the CSV from giving way to a
// successor that cannot be installed yet: one that can waits with its
// requirements met.
func (m *machine) gated(s *version) bool {
	return m.in.Config.GateReplacing && (s.Status.Phase != v1alpha1.CSVPhasePending || s.Status.Reason != v1alpha1.CSVReasonRequirementsMet)
}

// unmet decides about a Succeeded CSV that lacks something, with the grace of
// Config.UnmetGrace.
func (m *machine) unmet() decision {
	_, report := requirements(m.in)
	d := fail("T46", v1alpha1.CSVReasonRequirementsNotMet, "requirements no longer met")
	if grace := m.in.Config.UnmetGrace; grace > 0 {
		left := grace
		if !reportIsCurrent(&m.c().Status) {
			left -= since(m.c().Status.LastUpdateTime, m.in.Now)
		}
		if left > 0 {
			d = m.waitFor("T46'", left)
			if !reportIsCurrent(&m.c().Status) {
				return d
			}
			d.touch = true
		}
	}
	d.report, d.reported = report, true
	return d
}

// judgeHealth turns what is wrong with the Deployments into a phase. onWait is
// what the caller's phase makes of a Deployment that needs time or work.
func (m *machine) judgeHealth(rule string, what ailment, why string, onWait phase, reason v1alpha1.ConditionReason) decision {
	switch what {
	case healthy:
		return move(rule, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors")
	case incomputable:
		return move("T31", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, why)
	case timedOut:
		return fail(rule, v1alpha1.CSVReasonInstallCheckFailed, "install failed: "+why)
	case outdated, unannotated:
		return move(rule, v1alpha1.CSVPhaseInstallReady, reason, "installing: "+why)
	}
	return move(rule, onWait, reason, "installing: "+why)
}

func beingReplaced(rule string, by *version) decision {
	return move(rule, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVReasonBeingReplaced, "being replaced by csv: "+by.Name)
}
