// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// answer is an error in the words of a registry: what gRPC's client says itself, of a connection that is lost or a
// message that is too large, comes in the same form.
type answer struct{ error }

// Unwrap is for package errors.
func (a *answer) Unwrap() error { return a.error }

// listener is a stats.Handler that notices when a registry ends a call itself.
type listener struct{}

type endedKey struct{}

// HandleRPC implements stats.Handler.
func (listener) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ended := event.(*stats.InTrailer); !ended {
		return
	}
	if call, ok := ctx.Value(endedKey{}).(*atomic.Bool); ok {
		call.Store(true)
	}
}

// TagRPC implements stats.Handler.
func (listener) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (listener) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (listener) HandleConn(context.Context, stats.ConnStats) {}

// call makes one call. Its error is an answer when the registry ended the call.
func call(ctx context.Context, make func(context.Context) error) error {
	ended := &atomic.Bool{}
	err := make(context.WithValue(ctx, endedKey{}, ended))
	if _, ok := statusOf(err); ok && ended.Load() {
		return &answer{err}
	}
	return err
}

// statusOf is the status in an error, as it came.
func statusOf(err error) (*status.Status, bool) {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return nil, false
	}
	return carrier.GRPCStatus(), true
}
