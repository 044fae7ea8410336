// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// past is a namespace with the whole history of its InstallPlans, and the two workers that reconcile it.
type past struct {
	t       *rapid.T
	c       *fake.Cluster
	workers [2]*reporter
	heads   map[string]int
	// reinstalls means that a deleted version is installed again.
	reinstalls bool
	// happened contains the stages of each plan. followed contains the plans that each Subscription referenced, "" for
	// none.
	happened map[types.UID][]string
	followed map[types.UID][]types.UID
}

// reporter is a worker with its own cache and memory, and its reports about each Subscription since the memory began,
// by plan.
type reporter struct {
	cache    *fake.View
	synch    time.Time // when the cache was last brought to the present
	olm      olm.OLM
	all      map[string]controller.Controller
	reported map[types.UID][]*account
	stale    bool // it lost its memory, and not yet the cache that it had then
}

// account contains the reports about one plan of a Subscription.
type account struct {
	plan     types.UID // "" until the reporter saw it
	stages   []string
	seen     []string    // the stages in which the reporter saw the plan and did not doubt it
	failures []time.Time // that the plan was seen to carry: each proves a try
	// late means that the status already showed a stage of the plan when the reporter started.
	late bool
	// odd means that the status was newer than the cache, so that the stale plan looked edited.
	odd bool
}

func newPast(t *rapid.T) *past {
	p := &past{
		t: t, c: fake.NewCluster(epoch), heads: map[string]int{"alpha": 1, "beta": 1},
		happened: map[types.UID][]string{}, followed: map[types.UID][]types.UID{},
	}
	p.c.AutoCreateNamespaces = true
	require.NoError(t, p.c.Load(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}}))
	p.reinstalls = rapid.Bool().Draw(t, "reinstalls")
	for i := range p.workers {
		w := &reporter{cache: p.c.View(fmt.Sprint(i)), synch: p.c.Now()}
		w.all, w.reported = map[string]controller.Controller{}, map[types.UID][]*account{}
		w.olm.Resolve, w.olm.Fingerprint, w.olm.Sweeps = p.resolve, p.fingerprint, true
		w.olm.Subscription.ReinstallMissingCSV = p.reinstalls
		w.olm.InstallPlan.DisableFinalizer = true
		for _, controller := range w.olm.Controllers() {
			w.all[controller.Name] = controller
		}
		p.workers[i] = w
	}
	return p
}

// resolve resolves every Subscription to the newest version of its package.
func (p *past) resolve(ctx context.Context, reader olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	r := olmcore.Resolution{Observed: request.Subscriptions}
	for _, f := range request.Subscriptions {
		target := fmt.Sprintf("%s.v%d", f.Name, p.heads[f.Name])
		d := olmcore.SubscriptionDecision{Name: f.Name, CurrentCSV: f.CurrentCSV}
		there, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, reader, ns, target)
		if err != nil {
			return r, err
		}
		if there != nil && f.CurrentCSV == "" && f.InstalledCSV == target { // it is taken over as it is
			d.CurrentCSV, d.Changed = target, true
		} else if there == nil || f.InstalledCSV != target {
			d.CurrentCSV, d.Changed = target, f.CurrentCSV != target
			csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: target}}
			csv.Spec.InstallStrategy.StrategyName = "deployment"
			r.Operators = append(r.Operators, olmcore.Operator{
				Name: target, Package: f.Name, Channel: "stable", Version: fmt.Sprintf("%d.0.0", p.heads[f.Name]), Replaces: f.InstalledCSV, For: []string{f.Name},
				Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"}, Bundle: olmcore.Bundle{Objects: []olmcore.Object{csv}},
			})
		}
		r.Decisions = append(r.Decisions, d)
	}
	return r, nil
}

// fingerprint returns the existing versions as text. A deleted version changes the resolution of a namespace, but no
// Subscription.
func (p *past) fingerprint(ctx context.Context, reader olmcore.Reader, _ string) (string, error) {
	csvs, err := olmcore.List[*v1alpha1.ClusterServiceVersion](ctx, reader, ns, nil)
	var names []string
	for _, c := range csvs {
		names = append(names, c.Name)
	}
	return strings.Join(names, " "), err
}

