// SPDX-License-Identifier: Apache-2.0

// Package installplan decides what happens to an InstallPlan.
//
// [Gather] reads an [Input], [Reconcile] takes the plan through its phases and applies its steps, [Assess] says what it is
// doing, and [Affected] which plans to look at again when an object changed. Packages below make plans of resolutions
// (create), take bundles out of their images (unpack), and keep the plans of a namespace in order (sweep). All are
// functions of their input: no client, no clock, no memory.
//
//	            create (Manual)              approved
//	(absent) ------------------> RequiresApproval -----> Installing <---- create (Automatic)
//	                                    ^  approval withdrawn |  |
//	                                    |  before anything    |  |
//	                                    |  was applied        |  |
//	                                    +---------------------+  |
//	                                                             |-- every step observed ------> Complete
//	                                                             |-- refused, or too long -----> Failed
//	                                                             ^-- cause gone, rights given,-----+
//	                                                                 trouble is over
//
// Plans that contain a common package run one after the other, in the order of spec.generation:
//
//  1. A later plan supersedes the earlier plans of which nothing is applied. They become Failed, with reason Superseded.
//  2. It gets its steps, and starts, once the earlier plans that have started are finished with its packages.
//  3. While it waits, no step of an earlier plan may wait without end.
//  4. If both have started, the earlier plan skips its open steps for the packages of the later one.
//
// A plan without steps ends, with reason Superseded, five minutes after its creation if no Subscription waits for it. While one
// waits, the plan is kept, with its approval. It gets its steps once the namespace can be resolved again.
//
// What a plan's status says was observed. startTime is stored in a round of its own before the first object of a step is
// written, a step is Created or Present once its object was seen, and Complete is written in a round that writes nothing
// else. So any action may be lost, repeated or run by two controllers: the next round sees what is there and goes on.
//
// A round applies either everything that is possible or, when one step is refused, nothing: an upgrade that cannot finish
// does not begin.
//
// # Existing custom resources
//
// A step may give a CustomResourceDefinition schemas that custom resources break. Outcome.SchemaChanges asks which must be
// judged, module installplan/crvalidation judges them, and Reconcile refuses the plan for those that only the new schema
// finds wrong.
//
// # Bundles in images
//
// The steps of a plan may refer to the ConfigMap that a bundle was unpacked into, and to the digest of what it held, so
// that nothing else than what was planned, and perhaps approved, is installed. What was lost since is in
// Outcome.LostBundles, and package unpack brings it back.
//
// # Inside
//
// Reconcile asks rules in an order, and the first that answers ends the round: each makes its part of a decision, which
// becomes the Outcome. The steps are judged in package internal/step, which makes a Verdict for each of what its manifest
// says and what exists; internal/kinds is the table of their kinds, internal/relation ties plans to Subscriptions.
package installplan
