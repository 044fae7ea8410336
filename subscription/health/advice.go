// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/stage"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// longTime is how long a step on the way may take before there is advice about it.
const longTime = 10 * time.Minute

// maxNamed is how many objects a message names at most.
const maxNamed = 5

// adviceOnDelay is for what goes on by itself, and should have got further by now.
func adviceOnDelay(v *subscription.Verdict, h Health) string {
	switch h.Phase {
	case Unpacking:
		return "Look at the Jobs that unpack the bundles, and whether the bundle images can be pulled."
	case Resolving:
		return "Look whether the controller runs and reaches the catalogs."
	case Installing, Upgrading:
	default:
		return ""
	}
	switch {
	case h.Blocking.Kind == v1alpha1.ClusterServiceVersionKind:
		return "Look at the ClusterServiceVersion's status and its Deployments."
	case v.Plan.Plan == nil || v.Plan.Stage != stage.Installing:
		return "Look whether the controller runs and sees the InstallPlan."
	}
	if open := unfinished(v.Plan.Plan); len(open) > 0 {
		return "Look at what the InstallPlan's steps wait for: " + listed(open) + "."
	}
	return "Look whether the controller runs: no step of the InstallPlan is left."
}

// unfinished names the steps of a plan that are not done.
func unfinished(plan *v1alpha1.InstallPlan) []string {
	var names []string
	for _, s := range plan.Status.Plan {
		if s != nil && s.Status != v1alpha1.StepStatusCreated && s.Status != v1alpha1.StepStatusPresent {
			names = append(names, s.Resource.Kind+" "+s.Resource.Name+" is "+string(cmp.Or(s.Status, v1alpha1.StepStatusUnknown)))
		}
	}
	return names
}

// listed joins names, and says how many more there are.
func listed(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// unmet names the requirements of a CSV that are not met.
func unmet(c *v1alpha1.ClusterServiceVersion) []string {
	var names []string
	for i := range c.Status.RequirementStatus {
		r := &c.Status.RequirementStatus[i]
		if r.Status == v1alpha1.RequirementStatusReasonPresent {
			continue
		}
		name := r.Kind + " " + r.Name + " is " + string(r.Status)
		for j := range r.Dependents {
			if r.Dependents[j].Status == v1alpha1.DependentStatusReasonNotSatisfied {
				name += " (" + r.Dependents[j].Kind + ": " + r.Dependents[j].Message + ")"
				break
			}
		}
		names = append(names, name)
	}
	return names
}
