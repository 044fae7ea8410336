// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
)

// clock is when the tests take place.
var clock = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// run runs a command with the folder of the module as the working directory.
func run(t testing.TB, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs}
	code = command.Run(t.Context(), args, streams, func() time.Time { return clock })
	return code, out.String(), errs.String()
}

// prompt begins a line with a command in a story, and in the README.
const prompt = "$ kubectl olm "

// answered returns a text in which what stands below each command is what the command answers, up to the next command,
// an empty line and a line that begins with "#", the end of a block of code or the end of the text.
func answered(t *testing.T, story string) string {
	var b strings.Builder
	lines := strings.SplitAfter(story, "\n")
	for i := 0; i < len(lines); i++ {
		b.WriteString(lines[i])
		args, is := strings.CutPrefix(strings.TrimSpace(lines[i]), prompt)
		if !is {
			continue
		}
		args, _, _ = strings.Cut(args, "  #")
		code, out, errs := run(t, "", strings.Fields(args)...)
		b.WriteString(errs + out)
		if code != 0 {
			fmt.Fprintf(&b, "[exit code %d]\n", code)
		}
		for i+1 < len(lines) && !ends(lines[i+1:]) {
			i++
		}
	}
	return b.String()
}

// ends reports whether the answer of a command is over.
func ends(rest []string) bool {
	next := rest[0]
	if next == "\n" && len(rest) > 1 {
		next = rest[1]
		return strings.HasPrefix(next, prompt) || strings.HasPrefix(next, "#")
	}
	return strings.HasPrefix(next, prompt) || strings.HasPrefix(next, "```") || next == ""
}

// TestStories runs the commands of testdata/stories and of README.md. OLMCORE_UPDATE=1 rewrites what they answer.
func TestStories(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("KUBECONFIG", "testdata/missing")
	stories, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, stories)
	for _, file := range append(stories, "README.md") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), prompt)
			got := answered(t, string(text))
			if os.Getenv("OLMCORE_UPDATE") == "1" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			require.Empty(t, cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")))
		})
	}
}
