// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Read reads a catalog with the limits of Options, as one that was not read before.
func Read(ctx context.Context, conn grpc.ClientConnInterface, o Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	return (&Memory{}).Read(ctx, conn, o)
}

// Memory is what a client remembers of what it read before.
type Memory absences

// Read reads a catalog with the limits of Options.
func (m *Memory) Read(ctx context.Context, conn grpc.ClientConnInterface, o Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	o.Catalogs = &controllers.Catalogs{}
	c, err := New(o)
	if err != nil {
		return nil, nil, err
	}
	m.before, m.now = m.now, nil
	return c.options.read(ctx, conn, &part{of: c.roomOf("ops")}, newAssembly(), (*absences)(m))
}

// Taken reads a catalog, and returns how much of its namespace's room it takes.
func Taken(ctx context.Context, conn grpc.ClientConnInterface, o Options) ([]resolution.Package, int64, error) {
	o.Catalogs = &controllers.Catalogs{}
	c, err := New(o)
	if err != nil {
		return nil, 0, err
	}
	in := &part{of: c.roomOf("ops")}
	packages, _, err := c.options.read(ctx, conn, in, newAssembly(), &absences{})
	return packages, in.taken, err
}

// Paced is Options whose clients tell a failure after a grace period, and try again after first, later after most.
func Paced(o Options, grace, first, most time.Duration) Options {
	o.pace = usual
	o.pace.grace, o.pace.firstRetry, o.pace.longestConnect, o.pace.longestRead = grace, first, most, most
	return o
}

// WithoutGrace is Options whose clients tell each failure at once.
func WithoutGrace(o Options) Options {
	if o.pace == (pace{}) {
		return Paced(o, 0, usual.firstRetry, usual.longestRead)
	}
	return o
}

// KeptAlive is Options whose clients look after so long whether a peer that is to answer is there, and wait so long.
func KeptAlive(o Options, after, wait time.Duration) Options {
	o.pace = usual
	o.pace.keepAlive = keepalive.ClientParameters{Time: after, Timeout: wait}
	return o
}

// RetryAfter is how long a client waits after a read that failed, after so many that failed before.
func RetryAfter(failures int, err error) time.Duration {
	c := &client{all: &Clients{options: Options{pace: usual}}, failures: failures}
	return c.retry(err)
}

// Usual is the pace of clients.
func Usual() (grace, firstRetry, longestConnect, longestRead, refresh time.Duration, keepAlive keepalive.ClientParameters) {
	return usual.grace, usual.firstRetry, usual.longestConnect, usual.longestRead, usual.refresh, usual.keepAlive
}

// Limit is the error of a catalog beyond a limit.
func Limit(shared bool) error { return &limitError{shared: shared} }

// Listening is a connection that tells the words of a registry from those of the own client.
func Listening() grpc.DialOption { return grpc.WithStatsHandler(listener{}) }

// Convert converts what a registry could send.
func Convert(bundles []*api.Bundle, packages []*api.Package) ([]resolution.Package, []olmcore.Diagnostic) {
	a := newAssembly()
	for _, b := range bundles {
		a.add(b)
	}
	for _, name := range a.names() {
		for _, p := range packages {
			if p.GetName() == name {
				a.describe(name, p)
			}
		}
	}
	return a.result()
}

var (
	FromEnvironment = fromEnvironment
	FromVariables   = fromVariables
	ProblemOf       = problemOf
)

type Part = part

func (r *room) Part() *Part                      { return &part{of: r} }
func (p *Part) Take(size int64) error            { return p.take(size) }
func (p *Part) End(kept bool)                    { p.end(kept) }
func (p *Part) Drop()                            { p.drop() }
func NewRoom(namespace string, most int64) *room { return &room{namespace: namespace, most: most} }
