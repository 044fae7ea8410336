// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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
	var f chaos.Figures
	began, problems := time.Now(), 0
	for ; f.Steps < steps; seed++ {
		all, of := historyOf(seed, min(stepsPerHistory, steps-f.Steps))
		of.Figures = &f
		if _, problem := live(of, all); problem != nil {
			if problems++; problems > 1 {
				t.Errorf("history %d: %v", seed, problem)
				continue
			}
			shortest, failed, same := shrink(problem, all, of)
			t.Errorf("history %d: %v\n%d of its steps are enough (%+v): %v\nto repeat: %s=%d %s=%d go test ./fake/chaos -run %s\n%s",
				seed, problem, len(shortest), of.Setting, same, seedVariable, seed, stepsVariable, len(all), t.Name(), strings.Join(failed.Story(), "\n"))
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

// step is one thing that happens, with the choices in it.
type step struct {
	chaos.Step
	seed uint64
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// historyOf draws the steps of a history.
func historyOf(seed uint64, n int) ([]step, chaos.Options) {
	r := random(seed)
	of := chaos.Options{Setting: chaos.Setting{Approves: true,
		Serves: r.IntN(2) == 0, Sweeps: r.IntN(2) == 0, Deletes: r.IntN(2) == 0, Attacks: r.IntN(2) == 0, Spoils: r.IntN(2) == 0}}
	kinds := chaos.Steps(of)
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{chaos.Draw(kinds, r), r.Uint64()}
	}
	return steps, of
}

// live runs a history to its end, or to its first problem.
func live(of chaos.Options, steps []step) (h *chaos.History, problem error) {
	defer func() {
		if reason := recover(); reason != nil {
			problem = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	h = chaos.New(of)
	for _, s := range steps {
		if problem = h.Do(s.Step, random(s.seed)); problem != nil {
			return h, problem
		}
	}
	return h, h.Heal()
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
func shrink(problem error, steps []step, of chaos.Options) ([]step, *chaos.History, error) {
	end := time.Now().Add(shrinkTime)
	of.Figures = nil
	for size := len(steps) / 2; size > 0 && time.Now().Before(end); {
		shorter := false
		for at := 0; at < len(steps) && time.Now().Before(end); {
			fewer := slices.Concat(steps[:at], steps[min(at+size, len(steps)):])
			if _, found := live(of, fewer); sameProblem(problem, found) {
				steps, shorter = fewer, true
			} else {
				at += size
			}
		}
		if !shorter || size > len(steps) {
			size /= 2
		}
	}
	of.Tells = true
	h, found := live(of, steps)
	return steps, h, found
}
