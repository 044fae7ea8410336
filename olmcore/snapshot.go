// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/internal/nilcheck"
)

// Snapshot is an immutable, indexed set of objects: the observed state of a cluster at one moment. It knows which kinds
// it was filled with: of others Get and List answer that they were not read. It implements Reader and is safe for
// concurrent use. Look-ups by kind, namespace, name, UID, owner and label do not scan. It holds the objects it was made
// from, which must not change afterwards.
type Snapshot struct {
	objects []Object    // sorted by kind, namespace, name
	kinds   []kindRange // sorted by kind
	read    scopes
	// defined are the kinds of CustomResourceDefinitions, aggregated the groups that other API servers serve.
	defined    map[schema.GroupKind]bool
	aggregated map[string]bool
	// Positions in objects, ascending. The label with an empty value stands for all values, and for the empty one.
	labels map[label][]int32
	owners map[types.UID][]int32
	uids   map[types.UID]int32
}

type label struct{ key, value string }

type kindRange struct {
	kind       schema.GroupKind
	start, end int
}

// NewSnapshot indexes objects, in any order. scopes are the kinds that were read to get them, Everything for all of
// them. A kind that occurs in objects and that no scope names counts as read in all namespaces; any other was not. A
// kind of a custom group, other than OLM's, that neither CustomResourceDefinitions nor APIServices know, both read, is
// not served: reads of it are a *meta.NoKindMatchError. The error is an *InputError that names the position of an
// object that is nil, has no kind or name, or repeats another's kind, namespace and name.
func NewSnapshot(objects []Object, scopes ...Scope) (*Snapshot, error) {
	entries, err := sortObjects(objects)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{objects: make([]Object, len(entries)), read: newScopes(scopes)}
	for i, e := range entries {
		s.objects[i] = e.object
		n := len(s.kinds)
		if n == 0 || s.kinds[n-1].kind != e.kind {
			s.kinds = append(s.kinds, kindRange{kind: e.kind, start: i})
			s.read.add(e.kind)
		}
		s.kinds[len(s.kinds)-1].end = i + 1
	}
	s.index()
	return s, nil
}

type snapshotEntry struct {
	kind            schema.GroupKind
	namespace, name string
	position        int
	object          Object
}

func sortObjects(objects []Object) ([]snapshotEntry, error) {
	entries := make([]snapshotEntry, len(objects))
	for i, o := range objects {
		if nilcheck.IsNil(o) {
			return nil, badObject(i, "", "is nil")
		}
		kind := GVKOf(o).GroupKind()
		switch {
		case kind.Kind == "":
			return nil, badObject(i, ".kind", "is empty")
		case o.GetName() == "":
			return nil, badObject(i, ".metadata.name", "is empty")
		}
		entries[i] = snapshotEntry{kind, o.GetNamespace(), o.GetName(), i, o}
	}
	slices.SortFunc(entries, func(a, b snapshotEntry) int {
		return cmp.Or(compareKinds(a.kind, b.kind), strings.Compare(a.namespace, b.namespace),
			strings.Compare(a.name, b.name), cmp.Compare(a.position, b.position))
	})
	for i := 1; i < len(entries); i++ {
		a, b := entries[i-1], entries[i]
		if a.kind == b.kind && a.namespace == b.namespace && a.name == b.name {
			return nil, badObject(b.position, "", fmt.Sprintf("is %s, as is objects[%d]", KeyOf(b.object), a.position))
		}
	}
	return entries, nil
}

func badObject(position int, path, problem string) error {
	return &InputError{Field: fmt.Sprintf("objects[%d]%s", position, path), Problem: problem}
}

func (s *Snapshot) index() {
	s.labels, s.owners, s.uids = map[label][]int32{}, map[types.UID][]int32{}, map[types.UID]int32{}
	s.defined, s.aggregated = map[schema.GroupKind]bool{}, map[string]bool{}
	for i, o := range s.objects {
		switch o := o.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			s.defined[schema.GroupKind{Group: o.Spec.Group, Kind: o.Spec.Names.Kind}] = true
		case *apiregistrationv1.APIService:
			s.aggregated[o.Spec.Group] = s.aggregated[o.Spec.Group] || o.Spec.Service != nil
		}
		s.indexObject(int32(i), o)
	}
}

func (s *Snapshot) indexObject(i int32, o Object) {
	for key, value := range o.GetLabels() {
		s.labels[label{key: key}] = append(s.labels[label{key: key}], i)
		if value != "" {
			s.labels[label{key, value}] = append(s.labels[label{key, value}], i)
		}
	}
	for _, ref := range o.GetOwnerReferences() {
		list := s.owners[ref.UID]
		if ref.UID != "" && (len(list) == 0 || list[len(list)-1] != i) {
			s.owners[ref.UID] = append(list, i)
		}
	}
	_, twice := s.uids[o.GetUID()]
	if !twice && o.GetUID() != "" {
		s.uids[o.GetUID()] = i
	}
}

// Objects returns all objects, sorted by kind, namespace and name. The slice is shared and must not be changed.
func (s *Snapshot) Objects() []Object { return s.objects }

