// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// CreateInput is everything that Create looks at: one snapshot of a namespace
// and the resolution made from it. GatherCreate fills all but Now.
type CreateInput struct {
	// Now and Namespace are required.
	Now       time.Time
	Namespace string
	// Resolution says what to install; see olmcore.
	Resolution olmcore.Resolution
	// Subscriptions and InstallPlans of the namespace, all of them. nil entries are
	// ignored.
	Subscriptions []*v1alpha1.Subscription
	InstallPlans  []*v1alpha1.InstallPlan
	// OperatorGroups of the namespace, all of them: the plan runs under the
	// ServiceAccount that they prescribe now, or not at all.
	OperatorGroups []*operatorsv1.OperatorGroup
	// ClusterServiceVersions of the namespace that the resolution names.
	ClusterServiceVersions []*v1alpha1.ClusterServiceVersion
	// ConfigMaps are those that the bundle images of the resolution were unpacked
	// into.
	ConfigMaps []*corev1.ConfigMap
	Config     Config
}

// CreateOutcome is what Create asks for, and the plan that the resolution's
// Subscriptions must refer to.
type CreateOutcome struct {
	olmcore.Result
	// Plan is zero until the plan is observed.
	Plan olmcore.Ref
	// Subscriptions are the names of those that must refer to Plan, sorted: the ones
	// that the resolution changes, for which Create waits before the plan gets its
	// steps, and the ones that refer to a plan which never got any and whose version
	// this one installs.
	Subscriptions []string
	// Generation is the plan's spec.generation, for status.installPlanGeneration.
	Generation int
	// Lookups are the bundle images that must be unpacked first, sorted by operator;
	// see Unpack. As long as there is one, no plan is made.
	Lookups []v1alpha1.BundleLookup
}

// Create makes the InstallPlan of a resolution, or meets the one that is there:
// a plan is found again by the hash of its content, so that repeated calls, other
// controllers and a crash between two writes all end with one plan that all of
// them own. In the first round the plan is created without status, which nobody
// runs. Once it is observed, and every Subscription that the resolution changes
// is observed to refer to it, its status is written. The zero outcome means that
// there is nothing to install. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureInstallPlan and createInstallPlan.
// Differs: OLM takes any plan of the same generation, without looking at its
// content or owners, and writes the Subscriptions' references last.
func Create(in CreateInput) (CreateOutcome, error) {
	if err := in.validate(); err != nil {
		return CreateOutcome{}, err
	}
	in.Subscriptions, in.InstallPlans = sortedByName(in.Subscriptions), sortedByName(in.InstallPlans)
	c := creation{in: &in}
	if in.Resolution.Failure == nil && len(in.Resolution.Operators)+len(in.Resolution.Generated) > 0 {
		c.run()
	}
	return c.out, nil
}

// sortedByName returns objects in order, without nil entries; the list itself
// when it is so already.
func sortedByName[T interface {
	comparable
	olmcore.Object
}](objects []T) []T {
	var absent T
	order := func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetName(), b.GetName()), strings.Compare(string(a.GetUID()), string(b.GetUID())))
	}
	if !slices.Contains(objects, absent) && slices.IsSortedFunc(objects, order) {
		return objects
	}
	out := slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return o == absent })
	slices.SortStableFunc(out, order)
	return out
}

func (in *CreateInput) validate() error {
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.Namespace == "":
		return &olmcore.InputError{Field: "Namespace", Problem: "is empty"}
	}
	for i, s := range in.Subscriptions {
		if s.Namespace != in.Namespace {
			return foreign("Subscriptions", i, s.Namespace, in.Namespace)
		}
	}
	for i, p := range in.InstallPlans {
		if p.Namespace != in.Namespace {
			return foreign("InstallPlans", i, p.Namespace, in.Namespace)
		}
	}
	for i, g := range in.OperatorGroups {
		if g != nil && g.Namespace != in.Namespace {
			return foreign("OperatorGroups", i, g.Namespace, in.Namespace)
		}
	}
	for i, o := range in.Resolution.Operators {
		if o.Name == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("Resolution.Operators[%d].Name", i), Problem: "is empty"}
		}
	}
	for i, s := range in.Resolution.Generated {
		if s == nil || s.Name == "" || s.Spec == nil {
			return &olmcore.InputError{Field: fmt.Sprintf("Resolution.Generated[%d]", i), Problem: "has no name or no spec"}
		}
	}
	return in.Config.validate()
}

