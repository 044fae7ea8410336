// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// progress returns Upgrading if another version is installed, and Installing otherwise.
func progress(v *subscription.Decision) Phase {
	installed := v.Subscription.Status.InstalledCSV
	if installed != "" && installed != v.Status.CurrentCSV {
		return Upgrading
	}
	return Installing
}

// plan returns the finding for an InstallPlan that is not complete.
func (n *namespace) plan(v *subscription.Decision) finding {
	name, is, plan := v.Plan.Name, v.Plan.Stage, v.Plan.Plan
	f := finding{late: planLate, Health: Health{
		Phase: progress(v), Reason: string(is), Message: "InstallPlan " + name + " is " + string(is), Since: v.Subscription.Status.LastUpdated.Time,
		Object: olmcore.Ref{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: n.name, Name: name, UID: v.Plan.UID},
	}}
	if plan == nil { // not observed: only the recorded stage is known
		if !v.Plan.RecordedAt.IsZero() {
			f.Since = v.Plan.RecordedAt
		}
		return f
	}
	f.Since = enteredAt(v, plan)
	f.Message = cmp.Or(relation.Message(plan), plan.Status.Message, f.Message)
	switch {
	case plan.DeletionTimestamp != nil:
		f.Phase, f.Since, f.Message, f.late = Resolving, plan.DeletionTimestamp.Time, "InstallPlan "+name+" is being deleted", resolvingLate
	case is == subscription.StageNotYetReconciled && relation.Statusless(plan) && n.now.Sub(plan.CreationTimestamp.Time) >= subscription.AuditGrace:
		f.Phase, f.Message, f.now = Stuck, "InstallPlan "+name+" has no steps", planWithoutSteps
	case is == subscription.StageInstalling && relation.Installed(plan).Reason == v1alpha1.InstallPlanReasonInstallCheckFailed:
		f.now = planMayNotRun
		if n.now.Sub(relation.InstalledAt(plan)) >= subscription.AuditGrace {
			f.Phase = Stuck
		}
	case is == subscription.StageRequiresApproval && !plan.Spec.Approved: // an approved one is about to run
		f.Phase, f.now = WaitingForApproval, approvalNeeded
	case is == subscription.StageRequiresApproval:
	case is == subscription.StageFailed:
		f.Phase, f.Reason = n.failure(v), relation.FailureReason(plan)
		f = n.failed(plan, f)
	case is == subscription.StageUnknown:
		f.Phase, f.Reason, f.now = Stuck, subscription.ReasonUnknownPhase, planUnknown
	case hasPendingLookup(plan):
		f.Phase, f.late = Unpacking, unpackLate
	case is == subscription.StageInstalling:
		f.late = noStepLate
		if open := unfinished(plan); len(open) > 0 {
			f.late, f.what = stepsLate, listed(open)
		}
	}
	return f
}

// failed returns the finding with the failed step and the objects to delete. These are the InstallPlan, and the
// versions that it created but did not install completely. OLM, too, creates a new InstallPlan only after all of them
// are deleted.
func (n *namespace) failed(plan *v1alpha1.InstallPlan, f finding) finding {
	if step := failedStep(plan, f.Message); step != "" {
		f.Message += "; step " + step
	}
	if relation.IsRetried(plan) {
		f.now = planRetried
		return f
	}
	var remove []string
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		c := n.csvs[name]
		if c != nil && !c.IsCopied() && olmcore.NeverInstalled(c) {
			remove = append(remove, olmcore.RefOf(c).String())
		}
	}
	f.now, f.remove = planFailed, strings.Join(append(remove, f.Object.String()), " and ")
	m := storedVersion.FindStringSubmatch(f.Message)
	if m != nil && describes(plan, m[1]) {
		f.now, f.what = planFailedStored, "Migrate the custom resources of CustomResourceDefinition "+m[1]+
			" to a version that is kept, remove "+m[2]+" from its status.storedVersions"
	}
	return f
}

// storedVersion matches OLM's message about a CustomResourceDefinition that loses a stored version. It matches from the
// start, because text of a bundle may contain the same words.
var storedVersion = regexp.MustCompile(`^risk of data loss updating "([a-z0-9.-]+)": ` +
	`new CRD removes version ([a-z0-9]+(?:, [a-z0-9]+)*) that is listed as a stored version`)

// describes reports whether a step of an InstallPlan contains a CustomResourceDefinition.
func describes(plan *v1alpha1.InstallPlan, definition string) bool {
	return slices.ContainsFunc(plan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s != nil && s.Resource.Kind == "CustomResourceDefinition" && s.Resource.Name == definition
	})
}

// failedStep returns the step at which an InstallPlan failed: the first unfinished step whose object the message names,
// or else the first unfinished step. OLM applies the steps in order.
func failedStep(plan *v1alpha1.InstallPlan, message string) string {
	var first string
	for _, s := range plan.Status.Plan {
		if s == nil || s.Status == v1alpha1.StepStatusCreated || s.Status == v1alpha1.StepStatusPresent || s.Resource.Name == "" {
			continue
		}
		name := nameOf(s)
		if strings.Contains(message, s.Resource.Name) {
			return name
		}
		first = cmp.Or(first, name)
	}
	return first
}

// nameOf returns the name and the status of a step. The names are quoted, because a bundle may contain any text.
func nameOf(s *v1alpha1.Step) string {
	status := string(cmp.Or(s.Status, v1alpha1.StepStatusUnknown))
	return printable.Name(s.Resource.Kind) + " " + printable.Name(s.Resource.Name) + " is " + printable.Name(status)
}

// enteredAt returns the time at which an InstallPlan entered its stage.
func enteredAt(v *subscription.Decision, plan *v1alpha1.InstallPlan) time.Time {
	created, updated := plan.CreationTimestamp.Time, endedAt(plan)
	switch {
	case v.Plan.Recorded == v.Plan.Stage && !v.Plan.RecordedAt.IsZero() && !v.Plan.RecordedAt.Before(created):
		return v.Plan.RecordedAt
	case v.Plan.Stage == subscription.StageFailed && !updated.IsZero():
		return updated
	case v.Plan.Stage == subscription.StageInstalling && plan.Status.StartTime != nil:
		return plan.Status.StartTime.Time
	}
	return created
}

func hasPendingLookup(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.BundleLookups, func(b v1alpha1.BundleLookup) bool {
		return slices.ContainsFunc(b.Conditions, func(c v1alpha1.BundleLookupCondition) bool {
			return c.Type == v1alpha1.BundleLookupPending && c.Status == corev1.ConditionTrue
		})
	})
}

// endedAt is when the plan's Installed condition became what it is; its time of update would move with the message.
func endedAt(plan *v1alpha1.InstallPlan) time.Time {
	if at := relation.Time(relation.Installed(plan).LastTransitionTime); !at.IsZero() {
		return at
	}
	return relation.InstalledAt(plan)
}

// unfinished returns the names of the steps that are not done.
func unfinished(plan *v1alpha1.InstallPlan) []string {
	var names []string
	for _, s := range plan.Status.Plan {
		if s != nil && s.Status != v1alpha1.StepStatusCreated && s.Status != v1alpha1.StepStatusPresent {
			names = append(names, nameOf(s))
		}
	}
	return names
}

// maxNamed is the maximum number of objects that a message names.
const maxNamed = 5

// listed joins at most maxNamed names and adds the number of the others.
func listed(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}
