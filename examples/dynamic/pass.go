// SPDX-License-Identifier: Apache-2.0

package olmdynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

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

	last map[string]map[types.NamespacedName]olmcore.Outcomes
}

// Pass reconciles every key of every controller once. What fails does not stop the
// rest; the error joins what failed.
func (l *Loop) Pass(ctx context.Context) error {
	var failed []error
	for _, c := range l.Set.Controllers {
		if len(l.Only) > 0 && !slices.Contains(l.Only, c.Name) {
			continue
		}
		keys, err := c.Keys(ctx, l.Reader)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
			continue
		}
		before, after := l.last[c.Name], map[types.NamespacedName]olmcore.Outcomes{}
		for _, key := range keys {
			var err error
			if after[key], err = l.reconcile(ctx, c, key, before[key]); err != nil {
				failed = append(failed, fmt.Errorf("%s %s: %w", c.Name, key, err))
			}
		}
		if l.last == nil {
			l.last = map[string]map[types.NamespacedName]olmcore.Outcomes{}
		}
		l.last[c.Name] = after
	}
	return errors.Join(failed...)
}

func (l *Loop) reconcile(ctx context.Context, c controllers.Controller, key types.NamespacedName, last olmcore.Outcomes) (olmcore.Outcomes, error) {
	now := time.Now().UTC()
	result, err := c.Reconcile(ctx, l.Reader, key, now, last)
	if olmcore.Classify(err) == olmcore.Gone {
		return nil, nil
	}
	if err != nil {
		return last, err
	}
	for _, a := range result.Actions {
		verb, target, cause := a.Describe()
		fmt.Fprintf(l.Out, "%s %s: %s %s (%s)\n", c.Name, key, verb, target, cause.Reason)
	}
	for _, d := range result.Diagnostics {
		fmt.Fprintf(l.Out, "%s %s: %s %s: %s\n", c.Name, key, d.Severity, d.Reason, d.Message)
	}
	err = olmcore.Run(ctx, l.Executor, result.Actions)
	next := olmcore.OutcomesOf(last, result.Actions, err, now)
	if errors.Is(err, olmcore.ErrStale) {
		return next, nil // the next pass sees what is there now
	}
	return next, err
}
