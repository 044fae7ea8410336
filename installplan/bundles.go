// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// unpackName is the name of all objects that unpack a bundle image: it is a
// function of the image alone, so catalogs of one namespace share them.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, hash.
func unpackName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:])[:63]
}

// holdsBundle reports whether a ConfigMap is one that a bundle was unpacked
// into, and not merely one of such a name.
func holdsBundle(cm *corev1.ConfigMap) bool {
	if len(cm.Name) != 63 || cm.Labels[olmcore.LabelManaged] != "true" {
		return false
	}
	for _, c := range []byte(cm.Name) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return slices.ContainsFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == v1alpha1.CatalogSourceKind && r.APIVersion == v1alpha1.CatalogSourceCRDAPIVersion
	})
}

// retained is how long a ConfigMap that nobody refers to is kept from now on.
func retained(cm *corev1.ConfigMap, now time.Time, config Config) time.Duration {
	return cm.CreationTimestamp.Add(or(config.UnpackRetention, DefaultUnpackRetention)).Sub(now)
}

// bundlesOf returns the ConfigMaps that a plan's steps refer to.
func bundlesOf(plan *v1alpha1.InstallPlan) map[types.NamespacedName]bool {
	found := map[types.NamespacedName]bool{}
	for _, s := range plan.Status.Plan {
		if s == nil {
			continue
		}
		if ref, ok := parseBundleRef(s.Resource.Manifest); ok {
			found[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = true
		}
	}
	return found
}

// mayRefer reports whether plans of a namespace may be made of what was unpacked
// in another: in their own, where their catalogs are, and where those are that
// all namespaces see.
func (c Config) mayRefer(plan, bundle string) bool {
	return bundle == plan || bundle == or(c.GlobalNamespace, or(c.OLMNamespace, DefaultOLMNamespace))
}

// ownBundles are the bundlesOf a plan that it may refer to.
func (c Config) ownBundles(plan *v1alpha1.InstallPlan) map[types.NamespacedName]bool {
	own := bundlesOf(plan)
	maps.DeleteFunc(own, func(key types.NamespacedName, _ bool) bool { return !c.mayRefer(plan.Namespace, key.Namespace) })
	return own
}

// maxBundles bounds the unpacked bundles that a plan may refer to.
const maxBundles = 100

// refersToBundles adds to set what a plan needs: what its steps refer to, and
// what its pending lookups are being unpacked into.
func refersToBundles(plan *v1alpha1.InstallPlan, set map[types.NamespacedName]bool) {
	for key := range bundlesOf(plan) {
		set[key] = true
	}
	lookedUp(plan.Status.BundleLookups, set)
}

func lookedUp(lookups []v1alpha1.BundleLookup, set map[types.NamespacedName]bool) {
	for i := range lookups {
		if ref := lookups[i].CatalogSourceRef; ref != nil {
			set[types.NamespacedName{Namespace: ref.Namespace, Name: unpackName(lookups[i].Path)}] = true
		}
	}
}

// deleteBundle asks for an unpacked bundle to go; what unpacked it follows by
// ownership.
func deleteBundle(cm *corev1.ConfigMap, reason, message string) olmcore.Delete {
	action := olmcore.DeleteOf(cm, olmcore.Cause{Reason: reason, Message: message})
	action.Target = olmcore.RefOf(cm)
	action.PropagationPolicy = metav1.DeletePropagationBackground
	return action
}
