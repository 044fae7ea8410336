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

// Ties finds the Subscriptions of a namespace by whatever may tie one to a plan: its name, UID, package and currentCSV,
// and the name and UID of the plans that it refers to or that made it.
type Ties map[string][]*v1alpha1.Subscription

// NewTies returns the Ties of the Subscriptions of a namespace, none of them nil.
func NewTies(subscriptions []*v1alpha1.Subscription) Ties {
	ties := Ties{}
	for _, s := range subscriptions {
		values := []string{s.Name, string(s.UID), PackageOf(s), s.Status.CurrentCSV, s.Annotations[GeneratedBy]}
		if ref := s.Status.InstallPlanRef; ref != nil {
			values = append(values, ref.Name, string(ref.UID))
		}
		for _, value := range values {
			if value != "" {
				ties[value] = append(ties[value], s)
			}
		}
	}
	return ties
}

// Of returns, sorted by name, the Subscriptions that a decision about a plan looks at, and maybe others: those that
// refer to it, were made by it, own it, are named like an owner or contributed to it. While it is not Complete also
// those of the packages and versions that it brings, and those that it makes.
func (t Ties) Of(plan *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	found := make([]*v1alpha1.Subscription, 0, 8)
	add := func(values ...string) {
		for _, value := range values {
			found = append(found, t[value]...)
		}
	}
	add(plan.Name, string(plan.UID))
	add(list(plan, Contributors)...)
	for _, r := range plan.OwnerReferences {
		add(string(r.UID), r.Name)
	}
	if plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		add(plan.Spec.ClusterServiceVersionNames...)
		add(packagesOf(plan)...)
		for _, s := range plan.Status.Plan {
			switch {
			case s == nil:
			case s.Resource.Kind == kinds.Subscription:
				add(s.Resource.Name, manifest.NameOf(s))
			default:
				add(s.Resolving, s.Resource.Name)
			}
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Subscription) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found)
}

// Successor returns the name of the plan that superseded a plan, empty when none did: no Subscription refers to the
// plan, and all those that it was made for refer to plans of a later generation; of several the latest counts. As
// Subscriptions only move to later plans, a stale list cannot say so by mistake.
func Successor(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) string {
	packages := packagesOf(plan)
	var latest *v1alpha1.Subscription
	for _, s := range subscriptions {
		madeFor := slices.Contains(packages, PackageOf(s)) || len(packages) == 0 && olmcore.OwnedBy(plan, s.UID)
		switch {
		case Needs(s, plan), madeFor && (s.Status.InstallPlanRef == nil || s.Status.InstallPlanGeneration <= plan.Spec.Generation):
			return ""
		case madeFor && (latest == nil || cmp.Or(cmp.Compare(latest.Status.InstallPlanGeneration, s.Status.InstallPlanGeneration),
			strings.Compare(s.Status.InstallPlanRef.Name, latest.Status.InstallPlanRef.Name)) < 0):
			latest = s
		}
	}
	if latest == nil {
		return ""
	}
	return latest.Status.InstallPlanRef.Name
}

// packagesOf returns the packages that a plan installs: those of its annotation, else those that the properties of its
// versions name, as OLM writes them.
func packagesOf(plan *v1alpha1.InstallPlan) []string {
	packages := list(plan, Packages)
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
		var list struct {
			Properties []struct {
				Type  string `json:"type"`
				Value struct {
					PackageName string `json:"packageName"`
				} `json:"value"`
			} `json:"properties"`
		}
		_ = json.Unmarshal([]byte(text), &list) // what cannot be read names none; of the rest some may be read
		for _, p := range list.Properties {
			if p.Type == "olm.package" && p.Value.PackageName != "" {
				packages = append(packages, p.Value.PackageName)
			}
		}
	}
	return packages
}