func stageName(plan *v1alpha1.InstallPlan) string {
	return cmp.Or(string(plan.Status.Phase), string(subscription.StageNotYetReconciled))
}

func isSuperseded(plan *v1alpha1.InstallPlan) bool {
	return plan.Status.GetCondition(v1alpha1.InstallPlanInstalled).Reason == "Superseded"
}

func (p *past) subscriptions() []*v1alpha1.Subscription {
	list, err := olmcore.List[*v1alpha1.Subscription](context.Background(), p.c, ns, nil)
	require.NoError(p.t, err)
	return list
}

func (p *past) plans() []*v1alpha1.InstallPlan {
	list, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), p.c, ns, nil)
	require.NoError(p.t, err)
	return list
}

// record records how the last step changed the plans and references.
func (p *past) record() {
	there := map[types.UID]bool{}
	for _, plan := range p.plans() {
		there[plan.UID] = true
		stage := stageName(plan)
		if list := p.happened[plan.UID]; len(list) == 0 || list[len(list)-1] != stage {
			p.happened[plan.UID] = append(list, stage)
		}
	}
	for uid, list := range p.happened {
		if !there[uid] && list[len(list)-1] != "Missing" {
			p.happened[uid] = append(list, "Missing")
		}
	}
	for _, s := range p.subscriptions() {
		uid := types.UID("")
		if ref := s.Status.InstallPlanRef; ref != nil {
			uid = ref.UID
		}
		p.followed[s.UID] = slices.Compact(append(p.followed[s.UID], uid))
	}
}

// work runs one controller of a worker once, with the cache of the worker.
func (p *past) work(w *reporter, controller string) (writes int) {
	c := w.all[controller]
	keys, err := c.Keys(context.Background(), w.cache)
	require.NoError(p.t, err)
	for _, key := range keys {
		result, err := c.Reconcile(context.Background(), w.cache, key, p.c.Now(), nil)
		require.NoError(p.t, err)
		if controller == controllers.Subscription {
			w.collect(p.t, result)
		}
		writes += len(result.Actions)
		_ = olmcore.Run(context.Background(), p.c, result.Actions)
	}
	p.record()
	return writes
}

// collect adds the transitions of a pass to the accounts of their plans. The last ones of a Subscription are about the
// plan that it references in the cache.
func (w *reporter) collect(t *rapid.T, result olmcore.Result) {
	cached, err := olmcore.List[*v1alpha1.Subscription](context.Background(), w.cache, ns, nil)
	require.NoError(t, err)
	for _, s := range cached {
		target, stories := olmcore.RefOf(s).Unversioned(), w.reported[s.UID]
		if len(stories) == 0 {
			if isDoubted(target, result) {
				continue // nothing is remembered yet
			}
			stories = []*account{{late: s.Status.InstallPlanRef != nil}}
		}
		last := stories[len(stories)-1]
		for _, tr := range result.Transitions {
			if tr.Type != subscription.TransitionInstallPlan || tr.Target != target {
				continue
			}
			require.False(t, tr.OutOfBand && !w.stale, "%+v", tr)
			last.odd = last.odd || tr.OutOfBand
			switch {
			case tr.To == string(subscription.StageNoPlan):
				last = &account{}
				stories = append(stories, last)
			case tr.Certainty == olmcore.CertaintyAssumed:
				last.stages = append(last.stages, "perhaps "+tr.To)
			default:
				last.stages = append(last.stages, tr.To)
			}
		}
		w.reported[s.UID] = stories
		if plan := w.trusts(s, result); plan != nil {
			if last.plan == "" {
				last.plan = plan.UID
			}
			require.Equal(t, plan.UID, last.plan, "%s: reported %v", s.Name, last.stages)
			last.seen = slices.Compact(append(last.seen, stageName(plan)))
			if c := plan.Status.GetCondition(v1alpha1.InstallPlanInstalled); c.Reason == v1alpha1.InstallPlanReasonComponentFailed {
				last.failures = slices.Compact(append(last.failures, c.LastUpdateTime.Time))
			}
		}
	}
}

