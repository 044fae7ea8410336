// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Status is the health of one object. Its values are those of Argo CD.
type Status string

// These are the statuses of Argo CD.
const (
	Healthy     Status = "Healthy"
	Progressing Status = "Progressing"
	Degraded    Status = "Degraded"
	Suspended   Status = "Suspended"
	Unknown     Status = "Unknown"
)

// Test checks one object. Field, True and Condition are the possible checks. A Test holds if all of its checks that are
// set hold. A missing field, or a field of another type, has an empty value.
type Test struct {
	// Field is the path of a string field. The check holds if the value of the field is in In. If In is empty, every
	// non-empty value is accepted.
	Field string
	In    []string
	// True is the path of a boolean field that must be true.
	True string
	// Condition is a type in status.conditions. The check holds if an entry has this type, the status Status and one
	// of Reasons. If Reasons is empty, every reason is accepted.
	Condition, Status string
	Reasons           []string
	// Not inverts the result of the whole Test.
	Not bool
}

// Row is a row of a Table. It applies to an object if every Test in When holds.
type Row struct {
	When   []Test
	Status Status
	Reason string
	// Message is the message of the Result. In the message, {path} stands for the value of the string field at that path.
	Message string
	// Says is the path of a string field of the object, or SaysCondition. If the selected text is not empty, it is used
	// instead of Message.
	Says string
	// Passes means that a Degraded object may recover without help, so Flux continues to wait for it.
	Passes bool
}

// SaysCondition is a value of Row.Says. It selects the message of the condition that the first Test with a Condition
// found in status.conditions.
const SaysCondition = "condition"

// Table contains the rows for one kind. The first row that applies decides. If no row applies, the object is Unknown.
type Table struct {
	Kind string
	Rows []Row
}

// Tables returns the tables of Subscription, InstallPlan, ClusterServiceVersion and CatalogSource, all of
// operators.coreos.com/v1alpha1.
func Tables() []Table {
	all := []Table{subscriptions, installPlans, versions, catalogs}
	for i := range all {
		all[i].Rows = slices.Clone(all[i].Rows)
	}
	return all
}

const pending = string(v1alpha1.SubscriptionInstallPlanPending)

func isDeleted(kind string) Row {
	return Row{
		When:    []Test{{Field: "metadata.deletionTimestamp"}},
		Status:  Progressing,
		Reason:  "Deleting",
		Message: "the " + kind + " is being deleted",
	}
}

func whenTrue(condition v1alpha1.SubscriptionConditionType) Test {
	return Test{Condition: string(condition), Status: "True"}
}

func phase(phases ...string) []Test { return []Test{{Field: "status.phase", In: phases}} }

var isLatest = Test{Field: "status.state", In: []string{v1alpha1.SubscriptionStateAtLatest}}

func not(t Test) Test { t.Not = true; return t }

