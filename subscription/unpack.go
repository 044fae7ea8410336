// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// unpackRecheck is the pause between two looks at bundles that are being
	// unpacked, unpackRetry the one after a failure.
	unpackRecheck = 5 * time.Second
	unpackRetry   = 5 * time.Minute

	unpackGuidance = "Auto-retry: it is tried again every 5 minutes. Common causes: the image does not exist or cannot be pulled, " +
		"or its Pod finds no node; to try at once, delete the failing Job with the label operatorframework.io/bundle-unpack-ref " +
		"in the namespace of the catalog"
)

// unpack sets what the Subscriptions say of the bundles of an answer.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace. Differs: a failure is tried again every time, not only
// the first; BundleUnpacking and BundleUnpackFailed are never both there.
func (v *view) unpack(a *answer, in *Resolved) {
	a.unpack.keep = true
	u := in.Unpacking
	switch {
	case in.PlanError != "":
		a.unpack = unpackFailed(ReasonEnsureInstallPlanFailed, "error ensuring InstallPlan: "+in.PlanError)
		v.retry(a, in, &olmcore.ResolutionFailure{})
	case u == nil:
		if len(in.Resolution.Operators) == 0 || in.Plan.Name != "" {
			a.unpack.keep = false
		}
	case u.Failure != nil && u.Failure.Transient:
		a.unpackError = u.Failure.Message
		v.retry(a, in, &olmcore.ResolutionFailure{}) // as after any other error
	case u.Failure != nil:
		a.unpack = unpackFailed(ReasonErrorPreventedUnpacking, u.Failure.Message)
	default:
		a.unpack = v.lookups(a, in)
	}
}

func unpackFailed(reason, message string) wish {
	return wish{conditionType: v1alpha1.SubscriptionBundleUnpackFailed, reason: reason, message: message}
}

// lookups returns what the lookups add up to: a failure, the first one; else
// progress; else nothing.
func (v *view) lookups(a *answer, in *Resolved) wish {
	pending, hint := false, ""
	for i := range in.Unpacking.Lookups {
		for j := range in.Unpacking.Lookups[i].Conditions {
			c := &in.Unpacking.Lookups[i].Conditions[j]
			if c.Status != corev1.ConditionTrue {
				continue
			}
			switch c.Type {
			case v1alpha1.BundleLookupFailed:
				v.retryAfter(a, in, unpackRetry)
				return unpackFailed(ReasonBundleUnpackFailed, failedLookup(c))
			case v1alpha1.BundleLookupPending:
				pending = true
				if hint == "" && c.Reason == "JobIncomplete" &&
					(strings.Contains(c.Message, "ImagePullBackOff") || strings.Contains(c.Message, "ErrImagePull")) {
					hint = c.Message
				}
			}
		}
	}
	if !pending {
		return wish{}
	}
	if hint != "" {
		hint = "an image cannot be pulled: " + hint
	}
	if a.wait == 0 || unpackRecheck < a.wait {
		a.wait = unpackRecheck
	}
	return wish{conditionType: v1alpha1.SubscriptionBundleUnpacking, reason: ReasonUnpackingInProgress, message: hint}
}

func failedLookup(c *v1alpha1.BundleLookupCondition) string {
	message := "Bundle unpacking failed - " + c.Reason + ": " + c.Message
	if strings.Contains(c.Message, "Auto-retry") || strings.Contains(c.Message, "Common causes") {
		return message
	}
	return message + ". " + unpackGuidance
}
