// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/olmcore/olm/olmcore"
)

func (m *machine) failed() decision {
	if g, _ := m.group(); g != nil && g.UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward {
		if s := m.line().successor(); s != nil {
			d := beingReplaced("T50", s)
			d.message = "Fail Forward is enabled, allowing Failed csv to be replaced by csv: " + s.Name
			return d
		}
	}
	if d, bad := m.strategyFailure("T55"); bad {
		return d
	}
	if d, missing := m.accountMissing(); missing {
		return d
	}
	if d, cured := m.cured(); cured {
		return d
	}
	if what := m.requirementsObserved(); what != "" {
		return m.unobserved(what)
	}
	if !requirementsMet(m.in) {
		_, report := requirements(m.in)
		d := move("T56", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet, "requirements not met")
		if s := m.replaceable(report); s != nil {
			d = beingReplaced("T50'", s)
		}
		d.report, d.reported = report, true
		return d
	}
	if what := m.deploymentsObserved(); what != "" {
		return m.unobserved(what)
	}
	if reason, problem := conflict(m.in); reason != "" {
		return m.retry(fail("T15'", reason, problem))
	}
	return m.recover()
}

// cured leaves a failure that a gate caused: the gates have just been passed.
func (m *machine) cured() (decision, bool) {
	message := ""
	switch m.c().Status.Reason {
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
	return move("T52", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsUnknown, message), true
}

// recover looks whether a Failed CSV is well again, or worth another try.
func (m *machine) recover() decision {
	what, why, _ := health(m.in)
	d := m.judgeHealth("T5A", what, why, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall)
	if what == waiting {
		// Installing again would change nothing.
		return fail("T5A", v1alpha1.CSVReasonComponentUnhealthy, "installing: "+why)
	}
	if what != healthy && m.c().Status.Reason == v1alpha1.CSVReasonComponentFailed {
		left := retryDelay(failedInstalls(&m.c().Status)) - since(m.c().Status.LastTransitionTime, m.in.Now)
		if left > 0 {
			return m.waitFor("T22'", left)
		}
	}
	return d
}

// replaceable returns the successor that may take over from a CSV which was
// Succeeded before and whose only fault is that the upgrade has begun: a CRD of
// its own has dropped the old version, or a ServiceAccount has a new owner.
func (m *machine) replaceable(report []v1alpha1.RequirementStatus) *version {
	if m.c().Status.Reason != v1alpha1.CSVReasonRequirementsNotMet || !m.hasRun() {
		return nil
	}
	s := m.line().successor()
	if s == nil {
		return nil
	}
	for i := range report {
		if r := &report[i]; !isMet(r.Status) && !m.takenBy(s, r) {
			return nil
		}
	}
	return s
}

// halfMade returns the successor that a Pending CSV which never ran gives way to,
// and how long it still holds it up: the InstallPlan that made it may have failed,
// and then what it lacks never comes. The successor lacks nothing but that this one
// gives way.
func (m *machine) halfMade() (s *version, left time.Duration) {
	c := &m.c().Status
	if c.Phase != v1alpha1.CSVPhasePending || m.hasRun() {
		return nil, 0
	}
	if s = m.line().successor(); s == nil || s.Status.Phase != v1alpha1.CSVPhasePending || s.Status.Reason != v1alpha1.CSVReasonRequirementsMet {
		return nil, 0
	}
	return s, orDefault(m.in.Config.HalfMadeGrace, DefaultHalfMadeGrace) - since(c.LastTransitionTime, m.in.Now)
}

// hasRun reports whether the operator ran before: the history says so, which
// forgets after twenty entries, or it runs still.
func (m *machine) hasRun() bool {
	return hasSucceeded(&m.c().Status) || slices.ContainsFunc(m.in.Deployments.Items, func(d *appsv1.Deployment) bool {
		return isOwnDeployment(m.c(), d) && isAvailable(d)
	})
}

func (m *machine) takenBy(s *version, r *v1alpha1.RequirementStatus) bool {
	switch r.Kind {
	case "CustomResourceDefinition":
		return strings.HasPrefix(r.Message, crdVersionNotServed) &&
			describes(m.c().Spec.CustomResourceDefinitions.Owned, r.Name)
	case "ServiceAccount":
		i := indexNamed(m.in.ServiceAccounts.Items, m.c().Namespace, r.Name)
		return i >= 0 && olmcore.OwnedBy(m.in.ServiceAccounts.Items[i], s.UID)
	}
	return false
}