// trusts returns the plan that a Subscription references in the cache of the worker, unless the worker suspects that it
// is stale or is about to reference another plan.
func (w *reporter) trusts(s *v1alpha1.Subscription, result olmcore.Result) *v1alpha1.InstallPlan {
	ref, target := s.Status.InstallPlanRef, olmcore.RefOf(s).Unversioned()
	for _, a := range result.Actions {
		if u, ok := a.(olmcore.UpdateStatus); ok && u.Target.Unversioned() == target {
			if after := u.After.(*v1alpha1.Subscription).Status.InstallPlanRef; after == nil || ref == nil || after.UID != ref.UID {
				return nil
			}
		}
	}
	if ref == nil || isDoubted(target, result) {
		return nil
	}
	plan, err := olmcore.Get[*v1alpha1.InstallPlan](context.Background(), w.cache, ns, ref.Name)
	if err != nil || plan == nil || plan.UID != ref.UID {
		return nil
	}
	return plan
}

// isDoubted reports whether a pass suspected that the observed plan was stale.
func isDoubted(sub olmcore.Ref, result olmcore.Result) bool {
	return slices.ContainsFunc(result.Diagnostics, func(d olmcore.Diagnostic) bool {
		return d.Target == sub && (d.Reason == subscription.ReasonSuspectObservation || d.Reason == subscription.ReasonPlanUnverified)
	})
}

// pass updates all caches and runs all workers once. It reports whether a plan changed its stage.
func (p *past) pass() bool {
	before := fmt.Sprint(p.happened)
	for _, w := range p.workers {
		for _, name := range []string{controllers.Subscription, controllers.Sweep} {
			p.look(w)
			p.work(w, name)
		}
	}
	return fmt.Sprint(p.happened) != before
}

func (p *past) look(w *reporter) { w.cache.Sync(); w.synch, w.stale = p.c.Now(), false }

func (p *past) advance(d time.Duration) {
	for _, w := range p.workers {
		if p.c.Now().Add(d).Sub(w.synch) >= subscription.DefaultMissingGrace {
			p.look(w) // caches lag, but not for as long as a plan may be out of sight
		}
	}
	p.c.Advance(d)
}

// subscribe creates or deletes a Subscription.
func (p *past) subscribe(name string, approval v1alpha1.Approval) {
	if s := fake.Find[*v1alpha1.Subscription](p.c, ns, name); s != nil {
		require.NoError(p.t, p.c.Delete(olmcore.RefOf(s).Unversioned()))
		return
	}
	require.NoError(
		p.t,
		p.c.Create(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: &v1alpha1.SubscriptionSpec{
			Package: name, Channel: "stable", CatalogSource: "cool", CatalogSourceNamespace: "olm", InstallPlanApproval: approval,
		}}),
	)
}

// approve approves the plans that wait for approval.
func (p *past) approve() {
	for _, plan := range p.plans() {
		if !plan.Spec.Approved && plan.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval {
			require.NoError(p.t, fake.Edit(p.c, ns, plan.Name, func(plan *v1alpha1.InstallPlan) { plan.Spec.Approved = true }))
		}
	}
}

// move moves a plan along one edge, like the controller of plans, in a second of its own. It never moves a superseded
// plan.
func (p *past) move(plan *v1alpha1.InstallPlan, fails bool) (moved bool) {
	if plan == nil || len(plan.Status.Plan) == 0 || isSuperseded(plan) {
		return false
	}
	p.advance(time.Second)
	at := olmcore.Timestamp(p.c.Now())
	require.NoError(p.t, fake.Edit(p.c, ns, plan.Name, func(plan *v1alpha1.InstallPlan) {
		s := &plan.Status
		switch {
		case s.Phase == "RequiresApproval" && plan.Spec.Approved, s.Phase == "Failed" && !fails:
			if s.Phase, moved = "Installing", true; s.StartTime == nil {
				s.StartTime = &at
			}
		case s.Phase == "Installing" && s.StartTime == nil:
			s.StartTime, moved = &at, true
		case s.Phase == "Installing" && fails:
			s.Phase, moved = "Failed", true
			s.Conditions = []v1alpha1.InstallPlanCondition{
				v1alpha1.ConditionFailed(v1alpha1.InstallPlanInstalled, v1alpha1.InstallPlanReasonComponentFailed, "broke", &at),
			}
		case s.Phase == "Installing":
			s.Phase, moved = "Complete", true
			s.Conditions = []v1alpha1.InstallPlanCondition{v1alpha1.ConditionMet(v1alpha1.InstallPlanInstalled, &at)}
		}
	}))
	if after := fake.Find[*v1alpha1.InstallPlan](p.c, ns, plan.Name); moved && after != nil && after.Status.Phase == "Complete" {
		p.install(after)
	}
	p.record()
	return moved
}

