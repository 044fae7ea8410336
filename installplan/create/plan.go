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
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// Plan returns the writes that create the InstallPlan of a resolution. If a plan with the same content exists, the
// writes make it the plan of the resolution. Plan finds an existing plan by the hash of its content. So repeated calls,
// other controllers and a crash between two writes all lead to one plan that all of its Subscriptions own.
//
// First, the plan is created without status, so no controller installs it. The status is written once two conditions
// hold: the plan is observed, and every Subscription that the resolution changes references the plan. The zero Outcome
// means that there is nothing to install. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureInstallPlan and createInstallPlan.
// Differs: OLM reuses any plan of the same generation. Plan reuses only a plan with the same content. OLM writes the
// references of the Subscriptions after the status of the plan. Plan writes them before the status.
func Plan(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	return decide(in), nil
}

func decide(in Input) Outcome {
	if in.Resolution.Failure != nil || len(in.Resolution.Operators)+len(in.Resolution.Generated) == 0 {
		return Outcome{}
	}
	f := observe(&in)
	if len(f.problems) > 0 || len(f.steps) == 0 {
		return waitForContent(f)
	}
	plan := f.existing()
	switch {
	case f.stale(plan):
		return Outcome{Result: diagnosed(in.diagnose(nil, olmcore.Warning, ReasonStaleResolution,
			"the Subscriptions of namespace %s changed after the resolution was computed", in.Namespace))}
	case plan != nil:
		return reusePlan(f, plan)
	case f.wanted():
		return createPlan(f)
	}
	return Outcome{}
}

// diagnosed returns a Result with Diagnostics.
func diagnosed(diagnostics ...olmcore.Diagnostic) olmcore.Result {
	return olmcore.Result{Diagnostics: diagnostics}
}

// waitForContent returns an Outcome that reports the problems of the content, and the images to unpack.
func waitForContent(f *facts) Outcome {
	out := Outcome{Refused: f.refused, Result: diagnosed(f.problems...)}
	if f.wanted() {
		out.Lookups = f.pending
	}
	return out
}

// createPlan returns an Outcome that creates the plan, unless it is too large or has to wait.
func createPlan(f *facts) Outcome {
	if problem := f.tooLarge(cmp.Or(f.in.Config.MaxStatusBytes, installplan.DefaultMaxStatusBytes)); problem != "" {
		return Outcome{
			Refused: olmcore.Cause{Reason: ReasonPlanTooLarge, Message: problem},
			Result:  diagnosed(f.in.diagnose(nil, olmcore.Error, ReasonPlanTooLarge, "%s", problem)),
		}
	}
	if waits := waitForSets(f); !waits.Empty() {
		return Outcome{Result: waits}
	}
	if waits := waitForCache(f); !waits.Empty() {
		return Outcome{Result: waits}
	}
	return Outcome{Result: newPlan(f)}
}

// reusePlan returns an Outcome with a plan that exists. A plan that is not finished becomes the plan of this
// resolution, too.
func reusePlan(f *facts, plan *v1alpha1.InstallPlan) Outcome {
	out := Outcome{Plan: olmcore.RefOf(plan).Unversioned(), Generation: plan.Spec.Generation}
	for _, s := range f.subscriptions {
		if f.changed(s) || f.stranded(s, plan.Spec.ClusterServiceVersionNames, plan.UID) {
			out.Subscriptions = append(out.Subscriptions, s.Name)
		}
	}
	switch plan.Status.Phase {
	case v1alpha1.InstallPlanPhaseComplete:
	case v1alpha1.InstallPlanPhaseFailed:
		out.Result = diagnosed(f.in.diagnose(out.Subscriptions, olmcore.Warning, ReasonPreviousPlanFailed,
			"InstallPlan %s has this content and failed: %s", plan.Name, plan.Status.Message))
	default:
		out.Result = join(f.limitedToOwnersOf(plan), plan)
	}
	return out
}

