// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// ClockPairs returns how far the clocks of two managers are ahead of that of the API server. No two of the three clocks
// differ by more than olmcore.ClockTolerance.
func ClockPairs() [][2]time.Duration {
	const most = olmcore.ClockTolerance
	return [][2]time.Duration{{0, most / 2}, {0, most}, {most, 0}, {0, -most / 2}, {0, -most}, {-most, 0}, {-most / 2, most / 2}}
}

// TwoClocks runs two managers with different clocks over one cluster. Agree and RunFor check that they do not contradict each other.
// A TwoClocks must not be copied.
type TwoClocks struct {
	Cluster *fake.Cluster
	// Managers contains the controllers of each manager, which must have its own memory.
	Managers [2][]fake.Controller
	// Ahead is how far the clock of each manager is ahead of that of the cluster.
	Ahead [2]time.Duration
	// Rounds is the number of turns of each manager after which both must be at rest.
	Rounds int
	// Passed counts the deadlines that only the faster clock had passed. Zero means that the test exercised no clock.
	Passed int

	memory [2]map[string]olmcore.LastResults
	// states are the last states of each object, each with the manager that wrote it; contradictions counts how often a
	// manager restored what the other one had replaced.
	states         map[olmcore.Key][]written
	contradictions map[olmcore.Key]int
}

// written is the state of an object without times, and the manager that wrote it.
type written struct {
	who   int
	state string
}

// maxContradictions is how often in a row a manager may restore what the other one replaced. It may happen a few times until
// the slower clock has passed a time that the other manager wrote, for example that of a connection.
const maxContradictions = 4

// Agree lets both managers reconcile everything in turn while time stands still. The error contains what they still write
// after Rounds turns. Writes that the API server rejects do not count.
func (c *TwoClocks) Agree(ctx context.Context) error {
	var wrote []string
	for range c.Rounds {
		wrote = nil
		for who := range c.Managers {
			actions, err := c.turn(ctx, who)
			if err != nil {
				return err
			}
			for _, action := range actions {
				wrote = append(wrote, fmt.Sprintf("manager %d: %s", who, describeWrite(action)))
			}
			if err := c.Cluster.Settle(); err != nil {
				return err
			}
		}
		if len(wrote) == 0 {
			return nil
		}
	}
	return fmt.Errorf("managers whose clocks are %v ahead still write\n%s", c.Ahead, strings.Join(wrote, "\n"))
}

// turn lets a manager reconcile everything once, and returns its successful writes.
func (c *TwoClocks) turn(ctx context.Context, who int) (wrote []olmcore.Action, err error) {
	if c.memory[who] == nil {
		c.memory[who] = map[string]olmcore.LastResults{}
	}
	behind := max(c.Ahead[0], c.Ahead[1]) - c.Ahead[who]
	for _, controller := range c.Managers[who] {
		for _, key := range controller.Keys(c.Cluster) {
			now, name := c.Cluster.Now().Add(c.Ahead[who]), controller.Name+" "+key.String()
			last := c.memory[who][name]
			result, err := controller.Reconcile(ctx, c.Cluster, key, now, last)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if result.RequeueAfter > 0 && result.RequeueAfter <= behind {
				c.Passed++
			}
			last = olmcore.LastResultsOf(last, result.Actions, olmcore.Run(ctx, c.Cluster, result.Actions), now)
			c.memory[who][name] = last
			for _, action := range succeeded(result.Actions, last) {
				wrote = append(wrote, action)
				if err := c.contradicts(who, action); err != nil {
					return nil, err
				}
			}
		}
	}
	return wrote, nil
}

// RunFor lets time go on in small steps, and lets both managers come to rest after each. They may not replace each other's
// states of an object in turn.
func (c *TwoClocks) RunFor(ctx context.Context, d, step time.Duration) error {
	for ; d > 0; d -= step {
		if err := c.Agree(ctx); err != nil {
			return err
		}
		if err := c.Cluster.RunFor(step); err != nil {
			return err
		}
	}
	return c.Agree(ctx)
}

// contradicts remembers a write. The error says that a manager restored again and again what the other one had replaced.
func (c *TwoClocks) contradicts(who int, action olmcore.Action) error {
	_, target, _ := action.Describe()
	key := target.Key()
	state := stateAfter(action)
	if state == "" {
		delete(c.states, key)
		return nil
	}
	if c.states == nil {
		c.states, c.contradictions = map[olmcore.Key][]written{}, map[olmcore.Key]int{}
	}
	last := c.states[key]
	c.states[key] = append(last[max(0, len(last)-1):], written{who, state})
	if len(last) < 2 || last[0] != (written{who, state}) || last[1].who == who || last[1].state == state {
		c.contradictions[key] = 0
		return nil
	}
	if c.contradictions[key]++; c.contradictions[key] > maxContradictions {
		return fmt.Errorf("managers whose clocks are %v ahead replace each other's state of %s:\n%s\n%s", c.Ahead, key, last[1].state, state)
	}
	return nil
}

// stateAfter returns what an action writes without times, or nothing for a deletion.
func stateAfter(action olmcore.Action) string {
	var after olmcore.Object
	switch a := action.(type) {
	case olmcore.UpdateStatus:
		after = a.After
	case olmcore.Update:
		after = a.After
	default:
		return ""
	}
	values, err := olmcore.ToMap(after)
	if err != nil {
		return ""
	}
	(World{SettleTime: 1}).mask(values, nil)
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return string(text)
}

// succeeded returns the actions that the API server did not reject.
func succeeded(actions []olmcore.Action, results olmcore.LastResults) (list []olmcore.Action) {
	for _, action := range actions {
		_, target, _ := action.Describe()
		if last, ran := results[target.Key()]; ran && last.Class == olmcore.ClassNone {
			list = append(list, action)
		}
	}
	return list
}

// describeWrite returns an action with its reason and, for a status, its patch.
func describeWrite(action olmcore.Action) string {
	verb, target, cause := action.Describe()
	text := fmt.Sprintf("%s %s (%s: %s)", verb, target, cause.Reason, cause.Message)
	if record, err := olmcore.RecordOf(action); err == nil && len(record.Patch) > 0 {
		text += " " + string(record.Patch)
	}
	return text
}
