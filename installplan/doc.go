// SPDX-License-Identifier: Apache-2.0

// Package installplan decides what happens to an InstallPlan.
//
// [Gather] reads an [Input], [Reconcile] takes the plan through its phases and applies its steps, [Assess] reports what
// the plan is doing, and [Affected] returns the plans to reconcile after an object changed. Package create creates
// plans from resolutions, package unpack unpacks bundles from their images, and package sweep keeps the plans of a
// namespace in order. All are functions of their input: they have no client, no clock and no memory.
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
// written, a step is Created or Present once its object was observed, and Complete is written in a call that writes
// nothing else. So each action may be lost, repeated or run by two controllers: the next call observes the result and
// continues.
//
// A call applies everything that is possible or, if one step is refused, nothing. An upgrade that cannot finish does
// not begin.
//
// # Existing custom resources
//
// A step may give a CustomResourceDefinition schemas that custom resources break. Outcome.SchemaChanges asks which must
// be judged, module installplan/crvalidation judges them, and Reconcile refuses the plan for those that only the new
// schema finds wrong.
//
// # Bundles in images
//
// The steps of a plan may refer to the ConfigMap that a bundle was unpacked into, and to the digest of what it held, so
// that nothing else than what was planned, and perhaps approved, is installed. What was lost since is in
// Outcome.LostBundles, and package unpack brings it back.
//
// # Inside
//
// Reconcile observes the facts about a plan once and tries the rows of a table in order (rules.go). The first row whose
// situation holds returns the decision, and the table sets the phase. The rows for all phases are in rules.go, those
// for plans before their execution in waiting.go, and the others in installing.go and failed.go. What the steps need is
// evaluated when a row first asks for it (findings.go). Which plans may run depends on other plans (order.go). The
// condition Progressing records for the next call why a plan does not progress (memory.go).
//
// Package internal/step evaluates the steps and returns a Verdict for each. Package internal/kinds is the table of the
// kinds of their objects. Package internal/relation relates plans to Subscriptions and to other plans.
package installplan
