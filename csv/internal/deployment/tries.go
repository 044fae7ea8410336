// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Attempt is one write of an installation with the result of its last try.
type Attempt struct {
	// content is what was sent: the object or the patch, and the account.
	content string
	// result is zero until the write was tried.
	result olmcore.LastResult
	// count is the number of tries that ended in the class of result.
	count int
}

// Attempts contains the writes of the last installation, by object.
type Attempts map[olmcore.Key]Attempt

// Equal reports whether a and b contain the same attempts.
func (a Attempts) Equal(b Attempts) bool { return maps.Equal(a, b) }

// Tries contains the results of earlier tries to install a ClusterServiceVersion.
type Tries struct {
	Now time.Time
	// Attempts contains Installation.Attempts of the last call. LastRun contains the results of the caller's last
	// olmcore.Run.
	Attempts Attempts
	LastRun  olmcore.LastResults
	// Since is the start of this installation. Earlier results are ignored. If it is zero, no result is ignored.
	Since time.Time
	// Again is true if the installation failed before. Its failed writes are then retried with backoff. A write that
	// the API server rejected as invalid is not retried until its content changes.
	Again bool
}

// installRetry is the wait after a write of an installation that failed.
var installRetry = olmcore.Backoff{Base: 5 * time.Second, Max: 10 * time.Minute}

// RefusedRetry is the backoff after a write that was rejected for missing permissions.
var RefusedRetry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// of returns the memory of a write. Its result is zero if the write was not tried with this content.
func (t Tries) of(a olmcore.Action) Attempt {
	_, target, _ := a.Describe()
	now := Attempt{content: contentOf(a)}
	was, asked := t.Attempts[target.Key()]
	if asked && was.content != now.content {
		return now
	}
	last, ran := t.LastRun[target.Key()]
	switch {
	case !ran || last.Last.Before(t.Since):
		now.result, now.count = was.result, was.count
	case last.Last.Equal(was.result.Last):
		now.result, now.count = last, was.count
	case last.Class == was.result.Class:
		now.result, now.count = last, was.count+1
	default:
		now.result, now.count = last, last.Count
	}
	return now
}

// left returns how long a failed write waits for its next try; permanent is set if it waits for a change of its
// content.
func (t Tries) left(a Attempt) (left time.Duration, permanent bool) {
	backoff := installRetry
	if a.result.Class == olmcore.Forbidden {
		backoff = RefusedRetry
	}
	return backoff.After(a.count) - max(0, t.Now.Sub(a.result.Last)), a.result.Class == olmcore.Invalid
}

func withoutData(o olmcore.Object) olmcore.Object {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return o
	}
	bare := *secret
	bare.Data, bare.StringData = nil, nil
	return &bare
}

// contentOf returns what a write sends, without the version of the object that it was made for. Of a Secret it is the
// metadata alone: a certificate is a new one with each try, and its key is not kept.
func contentOf(a olmcore.Action) string {
	switch write := a.(type) {
	case olmcore.Create:
		write.Object = withoutData(write.Object)
		a = write
	case olmcore.Update:
		write.Before, write.After = withoutData(write.Before), withoutData(write.After)
		a = write
	}
	r, err := olmcore.RecordOf(a)
	if err != nil {
		return ""
	}
	r.Target.ResourceVersion = ""
	r.Cause = olmcore.Cause{}
	data, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return string(data)
}
