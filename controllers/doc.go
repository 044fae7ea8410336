// SPDX-License-Identifier: Apache-2.0

// Package controllers joins the reconcile packages to controllers that any framework can run: what each one gathers,
// what it remembers, and what becomes of the requests that come out of it.
//
//	              catalogs changed
//	catalog ───────────────────────┐
//	                               v            olmcore.Resolution
//	watch of InstallPlans ──> subscription <──────────────────────── Options.Resolve
//	                               │
//	                               v
//	             create.Plan, unpack.Bundle
//	                               │ a plan, by its object
//	                               v
//	                          installplan ──> csv, operatorgroup, operatorcondition ──> copies, olmconfig, sweep
//
// New makes a Set, whose Runners read with an olmcore.Reader and act with an olmcore.Executor. A framework supplies
// these two, watches of the kinds in Options.Watched, and for each Runner a queue that Changed fills and Run empties; a
// program without watches calls Pass. A cache keeps of each object what Transform returns. The memory of a Set only
// makes it cheaper and its reports more exact: it may be lost at any moment.
package controllers
