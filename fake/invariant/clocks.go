// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// ClockPairs returns how far the clocks of two managers are ahead of that of the API server. No two of the three clocks
// differ by more than olmcore.ClockTolerance.
func ClockPairs() [][2]time.Duration {
	const most = olmcore.ClockTolerance
	return [][2]time.Duration{{0, most / 2}, {0, most}, {most, 0}, {0, -most / 2}, {0, -most}, {-most, 0}, {-most / 2, most / 2}}
}

// TwoClocks runs two managers with different clocks over one cluster. Agree and RunFor check that they do not
// contradict each other. A TwoClocks must not be copied.
type TwoClocks struct {
	Cluster *fake.Cluster
	// Managers contains the controllers of each manager, which must have its own memory.
	Managers [2][]controller.Controller
	// Ahead is how far the clock of each manager is ahead of that of the cluster.
	Ahead [2]time.Duration
	// Rounds is the number of turns of each manager after which both must be at rest.
	Rounds int
	// Passed counts the deadlines that only the faster clock had passed. Zero means that the test exercised no clock.
	Passed int

	runners [2][]*controller.Runner
	// states are the states of each object in the order in which the managers wrote them. restored counts how often a
	// manager wrote a state of its own again that the other one had replaced.
	states   map[stateKey][]written
	restored map[stateKey]int
	writes   int
	// version is the resourceVersion of the cluster when the managers came to rest.
	version string
}

// stateKey is the key of the status of an object, or of the rest of it.
type stateKey struct {
	olmcore.Key
	isStatus bool
}

// written is a state of an object without times: the manager that wrote it, when, and the write as a text.
type written struct {
	who         int
	at          time.Time
	state, text string
	// number counts the writes of all objects. isRestored is the result of the function isRestored for this write.
	number     int
	isRestored bool
}

// memory is how long a state counts as one that was replaced. Managers disagree because of their clocks for as long as
// these differ. What returns later may be due to a retry.
const memory = 2 * olmcore.ClockTolerance

// allowedRestores is how often the managers may restore states of an object of a kind that they had replaced. Kinds
// that are not listed may not at all.
var allowedRestores = map[schema.GroupKind]int{
	// Until the slower clock has passed the time of a connection that the other manager wrote, both may replace it in
	// turn.
	{Group: v1alpha1.GroupName, Kind: v1alpha1.CatalogSourceKind}: 4,
}

// Agree lets both managers reconcile everything in turn while time stands still. The error contains what they still
// write after Rounds turns. Writes that the API server rejects do not count.
func (c *TwoClocks) Agree(ctx context.Context) error {
	if c.version != c.Cluster.ResourceVersion() { // another client changed the cluster, so that an earlier state may be right again
		c.states, c.restored = nil, nil
	}
	return c.agree(ctx)
}

func (c *TwoClocks) agree(ctx context.Context) error {
	defer func() { c.version = c.Cluster.ResourceVersion() }()
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
	behind := max(c.Ahead[0], c.Ahead[1]) - c.Ahead[who]
	for index := range c.Managers[who] {
		r := c.runner(who, index)
		keys, err := r.Keys(ctx, c.Cluster)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		for _, key := range keys {
			report, err := r.RunOnce(ctx, key, c.Cluster.Now().Add(c.Ahead[who]))
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", r.Name, key, err)
			}
			if report.Result.RequeueAfter > 0 && report.Result.RequeueAfter <= behind {
				c.Passed++
			}
			for _, action := range succeeded(report) {
				wrote = append(wrote, action)
				if err := c.contradicts(who, action); err != nil {
					return nil, err
				}
			}
		}
	}
	return wrote, nil
}

// runner returns the Runner of a controller of a manager.
func (c *TwoClocks) runner(who, index int) *controller.Runner {
	if index >= len(c.runners[who]) {
		c.runners[who] = append(c.runners[who], &controller.Runner{Reader: c.Cluster, Executor: c.Cluster})
	}
	r := c.runners[who][index]
	r.Controller = c.Managers[who][index]
	return r
}

// RunFor moves the clock in small steps, and both managers come to rest after each step. They may not replace each
// other's states of an object in turn, whatever the number of these states. A state that names another object may
// return when the status of that object has changed.
func (c *TwoClocks) RunFor(ctx context.Context, d, step time.Duration) error {
	if err := c.Agree(ctx); err != nil {
		return err
	}
	for ; d > 0; d -= step {
		if err := c.Cluster.RunFor(step); err != nil {
			return err
		}
		if err := c.agree(ctx); err != nil {
			return err
		}
	}
	return nil
}

