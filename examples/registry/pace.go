// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"time"

	"google.golang.org/grpc/keepalive"
)

// pace is how long clients wait.
type pace struct {
	// grace is how long a client that has read nothing yet keeps a failure to itself: a first try may fail because
	// something else has just started.
	grace time.Duration
	// firstRetry is how long a client waits before it tries again, longestConnect and longestRead after many times.
	firstRetry, longestConnect, longestRead time.Duration
	// refresh is how often content is read again of which nothing tells whether it changed.
	refresh time.Duration
	// keepAlive finds peers that are gone while they are to answer. Registries close connections of clients that ping
	// without a call, or more often than every five minutes.
	keepAlive keepalive.ClientParameters
}

// usual is the pace of clients.
var usual = pace{
	grace:      5 * time.Second,
	firstRetry: time.Second, longestConnect: 30 * time.Second, longestRead: 5 * time.Minute,
	refresh:   30 * time.Minute,
	keepAlive: keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second},
}

// backoff is how long to wait after so many times before.
func (p *pace) backoff(times int, most time.Duration) time.Duration {
	return min(p.firstRetry<<min(times, 20), most)
}

// fail tells why there is no connection, or no content; during the grace period it is kept for tellLate.
func (c *client) fail(ctx context.Context, problem string) {
	c.mu.Lock()
	early := c.content == nil && c.grace(time.Now()) > 0
	c.unsaid = ""
	if early {
		c.unsaid = problem
	}
	c.mu.Unlock()
	if !early {
		c.tell(ctx, problem)
	}
}

// tellLate tells a failure that was kept once the grace period is over, and returns how long that is from now; 0: there
// is nothing to be told.
func (c *client) tellLate(ctx context.Context) time.Duration {
	c.mu.Lock()
	problem, left := c.unsaid, c.grace(time.Now())
	if left <= 0 {
		c.unsaid = ""
	}
	c.mu.Unlock()
	switch {
	case problem == "":
		return 0
	case left <= 0:
		c.tell(ctx, problem)
		return 0
	}
	return left
}

// grace is how much is left of the grace period.
func (c *client) grace(now time.Time) time.Duration {
	return c.began.Add(c.all.options.pace.grace).Sub(now)
}
