// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// tie is one way in which a Subscription and a plan may have to do with each other.
type tie struct {
	kind tieKind
	name string
}

type tieKind uint8

const (
	tiePlan  tieKind = iota // the plan's name
	tieCSV                  // the name of a ClusterServiceVersion that the plan brings
	tieUID                  // the UID of a Subscription
	tieLabel                // a component label key
)

// index finds Subscriptions by their ties, so that plans and Subscriptions are not
// compared each with each; and those that make plans wait.
func (a *audit) index() {
	a.byUID, a.keys, a.byTie = map[types.UID]*v1alpha1.Subscription{}, map[string]string{}, map[tie][]int{}
	for i, s := range a.v.subs {
		a.byUID[s.UID], a.keys[s.Name] = s, a.key(s)
		if asksForApproval(s) {
			a.manual = append(a.manual, s.Name)
		}
		ties := []tie{{tieUID, string(s.UID)}, {tiePlan, s.Annotations[annotationGeneratedBy]}, {tieCSV, s.Status.CurrentCSV}, {tieLabel, a.keys[s.Name]}}
		if ref := s.Status.InstallPlanRef; ref != nil {
			ties = append(ties, tie{tiePlan, ref.Name})
		}
		for _, t := range ties {
			if t.name != "" {
				a.byTie[t] = append(a.byTie[t], i)
			}
		}
	}
}

// near returns, in order, the Subscriptions that refer to a plan, contribute to it, own
// it or have their label on it, and maybe others: callers look at each of them.
func (a *audit) near(p *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	found := slices.Clone(a.byTie[tie{tiePlan, p.Name}])
	for _, name := range p.Spec.ClusterServiceVersionNames {
		found = append(found, a.byTie[tie{tieCSV, name}]...)
	}
	for _, uid := range strings.Split(a.v.own(p, annotationContributors), ",") {
		found = append(found, a.byTie[tie{tieUID, uid}]...)
	}
	for i := range p.OwnerReferences {
		found = append(found, a.byTie[tie{tieUID, string(p.OwnerReferences[i].UID)}]...)
	}
	for key := range p.Labels {
		found = append(found, a.byTie[tie{tieLabel, key}]...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	subs := make([]*v1alpha1.Subscription, len(found))
	for i, at := range found {
		subs[i] = a.v.subs[at]
	}
	return subs
}
