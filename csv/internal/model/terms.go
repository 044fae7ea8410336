// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// The functions below return the index terms of CSVs, and of the objects that concern them. An object concerns the CSVs
// that have one of its terms.

// Kinds of terms that contain the key or the namespace of CSVs.
const (
	termKey       = v1alpha1.ClusterServiceVersionKind
	termNamespace = "namespace"
)

// KeyTerm returns the term that only the CSV with a key has.
func KeyTerm(key types.NamespacedName) olmcore.Term {
	return olmcore.Term{Of: termKey, Value: key.Namespace + "/" + key.Name}
}

// KeyOfTerm returns the key that stands for the CSVs with a term: the key of one CSV, a key without a Name for the CSVs
// of a namespace, or the zero key for CSVs of any namespace.
func KeyOfTerm(term olmcore.Term) types.NamespacedName {
	switch term.Of {
	case termKey:
		namespace, name, _ := strings.Cut(term.Value, "/")
		return types.NamespacedName{Namespace: namespace, Name: name}
	case termNamespace:
		return types.NamespacedName{Namespace: term.Value}
	}
	return types.NamespacedName{}
}

// OwnerTerm returns the term that only a CSV has. OwnerTerms returns the same term for objects of the CSV.
func OwnerTerm(c *CSV) olmcore.Term {
	return KeyTerm(types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
}

// OwnerTerms returns the terms of the CSVs that an object records as owners. Owners are recorded in labels, in the
// annotations of a cluster-scoped object, and in the owner references of a namespaced object.
func OwnerTerms(o olmcore.Object) (terms []olmcore.Term) {
	if owner, labelled := LabelledOwner(o); labelled {
		terms = append(terms, KeyTerm(owner))
	}
	if o.GetNamespace() == metav1.NamespaceAll {
		for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
			terms = append(terms, KeyTerm(types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}))
		}
		return terms
	}
	for _, r := range o.GetOwnerReferences() {
		if IsCSVReference(r) {
			terms = append(terms, KeyTerm(types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name}))
		}
	}
	return terms
}

// NamespaceTerm returns the term of all CSVs of a namespace.
func NamespaceTerm(name string) olmcore.Term { return olmcore.Term{Of: termNamespace, Value: name} }

// CRDTerm returns the term of the CSVs that own or require a CRD.
func CRDTerm(name string) olmcore.Term { return olmcore.Term{Of: "CRD", Value: name} }

// APIServiceTerm returns the term of the CSVs that own or require an APIService.
func APIServiceTerm(name string) olmcore.Term { return olmcore.Term{Of: "APIService", Value: name} }

// APIGroupTerm returns the term of the CSVs that own an APIService of an API group.
func APIGroupTerm(group string) olmcore.Term { return olmcore.Term{Of: "API group", Value: group} }

// APITerm returns the term of the CSVs that provide an API.
func APITerm(a API) olmcore.Term { return olmcore.Term{Of: "API", Value: a.String()} }

// APITerms returns the terms of several APIs.
func APITerms(list []API) []olmcore.Term {
	terms := make([]olmcore.Term, 0, len(list))
	for _, a := range list {
		terms = append(terms, APITerm(a))
	}
	return terms
}

// CRDTerms returns the terms of the CRDs that a CSV describes.
func CRDTerms(list []v1alpha1.CRDDescription) []olmcore.Term {
	terms := make([]olmcore.Term, 0, len(list))
	for _, d := range list {
		terms = append(terms, CRDTerm(d.Name))
	}
	return terms
}

// SubscriptionTerms returns the terms of the CSVs that a Subscription has installed or is about to install.
func SubscriptionTerms(s *v1alpha1.Subscription) (terms []olmcore.Term) {
	for _, name := range []string{s.Status.InstalledCSV, s.Status.CurrentCSV} {
		if name != "" {
			terms = append(terms, KeyTerm(types.NamespacedName{Namespace: s.Namespace, Name: name}))
		}
	}
	return terms
}
