// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limit is how long a test waits for what a program does at once on a machine that is not busy.
const limit = 30 * time.Second

// program is one that runs until it is stopped, or the test ends.
type program struct {
	*testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once it has ended
}

func start(t *testing.T, args ...string) *program {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{T: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = Run(ctx, args, io.Discard)
	}()
	t.Cleanup(p.stop)
	return p
}

// stop returns when the program has ended, which is to be without an error.
func (p *program) stop() {
	p.Helper()
	p.cancel()
	select {
	case <-p.ended:
		require.NoError(p, p.err)
	case <-time.After(limit):
		require.Fail(p, "the program does not end")
	}
}

// until waits while the program runs; look returns what there is, for a test that fails.
func (p *program) until(is func() bool, look ...func() string) {
	p.Helper()
	for deadline := time.Now().Add(limit); !is(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-p.ended:
			require.Fail(p, "the program has ended", "%v", p.err)
		default:
		}
		if time.Now().After(deadline) {
			have := ""
			for _, look := range look {
				have += look()
			}
			require.Fail(p, "it does not come to be", "%s", have)
		}
	}
}
