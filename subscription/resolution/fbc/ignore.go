// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"path"
	"strings"
)

const ignoreFile = ".indexignore"

// ignorer holds the patterns of the ignore files found so far, outermost first. Of several that match a name the last
// one counts.
type ignorer struct{ patterns []pattern }

type pattern struct {
	// base is the directory of the ignore file.
	base string
	// parts are the pattern's path elements; "**" stands for any number of them.
	parts []string
	// negated takes back what earlier patterns exclude; onlyDirectories does not match files.
	negated, onlyDirectories bool
}

// add adds the patterns of a directory's ignore file.
func (g *ignorer) add(dir, text string) {
	for line := range strings.Lines(text) {
		if p, ok := parsePattern(dir, line); ok {
			g.patterns = append(g.patterns, p)
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
	if !anchored {
		p.parts = append([]string{"**"}, p.parts...)
	}
	return p, true
}

// matches reports whether a file or directory is excluded.
func (g *ignorer) matches(name string, directory bool) bool {
	excluded := false
	for _, p := range g.patterns {
		relative := name
		if p.base != "." {
			rest, ok := strings.CutPrefix(name, p.base+"/")
			if !ok {
				continue
			}
			relative = rest
		}
		if (!p.onlyDirectories || directory) && matchParts(p.parts, strings.Split(relative, "/")) {
			excluded = !p.negated
		}
	}
	return excluded
}

// matchParts goes back to the last "**" only: what the ones before it took can always be taken by it.
func matchParts(parts, elements []string) bool {
	if n := len(parts); n > 0 && parts[n-1] == "**" {
		// At the end it stands for one element at least.
		parts = append(parts[:n-1:n-1], "**", "*")
	}
	part, element, star, resume := 0, 0, -1, 0
	for element < len(elements) {
		switch {
		case part < len(parts) && parts[part] == "**":
			star, resume = part, element
			part++
		case part < len(parts) && matchesOne(parts[part], elements[element]):
			part++
			element++
		case star >= 0:
			resume++
			part, element = star+1, resume
		default:
			return false
		}
	}
	for part < len(parts) && parts[part] == "**" {
		part++
	}
	return part == len(parts)
}

func matchesOne(pattern, element string) bool {
	ok, err := path.Match(pattern, element)
	return ok && err == nil
}
