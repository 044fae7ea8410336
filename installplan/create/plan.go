// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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

// Plan returns the writes that create the InstallPlan of a resolution, or that make an existing plan with the same
// content its plan. An existing plan is found by the hash of its content. So repeated calls, other controllers and a
// crash between two writes all lead to one plan that all of its Subscriptions own. First, the plan is created without
// status, so no controller installs it. Its status is written once the plan is observed, and every Subscription that
// the resolution changes references it. The zero Outcome means that there is nothing to install. The error is an
// *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureInstallPlan and createInstallPlan.
// Differs: OLM reuses any plan of the same generation, without comparing its content or owners. It writes the
// references of the Subscriptions last.
func Plan(in Input) (out Outcome, err error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	if in.Resolution.Failure != nil || len(in.Resolution.Operators)+len(in.Resolution.Generated) == 0 {
		return Outcome{}, nil
	}
	content, lookups, problems := contentOf(in)
	r := newRequest(in, content)
	out.Refused = content.refused
	out.Diagnostics = problems
	if r.wanted() {
		out.Lookups = lookups
	}
	if len(problems) > 0 || len(r.steps) == 0 {
		return out, nil
	}
	switch plan := r.existing(); {
	case r.stale(plan):
		out.Diagnostics = append(out.Diagnostics, in.diagnose(nil, olmcore.Warning, ReasonStaleResolution,
			"the resolution was made for other Subscriptions than those of namespace %s now", in.Namespace))
		return out, nil
	case plan != nil:
		return reusePlan(r, plan, out), nil
	case r.wanted():
		return createPlan(r, out), nil
	}
	return out, nil
}

// createPlan returns an Outcome that creates the plan, unless it is too large or has to wait.
func createPlan(r request, out Outcome) Outcome {
	if problem := r.tooLarge(cmp.Or(r.in.Config.MaxStatusBytes, installplan.DefaultMaxStatusBytes)); problem != "" {
		out.Refused = olmcore.Cause{Reason: ReasonPlanTooLarge, Message: problem}
		out.Diagnostics = append(out.Diagnostics, r.in.diagnose(nil, olmcore.Error, ReasonPlanTooLarge, "%s", problem))
		return out
	}
	out.Result = r.awaitSets()
	if out.Empty() {
		out.Result = r.notVisible()
	}
	if out.Empty() {
		out.Result = r.newPlan()
	}
	return out
}

// reusePlan returns an Outcome with a plan that exists. A plan that is not finished becomes the plan of this
// resolution, too.
func reusePlan(r request, plan *v1alpha1.InstallPlan, out Outcome) Outcome {
	out.Plan, out.Generation = olmcore.RefOf(plan).Unversioned(), plan.Spec.Generation
	for _, s := range r.subscriptions {
		if r.changed(s) || r.stranded(s, plan.Spec.ClusterServiceVersionNames, plan.UID) {
			out.Subscriptions = append(out.Subscriptions, s.Name)
		}
	}
	switch plan.Status.Phase {
	case v1alpha1.InstallPlanPhaseComplete:
	case v1alpha1.InstallPlanPhaseFailed:
		out.Diagnostics = append(out.Diagnostics, r.in.diagnose(out.Subscriptions, olmcore.Warning, ReasonPreviousPlanFailed,
			"InstallPlan %s has this content and failed: %s", plan.Name, plan.Status.Message))
	default:
		out.Result = r.limitedToOwnersOf(plan).join(plan)
	}
	return out
}

