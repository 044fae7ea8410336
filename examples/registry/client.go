// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/subscription/resolution"
)

// States of a connection that are reported, as gRPC names them. A connection that is lost stays READY until it cannot
// be made again, and one whose content cannot be read is none.
const (
	connecting = "CONNECTING"
	ready      = "READY"
	failed     = "TRANSIENT_FAILURE"
)

// client is connected to the registry of one CatalogSource. One goroutine runs it.
type client struct {
	all     *Clients
	key     types.NamespacedName
	uid     types.UID
	address string
	began   time.Time
	stop    context.CancelFunc
	part    part

	mu         sync.Mutex
	connection catalog.Connection
	nudge      context.CancelFunc // makes the goroutine look again
	// served is what the registry's Pods say that they serve now.
	served source
	// dials counts the connections. dialed is what was served when the last one was made, peer what answers there.
	dials    int
	dialed   source
	peer     *sniffer
	dialing  error
	reported int // the connection that LastConnect is about
	// unsaid is a failure that is not told during the grace period.
	unsaid string
	// content was read through a connection to what read says.
	content *resolution.Catalog
	read    source
	through int
	// failures counts those of reading since it succeeded. again is when to read although nothing changed; zero: never.
	failures int
	again    time.Time
	// missing is what the registry said in the last read not to have, partial in how many of these in a row it was left
	// out.
	missing map[string]bool
	partial int
}

// source is what a connection leads to: see catalog.Content.
type source struct {
	content string
	settled bool
}

// roomOf is the room of a namespace.
func (c *Clients) roomOf(namespace string) *room {
	if c.rooms[namespace] == nil {
		c.rooms[namespace] = &room{namespace: namespace, most: c.options.MaxNamespaceBytes}
	}
	return c.rooms[namespace]
}

// newClient starts a client. It knows from its first dial on what the Pods serve: what it read before it knew, it would
// read again.
func (c *Clients) newClient(key types.NamespacedName, uid types.UID, address string, served source) *client {
	ctx, stop := context.WithCancel(context.Background())
	client := &client{all: c, key: key, uid: uid, address: address, began: time.Now(), stop: stop, part: part{of: c.roomOf(key.Namespace)}, nudge: func() {}, served: served}
	client.connection = catalog.Connection{Address: address, State: connecting, LastTransition: client.began}
	c.running.Go(func() { client.run(ctx) })
	return client
}

// state returns what is known of the connection.
func (c *client) state() *catalog.Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return new(c.connection)
}

// serves takes what the registry's Pods say that they serve. While they say nothing, what they said last counts.
func (c *client) serves(next source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next.content == "" || next == c.served {
		return
	}
	if next.content != c.served.content {
		c.failures, c.again, c.missing, c.partial = 0, time.Time{}, nil, 0
	}
	c.served = next
	c.nudge()
}

// run connects, and connects anew when the registry's Pods serve other content than those that are connected.
func (c *client) run(ctx context.Context) {
	defer c.part.drop()
	for ctx.Err() == nil {
		conn, err := c.newConn()
		if err != nil {
			c.tell(ctx, err.Error())
			<-ctx.Done() // another address is another client
			return
		}
		c.follow(ctx, conn)
		_ = conn.Close()
	}
}

func (c *client) newConn() (*grpc.ClientConn, error) {
	pace := &c.all.options.pace
	return grpc.NewClient("passthrough:///registry",
		// As OLM: registries serve without TLS.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.dial(ctx) }),
		grpc.WithAuthority(c.address), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		// A connection without calls stays; TCP tells that its peer is gone.
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(pace.keepAlive),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: 20 * time.Second,
			Backoff:           backoff.Config{BaseDelay: pace.firstRetry, Multiplier: 1.6, Jitter: 0.2, MaxDelay: pace.longestConnect},
		}),
		grpc.WithMaxHeaderListSize(64<<10), grpc.WithStatsHandler(listener{}),
	)
}

