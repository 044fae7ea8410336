// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Input is the input of Resolve: one namespace and the catalogs that are visible to it. Resolve does not modify it.
// The order of the slices does not matter. Nil elements and objects of other namespaces are ignored.
type Input struct {
	// Namespace is the namespace to resolve. CatalogSources in GlobalCatalogNamespace are visible to every namespace.
	// GlobalCatalogNamespace may be empty or equal to Namespace.
	Namespace, GlobalCatalogNamespace string
	// OperatorGroups, Subscriptions and CSVs contain all objects of these kinds in the namespace, including copied
	// CSVs.
	OperatorGroups []*operatorsv1.OperatorGroup
	Subscriptions  []*v1alpha1.Subscription
	CSVs           []*v1alpha1.ClusterServiceVersion
	// Catalogs contains one entry for each CatalogSource of both namespaces.
	Catalogs []CatalogState
	// InFlight maps the name of a Subscription to the bundle of its InstallPlan in progress. The InstallPlan must not have
	// failed. The Subscription keeps that bundle while the bundle is a candidate.
	InFlight map[string]string
	// Pins contains version ranges of Subscriptions, in addition to their annotation AnnotationVersionRange.
	Pins []Pin
	// Exclude checks each catalog entry before the entry is selected. If Exclude is nil, no entry is excluded.
	Exclude Excluder
	// CEL compiles the rules of CEL constraints. If CEL is nil, a bundle with such a constraint is never chosen.
	CEL    CELCompiler
	Policy Policy
}

// CatalogState contains the content and the state of one CatalogSource.
type CatalogState struct {
	// Key is the namespace and name of the CatalogSource. Priority is the spec.priority of the CatalogSource.
	Key      types.NamespacedName
	Priority int
	// Content is the content of the catalog. It is nil if the catalog is not available.
	Content *Catalog
	// Stale means that Content is the result of an earlier read, because the latest read failed.
	Stale bool
	// Problem is the reason why Content is nil or stale.
	Problem string
}

// Excluder excludes catalog entries, for example because of the version of the platform. An Excluder must always return
// the same result for the same entry.
type Excluder interface {
	// Exclude returns why the entry must not be selected, or "" if it may be selected.
	Exclude(candidate olmcore.Operator) (reason string)
}

// CELCompiler compiles CEL rules. Package resolution/cel implements it in a separate Go module, so that package
// resolution does not depend on a CEL library.
type CELCompiler interface {
	Compile(rule string) (CELProgram, error)
}

// CELProgram is a compiled CEL rule of type bool.
type CELProgram interface {
	// Satisfied evaluates the rule over the variable "properties": a list of maps with the keys type and value.
	// It returns false if the evaluation fails.
	Satisfied(properties []olmcore.Property) bool
}

// Policy selects between behaviours. The zero value is the recommended policy. UpstreamPolicy returns the policy of
// OLM.
type Policy struct {
	// FailOnUnavailableCatalog stops the resolution of the namespace if a visible catalog has no content. Otherwise, the
	// missing content affects only the Subscriptions that may depend on that catalog.
	FailOnUnavailableCatalog bool
	// RefuseStaleContent ignores stale content, as if the catalog had no content.
	RefuseStaleContent bool
	// FailOnMissingCatalog reports a failure if the catalog, package or channel of an installed operator no longer
	// exists. Otherwise, the operator remains installed and is held back.
	FailOnMissingCatalog bool
	// FailOnMalformedChannel stops the resolution of the namespace if a channel that may be relevant is invalid.
	// FailOnInvalidBundle does the same for a bundle. If they are false, an invalid channel or bundle is ignored.
	FailOnMalformedChannel, FailOnInvalidBundle bool
	// AllowBackwardSkipRange allows a skipRange to lead to the installed version itself, or to an older one.
	AllowBackwardSkipRange bool
	// TransitionAsFreestanding stops the resolution of all Subscriptions of the namespace while one of its operators is
	// upgraded. It treats the predecessor in the upgrade as an operator without Subscription. If it is false, only the
	// Subscription of the upgraded operator waits for the upgrade.
	TransitionAsFreestanding bool
	// AllOrNothing stops the resolution of the namespace if one Subscription has no solution.
	AllOrNothing bool
	// IndependentPackageVersion allows the name and the version of a required package to be in two different
	// properties of a bundle.
	IndependentPackageVersion bool
	// AdoptSameBundle allows a Subscription without an operator to adopt an existing CSV. The CSV must match an entry of
	// the Subscription's channel, and no Subscription may name the CSV.
	AdoptSameBundle bool
	// OmitHeldBack leaves Result.HeldBack empty, which saves time.
	OmitHeldBack bool
	// MaxSteps limits the number of steps of each search. One step is about the work to examine one candidate. A million
	// steps take about half a second. If the search for all Subscriptions together reaches the limit, the search adds the
	// Subscriptions one after the other. A Subscription fails if it reaches the limit then. The more Subscriptions there
	// are, the lower is the limit for each of them. The searches for reasons have separate limits. 0 means
	// DefaultMaxSteps, and a negative value means no limit.
	MaxSteps int
	// MessageLimit limits the length of failure messages in bytes. 0 means DefaultMessageLimit, and a negative value
	// means no limit.
	MessageLimit int
}

// These are the defaults of Policy.
const (
	DefaultMaxSteps     = 1_000_000
	DefaultMessageLimit = 8 << 10
)

// Steps returns MaxSteps, or DefaultMaxSteps if MaxSteps is 0.
func (p Policy) Steps() int { return cmp.Or(p.MaxSteps, DefaultMaxSteps) }

// MessageBytes returns MessageLimit, or DefaultMessageLimit if MessageLimit is 0.
func (p Policy) MessageBytes() int { return cmp.Or(p.MessageLimit, DefaultMessageLimit) }
