// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Name returns the common name of all objects that are created to unpack a bundle image. The name depends only on the
// image, so all catalogs of a namespace share the objects.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, hash.
func Name(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:63]
}

var isName = regexp.MustCompile(`^[0-9a-f]{63}$`)

// IsUnpacked reports whether a ConfigMap is an unpacked bundle, according to its name, label and owner.
func IsUnpacked(cm *corev1.ConfigMap) bool {
	return isName.MatchString(cm.Name) && cm.Labels[olmcore.LabelManaged] == "true" &&
		slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == v1alpha1.CatalogSourceKind && r.APIVersion == v1alpha1.CatalogSourceCRDAPIVersion
		})
}

// retention is how long an unpacked bundle is kept after its creation if no plan references it.
const retention = 24 * time.Hour

// Retained returns the remaining time for which an unpacked bundle is kept if no plan references it. Once the time is
// zero or negative, the bundle may be deleted.
func Retained(cm *corev1.ConfigMap, now time.Time) time.Duration {
	return cm.CreationTimestamp.Add(retention).Sub(now)
}

// MayRefer reports whether a plan in the namespace plan may use a bundle that was unpacked in the namespace bundle. A
// plan may use the bundles of its own namespace and of global, the namespace of the global catalogs.
func MayRefer(plan, bundle, global string) bool { return bundle == plan || bundle == global }

// Referred returns a set with the namespace and name of every ConfigMap that a step of a plan references.
func Referred(plan *v1alpha1.InstallPlan) map[types.NamespacedName]bool {
	found := map[types.NamespacedName]bool{}
	for _, s := range plan.Status.Plan {
		if s == nil {
			continue
		}
		if ref, ok := ParseReference(s.Resource.Manifest); ok {
			found[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = true
		}
	}
	return found
}

// Needed returns a set with the namespace and name of every unpacked bundle that one of the plans needs. A plan needs
// the bundles that its steps reference, and the bundles of its lookups.
func Needed(plans ...*v1alpha1.InstallPlan) map[types.NamespacedName]bool {
	needed := map[types.NamespacedName]bool{}
	for _, plan := range plans {
		maps.Copy(needed, Referred(plan))
		for _, lookup := range plan.Status.BundleLookups {
			needed[LookedUp(lookup)] = true
		}
	}
	delete(needed, types.NamespacedName{})
	return needed
}

// LookedUp returns the namespace and name of the ConfigMap for the unpacked bundle of a lookup. It returns the zero
// value if the lookup has no CatalogSource.
func LookedUp(lookup v1alpha1.BundleLookup) types.NamespacedName {
	if lookup.CatalogSourceRef == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: lookup.CatalogSourceRef.Namespace, Name: Name(lookup.Path)}
}

// Delete returns the action that deletes an unpacked bundle. The garbage collector deletes the Job and the other
// objects that unpacked it.
func Delete(cm *corev1.ConfigMap, reason, message string) olmcore.Delete {
	action := olmcore.DeleteOf(cm, olmcore.Cause{Reason: reason, Message: message})
	action.PropagationPolicy = metav1.DeletePropagationBackground
	return action
}

// NotPersisted is the condition of a lookup whose steps are not in a plan yet.
const NotPersisted v1alpha1.BundleLookupConditionType = "BundleLookupNotPersisted"

// Reasons and messages of the conditions of a lookup, as OLM writes them.
const (
	reasonNotPersisted  = "BundleNotUnpacked"
	messageNotPersisted = "bundle contents have not yet been persisted to installplan status"
	ReasonNotStarted    = "JobNotStarted"
	MessageNotStarted   = "unpack job not yet started"
)

// NewLookup returns a lookup for the bundle image of an operator. Its conditions say that the image is not unpacked
// yet. It returns an error if the properties cannot be encoded.
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

// Again returns a copy of a lookup whose conditions say that the bundle is not unpacked yet.
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
