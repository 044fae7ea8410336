// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// ReasonCSVAbsent means that the ClusterServiceVersion that status.currentCSV of the Subscription names does not
// exist. If it stays absent, the advice names the objects to delete so that the version is installed again.
const ReasonCSVAbsent = "CSVAbsent"

// version returns the finding for the version that a Subscription follows after its InstallPlan ended.
func (n *namespace) version(v *subscription.Decision) finding {
	c := v.CSV
	if c == nil {
		return n.absent(v)
	}
	f := finding{late: versionLate, Health: Health{
		Phase: progress(v), Reason: string(c.Status.Reason), Message: c.Status.Message, Object: olmcore.RefOf(c).Unversioned(),
		Since: cmp.Or(c.Status.LastTransitionTime, &c.CreationTimestamp).Time,
	}}
	replaced := n.csvs[c.Spec.Replaces]
	if replaced != nil && replaced.IsCopied() { // an operator of another namespace
		replaced = nil
	}
	if replaced != nil {
		f.Phase = Upgrading
	}
	switch phase := c.Status.Phase; {
	case phase == v1alpha1.CSVPhaseSucceeded && c.DeletionTimestamp != nil:
		f.Phase, f.Since, f.Message, f.late = Degraded, c.DeletionTimestamp.Time, "CSV "+c.Name+" is being deleted", ""
	case phase == v1alpha1.CSVPhaseSucceeded:
		f = n.installed(v, f)
	case phase == v1alpha1.CSVPhaseFailed || phase == v1alpha1.CSVPhaseUnknown:
		f.Phase, f.now = Failed, versionFailed
		if hasSucceeded(c) || replaced != nil && hasSucceeded(replaced) {
			f.Phase = Degraded
		}
		f = n.workload(c, f)
	case phase == v1alpha1.CSVPhaseReplacing || phase == v1alpha1.CSVPhaseDeleting:
		f.Phase = Upgrading
	case phase == v1alpha1.CSVPhasePending:
		f = pending(c, f)
	default:
		f = n.workload(c, f)
	}
	return f
}

// installed returns the finding for a version that works. The reason why there is no newer version is reported, but
// the phase is Installed.
func (n *namespace) installed(v *subscription.Decision, f finding) finding {
	f.Phase, f.late = Installed, ""
	if catalogs, ok := condition(v, v1alpha1.SubscriptionCatalogSourcesUnhealthy); ok {
		f.Reason, f.Message, f.now = catalogs.Reason, catalogs.Message, catalogsUnasked
		return f
	}
	f, _ = n.held(v, f)
	return f
}

// pending returns the finding for a version whose requirements are not met.
func pending(c *v1alpha1.ClusterServiceVersion, f finding) finding {
	switch reason := c.Status.Reason; {
	case reason == v1alpha1.CSVReasonOperatorConditionNotUpgradeable && c.Spec.Replaces != "":
		f.now = notUpgradeable
		f.Object = olmcore.Ref{APIVersion: operatorsv2.GroupVersion.String(), Kind: "OperatorCondition", Namespace: c.Namespace, Name: c.Spec.Replaces}
	case reason == v1alpha1.CSVReasonRequirementsNotMet || strings.Contains(string(reason), "NotMet"):
		f.now = requirementsUnmet
		if names := unmet(c); len(names) > 0 {
			f.now, f.what = requirementsNamed, listed(names)
			f.Message = strings.TrimPrefix(f.Message+": "+f.what, ": ")
		}
	}
	return f
}

// absent returns the finding for a version that does not exist: its InstallPlan did not create it, or it was deleted.
func (n *namespace) absent(v *subscription.Decision) finding {
	name := v.Status.CurrentCSV
	if name == "" {
		return n.resolving(v)
	}
	f := finding{late: versionLate, Health: Health{
		Phase: progress(v), Reason: ReasonCSVAbsent, Message: "CSV " + name + " does not exist",
		Since:  relation.Latest(v.Subscription.Status.LastUpdated.Time, relation.InstalledAt(v.Plan.Plan)),
		Object: olmcore.Ref{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind, Namespace: n.name, Name: name},
	}}
	isLong := n.now.Sub(f.Since) >= subscription.AuditGrace
	switch {
	case n.csvs[name] != nil:
		f.Reason, f.Message, f.now = subscription.ReasonCopiedCSVReferenced, "CSV "+name+" is a copy from another namespace", copyInPlace
		if isLong {
			f.Phase = Stuck
		}
	case isLong:
		f.Phase, f.Reason, f.now = Stuck, subscription.ReasonWedgedUpgradePending, versionAndPlan
		if v.Plan.Plan != nil {
			f.now, f.what = versionGone, olmcore.RefOf(v.Plan.Plan).String()
		}
	}
	return f
}

// hasSucceeded reports whether a CSV has ever been Succeeded.
func hasSucceeded(c *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(p v1alpha1.ClusterServiceVersionCondition) bool {
		return p.Phase == v1alpha1.CSVPhaseSucceeded
	})
}

// unmet returns the names of the requirements of a CSV that are not met.
func unmet(c *v1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, r := range c.Status.RequirementStatus {
		if r.Status == v1alpha1.RequirementStatusReasonPresent {
			continue
		}
		name := printable.Name(r.Kind) + " " + printable.Name(r.Name) + " is " + printable.Name(string(r.Status))
		if i := slices.IndexFunc(r.Dependents, func(d v1alpha1.DependentStatus) bool { return d.Status == v1alpha1.DependentStatusReasonNotSatisfied }); i >= 0 {
			name += " (" + printable.Name(r.Dependents[i].Kind) + ": " + ruleOf(r.Dependents[i].Message) + ")"
		}
		names = append(names, name)
	}
	return names
}

// ruleOf returns the message of a requirement if it is a rule in JSON, as package csv writes it, else the message in
// quotes.
func ruleOf(message string) string {
	scope, rule, isRule := strings.Cut(message, " rule:")
	if isRule && (scope == "namespaced" || scope == "cluster") && json.Valid([]byte(rule)) {
		return message
	}
	return strconv.Quote(message)
}
