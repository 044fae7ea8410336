// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore/controller"
)

// UpdateVariable is the environment variable that makes Run write the expected parts anew when it is "1".
const UpdateVariable = "OLMCORE_UPDATE"

// Config is what a scenario runs with. The zero value tells stories of a cluster without controllers.
type Config struct {
	// Start is the time at which each file starts; zero means 2026-01-01 00:00 UTC.
	Start time.Time
	// Controllers run on settle, run and idle.
	Controllers []controller.Controller
	// Setup prepares the world of each file; nil does nothing.
	Setup func(w *World) error
	// Commands are added to the built-in ones and win over those of the same name.
	Commands map[string]Command
}

// Command performs one command line: args are the words after the name, input
// the YAML that follows, usually nil. It returns what to print.
type Command func(w *World, args []string, input []byte) (output string, err error)

// World is what commands act on. Namespaces are created on first use.
type World struct {
	Cluster *fake.Cluster
	Driver  *fake.Driver
	// Dir is the folder of the scenario file.
	Dir string

	explained int // events that explain has looked at
}

// RunAll runs the files that a pattern (path/filepath.Match) matches, each in a
// world of its own. No match is an error; the errors of all files are joined.
func RunAll(pattern string, config Config) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no scenario file matches %s", pattern)
	}
	var failed []error
	for _, path := range paths {
		failed = append(failed, Run(path, config))
	}
	return errors.Join(failed...)
}

// Run runs one file. The error names file and line of each step whose output differs, with both outputs. With
// OLMCORE_UPDATE=1 the file is rewritten instead.
func Run(path string, config Config) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	update := os.Getenv(UpdateVariable) == "1"
	text, err := run(path, string(data), config, update)
	if err != nil || !update || text == string(data) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// run returns the file with its expected parts as they came out.
func run(path, text string, config Config, update bool) (string, error) {
	w, err := newWorld(filepath.Dir(path), config)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	steps, err := parse(text)
	if err != nil {
		return "", fmt.Errorf("%s:%w", path, err)
	}
	commands := builtin()
	for name, command := range config.Commands {
		commands[name] = command
	}
	var failed []error
	for i := range steps {
		s := &steps[i]
		if len(s.commands) == 0 {
			continue
		}
		got := perform(w, commands, s)
		if !update && got != s.expected {
			failed = append(
				failed,
				fmt.Errorf("%s:%d: %s\nwant:\n%s\ngot:\n%s", path, s.line, s.commands[len(s.commands)-1], indent(s.expected), indent(got)),
			)
		}
		s.expected = got
	}
	return format(steps), errors.Join(failed...)
}

func newWorld(dir string, config Config) (*World, error) {
	start := config.Start
	if start.IsZero() {
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	w := &World{Cluster: c, Driver: &fake.Driver{Cluster: c, Controllers: config.Controllers}, Dir: dir}
	if config.Setup != nil {
		return w, config.Setup(w)
	}
	return w, nil
}

// perform runs the command lines of a step and returns what they printed.
func perform(w *World, commands map[string]Command, s *step) string {
	var out []string
	for i, line := range s.commands {
		words := strings.Fields(line)
		var input []byte
		if i == len(s.commands)-1 {
			input = s.input
		}
		command, known := commands[words[0]]
		if !known {
			out = append(out, fmt.Sprintf("error: unknown command %q", words[0]))
			continue
		}
		text, err := command(w, words[1:], input)
		if text != "" {
			out = append(out, text)
		}
		if err != nil {
			out = append(out, "error: "+err.Error())
		}
	}
	return tidy(strings.Join(out, "\n"))
}

// tidy removes what cannot stand in an expected part: empty lines, and white space at the end of lines.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = trimRight(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func indent(text string) string {
	if text == "" {
		return "\t(nothing)"
	}
	return "\t" + strings.ReplaceAll(text, "\n", "\n\t")
}
