// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"

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
	return c.options.read(ctx, conn, &part{of: c.roomOf("ops")}, (*absences)(m))
}

// Taken reads a catalog, and returns how much of its namespace's room it takes.
func Taken(ctx context.Context, conn grpc.ClientConnInterface, o Options) ([]resolution.Package, int64, error) {
	o.Catalogs = &controllers.Catalogs{}
	c, err := New(o)
	if err != nil {
		return nil, 0, err
	}
	in := &part{of: c.roomOf("ops")}
	packages, _, err := c.options.read(ctx, conn, in, &absences{})
	return packages, in.taken, err
}

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
