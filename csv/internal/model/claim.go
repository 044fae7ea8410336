// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
)

// IsShutOut reports whether a CSV is Failed because of a conflict about the APIs that it provides. The operator of such
// a CSV was stopped. IsShutOut returns false for other problems with OperatorGroups, because then the operator may
// still run.
func IsShutOut(c *CSV) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && (c.Status.Reason == v1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
		c.Status.Reason == v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}

// Claim contains the result of comparing the APIs of a CSV with the APIs that OperatorGroups list.
type Claim struct {
	// ListedAPIs is true if the CSV's own OperatorGroup lists all APIs of the CSV.
	Listed bool
	// Conflict is another OperatorGroup that lists an API of the CSV, and watches a namespace that the CSV's OperatorGroup
	// watches too. It is nil if there is none. Contested is the API that both provide.
	Conflict  *operatorsv1.OperatorGroup
	Contested API
	// Lost is true if the OperatorGroup in Conflict keeps the contested API.
	Lost bool
}

// ClaimOf compares the APIs that a CSV provides with the APIs that OperatorGroups list. own is the OperatorGroup of the
// CSV, and others contains further OperatorGroups. providers contains CSVs of other namespaces. neighbours contains
// CSVs of the CSV's namespace.
//
// If there are several conflicts, ClaimOf returns one for which Lost is true, if there is one. Among equal conflicts,
// it returns the one with the first OperatorGroup by namespace and name.
func ClaimOf(c *CSV, own *operatorsv1.OperatorGroup, others []*operatorsv1.OperatorGroup, providers, neighbours []*CSV) Claim {
	provided := ProvidedAPIs(c)
	claim := Claim{Listed: sets.New(ListedAPIs(own)...).HasAll(provided...)}
	for _, other := range others {
		if other.Namespace == own.Namespace && other.Name == own.Name || !GroupsIntersect(own, other) {
			continue
		}
		listed := sets.New(ListedAPIs(other)...)
		for _, a := range provided {
			if !listed.Has(a) {
				continue
			}
			next := Claim{Listed: claim.Listed, Conflict: other, Contested: a, Lost: isLost(c, a, own, other, providers, neighbours)}
			if claim.Conflict == nil || next.comesBefore(claim) {
				claim = next
			}
		}
	}
	return claim
}

// comesBefore reports whether a Claim is reported rather than another.
func (c Claim) comesBefore(o Claim) bool {
	if c.Lost != o.Lost {
		return c.Lost
	}
	return olmcore.RefOf(c.Conflict).Compare(olmcore.RefOf(o.Conflict)) < 0
}

// isLost decides between two groups that list the same API, in the same way on both sides. A group with static APIs
// keeps its APIs against a group without, even if no operator in its namespace provides them. Otherwise the operators
// decide.
func isLost(c *CSV, a API, own, other *operatorsv1.OperatorGroup, providers, neighbours []*CSV) bool {
	if own.Spec.StaticProvidedAPIs != other.Spec.StaticProvidedAPIs {
		return other.Spec.StaticProvidedAPIs
	}
	return isWeaker(c, a, other, providers, neighbours)
}

// isWeaker reports whether the operator of another group has the better claim to an API. Both sides decide in the same
// way. A CSV that is Succeeded is preferred, then the older one.
func isWeaker(c *CSV, a API, other *operatorsv1.OperatorGroup, providers, neighbours []*CSV) bool {
	theirs := bestProvider(nil, a, other.Namespace, providers)
	return theirs != nil && compareProviders(theirs, bestProvider(c, a, c.Namespace, neighbours)) < 0
}

// bestProvider returns the CSV of a namespace with the best claim to an API.
func bestProvider(c *CSV, a API, namespace string, others []*CSV) *CSV {
	for _, o := range others {
		if o.Namespace == namespace && !o.IsCopied() && slices.Contains(ProvidedAPIs(o), a) && (c == nil || compareProviders(o, c) < 0) {
			c = o
		}
	}
	return c
}

// compareProviders orders CSVs that provide the same API. The first one keeps it.
func compareProviders(a, b *CSV) int {
	return cmp.Or(
		CompareSucceeded(a, b),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}
