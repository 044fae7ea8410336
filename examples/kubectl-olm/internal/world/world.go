// SPDX-License-Identifier: Apache-2.0

// Package world reads the objects that a command looks at: from files, or from a live cluster.
package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// World is what was read.
type World struct {
	// Now is the time for which is decided.
	Now time.Time
	*olmcore.Snapshot
	// Namespace is the one that is asked about, empty for all.
	Namespace string
	// Live: the objects come from an API server.
	Live bool
	// Read are the objects with their places.
	Read []decode.Object
	// Unread says of each kind that was wanted and not read why; files: that they have none of them.
	Unread map[schema.GroupKind]string
	// Problems name objects that are left out, and keys that the API spells in another way.
	Problems []string
}

// New returns the world of some objects and what they tell of. The error is about the objects.
func New(read []decode.Object, scopes []olmcore.Scope, now time.Time) (*World, error) {
	objects, err := decode.Distinct(read)
	if err != nil {
		return nil, err
	}
	snapshot, err := olmcore.NewSnapshot(objects, scopes...)
	if err != nil {
		return nil, err
	}
	return &World{Now: now.UTC().Truncate(time.Second), Snapshot: snapshot, Read: read, Unread: map[schema.GroupKind]string{}}, nil
}

// Need returns an error for a kind that was not read.
func (w *World) Need(gvk schema.GroupVersionKind) error {
	if w.Holds(gvk.GroupKind(), w.Namespace) {
		return nil
	}
	why := w.Unread[gvk.GroupKind()]
	if why == "" {
		why = "the input has none"
	}
	return fmt.Errorf("%s were not read: %s", Resource(gvk.GroupKind()), why)
}

// NotRead names the kinds that were wanted and not read, as kubectl get does, sorted.
func (w *World) NotRead() []string {
	names := make([]string, 0, len(w.Unread))
	for kind := range w.Unread {
		names = append(names, Resource(kind))
	}
	slices.Sort(names)
	return names
}

// Resource is the name of a kind for kubectl get.
func Resource(kind schema.GroupKind) string {
	if k, known := olmcore.KindOf(kind); known {
		return k.Resource()
	}
	return strings.ToLower(kind.Kind) + "s." + kind.Group
}