// join makes an existing plan this resolution's plan, too: owners first, then, once it is referred to, its steps.
func (r request) join(plan *v1alpha1.InstallPlan) (result olmcore.Result) {
	after := plan.DeepCopy()
	result.Diagnostics = r.relate(after)
	cause := relation.Repaired("another resolution of the namespace came to the same plan")
	if len(r.manual()) > 0 && plan.Spec.Approval != v1alpha1.ApprovalManual && relation.Untouched(plan) {
		cause = relation.AskForApproval(after)
	}
	await := func(reason, format string, args ...any) {
		result.Diagnostics = append(result.Diagnostics, olmcore.Diagnose(olmcore.Info, reason, olmcore.RefOf(plan), "", format, args...))
	}
	earlier := relation.Earlier(plan, r.plans, r.subscriptions)
	unstarted := slices.IndexFunc(earlier, r.isReplaceable)
	switch awaited, referred := r.awaited(plan); {
	case !sameRelations(plan, after):
		if after.Spec.ClusterServiceVersionNames == nil {
			after.Spec.ClusterServiceVersionNames = []string{} // which the API requires
		}
		result.Actions = append(result.Actions, olmcore.UpdateOf(plan, after, cause))
	case len(plan.Status.Plan)+len(plan.Status.BundleLookups) > 0:
	case len(awaited) == 0 && !referred:
		await(ReasonReferencesAwaited, "no Subscription refers to the plan yet")
	case unstarted >= 0:
		supersede(&result, earlier[unstarted], plan, r.in.Now)
	case len(earlier) > 0:
		await(installplan.ReasonEarlierPlanUnfinished, "%s", relation.Unfinished(earlier))
	case len(awaited) > 0:
		await(ReasonReferencesAwaited, "Subscription %s does not refer to the plan yet", namesOf(awaited))
	default: // what starts the plan
		after = plan.DeepCopy()
		status := &after.Status
		status.Phase = v1alpha1.InstallPlanPhaseInstalling
		if plan.Spec.Approval == v1alpha1.ApprovalManual {
			status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
		}
		status.Plan, status.BundleLookups = r.steps, r.lookups
		status.CatalogSources = catalogsOf(r.steps)
		cause := olmcore.Cause{Reason: ReasonPlanReady, Message: "every Subscription that it changes refers to it"}
		result.Actions = append(result.Actions, olmcore.UpdateStatusOf(plan, after, cause))
		t := olmcore.Moved(olmcore.RefOf(plan), "Phase", string(plan.Status.Phase), string(status.Phase), r.in.Now)
		result.Transitions = append(result.Transitions, t)
	}
	return result
}

// isReplaceable reports whether an earlier plan gives way to a plan of this resolution, because nothing of it is
// applied. A plan that a user approved for several sets of Subscriptions does not: the approval is for all of them.
func (r request) isReplaceable(earlier *v1alpha1.InstallPlan) bool {
	isApproved := earlier.Spec.Approval == v1alpha1.ApprovalManual && earlier.Spec.Approved
	return relation.Untouched(earlier) && !(r.owners != nil && isApproved && !olmcore.IsSeparatePlan(earlier))
}

// supersede ends an earlier plan of which nothing is applied. Only the caller knows that the later plan can get its
// steps. The API server rejects the write if the earlier plan has started meanwhile.
func supersede(result *olmcore.Result, earlier, later *v1alpha1.InstallPlan, now time.Time) {
	after := earlier.DeepCopy()
	relation.Supersede(&after.Status, relation.SupersededBy(later.Name), now)
	cause := olmcore.Cause{Reason: installplan.ReasonSuperseded, Message: after.Status.Message}
	result.Actions = append(result.Actions, olmcore.UpdateStatusOf(earlier, after, cause))
	t := olmcore.Moved(olmcore.RefOf(earlier), "Phase", string(earlier.Status.Phase), string(after.Status.Phase), now)
	t.Reason, t.Message = installplan.ReasonSuperseded, after.Status.Message
	result.Transitions = append(result.Transitions, t)
}

func sameRelations(a, b *v1alpha1.InstallPlan) bool {
	return a.Spec.Approval == b.Spec.Approval && a.Spec.Approved == b.Spec.Approved &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, olmcore.SameOwnerReference) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// existing returns the plan with this content that is used again, nil if a new plan is needed. It prefers the latest
