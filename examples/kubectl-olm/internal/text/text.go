// SPDX-License-Identifier: Apache-2.0

// Package text writes what people read on terminals. Names and messages are written by tenants, so that nothing of them
// reaches a terminal which is no plain character.
package text

import "github.com/olmcore/olm/internal/printable"

// Line returns a text as one line: white space is a blank, what people do not see is written as an escape sequence of
// Go, and what is longer than most runes is cut.
func Line(s string, most int) string { return printable.Line(s, most) }

// Errors returns a line for each error of a join, of any length.
func Errors(err error) []string { return printable.Errors(err) }

// Lines is Line for a text of several lines of any length, which stay apart.
func Lines(s string) string { return printable.Lines(s) }

// JSON returns a JSON document in which what people do not see is escaped.
func JSON(document []byte) []byte { return printable.JSON(document) }

// YAML returns a JSON document as YAML in which what people do not see is escaped.
func YAML(document []byte) ([]byte, error) { return printable.YAMLOf(document) }

// Mermaid returns a graph for Mermaid in which what people do not see has the form that Mermaid knows.
func Mermaid(graph string) string { return printable.Mermaid(graph) }