// creation is one call of Create.
type creation struct {
	in    *CreateInput
	out   CreateOutcome
	steps []*v1alpha1.Step
	// lookups are the images that steps refer to what was unpacked from.
	lookups []v1alpha1.BundleLookup
	hash    string
	// account is the one that the plan is made under; empty for none.
	account string
}

func (c *creation) run() {
	steps, ok := c.plannedSteps()
	wanted := c.wanted()
	if !wanted {
		c.out.Lookups = nil // nothing is unpacked for nothing
	}
	if !ok || len(steps) == 0 {
		return
	}
	c.steps = steps
	c.account = prescribedAccount(c.in.OperatorGroups)
	c.hash = accountHash(contentHash(c.in.Namespace, steps), c.account)
	plan := c.meet()
	if c.stale(plan) {
		c.warn(ReasonStaleResolution, "the resolution was made for other Subscriptions than those of namespace %s now", c.in.Namespace)
		return
	}
	switch {
	case plan == nil:
		if wanted && !c.unseen() {
			c.make()
		}
	case terminal(plan.Status.Phase):
		c.refer(plan)
		if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
			c.warn(ReasonPreviousPlanFailed, "InstallPlan %s has this content and failed: %s", plan.Name, plan.Status.Message)
		}
	default:
		c.refer(plan)
		c.join(plan)
	}
}

func (c *creation) warn(reason, format string, args ...any) {
	c.out.Diagnostics = append(c.out.Diagnostics, olmcore.Diagnostic{
		Severity: olmcore.Warning, Reason: reason, Message: fmt.Sprintf(format, args...),
		Target: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: c.in.Namespace},
	})
}

func (c *creation) refer(plan *v1alpha1.InstallPlan) {
	c.out.Plan, c.out.Generation = olmcore.RefOf(plan).Unversioned(), plan.Spec.Generation
	for _, s := range c.in.Subscriptions {
		if c.changed(s.Name) || c.stranded(s, plan.Spec.ClusterServiceVersionNames, plan.UID) {
			c.out.Subscriptions = append(c.out.Subscriptions, s.Name)
		}
	}
}

// wanted reports whether a Subscription will refer to a plan of this resolution: one
// that it changes, or one whose plan never got any steps. A version that is only missing
// makes no plan, because its Subscription does not ask for it again: such a plan would
// never get its steps.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace, which plans nothing when no Subscription was updated.
func (c *creation) wanted() bool {
	var names []string
	for _, o := range c.in.Resolution.Operators {
		names = append(names, o.Name)
	}
	return slices.ContainsFunc(c.in.Subscriptions, func(s *v1alpha1.Subscription) bool {
		return s.DeletionTimestamp == nil && (c.changed(s.Name) || c.stranded(s, names, ""))
	})
}

// stranded reports that a Subscription refers to a plan, other than the one with the
// given UID, that has no steps and will get none, as the resolution is another by now.
func (c *creation) stranded(s *v1alpha1.Subscription, names []string, plan types.UID) bool {
	return slices.Contains(names, s.Status.CurrentCSV) &&
		slices.ContainsFunc(c.in.InstallPlans, func(p *v1alpha1.InstallPlan) bool {
			return p.UID != plan && refersTo(s, p) && p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0
		})
}

