// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"time"

	"github.com/olmcore/olm/installplan"
)

// Annotations of an OperatorGroup that tune how bundles are unpacked for its namespace.
const (
	AnnotationTimeout       = "operatorframework.io/bundle-unpack-timeout"
	AnnotationRetryInterval = "operatorframework.io/bundle-unpack-min-retry-interval"
)

// retryInterval is the time between a failed try and the next where no annotation says otherwise.
const retryInterval = 5 * time.Minute

// timeout returns the bound of one try, 0 for none.
func (out *Outcome) timeout(in Input) time.Duration {
	switch d, set := out.setting(in, AnnotationTimeout, "timeout"); {
	case set && d >= 0:
		return d
	case in.Config.UnpackTimeout != nil:
		return *in.Config.UnpackTimeout
	}
	return installplan.DefaultUnpackTimeout
}

func (out *Outcome) retryInterval(in Input) time.Duration {
	if d, set := out.setting(in, AnnotationRetryInterval, "retry"); set && d > 0 {
		return d
	}
	return retryInterval
}

// setting reads a duration from the namespace's OperatorGroup. Where there are several none counts, as nothing is
// installed there until one is left.
func (out *Outcome) setting(in Input, annotation, word string) (d time.Duration, set bool) {
	if len(in.OperatorGroups.Items) != 1 {
		return 0, false
	}
	group := in.OperatorGroups.Items[0]
	text, set := group.Annotations[annotation]
	if !set {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		out.warn(ReasonSettingInvalid, group, "failed to parse unpack %s annotation(%s: %s): %s", word, annotation, text, err)
	}
	return d, err == nil
}
