// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// World is a cluster and the controllers in it. It is built anew for every run, so New must build the same each time.
type World struct {
	New func() (*fake.Cluster, error)
	// Controllers returns the controllers of a cluster.
	Controllers func(c *fake.Cluster) []controller.Controller
	// Rounds is the number of rounds in which the world must come to rest while its clock stands still.
	Rounds int
	// SettleTime is how far the clock may move, from deadline to deadline, in a run in which actions are lost or repeated.
	// The bound of rounds then holds anew after each move.
	SettleTime time.Duration
	// Ignore is what the laws do not count. What the cluster numbers (UIDs, resourceVersions, generations, addresses) and,
	// with SettleTime, times are never compared.
	Ignore []Ignore
}

// round is one reconcile with actions that count: its number in the run, and the actions.
type round struct {
	number  int
	actions []olmcore.Action
}

// Settles checks that the world comes to rest within its rounds, and that another round then asks for nothing.
func Settles(w World) error {
	w.SettleTime = 0
	_, _, err := w.run(func(r round) []olmcore.Action { return r.actions }, w.Rounds, 0)
	return err
}

// Repeatable checks that running the actions of every round twice leads to the same end as running them once.
func Repeatable(w World) error {
	want, _, err := w.run(func(r round) []olmcore.Action { return r.actions }, w.Rounds, 0)
	if err != nil {
		return err
	}
	got, _, err := w.run(
		func(r round) []olmcore.Action { return append(r.actions[:len(r.actions):len(r.actions)], r.actions...) },
		2*w.Rounds,
		0,
	)
	if err != nil {
		return fmt.Errorf("not repeatable: %w", err)
	}
	return same("not repeatable: with every action run twice", want, got)
}

