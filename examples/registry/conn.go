// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// maxIndex bounds the memory that the names, versions and upgrades of one catalog's bundles take while Conn.Read reads.
const maxIndex = 64 << 20

// lookAgain is how often Conn.Ready looks why there is no connection.
const lookAgain = 5 * time.Second

// headsMost is how many times MaxBytes the heads may have that Conn.Read asks for: each is a whole ClusterServiceVersion.
const headsMost = 4

// Connector makes connections to registries for programs that read them in their own time, within the limits of Options.
type Connector struct{ clients *Clients }

// NewConnector returns a Connector; Catalogs, Told and Described of the Options do not count. The error is that of New.
func NewConnector(o Options) (*Connector, error) {
	o.Catalogs, o.Told, o.Described = &controllers.Catalogs{}, nil, nil
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
}

// Connect returns a connection to an address, host:port, which dials nothing yet.
func (c *Connector) Connect(address string) (*Conn, error) {
	client := &client{all: c.clients, address: address}
	conn, err := client.newConn()
	if err != nil {
		return nil, err
	}
	return &Conn{client, conn}, nil
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.grpc.Close() }

// Made returns how often the connection was made or tried.
func (c *Conn) Made() int {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	return c.client.dials
}

// Ready makes the connection, and returns when there is one or with the error of ctx. Meanwhile it tells why there is none,
// each time that it has tried.
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
// package. After that it hands over the packages one by one, sorted by name; an error of each ends it. What cannot be used is
// left out and told.
func (c *Conn) Read(ctx context.Context, each func(Package) error) ([]olmcore.Diagnostic, error) {
	o, made := &c.client.all.options, c.Made()
	a := lean{assembly: newAssembly()}
	in := &part{of: &room{most: math.MaxInt64}} // nothing of what is sent is kept
	err := o.ask(ctx, c.grpc, o.MaxBytes, in, func(ctx context.Context, r *reader) error {
		if err := a.bundles(ctx, r); err != nil {
			return err
		}
		return a.describeAll(ctx, r)
	})
	if err != nil {
		return nil, err
	}
	packages, problems := a.result()
	a = lean{}
	err = o.ask(ctx, c.grpc, headsMost*o.MaxBytes, in, func(ctx context.Context, r *reader) error {
		for i := range packages {
			p := packages[i]
			packages[i] = resolution.Package{}
			byName := map[string]resolution.Bundle{}
			for _, b := range p.Bundles {
				byName[b.Name] = b
			}
			head := func(channel, name string) (resolution.Bundle, error) {
				return r.head(ctx, p.Name, channel, byName[name])
			}
			if err := each(Package{p, head}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && made != c.Made() {
		err = errLost // what was read may be of two registries
	}
	return problems, err
}

// lean is an assembly that keeps of bundles what tells their places and versions, within maxIndex.
type lean struct {
	*assembly
	size int
}

func (a *lean) grow(size int) error {
	if a.size += size; a.size > maxIndex {
		return &limitError{text: fmt.Sprintf("the names, versions, upgrades and deprecations of the catalog take more than %d bytes of memory: serve fewer bundles, or skip fewer versions", maxIndex)}
	}
	return nil
}

// bundles reads all bundles.
func (a *lean) bundles(ctx context.Context, r *reader) error {
	stream, err := r.client.ListBundles(ctx, &api.ListBundlesRequest{}, r.codec)
	if err != nil {
		return err
	}
	for count := 1; ; count++ {
		bundle, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case count > r.most:
			return &limitError{text: fmt.Sprintf("the catalog has more than %d bundles: raise the limit (MaxBundles, --registry-max-bundles), or serve less", r.most)}
		}
		r.alive()
		if err := a.take(bundle); err != nil {
			return err
		}
	}
}

// take takes one bundle.
func (a *lean) take(b *api.Bundle) error {
	const overhead = 256 // of a bundle's places, by and large
	size := overhead + len(b.GetCsvName()) + len(b.GetReplaces()) + len(b.GetSkipRange()) + len(b.GetBundlePath()) + len(b.GetDeprecation().GetMessage())
	for _, skipped := range b.GetSkips() {
		size += 32 + len(skipped)
	}
	a.add(b)
	clear(a.values)
	if p := a.packages[b.GetPackageName()]; p != nil && len(p.Bundles) > 0 {
		last := &p.Bundles[len(p.Bundles)-1]
		last.Properties = slices.Clip(slices.DeleteFunc(slices.Clone(last.Properties), func(p olmcore.Property) bool { return p.Type != resolution.PropertyPackage }))
		for _, property := range last.Properties {
			size += len(property.Value)
		}
	}
	return a.grow(size)
}

// describeAll asks for the packages that have bundles, as reader.packages does.
func (a *lean) describeAll(ctx context.Context, r *reader) error {
	for _, name := range a.names() {
		described, err := r.client.GetPackage(ctx, &api.GetPackageRequest{Name: name}, r.codec)
		r.alive()
		switch {
		case unknown(err):
			a.leaveOut(name, quoted(status.Convert(err).Message()))
			continue
		case err != nil:
			return err
		}
		a.describe(name, described)
		size := len(described.GetDeprecation().GetMessage())
		for _, channel := range described.GetChannels() {
			size += 64 + len(channel.GetName()) + len(channel.GetDeprecation().GetMessage())
		}
		if err := a.grow(size); err != nil {
			return err
		}
	}
	return nil
}

// head asks for what describes a bundle of a package, and returns both.
func (r *reader) head(ctx context.Context, pkg, channel string, b resolution.Bundle) (resolution.Bundle, error) {
	b.Properties = slices.Clone(b.Properties)
	answer, err := r.client.GetBundle(ctx, &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: b.Name}, r.codec)
	r.alive()
	switch {
	case err != nil && !unknown(err) && status.Code(err) != codes.Unimplemented:
		return b, err
	case answer.GetCsvJson() != "":
		value, err := json.Marshal(map[string][]byte{"data": []byte(answer.GetCsvJson())})
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