// contradicts remembers a write. The error says that a manager restored a state of an object more often than its kind
// allows.
func (c *TwoClocks) contradicts(who int, action olmcore.Action) error {
	_, target, _ := action.Describe()
	_, isStatus := action.(olmcore.UpdateStatus)
	key := stateKey{target.Key(), isStatus}
	state := stateAfter(action)
	if state == "" { // the object is another one
		delete(c.states, stateKey{key.Key, true})
		delete(c.states, stateKey{key.Key, false})
		return nil
	}
	if c.states == nil {
		c.states, c.restored = map[stateKey][]written{}, map[stateKey]int{}
	}
	c.writes++
	list := append(c.states[key], written{who: who, at: c.Cluster.Now(), state: state, text: describeWrite(action), number: c.writes})
	last := &list[len(list)-1]
	last.isRestored = isRestored(list)
	c.states[key] = list
	if !last.isRestored || c.follows(key, list) {
		return nil
	}
	if c.restored[key]++; c.restored[key] <= allowedRestores[target.GVK().GroupKind()] {
		return nil
	}
	return fmt.Errorf("managers whose clocks are %v ahead replace each other's states of %s:\n%s", c.Ahead, key.Key, lastWrites(list))
}

// isRestored reports whether the manager that wrote the last state wrote it before, and the other manager has replaced
// it or what came after it. Managers that disagree without end repeat their states sooner or later, however many these
// are. A manager that writes a state of the other one agrees with it.
func isRestored(list []written) bool {
	last := list[len(list)-1]
	isOfBoth := false
	for i := len(list) - 2; i >= 0 && last.at.Sub(list[i].at) <= memory; i-- {
		switch {
		case list[i].who != last.who:
			isOfBoth = isOfBoth || list[i].state != last.state
		case list[i].state == last.state:
			return isOfBoth
		}
	}
	return false
}

// follows reports whether the last state of an object contains the name of another object of its kind and namespace
// whose status changed since the state before it. Then the message may repeat what that status says. A status that was
// itself restored does not count: otherwise two objects could excuse each other without end.
func (c *TwoClocks) follows(key stateKey, list []written) bool {
	last, before := list[len(list)-1], list[len(list)-2]
	names := namesIn(last.state)
	for other, states := range c.states {
		isOfKind := other.Group == key.Group && other.Kind == key.Kind && other.Namespace == key.Namespace
		if !isOfKind || !other.isStatus || other.Name == key.Name || !names.Has(other.Name) {
			continue
		}
		if latest := states[len(states)-1]; latest.number > before.number && !latest.isRestored {
			return true
		}
	}
	return false
}

// namesIn returns the words of a text that can be names of objects.
func namesIn(text string) sets.Set[string] {
	return sets.New(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '.'
	})...)
}

// lastWrites returns the last writes of an object, each with the manager that wrote it.
func lastWrites(list []written) string {
	var lines []string
	for _, w := range list[max(0, len(list)-4):] {
		lines = append(lines, fmt.Sprintf("manager %d: %s", w.who, w.text))
	}
	return strings.Join(lines, "\n")
}

// stateAfter returns what an action writes without times: the status, or all but the status. It returns nothing for
// other actions. The history in the status of a ClusterServiceVersion does not count, as it makes each state a new one.
func stateAfter(action olmcore.Action) string {
	var after olmcore.Object
	isStatus := false
	switch a := action.(type) {
	case olmcore.UpdateStatus:
		after, isStatus = a.After, true
	case olmcore.Update:
		after = a.After
	default:
		return ""
	}
	values, err := olmcore.ToMap(after)
	if err != nil {
		return ""
	}
	if metadata, ok := values["metadata"].(map[string]any); ok {
		delete(metadata, "generation")
	}
	maps.DeleteFunc(values, func(field string, _ any) bool { return (field == "status") != isStatus })
	if _, isVersion := after.(*v1alpha1.ClusterServiceVersion); isVersion && isStatus {
		unstructured.RemoveNestedField(values, "status", "conditions")
	}
	(World{SettleTime: 1}).mask(values, nil)
	text, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return string(text)
}

// succeeded returns the actions that the API server did not reject.
func succeeded(report controller.Report) (list []olmcore.Action) {
	results := olmcore.LastResultsOf(nil, report.Result.Actions, report.Err, time.Time{})
	for _, action := range report.Result.Actions {
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
