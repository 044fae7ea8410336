// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

// remembered are the series of one namespace, which are the same until one of its objects changes or the time comes.
type remembered struct {
	series
	versions []version
	// complete says what was read of the scrape that made them.
	complete [5]bool
	until    time.Time
}

// version is the identity of an object as it was. One without a resourceVersion may change unseen.
type version struct {
	uid             types.UID
	resourceVersion string
}

// lookAgain is how soon the answer about a namespace is given anew in which a Subscription is not at rest: how long
// something takes counts for it.
const lookAgain = 30 * time.Second

func (m *Metrics) lookAtNamespaces(s *scrape) {
	memory := make(map[string]*remembered, len(m.memory))
	for _, p := range s.places() {
		n := m.memory[p.name]
		if n == nil || !n.holds(s, p) {
			n = s.assess(p)
		}
		memory[p.name] = n
		s.namespaces = append(s.namespaces, n)
	}
	m.memory = memory
}

func (s *scrape) complete() [5]bool {
	return [5]bool{s.subscriptions.Complete, s.plans.Complete, s.versions.Complete, s.groups.Complete, s.theNamespaces.Complete}
}

// objects goes through all that counts for a namespace.
func (p *place) objects(yield func(olmcore.Object) bool) {
	_ = each(p.subscriptions, yield) && each(p.plans, yield) && each(p.versions, yield) && each(p.groups, yield) && each(p.namespace, yield)
}

func each[T olmcore.Object](items []T, yield func(olmcore.Object) bool) bool {
	return !slices.ContainsFunc(items, func(o T) bool { return !yield(o) })
}

func versionOf(o olmcore.Object) version { return version{o.GetUID(), o.GetResourceVersion()} }

// holds reports whether nothing changed.
func (n *remembered) holds(s *scrape, p *place) bool {
	if n.max != s.max || n.complete != s.complete() || !n.until.IsZero() && !s.now.Before(n.until) {
		return false
	}
	i := 0
	for o := range p.objects {
		if i >= len(n.versions) || n.versions[i] != versionOf(o) || n.versions[i].resourceVersion == "" {
			return false
		}
		i++
	}
	return i == len(n.versions)
}

// assess answers about a namespace.
func (s *scrape) assess(p *place) *remembered {
	n := &remembered{series: series{max: s.max, only: s.only}, complete: s.complete()}
	for o := range p.objects {
		n.versions = append(n.versions, versionOf(o))
	}
	n.addVersions(p)
	n.addPlans(p)
	if s.subscriptions.Complete && s.plans.Complete && s.theNamespaces.Complete {
		n.addOwners(s, p)
	}
	n.addConditions(p)
	if len(p.subscriptions) > 0 && s.plans.Complete && s.versions.Complete && s.groups.Complete {
		n.addHealth(s, p)
	}
	return n
}

func (n *remembered) addVersions(p *place) {
	for _, c := range p.versions {
		if c.IsCopied() {
			continue
		}
		version, isFine := c.Spec.Version.String(), c.Status.Phase == v1alpha1.CSVPhaseSucceeded
		n.add(p.name, "csv_succeeded", number(isFine), p.name, c.Name, version)
		if !isFine {
			n.add(p.name, "csv_abnormal", 1, p.name, c.Name, version, word(string(c.Status.Phase)), word(string(c.Status.Reason)))
		}
	}
}

func (n *remembered) addPlans(p *place) {
	phases, waiting := map[string]int{}, time.Time{}
	for _, plan := range p.plans {
		phases[word(string(plan.Status.Phase))]++
		if plan.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && !plan.Spec.Approved && plan.DeletionTimestamp == nil {
			waiting = earlier(waiting, plan.CreationTimestamp.Time)
		}
	}
	n.addEach("olm_install_plans", p.name, phases)
	if !waiting.IsZero() {
		n.add(p.name, "olm_install_plan_waiting_timestamp_seconds", seconds(waiting), p.name)
	}
}

// addOwners counts the plans without an owner, as package sweep finds them.
func (n *remembered) addOwners(s *scrape, p *place) {
	out, err := sweep.Reconcile(sweep.Input{
		Now: s.now, Namespace: p.name, Namespaces: olmcore.Found(p.namespace...),
		Subscriptions: olmcore.Found(p.subscriptions...), InstallPlans: olmcore.Found(p.plans...),
	})
	if err != nil {
		n.unassessed(plans)
		return
	}
	without := 0
	for _, d := range out.Diagnostics {
		if d.Reason == sweep.ReasonPlanWithoutOwner {
			without++
		}
	}
	n.requeue(s.now, out.RequeueAfter)
	n.add(p.name, "olm_install_plans_without_owner", float64(without), p.name)
}

func (n *remembered) addConditions(p *place) {
	ours, conditions := subscription.Conditions(), map[string]int{}
	for _, sub := range p.subscriptions {
		for _, c := range sub.Status.Conditions {
			if c.Status == corev1.ConditionTrue && slices.Contains(ours, c.Type) {
				conditions[string(c.Type)]++
			}
		}
	}
	n.addEach("olm_subscription_conditions", p.name, conditions)
}

func (n *remembered) addHealth(s *scrape, p *place) {
	in := subscription.Input{
		Now: s.now, Namespace: p.name,
		Subscriptions: olmcore.Found(p.subscriptions...), InstallPlans: olmcore.Found(p.plans...),
		ClusterServiceVersions: olmcore.Found(p.versions...), OperatorGroups: olmcore.Found(p.groups...),
	}
	in.Config.SkipComponents = true
	assessed, err := subscription.Assess(in)
	if err != nil {
		n.unassessed(subscriptions)
		return
	}
	answers, err := health.Assess(health.Input{Input: in})
	if err != nil {
		n.unassessed(subscriptions)
		return
	}
	outOfStep := 0
	for i := range assessed.Decisions {
		v := &assessed.Decisions[i]
		n.requeue(s.now, v.RequeueAfter)
		if isOutOfStep(v) {
			outOfStep++
		}
	}
	n.add(p.name, "olm_subscriptions_out_of_step", float64(outOfStep), p.name)

	phases, since := map[string]int{}, map[string]time.Time{}
	for _, h := range answers {
		phase := string(h.Phase)
		phases[phase]++
		if h.Phase != health.Installed {
			since[phase] = earlier(since[phase], h.Since)
			n.requeue(s.now, lookAgain)
		}
	}
	n.addEach("olm_subscriptions", p.name, phases)
	for _, phase := range slices.Sorted(maps.Keys(since)) {
		if !since[phase].IsZero() {
			n.add(p.name, "olm_subscription_health_timestamp_seconds", seconds(since[phase]), p.name, phase)
		}
	}
}

// isOutOfStep reports whether the status tells another stage of the plan, or another state or version, than the objects
// do.
func isOutOfStep(v *subscription.Decision) bool {
	shown := v.Plan.Shown
	switch shown {
	case subscription.StageNoPlan, subscription.StageComplete:
		shown = "" // no condition shows these
	case subscription.StageUnverified, subscription.StageUnknown:
		shown = v.Plan.Recorded // it is not known what would be right
	}
	is, should := v.Subscription.Status, v.Status
	return v.Plan.Invalid || v.Plan.Recorded != shown ||
		is.State != should.State || is.CurrentCSV != should.CurrentCSV || is.InstalledCSV != should.InstalledCSV
}

func (n *remembered) requeue(now time.Time, after time.Duration) {
	if after > 0 {
		n.until = earlier(n.until, now.Add(after))
	}
}
