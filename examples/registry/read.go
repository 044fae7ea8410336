// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// slowest is how many Timeouts reading a catalog may take.
const slowest = 10

// maxFields bounds the parts of one message, such as the versions that an entry skips: decoded, a small part takes many
// times its size.
const maxFields = 10_000

// read reads all of a catalog into an assembly: its bundles in one stream, then each package.
func (o *Options) read(ctx context.Context, conn grpc.ClientConnInterface, in *part, a *assembly, missing *absences) ([]resolution.Package, []olmcore.Diagnostic, error) {
	err := o.ask(ctx, conn, o.MaxBytes, in, func(ctx context.Context, r *reader) error {
		if err := r.bundles(ctx, a); err != nil {
			return err
		}
		return r.packages(ctx, a, missing)
	})
	if err != nil {
		return nil, nil, err
	}
	packages, problems := a.result()
	return packages, problems, nil
}

// ask asks a registry, which may send so many bytes, into a part of its namespace's room, for as long as it answers.
func (o *Options) ask(ctx context.Context, conn grpc.ClientConnInterface, most int64, in *part, questions func(context.Context, *reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(o.Timeout, func() {
		cancel(fmt.Errorf("the registry sent nothing for %s: check its log and its load", o.Timeout))
	})
	defer silent.Stop()
	whole := time.AfterFunc(slowest*o.Timeout, func() {
		cancel(&limitError{text: fmt.Sprintf("the registry did not come to its end within %s: check its load, or raise the timeout", slowest*o.Timeout)})
	})
	defer whole.Stop()

	limit := &limited{CodecV2: encoding.GetCodecV2("proto"), most: most, in: in}
	err := questions(ctx, &reader{client: api.NewRegistryClient(conn), codec: grpc.ForceCodecV2(limit), limit: limit, alive: func() { silent.Reset(o.Timeout) }, most: o.MaxBundles})
	switch {
	case limit.failed.Load() != nil:
		return *limit.failed.Load()
	case err != nil && context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), context.Canceled):
		return context.Cause(ctx)
	}
	return err
}

// reader asks one registry.
type reader struct {
	client api.RegistryClient
	codec  grpc.CallOption
	limit  *limited
	alive  func()
	most   int
}

func (r *reader) bundles(ctx context.Context, a *assembly) error {
	return call(ctx, func(ctx context.Context) error { return r.listBundles(ctx, a) })
}

func (r *reader) listBundles(ctx context.Context, a *assembly) error {
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
		a.add(bundle)
		if err := r.limit.keep(a.grown()); err != nil {
			return err
		}
	}
}

// packages asks for the packages that have bundles. One that the registry says again not to have is left out; any other
// failure is that of the catalog, since what is missing then may be anything.
func (r *reader) packages(ctx context.Context, a *assembly, missing *absences) (doubt error) {
	for _, name := range a.names() {
		var described *api.Package
		err := call(ctx, func(ctx context.Context) (err error) {
			described, err = r.client.GetPackage(ctx, &api.GetPackageRequest{Name: name}, r.codec)
			return err
		})
		r.alive()
		why, gone := absentPackage(err, name)
		if err == nil && described.GetName() != name {
			why, gone = fmt.Sprintf("the registry answers with package %s", quoted(described.GetName())), true
		}
		switch {
		case gone && missing.again("package "+name):
			a.leaveOut(name, why)
		case gone:
			doubt = cmp.Or(doubt, error(&absent{fmt.Sprintf("package %s has bundles, and is not described: %s", quoted(name), why)}))
		case err != nil:
			return err
		default:
			a.describe(name, described)
			if err := r.limit.keep(a.grown()); err != nil {
				return err
			}
		}
	}
	return doubt
}

// limited is a codec that decodes only so much: what is sent, and what it takes beside that when it is kept.
type limited struct {
	encoding.CodecV2
	most   int64
	in     *part
	taken  atomic.Int64
	failed atomic.Pointer[error]
}

// Unmarshal implements encoding.CodecV2.
func (l *limited) Unmarshal(data mem.BufferSlice, v any) error {
	err := l.unmarshal(data, v)
	if err != nil {
		l.failed.CompareAndSwap(nil, &err)
	}
	return err
}

func (l *limited) unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	if err := l.keep(int64(data.Len())); err != nil {
		return err
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	text := buffer.ReadOnlyData()
	if parts := fieldsOf(text); parts > maxFields {
		return &limitError{text: fmt.Sprintf("a bundle or a package has more than %d properties, skipped versions and the like", maxFields)}
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, message); err != nil {
		return errors.New("the registry sends what is no bundle or no package: check the image, and the versions of opm that made and serve it")
	}
	return nil
}

// keep takes so many bytes more.
func (l *limited) keep(size int64) error {
	if l.taken.Add(size) > l.most {
		return &limitError{text: fmt.Sprintf("the catalog is larger than %d bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less", l.most)}
	}
	return l.in.take(size)
}

// fieldsOf counts the parts of a message, up to where it is broken or there are too many.
func fieldsOf(text []byte) (count int) {
	for len(text) > 0 && count <= maxFields {
		_, _, n := protowire.ConsumeField(text)
		if n < 0 {
			return count
		}
		text = text[n:]
		count++
	}
	return count
}
