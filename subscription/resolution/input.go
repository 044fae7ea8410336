// SPDX-License-Identifier: Apache-2.0

package resolution

import "github.com/olmcore/olm/subscription/resolution/internal/model"

type (
	// Input is everything Resolve looks at: one namespace and the catalogs that it can see. Resolve writes to none of
	// it.
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
)

// AnnotationVersionRange is on Subscriptions and holds their operators inside a version range, as a Pin does.
const AnnotationVersionRange = model.AnnotationVersionRange

// Defaults of Policy.
const (
	DefaultMaxSteps     = model.DefaultMaxSteps
	DefaultMessageLimit = model.DefaultMessageLimit
)

// DefaultPolicy returns the recommended policy with all defaults spelt out.
func DefaultPolicy() Policy {
	return Policy{MaxSteps: DefaultMaxSteps, MessageLimit: DefaultMessageLimit}
}

// UpstreamPolicy returns the policy that comes closest to OLM.
func UpstreamPolicy() Policy {
	return Policy{
		FailOnUnavailableCatalog: true, RefuseStaleContent: true, FailOnMissingCatalog: true,
		FailOnMalformedChannel: true, FailOnInvalidBundle: true, AllowBackwardSkipRange: true,
		TransitionAsFreestanding: true, AllOrNothing: true, IndependentPackageVersion: true,
		OmitHeldBack: true, MaxSteps: DefaultMaxSteps, MessageLimit: -1,
	}
}