// plannedSteps returns the steps of the whole resolution; ok is false when one
// of its operators cannot be installed yet.
func (c *creation) plannedSteps() (steps []*v1alpha1.Step, ok bool) {
	ok = true
	operators := slices.Clone(c.in.Resolution.Operators)
	slices.SortStableFunc(operators, func(a, b olmcore.Operator) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range operators {
		o, manifest := c.unpacked(o)
		own, diagnostics, err := bundleSteps(o, c.in.Namespace, manifest)
		if err != nil || len(diagnostics) > 0 {
			for i := range diagnostics {
				diagnostics[i].Target = olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: c.in.Namespace}
			}
			c.out.Diagnostics = append(c.out.Diagnostics, diagnostics...)
			ok = false
			continue
		}
		steps = append(steps, own...)
	}
	generated := slices.Clone(c.in.Resolution.Generated)
	slices.SortStableFunc(generated, func(a, b *v1alpha1.Subscription) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range generated {
		step, err := subscriptionStep(s, c.in.Namespace)
		if err != nil {
			c.warn(ReasonBundleInvalid, "Subscription %s: %s", s.Name, err)
			ok = false
			continue
		}
		steps = append(steps, step)
	}
	orderSteps(steps)
	return steps, ok
}

func subscriptionStep(s *v1alpha1.Subscription, namespace string) (*v1alpha1.Step, error) {
	s = s.DeepCopy()
	s.Namespace = namespace
	s.Status = v1alpha1.SubscriptionStatus{}
	values, err := olmcore.ToMap(s)
	if err != nil {
		return nil, err
	}
	delete(values, "status")
	text, err := encode(values)
	if err != nil {
		return nil, err
	}
	step, err := newStep(s.Spec.StartingCSV, s, text)
	if err != nil {
		return nil, err
	}
	step.Resource.CatalogSource, step.Resource.CatalogSourceNamespace = s.Spec.CatalogSource, s.Spec.CatalogSourceNamespace
	return step, nil
}

// stale reports whether the resolution was made for other Subscriptions than
// those of the snapshot. What the resolution itself changed in one that refers to
// plan by now does not count.
func (c *creation) stale(plan *v1alpha1.InstallPlan) bool {
	observed := make(map[string]olmcore.SubscriptionFingerprint, len(c.in.Resolution.Observed))
	for _, f := range c.in.Resolution.Observed {
		observed[f.Name] = f
	}
	count := 0
	for _, s := range c.in.Subscriptions {
		count++
		want := observed[s.Name]
		have := olmcore.FingerprintOf(s)
		if plan != nil && refersTo(s, plan) && have.CurrentCSV == c.decided(s.Name) {
			have.CurrentCSV = want.CurrentCSV
		}
		if have != want {
			return true
		}
	}
	return count != len(observed)
}

func (c *creation) decided(subscription string) string {
	for _, d := range c.in.Resolution.Decisions {
		if d.Name == subscription {
			return d.CurrentCSV
		}
	}
	return ""
}

// meet returns the plan of this content that is to be used, nil when there must
// be a new one.
func (c *creation) meet() *v1alpha1.InstallPlan {
	var same []*v1alpha1.InstallPlan
	for _, p := range c.in.InstallPlans {
		superseded := !terminal(p.Status.Phase) && p.Spec.Generation > 0 && successor(p, c.in.Subscriptions, c.in.Config) != ""
		if p.DeletionTimestamp == nil && p.Annotations[c.in.Config.contentHashKey()] == c.hash && !superseded && c.holdsContent(p) {
			same = append(same, p)
		}
	}
	slices.SortFunc(same, func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(cmp.Compare(b.Spec.Generation, a.Spec.Generation),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, p := range same {
		if !terminal(p.Status.Phase) {
			return p
		}
	}
	if len(same) == 0 {
		return nil
	}
	newest := same[0]
	if newest.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		if slices.ContainsFunc(c.in.Subscriptions, func(s *v1alpha1.Subscription) bool { return refersTo(s, newest) }) {
			return newest
		}
		return nil
	}
	if c.allInstalled(newest) {
		return newest
	}
	return nil
}

// holdsContent reports whether the steps of a plan, when it has any, are those
// that its annotation says: anybody who may write plans may write that.
func (c *creation) holdsContent(p *v1alpha1.InstallPlan) bool {
	if len(p.Status.Plan) == 0 {
		return len(p.Status.BundleLookups) == 0
	}
	return !slices.Contains(p.Status.Plan, nil) && accountHash(contentHash(c.in.Namespace, p.Status.Plan), c.account) == c.hash
}

// unseen reports that a Subscription refers to a plan of this very content which
// is not in the snapshot, or that such a plan has just completed and what it
// installed is not. As a rule a list is behind; what is gone for good is made
// again after a grace.
func (c *creation) unseen() bool {
	for _, s := range c.in.Subscriptions {
		ref := s.Status.InstallPlanRef
		if ref == nil || ref.Name != planName(c.hash, s.Status.InstallPlanGeneration) ||
			slices.ContainsFunc(c.in.InstallPlans, func(p *v1alpha1.InstallPlan) bool { return p.Name == ref.Name && p.UID == ref.UID }) {
			continue
		}
		if c.hold(s.Status.LastUpdated.Time, olmcore.RefOf(s), "it refers to InstallPlan "+ref.Name+" of this content, which is not visible") {
			return true
		}
	}
	for _, p := range c.in.InstallPlans {
		if p.Annotations[c.in.Config.contentHashKey()] != c.hash || p.Status.Phase != v1alpha1.InstallPlanPhaseComplete || p.DeletionTimestamp != nil {
			continue
		}
		done := p.Status.GetCondition(v1alpha1.InstallPlanInstalled).LastTransitionTime
		if done != nil && c.hold(done.Time, olmcore.RefOf(p), "it is complete and what it installed is not visible") {
			return true
		}
	}
	return false
}

// hold waits for what is not visible since then, for the length of the grace.
func (c *creation) hold(since time.Time, target olmcore.Ref, message string) bool {
	left := since.Add(or(c.in.Config.VisibilityGrace, DefaultVisibilityGrace)).Sub(c.in.Now)
	if left <= 0 {
		return false
	}
	c.out.Requeue(left)
	c.out.Diagnostics = append(c.out.Diagnostics, olmcore.Diagnostic{
		Severity: olmcore.Info, Reason: ReasonPlanNotVisible, Target: target.Unversioned(), Message: message,
	})
	return true
}

func planName(hash string, generation int) string {
	return "install-" + olmcore.NameSuffix(10, hash, strconv.Itoa(generation))
}

func (c *creation) allInstalled(plan *v1alpha1.InstallPlan) bool {
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		if !slices.ContainsFunc(c.in.ClusterServiceVersions, func(csv *v1alpha1.ClusterServiceVersion) bool {
			return csv != nil && csv.Name == name && csv.Namespace == plan.Namespace && csv.DeletionTimestamp == nil && !copied(csv)
		}) {
			return false
		}
	}
	return true
}

// make asks for a new plan, without status.
func (c *creation) make() {
	if problem := c.tooLarge(); problem != "" {
		c.warn(ReasonPlanTooLarge, "%s", problem)
		return
	}
	generation := 0
	taken := map[string]bool{}
	for _, p := range c.in.InstallPlans {
		generation = max(generation, p.Spec.Generation)
		taken[p.Name] = true
	}
	for _, s := range c.in.Subscriptions {
		if s != nil {
			generation = max(generation, s.Status.InstallPlanGeneration)
		}
	}
	plan := &v1alpha1.InstallPlan{TypeMeta: typeMeta(v1alpha1.InstallPlanAPIVersion, v1alpha1.InstallPlanKind)}
	plan.Namespace = c.in.Namespace
	for generation++; ; generation++ {
		plan.Name = planName(c.hash, generation)
		if !taken[plan.Name] {
			break
		}
	}
	plan.Annotations = map[string]string{c.in.Config.contentHashKey(): c.hash}
	if c.account != "" {
		plan.Annotations[c.in.Config.accountKey()] = c.account
	}
	plan.Labels = map[string]string{olmcore.LabelManaged: "true"}
	plan.Spec = v1alpha1.InstallPlanSpec{
		ClusterServiceVersionNames: csvNames(c.steps), Approval: v1alpha1.ApprovalAutomatic, Generation: generation,
	}
	if c.manual() {
		plan.Spec.Approval = v1alpha1.ApprovalManual
		c.explainManual()
	}
	plan.Spec.Approved = plan.Spec.Approval == v1alpha1.ApprovalAutomatic
	plan.Status.CatalogSources = []string{}
	c.own(plan)
	c.out.Actions = append(c.out.Actions, olmcore.CreateOf(plan, olmcore.Cause{
		Reason: ReasonPlanNeeded, Message: "installs " + strings.Join(plan.Spec.ClusterServiceVersionNames, ", "),
	}))
}