// subscriptions is the table of Subscriptions. One that waits for an InstallPlan does not wait for a resolution, which
// may fail because of others. An InstallPlan that was deleted after the installation does not matter.
var subscriptions = Table{v1alpha1.SubscriptionKind, []Row{
	isDeleted(v1alpha1.SubscriptionKind),
	{When: []Test{{Field: "spec.name", Not: true}}, Status: Degraded, Reason: "InvalidSpec", Message: "the Subscription names no package"},
	{When: []Test{whenTrue(v1alpha1.SubscriptionInstallPlanFailed)}, Status: Degraded, Reason: "InstallPlanFailed",
		Message: "InstallPlan {status.installPlanRef.name} failed", Says: SaysCondition},
	{When: []Test{not(isLatest), {Condition: pending, Status: "True", Reasons: []string{"RequiresApproval"}}}, Status: Suspended,
		Reason: "RequiresApproval", Message: "InstallPlan {status.installPlanRef.name} waits for approval"},
	{When: []Test{not(isLatest), {Condition: pending, Status: "True"}}, Status: Progressing, Reason: "InstallPlanPending",
		Message: "InstallPlan {status.installPlanRef.name} installs {status.currentCSV}", Says: SaysCondition},
	{When: []Test{whenTrue(v1alpha1.SubscriptionResolutionFailed)}, Status: Degraded, Reason: "ResolutionFailed",
		Message: "the namespace cannot be resolved", Says: SaysCondition, Passes: true},
	{When: []Test{whenTrue(v1alpha1.SubscriptionBundleUnpackFailed)}, Status: Degraded, Reason: "BundleUnpackFailed",
		Message: "a bundle cannot be unpacked", Says: SaysCondition, Passes: true},
	{When: []Test{whenTrue(v1alpha1.SubscriptionBundleUnpacking)}, Status: Progressing, Reason: "BundleUnpacking",
		Message: "bundles are being unpacked", Says: SaysCondition},
	{When: []Test{{Field: "status.state", In: []string{v1alpha1.SubscriptionStateFailed}}}, Status: Degraded, Reason: "UpgradeFailed",
		Message: "{status.currentCSV} could not be installed"},
	{
		When:    []Test{isLatest, {Field: "status.installedCSV"}},
		Status:  Healthy,
		Reason:  "Installed",
		Message: "{status.installedCSV} is installed",
	},
	{When: []Test{whenTrue(v1alpha1.SubscriptionInstallPlanMissing)}, Status: Progressing, Reason: "InstallPlanMissing",
		Message: "the InstallPlan was deleted", Says: SaysCondition},
	{When: []Test{whenTrue(v1alpha1.SubscriptionCatalogSourcesUnhealthy)}, Status: Progressing, Reason: "CatalogSourcesUnhealthy",
		Message: "catalogs are not available", Says: SaysCondition},
	{
		When:    []Test{{Field: "status.currentCSV"}},
		Status:  Progressing,
		Reason:  "UpgradePending",
		Message: "{status.currentCSV} is being installed",
	},
	{Status: Progressing, Reason: "Resolving", Message: "the namespace has to be resolved"},
}}

// installPlans is the table of InstallPlans. One that was superseded before it started is Healthy, because it has
// nothing left to do.
var installPlans = Table{v1alpha1.InstallPlanKind, []Row{
	isDeleted(v1alpha1.InstallPlanKind),
	{When: phase("Complete"), Status: Healthy, Reason: "Complete", Message: "all steps are done"},
	{When: append(phase("Failed"), Test{Condition: "Installed", Status: "False", Reasons: []string{"Superseded"}}), Status: Healthy,
		Reason: "Superseded", Message: "another InstallPlan superseded it", Says: SaysCondition},
	{When: append(phase("Failed"), Test{Condition: "Installed", Status: "False"}), Status: Degraded, Reason: "Failed",
		Message: "a step failed", Says: SaysCondition},
	{When: phase("Failed"), Status: Degraded, Reason: "Failed", Message: "a step failed", Says: "status.message"},
	{
		When:    append(phase("RequiresApproval"), Test{True: "spec.approved"}),
		Status:  Progressing,
		Reason:  "Approved",
		Message: "it is approved and about to run",
	},
	{When: phase("RequiresApproval"), Status: Suspended, Reason: "RequiresApproval",
		Message: "it waits for approval: set spec.approved to true"},
	{When: append(phase("Installing"), Test{Condition: "Installed", Status: "False"}), Status: Progressing, Reason: "Installing",
		Message: "its steps are being applied", Says: SaysCondition},
	{When: phase("Installing"), Status: Progressing, Reason: "Installing", Message: "its steps are being applied", Says: "status.message"},
	{When: phase("Planning"), Status: Progressing, Reason: "Planning", Message: "its steps are being planned"},
	{When: []Test{{Field: "status.phase"}}, Status: Unknown, Reason: "UnknownPhase", Message: "its phase {status.phase} is unknown"},
	{Status: Progressing, Reason: "NotYetReconciled", Message: "it has no phase yet"},
}}

