// SPDX-License-Identifier: Apache-2.0

// Package seeded makes rapid's properties run the same few cases every time, in this and in other repositories. A test
// package with properties imports it for its side effect:
//
//	import _ "github.com/olmcore/olm/fake/gen/seeded"
//
// rapid's own variables and flags win: RAPID_SEED=0 draws at random, RAPID_CHECKS sets the number of cases,
// RAPID_NOFAILFILE=false keeps a file for each failure. GOGC wins over the rarer garbage collections that such tests
// have.
package seeded

import _ "github.com/olmcore/olm/internal/seeded" // sets the flags