// join makes an existing plan the plan of this resolution, too. It first writes the owners of the plan. Its steps are
// written once the Subscriptions reference it.
func join(f *facts, plan *v1alpha1.InstallPlan) olmcore.Result {
	after := plan.DeepCopy()
	impossible := diagnosed(f.relate(after)...)
	cause := relation.Repaired("another resolution of the namespace needs the same plan")
	if len(f.manual()) > 0 && plan.Spec.Approval != v1alpha1.ApprovalManual && relation.Untouched(plan) {
		cause = relation.AskForApproval(after)
	}
	if sameRelations(plan, after) {
		return impossible.And(start(f, plan))
	}
	if after.Spec.ClusterServiceVersionNames == nil {
		after.Spec.ClusterServiceVersionNames = []string{} // the API requires the list
	}
	return impossible.And(olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(plan, after, cause)}})
}

// start returns the write of the steps, or why the plan waits for them.
func start(f *facts, plan *v1alpha1.InstallPlan) olmcore.Result {
	earlier := relation.Earlier(plan, f.plans, f.subscriptions)
	unstarted := slices.IndexFunc(earlier, f.isReplaceable)
	awaited, referred := f.awaited(plan)
	switch {
	case len(plan.Status.Plan)+len(plan.Status.BundleLookups) > 0:
		return olmcore.Result{}
	case len(awaited) == 0 && !referred:
		return waitFor(plan, 0, ReasonReferencesAwaited, "no Subscription references the plan yet")
	case unstarted >= 0:
		return supersede(earlier[unstarted], plan, f.in.Now)
	case len(earlier) > 0:
		return waitFor(plan, 0, installplan.ReasonEarlierPlanUnfinished, "%s", relation.Unfinished(earlier))
	case len(awaited) > 0:
		return waitFor(plan, 0, ReasonReferencesAwaited, "Subscription %s does not reference the plan yet", namesOf(awaited))
	}
	return writeSteps(f, plan)
}

// waitFor returns a Result that reports for what an object waits. left is the time until the wait ends, or 0 if a
// change of an object ends it.
func waitFor(target olmcore.Object, left time.Duration, reason, format string, args ...any) olmcore.Result {
	result := diagnosed(olmcore.Diagnose(olmcore.Info, reason, olmcore.RefOf(target), "", format, args...))
	result.Requeue(left)
	return result
}

// writeSteps writes the steps of a plan. Its installation starts then, or waits for approval.
func writeSteps(f *facts, plan *v1alpha1.InstallPlan) olmcore.Result {
	after := plan.DeepCopy()
	status := &after.Status
	status.Phase = v1alpha1.InstallPlanPhaseInstalling
	if plan.Spec.Approval == v1alpha1.ApprovalManual {
		status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
	}
	status.Plan, status.BundleLookups = f.steps, f.lookups
	status.CatalogSources = catalogsOf(f.steps)
	cause := olmcore.Cause{Reason: ReasonPlanReady, Message: "every Subscription that the plan changes references it"}
	t := olmcore.Moved(olmcore.RefOf(plan), "Phase", string(plan.Status.Phase), string(status.Phase), f.in.Now)
	return olmcore.Result{
		Actions:     []olmcore.Action{olmcore.UpdateStatusOf(plan, after, cause)},
		Transitions: []olmcore.Transition{t},
	}
}

// isReplaceable reports whether a plan of this resolution may replace an earlier plan, because no step of that plan is
// applied. A plan that a user approved for several sets of Subscriptions is not replaced, because the approval is for
// all of them.
func (f *facts) isReplaceable(earlier *v1alpha1.InstallPlan) bool {
	isApproved := earlier.Spec.Approval == v1alpha1.ApprovalManual && earlier.Spec.Approved
	return relation.Untouched(earlier) && !(f.owners != nil && isApproved && !olmcore.IsSeparatePlan(earlier))
}

// supersede ends an earlier plan of which no step is applied. The caller has checked that the later plan can get its
// steps. The API server rejects the write if the earlier plan has started meanwhile.
func supersede(earlier, later *v1alpha1.InstallPlan, now time.Time) olmcore.Result {
	after := earlier.DeepCopy()
	relation.Supersede(&after.Status, relation.SupersededBy(later.Name), now)
	cause := olmcore.Cause{Reason: installplan.ReasonSuperseded, Message: after.Status.Message}
	t := olmcore.Moved(olmcore.RefOf(earlier), "Phase", string(earlier.Status.Phase), string(after.Status.Phase), now)
	t.Reason, t.Message = installplan.ReasonSuperseded, after.Status.Message
	return olmcore.Result{
		Actions:     []olmcore.Action{olmcore.UpdateStatusOf(earlier, after, cause)},
		Transitions: []olmcore.Transition{t},
	}
}

