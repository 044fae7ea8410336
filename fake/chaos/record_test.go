// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake/chaos"
)

// A recorded history is a file of lines: comments, what the history begins with, and its steps.
//
//	# the problem that a mutant has
//	setting Approves Races
//	end heal
//	8273645 a manager works for a while
//
// Each step has the seed of its choices. "end heal" says that the problem only shows when the world heals; without it
// the history ends with its last step.
const recorded = "testdata/histories"

// TestRecordedHistories replays the shortest history that found each mutant. With the real code it has no problem.
func TestRecordedHistories(t *testing.T) {
	for _, file := range filesIn(t, recorded, ".txt") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			steps, of, heals := readHistory(t, file)
			h, problem := live(of, steps, heals)
			require.NoError(t, problem)
			require.Equal(t, len(steps), h.Figures.Steps)
		})
	}
}

func filesIn(t *testing.T, folder, extension string) []string {
	files, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	require.NoError(t, err)
	return files
}

func readHistory(t *testing.T, file string) (steps []step, of chaos.Options, heals bool) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	kinds := map[string]chaos.Step{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		seed, notSeed := strconv.ParseUint(word, 10, 64)
		switch {
		case word == "#":
		case word == "setting":
			of.Setting = settingOf(strings.Fields(rest))
			for _, s := range chaos.Steps(of) {
				kinds[s.Name] = s
			}
		case line == "end heal":
			heals = true
		case notSeed == nil && kinds[rest].Do != nil:
			steps = append(steps, step{kinds[rest], seed})
		default:
			t.Fatalf("%s:%d: %q is no line of a history; record it anew: OLMCORE_UPDATE=1 OLMCORE_MUTANTS=NAME go test ./fake/chaos -run TestMutantsAreFound",
				file, i+1, line)
		}
	}
	return steps, of, heals
}

func settingOf(names []string) (s chaos.Setting) {
	for _, name := range names {
		reflect.ValueOf(&s).Elem().FieldByName(name).SetBool(true)
	}
	return s
}

func namesOf(s chaos.Setting) (names []string) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

func writeHistory(file string, problem error, steps []step, of chaos.Options, heals bool) error {
	var b strings.Builder
	first, _, _ := strings.Cut(problem.Error(), "\n")
	fmt.Fprintf(&b, "# %.200s\nsetting %s\n", first, strings.Join(namesOf(of.Setting), " "))
	if heals {
		b.WriteString("end heal\n")
	}
	for _, s := range steps {
		fmt.Fprintf(&b, "%d %s\n", s.seed, s.Name)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a folder of the repository
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644) //nolint:gosec // a file of the repository
}
