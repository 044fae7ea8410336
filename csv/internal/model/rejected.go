// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/olmcore/olm/olmcore"
)

// rejectedRetry is the backoff after a rejected write. The cause of a rejection is not observed, so the write is
// retried from time to time.
var rejectedRetry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// RejectedWrite is a write that the API server rejected and whose retry is not due yet.
type RejectedWrite struct {
	Verb    olmcore.Verb
	Target  olmcore.Ref
	Message string        // Message is the error message of the API server.
	RetryIn time.Duration // RetryIn is the time until the retry. It is greater than 0.
}

// DueWrites splits the actions into those to run now and those that wait for a retry. rejected contains the writes that
// the API server rejected and whose retry is not due yet.
func DueWrites(actions []olmcore.Action, last olmcore.LastResults, now time.Time) (due []olmcore.Action, rejected []RejectedWrite) {
	if len(last) == 0 {
		return actions, nil
	}
	for _, a := range actions {
		verb, target, _ := a.Describe()
		was := last[target.Key()]
		if left := rejectedRetryIn(was, now); left > 0 {
			rejected = append(rejected, RejectedWrite{Verb: verb, Target: target, Message: was.Message, RetryIn: left})
			continue
		}
		due = append(due, a)
	}
	return due, rejected
}

// rejectedRetryIn returns the time until the retry of a write with this last result. It is 0 or less if the retry is
// due, or if the API server did not reject the write.
func rejectedRetryIn(was olmcore.LastResult, now time.Time) time.Duration {
	switch was.Class {
	case olmcore.Forbidden, olmcore.Invalid, olmcore.Webhook:
		return rejectedRetry.After(was.Count) - max(0, now.Sub(was.Last))
	}
	return 0
}
