// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// status is the status of an object, which becomes JSON once it is printed: those of a large cluster are large.
type status struct{ of olmcore.Object }

func (s status) value() any {
	if s.of == nil {
		return nil
	}
	m, err := olmcore.ToMap(s.of)
	if err != nil {
		return nil
	}
	return m["status"]
}

// MarshalJSON implements json.Marshaler.
func (s status) MarshalJSON() ([]byte, error) { return indented(s.value(), "", false) }

// WriteJSON writes a report, with a line end, one result after another: all of them at once are large. escapeHTML is as
// for json.Encoder. No character is cut by two calls of w.
func WriteJSON(w io.Writer, r *Report, escapeHTML bool) error {
	around := *r
	around.Results = []Result{}
	text, err := indented(around, "", escapeHTML)
	if err != nil {
		return err
	}
	// A line that begins so is in no text, where a line end is escaped, and nothing below has so few spaces.
	before, behind, found := bytes.Cut(text, []byte("\n  \"results\": []"))
	if !found || len(r.Results) == 0 {
		_, err = w.Write(append(text, '\n'))
		return err
	}
	if _, err = w.Write(before); err != nil {
		return err
	}
	separator := "\n  \"results\": [\n    "
	for _, one := range r.Results {
		text, err := indented(one, "    ", escapeHTML)
		if err != nil {
			return err
		}
		if _, err = w.Write(append([]byte(separator), text...)); err != nil {
			return err
		}
		separator = ",\n    "
	}
	_, err = w.Write(append([]byte("\n  ]"), append(behind, '\n')...))
	return err
}

// indented returns a value as JSON without a line end.
func indented(value any, prefix string, escapeHTML bool) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(escapeHTML)
	encoder.SetIndent(prefix, "  ")
	err := encoder.Encode(value)
	return printable.JSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}
