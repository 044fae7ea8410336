// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// existing returns the plan of a content that is to be used, nil when there must be a new one. versions are the
// ClusterServiceVersions of the namespace.
func existing(r request, c content, versions []*v1alpha1.ClusterServiceVersion) *v1alpha1.InstallPlan {
	var same []*v1alpha1.InstallPlan
	for _, p := range r.plans {
		superseded := !relation.Terminal(p) && p.Spec.Generation > 0 && relation.Successor(p, r.subscriptions) != ""
		if p.DeletionTimestamp == nil && p.Annotations[relation.ContentHash] == c.hash && !superseded && holds(p, c) {
			same = append(same, p)
		}
	}
	slices.SortFunc(same, func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(cmp.Compare(b.Spec.Generation, a.Spec.Generation),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, p := range same {
		if !relation.Terminal(p) {
			return p
		}
	}
	if len(same) == 0 {
		return nil
	}
	newest, usable := same[0], false
	if newest.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		usable = slices.ContainsFunc(r.subscriptions, func(s *v1alpha1.Subscription) bool { return relation.RefersTo(s, newest) })
	} else {
		usable = allInstalled(newest, versions)
	}
	if !usable {
		return nil
	}
	return newest
}

// holds reports whether the steps of a plan, when it has any, are those that its annotation says: anybody who may write
// plans may write that.
func holds(p *v1alpha1.InstallPlan, c content) bool {
	if len(p.Status.Plan) == 0 {
		return len(p.Status.BundleLookups) == 0
	}
	return !slices.Contains(p.Status.Plan, nil) && contentHash(p.Namespace, c.account, p.Status.Plan) == c.hash
}

func allInstalled(plan *v1alpha1.InstallPlan, versions []*v1alpha1.ClusterServiceVersion) bool {
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		if !slices.ContainsFunc(versions, func(csv *v1alpha1.ClusterServiceVersion) bool {
			return csv.Name == name && csv.DeletionTimestamp == nil && !csv.IsCopied()
		}) {
			return false
		}
	}
	return true
}

// notVisible says that a Subscription refers to a plan of this very content which is not in the snapshot, or that such
// a plan has just completed and what it installed is not. As a rule a cache is stale; what is gone for good is made
// again after a grace period.
func notVisible(r request, c content, now time.Time) (result olmcore.Result) {
	await := func(since time.Time, target olmcore.Object, format string, args ...any) {
		left := since.Add(input.VisibilityGrace).Sub(now)
		if left <= 0 || !result.Empty() {
			return
		}
		result.Requeue(left)
		result.Diagnostics = append(result.Diagnostics, olmcore.Diagnose(olmcore.Info, ReasonPlanNotVisible, olmcore.RefOf(target), "", format, args...))
	}
	for _, s := range r.subscriptions {
		ref := s.Status.InstallPlanRef
		if ref != nil && ref.Name == planName(c.hash, s.Status.InstallPlanGeneration) &&
			!slices.ContainsFunc(r.plans, func(p *v1alpha1.InstallPlan) bool { return p.Name == ref.Name && p.UID == ref.UID }) {
			await(s.Status.LastUpdated.Time, s, "it refers to InstallPlan %s of this content, which is not visible", ref.Name)
		}
	}
	for _, p := range r.plans {
		if p.Annotations[relation.ContentHash] != c.hash || p.Status.Phase != v1alpha1.InstallPlanPhaseComplete || p.DeletionTimestamp != nil {
			continue
		}
		if done := p.Status.GetCondition(v1alpha1.InstallPlanInstalled).LastTransitionTime; done != nil {
			await(done.Time, p, "it is complete and what it installed is not visible")
		}
	}
	return result
}

func planName(hash string, generation int) string {
	return "install-" + olmcore.NameSuffix(10, hash, strconv.Itoa(generation))
}

// newPlan asks for a new plan, without status.
func newPlan(r request, c content, config installplan.Config) (result olmcore.Result) {
	warn := func(reason, format string, args ...any) {
		result.Diagnostics = append(result.Diagnostics, about(r.namespace, olmcore.Warning, reason, format, args...))
	}
	if problem := tooLarge(c, cmp.Or(config.MaxStatusBytes, installplan.DefaultMaxStatusBytes)); problem != "" {
		warn(ReasonPlanTooLarge, "%s", problem)
		return result
	}
	plan := &v1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Labels: map[string]string{olmcore.LabelManaged: "true"},
			Annotations: map[string]string{relation.ContentHash: c.hash},
		},
		Spec: v1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: versionsOf(c.steps), Approval: v1alpha1.ApprovalAutomatic, Approved: true,
		},
		Status: v1alpha1.InstallPlanStatus{CatalogSources: []string{}},
	}
	plan.Name, plan.Spec.Generation = nextName(r, c)
	if c.account != "" {
		plan.Annotations[relation.Account] = c.account
	}
	if r.manual() {
		relation.AskForApproval(plan)
		if because := r.manualBecauseOf(); len(because) > 0 {
			warn(ReasonManualBecauseOf, "the plan needs approval because of Subscription %s", strings.Join(because, ", "))
		}
	}
	result.Diagnostics = append(result.Diagnostics, r.relate(plan, config)...)
	result.Actions = append(result.Actions, olmcore.CreateOf(plan, olmcore.Cause{
		Reason: ReasonPlanNeeded, Message: "installs " + strings.Join(plan.Spec.ClusterServiceVersionNames, ", "),
	}))
	return result
}

// nextName returns the first free name of a generation above all that exist or existed.
func nextName(r request, c content) (name string, generation int) {
	taken := map[string]bool{}
	for _, p := range r.plans {
		generation = max(generation, p.Spec.Generation)
		taken[p.Name] = true
	}
	for _, s := range r.subscriptions {
		generation = max(generation, s.Status.InstallPlanGeneration)
	}
	for generation++; ; generation++ {
		if name = planName(c.hash, generation); !taken[name] {
			return name, generation
		}
	}
}

// tooLarge says which steps make the plan exceed the bounds of one object; empty when it fits.
func tooLarge(c content, maxBytes int) string {
	if len(c.steps) > step.MaxSteps {
		return fmt.Sprintf("the plan would have %d steps, more than %d", len(c.steps), step.MaxSteps)
	}
	type part struct {
		name string
		size int
	}
	var parts []part
	total := 0
	add := func(name string, value any) {
		data, _ := json.Marshal(value) // strings and times always encode
		parts = append(parts, part{name, len(data)})
		total += len(data)
	}
	for _, s := range c.steps {
		add(s.Resource.Kind+" "+s.Resource.Name, s)
	}
	for i := range c.lookups {
		add("bundle "+c.lookups[i].Identifier, &c.lookups[i])
	}
	if total <= maxBytes {
		return ""
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.size, a.size) })
	var largest []string
	for _, p := range parts[:min(3, len(parts))] {
		largest = append(largest, fmt.Sprintf("%s (%d bytes)", p.name, p.size))
	}
	return fmt.Sprintf("the plan's steps take %d bytes, more than %d; the largest are %s", total, maxBytes, strings.Join(largest, ", "))
}
