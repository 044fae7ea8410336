// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A mutant is a patch that takes one rule out of the code, as a file of testdata/mutants. Above the patch it says which
// rule, and from which seed on the random world finds it.
const (
	mutants = "testdata/mutants"

	// mutantsVariable names the mutants to build, by commas, or all.
	mutantsVariable = "OLMCORE_MUTANTS"
	// updateVariable makes TestMutantsAreFound write the shortest history that finds each mutant.
	updateVariable = "OLMCORE_UPDATE"
	// searchVariable is set in the process that runs a mutant: the file to write its history to, or none.
	searchVariable = "OLMCORE_SEARCH"

	// mutantSteps are the steps within which the random world must find a mutant.
	mutantSteps = 200_000

	root = "../.."
)

// TestMutantsApply checks that each mutant is a patch of today's code, and that each recorded history is that of a
// mutant.
func TestMutantsApply(t *testing.T) {
	for _, file := range filesIn(t, mutants, ".patch") {
		t.Run(mutantName(file), func(t *testing.T) {
			require.NotEmpty(t, patched(t, file))
		})
	}
	for _, file := range filesIn(t, recorded, ".txt") {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		require.FileExists(t, filepath.Join(mutants, name+".patch"), "the history of a mutant that is gone")
	}
}

// TestMutantsAreFound builds each mutant that the variable names: the random world must find it within mutantSteps from
// the seed that is noted in its file, and the recorded history must find it as well.
func TestMutantsAreFound(t *testing.T) {
	chosen := strings.Split(os.Getenv(mutantsVariable), ",")
	if chosen[0] == "" {
		t.Skipf("set %s to all, or to names of %s", mutantsVariable, mutants)
	}
	for _, file := range filesIn(t, mutants, ".patch") {
		name := mutantName(file)
		if chosen[0] != "all" && !slices.Contains(chosen, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			binary := buildMutant(t, file)
			built := time.Since(began).Round(time.Second)
			record := "none"
			if os.Getenv(updateVariable) != "" {
				record = historyOfMutant(file)
			}
			found, isFound := runMutant(t, binary, "TestAMutantIsFound", searchVariable+"="+record, seedVariable+"="+seedOf(t, file))
			require.True(t, isFound, "the random world does not find the mutant:\n%s", found)
			t.Logf("built in %s: %s", built, lineWith(found, "found"))
			steps, of, heals := readHistory(t, historyOfMutant(file))
			_, problem := live(of, steps, heals)
			require.NoError(t, problem, "the recorded history has a problem without the mutant: it is one of the code, or of the world")
			replayed, fails := runMutant(t, binary, "TestRecordedHistories/^"+name+"$")
			require.True(t, fails && strings.Contains(replayed, "--- FAIL: TestRecordedHistories/"+name),
				"the recorded history does not find the mutant any more; record another: %s=1 %s=%s go test ./fake/chaos -run %s\n%s",
				updateVariable, mutantsVariable, name, "TestMutantsAreFound", replayed)
		})
	}
}

// TestAMutantIsFound runs inside the process of a mutant: it fails as soon as a history has a problem.
func TestAMutantIsFound(t *testing.T) {
	record := os.Getenv(searchVariable)
	if record == "" {
		t.Skip("it is part of TestMutantsAreFound")
	}
	first := explore(t, uint64(number(t, seedVariable, defaultSeed)), mutantSteps, true, historyOf)
	if len(first.problems) == 0 {
		t.Logf("not found in %d steps", first.Steps)
		return
	}
	p := first.problems[0]
	t.Errorf("found in history %d, in %d steps: %v", p.seed, first.Steps, p.problem)
	if record != "none" {
		steps, _, same := shrink(p, recordTime)
		require.Error(t, same)
		require.NoError(t, writeHistory(record, same, steps, p.of, p.heals))
		t.Logf("found again with %d steps: %v", len(steps), same)
	}
}

