// SPDX-License-Identifier: Apache-2.0

// Package registries reads from the registries of CatalogSources what people are shown of them:
//
//	r, err := registries.New(registries.Options{Connector: connector, Put: content.PutCatalog, Drop: content.Drop})
//	content.Changed = r.Know // which CatalogSources there are
//	unread := r.Wait(ctx)    // until each was read once
//	defer r.Close()
//
// One catalog is read at a time, one head of it is in memory at a time, and what stays of a catalog, of the catalogs of
// a namespace, and of those of all namespaces is bounded.
package registries

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// Options say what is read, how much of it, and where it goes. Connector, Put and Drop are required.
type Options struct {
	Connector *registry.Connector
	// Put takes what a catalog has to show each time it was read, Drop forgets it. They are called by one goroutine for
	// each catalog.
	Put  func(types.NamespacedName, packages.Catalog)
	Drop func(types.NamespacedName)
	// GlobalNamespace is the namespace whose catalogs all namespaces see. These are read before others, and have room of
	// their own.
	GlobalNamespace string
	// Files are CatalogSources that are not read, as files have their content.
	Files map[types.NamespacedName]bool
	// MaxBytes is how much memory what is shown of a catalog may take; 0: packages.DefaultMaxBytes. The catalogs of the
	// global namespace may take twice as much together, and so may those of all other namespaces; those of one of these
	// half as much.
	MaxBytes int
	// Log hears why a catalog is not read, and what of it cannot be shown, once for each change; nil: slog.Default().
	Log *slog.Logger
}

// Registries reads the catalogs that it knows of. It is safe for concurrent use.
type Registries struct {
	options Options
	turns   turns

	mu      sync.Mutex
	readers map[types.NamespacedName]*reader
	changed chan struct{} // closed at each change of what was read
	closed  bool
	running sync.WaitGroup
}

// New returns Registries that know of no catalog yet.
func New(o Options) (*Registries, error) {
	switch {
	case o.Connector == nil || o.Put == nil || o.Drop == nil:
		return nil, &olmcore.InputError{Field: "Options", Problem: "lacks Connector, Put or Drop"}
	case o.MaxBytes < 0:
		return nil, &olmcore.InputError{Field: "Options.MaxBytes", Problem: "is negative"}
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, packages.DefaultMaxBytes)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Registries{options: o, readers: map[types.NamespacedName]*reader{}, changed: make(chan struct{})}, nil
}

// Know takes a CatalogSource in its present form; one without a UID is gone. What was read of one that is made anew, or
// has another address, is dropped.
func (r *Registries) Know(source *v1alpha1.CatalogSource) {
	key, address := types.NamespacedName{Namespace: source.Namespace, Name: source.Name}, ""
	if r.options.Files[key] {
		return
	}
	if source.UID != "" {
		address = catalog.Address(source)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.readers[key]
	if r.closed || known != nil && known.address == address && known.uid == source.UID {
		return
	}
	if known != nil {
		known.stop() // it puts nothing any more
		delete(r.readers, key)
		r.options.Drop(key)
	}
	if source.UID != "" {
		r.start(key, source.UID, address)
	}
	r.wake()
}

// start starts a reader. r.mu is held.
func (r *Registries) start(key types.NamespacedName, uid types.UID, address string) {
	ctx, stop := context.WithCancel(context.Background())
	next := &reader{all: r, key: key, uid: uid, address: address, stop: stop, log: r.options.Log.With("catalog", key.String())}
	r.readers[key] = next
	r.running.Go(func() { next.run(ctx) })
}

// wake tells that something changed. r.mu is held.
func (r *Registries) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Wait returns when all catalogs that are known were read, or cannot be read whatever happens, or when ctx is done. It
// returns which were not read, sorted, each with the reason.
func (r *Registries) Wait(ctx context.Context) []string {
	if r == nil {
		return nil // nothing is read
	}
	for {
		r.mu.Lock()
		changed, pending, unread := r.changed, false, []string{}
		for key, reader := range r.readers {
			if !reader.read {
				unread = append(unread, key.String()+": "+cmp.Or(reader.problem, "not read yet"))
				pending = pending || !reader.final
			}
		}
		r.mu.Unlock()
		slices.Sort(unread)
		if !pending {
			return unread
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return unread
		}
	}
}

// Close ends reading, and returns when it has ended. What was read stays.
func (r *Registries) Close() {
	if r == nil {
		return // nothing is read
	}
	r.mu.Lock()
	r.closed = true
	for _, reader := range r.readers {
		reader.stop()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// room returns how much memory what is shown of a catalog may take beside what is shown of others, and what to say when
// that is less than it could have.
func (r *Registries) room(key types.NamespacedName) (most int, less string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	global, all := r.options.GlobalNamespace, r.options.MaxBytes
	ofNamespace, ofOthers := 0, 0
	for other, reader := range r.readers {
		switch {
		case other == key:
		case other.Namespace == key.Namespace:
			ofNamespace, ofOthers = ofNamespace+reader.kept, ofOthers+reader.kept
		case other.Namespace != global:
			ofOthers += reader.kept
		}
	}
	const text = "what is shown of the catalogs of %s may take %d bytes of memory together: have fewer, or raise the limit (MaxBytes, --shown-max-bytes)"
	most = all
	if key.Namespace == global {
		if left := 2*all - ofNamespace; left < most {
			most, less = left, fmt.Sprintf(text, "namespace "+global, 2*all)
		}
		return max(most, 1), less
	}
	if left := all/2 - ofNamespace; left < most {
		most, less = left, fmt.Sprintf(text, "namespace "+key.Namespace, all/2)
	}
	if left := 2*all - ofOthers; left < most {
		most, less = left, fmt.Sprintf(text, "all namespaces but "+global, 2*all)
	}
	return max(most, 1), less
}
