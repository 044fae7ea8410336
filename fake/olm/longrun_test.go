// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
)

// The long run of the whole world reads these variables: the number of steps, and
// the seed of the first history, which a failure prints.
const (
	stepsVariable = "OLMCORE_STEPS"
	seedVariable  = "OLMCORE_SEED"

	defaultSteps    = 4000
	defaultSeed     = 20260110
	stepsPerHistory = 1000
)

// TestTheWholeWorld runs random histories of everything at once: two managers with stale caches, wrong clocks, downtime and
// failing writes; users who approve every plan they see; administrators who delete; a tenant who attacks. What must never
// happen is looked for after every step. Then all heals, and the world must come to
// rest: with what is wanted installed, and the managers writing nothing, whatever they remember.
func TestTheWholeWorld(t *testing.T) {
	steps, seed := number(t, stepsVariable, defaultSteps), uint64(number(t, seedVariable, defaultSeed))
	var f figures
	began, problems := time.Now(), 0
	for ; f.Steps < steps; seed++ {
		all, of := historyOf(seed, min(stepsPerHistory, steps-f.Steps))
		if h := live(newHistory(&f, of), all); h.problem != nil {
			if problems++; problems > 1 {
				t.Errorf("history %d: %v", seed, h.problem)
				continue
			}
			shortest, failed := shrink(h.problem, all, of)
			t.Errorf("history %d: %v\n%d of its steps are enough (%+v): %v\nto repeat: %s=%d %s=%d go test ./fake/olm -run %s\n%s",
				seed, h.problem, len(shortest), of, failed.problem, seedVariable, seed, stepsVariable, len(all), t.Name(), strings.Join(append(failed.log, failed.state()...), "\n"))
		}
	}
	t.Logf("%d steps in %s: %+v", f.Steps, time.Since(began).Round(time.Second), f)
	if steps >= defaultSteps {
		require.NotZero(t, f.Renewals, "certificates were renewed")
	}
	if problems > 0 {
		t.Errorf("%d of %d histories had a problem", problems, f.Histories)
	}
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// historyOf draws the steps of a history.
func historyOf(seed uint64, n int) (steps []step, of setting) {
	r := random(seed)
	of = setting{serves: r.IntN(2) == 0, sweeps: r.IntN(2) == 0, deletes: r.IntN(2) == 0, attacks: r.IntN(2) == 0, spoils: r.IntN(2) == 0}
	return drawSteps(r, n, of), of
}

// live runs a history to its end, or to its first problem.
func live(h *history, steps []step) *history {
	defer func() {
		if reason := recover(); reason != nil {
			h.problem = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	h.figures.Histories++
	for _, s := range steps {
		h.figures.Steps++
		if s.kind.name != "a manager works" {
			h.say("%s", s.kind.name)
		}
		s.kind.do(h, random(s.seed))
		if h.check(); h.problem != nil {
			return h
		}
	}
	h.heal()
	return h
}

// settleTime is how long a healed world has to come to rest, and how long it is watched then.
const settleTime = 3 * time.Hour

// heal ends everything that goes wrong, and requires what every history must come to.
func (h *history) heal() {
	h.say("heal")
	for _, m := range h.managers {
		m.faults, m.skew, m.down = nil, 0, false
	}
	for _, node := range []string{"a", "b"} {
		h.must(h.cluster.HealNode(node))
	}
	for _, ns := range tenants {
		h.createGroup(ns)
	}
	h.repair()
	for range 2 * maxVersions {
		h.stepApprove(nil)
		if h.runFor(settleTime / maxVersions); h.problem != nil {
			return
		}
	}
	h.renewNow()
	h.requireWanted()
	h.requireServed()
	h.requireCopies()
	h.requireOwners()
	h.requireRights()
	for _, p := range listed[*v1alpha1.InstallPlan](h) {
		h.figures.Plans++
		if p.Status.Phase == v1alpha1.InstallPlanPhaseComplete {
			h.figures.Completed++
		}
	}
	h.requireRest("the managers look at everything again", func() { h.managers[0].resync(); h.managers[1].resync() })
	h.requireRest("a manager is new", func() { h.managers[1].start(); h.connects = true })
}

// requireRest requires that the managers write nothing any more: but for when a new one's clients connected.
func (h *history) requireRest(when string, change func()) {
	from := h.figures.Effects
	h.say("rest: %s", when)
	change()
	h.runFor(settleTime)
	if wrote := h.figures.Effects - from; wrote > 0 {
		h.must(fmt.Errorf("the world stands still, and when %s there are %d writes", when, wrote))
	}
}

// requireWanted: the catalog serves, and where nothing was deleted every Subscription has the newest version, running.
func (h *history) requireWanted() {
	cs := fake.Find[*v1alpha1.CatalogSource](h.cluster, "olm", "community")
	if c := meta.FindStatusCondition(cs.Status.Conditions, "Available"); c == nil || c.Status != metav1.ConditionTrue {
		h.must(fmt.Errorf("the catalog is not available in the end: %+v", c))
	}
	if h.deletes {
		return
	}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		head := csvName(s.Spec.Package, h.heads[s.Spec.Package])
		if c := fake.Find[*v1alpha1.ClusterServiceVersion](h.cluster, s.Namespace, head); c == nil || c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
			if c != nil {
				h.must(fmt.Errorf("%s/%s is %s in the end: %s %s", s.Namespace, head, c.Status.Phase, c.Status.Reason, c.Status.Message))
			}
			h.must(fmt.Errorf("%s/%s is not installed in the end: %+v", s.Namespace, head, s.Status))
		}
		if s.Status.State != v1alpha1.SubscriptionStateAtLatest || s.Status.InstalledCSV != head {
			h.must(fmt.Errorf("%s/%s is %s with %s in the end: %+v", s.Namespace, s.Name, s.Status.State, s.Status.InstalledCSV, s.Status))
		}
	}
}

// maxWorks bounds what the managers do at one instant, maxWakes how often anything waits for a time in one runFor.
const (
	maxWorks = 4000
	maxWakes = 4000
)

// runFor lets everything go on, with caches that are never stale.
func (h *history) runFor(d time.Duration) {
	h.wakes = 0
	for end := h.cluster.Now().Add(d); h.problem == nil; h.wakes++ {
		if h.wakes == maxWakes {
			h.must(fmt.Errorf("waits %d times in %s", h.wakes, d))
		}
		h.workOff()
		next, ok := h.cluster.NextDeadline()
		for _, m := range h.managers {
			if at, waits := m.nextTimer(); waits && (!ok || at.Before(next)) {
				next, ok = at, true
			}
		}
		if !ok || next.After(end) {
			h.cluster.Advance(end.Sub(h.cluster.Now()))
			h.workOff()
			return
		}
		h.cluster.Advance(max(next.Sub(h.cluster.Now()), time.Millisecond))
	}
}

// workOff empties the queues.
func (h *history) workOff() {
	for range maxWorks {
		h.must(h.cluster.Settle())
		idle := true
		for _, m := range h.managers {
			m.view.Sync()
			m.due()
			if len(m.queue) > 0 {
				idle = false
				m.work(func(int) int { return 0 })
			}
		}
		if h.check(); idle || h.problem != nil {
			return
		}
	}
	h.must(fmt.Errorf("no rest after %d reconciles at one instant", maxWorks))
}

// shrinkTime bounds the search for a shorter history.
const shrinkTime = 45 * time.Second

var digitsAndNames = regexp.MustCompile(strings.Join(slices.Concat([]string{"[0-9]+"}, packages, tenants), "|"))

// sameProblem reports whether two problems look alike.
func sameProblem(a, b error) bool {
	kind := func(err error) string {
		text := digitsAndNames.ReplaceAllString(err.Error(), "")
		return text[:min(len(text), 30)]
	}
	return b != nil && kind(a) == kind(b)
}

// shrink leaves out steps as long as the problem is there, and returns the shortest history found.
func shrink(problem error, steps []step, of setting) ([]step, *history) {
	end := time.Now().Add(shrinkTime)
	for size := len(steps) / 2; size > 0 && time.Now().Before(end); {
		shorter := false
		for at := 0; at < len(steps) && time.Now().Before(end); {
			fewer := slices.Concat(steps[:at], steps[min(at+size, len(steps)):])
			if sameProblem(problem, live(newHistory(&figures{}, of), fewer).problem) {
				steps, shorter = fewer, true
			} else {
				at += size
			}
		}
		if !shorter || size > len(steps) {
			size /= 2
		}
	}
	told := newHistory(&figures{}, of)
	told.tells = true
	return steps, live(told, steps)
}
