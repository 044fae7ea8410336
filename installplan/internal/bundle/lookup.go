// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// NotPersisted is the condition of a lookup whose steps are in no plan yet.
const NotPersisted v1alpha1.BundleLookupConditionType = "BundleLookupNotPersisted"

// Reasons and messages of the conditions of a lookup, as OLM writes them.
const (
	reasonNotPersisted  = "BundleNotUnpacked"
	messageNotPersisted = "bundle contents have not yet been persisted to installplan status"
	ReasonNotStarted    = "JobNotStarted"
	MessageNotStarted   = "unpack job not yet started"
)

// NewLookup returns the lookup of an operator's bundle image, as it is before anything
// is unpacked. The error says that its properties cannot be encoded.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, ResolveSteps.
func NewLookup(o olmcore.Operator, now time.Time) (v1alpha1.BundleLookup, error) {
	properties, err := EncodeProperties(o.Bundle.Properties)
	if err != nil {
		return v1alpha1.BundleLookup{}, err
	}
	return Again(v1alpha1.BundleLookup{
		Path: o.Bundle.Image, Identifier: o.Name, Replaces: o.Replaces, Properties: properties,
		CatalogSourceRef: &corev1.ObjectReference{Namespace: o.Catalog.Namespace, Name: o.Catalog.Name},
	}, now), nil
}

// Again returns a copy of a lookup with the conditions that it has before anything is
// unpacked.
func Again(lookup v1alpha1.BundleLookup, now time.Time) v1alpha1.BundleLookup {
	again := *lookup.DeepCopy()
	at := olmcore.Timestamp(now)
	again.Conditions = []v1alpha1.BundleLookupCondition{
		{Type: NotPersisted, Status: corev1.ConditionTrue, Reason: reasonNotPersisted,
			Message: messageNotPersisted, LastTransitionTime: &at},
		{Type: v1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: ReasonNotStarted,
			Message: MessageNotStarted, LastTransitionTime: &at},
	}
	return again
}