var versions = Table{v1alpha1.ClusterServiceVersionKind, []Row{
	isDeleted(v1alpha1.ClusterServiceVersionKind),
	{When: phase("Succeeded"), Status: Healthy, Reason: "Succeeded", Message: "the operator is installed", Says: "status.message"},
	{When: phase("Failed", "Unknown"), Status: Degraded, Reason: "Failed", Message: "the operator is not installed", Says: "status.message"},
	{
		When:    append(phase("Pending"), Test{Field: "status.reason", In: []string{string(v1alpha1.CSVReasonRequirementsNotMet)}}),
		Status:  Progressing,
		Reason:  "RequirementsNotMet",
		Message: "requirements are not met",
		Says:    "status.message",
	},
	{
		When:    append(phase("Pending"), Test{Field: "status.reason", In: []string{string(v1alpha1.CSVReasonOperatorConditionNotUpgradeable)}}),
		Status:  Progressing,
		Reason:  "OperatorConditionNotUpgradeable",
		Message: "the operator that it replaces does not allow its upgrade",
		Says:    "status.message",
	},
	{
		When:    phase("Pending", "InstallReady", "Installing"),
		Status:  Progressing,
		Reason:  "Installing",
		Message: "the operator is being installed",
		Says:    "status.message",
	},
	{When: phase("Replacing", "Deleting"), Status: Progressing, Reason: "Replacing",
		Message: "a newer version replaces it", Says: "status.message"},
	{When: []Test{{Field: "status.phase"}}, Status: Unknown, Reason: "UnknownPhase", Message: "its phase {status.phase} is unknown"},
	{Status: Progressing, Reason: "NotYetReconciled", Message: "it has no phase yet"},
}}

// catalogs is the table of CatalogSources. A registry that is starting rejects connections for a while, so Flux
// continues to wait.
var catalogs = Table{v1alpha1.CatalogSourceKind, []Row{
	isDeleted(v1alpha1.CatalogSourceKind),
	{When: []Test{{Field: "status.reason", In: []string{
		string(
			v1alpha1.CatalogSourceSpecInvalidError,
		), string(v1alpha1.CatalogSourceConfigMapError), string(v1alpha1.CatalogSourceRegistryServerError),
	}}}, Status: Degraded, Reason: "Invalid", Message: "{status.reason}", Says: "status.message"},
	{When: []Test{{Field: "status.connectionState.lastObservedState", In: []string{"READY"}}}, Status: Healthy, Reason: "Ready",
		Message: "the registry answers"},
	{
		When:    []Test{{Condition: "Available", Status: "True"}},
		Status:  Healthy,
		Reason:  "Available",
		Message: "the registry serves",
		Says:    SaysCondition,
	},
	{When: []Test{{Condition: "Degraded", Status: "True"}}, Status: Degraded, Reason: "Degraded",
		Message: "no registry Pod serves", Says: SaysCondition, Passes: true},
	{When: []Test{{Field: "status.connectionState.lastObservedState", In: []string{"TRANSIENT_FAILURE", "SHUTDOWN"}}}, Status: Degraded,
		Reason: "Unreachable", Message: "the registry does not answer: {status.connectionState.lastObservedState}", Passes: true},
	{When: []Test{{Field: "status.connectionState.lastObservedState"}}, Status: Progressing, Reason: "Connecting",
		Message: "the connection is {status.connectionState.lastObservedState}"},
	{Status: Progressing, Reason: "NotYetReconciled", Message: "the registry has not been observed yet"},
}}

// tableOf returns the table of a kind, or nil if there is none.
func tableOf(kind string) *Table {
	for _, t := range []*Table{&subscriptions, &installPlans, &versions, &catalogs} {
		if t.Kind == kind {
			return t
		}
	}
	return nil
}

// part is a part of a message: a text, or the path of a string field.
type part struct{ Text, Path string }

// parts splits a message into its parts.
func parts(template string) (all []part) {
	for template != "" {
		text, rest, found := strings.Cut(template, "{")
		if text != "" {
			all = append(all, part{Text: text})
		}
		if !found {
			break
		}
		path, after, _ := strings.Cut(rest, "}")
		all, template = append(all, part{Path: path}), after
	}
	return all
}