// install creates the versions of a plan, and deletes their predecessors.
func (p *past) install(plan *v1alpha1.InstallPlan) {
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		if fake.Find[*v1alpha1.ClusterServiceVersion](p.c, ns, name) == nil {
			require.NoError(p.t, p.c.Create(&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
		}
	}
}

// checkReports compares the reports of a worker with the history. Only stages that happened are reported, in order, and
// once for each time that the plan was referenced. Every observed stage is reported and, without retries, every stage
// before the last known one.
func (p *past) checkReports(w *reporter, all bool) {
	for _, s := range p.subscriptions() {
		reported := map[types.UID]int{}
		for _, story := range w.reported[s.UID] {
			if story.odd {
				continue
			}
			if story.plan == "" {
				require.True(
					p.t,
					slices.ContainsFunc(p.followed[s.UID], func(uid types.UID) bool { return happened(story.stages, p.happened[uid], story.late) }),
				)
				continue
			}
			truth := p.happened[story.plan]
			reported[story.plan]++
			require.LessOrEqual(
				p.t,
				reported[story.plan],
				count(p.followed[s.UID], story.plan),
				"%s: %s was reported too often, references were %v",
				s.Name,
				story.plan,
				p.followed[s.UID],
			)
			require.True(p.t, happened(story.stages, truth, story.late), "%s: reported %v, happened %v", s.Name, story.stages, truth)
			failed := strings.Count(strings.Join(story.stages, " "), "Failed")
			require.True(p.t, story.late || failed >= len(story.failures), "%s: reported %v, happened %v", s.Name, story.stages, truth)
			require.True(
				p.t,
				story.late || isSubsequence(story.seen, story.stages),
				"%s: observed %v, reported %v",
				s.Name,
				story.seen,
				story.stages,
			)
		}
		ref := s.Status.InstallPlanRef
		if !all || ref == nil {
			continue
		}
		last := w.reported[s.UID][len(w.reported[s.UID])-1]
		if last.odd || len(last.stages) == 0 && last.late {
			continue // the status said it all when the worker began to look
		}
		require.NotEmpty(p.t, last.stages, "%s: nothing was reported about %s", s.Name, ref.Name)
		truth := p.happened[ref.UID]
		require.True(p.t, last.plan == ref.UID || last.plan == "" && truth[len(truth)-1] == "Missing")
		switch end := truth[len(truth)-1]; {
		case end == "Missing", last.late, !isOnce(truth): // what a deleted plan went through unseen cannot be known
			require.Equal(p.t, end, last.stages[len(last.stages)-1])
		default:
			require.True(
				p.t,
				happened(last.stages, truth, false) && last.stages[len(last.stages)-1] == end,
				"%s: reported %v, happened %v",
				s.Name,
				last.stages,
				truth,
			)
		}
	}
}

// count returns how often a Subscription started to reference a plan. It may return to an earlier one.
func count(followed []types.UID, plan types.UID) (n int) {
	for _, uid := range followed {
		if uid == plan {
			n++
		}
	}
	return n
}

func isOnce(truth []string) bool { return strings.Count(strings.Join(truth, " "), "Installing") < 2 }

// happened reports whether the reported stages of a plan happened in this order. Unless the plan was retried, no stage
// since its creation, or since some stage, may be left out.
func happened(reported, truth []string, sinceSome bool) bool {
	if i := slices.IndexFunc(reported, func(stage string) bool { return strings.HasPrefix(stage, "perhaps ") }); i >= 0 {
		without, with := slices.Delete(slices.Clone(reported), i, i+1), slices.Clone(reported)
		with[i] = strings.TrimPrefix(reported[i], "perhaps ")
		return happened(without, truth, sinceSome) || happened(with, truth, sinceSome)
	}
	if !isSubsequence(reported, truth) {
		return false
	}
	lived := slices.DeleteFunc(slices.Clone(reported), func(stage string) bool { return stage == "Missing" })
	for k := 0; k+len(lived) <= len(truth) && (k == 0 || sinceSome); k++ {
		if slices.Equal(lived, truth[k:k+len(lived)]) {
			return true
		}
	}
	return !isOnce(truth)
}

// checkOwners checks that a Subscription owns a plan if it references the plan, waits for its version, or existed when
// the plan was created for it.
func (p *past) checkOwners() {
	for _, s := range p.subscriptions() {
		for _, plan := range p.plans() {
			if isFor(plan, s) {
				require.True(p.t, olmcore.OwnedBy(plan, s.UID), "%s does not own %s", s.Name, plan.Name)
			}
			if ref := s.Status.InstallPlanRef; ref != nil && ref.UID == plan.UID {
				require.Contains(p.t, plan.Labels, "operators.coreos.com/"+s.Name+".ops")
			}
		}
	}
}

// checkContent checks plans with the same content, which workers with different caches may create. At most one of them
// gets its steps before one is complete or has failed.
func (p *past) checkContent() {
	runs := map[string]string{}
	for _, plan := range p.plans() {
		if hash := plan.Annotations["olmcore/content-hash"]; len(plan.Status.Plan) > 0 && plan.Status.Phase != "Complete" &&
			!slices.Contains(p.happened[plan.UID], "Failed") {
			require.Empty(p.t, runs[hash], "%s has the content of %s", plan.Name, runs[hash])
			runs[hash] = plan.Name
		}
	}
}

func isFor(plan *v1alpha1.InstallPlan, s *v1alpha1.Subscription) bool {
	ref, phase := s.Status.InstallPlanRef, plan.Status.Phase
	return ref != nil && ref.UID == plan.UID || slices.Contains(strings.Split(plan.Annotations["olmcore/contributors"], ","), string(s.UID)) ||
		phase != "Complete" && phase != "Failed" && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV)
}

