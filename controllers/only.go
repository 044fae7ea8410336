// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// switchedBy are the Options without which a Set lacks a controller.
var switchedBy = map[string]string{Sweep: "Sweeps", CSVSweep: "Sweeps", Operator: "Operators"}

// Only leaves the controllers of these names in the Set; without names, all of them. An *olmcore.InputError names one that
// the Set does not have, with the nearest that it has or the option that adds it; the Set is as it was then.
func (s *Set) Only(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	known := make([]string, len(s.Controllers))
	for i, c := range s.Controllers {
		known[i] = c.Name
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		problem := fmt.Sprintf("%q is no controller: did you mean %q? There are %s", name, nearest(name, known), strings.Join(known, ", "))
		if option, off := switchedBy[name]; off {
			problem = fmt.Sprintf("%q is switched off: set %s", name, option)
		}
		return &olmcore.InputError{Field: "only", Problem: problem}
	}
	s.Controllers = slices.DeleteFunc(s.Controllers, func(c Controller) bool { return !slices.Contains(names, c.Name) })
	return nil
}

// nearest returns the first of some names that takes the fewest edits to reach from name.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return edits(name, a) - edits(name, b) })
}

// edits is the Levenshtein distance of two strings.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, one to the left
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before, row[j+1] = row[j+1], min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
