// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"

	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/owned"
)

// Claim is how the APIs of a CSV compare with those that OperatorGroups list.
type Claim struct {
	// Listed: the own group lists them all.
	Listed bool
	// Conflict is another group that watches one of our namespaces and lists one of them, nil when there is none.
	// Contested is that API.
	Conflict  *operatorsv1.OperatorGroup
	Contested API
	// Lost: the other group has the better claim.
	Lost bool
}

// ClaimOf compares the APIs that a CSV provides with what its group and others list. providers are CSVs of other
// namespaces, neighbours those of its own. Of several conflicts one that is lost comes first, then the group with the
// lowest name.
func ClaimOf(c *owned.CSV, own *operatorsv1.OperatorGroup, others []*operatorsv1.OperatorGroup, providers, neighbours []*owned.CSV) Claim {
	provided := Provided(c)
	claim := Claim{Listed: !slices.ContainsFunc(provided, NotIn(Parse(Annotation(own))))}
	for _, other := range others {
		if other.Namespace == own.Namespace && other.Name == own.Name || !intersect(own, other) {
			continue
		}
		unlisted := NotIn(Parse(Annotation(other)))
		for _, a := range provided {
			if unlisted(a) {
				continue
			}
			next := Claim{Listed: claim.Listed, Conflict: other, Contested: a, Lost: isWeaker(c, a, other, providers, neighbours)}
			if claim.Conflict == nil || compareConflicts(next, claim) < 0 {
				claim = next
			}
		}
	}
	return claim
}

// NotIn returns the test for APIs that are not in a list. An API without a kind is in none.
func NotIn(list []API) func(API) bool {
	listed := make(map[API]bool, len(list))
	for _, a := range list {
		listed[a] = true
	}
	return func(a API) bool { return !listed[a] }
}

func compareConflicts(a, b Claim) int {
	lost := 0
	if a.Lost != b.Lost {
		if lost = 1; a.Lost {
			lost = -1
		}
	}
	return cmp.Or(lost, strings.Compare(a.Conflict.Namespace, b.Conflict.Namespace), strings.Compare(a.Conflict.Name, b.Conflict.Name))
}

// isWeaker decides between two groups that list the same API, in the same way on both sides: an operator that runs
// keeps what it has, then the older one.
func isWeaker(c *owned.CSV, a API, other *operatorsv1.OperatorGroup, providers, neighbours []*owned.CSV) bool {
	theirs := best(nil, a, other.Namespace, providers)
	return theirs != nil && compareProviders(theirs, best(c, a, c.Namespace, neighbours)) < 0
}

// best returns the CSV of a namespace with the best claim to an API.
func best(c *owned.CSV, a API, namespace string, others []*owned.CSV) *owned.CSV {
	for _, o := range others {
		if o.Namespace == namespace && !o.IsCopied() && provides(o, a) && (c == nil || compareProviders(o, c) < 0) {
			c = o
		}
	}
	return c
}

func compareProviders(a, b *owned.CSV) int {
	return cmp.Or(
		chain.CompareSucceeded(a, b),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}
