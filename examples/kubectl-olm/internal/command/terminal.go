// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, is := stream.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

// palette is what --color says of an output that is a terminal or none.
func palette(color string, isTerminal bool) (text.Palette, error) {
	switch color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return text.Palette(isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"), nil
	}
	return false, fmt.Errorf("--color %q is none of auto, always, never", color)
}

// quiet is how long work may take before its progress is shown.
const quiet = time.Second

// progress shows what is being done in a line of a terminal, once it takes long. done takes the line away. Both are for
// one goroutine.
func progress(w io.Writer) (told func(string), done func()) {
	if !isTerminal(w) {
		return func(string) {}, func() {}
	}
	begun, shown := time.Now(), false
	return func(what string) {
			if time.Since(begun) > quiet {
				shown = true
				fmt.Fprintf(w, "\r\x1b[Kreading %s", text.Line(what, 60))
			}
		}, func() {
			if shown {
				fmt.Fprint(w, "\r\x1b[K")
			}
		}
}

// say writes a line for a person.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, text.Line(fmt.Sprintf(format, args...), 2000))
}

// encode writes a value as JSON or YAML.
func (r *root) encode(value any) error {
	document, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if r.output == "yaml" {
		document, err = text.YAML(document)
		if err != nil {
			return err
		}
		_, err = r.Out.Write(document)
		return err
	}
	_, err = r.Out.Write(append(text.JSON(document), '\n'))
	return err
}
