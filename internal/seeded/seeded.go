// SPDX-License-Identifier: Apache-2.0

// Package seeded makes rapid's properties run the same few cases every time. A test package with properties imports it
// for its side effect:
//
//	import _ "github.com/olmcore/olm/internal/seeded"
//
// rapid's own variables and flags win: RAPID_SEED=0 draws at random, RAPID_CHECKS sets the number of cases,
// RAPID_NOFAILFILE=false keeps a file for each failure. The garbage of such tests is collected less often than usual,
// which takes a fifth of their time away; GOGC wins here, too.
package seeded

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	_ "pgregory.net/rapid" // registers the flags
)

// defaults are the values of rapid's flags where the environment has none. The
// number of cases is for a quick first run; the nightly workflow runs more.
var defaults = []struct{ flag, variable, value string }{
	{"rapid.seed", "RAPID_SEED", "20260102"},
	{"rapid.checks", "RAPID_CHECKS", "20"},
	{"rapid.nofailfile", "RAPID_NOFAILFILE", "true"},
}

const gcPercent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	for _, d := range defaults {
		if _, set := os.LookupEnv(d.variable); set {
			continue
		}
		f := flag.Lookup(d.flag)
		if f == nil {
			panic(fmt.Sprintf("rapid has no flag %s", d.flag))
		}
		if err := f.Value.Set(d.value); err != nil {
			panic(fmt.Sprintf("set %s: %v", d.flag, err))
		}
		f.DefValue = d.value
	}
}