// Resumable checks that the world comes to the same end when any one action of
// any one reconcile is lost, and when everything behind it is lost too.
func Resumable(w World) error {
	var rounds []round
	want, _, err := w.run(func(r round) []olmcore.Action {
		rounds = append(rounds, r)
		return r.actions
	}, w.Rounds, 0)
	if err != nil {
		return err
	}
	for _, lossy := range rounds {
		for i, a := range lossy.actions {
			verb, target, _ := a.Describe()
			for _, loss := range losses {
				if loss.same(lossy.actions, i) {
					continue
				}
				got, _, err := w.run(func(r round) []olmcore.Action {
					if r.number == lossy.number {
						return loss.of(r.actions, i)
					}
					return r.actions
				}, 3*w.Rounds, lossy.number+1)
				title := fmt.Sprintf("not resumable: round %d %s its %s of %s", lossy.number, loss.name, verb, target)
				if err != nil {
					return fmt.Errorf("%s: %w", title, err)
				}
				if err := same(title, want, got); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// losses are what may become of a reconcile's actions at the i-th of them; same
// reports that another loss comes to the same.
var losses = []struct {
	name string
	of   func(actions []olmcore.Action, i int) []olmcore.Action
	same func(actions []olmcore.Action, i int) bool
}{
	{"without", func(actions []olmcore.Action, i int) []olmcore.Action {
		return slices.Concat(actions[:min(i, len(actions))], actions[min(i+1, len(actions)):])
	}, func([]olmcore.Action, int) bool { return false }},
	{"cut short at", func(actions []olmcore.Action, i int) []olmcore.Action {
		return actions[:min(i, len(actions))]
	}, func(actions []olmcore.Action, i int) bool { return i == len(actions)-1 }},
}

// run reconciles every key until no reconcile asks for anything, passing each reconcile's actions through change. It
// returns the end state, and fails when there are still actions after limit rounds. Results are checked from the
// reconcile with the number from on: those before it were in an earlier run.
func (w World) run(change func(round) []olmcore.Action, limit, from int) (end []map[string]any, rounds int, err error) {
	if err := ignored(w.Ignore).validate(); err != nil {
		return nil, 0, err
	}
	cluster, err := w.New()
	if err != nil {
		return nil, 0, err
	}
	r := &running{World: w, cluster: cluster, change: change, from: from}
	runners := r.runners()
	settleTime := cluster.Now().Add(w.SettleTime)
	var last []func() string
	for used := 0; used <= limit; used++ {
		rounds++
		var deadline olmcore.Result
		if err := cluster.Settle(); err != nil {
			return nil, rounds, err
		}
		last = last[:0]
		for _, one := range runners {
			reports, err := r.round(one)
			if err != nil {
				return nil, rounds, err
			}
			for _, report := range reports {
				deadline.Requeue(report.Result.RequeueAfter)
				if report.counts {
					last = append(last, report.describe)
				}
			}
		}
		if len(last) > 0 {
			continue
		}
		if d := deadline.RequeueAfter; d == 0 || cluster.Now().Add(d).After(settleTime) {
			end, err = w.state(cluster)
			return end, rounds, err
		} else if err := cluster.RunFor(d); err != nil {
			return nil, rounds, err
		}
		used = -1
	}
	var still []string
	for _, text := range last {
		still = append(still, text())
	}
	return nil, rounds, fmt.Errorf("not settling: after %d rounds there is still\n%s", limit, strings.Join(still, "\n"))
}

// running is one run of a World.
type running struct {
	World
	cluster *fake.Cluster
	change  func(round) []olmcore.Action
	// reconciles is the number of reconciles with actions that count. Results before number from are not checked.
	from, reconciles int
	// counts is true if the last reconcile had actions that count.
	counts bool
}

// reconciled is the Report of a reconcile, and whether it had actions that count.
type reconciled struct {
	controller.Report
	counts bool
}

func (c reconciled) describe() string {
	return fmt.Sprintf("%s %s:\n%s", c.Controller, c.Key, Describe(c.Result))
}

// runners returns a Runner for each controller of the World.
func (r *running) runners() []*controller.Runner {
	var all []*controller.Runner
	for _, c := range r.Controllers(r.cluster) {
		c.Reconcile = r.changing(c.Reconcile)
		all = append(all, &controller.Runner{Controller: c, Reader: r.cluster, Executor: r.cluster})
	}
	return all
}

// round reconciles each key of a controller once.
func (r *running) round(one *controller.Runner) (reports []reconciled, err error) {
	ctx := context.Background()
	keys, err := one.Keys(ctx, one.Reader)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", one.Name, err)
	}
	for _, key := range keys {
		r.counts = false
		report, err := one.RunOnce(ctx, key, r.cluster.Now())
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", one.Name, key, err)
		}
		reports = append(reports, reconciled{report, r.counts})
	}
	return reports, nil
}

// changing checks the results of a reconcile function, and passes its actions through change.
func (r *running) changing(reconcile controller.ReconcileFunc) controller.ReconcileFunc {
	return func(
		ctx context.Context, reader olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
	) (olmcore.Result, error) {
		result, err := reconcile(ctx, reader, key, now, last)
		if err != nil {
			return result, err
		}
		if r.reconciles >= r.from {
			if err := errors.Join(Separate(result), Recordable(result)); err != nil {
				return result, err
			}
		}
		r.counts = len(ignored(r.Ignore).counted(result.Actions)) > 0
		if r.counts {
			result.Actions = r.change(round{r.reconciles, result.Actions})
			r.reconciles++
		}
		return result, nil
	}
}

// state returns every object without what a repetition may number differently.
func (w World) state(c *fake.Cluster) ([]map[string]any, error) {
	names := map[string]string{} // a UID becomes the name of what has it
	objects := c.Objects()
	for _, o := range objects {
		names[string(o.GetUID())] = "uid of " + olmcore.KeyOf(o).String()
	}
	var out []map[string]any
	for _, o := range objects {
		if ignored(w.Ignore).whole(olmcore.KeyOf(o)) {
			continue
		}
		m, err := olmcore.ToMap(o)
		if err != nil {
			return nil, err
		}
		metadata, _ := m["metadata"].(map[string]any)
		delete(metadata, "resourceVersion")
		delete(metadata, "generation")
		w.mask(m, names)
		ignored(w.Ignore).fields(olmcore.KeyOf(o), m)
		out = append(out, m)
	}
	return out, nil
}

// mask replaces UIDs by the name of what has them and, with SettleTime, times by a
// word, and drops the other numbers that a cluster gives out.
func (w World) mask(v any, names map[string]string) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			text, isText := value.(string)
			switch key {
			case "uid", "uuid", olmcore.LabelOwnerUID:
				if names[text] != "" {
					x[key] = names[text]
				}
				continue
			case "resourceVersion", "observedGeneration", "clusterIP", "clusterIPs", "podIP", "podIPs":
				delete(x, key)
				continue
			}
			if isText && w.SettleTime > 0 && isTime(text) {
				x[key] = "a time"
			}
			w.mask(value, names)
		}
	case []any:
		for _, value := range x {
			w.mask(value, names)
		}
	}
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func same(title string, want, got []map[string]any) error {
	if reflect.DeepEqual(want, got) {
		return nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s the end differs (-once +now):\n%s", title, diff)
	}
	return nil
}

// Dump returns every object of a cluster as indented JSON, one after the other, for comparing two clusters whole.
func Dump(c *fake.Cluster) (string, error) {
	var b strings.Builder
	for _, o := range c.Objects() {
		m, err := olmcore.ToMap(o)
		if err != nil {
			return "", err
		}
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return "", err
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String(), nil
}