// checkShown checks that the conditions show the stage of the plan and, after a while, that it was deleted.
func (p *past) checkShown(afterAWhile bool) {
	for _, s := range p.subscriptions() {
		ref := s.Status.InstallPlanRef
		if ref == nil {
			require.Empty(p.t, planConditions(s.Status))
			continue
		}
		plan := fake.Find[*v1alpha1.InstallPlan](p.c, ns, ref.Name)
		if plan == nil {
			if afterAWhile {
				require.Equal(p.t, "Missing/ReferencedInstallPlanNotFound", planConditions(s.Status))
			}
			continue
		}
		want := map[string]string{"": "Pending/InstallPlanNotYetReconciled", "RequiresApproval": "Pending/RequiresApproval",
			"Installing": "Pending/Installing", "Failed": "Failed/InstallComponentFailed"}[string(plan.Status.Phase)]
		require.Equal(p.t, want, planConditions(s.Status), "%s shows another stage than that of %s", s.Name, plan.Name)
	}
}

var faultModes = []fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}

// step runs one step of a history.
func (p *past) step() {
	t := p.t
	w := p.workers[rapid.IntRange(0, 1).Draw(t, "worker")]
	name := func() string { return rapid.SampledFrom([]string{"alpha", "beta"}).Draw(t, "name") }
	anyPlan := func() *v1alpha1.InstallPlan {
		plans := p.plans()
		if len(plans) == 0 {
			return nil
		}
		return rapid.SampledFrom(plans).Draw(t, "plan")
	}
	switch rapid.SampledFrom([]string{"work", "work", "work", "sweep", "look", "look", "move", "move", "move", "approve", "time", "subscribe", "publish", "delete", "disown", "uninstall", "fault", "fault", "forget", "pass"}).Draw(t, "step") {
	case "work":
		p.work(w, controllers.Subscription)
	case "sweep":
		p.work(w, controllers.Sweep)
	case "look":
		for _, kind := range w.cache.Behind() {
			for range rapid.SampledFrom([]int{0, 0, 1, 2, 3, 20}).Draw(t, "events of "+kind.Kind) {
				w.cache.Next(kind)
			}
		}
	case "move":
		p.move(anyPlan(), rapid.IntRange(0, 3).Draw(t, "fails") == 0)
	case "approve":
		p.approve()
	case "time":
		p.advance(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
	case "subscribe":
		p.subscribe(name(), rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
	case "publish":
		p.heads[name()]++
		for _, w := range p.workers {
			w.olm.CatalogsChanged()
		}
	case "delete":
		if plan := anyPlan(); plan != nil && rapid.IntRange(0, 2).Draw(t, "really") == 0 {
			require.NoError(t, p.c.Delete(olmcore.RefOf(plan).Unversioned()))
		}
	case "disown": // a person takes owners and labels off a plan
		if plan := anyPlan(); plan != nil {
			require.NoError(t, fake.Edit(p.c, ns, plan.Name, func(plan *v1alpha1.InstallPlan) {
				plan.OwnerReferences = plan.OwnerReferences[:rapid.IntRange(0, len(plan.OwnerReferences)).Draw(t, "owners")]
				plan.Labels = nil
			}))
		}
	case "uninstall": // a person deletes a version
		n := name()
		if csv := fake.Find[*v1alpha1.ClusterServiceVersion](p.c, ns, fmt.Sprintf("%s.v%d", n, p.heads[n])); csv != nil && p.reinstalls {
			require.NoError(t, p.c.Delete(olmcore.RefOf(csv).Unversioned()))
		}
	case "fault":
		injectFault(t, p.c, "InstallPlan", "Subscription")
	case "forget":
		w.forget()
	case "pass":
		p.c.Faults().Clear()
		for quiet := 0; quiet < 2; quiet++ { // one to see, one more to believe it
			if p.pass() {
				quiet = -1 // a plan was made or got its content, which the next pass sees
			}
			p.checkOwners()
			p.advance(time.Second)
		}
		p.checkShown(false)
	}
	if p.c.Faults().Crashed() { // it comes back without memory
		p.c.Faults().RestartController()
		w.forget()
	}
	p.record()
}

func (w *reporter) forget() {
	w.olm.Forget()
	clear(w.reported)
	w.stale = true
}

// TestEveryStageIsReportedInRandomWorlds interleaves changes of InstallPlans, approvals, deletions, restarts, stale
// caches and failed writes. It checks that every proven stage is reported once and in order, that no other stage is
// reported, that statuses agree with the plans within two rounds and owners within one, and that everything is
// installed once the faults stop.
func TestEveryStageIsReportedInRandomWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPast(t)
		p.subscribe("alpha", rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
		if rapid.Bool().Draw(t, "two") {
			p.subscribe("beta", v1alpha1.ApprovalAutomatic)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.step()
			p.checkContent()
			for _, w := range p.workers {
				p.checkReports(w, false)
			}
		}
		p.c.Faults().Clear()
		patience := 2
		if p.reinstalls { // which takes a grace of two minutes
			patience = 15
		}
		for round, quiet := 0, 0; quiet < patience; round++ {
			require.Less(t, round, 200, "stuck: %s", p.describe())
			writes := 0
			for _, w := range p.workers {
				p.look(w)
				writes += p.work(w, controllers.Subscription)
				p.look(w)
				writes += p.work(w, controllers.Sweep)
			}
			p.approve()
			for _, plan := range p.plans() {
				if p.move(plan, false) {
					writes++
				}
			}
			p.advance(9 * time.Second)
			if quiet++; writes > 0 || round < 3 {
				quiet = 0
			}
		}
		for _, w := range p.workers {
			p.checkReports(w, true)
		}
		p.checkOwners()
		p.checkShown(true)
		for _, s := range p.subscriptions() {
			require.Equal(t, fmt.Sprintf("%s.v%d", s.Name, p.heads[s.Name]), s.Status.InstalledCSV, p.describe())
			require.EqualValues(t, v1alpha1.SubscriptionStateAtLatest, s.Status.State)
		}
	})
}

func (p *past) describe() string {
	text := ""
	for _, s := range p.subscriptions() {
		text += fmt.Sprintf("%s %s %s %s %v; ", s.Name, s.Status.State, s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.InstallPlanRef)
	}
	for _, plan := range p.plans() {
		text += fmt.Sprintf("%s %s %v; ", plan.Name, plan.Status.Phase, plan.Spec.ClusterServiceVersionNames)
	}
	return text
}
