// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"strings"

	"github.com/olmcore/olm/installplan/internal/crd"
)

// refusals are how the messages of what is found before anything is applied begin.
var refusals = []string{
	notServedPrefix, "Unable to find GVK in discovery: ", "pre-existing CRD owners found for ", "error checking crd owners for: ",
	"a copy of ClusterServiceVersion ", "risk of data loss updating ", "error validating existing CRs against ",
	"error generating ownerrefs for ", "error finding unpacked bundle configmap ", "error loading unpacked bundle configmap ",
	"couldn't find unpacked step ", "failed to load bundle properties ",
	"bundle ", "secret ", "serviceaccounts ", "CustomResourceDefinition ", WaitingPrefix, "object of step ",
	"could not find any versions in the new CRD", "immutable: ",
}

// IsRefusal reports whether a plan that failed with a message was refused before
// anything was applied, so that it may heal when its steps are judged anew.
func IsRefusal(message string) bool {
	return slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(message, r) }) ||
		strings.Contains(message, crd.UnmanagedMiddle) ||
		strings.HasSuffix(message, immutableSuffix) && strings.Contains(message, immutableMiddle)
}
