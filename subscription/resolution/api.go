// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// These types describe the content of a catalog as its author wrote it.
type (
	// Package is one package of a catalog. It is the input of Build and the output of fbc.Load. Its content may be
	// invalid.
	Package = model.Package
	// Channel is one channel of a Package: a graph of upgrades.
	Channel = model.Channel
	// ChannelEntry is the position of a bundle in a Channel.
	ChannelEntry = model.ChannelEntry
	// Bundle is one version of an operator.
	Bundle = model.Bundle
	// RelatedImage is an image that a Bundle uses.
	RelatedImage = model.RelatedImage
	// Deprecation is the deprecation message of a package, a channel or a bundle.
	Deprecation = model.Deprecation
	// Catalog is the indexed content of one catalog, as Resolve needs it. It never changes, so concurrent calls may
	// share it.
	Catalog = model.Catalog
)

// Build indexes the content of one catalog. Build ignores invalid content or marks it as invalid, and the rest of the
// catalog stays usable. A Diagnostic reports each problem; its Path names the package, and usually the channel or
// bundle. Build never panics. The caller must not change the packages after the call, because the Catalog references
// them.
//
// Source: operator-registry alpha/declcfg, ConvertToModel, and alpha/model, Validate. Differs: OLM rejects a catalog
// that contains an invalid package. This library ignores only the invalid content.
func Build(packages []Package) (*Catalog, []olmcore.Diagnostic) { return model.Build(packages) }

// These types are the input of Resolve.
type (
	// Input is the input of Resolve: one namespace and the catalogs that are visible to it. Resolve does not modify
	// it.
	Input = model.Input
	// CatalogState is the content and the state of one CatalogSource.
	CatalogState = model.CatalogState
	// Excluder excludes catalog entries, for example because of a policy of the caller.
	Excluder = model.Excluder
	// CELCompiler compiles CEL rules.
	CELCompiler = model.CELCompiler
	// CELProgram is a compiled CEL rule.
	CELProgram = model.CELProgram
	// Pin restricts the operator of a Subscription to a version range.
	Pin = model.Pin
	// Policy selects between behaviours. The zero value is the recommended policy.
	Policy = model.Policy
	// Change is a change of a namespace. WhatIf simulates Changes, and a Remedy proposes them.
	Change = model.Change
)

// These types are the parts of a Result besides the Resolution.
type (
	// HeldBack explains why a Subscription did not get its best candidate.
	HeldBack = model.HeldBack
	// HeldBackCode is the kind of reason in a HeldBack.
	HeldBackCode = model.HeldBackCode
	// Core is one independent reason why there is no solution: a minimal set of rules that contradict each other.
	Core = model.Core
	// Rule is one rule that a solution must satisfy.
	Rule = model.Rule
	// RuleKind is the kind of a Rule.
	RuleKind = model.RuleKind
	// Remedy is a change of the input with which the Subscriptions would be resolved.
	Remedy = model.Remedy
	// RemedyCode is the kind of a Remedy.
	RemedyCode = model.RemedyCode
	// Explanation explains why a bundle is or is not chosen.
	Explanation = model.Explanation
	// Stats contains the amount of work of a resolution. Equal inputs give equal Stats.
	Stats = model.Stats
)

// AnnotationVersionRange is an annotation of a Subscription. It restricts the operator to a version range, like a Pin.
const AnnotationVersionRange = model.AnnotationVersionRange

// These are the defaults of Policy.
const (
	DefaultMaxSteps     = model.DefaultMaxSteps
	DefaultMessageLimit = model.DefaultMessageLimit
)

// UpstreamPolicy returns the Policy that is closest to the behaviour of OLM.
func UpstreamPolicy() Policy {
	return Policy{
		FailOnUnavailableCatalog: true, RefuseStaleContent: true, FailOnMissingCatalog: true,
		FailOnMalformedChannel: true, FailOnInvalidBundle: true, AllowBackwardSkipRange: true,
		TransitionAsFreestanding: true, AllOrNothing: true, IndependentPackageVersion: true,
		OmitHeldBack: true, MaxSteps: DefaultMaxSteps, MessageLimit: -1,
	}
}

// Outcome is the overall result of resolving a namespace.
type Outcome string

// These are the possible Outcomes.
const (
	// Resolved means that the Result installs or upgrades an operator, or changes the status of a Subscription.
	Resolved Outcome = "Resolved"
	// Unchanged means that there is nothing to do.
	Unchanged Outcome = "Unchanged"
	// Unsatisfiable means that the rules contradict each other. The Outcome stays the same until the input changes.
	Unsatisfiable Outcome = "Unsatisfiable"
	// Failed means that invalid or missing input prevents the resolution of the whole namespace, or that the limit of
	// steps was reached.
	Failed Outcome = "Failed"
	// Blocked means that the namespace cannot be resolved because it does not have exactly one OperatorGroup.
	Blocked Outcome = "Blocked"
)

// Result is the result of Resolve. Other packages carry out the embedded Resolution. The other fields explain the
// Resolution.
type Result struct {
	olmcore.Resolution
	Outcome Outcome
	// Targets contains the operator that each Subscription resolves to, sorted by Subscription.
	Targets []Target
	// HeldBack contains the Subscriptions that did not get their best candidate, sorted by Subscription.
	HeldBack []HeldBack
	// Cores contains the independent reasons for a failure, in the order of the Subscriptions. If Policy.AllOrNothing is
	// false, the other Subscriptions may still be resolved.
	Cores       []Core
	Diagnostics []olmcore.Diagnostic
	Stats       Stats
}

// CoresFor returns the Cores that affect a Subscription: the Cores that name the Subscription, and the Cores that name
// no Subscription.
func (r Result) CoresFor(subscription string) []Core { return model.CoresFor(r.Cores, subscription) }
