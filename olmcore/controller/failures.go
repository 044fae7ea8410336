// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/olmcore"
)

// maxMootRetry is the longest delay before a key whose writes were all moot is reconciled again.
const maxMootRetry = 30 * time.Second

// isMoot reports whether each write that failed did so because its object, or the namespace of an object to create, is
// gone or terminating. Watches report that, so it is not an error.
func isMoot(err error) bool { return each(err, isMootWrite) }

// isExpected reports whether each write that failed was moot, had a conflict, or was interrupted by the end of the
// program.
func isExpected(err error) bool {
	return each(err, func(one error) bool {
		return errors.Is(one, olmcore.ErrStale) || errors.Is(one, context.Canceled) || isMootWrite(one)
	})
}

// each reports whether a condition holds for each error that err joins, or for err itself.
func each(err error, holds func(error) bool) bool {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return holds(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(one error) bool { return !each(one, holds) })
}

func isMootWrite(err error) bool {
	var failed *olmcore.ActionError
	if !errors.As(err, &failed) {
		return false
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	if verb, _, _ := failed.Action.Describe(); verb != olmcore.VerbCreate {
		return olmcore.Classify(failed.Err) == olmcore.Gone
	}
	var status apierrors.APIStatus
	return errors.As(failed.Err, &status) && apierrors.IsNotFound(failed.Err) &&
		status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// mootRetry returns the delay before the next reconcile: afterWrites after the first moot write, doubled after each
// further one.
func mootRetry(last olmcore.LastResults) time.Duration {
	delay := afterWrites
	for _, result := range last {
		if result.Class == olmcore.ClassNone {
			continue
		}
		for tries := 1; tries < result.Count && delay < maxMootRetry; tries++ {
			delay *= 2
		}
	}
	return min(delay, maxMootRetry)
}
