// SPDX-License-Identifier: Apache-2.0

package relation

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

// Properties is the annotation of a ClusterServiceVersion that holds the properties of
// its bundle.
const Properties = "operatorframework.io/properties"

// Successor returns the name of the plan that superseded a plan, empty when none did:
// no Subscription refers to the plan, and all those that it was made for refer to plans
// of a later generation; of several the latest counts. As Subscriptions only move to
// later plans, a stale list cannot say so by mistake.
func Successor(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) string {
	if slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool { return Needs(s, plan) }) {
		return ""
	}
	madeFor := plannedFor(plan)
	var latest *v1alpha1.Subscription
	for _, s := range subscriptions {
		if !madeFor(s) {
			continue
		}
		if s.Status.InstallPlanRef == nil || s.Status.InstallPlanGeneration <= plan.Spec.Generation {
			return ""
		}
		if latest == nil || cmp.Or(cmp.Compare(latest.Status.InstallPlanGeneration, s.Status.InstallPlanGeneration),
			strings.Compare(s.Status.InstallPlanRef.Name, latest.Status.InstallPlanRef.Name)) < 0 {
			latest = s
		}
	}
	if latest == nil {
		return ""
	}
	return latest.Status.InstallPlanRef.Name
}

// plannedFor tells the Subscriptions that a plan was made for: those of the packages
// that it installs or, where nothing names these, its owners.
func plannedFor(plan *v1alpha1.InstallPlan) func(s *v1alpha1.Subscription) bool {
	packages := packagesOf(plan)
	if len(packages) == 0 {
		return func(s *v1alpha1.Subscription) bool { return olmcore.OwnedBy(plan, s.UID) }
	}
	return func(s *v1alpha1.Subscription) bool { return slices.Contains(packages, PackageOf(s)) }
}

// packagesOf returns the packages that a plan installs: those of its annotation, else
// those that the properties of its versions name, as OLM writes them.
func packagesOf(plan *v1alpha1.InstallPlan) []string {
	packages := List(plan.Annotations[Packages])
	if len(packages) > 0 {
		return packages
	}
	for _, s := range plan.Status.Plan {
		if s == nil || s.Resource.Kind != kinds.CSV {
			continue
		}
		text := ""
		if ref, ok := manifest.ParseRef(s.Resource.Manifest); ok {
			text = ref.Properties
		} else if m, err := manifest.Parse(s.Resource.Manifest); err == nil {
			text, _ = manifest.Strings(m.Metadata(), "annotations")[Properties].(string)
		}
		packages = append(packages, packagesIn(text)...)
	}
	return packages
}

func packagesIn(properties string) (packages []string) {
	var list struct {
		Properties []struct {
			Type  string `json:"type"`
			Value struct {
				PackageName string `json:"packageName"`
			} `json:"value"`
		} `json:"properties"`
	}
	_ = json.Unmarshal([]byte(properties), &list) // what cannot be read names none; of the rest some may be read
	for _, p := range list.Properties {
		if p.Type == "olm.package" && p.Value.PackageName != "" {
			packages = append(packages, p.Value.PackageName)
		}
	}
	return packages
}
