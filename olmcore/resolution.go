// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"encoding/json"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// Resolution is the answer to subscription's question "what must be installed in this namespace": a value that package
// resolution, or any other solver, returns, and that subscription.Reconcile and create.Plan take as input. All slices
// are sorted by name.
type Resolution struct {
	// Observed is what the resolution was computed from. When the Subscriptions of the namespace are others by now, the
	// resolution is stale and no package acts on it.
	Observed []SubscriptionFingerprint
	// Operators are the operators to install or upgrade, empty when there is nothing to do or the resolution failed.
	Operators []Operator
	// Decisions has one entry for each Subscription in Observed.
	Decisions []SubscriptionDecision
	// Generated are the Subscriptions to create for dependencies.
	Generated []*v1alpha1.Subscription
	// Failure says why there is no solution; nil when there is one.
	Failure *ResolutionFailure
}

// SubscriptionFingerprint is what a resolution looked at in one Subscription.
type SubscriptionFingerprint struct {
	Name                     string
	UID                      types.UID
	Generation               int64
	CurrentCSV, InstalledCSV string
}

// FingerprintOf returns what a resolution depends on in a Subscription.
func FingerprintOf(s *v1alpha1.Subscription) SubscriptionFingerprint {
	return SubscriptionFingerprint{
		Name: s.Name, UID: s.UID, Generation: s.Generation,
		CurrentCSV: s.Status.CurrentCSV, InstalledCSV: s.Status.InstalledCSV,
	}
}

// Operator is one operator that a resolution selected.
type Operator struct {
	// Name is the name of its ClusterServiceVersion.
	Name, Package, Channel, Version string
	// Catalog is the CatalogSource that it comes from.
	Catalog types.NamespacedName
	// Replaces is the value for the ClusterServiceVersion's spec.replaces.
	Replaces string
	Bundle   Bundle
	// For are the names of the Subscriptions that it satisfies; empty for a dependency.
	For []string
	// RequiredBy are the names of the selected operators, installed or new, whose requirements it satisfies.
	RequiredBy []string
	// WaitFor are the ClusterServiceVersions that must be gone before this one can be created: of the same name, and
	// being deleted.
	WaitFor []types.NamespacedName
}

// Bundle is the content of one operator version: inline objects, or the image that they must be unpacked from.
type Bundle struct {
	// Image is the bundle image; empty when Objects are inline.
	Image      string
	Properties []Property
	// Objects are the manifests, the ClusterServiceVersion among them, in the bundle's order.
	Objects []Object
	// Invalid says why Objects are not all of the bundle, for example because one cannot be read. Such a bundle is not
	// installed. It is empty for a valid bundle.
	Invalid string
}

// Property is one typed fact about a bundle, e.g. olm.package.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// AnnotationProperties is the annotation of an installed ClusterServiceVersion that holds the properties of its bundle.
const AnnotationProperties = "operatorframework.io/properties"

// PackagesOf returns the packages that properties name, which are given as AnnotationProperties holds them. What cannot
// be read names none; of the rest some may be read.
func PackagesOf(properties string) (names []string) {
	var list struct {
		Properties []struct {
			Type  string `json:"type"`
			Value struct {
				PackageName string `json:"packageName"`
			} `json:"value"`
		} `json:"properties"`
	}
	_ = json.Unmarshal([]byte(properties), &list)
	for _, p := range list.Properties {
		if p.Type == "olm.package" && p.Value.PackageName != "" {
			names = append(names, p.Value.PackageName)
		}
	}
	return names
}

// SubscriptionDecision is what a resolution means for one Subscription.
type SubscriptionDecision struct {
	Name string
	// CurrentCSV is the value for status.currentCSV; Changed says whether it is a new one.
	CurrentCSV string
	Changed    bool
	// Failure says why this Subscription has no solution; nil when it has one, or when only the Resolution's own Failure
	// speaks about it. Where both are set, this one is about this Subscription and the other about the namespace.
	Failure *ResolutionFailure
}

// ResolutionFailure says why a namespace has no solution.
type ResolutionFailure struct {
	// Unsatisfiable: the constraints contradict each other. Otherwise something prevented the resolution.
	Unsatisfiable bool
	// Transient: trying again soon may help.
	Transient bool
	Message   string
}

// AnnotationSeparatePlan is the annotation of an InstallPlan that was made for one set of Subscriptions that depend on
// each other. Without it a plan may contain versions for Subscriptions that have nothing to do with each other.
const AnnotationSeparatePlan = KeyPrefix + "separate-plan"

// IsSeparatePlan reports whether an InstallPlan was made for one set of Subscriptions that depend on each other.
func IsSeparatePlan(plan *v1alpha1.InstallPlan) bool {
	_, is := plan.Annotations[AnnotationSeparatePlan]
	return is
}
