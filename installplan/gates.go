// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

func terminating(namespace *corev1.Namespace) bool {
	return namespace != nil &&
		(namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating)
}

func (d *decision) diagnose(severity olmcore.Severity, reason, path, format string, args ...any) {
	d.result.Diagnostics = append(d.result.Diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Message: fmt.Sprintf(format, args...),
		Target: olmcore.RefOf(d.in.InstallPlan).Unversioned(), Path: path,
	})
}

func (d *decision) warn(reason, path, format string, args ...any) {
	d.diagnose(olmcore.Warning, reason, path, format, args...)
}

// abandon is the round of a plan in a namespace that is being deleted.
func (d *decision) abandon() {
	plan := d.in.InstallPlan
	if !terminal(plan.Status.Phase) {
		d.diagnose(olmcore.Info, ReasonNamespaceTerminating, "", "namespace %s is being deleted", plan.Namespace)
	}
	d.removeFinalizer(olmcore.Cause{Reason: ReasonNamespaceTerminating, Message: "the namespace is being deleted"})
}

// withoutStatus is the round of a plan that has no steps.
func (d *decision) withoutStatus() {
	plan := d.in.InstallPlan
	d.state = StateWithoutStatus
	if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		d.state = StateFailed
		return
	}
	grace := or(d.in.Config.OrphanGrace, DefaultOrphanGrace)
	if left := plan.CreationTimestamp.Add(grace).Sub(d.in.Now); left > 0 {
		d.result.Requeue(left)
		return
	}
	d.warn(ReasonPlanWithoutStatus, "status.plan", "the plan has no steps %s after its creation", grace)
}

// check is the OperatorGroup gate: whether a plan may go on. It records what it
// finds.
func (d *decision) check() bool {
	account, problem := checkOperatorGroups(d.in.OperatorGroups)
	if problem == "" {
		problem = accountChange(d.in.InstallPlan, account, d.in.Config)
	}
	status := &d.next.Status
	if problem != "" {
		d.state = StateCheckFailed
		setCondition(status, v1alpha1.InstallPlanCondition{
			Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
			Reason: v1alpha1.InstallPlanReasonInstallCheckFailed, Message: problem,
		}, d.in.Now)
		d.warn(ReasonInstallCheckFailed, "", "%s", problem)
		d.result.Requeue(or(d.in.Config.CheckInterval, DefaultCheckInterval))
		return false
	}
	status.Conditions = withoutCheckFailure(status.Conditions)
	if !apiequality.Semantic.DeepEqual(account, status.AttenuatedServiceAccountRef) {
		d.state = StateServiceAccountChanged
		status.AttenuatedServiceAccountRef = account.DeepCopy()
		d.result.Requeue(d.retryInterval())
		return false
	}
	return true
}

func (d *decision) transientTimeout() time.Duration {
	return or(d.in.Config.TransientTimeout, DefaultTransientTimeout)
}

func (d *decision) retryInterval() time.Duration {
	return or(d.in.Config.RetryInterval, DefaultRetryInterval)
}

// checkOperatorGroups returns the account that plans of the namespace run as,
// nil for the controller, or what is wrong. Groups whose status is empty do not
// count.
//
// Source: operator-lifecycle-manager pkg/lib/scoped, queryServiceAccountFromNamespace.
func checkOperatorGroups(groups []*operatorsv1.OperatorGroup) (account *corev1.ObjectReference, problem string) {
	var group *operatorsv1.OperatorGroup
	var count int
	for _, g := range groups {
		if g != nil && len(g.Status.Namespaces) > 0 {
			group = g
			count++
		}
	}
	switch {
	case count == 0:
		return nil, "no operator group found that is managing this namespace"
	case count > 1:
		return nil, fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d", count)
	}
	account, confirmed := olmcore.AccountOf(group)
	if !confirmed {
		return nil, fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s/%s",
			group.Spec.ServiceAccountName, group.Namespace, group.Name)
	}
	return account, ""
}

func withoutCheckFailure(conditions []v1alpha1.InstallPlanCondition) []v1alpha1.InstallPlanCondition {
	var kept []v1alpha1.InstallPlanCondition
	for _, c := range conditions {
		if c.Type != v1alpha1.InstallPlanInstalled || c.Reason != v1alpha1.InstallPlanReasonInstallCheckFailed {
			kept = append(kept, c)
		}
	}
	return kept
}

// conditionOf returns the condition of a type, nil when there is none.
func conditionOf(status *v1alpha1.InstallPlanStatus, kind v1alpha1.InstallPlanConditionType) *v1alpha1.InstallPlanCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1alpha1.InstallPlanCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

func withoutCondition(conditions []v1alpha1.InstallPlanCondition, kind v1alpha1.InstallPlanConditionType) []v1alpha1.InstallPlanCondition {
	var kept []v1alpha1.InstallPlanCondition
	for _, c := range conditions {
		if c.Type != kind {
			kept = append(kept, c)
		}
	}
	return kept
}

// setCondition records a condition and keeps its times as long as status,
// reason and message stay the same. lastTransitionTime follows the status
// alone.
func setCondition(status *v1alpha1.InstallPlanStatus, c v1alpha1.InstallPlanCondition, now time.Time) {
	at := olmcore.Timestamp(now)
	c.LastUpdateTime, c.LastTransitionTime = &at, &at
	var kept []v1alpha1.InstallPlanCondition
	found := false
	for _, have := range status.Conditions {
		switch {
		case have.Type != c.Type:
			kept = append(kept, have)
		case !found:
			found = true
			if have.Status == c.Status {
				c.LastTransitionTime = have.LastTransitionTime
				if have.Reason == c.Reason && have.Message == c.Message {
					c = have
				}
			}
			kept = append(kept, c)
		}
	}
	if !found {
		kept = append(kept, c)
	}
	status.Conditions = kept
}