func (c *client) dial(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	c.dials++
	c.dialed = c.served
	c.peer, c.dialing = nil, nil
	c.mu.Unlock()
	conn, err := c.all.options.Dial(ctx, c.address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialing = err; err != nil {
		return nil, err
	}
	c.peer = &sniffer{Conn: conn}
	return c.peer, nil
}

// follow follows the states of a connection, and reads what is to be read, until another one is needed.
func (c *client) follow(ctx context.Context, conn *grpc.ClientConn) {
	for ctx.Err() == nil {
		state := conn.GetState()
		look, cancel := context.WithCancel(ctx)
		c.mu.Lock()
		c.nudge = cancel
		due, wait := c.due(time.Now())
		moved := c.dialed.content != c.served.content
		if state == connectivity.Ready && c.failures == 0 {
			c.unsaid = "" // it is over
		}
		c.mu.Unlock()
		switch {
		case state == connectivity.Ready && moved:
			cancel()
			return
		case state == connectivity.Ready && due:
			c.readAll(ctx, conn)
			cancel()
			continue
		case state == connectivity.Ready:
			c.connected(ctx)
		case state == connectivity.Idle:
			conn.Connect()
		case state == connectivity.TransientFailure:
			c.fail(ctx, c.whyNot())
			wait = c.all.options.pace.longestConnect // the state stays, and its reason may change
		}
		if left := c.tellLate(ctx); left > 0 {
			wait = min(cmp.Or(wait, left), left)
		}
		if wait > 0 {
			timer := time.AfterFunc(wait, cancel)
			conn.WaitForStateChange(look, state)
			timer.Stop()
		} else {
			conn.WaitForStateChange(look, state)
		}
		cancel()
	}
}

// due reports whether a connection may show other content than what was read, or else how long it is until it is to be
// read anyway; 0: for as long as nothing changes.
func (c *client) due(now time.Time) (due bool, wait time.Duration) {
	if c.all.options.Catalogs.Content[c.key] != nil {
		return false, 0 // a file has it
	}
	if !c.again.IsZero() {
		if wait = c.again.Sub(now); wait <= 0 {
			return true, 0
		}
	}
	// A connection that was made when all Pods served the same leads to what one of them served before.
	fresh := c.content != nil && (c.through == c.dials || c.read.settled && c.read == c.dialed)
	return c.failures == 0 && !fresh, wait
}

// readAll reads the content, and says what came of it.
func (c *client) readAll(ctx context.Context, conn *grpc.ClientConn) {
	c.mu.Lock()
	dials, dialed := c.dials, c.dialed
	missing := &absences{before: c.missing}
	c.mu.Unlock()
	content, err := c.readContent(ctx, conn, missing)
	c.mu.Lock()
	if err == nil && dials != c.dials {
		err = errLost // what was read may be of two registries
	}
	c.part.end(err == nil)
	if err == nil {
		c.content, c.read, c.through, c.failures, c.reported = content, dialed, dials, 0, 0
	}
	if c.served.content == dialed.content {
		c.schedule(err, missing.now)
	}
	c.mu.Unlock()
	switch {
	case err == nil:
		c.connected(ctx)
	case limitOf(err) != nil:
		c.tell(ctx, problemOf(err)) // it would be the same
	default:
		c.fail(ctx, problemOf(err))
	}
}

// readContent reads and indexes the content, and tells what of it cannot be used.
func (c *client) readContent(ctx context.Context, conn *grpc.ClientConn, missing *absences) (*resolution.Catalog, error) {
	o := c.all.options
	packages, problems, err := o.read(ctx, conn, &c.part, newAssembly(), missing)
	if err != nil {
		return nil, err
	}
	content, unusable := resolution.Build(packages)
	if told := tellable(problems, unusable); o.Told != nil && len(told) > 0 {
		o.Told(c.key, told)
	}
	return content, nil
}

// schedule says when to read again after a read that ended so, in which something was said to be missing.
func (c *client) schedule(err error, missing map[string]bool) {
	var unsure *absent
	if err == nil || errors.As(err, &unsure) {
		c.missing = missing
	}
	now, pace := time.Now(), &c.all.options.pace
	switch {
	case err != nil:
		c.again = now.Add(c.retry(err))
		c.failures++
	case len(missing) > 0:
		// What was left out may come back, although nothing tells that something else is served.
		c.again = now.Add(pace.backoff(c.partial, pace.refresh))
		c.partial++
	case c.read.content == "":
		c.again, c.partial = now.Add(pace.refresh), 0
	default:
		c.again, c.partial = time.Time{}, 0
	}
}

// retry is how long to wait before content is read again that could not be read.
func (c *client) retry(err error) time.Duration {
	pace := &c.all.options.pace
	if limit := limitOf(err); limit != nil && !limit.shared {
		return pace.refresh // it would be the same
	}
	return pace.backoff(c.failures, pace.longestRead)
}

// connected reports a connection whose content was read.
func (c *client) connected(ctx context.Context) {
	c.all.report(ctx, c, func(connection *catalog.Connection) bool {
		if c.failures > 0 || connection.State == ready && c.reported == c.dials {
			return false
		}
		now := time.Now()
		if connection.State != ready {
			connection.State, connection.LastTransition = ready, now
		}
		connection.LastConnect, connection.Problem, c.reported = now, "", c.dials
		return true
	})
}

// tell reports why there is no connection, or no content.
func (c *client) tell(ctx context.Context, problem string) {
	c.all.report(ctx, c, func(connection *catalog.Connection) bool {
		if connection.State == failed && connection.Problem == problem {
			return false
		}
		if connection.State != failed {
			connection.State, connection.LastTransition = failed, time.Now()
		}
		connection.Problem = problem
		return true
	})
}

// change changes what is known of the connection, and returns what is known of the content then.
func (c *client) change(change func(*catalog.Connection) bool) (state resolution.CatalogState, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = change(&c.connection)
	state = resolution.CatalogState{Key: c.key, Content: c.content, Stale: c.content != nil && c.failures > 0}
	if state.Content == nil || state.Stale {
		state.Problem = c.connection.Problem
	}
	return state, changed
}
