// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// indexedLabel is a label by which Gather functions look for objects. Others are not worth their memory, as each term costs
// some hundred bytes for each object, and neither is one for objects of other kinds.
type indexedLabel struct {
	// byValue: they look for values, else for the key alone.
	byValue bool
	share
	kinds sets.Set[schema.GroupKind] // nil: any
}

// share says which objects have a term in common, the fewest first.
type share int

const (
	ofOwner     share = iota // the value names an object that few belong to
	ofNamespace              // those of a namespace, or of an OperatorGroup
	ofAll                    // all that are OLM's
)

// kindsNamed are kinds by name and group, such as Role.rbac.authorization.k8s.io.
func kindsNamed(names ...string) sets.Set[schema.GroupKind] {
	all := sets.New[schema.GroupKind]()
	for _, name := range names {
		all.Insert(schema.ParseGroupKind(name))
	}
	return all
}

// labelledOwners are the kinds of which objects outside of the namespace of their owner are found by its labels.
var labelledOwners = kindsNamed("ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io",
	"MutatingWebhookConfiguration.admissionregistration.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io", "APIService.apiregistration.k8s.io")

// indexedKeys is the table of them.
var indexedKeys = map[string]indexedLabel{
	LabelOwner:          {true, ofOwner, labelledOwners.Union(kindsNamed("Deployment.apps"))},
	LabelOwnerNamespace: {true, ofNamespace, labelledOwners.Union(kindsNamed("Role.rbac.authorization.k8s.io", "Namespace"))},
	LabelOwnerKind:      {false, ofAll, labelledOwners},
	LabelManaged:        {true, ofAll, kindsNamed("ConfigMap")},
	LabelCopiedFrom:     {true, ofNamespace, kindsNamed("ClusterServiceVersion.operators.coreos.com")},
	"olm.catalogSource": {true, ofOwner, kindsNamed("Pod")},
	"job-name":          {true, ofOwner, kindsNamed("Pod")},
	"catalogsource.operators.coreos.com/update": {true, ofOwner, kindsNamed("Pod")},
	"operatorframework.io/bundle-unpack-ref":    {true, ofOwner, kindsNamed("Job.batch")},
}

// indexTerm returns what a label of objects of a kind is indexed by, "" for nothing. known: also by the value; it is what
// "key=value" is, else "key". The component labels of a namespace have one term: each is of few objects, of which each
// term of its own costs more than to look at the others of the namespace.
func indexTerm(kind schema.GroupKind, key, value string, known bool) (term string, of share) {
	label, is := indexedKeys[key]
	switch {
	case is && (label.byValue && !known || !label.kinds.Has(kind)):
		return "", ofAll
	case is && label.byValue:
		return key + "=" + value, label.share
	case is:
		return key, label.share
	case strings.HasPrefix(key, ComponentLabelPrefix):
		return ComponentLabelPrefix + "*" + key[max(strings.LastIndexByte(key, '.'), len(ComponentLabelPrefix)):], ofNamespace
	case strings.HasPrefix(key, LabelGroupPrefix):
		return key, ofNamespace
	}
	return "", ofAll
}

// IndexTerms returns what a cache indexes an object by, so that Readers over it find objects by their labels: a term for
// each label by which the library looks for objects of its kind, sorted. Several labels may have one.
func IndexTerms(o Object) []string {
	var terms []string
	kind := GVKOf(o).GroupKind()
	for key, value := range o.GetLabels() {
		if term, _ := indexTerm(kind, key, value, true); term != "" {
			terms = append(terms, term)
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// IndexTerm returns a term of IndexTerms that every object of a kind which a selector takes has, of several one that the
// fewest objects have: those of an owner are fewer than those of a namespace, and these fewer than all that OLM has. "":
// all objects are to be gone through. The selector is still to be asked about each object that has the term; a nil one
// takes every object.
func IndexTerm(gvk schema.GroupVersionKind, selector labels.Selector) (term string) {
	if selector == nil {
		return ""
	}
	fewest := ofAll
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch values := r.ValuesUnsorted(); r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In, selection.Exists:
			value, known := "", len(values) == 1
			if known {
				value = values[0]
			}
			if next, of := indexTerm(gvk.GroupKind(), r.Key(), value, known); next != "" && (term == "" || of < fewest) {
				term, fewest = next, of
			}
		}
	}
	return term
}
