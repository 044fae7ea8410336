// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/internal/spelling"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// switchedBy are the Options without which a Set lacks a controller.
var switchedBy = map[string]string{Sweep: "Sweeps", CSVSweep: "Sweeps", Operator: "Operators"}

// Only leaves the controllers of these names in the Set; without names, all of them. An *olmcore.InputError names one
// that the Set does not have, with the nearest that it has or the option that adds it; the Set is as it was then.
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
		problem := isNone(name, "controller", known)
		if option, off := switchedBy[name]; off {
			problem = fmt.Sprintf("%q is switched off: set %s", name, option)
		}
		return &olmcore.InputError{Field: "only", Problem: problem}
	}
	s.Controllers = slices.DeleteFunc(s.Controllers, func(c controller.Controller) bool { return !slices.Contains(names, c.Name) })
	return nil
}

// isNone says that a name is none of those that are known, and which was meant where one is near.
func isNone(name, of string, known []string) string {
	meant := "."
	if near := spelling.Nearest(name, known); near != "" {
		meant = fmt.Sprintf(": did you mean %q?", near)
	}
	return fmt.Sprintf("%q is no %s%s There are %s", name, of, meant, strings.Join(known, ", "))
}
