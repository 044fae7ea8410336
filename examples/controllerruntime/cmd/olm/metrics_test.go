// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/internal/apiserver"
)

// TestTheProgramExportsMetrics of the library, once it works.
func TestTheProgramExportsMetrics(t *testing.T) {
	serve(t, apiserver.Definitions()...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--metrics-bind-address", address, "--zap-log-level", "error"}, nil, io.Discard)
	}()
	for text := ""; !strings.Contains(text, `olm_kind_readable{kind="Subscription"} 1`); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			continue // it does not listen yet
		}
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.Equal(t, http.StatusOK, response.StatusCode, string(body))
		text = string(body)
	}
	cancel()
	require.NoError(t, <-ended)
}
