// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// past is a namespace with everything that ever happened to its plans, and the
// two workers that look after it.
type past struct {
	t       *rapid.T
	c       *fake.Cluster
	workers [2]*teller
	heads   map[string]int
	// happened are the stages of each plan; followed the plans that each
	// Subscription referred to.
	happened map[types.UID][]string
	followed map[types.UID][]types.UID
}

// teller is a worker with a cache and a memory of its own, and what it told of
// each Subscription, plan by plan.
type teller struct {
	cache *fake.View
	synch time.Time // when the cache was last brought to the present
	olm   olm.OLM
	all   map[string]fake.Controller
	told  map[types.UID][][]string
	// repeats: after lost memory, or for a Subscription after a lost write of its
	// reference, things may be told again.
	forgot  bool
	repeats map[types.UID]bool
}

func newPast(t *rapid.T) *past {
	p := &past{
		t: t, c: fake.NewCluster(epoch), heads: map[string]int{"alpha": 1, "beta": 1},
		happened: map[types.UID][]string{}, followed: map[types.UID][]types.UID{},
	}
	p.c.AutoCreateNamespaces = true
	require.NoError(t, p.c.Load(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}}))
	contributors := rapid.Bool().Draw(t, "contributors only")
	for i := range p.workers {
		w := &teller{cache: p.c.View(fmt.Sprint(i)), synch: p.c.Now(), all: map[string]fake.Controller{}, told: map[types.UID][][]string{}, repeats: map[types.UID]bool{}}
		w.olm.Resolve, w.olm.Sweeps = p.resolve, true
		w.olm.InstallPlan.DisableFinalizer, w.olm.InstallPlan.ContributorsOnly = true, contributors
		for _, controller := range w.olm.Controllers() {
			w.all[controller.Name] = controller
		}
		p.workers[i] = w
	}
	return p
}

// resolve brings the newest version of its package to every Subscription.
func (p *past) resolve(_ context.Context, _ olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	r := olmcore.Resolution{Observed: request.Subscriptions}
	for _, f := range request.Subscriptions {
		target := fmt.Sprintf("%s.v%d", f.Name, p.heads[f.Name])
		d := olmcore.SubscriptionDecision{Name: f.Name, CurrentCSV: f.CurrentCSV}
		if f.InstalledCSV != target {
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

// record notes what the last step did to the plans and references.
func (p *past) record() {
	there := map[types.UID]bool{}
	for _, plan := range p.plans() {
		there[plan.UID] = true
		stage := string(plan.Status.Phase)
		if stage == "" {
			stage = "NotYetReconciled"
		}
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
		if ref := s.Status.InstallPlanRef; ref != nil {
			if list := p.followed[s.UID]; len(list) == 0 || list[len(list)-1] != ref.UID {
				p.followed[s.UID] = append(list, ref.UID)
			}
		}
	}
}

// work is one pass of one of a worker's controllers, from its cache.
func (p *past) work(w *teller, controller string) (writes int) {
	c := w.all[controller]
	for _, key := range c.Keys(w.cache) {
		uids := map[string]types.UID{}
		cached, err := olmcore.List[*v1alpha1.Subscription](context.Background(), w.cache, ns, nil)
		require.NoError(p.t, err)
		for _, s := range cached {
			uids[s.Name] = s.UID
		}
		result, err := c.Reconcile(context.Background(), w.cache, key, p.c.Now(), nil)
		require.NoError(p.t, err)
		for _, tr := range result.Transitions {
			if tr.Type == subscription.TransitionInstallPlan {
				require.False(p.t, tr.OutOfBand, "%+v", tr)
				w.hear(uids[tr.Target.Name], tr)
			}
		}
		writes += len(result.Actions)
		if err = olmcore.Run(context.Background(), p.c, result.Actions); err == nil {
			continue
		}
		for _, a := range result.Actions {
			if u, ok := a.(olmcore.UpdateStatus); ok && u.Target.Kind == v1alpha1.SubscriptionKind &&
				!equality.Semantic.DeepEqual(u.Before.(*v1alpha1.Subscription).Status.InstallPlanRef, u.After.(*v1alpha1.Subscription).Status.InstallPlanRef) {
				w.repeats[u.Target.UID] = true
			}
		}
	}
	p.record()
	return writes
}

// hear files a transition under the plan that it is about.
func (w *teller) hear(sub types.UID, tr olmcore.Transition) {
	lists := w.told[sub]
	if tr.To == "NoPlan" {
		w.told[sub] = append(lists, nil)
		return
	}
	if len(lists) == 0 {
		lists = [][]string{nil}
	}
	stage := tr.To
	if tr.Certainty == olmcore.Assumed {
		stage = "perhaps " + stage
	}
	last := &lists[len(lists)-1]
	*last = append(*last, stage)
	w.told[sub] = lists
}

// pass lets everybody see and do everything once, and reports whether a plan
// changed its stage.
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

func (p *past) look(w *teller) { w.cache.Sync(); w.synch = p.c.Now() }

func (p *past) advance(d time.Duration) {
	for _, w := range p.workers {
		if p.c.Now().Add(d).Sub(w.synch) >= subscription.DefaultMissingGrace {
			p.look(w) // caches lag, but not for as long as a plan may be out of sight
		}
	}
	p.c.Advance(d)
}

// subscribe makes a Subscription or takes it away.
func (p *past) subscribe(name string, approval v1alpha1.Approval) {
	if s := fake.Find[*v1alpha1.Subscription](p.c, ns, name); s != nil {
		require.NoError(p.t, p.c.Delete(olmcore.RefOf(s).Unversioned()))
		return
	}
	require.NoError(p.t, p.c.Create(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: &v1alpha1.SubscriptionSpec{
		Package: name, Channel: "stable", CatalogSource: "cool", CatalogSourceNamespace: "olm", InstallPlanApproval: approval,
	}}))
}

// approve approves what asks for it.
func (p *past) approve() {
	for _, plan := range p.plans() {
		if !plan.Spec.Approved && plan.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval {
			require.NoError(p.t, fake.Edit(p.c, ns, plan.Name, func(plan *v1alpha1.InstallPlan) { plan.Spec.Approved = true }))
		}
	}
}

// move takes a plan one edge further, as the controller of plans does, at a
// second of its own.
func (p *past) move(plan *v1alpha1.InstallPlan, fails bool) (moved bool) {
	if plan == nil || len(plan.Status.Plan) == 0 {
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
			s.Conditions = []v1alpha1.InstallPlanCondition{v1alpha1.ConditionFailed(v1alpha1.InstallPlanInstalled, v1alpha1.InstallPlanReasonComponentFailed, "broke", &at)}
		case s.Phase == "Installing":
			s.Phase, moved = "Complete", true
			s.Conditions = []v1alpha1.InstallPlanCondition{v1alpha1.ConditionMet(v1alpha1.InstallPlanInstalled, &at)}
		}
	}))
	if after := fake.Find[*v1alpha1.InstallPlan](p.c, ns, plan.Name); after != nil && after.Status.Phase == "Complete" {
		p.install(after)
	}
	p.record()
	return moved
}

