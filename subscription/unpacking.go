// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// This is the only file that reads the text of a message. The conditions of a bundle lookup, as OLM defines them,
// contain neither the kubelet's reason for which a Pod waits nor whether OLM's unpacker added advice. Both are only
// found in their messages. The text decides about the message of a condition, and about nothing else.

const (
	// unpackRecheck is the time until bundles that are being unpacked are observed again.
	unpackRecheck = 5 * time.Second
	// unpackRetry is the pause after a bundle could not be unpacked.
	unpackRetry = 5 * time.Minute

	unpackGuidance = "Auto-retry: unpacking is retried every 5 minutes. Common causes: the image does not exist or cannot be pulled, " +
		"or its Pod cannot be scheduled. To retry at once, delete the failed Job with the label operatorframework.io/bundle-unpack-ref " +
		"in the namespace of the catalog"
	// reasonJobIncomplete is the reason of BundleLookupPending while the unpack Job of a bundle runs.
	reasonJobIncomplete = "JobIncomplete"
)

// unpackFacts is what is known of the bundles of a part of an answer.
type unpackFacts struct {
	unpacking, failed want // the conditions BundleUnpacking and BundleUnpackFailed
	// problem says why nothing could be unpacked this time. It is reported and not published.
	problem string
	// pause is the time from the answer to the next try, and recheck the time until the bundles are observed again. 0:
	// never.
	pause, recheck time.Duration
}

// unpackingOf returns what is known of the bundles of a part.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: every failure
// is retried, not only the first one; BundleUnpacking and BundleUnpackFailed are never set both.
func unpackingOf(p *part, attempts int) unpackFacts {
	in, u := p.progress, p.progress.Unpacking
	switch {
	case in.PlanError != "":
		message := "error ensuring InstallPlan: " + in.PlanError
		return unpackFacts{unpacking: absent, failed: present(ReasonEnsureInstallPlanFailed, message), pause: backoffAfter(attempts)}
	case in.PlanRefused.Reason != "":
		return unpackFacts{unpacking: absent, failed: present(in.PlanRefused.Reason, in.PlanRefused.Message)}
	case u == nil && p.installs && in.Plan.Name == "":
		return unpackFacts{} // not known yet
	case u == nil:
		return unpackFacts{unpacking: absent, failed: absent}
	case u.Failure != nil && u.Failure.Transient:
		return unpackFacts{problem: u.Failure.Message, pause: backoffAfter(attempts)}
	case u.Failure != nil:
		return unpackFacts{unpacking: absent, failed: present(ReasonErrorPreventedUnpacking, u.Failure.Message)}
	}
	return summarizeLookups(u.Lookups)
}

// summarizeLookups returns the first failure, or else the progress.
func summarizeLookups(lookups []v1alpha1.BundleLookup) unpackFacts {
	isPending, hint := false, ""
	for _, lookup := range lookups {
		for _, c := range lookup.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == v1alpha1.BundleLookupFailed:
				return unpackFacts{unpacking: absent, failed: present(ReasonBundleUnpackFailed, unpackMessage(c)), pause: unpackRetry}
			case c.Type == v1alpha1.BundleLookupPending:
				isPending = true
				if hint == "" && isPullProblem(c) {
					hint = "an image cannot be pulled: " + c.Message
				}
			}
		}
	}
	if !isPending {
		return unpackFacts{unpacking: absent, failed: absent}
	}
	return unpackFacts{unpacking: present(ReasonUnpackingInProgress, hint), failed: absent, recheck: unpackRecheck}
}

// unpackMessage returns the message of BundleUnpackFailed. OLM's unpacker may have added advice to the failure already.
func unpackMessage(c v1alpha1.BundleLookupCondition) string {
	message := "Bundle unpacking failed - " + c.Reason + ": " + c.Message
	if strings.Contains(c.Message, "Auto-retry") || strings.Contains(c.Message, "Common causes") {
		return message
	}
	return message + ". " + unpackGuidance
}

// isPullProblem reports whether the kubelet cannot pull an image of an unpack Job. The kubelet's reason is only found
// in the message of the lookup.
func isPullProblem(c v1alpha1.BundleLookupCondition) bool {
	return c.Reason == reasonJobIncomplete &&
		(strings.Contains(c.Message, "ImagePullBackOff") || strings.Contains(c.Message, "ErrImagePull"))
}