// sameRelations reports whether two versions of a plan have the same owners, labels, annotations and approval.
func sameRelations(a, b *v1alpha1.InstallPlan) bool {
	return a.Spec.Approval == b.Spec.Approval && a.Spec.Approved == b.Spec.Approved &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, olmcore.SameOwnerReference) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// existing returns the plan with this content that is used again, or nil if a new plan is needed. It prefers the latest
// unfinished plan. A Failed plan is used only while a Subscription references it, and a Complete plan only while all of
// its versions exist. A plan that other sets share is never used.
func (f *facts) existing() *v1alpha1.InstallPlan {
	same := slices.DeleteFunc(slices.Clone(f.plans), func(p *v1alpha1.InstallPlan) bool { return !f.isSame(p) })
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
	needed := slices.ContainsFunc(f.subscriptions, func(s *v1alpha1.Subscription) bool { return relation.RefersTo(s, latest) })
	if failed && needed || !failed && f.installed(latest) {
		return latest
	}
	return nil
}

// isSame reports whether a plan has this content, and is not being deleted, superseded or shared with other sets.
func (f *facts) isSame(p *v1alpha1.InstallPlan) bool {
	if p.DeletionTimestamp != nil || p.Annotations[relation.ContentHash] != f.hash || relation.IsSuperseded(p) {
		return false
	}
	isSuperseded := !relation.Terminal(p) && len(relation.Later(p, f.plans, f.subscriptions)) > 0
	return !isSuperseded && f.holds(p) && !f.isShared(p)
}

// holds reports whether the steps of a plan, if it has any, are those of this content. The hash in the annotation of
// the plan does not prove it, because every user who may write plans can change the annotation.
func (f *facts) holds(p *v1alpha1.InstallPlan) bool {
	if len(p.Status.Plan) == 0 {
		return len(p.Status.BundleLookups) == 0
	}
	return !slices.Contains(p.Status.Plan, nil) && contentHash(p.Namespace, f.account, p.Status.Plan) == f.hash
}

// installed reports whether all versions of a plan exist.
func (f *facts) installed(p *v1alpha1.InstallPlan) bool {
	return !slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(name string) bool {
		return !slices.ContainsFunc(f.in.ClusterServiceVersions.Items, func(csv *v1alpha1.ClusterServiceVersion) bool {
			return csv.Name == name && csv.DeletionTimestamp == nil && !csv.IsCopied()
		})
	})
}

// waitForCache returns why the plan should not be created yet: a plan with this content exists or existed a short time
// ago, but the observed lists do not contain it or its versions. Usually a cache is stale. If the plan or its versions
// were deleted, the plan is created again after VisibilityGrace.
func waitForCache(f *facts) olmcore.Result {
	for _, s := range f.subscriptions {
		left := s.Status.LastUpdated.Add(plans.VisibilityGrace).Sub(f.in.Now)
		if left > 0 && f.refersToUnseen(s) {
			const message = "it references InstallPlan %s with this content, which was not observed"
			return waitFor(s, left, ReasonPlanNotVisible, message, s.Status.InstallPlanRef.Name)
		}
	}
	for _, p := range f.plans {
		done := p.Status.GetCondition(v1alpha1.InstallPlanInstalled).LastTransitionTime
		isComplete := p.Status.Phase == v1alpha1.InstallPlanPhaseComplete && p.DeletionTimestamp == nil && done != nil
		if !isComplete || p.Annotations[relation.ContentHash] != f.hash {
			continue
		}
		if left := done.Add(plans.VisibilityGrace).Sub(f.in.Now); left > 0 {
			return waitFor(p, left, ReasonPlanNotVisible, "it is Complete, but its versions were not observed")
		}
	}
	return olmcore.Result{}
}

