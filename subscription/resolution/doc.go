// SPDX-License-Identifier: Apache-2.0

// Package resolution decides which operators a namespace's Subscriptions lead to: what is installed or upgraded next,
// what dependencies come along, and why something cannot be.
//
//	packages, _, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	content, _ := resolution.Build(packages)
//	result := resolution.Resolve(resolution.Input{
//		Namespace: "operators", Subscriptions: subscriptions, CSVs: csvs, OperatorGroups: groups,
//		Catalogs: []resolution.CatalogState{{Key: key, Content: content}},
//	})
//
// [Resolve] is a pure function. [Build] indexes a catalog once; the [Catalog] never changes and serves any number of
// calls at the same time, without locks. A [Result] embeds the [olmcore.Resolution] that packages subscription and
// installplan act on. [Explain] says of any bundle why it is or is not chosen.
//
// # What is solved
//
//	Subscription ──needs one of──▶ entries of its channel, head first, or what it has
//	entry ──needs one of, for each requirement──▶ entries of any visible catalog
//	entry ──excludes──▶ other entries of its package, of its APIs, and what it replaces
//	existing CSV without Subscription ──must stay
//
// An entry is a bundle in a channel of a catalog. Demands are met breadth first: existing operators, then
// Subscriptions from the oldest to the youngest, then what the selected entries require, each by its first candidate
// that is possible. The result is the first solution in that order: no Subscription gets less than its best candidate
// for the sake of a dependency or of a younger Subscription. So equal inputs, in whatever order, give equal results.
//
// When a demand cannot be met, what stands in its way is remembered, and the search goes back to the latest selection
// that takes part in it: the work grows with the problem, not with what could be combined. [Policy].MaxSteps bounds
// the work on each Subscription. One with which the others cannot be decided within that is left out alone, and its
// [Core] says what was tried.
//
// # When there is no solution
//
// The search that failed names the rules that it failed by. They are reduced to a [Core]: rules of which none can be
// left out. Each Core carries OLM's message for these rules, a sentence for people, and remedies: changes with which
// the Subscriptions were resolved before they are offered. The Subscriptions that it names are left out, what they
// have stays, and the others are resolved without them, unless [Policy].AllOrNothing asks for OLM's way. A
// Subscription that gets less than its best candidate is in HeldBack, with the reason.
//
// # Version ranges, what if, and the way to a version
//
// The annotation [AnnotationVersionRange] of a Subscription, or [Input].Pins, hold its operator inside a range of
// versions. [WhatIf] answers for the namespace as it is and with a [Change], and says how the answers differ. Package
// resolution/path finds the way to a version, hop by hop.
//
// # When to ask again
//
// An answer holds until what it was computed from changes. Its Observed tells package subscription about the
// Subscriptions; for the rest keep [Input.Fingerprint] with the answer, gather the Input whenever something of the
// namespace changed, and drop the answer when the fingerprint is another one. An upgrade that waits for the old
// operator to go would wait for ever otherwise.
//
// A catalog that is renewed costs what it concerns: an equal fingerprint means an equal answer with equal reasons, and
// what is published elsewhere leaves the fingerprint as it is. Of each catalog it takes in
//
//   - the packages that the Subscriptions follow, and those with a bundle that may meet a requirement of any bundle of
//     these, or of an existing operator, and so on; so also that there is none yet;
//   - all of it, where a Subscription follows a package that it does not have, since others are proposed, and where a
//     requirement is met by what no index tells: CEL, "any" and "not" constraints;
//   - all of every catalog, where the policy lets one piece anywhere stop the namespace;
//   - its priority, whether it can be read and is stale, and whether it is empty.
//
// Statistics of the work are not part of it, nor is what [Explain] says of a bundle that the answer has nothing to do
// with.
//
// # How the pieces fit
//
//	fbc.Read, fbc.Load ─▶ []Package ─▶ Build ─▶ *Catalog ─┐
//	Subscriptions, CSVs, OperatorGroups ──────────────────┴▶ Input ─▶ Resolve ─▶ Result
//
//	internal/content   what a catalog says, parsed and indexed; when is it the same
//	internal/model     one call's view of its input: candidates, requirements, who provides what
//	internal/search    the search, minimal contradictions
//	internal/explain   words, reasons of what is held back, remedies
//	resolve.go serve.go solution.go generate.go   the whole, and what to do
package resolution
