// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake/chaos"
)

// The long run of the whole world reads these variables: the number of steps, and
// the seed of the first history, which a failure prints.
const (
	stepsVariable = "OLMCORE_STEPS"
	seedVariable  = "OLMCORE_SEED"

	defaultSteps    = 2500
	separateSteps   = 1000
	defaultSeed     = 20260110
	stepsPerHistory = 1000
)

// TestTheWholeWorld runs random histories of everything at once: two managers with stale caches, wrong clocks, downtime
// and failing writes; users who approve every plan they see; administrators who delete; a tenant who attacks; versions
// that are published and withdrawn while plans run. What must never happen is looked for after every step. Then all
// heals, and the world must come to rest: with what is wanted installed, and the managers writing nothing, whatever
// they remember.
func TestTheWholeWorld(t *testing.T) {
	r := requireNoProblem(t, number(t, stepsVariable, defaultSteps), historyOf)
	if r.Steps >= defaultSteps {
		require.NotZero(t, r.Renewals, "certificates were renewed")
	}
}

// TestSeparatePlansInTheWholeWorld runs such histories with a plan for each set of Subscriptions that depend on each
// other. The option changes while plans run, and one manager restarts with it before the other.
func TestSeparatePlansInTheWholeWorld(t *testing.T) {
	requireNoProblem(t, number(t, stepsVariable, separateSteps), func(seed uint64, n int) ([]step, chaos.Options) {
		return drawHistory(seed, n, chaos.Setting{Approves: true, Separates: true})
	})
}

// requireNoProblem runs histories. Of the first that has a problem it prints the fewest steps that show it.
func requireNoProblem(t *testing.T, steps int, draw drawn) result {
	began := time.Now()
	r := explore(t, uint64(number(t, seedVariable, defaultSeed)), steps, false, draw)
	for i, p := range r.problems {
		if i == 0 {
			shortest, failed, same := shrink(p, shrinkTime)
			t.Errorf("%d of its steps are enough (%+v): %v\nto repeat: %s=%d %s=%d go test ./fake/chaos -run %s\n%s", len(shortest),
				p.of.Setting, same, seedVariable, p.seed, stepsVariable, len(p.steps), t.Name(), strings.Join(failed.Story(), "\n"))
		}
	}
	t.Logf("%d steps in %s: %+v", r.Steps, time.Since(began).Round(time.Second), r.Figures)
	if len(r.problems) > 0 {
		t.Errorf("%d of %d histories had a problem", len(r.problems), r.Histories)
	}
	return r
}

// found is a history with a problem. heals: it showed when the world healed.
type found struct {
	seed    uint64
	steps   []step
	of      chaos.Options
	heals   bool
	problem error
}

// result is what histories came to.
type result struct {
	chaos.Figures
	problems []found
}

// drawn returns so many steps of the history of a seed.
type drawn func(seed uint64, n int) ([]step, chaos.Options)

// explore runs the histories of a seed and of those after it, as many at once as there are processors, until there were
// so many steps; or, where it stops, a problem.
func explore(t *testing.T, seed uint64, steps int, stops bool, draw drawn) (all result) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		begun int
	)
	next := func() (of found, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if begun >= steps || stops && len(all.problems) > 0 {
			return of, false
		}
		n := min(stepsPerHistory, steps-begun)
		begun += n
		of.seed = seed
		of.steps, of.of = draw(seed, n)
		seed++
		return of, true
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for of, ok := next(); ok; of, ok = next() {
				h, problem := live(of.of, of.steps, true)
				mu.Lock()
				all.Add(h.Figures)
				if of.problem = problem; problem != nil {
					of.heals = h.Figures.Steps == len(of.steps)
					of.steps = of.steps[:h.Figures.Steps]
					all.problems = append(all.problems, of)
					t.Logf("history %d, step %d: %v", of.seed, h.Figures.Steps, problem)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all.problems, func(a, b found) int { return cmp.Compare(a.seed, b.seed) })
	return all
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

// step is one thing that happens, with the choices in it.
type step struct {
	chaos.Step
	seed uint64
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// historyOf draws the steps of a history.
func historyOf(seed uint64, n int) ([]step, chaos.Options) {
	return drawHistory(seed, n, chaos.Setting{Approves: true})
}

// drawHistory draws the rest of the setting of a history, and its steps.
func drawHistory(seed uint64, n int, with chaos.Setting) ([]step, chaos.Options) {
	r := random(seed)
	with.Races, with.Serves, with.Sweeps = racesIn(seed), r.IntN(2) == 0, r.IntN(2) == 0
	with.Deletes, with.Attacks, with.Spoils = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	of := chaos.Options{Setting: with}
	kinds := chaos.Steps(of)
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{chaos.Draw(kinds, r), r.Uint64()}
	}
	return steps, of
}

// racesIn reports whether InstallPlans overtake each other in a history: in two of three.
func racesIn(seed uint64) bool { return seed%3 != 0 }

// live runs a history to its end, or to its first problem.
func live(of chaos.Options, steps []step, heals bool) (h *chaos.History, problem error) {
	h = chaos.New(of)
	defer func() {
		if reason := recover(); reason != nil {
			problem = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	for _, s := range steps {
		if problem = h.Do(s.Step, random(s.seed)); problem != nil {
			return h, problem
		}
	}
	if heals {
		problem = h.Heal()
	}
	return h, problem
}

// shrinkTime bounds the search for a shorter history.
const shrinkTime = 45 * time.Second

var digitsAndNames = regexp.MustCompile(strings.Join(append(chaos.Tenants(), "[0-9]+", "alpha", "beta", "gamma", "delta", "epsilon", "zeta"), "|"))

// sameProblem reports whether two problems look alike.
func sameProblem(a, b error) bool {
	kind := func(err error) string {
		text := digitsAndNames.ReplaceAllString(err.Error(), "")
		return text[:min(len(text), 30)]
	}
	return b != nil && kind(a) == kind(b)
}

// shrink leaves out steps as long as the problem is there, and returns the shortest history found.
func shrink(p found, limit time.Duration) ([]step, *chaos.History, error) {
	end, steps := time.Now().Add(limit), p.steps
	for size := len(steps) / 2; size > 0 && time.Now().Before(end); {
		shorter := false
		for at := 0; at < len(steps) && time.Now().Before(end); {
			fewer := slices.Concat(steps[:at], steps[min(at+size, len(steps)):])
			if h, problem := live(p.of, fewer, p.heals); sameProblem(p.problem, problem) {
				steps, shorter = fewer[:h.Figures.Steps], true
			} else {
				at += size
			}
		}
		if !shorter || size > len(steps) {
			size /= 2
		}
	}
	p.of.Tells = true
	h, problem := live(p.of, steps, p.heals)
	return steps, h, problem
}
