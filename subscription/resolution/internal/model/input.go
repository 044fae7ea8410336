// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// Input is everything Resolve looks at: one namespace and the catalogs that it can see. Resolve writes to none of it.
// The order of the slices does not matter, nil elements and objects of other namespaces are skipped.
type Input struct {
	// Namespace is what to resolve; GlobalCatalogNamespace holds the CatalogSources that every namespace sees. They may
	// be equal; the latter may be empty.
	Namespace, GlobalCatalogNamespace string
	// OperatorGroups, Subscriptions and CSVs of the namespace, all of them, copied CSVs included.
	OperatorGroups []*operatorsv1.OperatorGroup
	Subscriptions  []*v1alpha1.Subscription
	CSVs           []*v1alpha1.ClusterServiceVersion
	// Catalogs has one entry for each CatalogSource of both namespaces.
	Catalogs []CatalogState
	// InFlight names, by Subscription, the bundle whose InstallPlan is on its way and has not failed; the Subscription
	// keeps that bundle while it still may.
	InFlight map[string]string
	// Pins hold Subscriptions inside version ranges, beside the annotation AnnotationVersionRange of their own.
	Pins []Pin
	// Exclude is asked about each catalog entry before it is selected; nil excludes nothing.
	Exclude Excluder
	// CEL compiles the rules of CEL constraints. Without it a bundle with such a constraint is never chosen.
	CEL    CELCompiler
	Policy Policy
}

// CatalogState is what is known of one CatalogSource.
type CatalogState struct {
	// Key is the CatalogSource's namespace and name, Priority its spec.priority.
	Key      types.NamespacedName
	Priority int
	// Content is its content, nil when it is not available.
	Content *content.Catalog
	// Stale: the content is that of an earlier successful read.
	Stale bool
	// Problem says why Content is nil or stale, for people.
	Problem string
}

// Excluder forbids catalog entries for reasons of its own, such as the version of the platform. It must answer the same
// for the same entry.
type Excluder interface {
	// Exclude returns why the entry must not be selected, "" when it may be.
	Exclude(candidate olmcore.Operator) (reason string)
}

// CELCompiler compiles CEL rules. Package resolution has no implementation: it would bring a CEL library to everyone.
type CELCompiler interface {
	Compile(rule string) (CELProgram, error)
}

// CELProgram is a compiled CEL rule of type bool.
type CELProgram interface {
	// Satisfied evaluates the rule over the variable "properties": a list of maps with the keys type and value. Errors
	// count as not satisfied.
	Satisfied(properties []olmcore.Property) bool
}

// Policy selects behaviour. The zero value is what we recommend; UpstreamPolicy is what OLM does.
type Policy struct {
	// FailOnUnavailableCatalog: a visible catalog without content stops the whole namespace. Otherwise only
	// Subscriptions that it could affect.
	FailOnUnavailableCatalog bool
	// RefuseStaleContent: stale content counts as no content.
	RefuseStaleContent bool
	// FailOnMissingCatalog: an installed operator whose catalog, package or channel is gone has no solution. Otherwise
	// it stays as it is and is held back.
	FailOnMissingCatalog bool
	// FailOnMalformedChannel and FailOnInvalidBundle: one that could be considered stops the whole namespace. Otherwise
	// it is left out.
	FailOnMalformedChannel, FailOnInvalidBundle bool
	// AllowBackwardSkipRange: a skipRange may lead to the installed version itself, or to an older one.
	AllowBackwardSkipRange bool
	// TransitionAsFreestanding: the old CSV of an upgrade in progress counts as an operator of its own, so that nothing
	// can be resolved meanwhile. Otherwise the Subscription stays where it is until the upgrade is done.
	TransitionAsFreestanding bool
	// AllOrNothing: one Subscription without a solution stops all others.
	AllOrNothing bool
	// IndependentPackageVersion: name and version of a required package may come from two different properties of a
	// bundle.
	IndependentPackageVersion bool
	// AdoptSameBundle: a Subscription without an operator may take over an existing CSV that no Subscription names and
	// that equals an entry of its channel.
	AdoptSameBundle bool
	// OmitHeldBack: do not look for the reasons of Result.HeldBack.
	OmitHeldBack bool
	// MaxSteps bounds the work on each Subscription in steps: looks at a candidate, or as much work; a million take
	// about half a second. Reasons have a budget of their own of that size. 0 is DefaultMaxSteps, negative is no bound.
	MaxSteps int
	// MessageLimit bounds failure messages in bytes. 0 is DefaultMessageLimit, negative is no bound.
	MessageLimit int
}

// Defaults of Policy.
const (
	DefaultMaxSteps     = 1_000_000
	DefaultMessageLimit = 8 << 10
)

// Steps returns the bound that MaxSteps stands for.
func (p Policy) Steps() int { return cmp.Or(p.MaxSteps, DefaultMaxSteps) }

// MessageBytes returns the bound that MessageLimit stands for.
func (p Policy) MessageBytes() int { return cmp.Or(p.MessageLimit, DefaultMessageLimit) }