// recordTime is how long a shorter history of a mutant is searched.
const recordTime = 2 * time.Minute

func mutantName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".patch") }

func historyOfMutant(file string) string { return filepath.Join(recorded, mutantName(file)+".txt") }

var seedLine = regexp.MustCompile(`(?m)^Seed: ([0-9]+)$`)

func seedOf(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found := seedLine.FindStringSubmatch(string(text))
	require.NotNil(t, found, "%s has no line with its seed, such as \"Seed: 1\"", file)
	return found[1]
}

func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// buildMutant compiles this test package with the mutant in it.
func buildMutant(t *testing.T, file string) string {
	folder := t.TempDir()
	replaced := map[string]string{}
	for path, text := range patched(t, file) {
		original, err := filepath.Abs(filepath.Join(root, path))
		require.NoError(t, err)
		changed := filepath.Join(folder, strings.ReplaceAll(path, "/", "_"))
		require.NoError(t, os.WriteFile(changed, []byte(text), 0o600))
		replaced[original] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600))
	binary := filepath.Join(folder, "mutant.test")
	output, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", filepath.Join(folder, "overlay.json"), "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return binary
}

// runMutant runs a test of a mutant, and reports whether it failed.
func runMutant(t *testing.T, binary, test string, environment ...string) (output string, failed bool) {
	c := exec.CommandContext(t.Context(), binary, "-test.run", test, "-test.v", "-test.timeout", "1h")
	c.Env = append(os.Environ(), environment...)
	text, err := c.CombinedOutput()
	return string(text), err != nil
}

// patched returns the files that a mutant changes, by their path in the module, as they are with it.
func patched(t *testing.T, file string) map[string]string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := map[string]string{}
	for _, of := range strings.Split("\n"+string(text), "\n--- a/")[1:] {
		path, _, _ := strings.Cut(of, "\n")
		before, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		after, err := applyHunks(string(before), of)
		require.NoError(t, err, "%s does not apply to %s any more: change the code as the text above the patch says, and run "+
			"git diff -- %s >> fake/chaos/%s", file, path, path, file)
		changed[path] = after
	}
	return changed
}

var hunkHeader = regexp.MustCompile(`(?m)^@@ -([0-9]+)(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@.*\n`)

// applyHunks changes a file as the hunks of a unified diff say. Their lines may have moved, and must be in the file
// once.
func applyHunks(text, diff string) (string, error) {
	hunks := hunkHeader.Split(diff, -1)[1:]
	if len(hunks) == 0 {
		return "", fmt.Errorf("there is no hunk")
	}
	for i, hunk := range hunks {
		var before, after strings.Builder
		for line := range strings.Lines(hunk) {
			switch rest := line[1:]; line[0] {
			case ' ':
				before.WriteString(rest)
				after.WriteString(rest)
			case '-':
				before.WriteString(rest)
			case '+':
				after.WriteString(rest)
			}
		}
		if n := strings.Count(text, before.String()); n != 1 {
			return "", fmt.Errorf("the lines of hunk %d are %d times in the file", i+1, n)
		}
		text = strings.Replace(text, before.String(), after.String(), 1)
	}
	return text, nil
}

func TestAPatchIsAppliedWhereItsLinesAre(t *testing.T) {
	const diff = "x.go\n+++ b/x.go\n@@ -1,3 +1,2 @@ func\n a\n-b\n+B\n c\n@@ -9 +9 @@\n-e\n"
	after, err := applyHunks("0\na\nb\nc\nd\ne\n", diff)
	require.NoError(t, err)
	require.Equal(t, "0\na\nB\nc\nd\n", after)
	_, err = applyHunks("a\nc\n", diff)
	require.Error(t, err)
	_, err = applyHunks("a\nb\nc\na\nb\nc\n"+strconv.Itoa(1), diff)
	require.Error(t, err, "the lines are twice in the file")
}
