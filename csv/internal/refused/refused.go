// SPDX-License-Identifier: Apache-2.0

// Package refused delays the retry of writes that the API server rejected.
package refused

import (
	"slices"
	"time"

	"github.com/olmcore/olm/olmcore"
)

// retry is the backoff after a rejected write. The cause of a rejection is not observed, so the write is retried from
// time to time.
var retry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// Hold removes the writes from res that the API server rejected and whose retry is not due yet. It calls say for each
// of them, and sets RequeueAfter to the next retry.
func Hold(res *olmcore.Result, last olmcore.LastResults, now time.Time, say func(verb olmcore.Verb, target olmcore.Ref, message string)) {
	if len(last) == 0 {
		return
	}
	res.Actions = slices.DeleteFunc(res.Actions, func(a olmcore.Action) bool {
		verb, target, _ := a.Describe()
		was, tried := last[target.Key()]
		refused := was.Class == olmcore.Forbidden || was.Class == olmcore.Invalid || was.Class == olmcore.Webhook
		if !tried || !refused {
			return false
		}
		left := retry.After(was.Count) - max(0, now.Sub(was.Last))
		if left <= 0 {
			return false
		}
		say(verb, target, was.Message)
		res.Requeue(left)
		return true
	})
}
