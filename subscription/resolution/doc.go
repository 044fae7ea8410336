// SPDX-License-Identifier: Apache-2.0

// Package resolution decides which operators the Subscriptions of a namespace resolve to. It returns the operators to
// install or upgrade next, the dependencies to install with them, and the reasons if there is no solution.
//
//	packages, _, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	content, _ := resolution.Build(packages)
//	result := resolution.Resolve(resolution.Input{
//		Namespace: "operators", Subscriptions: subscriptions, CSVs: csvs, OperatorGroups: groups,
//		Catalogs: []resolution.CatalogState{{Key: key, Content: content}},
//	})
//
// [Resolve] is a pure function. [Build] indexes a catalog once. The [Catalog] never changes, so concurrent calls may
// share it without locks. A [Result] embeds the [olmcore.Resolution] that packages subscription and installplan act
// on. [Explain] explains for any bundle why it is or is not chosen.
//
// # The rules
//
//	Subscription ──needs one of──▶ entries of its channel, head first, or its installed operator
//	entry ──needs one of, for each requirement──▶ entries of any visible catalog
//	entry ──excludes──▶ other entries of its package, of its APIs, and the CSV that it replaces
//	existing CSV without Subscription ──must stay
//
// An entry is a bundle in a channel of a catalog. Resolve satisfies the rules breadth first: existing operators, then
// Subscriptions from the oldest to the youngest, then the requirements of the selected entries. For each rule it
// selects the first candidate that is possible, and it returns the first solution in that order. So no Subscription
// gets less than its best candidate because of a dependency or a younger Subscription, and equal inputs, in any
// order, give equal results.
//
// If a rule cannot be satisfied, the search records the selections that prevent it and backtracks to the latest of
// them. So the work grows with the size of the problem, and not with the number of possible combinations.
// [Policy].MaxSteps limits each search. If the limit is reached because of one Subscription, only that Subscription
// is left out, and its [Core] reports what was tried.
//
// # When there is no solution
//
// A failed search returns the rules that caused the failure. They are reduced to a [Core], a set of rules of which
// none can be left out. Each Core has OLM's message for these rules, a readable summary, and remedies. Most remedies
// were verified: the Subscriptions can be resolved with them. The Subscriptions that a Core names are left out and
// keep their installed operators. The others are resolved without them, unless [Policy].AllOrNothing selects OLM's
// behaviour. A Subscription that gets less than its best candidate is in HeldBack, with the reason.
//
// # Version ranges, simulated changes and upgrade paths
//
// The annotation [AnnotationVersionRange] of a Subscription, or [Input].Pins, restricts its operator to a range of
// versions. [WhatIf] resolves the namespace before and after a [Change] and returns the differences. Package
// resolution/path finds the upgrade path to a version, hop by hop.
//
// # When to resolve again
//
// A Result is valid until its input changes. Its field Observed records the Subscriptions for package subscription.
// For the rest, keep [Input.Fingerprint] with the Result, gather the Input after every change in the namespace, and
// discard the Result if the fingerprint differs. Otherwise an upgrade that waits for the removal of the old operator
// would never continue.
//
// Equal fingerprints mean equal Results with equal reasons. If a catalog is updated, the fingerprint changes only if
// the update is relevant to the namespace. For each catalog, the fingerprint covers
//
//   - the packages that the Subscriptions name, and every package with a bundle that may meet a requirement of a bundle
//     of these or of an existing operator, recursively. It also covers that no such package exists yet;
//   - the whole catalog, if a Subscription names a package that the catalog does not have, because the remedies propose
//     other packages, or if a requirement cannot be looked up in an index: CEL, "any" and "not" constraints;
//   - all catalogs completely, if one invalid part of any catalog stops the namespace because of the policy;
//   - its priority, whether it can be read, whether it is stale, and whether it is empty.
//
// The fingerprint does not cover the Stats. It also does not cover what [Explain] returns for a bundle that is
// unrelated to the Result.
//
// # How the packages fit together
//
//	fbc.Read, fbc.Load ─▶ []Package ─▶ Build ─▶ *Catalog ─┐
//	Subscriptions, CSVs, OperatorGroups ──────────────────┴▶ Input ─▶ Resolve ─▶ Result
//
//	internal/model     the content of catalogs, parsed and indexed, and the problem of one call: candidates, providers
//	internal/search    the search and the minimal contradictions
//	internal/explain   why there is no solution, reasons for HeldBack, remedies
//	resolve.go serve.go solution.go generate.go   Resolve itself and its Result
package resolution