// Len returns the number of objects.
func (s *Snapshot) Len() int { return len(s.objects) }

// Holds reports whether the objects of a kind in a namespace, "" for all, were read: those that the snapshot does not
// have do not exist.
func (s *Snapshot) Holds(kind schema.GroupKind, namespace string) bool {
	return s.read.hold(kind, namespace)
}

// Scopes returns what the snapshot counts as read, in no order: with them a Snapshot of other objects knows the same
// kinds.
func (s *Snapshot) Scopes() []Scope {
	if s.read.everything {
		return []Scope{Everything}
	}
	var all []Scope
	for kind, namespaces := range s.read.kinds {
		if namespaces == nil {
			all = append(all, Scope{Kind: kind})
		}
		for _, namespace := range namespaces {
			all = append(all, Scope{Kind: kind, Namespace: namespace})
		}
	}
	return all
}

// known returns nil for kinds that were read. Others were not, or are not served at all where the
// CustomResourceDefinitions and APIServices tell.
func (s *Snapshot) known(gvk schema.GroupVersionKind, namespace string) error {
	kind := gvk.GroupKind()
	_, ours := KindOf(kind)
	custom := !ours && strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io")
	switch {
	case s.Holds(kind, namespace):
		return nil
	case custom && s.Holds(definitionKind, "") && s.Holds(apiServiceKind, "") && !s.defined[kind] && !s.aggregated[kind.Group]:
		return &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{gvk.Version}}
	}
	return &NotReadError{Kind: gvk, Namespace: namespace}
}

var (
	definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition").GroupKind()
	apiServiceKind = apiregistrationv1.SchemeGroupVersion.WithKind("APIService").GroupKind()
)

// Get implements Reader. The version of gvk is not looked at.
func (s *Snapshot) Get(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (Object, error) {
	if o := s.Find(gvk.GroupKind(), namespace, name); o != nil {
		return o, nil
	}
	if err := s.known(gvk, namespace); err != nil {
		return nil, err
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
}

// Find returns one object, nil when there is none.
func (s *Snapshot) Find(kind schema.GroupKind, namespace, name string) Object {
	r := s.kindRange(kind)
	i := r.start + sort.Search(r.end-r.start, func(i int) bool {
		o := s.objects[r.start+i]
		return cmp.Or(strings.Compare(o.GetNamespace(), namespace), strings.Compare(o.GetName(), name)) >= 0
	})
	if i < r.end && s.objects[i].GetNamespace() == namespace && s.objects[i].GetName() == name {
		return s.objects[i]
	}
	return nil
}

// FindUID returns the object with a UID, nil when there is none.
func (s *Snapshot) FindUID(uid types.UID) Object {
	if i, ok := s.uids[uid]; ok {
		return s.objects[i]
	}
	return nil
}

// Owned returns the objects that have an owner reference with a UID, sorted by kind, namespace and name; nil when there
// are none.
func (s *Snapshot) Owned(uid types.UID) []Object {
	var found []Object
	for _, i := range s.owners[uid] {
		found = append(found, s.objects[i])
	}
	return found
}

// List implements Reader. The version of gvk is not looked at. Without a selector the slice is shared and must not be
// changed.
func (s *Snapshot) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]Object, error) {
	if err := s.known(gvk, namespace); err != nil {
		return nil, err
	}
	r := s.namespaceRange(gvk.GroupKind(), namespace)
	objects := s.objects[r.start:r.end:r.end]
	if selector == nil || selector.Empty() {
		return objects, nil
	}
	var found []Object
	keep := func(o Object) {
		if selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	if candidates, ok := s.candidates(selector); ok {
		for _, i := range candidates {
			if r.start <= int(i) && int(i) < r.end {
				keep(s.objects[i])
			}
		}
		return found, nil
	}
	for _, o := range objects {
		keep(o)
	}
	return found, nil
}

// candidates returns the positions of the objects with a label of a selector, of the label that fewest have; ok is
// false when no requirement of it can use the index.
func (s *Snapshot) candidates(selector labels.Selector) (best []int32, ok bool) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil, true
	}
	for _, r := range requirements {
		entry := label{key: r.Key()}
		switch r.Operator() {
		case selection.Exists:
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				entry.value = values[0]
			}
		default:
			continue
		}
		list := s.labels[entry]
		if !ok || len(list) < len(best) {
			best, ok = list, true
		}
	}
	return best, ok
}

func (s *Snapshot) kindRange(kind schema.GroupKind) kindRange {
	i, found := slices.BinarySearchFunc(s.kinds, kind, func(r kindRange, k schema.GroupKind) int { return compareKinds(r.kind, k) })
	if !found {
		return kindRange{}
	}
	return s.kinds[i]
}

func (s *Snapshot) namespaceRange(kind schema.GroupKind, namespace string) kindRange {
	r := s.kindRange(kind)
	if namespace == "" {
		return r
	}
	at := func(beyond bool) int {
		return r.start + sort.Search(r.end-r.start, func(i int) bool {
			have := s.objects[r.start+i].GetNamespace()
			return have > namespace || !beyond && have == namespace
		})
	}
	return kindRange{kind, at(false), at(true)}
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group))
}