// unfinished plan. A finished plan is used only while a Subscription references its failure or all of its versions
// exist. A plan that other sets share is never used.
func (r request) existing() *v1alpha1.InstallPlan {
	same := slices.DeleteFunc(slices.Clone(r.plans), func(p *v1alpha1.InstallPlan) bool { return !r.isSame(p) })
	slices.SortFunc(same, func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(cmp.Compare(b.Spec.Generation, a.Spec.Generation),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	if i := slices.IndexFunc(same, func(p *v1alpha1.InstallPlan) bool { return !relation.Terminal(p) }); i >= 0 {
		return same[i]
	}
	if len(same) == 0 {
		return nil
	}
	latest := same[0]
	failed := latest.Status.Phase == v1alpha1.InstallPlanPhaseFailed
	needed := slices.ContainsFunc(r.subscriptions, func(s *v1alpha1.Subscription) bool { return relation.RefersTo(s, latest) })
	if failed && needed || !failed && r.installed(latest) {
		return latest
	}
	return nil
}

// isSame reports whether a plan has this content, and is not being deleted, superseded or shared with other sets.
func (r request) isSame(p *v1alpha1.InstallPlan) bool {
	if p.DeletionTimestamp != nil || p.Annotations[relation.ContentHash] != r.hash || relation.IsSuperseded(p) {
		return false
	}
	isSuperseded := !relation.Terminal(p) && len(relation.Later(p, r.plans, r.subscriptions)) > 0
	return !isSuperseded && r.holds(p) && !r.isShared(p)
}

// holds reports whether the steps of a plan, when it has any, are those that its annotation says: anybody who may write
// plans may write that.
func (r request) holds(p *v1alpha1.InstallPlan) bool {
	if len(p.Status.Plan) == 0 {
		return len(p.Status.BundleLookups) == 0
	}
	return !slices.Contains(p.Status.Plan, nil) && contentHash(p.Namespace, r.account, p.Status.Plan) == r.hash
}

// installed reports whether all versions of a plan exist.
func (r request) installed(p *v1alpha1.InstallPlan) bool {
	return !slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(name string) bool {
		return !slices.ContainsFunc(r.in.ClusterServiceVersions.Items, func(csv *v1alpha1.ClusterServiceVersion) bool {
			return csv.Name == name && csv.DeletionTimestamp == nil && !csv.IsCopied()
		})
	})
}

// notVisible says that a Subscription refers to a plan of this very content which is not in the snapshot, or that such
// a plan has just completed and what it installed is not. As a rule a cache is stale; what is gone for good is made
// again after a grace period.
func (r request) notVisible() (result olmcore.Result) {
	await := func(since time.Time, target olmcore.Object, format string, args ...any) {
		left := since.Add(input.VisibilityGrace).Sub(r.in.Now)
		if left > 0 && result.Empty() {
			result.Requeue(left)
			result.Diagnostics = append(result.Diagnostics, olmcore.Diagnose(olmcore.Info, ReasonPlanNotVisible, olmcore.RefOf(target), "", format, args...))
		}
	}
	for _, s := range r.subscriptions {
		ref := s.Status.InstallPlanRef
		if ref != nil && ref.Name == r.planName(s.Status.InstallPlanGeneration) &&
			!slices.ContainsFunc(r.plans, func(p *v1alpha1.InstallPlan) bool { return p.Name == ref.Name && p.UID == ref.UID }) {
			await(s.Status.LastUpdated.Time, s, "it refers to InstallPlan %s of this content, which is not visible", ref.Name)
		}
	}
	for _, p := range r.plans {
		done := p.Status.GetCondition(v1alpha1.InstallPlanInstalled).LastTransitionTime
		if p.Annotations[relation.ContentHash] == r.hash && p.Status.Phase == v1alpha1.InstallPlanPhaseComplete && p.DeletionTimestamp == nil && done != nil {
			await(done.Time, p, "it is complete and what it installed is not visible")
		}
	}
	return result
}

// awaitSets waits, if the option SeparatePlans is off, for recent plans of sets that together install every version of
// the resolution. A manager that still has the option would replace a shared plan by such plans. The wait ends after
// OrphanGrace.
func (r request) awaitSets() (result olmcore.Result) {
	if r.owners != nil {
		return result
	}
	missing := map[string]bool{}
	for _, o := range r.in.Resolution.Operators {
		missing[o.Name] = true
	}
	for _, p := range r.plans {
		left := p.CreationTimestamp.Add(relation.OrphanGrace).Sub(r.in.Now)
		isNew := olmcore.IsSeparatePlan(p) && !relation.Terminal(p) && p.DeletionTimestamp == nil && left > 0
		if !isNew || !slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(name string) bool { return missing[name] }) {
			continue
		}
		for _, name := range p.Spec.ClusterServiceVersionNames {
			delete(missing, name)
		}
		result.Requeue(left)
		result.Diagnostics = append(result.Diagnostics, olmcore.Diagnose(olmcore.Info, ReasonPlansOfSetsAwaited, olmcore.RefOf(p), "",
			"another manager created the InstallPlan for one set of Subscriptions; this manager waits for it up to 5 minutes"))
	}
	if len(missing) > 0 {
		return olmcore.Result{}
	}
	return result
}

