// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"encoding/json"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// successor returns the name of the plan that superseded a plan, empty when none
// did: no Subscription refers to the plan, and all those that it was made for
// refer to plans of a later generation; of several the latest counts. As
// Subscriptions only move to later plans, a stale list cannot say so by mistake.
// A plan that started is not superseded, as a step of it may have been applied: half
// an operator helps less than two versions.
func (in *Input) successor() string {
	plan := in.InstallPlan
	if terminal(plan.Status.Phase) || plan.Spec.Generation <= 0 || len(plan.Status.Plan) == 0 || !untouched(plan) {
		return ""
	}
	return successor(plan, in.Subscriptions, in.Config)
}

func successor(plan *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, config Config) string {
	var madeFor func(s *v1alpha1.Subscription) bool
	var latest *v1alpha1.Subscription
	for _, s := range subscriptions {
		if s == nil {
			continue
		}
		if needs(s, plan) {
			return ""
		}
		if madeFor == nil {
			madeFor = plannedFor(plan, config)
		}
		if !madeFor(s) {
			continue
		}
		if s.Status.InstallPlanRef == nil || s.Status.InstallPlanGeneration <= plan.Spec.Generation {
			return ""
		}
		if latest == nil || s.Status.InstallPlanGeneration > latest.Status.InstallPlanGeneration ||
			s.Status.InstallPlanGeneration == latest.Status.InstallPlanGeneration && s.Status.InstallPlanRef.Name < latest.Status.InstallPlanRef.Name {
			latest = s
		}
	}
	if latest == nil {
		return ""
	}
	return latest.Status.InstallPlanRef.Name
}

// plannedFor tells the Subscriptions that a plan was made for: those of the
// packages that it installs or, where nothing names these, its owners.
func plannedFor(plan *v1alpha1.InstallPlan, config Config) func(s *v1alpha1.Subscription) bool {
	packages := splitList(plan.Annotations[config.packagesKey()])
	if len(packages) == 0 {
		packages = packagesOfSteps(plan)
	}
	if len(packages) == 0 {
		return func(s *v1alpha1.Subscription) bool { return olmcore.OwnedBy(plan, s.UID) }
	}
	return func(s *v1alpha1.Subscription) bool { return slices.Contains(packages, packageOf(s)) }
}

// packagesOfSteps reads the packages of a plan's versions from their properties,
// as OLM writes them.
func packagesOfSteps(plan *v1alpha1.InstallPlan) []string {
	var packages []string
	for _, s := range plan.Status.Plan {
		if s == nil || s.Resource.Kind != kindCSV {
			continue
		}
		text := ""
		if ref, ok := parseBundleRef(s.Resource.Manifest); ok {
			text = ref.Properties
		} else if m, err := parseManifest(s.Resource.Manifest); err == nil {
			text, _ = stringsOf(m.metadata(), "annotations")[annotationProperties].(string)
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

// supersede ends a plan whose place another one took: it is never executed,
// approved or not.
func (d *decision) supersede(by string) {
	d.state, d.reason = StateSuperseded, ReasonSuperseded
	status := &d.next.Status
	status.Phase, status.Message = v1alpha1.InstallPlanPhaseFailed, "superseded by InstallPlan "+by
	setCondition(status, v1alpha1.InstallPlanCondition{
		Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
		Reason: ReasonSuperseded, Message: status.Message,
	}, d.in.Now)
	d.diagnose(olmcore.Info, ReasonSuperseded, "", "no Subscription refers to it, InstallPlan %s took its place", by)
}
