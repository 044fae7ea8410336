// SPDX-License-Identifier: Apache-2.0

// Package registry reads the content of catalogs from their registries over gRPC, as OLM does, for the resolver of
// package controllers:
//
//	clients, err := registry.New(registry.Options{Catalogs: &catalogs})
//	clients.Serve(&options)
//	defer clients.Close()
//
// There is one client for each CatalogSource that has an address. It stays connected, and reads all bundles once, and
// again when something else is served. What is known of a connection, and why there is none, reaches the statuses of
// CatalogSources and Subscriptions.
package registry

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/resolution"
)

// Defaults of Options.
const (
	DefaultMaxBytes   = 64 << 20
	DefaultMaxBundles = 100_000
	DefaultTimeout    = time.Minute
)

// Options say where content goes and how much of it is taken. Catalogs is required, zero stands for the default
// elsewhere.
type Options struct {
	// Catalogs gets what is read. CatalogSources whose Content it has from files are not read.
	Catalogs *controllers.Catalogs
	// Dial connects to an address, host:port, instead of the network; nil: TCP, through the proxy that GRPC_PROXY names
	// unless NO_PROXY excepts the address.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// MaxBytes bounds what one catalog may send and takes in memory, MaxBundles how many bundles it may have; each counts
	// once for each of its channels.
	MaxBytes   int64
	MaxBundles int
	// MaxNamespaceBytes is MaxBytes for all catalogs of one namespace together; the default is four times MaxBytes.
	MaxNamespaceBytes int64
	// Timeout is how long a registry may be silent while it is read. All of it may take ten times as long.
	Timeout time.Duration
	// Told, when set, hears what of a catalog cannot be used, each time it is read.
	Told func(catalog types.NamespacedName, problems []olmcore.Diagnostic)

	pace pace // zero: usual
}

// Clients are the clients of all CatalogSources of one cluster. They are safe for concurrent use.
type Clients struct {
	options Options

	mu       sync.Mutex
	clients  map[types.NamespacedName]*client
	rooms    map[string]*room // by namespace
	watchers map[*watcher]bool
	running  sync.WaitGroup
	closed   bool
}

// New returns Clients that dial nothing yet. The error is an olmcore.InputError, or says what is wrong with GRPC_PROXY.
func New(o Options) (*Clients, error) {
	switch {
	case o.Catalogs == nil:
		return nil, &olmcore.InputError{Field: "Options.Catalogs", Problem: "is nil"}
	case o.MaxBytes < 0 || o.MaxNamespaceBytes < 0 || o.MaxBundles < 0 || o.Timeout < 0:
		return nil, &olmcore.InputError{Field: "Options", Problem: "has a negative limit"}
	}
	o.MaxBytes, o.MaxBundles = cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.MaxBundles, DefaultMaxBundles)
	o.MaxNamespaceBytes = cmp.Or(o.MaxNamespaceBytes, 4*o.MaxBytes)
	o.Timeout, o.pace = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.pace, usual)
	if o.Dial == nil {
		dial, err := fromEnvironment()
		if err != nil {
			return nil, err
		}
		o.Dial = dial
	}
	return &Clients{options: o, clients: map[types.NamespacedName]*client{}, rooms: map[string]*room{}, watchers: map[*watcher]bool{}}, nil
}

// Serve makes the controllers use the clients and resolve from what these read: it sets Connection and Watch, and calls
// Serve of the Catalogs. It is for use before controllers.New.
func (c *Clients) Serve(o *controllers.Options) {
	c.options.Catalogs.Awaited = true
	o.Connection, o.Watch = c.Connection, c.Watch
	c.options.Catalogs.Serve(o)
}

// Connection is a value for controllers.Options.Connection. A client whose CatalogSource was made anew, or whose
// address changed, ends together with its content.
func (c *Clients) Connection(in catalog.Input, address string) *catalog.Connection {
	cs := in.CatalogSource
	key := types.NamespacedName{Namespace: cs.Namespace, Name: cs.Name}
	var served source
	served.content, served.settled = catalog.Content(in)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	known := c.clients[key]
	if known != nil && (known.address != address || known.uid != cs.UID) {
		known.stop()
		delete(c.clients, key)
		c.options.Catalogs.Drop(key)
		known = nil
	}
	switch {
	case address == "" && cs.UID == "":
		c.options.Catalogs.Drop(key)
		return nil
	case address == "":
		c.options.Catalogs.Put(resolution.CatalogState{Key: key, Problem: "it has no registry to ask, see the status of the CatalogSource"})
		return nil
	case known == nil:
		known = c.newClient(key, cs.UID, address, served)
		c.clients[key] = known
		c.options.Catalogs.Put(resolution.CatalogState{Key: key})
	}
	known.serves(served)
	return known.state()
}

// Close ends all clients, and returns when they have ended. What was read stays.
func (c *Clients) Close() {
	if c == nil {
		return // nothing is read
	}
	c.mu.Lock()
	c.closed = true
	for key, client := range c.clients {
		client.stop()
		delete(c.clients, key)
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Wait returns when of each client the content was read, or it is known why not; or with the error of ctx. It is for
// programs that decide only once.
func (c *Clients) Wait(ctx context.Context) error {
	w := c.watcher()
	defer c.forget(w)
	for c.pending() {
		select {
		case <-w.signal:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *Clients) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		if client.state().State == connecting {
			return true
		}
	}
	return false
}

// Watch is a value for controllers.Options.Watch.
func (c *Clients) Watch(ctx context.Context, changed func(controller.Change)) {
	w := c.watcher()
	defer c.forget(w)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
		}
		for key := range w.take() {
			// Its generation is the same before and after: nothing but the client changed.
			source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			changed(controller.Change{Old: source, New: source, At: time.Now()})
		}
	}
}

// watcher collects which clients changed since it looked last.
type watcher struct {
	signal chan struct{} // holds one entry while there are keys

	mu   sync.Mutex
	keys map[types.NamespacedName]bool
}

func (c *Clients) watcher() *watcher {
	w := &watcher{signal: make(chan struct{}, 1), keys: map[types.NamespacedName]bool{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.clients {
		w.wake(key) // it may have changed before
	}
	c.watchers[w] = true
	return w
}

func (c *Clients) forget(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
}

func (w *watcher) wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key] = true
	select {
	case w.signal <- struct{}{}:
	default: // there is one already
	}
}

func (w *watcher) take() map[types.NamespacedName]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.keys
	w.keys = map[types.NamespacedName]bool{}
	return taken
}

// report changes what is known of a client's connection, and hands it over together with the content, unless nothing
// changed or the client ended.
func (c *Clients) report(ctx context.Context, client *client, change func(*catalog.Connection) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	state, changed := client.change(change)
	if !changed {
		return
	}
	c.options.Catalogs.Put(state)
	for w := range c.watchers {
		w.wake(client.key)
	}
}
