// SPDX-License-Identifier: Apache-2.0

// Package installplan decides what happens to an InstallPlan.
//
// [Gather] reads an [Input], [Reconcile] moves the plan through its phases and applies its steps, [Assess] reports what
// the plan is doing, and [Affected] returns the plans to reconcile after an object changed. Package create creates
// plans from resolutions, and package unpack unpacks bundles from their images. Package sweep deletes old plans and
// repairs their relations to Subscriptions. All decisions are functions of their input: they use no client, no clock
// and no state.
//
// A plan changes its phase in the following states ([Phases]):
//
//	none             -> RequiresApproval  (package create)
//	none             -> Installing        (package create)
//	none             -> Failed            Superseded
//	RequiresApproval -> Failed            Superseded
//	RequiresApproval -> Installing        Approved
//	Installing       -> Failed            Superseded
//	Installing       -> Failed            Failing
//	Installing       -> RequiresApproval  Withdrawn
//	Installing       -> Complete          Completing
//	Failed           -> Installing        Retried
//
// Plans that contain a common package run one after the other, in the order of spec.generation:
//
//  1. A later plan supersedes the earlier plans of which nothing is applied. They become Failed, with reason Superseded.
//  2. It gets its steps, and starts, once the earlier plans that have started are finished with its packages.
//  3. While it waits, no step of an earlier plan may wait without end.
//  4. If both have started, the earlier plan skips its open steps for the packages of the later one.
//
// A plan without steps ends, with reason Superseded, five minutes after its creation if no Subscription waits for it.
// While one waits, the plan is kept, with its approval. It gets its steps once the namespace can be resolved again.
//
// The status of a plan contains only what was observed. startTime is stored before the first object of a step is
// written. A step is Created or Present once its object was observed. Complete is written in a call that writes
// nothing else. So each action may be lost, repeated or run by two controllers: the next call observes the result and
// continues.
//
// A call applies every step that is possible. If one step is refused, it applies none, so an upgrade that cannot finish
// does not begin.
//
// # Existing custom resources
//
// A step may change the schemas of a CustomResourceDefinition so that existing custom resources become invalid.
// Outcome.SchemaChanges lists the versions whose custom resources must be validated, and module
// installplan/crvalidation validates them. Reconcile refuses the plan if a custom resource is valid under the old
// schema and invalid under the new one.
//
// # Bundles in images
//
// The steps of a plan may reference the ConfigMap of an unpacked bundle together with the digest of its content. So the
// plan installs only what was planned and perhaps approved. If the content was lost since then, Outcome.LostBundles
// contains the lookup of the bundle, and package unpack unpacks it again.
//
// # Inside
//
// Reconcile observes the facts about a plan once and tries the rows of a table in order (rules.go). The first row whose
// situation holds returns the decision, and the table sets the phase. The rows for all phases are in rules.go, those
// for plans before their execution in waiting.go, and the others in installing.go and failed.go. What the steps need is
// evaluated when a row first asks for it (findings.go). Which plans may run depends on other plans (order.go). The
// condition Progressing records for the next call why a plan does not progress (memory.go).
//
// Package internal/step evaluates the steps and returns a Decision for each. Package internal/kinds is the table of the
// kinds of their objects. Package internal/relation relates plans to Subscriptions and to other plans.
package installplan
