// SPDX-License-Identifier: Apache-2.0

package registries

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

const (
	// refresh is how often a catalog is read again although its connection stays.
	refresh = 30 * time.Minute
	// firstRetry is how long it takes until a catalog is read again that could not be read, longestRetry after many times.
	firstRetry, longestRetry = time.Second, 5 * time.Minute
	// shortestPause is how long a catalog is not read after it was.
	shortestPause = time.Second
	// longestTurn is how long others wait for a catalog that is not of the global namespace.
	longestTurn = 2 * time.Minute
	// maxTold bounds what is said about one catalog.
	maxTold = 100
)

// reader reads one catalog. One goroutine runs it.
type reader struct {
	all     *Registries
	key     types.NamespacedName
	uid     types.UID
	address string
	stop    context.CancelFunc
	log     *slog.Logger

	// What follows is all.mu's. kept is the memory of what is shown.
	kept    int
	read    bool
	problem string
	final   bool // it stays until something else is served

	told     []olmcore.Diagnostic
	failures int
}

// run reads the catalog whenever its registry may show something else, until ctx is done.
func (r *reader) run(ctx context.Context) {
	if r.address == "" {
		r.fail(ctx, "it has no registry to ask, see the status of the CatalogSource", true)
		return
	}
	conn, err := r.all.options.Connector.Connect(r.address)
	if err != nil {
		r.fail(ctx, err.Error(), true)
		return
	}
	defer conn.Close()
	for {
		if conn.Ready(ctx, func(problem string) { r.fail(ctx, problem, false) }) != nil {
			return
		}
		made, begin := conn.Made(), time.Now()
		again := r.readOnce(ctx, conn)
		// One that changes all the time leaves half of the time to others.
		pause(ctx, max(shortestPause, time.Since(begin)))
		wait, cancel := context.WithTimeout(ctx, again)
		if r.failures == 0 {
			_ = conn.Lost(wait, made)
		} else {
			<-wait.Done()
		}
		cancel()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// readOnce reads the catalog when it is its turn, and returns when it is to be read again.
func (r *reader) readOnce(ctx context.Context, conn *registry.Conn) (again time.Duration) {
	global := r.key.Namespace == r.all.options.GlobalNamespace
	if r.all.turns.take(ctx, global) != nil {
		return 0
	}
	defer r.all.turns.give()
	reading, cancel := ctx, context.CancelFunc(func() {})
	if !global {
		reading, cancel = context.WithTimeoutCause(ctx, longestTurn, fmt.Errorf("the registry did not come to its end within %s, and other catalogs wait: check its load", longestTurn))
	}
	defer cancel()
	most, less := r.all.room(r.key)
	d := &packages.Describer{MaxBytes: most}
	shown, problems, err := describe(reading, conn, d)
	if err != nil {
		text, final := registry.Problem(err)
		if r.fail(ctx, text, final); final {
			r.failures = 0
			return refresh
		}
		r.failures++
		return min(firstRetry<<min(r.failures-1, 20), longestRetry)
	}
	if less != "" && slices.ContainsFunc(problems, func(d olmcore.Diagnostic) bool { return d.Reason == packages.ReasonTooLarge }) {
		problems = append(problems, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: packages.ReasonTooLarge, Message: less})
	}
	r.failures = 0
	r.succeed(ctx, shown, problems, d.Kept())
	return refresh
}

// describe reads what a catalog has to show, one head at a time.
func describe(ctx context.Context, conn *registry.Conn, d *packages.Describer) (shown packages.Catalog, problems []olmcore.Diagnostic, err error) {
	unusable, err := conn.Read(ctx, func(p registry.Package) error {
		pending := d.Begin(p.Package)
		for _, head := range pending.Heads() {
			b, err := p.Head(head.Channel, head.Name)
			if err != nil {
				return err
			}
			pending.Describe(b)
		}
		m, said := pending.End()
		if m != nil {
			shown.Packages = append(shown.Packages, *m)
		}
		problems = append(problems, said[:min(len(said), maxTold+1-min(len(problems), maxTold+1))]...)
		return nil
	})
	problems = append(slices.Clone(unusable), problems...)
	if len(problems) > maxTold {
		problems = append(problems[:maxTold:maxTold], olmcore.Diagnostic{Severity: olmcore.Warning, Message: "more is left out than is told here"})
	}
	return shown, problems, err
}

// fail takes note of why the catalog is not read, and logs it once.
func (r *reader) fail(ctx context.Context, problem string, final bool) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	known := r.problem == problem
	r.problem, r.final = problem, final
	if !known {
		r.log.Warn(printable.OneLine("the catalog is not read: "+problem), "shown", r.read)
		r.all.wake()
	}
}

// succeed takes what was read, unless the reader is to end, and logs what is left out, once.
func (r *reader) succeed(ctx context.Context, shown packages.Catalog, problems []olmcore.Diagnostic, kept int) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if !r.read || r.problem != "" {
		r.log.Info("the catalog is read", "packages", len(shown.Packages))
	}
	r.kept, r.read, r.problem, r.final = kept, true, "", false
	r.all.options.Put(r.key, shown)
	if !slices.Equal(r.told, problems) {
		r.told = problems
		for _, d := range problems {
			r.log.Info(printable.OneLine(d.Message), "reason", d.Reason, "path", d.Path)
		}
	}
	r.all.wake()
}
