// SPDX-License-Identifier: Apache-2.0

// Package controller contains the type Controller and the loop that runs one: what it means to reconcile a key is
// written here once, for programs, simulations and tests.
//
// A [Controller] is a [ReconcileFunc] with the objects that it reconciles. A [Runner] runs it over a Reader and an
// Executor, one key at a time: it reconciles the key, runs the actions, remembers the results for the next reconcile of
// the key, and returns when that is due.
//
//	Controller.Changed or Keys
//	        │ keys
//	        v
//	Runner.Run ──> Reconcile ──> olmcore.Result ──> Executor, with AfterAction(Event) for each action
//	        ^                                           │
//	        └──── last results, delay ──────────────────┘   then OnReport(Report)
//
// A program that watches puts the keys of [Controller.Changed] into a queue and calls [Runner.Run] for each. A program
// without watches calls [Pass]. The same Controller runs in a fake.Driver, and in the histories of package chaos.
package controller