// install makes the versions of a plan, and takes away what they replace.
func (p *past) install(plan *v1alpha1.InstallPlan) {
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		if fake.Find[*v1alpha1.ClusterServiceVersion](p.c, ns, name) == nil {
			require.NoError(p.t, p.c.Create(&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
		}
	}
}

// checkTold compares what a worker told with what happened: nothing that did not
// happen, in order, once; and, without retries, all of it up to what it knows.
func (p *past) checkTold(w *teller, all bool) {
	for _, s := range p.subscriptions() {
		if w.forgot || w.repeats[s.UID] {
			continue
		}
		plans := p.followed[s.UID]
		var last []string
		for n, list := range w.told[s.UID] {
			if len(list) == 0 {
				continue
			}
			// A plan that came and went unseen leaves no trace, and whoever begins to look
			// goes on where the status ends.
			i := slices.IndexFunc(plans, func(uid types.UID) bool { return isTrue(list, p.happened[uid], n == 0) })
			require.GreaterOrEqual(p.t, i, 0, "%s was told %v of %v, of which happened %v", s.Name, list, plans, p.happened)
			plans, last = plans[i+1:], list
		}
		if !all || len(p.followed[s.UID]) == 0 {
			continue
		}
		truth := p.happened[p.followed[s.UID][len(p.followed[s.UID])-1]]
		switch end := truth[len(truth)-1]; {
		case len(last) == 0: // the status said it all when the worker began to look
		case end == "Missing": // what a deleted plan went through unseen cannot be known
			require.Equal(p.t, end, last[len(last)-1])
		case isOnce(truth) && len(w.told[s.UID]) > 1:
			require.True(p.t, isTrue(last, truth, false) && last[len(last)-1] == end, "%s was told %v of %v", s.Name, last, truth)
		default:
			require.Equal(p.t, end, last[len(last)-1])
		}
	}
}

func isOnce(truth []string) bool { return strings.Count(strings.Join(truth, " "), "Installing") < 2 }

// isTrue reports whether what was told of a plan happened in this order, and,
// unless it was tried again, whether nothing was left out since its beginning, or
// since some stage.
func isTrue(told, truth []string, sinceSome bool) bool {
	if i := slices.IndexFunc(told, func(stage string) bool { return strings.HasPrefix(stage, "perhaps ") }); i >= 0 {
		without, with := slices.Delete(slices.Clone(told), i, i+1), slices.Clone(told)
		with[i] = strings.TrimPrefix(told[i], "perhaps ")
		return isTrue(without, truth, sinceSome) || isTrue(with, truth, sinceSome)
	}
	if !isSubsequence(told, truth) {
		return false
	}
	lived := slices.DeleteFunc(slices.Clone(told), func(stage string) bool { return stage == "Missing" })
	for k := 0; k+len(lived) <= len(truth) && (k == 0 || sinceSome); k++ {
		if slices.Equal(lived, truth[k:k+len(lived)]) {
			return true
		}
	}
	return !isOnce(truth)
}

// checkOwners: who refers to a plan owns it.
func (p *past) checkOwners() {
	for _, s := range p.subscriptions() {
		for _, plan := range p.plans() {
			if ref := s.Status.InstallPlanRef; ref != nil && ref.UID == plan.UID {
				require.True(p.t, olmcore.OwnedBy(plan, s.UID), "%s does not own %s", s.Name, plan.Name)
				require.Contains(p.t, plan.Labels, "operators.coreos.com/"+s.Name+".ops")
			}
		}
	}
}

// checkShown: the conditions say what the plan is.
func (p *past) checkShown() {
	for _, s := range p.subscriptions() {
		ref := s.Status.InstallPlanRef
		if ref == nil {
			require.Empty(p.t, planConditions(s.Status))
			continue
		}
		plan := fake.Find[*v1alpha1.InstallPlan](p.c, ns, ref.Name)
		if plan == nil {
			continue
		}
		want := map[string]string{"": "Pending/InstallPlanNotYetReconciled", "RequiresApproval": "Pending/RequiresApproval",
			"Installing": "Pending/Installing", "Failed": "Failed/InstallComponentFailed"}[string(plan.Status.Phase)]
		require.Equal(p.t, want, planConditions(s.Status), "%s shows another stage than that of %s", s.Name, plan.Name)
	}
}

var faultModes = []fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}

