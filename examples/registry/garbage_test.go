// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/olmcore/olm/examples/registry"
)

// verbatim is a codec that sends bytes as they are.
type verbatim struct{}

func (verbatim) Name() string { return "proto" }

func (verbatim) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (verbatim) Unmarshal(mem.BufferSlice, any) error { return nil }

// TestGarbageInsteadOfBundles: what answers speaks gRPC, and sends bytes that are no message.
func TestGarbageInsteadOfBundles(t *testing.T) {
	server := grpc.NewServer(grpc.ForceServerCodecV2(verbatim{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return stream.SendMsg([]byte("\xff\xff\xffgarbage"))
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	defer cancel()
	packages, _, err := registry.Read(ctx, conn, registry.Options{})
	require.Error(t, err)
	require.Empty(t, packages)
	require.Equal(t, "the registry sends what is no bundle or no package: check the image, and the versions of opm that made and serve it", registry.ProblemOf(err))
}
