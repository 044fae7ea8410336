// SPDX-License-Identifier: Apache-2.0

// Package refused keeps writes that the API server refuses from being repeated all the time.
package refused

import (
	"slices"
	"time"

	"github.com/olmcore/olm/olmcore"
)

// retry is the wait after a write that the API server refused: what would let it pass is not observed.
var retry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// Hold takes out the writes that the API server refused a short while ago, and has say told of each.
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