// step does one thing of a history.
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
	switch rapid.SampledFrom([]string{"work", "work", "work", "sweep", "look", "look", "move", "move", "move", "approve", "time", "subscribe", "publish", "delete", "fault", "forget", "pass"}).Draw(t, "step") {
	case "work":
		p.work(w, controllers.Subscription)
	case "sweep":
		p.work(w, controllers.Sweep)
	case "look":
		for _, kind := range w.cache.Behind() {
			for range rapid.IntRange(0, 3).Draw(t, "events of "+kind.Kind) {
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
	case "fault":
		injectFault(t, p.c, "InstallPlan", "Subscription")
	case "forget":
		w.forget()
	case "pass":
		p.c.Recover()
		for quiet := 0; quiet < 2; quiet++ { // one to see, one more to believe it
			if p.pass() {
				quiet = -1 // a plan was made or got its content, which the next pass sees
			}
			p.checkOwners()
			p.advance(subscription.DefaultMissingRecheck)
		}
		p.checkShown()
	}
	if p.c.Crashed() { // it comes back without memory
		p.c.RestartController()
		w.forget()
	}
	p.record()
}

func (w *teller) forget() {
	w.olm.Forget()
	w.forgot = true
}

// TestWhateverHappens interleaves changes of plans, approvals, deletions,
// restarts, lagging caches and failed writes. Every stage that is proven is told
// once and in order, none is invented, statuses agree with the plans within two
// passes and owners within one, and once faults stop everything is installed.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPast(t)
		p.subscribe("alpha", rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalManual, v1alpha1.ApprovalAutomatic}).Draw(t, "approval"))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.step()
			for _, w := range p.workers {
				p.checkTold(w, false)
			}
		}
		p.c.Recover()
		for round := 0; ; round++ {
			require.Less(t, round, 60, "stuck: %s", p.describe())
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
			if writes == 0 && round > 2 {
				break
			}
		}
		for _, w := range p.workers {
			p.checkTold(w, true)
		}
		p.checkOwners()
		p.checkShown()
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
