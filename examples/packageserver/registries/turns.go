// SPDX-License-Identifier: Apache-2.0

package registries

import (
	"context"
	"slices"
	"sync"
)

// turns lets one catalog be read at a time: those of the global namespace first, else who waits longest.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []turn
}

type turn struct {
	first bool
	begin chan struct{}
}

// take returns when it is the caller's turn, which ends with give, or with the error of ctx.
func (t *turns) take(ctx context.Context, first bool) error {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return nil
	}
	mine := turn{first, make(chan struct{})}
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine.begin:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, mine)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it is its turn meanwhile
		t.give()
	}
	return ctx.Err()
}

// give ends the caller's turn.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	i := max(0, slices.IndexFunc(t.waiting, func(w turn) bool { return w.first }))
	close(t.waiting[i].begin)
	t.waiting = slices.Delete(t.waiting, i, i+1)
}
