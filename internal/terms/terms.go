// SPDX-License-Identifier: Apache-2.0

// Package terms is an index of objects by their terms, which is kept up one object at a time.
package terms

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Index finds objects of one kind by their terms. To put or to drop one costs what its terms do.
type Index struct {
	termsOf func(o olmcore.Object, add func(olmcore.Term))
	objects map[types.NamespacedName]*object // but for those without a term
	terms   map[olmcore.Term]*term
}

type object struct {
	olmcore.Object
	terms []*term
}

type term struct {
	olmcore.Term
	objects []*object
}

// NewIndex returns the index of some objects by the terms that each has.
func NewIndex(objects []olmcore.Object, termsOf func(o olmcore.Object, add func(olmcore.Term))) *Index {
	x := &Index{termsOf: termsOf, objects: make(map[types.NamespacedName]*object, len(objects)), terms: map[olmcore.Term]*term{}}
	for _, o := range objects {
		x.Put(o)
	}
	return x
}

// NameOf returns what Drop knows an object by.
func NameOf(o olmcore.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Put adds an object, in the place of another one of its name.
func (x *Index) Put(o olmcore.Object) {
	name := NameOf(o)
	x.Drop(name)
	added := &object{Object: o}
	x.termsOf(o, func(by olmcore.Term) {
		of := x.terms[by]
		if of == nil {
			of = &term{Term: by}
			x.terms[by] = of
		}
		if n := len(of.objects); n == 0 || of.objects[n-1] != added { // else it has the term twice
			of.objects, added.terms = append(of.objects, added), append(added.terms, of)
		}
	})
	if len(added.terms) > 0 {
		added.terms = slices.Clip(added.terms)
		x.objects[name] = added
	}
}

// Drop removes the object of a name, if there is one.
func (x *Index) Drop(name types.NamespacedName) {
	dropped := x.objects[name]
	if dropped == nil {
		return
	}
	delete(x.objects, name)
	for _, of := range dropped.terms {
		i, last := slices.Index(of.objects, dropped), len(of.objects)-1
		of.objects[i], of.objects[last] = of.objects[last], nil
		if of.objects = of.objects[:last]; last == 0 {
			delete(x.terms, of.Term)
		}
	}
}

// Find returns the objects that have one of the terms, sorted by namespace and name.
func (x *Index) Find(terms ...olmcore.Term) []olmcore.Object {
	var found []olmcore.Object
	seen := map[*object]bool{}
	for _, by := range terms {
		of := x.terms[by]
		for i := 0; of != nil && i < len(of.objects); i++ {
			if o := of.objects[i]; !seen[o] {
				seen[o], found = true, append(found, o.Object)
			}
		}
	}
	slices.SortFunc(found, func(a, b olmcore.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return found
}
