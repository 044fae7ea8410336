// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Backoff is a wait that doubles with each failed try: Base after the first, never
// more than Max.
type Backoff struct{ Base, Max time.Duration }

// After returns the wait after a number of tries in a row; 0 and below count as one.
func (b Backoff) After(tries int) time.Duration {
	steps := wait.Backoff{Duration: b.Base, Factor: 2, Cap: b.Max, Steps: 62}
	next := min(b.Base, b.Max)
	for range min(max(1, tries), steps.Steps) {
		next = min(steps.Step(), b.Max)
	}
	return next
}
