// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/content"
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// What a catalog holds, as its author wrote it.
type (
	// Package is one package of a catalog: the input of Build, the output of fbc.Load. Nothing in it needs to be valid.
	Package = content.Package
	// Channel is one stream of upgrades of a Package, ChannelEntry a bundle's place in it.
	Channel      = content.Channel
	ChannelEntry = content.ChannelEntry
	// Bundle is one version of an operator, RelatedImage an image that it uses.
	Bundle       = content.Bundle
	RelatedImage = content.RelatedImage
	// Deprecation is a message about a package, a channel or a bundle.
	Deprecation = content.Deprecation
	// Catalog is the content of one catalog, indexed for Resolve. It never changes: any number of calls may use it at
	// the same time.
	Catalog = content.Catalog
)

// Build indexes the content of one catalog. What is unusable is left out or marked, with a Diagnostic whose Path
// names package, channel and bundle, and the rest works. Build panics on no input. It keeps references into packages,
// which must not be changed any more.
//
// Source: operator-registry alpha/declcfg, ConvertToModel, and alpha/model, Validate.
// Differs: one broken package does not take the whole catalog down.
func Build(packages []Package) (*Catalog, []olmcore.Diagnostic) { return content.Build(packages) }

// What Resolve looks at.
type (
	// Input is everything Resolve looks at: one namespace and the catalogs that it can see. Resolve writes to none of it.
	Input = model.Input
	// CatalogState is what is known of one CatalogSource.
	CatalogState = model.CatalogState
	// Excluder forbids catalog entries for reasons of its own.
	Excluder = model.Excluder
	// CELCompiler compiles CEL rules, CELProgram is a compiled one.
	CELCompiler = model.CELCompiler
	CELProgram  = model.CELProgram
	// Pin holds a Subscription inside a version range.
	Pin = model.Pin
	// Policy selects behaviour. The zero value is what we recommend.
	Policy = model.Policy
	// Change is a change of a namespace that WhatIf tries, and that a Remedy proposes.
	Change = model.Change
)

// What a Result says beside the Resolution.
type (
	// Target is where one Subscription ends.
	Target = explain.Target
	// HeldBack says why a Subscription did not get its best candidate, HeldBackCode is the kind of a reason.
	HeldBack     = explain.HeldBack
	HeldBackCode = model.HeldBackCode
	// Core is one reason why there is no solution: rules that contradict each other.
	Core = explain.Core
	// Rule is one demand, RuleKind says of what kind.
	Rule     = explain.Rule
	RuleKind = model.RuleKind
	// Remedy is a hint at what would help, RemedyCode its kind.
	Remedy     = explain.Remedy
	RemedyCode = explain.RemedyCode
	// Explanation says why a bundle is or is not chosen.
	Explanation = explain.Explanation
	// Stats are deterministic measures of the work done.
	Stats = model.Stats
)

// AnnotationVersionRange is on Subscriptions and holds their operators inside a version range, as a Pin does.
const AnnotationVersionRange = model.AnnotationVersionRange

// Defaults of Policy.
const (
	DefaultMaxSteps     = model.DefaultMaxSteps
	DefaultMessageLimit = model.DefaultMessageLimit
)

// UpstreamPolicy returns the policy that comes closest to OLM.
func UpstreamPolicy() Policy {
	return Policy{
		FailOnUnavailableCatalog: true, RefuseStaleContent: true, FailOnMissingCatalog: true,
		FailOnMalformedChannel: true, FailOnInvalidBundle: true, AllowBackwardSkipRange: true,
		TransitionAsFreestanding: true, AllOrNothing: true, IndependentPackageVersion: true,
		OmitHeldBack: true, MaxSteps: DefaultMaxSteps, MessageLimit: -1,
	}
}

// Outcome is the verdict on a namespace.
type Outcome string

// Outcomes.
const (
	// Resolved: there is something to install, to upgrade or to write down.
	Resolved Outcome = "Resolved"
	// Unchanged: all is well as it is.
	Unchanged Outcome = "Unchanged"
	// Unsatisfiable: what is asked for contradicts itself; it stays so until the input changes.
	Unsatisfiable Outcome = "Unsatisfiable"
	// Failed: something in the input stops the namespace, or the step budget ran out.
	Failed Outcome = "Failed"
	// Blocked: the namespace cannot be resolved at all, for want of exactly one OperatorGroup.
	Blocked Outcome = "Blocked"
)

// Result is the answer of Resolve. The embedded Resolution is what other packages act on; the rest explains it.
type Result struct {
	olmcore.Resolution
	Outcome Outcome
	// Targets says where each Subscription ends, sorted by name.
	Targets []Target
	// HeldBack are the Subscriptions whose best candidate was not taken, sorted by name.
	HeldBack []HeldBack
	// Cores are the independent reasons of a failure, in the order of the Subscriptions. With Policy.AllOrNothing off
	// there may be some beside a solution for the other Subscriptions.
	Cores       []Core
	Diagnostics []olmcore.Diagnostic
	Stats       Stats
}

// CoresFor returns the reasons that name a Subscription, and those that name none and so stop all of them.
func (r Result) CoresFor(subscription string) []Core { return explain.CoresFor(r.Cores, subscription) }
