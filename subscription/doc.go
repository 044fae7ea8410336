// SPDX-License-Identifier: Apache-2.0

// Package subscription decides about the Subscriptions of one namespace: their statuses, which InstallPlan each of them
// references, whether the namespace must be resolved, and which component labels are missing.
//
// [Reconcile] takes a namespace as a value ([Input], read by [Gather]) and returns an [Outcome]. It never writes an
// InstallPlan. Package installplan does.
//
// # How a Subscription is decided
//
// Each step reads what the earlier steps decided.
//
//  1. A Subscription without a spec is left alone.
//  2. The InstallPlan to reference: one that installed a version of the package that no Subscription follows; else the one
//     of the last resolution; else the one whose step created the Subscription.
//  3. The stage of that InstallPlan.
//  4. status.state and status.installedCSV: AtLatestKnown if the CSV exists, else what the stage says.
//  5. A CSV that replaced the Subscription's own is followed.
//  6. A reference to an InstallPlan that was deleted is cleared, or changed to a later InstallPlan.
//  7. A Subscription that waits for something that cannot happen reports it, or is installed again.
//  8. The stage that the conditions should show, and the transitions that led there.
//  9. The health of the catalogs, and the deprecation of the installed version.
//  10. status.installplan repeats status.installPlanRef.
//  11. The conditions, by the table below.
//  12. What to write, report and remember.
//
// # The life of a Subscription
//
// status.state, by what happens to the CSV that status.currentCSV names:
//
//	             a plan is referenced            the CSV exists
//	""(None) ──────────────────────► UpgradePending ──────────────► AtLatestKnown
//	   ▲                               │  ▲    ▲                        │
//	   │  the plan is gone for good    │  │    └────────────────────────┘
//	   └───────────────────────────────┘  │      the CSV is gone, or a new plan
//	                                      ▼      is referenced
//	                                UpgradeFailed
//	                     the plan failed and the OperatorGroup fails forward
//
// The stages of the plan, as [Transition]s of the type [TransitionInstallPlan] report them:
//
//	          created            approval Automatic
//	NoPlan ──────────► NotYetReconciled ─────────────────────► Installing ──► Complete
//	                         │                                  ▲    │ ▲
//	                         └──────────► RequiresApproval ─────┘    ▼ │ retry
//	                     approval Manual              approved      Failed
//
//	before Installing ──► Failed   a later plan took the plan's place (Superseded)
//	any stage ──► Missing   the plan was deleted
//	any stage ──► NoPlan    the reference was cleared or moved to another plan
//
// (Planning, between NotYetReconciled and the two after it, occurs on plans of old releases only.) Every other edge is out
// of band: a status was edited.
//
// Each stage but NoPlan and Complete shows as one of the conditions InstallPlanPending, InstallPlanFailed and
// InstallPlanMissing, with the stage's or the plan's own reason.
//
// # Conditions
//
// Each condition that this package writes, with the fact that decides about it; a Warning is bad news when it is True.
// Every change is reported as a [Transition] of the condition's type, those about the InstallPlan as its stages. All other
// conditions belong to other writers and stay as they are.
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
// # What is seen and what is concluded
//
// A plan may run through several stages between two looks. Each transition says how certain it is and what bounds its time.
// Hand in the versions that a watch delivered ([Input.Observations]) and nothing is lost between them; hand in the memory
// of the last call ([Input.Histories]) and each transition is reported once. With neither, the plan's own fields prove what
// they can. What cannot be known is a Diagnostic with the reason olmcore.ReasonHistoryGap, never an invented stage.
//
// # Resolving
//
// Reconcile does not solve. When a resolution is needed [Outcome.Resolve] asks for it; the answer, with the plan that
// create.Plan made of it, comes back as [Input.Resolution]. The references are written while the plan is still without
// content, so no plan can run ahead of the Subscriptions it is for:
//
//	Outcome.Resolve ─► solver ─► create.Plan ─► the plan, without status
//	        ▲                                             │
//	        │ stale, failed, plan gone                    ▼
//	        └──────────────────────────── Input.Resolution ─► references written
//	                                                      │
//	                              create.Plan again ─► the plan's content
//
// # Events and logs
//
// Adapters make Kubernetes Events and log records of a result: one for each transition, of a plan's stage (type
// [TransitionInstallPlan]), of status.state, and of every other condition that a write changes, under the condition's type;
// a Warning where [IsWarning] says so; two or more of one plan in one result are a fast transition that was reconstructed,
// and one that is only Assumed makes no Event. And one for each Diagnostic that the last result did not have, of its
// severity; that of a failed resolution is about the Namespace. Transitions come once, Diagnostics as long as they hold,
// DeprecationUnknown beside a write alone: nothing is to be done about it.
//
// # Rooms
//
// [Assess] returns the decisions without actions. Package health answers "is it installed yet, and what blocks?", package
// audit reports every broken relation with what repairs it, package component keeps labels and Operator objects.
// [PlanDeletion] is for callers who put [Finalizer] on their Subscriptions, and [EffectiveConfig] says whose spec.config a
// ClusterServiceVersion gets.
//
// [Transition]: https://pkg.go.dev/github.com/olmcore/olm/olmcore#Transition
package subscription