// refersToUnseen reports whether a Subscription references a plan with this content that was not observed.
func (f *facts) refersToUnseen(s *v1alpha1.Subscription) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == f.planName(s.Status.InstallPlanGeneration) &&
		!slices.ContainsFunc(f.plans, func(p *v1alpha1.InstallPlan) bool { return p.Name == ref.Name && p.UID == ref.UID })
}

// waitForSets waits, if the option SeparatePlans is off, for recent plans of sets that together install every version
// of the resolution. A manager that still has the option would replace a shared plan by such plans. The wait ends after
// OrphanGrace.
func waitForSets(f *facts) (waits olmcore.Result) {
	if f.owners != nil {
		return olmcore.Result{}
	}
	missing := map[string]bool{}
	for _, o := range f.in.Resolution.Operators {
		missing[o.Name] = true
	}
	for _, p := range f.plans {
		left := p.CreationTimestamp.Add(relation.OrphanGrace).Sub(f.in.Now)
		isNew := olmcore.IsSeparatePlan(p) && !relation.Terminal(p) && p.DeletionTimestamp == nil && left > 0
		if !isNew || !slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(name string) bool { return missing[name] }) {
			continue
		}
		for _, name := range p.Spec.ClusterServiceVersionNames {
			delete(missing, name)
		}
		waits = waits.And(waitFor(p, left, ReasonPlansOfSetsAwaited,
			"another manager created the InstallPlan for one set of Subscriptions; this manager waits for it up to 5 minutes"))
	}
	if len(missing) > 0 {
		return olmcore.Result{}
	}
	return waits
}

// newPlan creates the plan, without status.
func newPlan(f *facts) olmcore.Result {
	plan := &v1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.in.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"},
			Annotations: map[string]string{relation.ContentHash: f.hash},
		},
		Spec:   v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: versionsOf(f.steps), Approval: v1alpha1.ApprovalAutomatic, Approved: true},
		Status: v1alpha1.InstallPlanStatus{CatalogSources: []string{}},
	}
	plan.Name, plan.Spec.Generation = f.nextName()
	if f.account != "" {
		plan.Annotations[relation.Account] = f.account
	}
	manual := f.manual()
	if len(manual) > 0 {
		relation.AskForApproval(plan)
	}
	found := f.relate(plan)
	if len(manual) > 0 && !slices.ContainsFunc(manual, f.changed) {
		found = slices.Insert(found, 0, f.in.diagnose(nil, olmcore.Warning, ReasonManualBecauseOf,
			"the plan needs approval because of Subscription %s", namesOf(manual)))
	}
	cause := olmcore.Cause{Reason: ReasonPlanNeeded, Message: "installs " + strings.Join(plan.Spec.ClusterServiceVersionNames, ", ")}
	return diagnosed(found...).And(olmcore.Result{Actions: []olmcore.Action{olmcore.CreateOf(plan, cause)}})
}

// planName returns the name of a plan with this content and a generation.
func (f *facts) planName(generation int) string {
	return "install-" + olmcore.NameSuffix(10, f.hash, strconv.Itoa(generation))
}

// nextName returns a free name for the next plan, and its generation. The generation is higher than those of all plans
// that exist or existed.
func (f *facts) nextName() (name string, generation int) {
	for _, p := range f.plans {
		generation = max(generation, relation.Generation(p))
	}
	for _, s := range f.subscriptions {
		if g := s.Status.InstallPlanGeneration; g < relation.MaxGeneration {
			generation = max(generation, g)
		}
	}
	for taken := true; taken; {
		generation++
		name = f.planName(generation)
		taken = slices.ContainsFunc(f.plans, func(p *v1alpha1.InstallPlan) bool { return p.Name == name })
	}
	return name, generation
}

// tooLarge returns which steps make the plan too large for one object, or an empty string if it fits.
func (f *facts) tooLarge(maxBytes int) string {
	if len(f.steps) > step.MaxSteps {
		return fmt.Sprintf("the plan would have %d steps, more than %d", len(f.steps), step.MaxSteps)
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
	for _, s := range f.steps {
		add(s.Resource.Kind+" "+s.Resource.Name, s)
	}
	for i := range f.lookups {
		add("bundle "+f.lookups[i].Identifier, &f.lookups[i])
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
