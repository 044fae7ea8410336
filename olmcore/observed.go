// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observed is the result of reading a list. The zero value means that the list was not read. It is never treated as an
// empty list. Items contains each object once, in any order, and no nil entry.
type Observed[T any] struct {
	// Complete is true if the list was read successfully. Then Items contains all objects.
	Complete bool
	Items    []T
}

// Found returns the result of a successful read. Without items, it means that no objects exist.
func Found[T any](items ...T) Observed[T] { return Observed[T]{Complete: true, Items: items} }

// ErrNotRead is the error that every *NotReadError wraps.
var ErrNotRead = errors.New("not read")

// NotReadError is the error of a Reader that does not know whether objects exist, because their kind was not read. For
// example, a Snapshot was not filled with the kind, or a cache does not contain it. errors.Is(err, ErrNotRead) holds. A
// kind that the API server does not serve counts as read and has no objects.
type NotReadError struct {
	Kind schema.GroupVersionKind
	// Namespace is the requested namespace. It is empty for all namespaces and for cluster-scoped kinds.
	Namespace string
	// Unknown names what cannot be determined without these objects. It may be empty.
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

// Scope names objects that a Snapshot was filled with: all objects of a kind in one namespace, or in all namespaces if
// Namespace is empty.
type Scope struct {
	Kind      schema.GroupKind
	Namespace string
}

// Everything is the Scope of a Snapshot of a whole cluster. An object that the Snapshot does not contain does not
// exist, whatever its kind.
var Everything = Scope{Kind: schema.GroupKind{Group: "*", Kind: "*"}}

// scopes contains the namespaces that were read, by kind. Nil means all namespaces.
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

// add marks a kind as read in all namespaces, unless a scope names the kind.
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
