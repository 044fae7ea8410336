// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/olmcore/olm/internal/printable"
)

// firstReads is how long a replica that starts is not ready for want of catalogs.
const firstReads = 45 * time.Second

// gate is a readiness check that fails until it is opened: a replica that knows no catalog yet would show none.
type gate struct{ opened chan struct{} }

func newGate() gate { return gate{make(chan struct{})} }

// Name implements healthz.HealthChecker.
func (gate) Name() string { return "catalogs" }

// Check implements healthz.HealthChecker.
func (g gate) Check(*http.Request) error {
	select {
	case <-g.opened:
		return nil
	default:
		return errors.New("the catalogs are not read yet")
	}
}

// open opens the gate when wait returns, which returns the catalogs that were not read; after longest in any case.
// These are logged then.
func (g gate) open(ctx context.Context, wait func(context.Context) []string, longest time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for _, catalog := range wait(ctx) {
		slog.Warn(printable.OneLine("ready without a catalog that is not read: " + catalog))
	}
	close(g.opened)
}
