// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observed is the result of reading a list. The zero value says that nothing was read; that is never taken for an empty
// list. Items has no nil entry and names each object once; its order does not matter.
type Observed[T any] struct {
	// Complete says that the read was made and completed: Items is all there is.
	Complete bool
	Items    []T
}

// Found is the result of a completed read; no items means that none exist.
func Found[T any](items ...T) Observed[T] { return Observed[T]{Complete: true, Items: items} }

// ErrNotRead is what every *NotReadError wraps.
var ErrNotRead = errors.New("not read")

// NotReadError is what a Reader answers that does not know whether objects exist, as their kind was not read: a
// Snapshot that was not filled with them, or a cache that does not hold them. errors.Is(err, ErrNotRead) holds. A kind
// that the API server does not serve was read: it has no objects.
type NotReadError struct {
	Kind schema.GroupVersionKind
	// Namespace is the one that was asked for, empty for all and for kinds without.
	Namespace string
	// Unknown says what cannot be told without these objects, may be empty.
	Unknown string
}

// Error implements error.
func (e *NotReadError) Error() string {
	text := e.Kind.Kind + " objects were not read"
	if e.Namespace != "" {
		text = fmt.Sprintf("%s objects of namespace %s were not read", e.Kind.Kind, e.Namespace)
	}
	if e.Unknown != "" {
		text += ", so " + e.Unknown + " is unknown"
	}
	return text
}

// Unwrap returns ErrNotRead.
func (e *NotReadError) Unwrap() error { return ErrNotRead }

// Needed returns the error of a read without which a Gather cannot go on, nil for none. Of objects that were not read
// it says what is unknown without them, such as "the phase of a ClusterServiceVersion".
func Needed(err error, unknown string) error {
	var notRead *NotReadError
	if !errors.As(err, &notRead) || notRead.Unknown != "" {
		return err
	}
	return &NotReadError{Kind: notRead.Kind, Namespace: notRead.Namespace, Unknown: unknown}
}

// Scope is what a Snapshot was filled with: all objects of a kind, in one namespace or, when that is empty, in all.
type Scope struct {
	Kind      schema.GroupKind
	Namespace string
}

// Everything is the Scope of a Snapshot of a whole cluster: what is not in it does not exist, whatever its kind.
var Everything = Scope{Kind: schema.GroupKind{Group: "*", Kind: "*"}}

// scopes says which namespaces of a kind were read; nil: all.
type scopes struct {
	everything bool
	kinds      map[schema.GroupKind][]string
}

func newScopes(list []Scope) scopes {
	s := scopes{kinds: make(map[schema.GroupKind][]string, len(list))}
	for _, scope := range list {
		s.everything = s.everything || scope == Everything
		namespaces, known := s.kinds[scope.Kind]
		if scope.Namespace == "" {
			s.kinds[scope.Kind] = nil
		} else if !known || namespaces != nil {
			s.kinds[scope.Kind] = append(namespaces, scope.Namespace)
		}
	}
	return s
}

// add counts a kind as read that no scope names.
func (s scopes) add(kind schema.GroupKind) {
	if _, named := s.kinds[kind]; !named {
		s.kinds[kind] = nil
	}
}

func (s scopes) hold(kind schema.GroupKind, namespace string) bool {
	if s.everything {
		return true
	}
	namespaces, known := s.kinds[kind]
	return known && (namespaces == nil || slices.Contains(namespaces, namespace))
}
