// SPDX-License-Identifier: Apache-2.0

// Package subscription decides about the Subscriptions of one namespace: their statuses, which InstallPlan each of
// them references, whether the namespace must be resolved, and which component labels are missing.
//
// [Reconcile] takes a namespace as a value ([Input], read by [Gather]) and returns an [Outcome]. It never writes an
// InstallPlan. Package installplan does.
//
// # How a Subscription is decided
//
// Each step reads what the earlier steps decided.
//
//  1. A Subscription without a spec is left alone.
//  2. The InstallPlan to reference: one that installed a version of the package that no Subscription follows; else that
//     of the last resolution; else the one whose step created the Subscription. Without an InstallPlan, the version that
//     status.installedCSV records is followed.
//  3. The stage of that InstallPlan.
//  4. status.state and status.installedCSV: AtLatestKnown if the CSV exists, else what the stage says.
//  5. A CSV that replaced the Subscription's own is followed.
//  6. A reference to an InstallPlan that ended before it installed everything is changed to another InstallPlan or
//     cleared.
//  7. A Subscription that waits for an event that cannot occur is reported, or its operator is installed again.
//  8. The stage that the conditions should show, and the transitions that led there.
//  9. The health of the catalogs, and the deprecation of the installed version.
//  10. status.installplan repeats status.installPlanRef.
//  11. The conditions, by the table below.
//  12. What to write, report and remember.
//
// # The life of a Subscription
//
// status.state follows from the CSV that status.currentCSV names:
//
//	           an InstallPlan is referenced      the CSV exists
//	""(None) ──────────────────────► UpgradePending ──────────────► AtLatestKnown
//	   ▲                               │  ▲    ▲                        │
//	   │  the InstallPlan is gone      │  │    └────────────────────────┘
//	   └───────────────────────────────┘  │      the CSV is gone, or a new
//	                                      ▼      InstallPlan is referenced
//	                                UpgradeFailed
//	                     the InstallPlan failed and the OperatorGroup fails forward
//
// The stages of the InstallPlan are reported as [Transition]s of the type [TransitionInstallPlan]:
//
//	          created            approval Automatic
//	NoPlan ──────────► NotYetReconciled ─────────────────────► Installing ──► Complete
//	                         │                                  ▲    │ ▲
//	                         └──────────► RequiresApproval ─────┘    ▼ │ retry
//	                     approval Manual              approved      Failed
//
//	before Installing ──► Failed   a later InstallPlan replaced it (Superseded)
//	any stage ──► Missing   the InstallPlan was deleted
//	any stage ──► NoPlan    the reference was cleared or changed to another InstallPlan
//
// InstallPlans of old releases also have the stage Planning, between NotYetReconciled and the two stages after it.
// Every other edge is out of band: a user edited a status.
//
// Each stage except NoPlan and Complete has a condition: InstallPlanPending, InstallPlanFailed or InstallPlanMissing.
// Its reason is the stage, or the reason of the InstallPlan.
//
// # Conditions
//
// The table contains each condition that this package writes, and the fact that decides about it. A condition with the
// mark Warning reports a problem when it is True. Every change is reported as a [Transition] of the condition's type,
// except that a change of the first three is reported as a stage. This package does not change other conditions.
//
//	InstallPlanMissing       InstallPlan      Warning
//	InstallPlanPending       InstallPlan
//	InstallPlanFailed        InstallPlan      Warning
//	ResolutionFailed         resolution       Warning
//	BundleUnpacking          unpacking
//	BundleUnpackFailed       unpacking        Warning
//	CatalogSourcesUnhealthy  catalogs         Warning
//	PackageDeprecated        catalog content
//	ChannelDeprecated        catalog content
//	BundleDeprecated         catalog content
//	Deprecated               catalog content
//
// # What is observed and what is inferred
//
// An InstallPlan may go through several stages between two calls. Each Transition says how certain it is and how exact
// its time is. If the caller passes the versions that a watch delivered ([Input.Observations]), no stage is lost. If
// it passes what the last call remembered ([Input.Histories]), each Transition is reported once. Without either, the
// stages are inferred from the fields of the InstallPlan. What cannot be known is reported as a Diagnostic with the
// reason olmcore.ReasonHistoryGap.
//
// # Resolving
//
// Reconcile does not resolve. [Outcome.Resolve] requests a resolution. Pass the answer as [Input.Resolution], with the
// InstallPlan that create.Plan created from it. The references are written while the InstallPlan has no content, so no
// InstallPlan runs before its Subscriptions reference it:
//
//	Outcome.Resolve ─► solver ─► create.Plan ─► the InstallPlan, without status
//	        ▲                                             │
//	        │ stale, failed, InstallPlan gone             ▼
//	        └──────────────────────────── Input.Resolution ─► references written
//	                                                      │
//	                              create.Plan again ─► the content of the InstallPlan
//
// # Events and logs
//
// Adapters create Kubernetes Events and log records from a result. Each Transition becomes one: of the stage of an
// InstallPlan, of status.state, and of every other condition that changes. It is a Warning if [IsWarning] returns
// true. A Transition with the certainty Assumed becomes no Event. Two or more Transitions of one InstallPlan in one
// result were reconstructed. Each Diagnostic that the last result did not contain becomes an Event of its severity.
// Transitions are reported once, and Diagnostics as long as their cause exists. DeprecationUnknown is only reported
// with a write, because there is nothing to do about it.
//
// # Other functions and packages
//
// [Assess] returns the decisions without actions. Package health reports whether an operator is installed, and which
// object prevents it. Package audit reports every inconsistent relation, with the actions that repair it. Package
// component maintains component labels and Operator objects. [PlanDeletion] is for callers that add [Finalizer] to
// their Subscriptions. [EffectiveConfig] returns the spec.config that applies to a ClusterServiceVersion.
//
// [Transition]: https://pkg.go.dev/github.com/olmcore/olm/olmcore#Transition
package subscription
