// SPDX-License-Identifier: Apache-2.0

package read

import (
	"strings"
	"time"

	"github.com/olmcore/olm/olmcore"
)

// ReasonNotObserved is the reason of the Diagnostics about lists that were not read.
const ReasonNotObserved = "NotObserved"

// retryUnread is the time until the next call if a list was not read.
const retryUnread = 5 * time.Second

// NotRead returns a Result with a Diagnostic about lists that were not read, and a RequeueAfter of a few seconds.
// effect is the end of the message, for example "nothing is decided". If there are no lists, the Result is empty.
func NotRead(lists []string, target olmcore.Ref, path, effect string) olmcore.Result {
	if len(lists) == 0 {
		return olmcore.Result{}
	}
	return olmcore.Result{
		Diagnostics: []olmcore.Diagnostic{
			olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, target, path, "%s", unreadMessage(lists, effect)),
		},
		RequeueAfter: retryUnread,
	}
}

// unreadMessage returns the message of the Diagnostic about lists that were not read. There must be at least one list.
func unreadMessage(lists []string, effect string) string {
	last := len(lists) - 1
	if last == 0 {
		return "the list of " + lists[0] + " was not read, so " + effect
	}
	return "the lists of " + strings.Join(lists[:last], ", ") + " and " + lists[last] + " were not read, so " + effect
}
