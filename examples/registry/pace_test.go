// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/keepalive"

	"github.com/olmcore/olm/examples/registry"
)

// times is when something was tried.
type times struct {
	mu   sync.Mutex
	list []time.Time
}

func (x *times) now() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(x.list, time.Now())
}

// gaps waits for so many tries, and returns how long it was from each to the next.
func (x *times) gaps(t *testing.T, n int) (gaps []time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.list) >= n
	}, testDeadline, time.Millisecond, "it is not tried again")
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := 1; i < n; i++ {
		gaps = append(gaps, x.list[i].Sub(x.list[i-1]))
	}
	return gaps
}

// TestReadsAreTriedAgainWithBackoff: after 1 s to 5 min, beyond a limit of its own after 30 min.
func TestReadsAreTriedAgainWithBackoff(t *testing.T) {
	var reads times
	w := newWorld(t, registry.Paced(registry.Options{}, 0, 20*time.Millisecond, 160*time.Millisecond))
	w.leads(listen(t, &script{bundles: func(func(*api.Bundle) error, context.Context) error {
		reads.now()
		return errors.New("the disk is full")
	}}))
	w.connection()
	for i, gap := range reads.gaps(t, 12) {
		require.GreaterOrEqual(t, gap, min(20*time.Millisecond<<i, 160*time.Millisecond), i)
	}

	for failures, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 8: 256 * time.Second, 9: 5 * time.Minute, 1 << 40: 5 * time.Minute} {
		require.Equal(t, want, registry.RetryAfter(failures, errors.New("x")))
		require.Equal(t, want, registry.RetryAfter(failures, registry.Limit(true)), "others may leave more")
		require.Equal(t, 30*time.Minute, registry.RetryAfter(failures, registry.Limit(false)))
	}
}

// TestDialsAreTriedAgainWithBackoff.
func TestDialsAreTriedAgainWithBackoff(t *testing.T) {
	var dials times
	w := newWorld(t, registry.Paced(registry.Options{Dial: func(context.Context, string) (net.Conn, error) {
		dials.now()
		return nil, errors.New("refused")
	}}, 0, 50*time.Millisecond, 200*time.Millisecond))
	w.connection()
	delay := 50 * time.Millisecond
	for i, gap := range dials.gaps(t, 14) { // without its bound the last delay would be 20 s
		require.GreaterOrEqual(t, gap, delay*7/10, "delay %d, with jitter", i)
		delay = min(delay*16/10, 200*time.Millisecond)
	}
}

// TestTheUsualPace is what the README says, and what registries bear.
func TestTheUsualPace(t *testing.T) {
	grace, firstRetry, longestConnect, longestRead, refresh, keepAlive := registry.Usual()
	require.Equal(t, 5*time.Second, grace)
	require.Equal(t, time.Second, firstRetry)
	require.Equal(t, 30*time.Second, longestConnect)
	require.Equal(t, 5*time.Minute, longestRead)
	require.Equal(t, 30*time.Minute, refresh)
	require.Equal(t, keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}, keepAlive, "servers close connections of clients that ping more often, or without a call")
}

// deaf is a connection on which nothing comes any more once something came that is as long.
type deaf struct {
	net.Conn
	after int
	ended chan struct{}
	once  sync.Once
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.after <= 0 {
		<-d.ended
		return 0, net.ErrClosed
	}
	n, err := d.Conn.Read(p)
	d.after -= n
	return n, err
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.ended) })
	return d.Conn.Close()
}

// TestAPeerThatIsGoneIsNoticed while it is to answer, long before the registry counts as silent. gRPC looks after 10 s
// at the earliest.
func TestAPeerThatIsGoneIsNoticed(t *testing.T) {
	w := newWorld(t, registry.KeptAlive(registry.Options{}, time.Second, 100*time.Millisecond))
	w.wrap = func(c net.Conn) net.Conn { return &deaf{Conn: c, after: 300, ended: make(chan struct{})} }
	w.leads(listen(t, &script{bundles: func(send func(*api.Bundle) error, ctx context.Context) error {
		for i := range 10 {
			if err := send(etcd(i)); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}}))
	w.connection()
	w.until("the failure is told", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
	require.Equal(t, "the connection was lost while the catalog was read: check the registry's log and its memory limit", w.connection().Problem)
}

// TestAFirstFailureIsNotTold: a restart writes no failure that is over a second later.
func TestAFirstFailureIsNotTold(t *testing.T) {
	reset := errors.New("reset")
	for name, test := range map[string]struct{ dials, reads int32 }{"of the network": {1, 0}, "of the registry": {0, 1}, "of both": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			f := newFickle()
			var reads, dials atomic.Int32
			f.pkg = func(name string) (*api.Package, error) {
				if reads.Add(1) <= test.reads {
					return nil, fmt.Errorf("too many open files")
				}
				return &api.Package{Name: name, DefaultChannelName: "stable"}, nil
			}
			var w *world
			w = newWorld(t, registry.Paced(registry.Options{Dial: func(ctx context.Context, to string) (net.Conn, error) {
				if dials.Add(1) <= test.dials {
					return nil, reset
				}
				return w.dial(ctx, to)
			}}, testDeadline, 50*time.Millisecond, time.Second))
			w.leads(listen(t, f))
			w.connection()
			w.until("the content is read", func() bool {
				connection := w.connection()
				require.Contains(t, []string{"CONNECTING", "READY"}, connection.State, connection.Problem)
				_, failure := w.target()
				require.Contains(t, []string{"pending", ""}, failure)
				return connection.State == "READY"
			})
			w.requireTarget("etcd.v1.0.0")
		})
	}
}

// TestAFailureIsToldAfterTheGracePeriod, even when nothing is tried just then; a limit is told at once.
func TestAFailureIsToldAfterTheGracePeriod(t *testing.T) {
	refused := func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }
	full := &script{bundles: func(func(*api.Bundle) error, context.Context) error { return errors.New("the disk is full") }}
	for name, test := range map[string]struct {
		o     registry.Options
		grace time.Duration
		want  string
	}{
		"of the network":  {registry.Options{Dial: refused}, 300 * time.Millisecond, "refused"},
		"of the registry": {registry.Options{}, 300 * time.Millisecond, "the registry answers Unknown: the disk is full"},
		"a limit":         {registry.Options{MaxBytes: 1}, time.Hour, "the catalog is larger than 1 bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			w := newWorld(t, registry.Paced(test.o, test.grace, time.Hour, time.Hour))
			if test.o.MaxBytes > 0 {
				w.leads(listen(t, sends(etcd(1))))
			} else {
				w.leads(listen(t, full))
			}
			w.connection()
			w.until("the failure is told", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
			require.Equal(t, test.want, w.connection().Problem)
			_, failure := w.target()
			require.Contains(t, failure, test.want)
			if test.grace < time.Hour {
				require.GreaterOrEqual(t, time.Since(began), test.grace)
			}
		})
	}
}
