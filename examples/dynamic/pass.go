// SPDX-License-Identifier: Apache-2.0

package olmdynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// Loop reconciles every key, again and again.
type Loop struct {
	Reader   olmcore.Reader
	Executor olmcore.Executor
	Set      *controllers.Set
	// Only are the names of the controllers that run; empty: all.
	Only []string
	// Out gets a line for each action and each diagnostic.
	Out io.Writer

	runners []*controllers.Runner
}

// Pass reconciles every key of every controller once. What fails does not stop the
// rest; the error joins what failed.
func (l *Loop) Pass(ctx context.Context) error {
	if l.runners == nil {
		l.start()
	}
	var failed []error
	for _, r := range l.runners {
		keys, err := r.Keys(ctx, l.Reader)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", r.Name, err))
			continue
		}
		for _, key := range keys {
			if _, err := r.Run(ctx, key, time.Now().UTC()); err != nil {
				failed = append(failed, fmt.Errorf("%s %s: %w", r.Name, key, err))
			}
		}
	}
	return errors.Join(failed...)
}

func (l *Loop) start() {
	for _, c := range l.Set.Controllers {
		if len(l.Only) > 0 && !slices.Contains(l.Only, c.Name) {
			continue
		}
		l.runners = append(l.runners, &controllers.Runner{
			Controller: c, Reader: l.Reader, Executor: l.Executor,
			Told: func(report controllers.Report) { l.print(c.Name, report) },
		})
	}
}

func (l *Loop) print(name string, report controllers.Report) {
	for _, a := range report.Result.Actions {
		verb, target, cause := a.Describe()
		fmt.Fprintf(l.Out, "%s %s: %s %s (%s)\n", name, report.Key, verb, target, cause.Reason)
	}
	for _, d := range report.News {
		fmt.Fprintf(l.Out, "%s %s: %s %s: %s\n", name, report.Key, d.Severity, d.Reason, d.Message)
	}
}
