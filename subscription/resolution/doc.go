// SPDX-License-Identifier: Apache-2.0

// Package resolution decides which operators a namespace's Subscriptions lead
// to: what is installed or upgraded next, what dependencies come along, and why
// something cannot be.
//
//	packages, _, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	content, _ := resolution.Build(packages)
//	result := resolution.Resolve(resolution.Input{
//		Namespace: "operators", Subscriptions: subscriptions, CSVs: csvs, OperatorGroups: groups,
//		Catalogs: []resolution.CatalogState{{Key: key, Content: content}},
//	})
//
// [Resolve] is a pure function. [Build] indexes a catalog once; the [Catalog] never changes
// and serves any number of calls at the same time, without locks. A [Result] embeds
// the [olmcore.Resolution] that packages subscription and installplan act on.
// [Explain] says of any bundle why it is or is not chosen.
//
// # What is solved
//
//	Subscription ──needs one of──▶ entries of its channel, head first, or what it has
//	entry ──needs one of, for each requirement──▶ entries of any visible catalog
//	entry ──excludes──▶ other entries of its package, of its APIs, and what it replaces
//	existing CSV without Subscription ──must stay
//
// An entry is a bundle in a channel of a catalog. Demands are met breadth first:
// existing operators, then Subscriptions from the oldest to the youngest, then what
// the selected entries require, each by its first candidate that is possible.
// The result is the first solution in that order: no Subscription gets less than
// its best candidate for the sake of a dependency or of a younger Subscription. So
// equal inputs, in whatever order, give equal results.
//
// The search (search.go) goes back, when a demand cannot be met, to the latest
// selection that takes part in the conflict, and counts each candidate that it
// looks at: [Policy].MaxSteps bounds it, since there are catalogs on which any such
// search is exponential. Beyond the bound the Outcome is [Failed] and says so.
//
// # When there is no solution
//
// The search that failed names the rules that it failed by. They are reduced to a
// [Core]: rules of which none can be left out. Each Core carries OLM's message for
// these rules, a sentence for people, and hints at what would help. The Subscriptions
// that it names are left out, what they have stays, and the others are resolved
// without them, unless [Policy].AllOrNothing asks for OLM's way. A Subscription
// that gets less than its best candidate is in HeldBack, with the reason.
//
// # Version ranges, what if, and the way to a version
//
// The annotation [AnnotationVersionRange] of a Subscription, or [Input].Pins, hold its
// operator inside a range of versions. [WhatIf] answers for the namespace as it is and
// with a [Change], and says how the answers differ. Package resolution/path finds the
// way to a version, hop by hop.
//
// # When to ask again
//
// An answer holds until what it was computed from changes. Its Observed tells
// package subscription about the Subscriptions; for the rest keep
// [Input.Fingerprint] with the answer, gather the Input whenever something of the
// namespace changed, and drop the answer when the fingerprint is another one. An
// upgrade that waits for the old operator to go would wait for ever otherwise.
//
// # How the pieces fit
//
//	fbc.Read, fbc.Load ─▶ []Package ─▶ Build ─▶ *Catalog ─┐
//	Subscriptions, CSVs, OperatorGroups ──────────────────┴▶ Input ─▶ Resolve ─▶ Result
//
//	content.go property.go require.go   what a catalog says, and its parsed form
//	build.go chain.go catalog.go        the index
//	digest.go                           when is it the same
//	problem.go existing.go annotation.go transition.go candidates.go   one call's view of its input
//	graph.go provide.go search.go admit.go   candidates of requirements, the search
//	core.go rules.go text.go summary.go heldback.go explain.go   reasons
//	resolve.go isolate.go solution.go generate.go   the whole, and what to do
package resolution
