// SPDX-License-Identifier: Apache-2.0

// Package installplan decides what happens to an InstallPlan.
//
// [Create] turns a resolution into a plan, or meets the plan that is there
// already; what its bundles hold, [Unpack] takes out of their images first.
// [Reconcile] takes one plan through its phases and applies its steps. [Sweep]
// keeps the plans of a namespace in order. All are functions of their input: no
// client, no clock, no memory.
//
//	            Create (Manual)              approved
//	(absent) ------------------> RequiresApproval -----> Installing <---- Create (Automatic)
//	                                    ^  approval withdrawn |  |
//	                                    |  before anything    |  |
//	                                    |  was applied        |  |
//	                                    +---------------------+  |
//	                                                             |-- every step observed ------> Complete
//	                                                             |-- refused, or too long -----> Failed
//	                                                             ^-- cause gone, rights given,-----+
//	                                                                 trouble is over
//
// A plan that no Subscription refers to any more, as they refer to a later one, goes
// from where it waits to Failed, reason Superseded, and is never executed.
//
// What a plan's status says was observed. startTime is stored in a round of its
// own before the first object of a step is written, a step is Created or Present
// once its object was seen, and Complete is written in a round that writes
// nothing else. So any action may be lost, repeated or run by two controllers:
// the next round sees what is there and goes on.
//
// A round applies either everything that is possible or, when one step is
// refused, nothing: an upgrade that cannot finish does not begin.
//
// # Existing custom resources
//
// A step may give a CustomResourceDefinition schemas that custom resources break.
// SchemaChanges asks who must be judged, module installplan/crvalidation does,
// and Reconcile refuses the plan for those that only the new schema finds wrong.
//
// # Bundles in images
//
// A resolution may know a bundle by its image alone. Create then asks for a
// lookup and makes no plan. Unpack answers it round by round: a ConfigMap, who may
// write it, a Job that does, and in the end the bundle. The steps of the plan
// refer to the ConfigMap and to the digest of what it held, so that nothing else
// than what was planned, and perhaps approved, is installed. What was lost since is
// in LostBundles, and Unpack brings it back.
//
//	lookup --> ConfigMap --> Role, ServiceAccount, RoleBinding --> Job --+--> bundle
//	                                                               ^     |
//	                                                               +-----+ failed, after the retry interval
package installplan
