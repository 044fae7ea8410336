// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// lookAgain is how often Conn.Ready looks why there is no connection.
const lookAgain = 5 * time.Second

// headsMost is how many times MaxBytes the heads may have that Conn.Read asks for: each is a whole
// ClusterServiceVersion.
const headsMost = 4

// Connector makes connections to registries for programs that read them in their own time, within the limits of
// Options.
type Connector struct{ clients *Clients }

// NewConnector returns a Connector; Catalogs and Told of the Options do not count. The error is that of New.
func NewConnector(o Options) (*Connector, error) {
	o.Catalogs, o.Told = &controllers.Catalogs{}, nil
	clients, err := New(o)
	if err != nil {
		return nil, err
	}
	return &Connector{clients}, nil
}

// Connector is NewConnector with what the flags say; nil when nothing is to be read.
func (f *Flags) Connector() (*Connector, error) {
	if !f.read {
		return nil, nil
	}
	return NewConnector(f.options)
}

// Conn is a connection to one registry.
type Conn struct {
	client *client
	grpc   *grpc.ClientConn
	// missing is what the registry said in the last Read not to have.
	missing map[string]bool
}

// Connect returns a connection to an address, host:port, which dials nothing yet.
func (c *Connector) Connect(address string) (*Conn, error) {
	client := &client{all: c.clients, address: address}
	conn, err := client.newConn()
	if err != nil {
		return nil, err
	}
	return &Conn{client: client, grpc: conn}, nil
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.grpc.Close() }

// Made returns how often the connection was made or tried.
func (c *Conn) Made() int {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	return c.client.dials
}

// Ready makes the connection, and returns when there is one or with the error of ctx. Meanwhile it tells why there is
// none, each time that it has tried.
func (c *Conn) Ready(ctx context.Context, told func(problem string)) error {
	tries := 0
	for {
		state := c.grpc.GetState()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case state == connectivity.Ready:
			return nil
		case state == connectivity.Idle:
			c.grpc.Connect()
		case state == connectivity.TransientFailure && tries != c.Made():
			tries = c.Made()
			told(c.client.whyNot())
		}
		// The state stays, and its reason may change.
		look, cancel := context.WithTimeout(ctx, lookAgain)
		c.grpc.WaitForStateChange(look, state)
		cancel()
	}
}

// Lost returns when the connection is another one than the made-th, or with the error of ctx.
func (c *Conn) Lost(ctx context.Context, made int) error {
	for ctx.Err() == nil && c.Made() == made {
		state := c.grpc.GetState()
		if state != connectivity.Ready {
			return nil
		}
		c.grpc.WaitForStateChange(ctx, state)
	}
	return ctx.Err()
}

// Problem says why reading failed, and what to do. final: it would fail again, until something else is served.
func Problem(err error) (text string, final bool) {
	return problemOf(err), limitOf(err) != nil
}

// Package is one package of a catalog, without what describes its bundles.
type Package struct {
	resolution.Package
	// Head returns a bundle of it with what describes it, which is asked for as it is in a channel. One that the registry
	// does not know is returned as it is.
	Head func(channel, name string) (resolution.Bundle, error)
}

// Read reads a catalog: its bundles in one stream, of which no more is kept than their places and versions, then each
// package. After that it hands over the packages one by one, sorted by name; an error of each ends it. What cannot be
// used is left out and told. It is called by one goroutine at a time.
func (c *Conn) Read(ctx context.Context, each func(Package) error) ([]olmcore.Diagnostic, error) {
	o, made, missing := &c.client.all.options, c.Made(), &absences{before: c.missing}
	in := &part{of: &room{most: math.MaxInt64}} // nothing of what is sent is kept
	a := newAssembly()
	a.places = true
	packages, problems, err := o.read(ctx, c.grpc, in, a, missing)
	if err == nil {
		err = o.ask(ctx, c.grpc, headsMost*o.MaxBytes, in, func(ctx context.Context, r *reader) error {
			var doubt error
			for i := range packages {
				p := packages[i]
				packages[i] = resolution.Package{}
				if err := each(Package{p, r.describing(ctx, p, missing, &doubt)}); err != nil {
					return err
				}
			}
			return doubt
		})
	}
	var unsure *absent
	if c.missing = nil; err == nil || errors.As(err, &unsure) {
		c.missing = missing.now
	}
	if err == nil && made != c.Made() {
		err = errLost // what was read may be of two registries
	}
	return problems, err
}

// describing returns what asks for a bundle of a package with what describes it. What the registry may not have, said
// once alone, is the doubt of the read.
func (r *reader) describing(ctx context.Context, p resolution.Package, missing *absences, doubt *error) func(channel, name string) (resolution.Bundle, error) {
	byName := map[string]resolution.Bundle{}
	for _, b := range p.Bundles {
		byName[b.Name] = b
	}
	return func(channel, name string) (resolution.Bundle, error) {
		b := byName[name]
		answer, err := r.head(ctx, p.Name, channel, name, missing)
		var unsure *absent
		if errors.As(err, &unsure) {
			*doubt = cmp.Or(*doubt, err)
		} else if err != nil {
			return b, err
		}
		b.Properties = slices.Clone(b.Properties)
		if text := answer.GetCsvJson(); text != "" {
			value, err := json.Marshal(map[string][]byte{"data": []byte(text)})
			if err != nil {
				return b, err
			}
			b.Properties = append(b.Properties, olmcore.Property{Type: resolution.PropertyBundleObject, Value: value})
		}
		for _, property := range answer.GetProperties() {
			if kind := property.GetType(); kind == resolution.PropertyCSVMetadata || kind == resolution.PropertyBundleObject && answer.GetCsvJson() == "" {
				b.Properties = append(b.Properties, olmcore.Property{Type: kind, Value: json.RawMessage(property.GetValue())})
			}
		}
		return b, nil
	}
}

// head asks for one bundle; nil when the registry says again that it has none, or can say of none.
func (r *reader) head(ctx context.Context, pkg, channel, name string, missing *absences) (head *api.Bundle, err error) {
	err = call(ctx, func(ctx context.Context) (err error) {
		head, err = r.client.GetBundle(ctx, &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: name}, r.codec)
		return err
	})
	r.alive()
	why, gone := absentHead(err, pkg, channel, name)
	switch {
	case err == nil:
		return head, nil
	case status.Code(err) == codes.Unimplemented, gone && missing.again("bundle "+pkg+" "+name):
		return nil, nil
	case gone:
		return nil, &absent{fmt.Sprintf("bundle %s of package %s was listed, and is not sent: %s", quoted(name), quoted(pkg), why)}
	}
	return nil, err
}
