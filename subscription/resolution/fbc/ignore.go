// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"path"
	"strings"
)

const ignoreFile = ".indexignore"

// ignorer holds the patterns of the ignore files found so far, outermost first. Of several that match a name the last
// one counts.
type ignorer []pattern

type pattern struct {
	// base is the directory of the ignore file.
	base string
	// parts are the pattern's path elements; "**" stands for any number of them.
	parts []string
	// negated takes back what earlier patterns exclude; onlyDirectories does not match files.
	negated, onlyDirectories bool
}

func (g *ignorer) add(dir, text string) {
	for line := range strings.Lines(text) {
		if p, ok := parsePattern(dir, line); ok {
			*g = append(*g, p)
		}
	}
}

func parsePattern(base, line string) (p pattern, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t")
	}
	if line == "" || line[0] == '#' {
		return pattern{}, false
	}
	p.base = base
	if line[0] == '!' {
		p.negated, line = true, line[1:]
	}
	if rest, found := strings.CutSuffix(line, "/"); found {
		p.onlyDirectories, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return pattern{}, false
	}
	p.parts = strings.Split(line, "/")
	if p.parts[len(p.parts)-1] == "**" {
		p.parts = append(p.parts, "*") // at the end it stands for one element at least
	}
	if !anchored {
		p.parts = append([]string{"**"}, p.parts...)
	}
	return p, true
}

func (g ignorer) excludes(name string, directory bool) bool {
	excluded := false
	for _, p := range g {
		relative := name
		if p.base != "." {
			rest, ok := strings.CutPrefix(name, p.base+"/")
			if !ok {
				continue
			}
			relative = rest
		}
		if (!p.onlyDirectories || directory) && matches(p.parts, strings.Split(relative, "/")) {
			excluded = !p.negated
		}
	}
	return excluded
}

// matches reports whether the parts of a pattern match the elements of a path, all of them.
func matches(parts, elements []string) bool {
	can := make([]bool, len(elements)+1) // whether the parts so far match so many elements
	can[0] = true
	for _, part := range parts {
		next := make([]bool, len(can))
		for i := range can {
			switch {
			case part == "**":
				next[i] = can[i] || i > 0 && next[i-1]
			case i > 0 && can[i-1]:
				next[i], _ = path.Match(part, elements[i-1]) // what is no pattern matches nothing
			}
		}
		can = next
	}
	return can[len(elements)]
}
