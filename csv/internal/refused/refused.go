// SPDX-License-Identifier: Apache-2.0

// Package refused delays the retry of writes that the API server rejected.
package refused

import (
	"time"

	"github.com/olmcore/olm/olmcore"
)

// retry is the backoff after a rejected write. The cause of a rejection is not observed, so the write is retried from
// time to time.
var retry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// Write is a write that the API server rejected and whose retry is not due yet.
type Write struct {
	Verb    olmcore.Verb
	Target  olmcore.Ref
	Message string        // Message is the error message of the API server.
	RetryIn time.Duration // RetryIn is the time until the retry. It is greater than 0.
}

// Due splits the actions into those to run now and those that wait for a retry. rejected contains the writes that the
// API server rejected and whose retry is not due yet.
func Due(actions []olmcore.Action, last olmcore.LastResults, now time.Time) (due []olmcore.Action, rejected []Write) {
	if len(last) == 0 {
		return actions, nil
	}
	for _, a := range actions {
		verb, target, _ := a.Describe()
		was := last[target.Key()]
		if left := retryIn(was, now); left > 0 {
			rejected = append(rejected, Write{Verb: verb, Target: target, Message: was.Message, RetryIn: left})
			continue
		}
		due = append(due, a)
	}
	return due, rejected
}

// retryIn returns the time until the retry of a write with this last result. It is 0 or less if the retry is due, or if
// the API server did not reject the write.
func retryIn(was olmcore.LastResult, now time.Time) time.Duration {
	switch was.Class {
	case olmcore.Forbidden, olmcore.Invalid, olmcore.Webhook:
		return retry.After(was.Count) - max(0, now.Sub(was.Last))
	}
	return 0
}
