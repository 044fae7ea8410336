// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the CSVs whose outcome may change when o is added, updated or deleted. For an update,
// call it for the old and the new object, and use the keys of both calls. A key with an empty Name means all CSVs of
// the Namespace. The zero key means all CSVs. Use olmcore.ExpandKeys to expand such keys, or Concerned to select fewer
// CSVs.
//
// Affected returns no keys for some objects that a cleanup waits for, such as CSVs of other namespaces that use the
// same CRDs. Reconcile requests a retry after at most a minute for these objects, and after ten seconds for the Pods
// behind a disrupted APIService.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.RefOf(o).Kind == "" {
		return nil
	}
	return keysOf(concernedTerms(relations, nil, o))
}

// keysOf returns the keys that stand for the CSVs with the terms, each once. It omits keys that a wider key covers.
func keysOf(terms []olmcore.Term) (keys []types.NamespacedName) {
	var all []types.NamespacedName
	for _, term := range terms {
		all = append(all, model.KeyOfTerm(term))
	}
	for _, key := range all {
		isIn := func(wider types.NamespacedName) bool { return wider != key && slices.Contains(all, wider) }
		isCovered := isIn(types.NamespacedName{}) || isIn(types.NamespacedName{Namespace: key.Namespace}) || slices.Contains(keys, key)
		if !isCovered {
			keys = append(keys, key)
		}
	}
	return keys
}

// concernedTerms returns the terms of the CSVs that the change of an object concerns, according to a table of
// relations. old or next is nil if it is not known.
func concernedTerms(rows []relation, old, next olmcore.Object) (terms []olmcore.Term) {
	gvk, ignoresOwners := olmcore.GVKOf(next), false
	for _, row := range rows {
		if row.kind == gvk {
			terms = append(terms, row.changed(old, next)...)
			ignoresOwners = ignoresOwners || row.ignoresOwners
		}
	}
	if ignoresOwners {
		return terms
	}
	var owners []olmcore.Term
	for _, o := range []olmcore.Object{old, next} {
		if olmcore.RefOf(o).Kind != "" {
			owners = append(owners, model.OwnerTerms(o)...)
		}
	}
	return append(owners, terms...)
}

// Terms calls add with each index term of an original CSV. A copy has no terms. If a change affects the CSV, the CSV
// has at least one of the terms that Concerned returns.
func Terms(c *v1alpha1.ClusterServiceVersion, add func(olmcore.Term)) {
	if c.IsCopied() {
		return
	}
	add(model.OwnerTerm(c))
	add(model.NamespaceTerm(c.Namespace))
	for _, row := range relations {
		if row.needed != nil {
			row.needed(c, add)
		}
	}
}

// Concerned selects the original CSVs that the change of an object from old to next affects. If Affected returns a key
// for several CSVs, use Concerned to select among them. old is nil if the old object is not known. isConcerned reports
// whether the change affects a CSV. terms contains the index terms of the affected CSVs, see Terms. If terms is nil,
// the change affects all original CSVs.
func Concerned(old, next olmcore.Object) (isConcerned func(*v1alpha1.ClusterServiceVersion) bool, terms []olmcore.Term) {
	terms = concernedTerms(relations, old, next)
	all := slices.Contains(terms, anyCSV)
	if all {
		terms = nil
	}
	concerned := sets.New(terms...)
	return func(c *v1alpha1.ClusterServiceVersion) bool {
		if c == nil || c.IsCopied() || all {
			return c != nil && !c.IsCopied()
		}
		found := false
		Terms(c, func(term olmcore.Term) { found = found || concerned.Has(term) })
		return found
	}, terms
}