// newPlan asks for a new plan, without status.
func (r request) newPlan() (result olmcore.Result) {
	plan := &v1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.in.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"},
			Annotations: map[string]string{relation.ContentHash: r.hash},
		},
		Spec:   v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: versionsOf(r.steps), Approval: v1alpha1.ApprovalAutomatic, Approved: true},
		Status: v1alpha1.InstallPlanStatus{CatalogSources: []string{}},
	}
	plan.Name, plan.Spec.Generation = r.nextName()
	if r.account != "" {
		plan.Annotations[relation.Account] = r.account
	}
	if manual := r.manual(); len(manual) > 0 {
		relation.AskForApproval(plan)
		if !slices.ContainsFunc(manual, r.changed) {
			result.Diagnostics = append(result.Diagnostics, r.in.diagnose(nil, olmcore.Warning, ReasonManualBecauseOf,
				"the plan needs approval because of Subscription %s", namesOf(manual)))
		}
	}
	result.Diagnostics = append(result.Diagnostics, r.relate(plan)...)
	result.Actions = append(result.Actions, olmcore.CreateOf(plan, olmcore.Cause{
		Reason: ReasonPlanNeeded, Message: "installs " + strings.Join(plan.Spec.ClusterServiceVersionNames, ", "),
	}))
	return result
}

func (r request) planName(generation int) string {
	return "install-" + olmcore.NameSuffix(10, r.hash, strconv.Itoa(generation))
}

// nextName returns the first free name of a generation above all that exist or existed.
func (r request) nextName() (name string, generation int) {
	for _, p := range r.plans {
		generation = max(generation, relation.Generation(p))
	}
	for _, s := range r.subscriptions {
		if g := s.Status.InstallPlanGeneration; g < relation.MaxGeneration {
			generation = max(generation, g)
		}
	}
	for taken := true; taken; {
		generation++
		name = r.planName(generation)
		taken = slices.ContainsFunc(r.plans, func(p *v1alpha1.InstallPlan) bool { return p.Name == name })
	}
	return name, generation
}

// tooLarge says which steps make the plan exceed the bounds of one object; empty when it fits.
func (r request) tooLarge(maxBytes int) string {
	if len(r.steps) > step.MaxSteps {
		return fmt.Sprintf("the plan would have %d steps, more than %d", len(r.steps), step.MaxSteps)
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
	for _, s := range r.steps {
		add(s.Resource.Kind+" "+s.Resource.Name, s)
	}
	for i := range r.lookups {
		add("bundle "+r.lookups[i].Identifier, &r.lookups[i])
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
