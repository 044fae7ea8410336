// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// Choices makes the choices of a step: IntN returns a number from 0 up to n, without n. A *rand.Rand of math/rand/v2 is
// one.
type Choices interface{ IntN(n int) int }

// Step is something that may happen in a History.
type Step struct {
	Name string
	// Weight is how often it happens, compared with the other steps.
	Weight int
	// Only says in which histories it happens: in those with all that is set here.
	Only Setting
	// Do lets it happen.
	Do func(h *History, c Choices)
}

// Steps returns all that may happen in such a history, the Options' own last.
func Steps(o Options) []Step {
	return slices.DeleteFunc(slices.Concat(allSteps(), raceSteps(), optionSteps(), o.Steps), func(s Step) bool { return !o.has(s.Only) })
}

// Draw chooses one of some steps, by their weights.
func Draw(steps []Step, c Choices) Step {
	total := 0
	for _, s := range steps {
		total += s.Weight
	}
	at := c.IntN(total)
	for _, s := range steps {
		if at -= s.Weight; at < 0 {
			return s
		}
	}
	return Step{} // no choice is that high
}

// working is the step that is not told, since it is most of them.
const working = "a manager works"

func allSteps() []Step {
	return []Step{
		{Name: working, Weight: 400, Do: stepWork},
		{Name: "a cache takes in an event", Weight: 120, Do: stepEvent},
		{Name: "a cache is synced", Weight: 120, Do: stepSync},
		{Name: "the cluster does one thing", Weight: 150, Do: func(h *History, _ Choices) { h.Cluster.Step() }},
		{Name: "the cluster settles", Weight: 30, Do: func(h *History, _ Choices) { h.must(h.Cluster.Settle()) }},
		{Name: "seconds pass", Weight: 70, Do: func(h *History, r Choices) { h.advance(time.Duration(1+r.IntN(20)) * time.Second) }},
		{Name: "minutes pass", Weight: 12, Do: func(h *History, r Choices) { h.advance(time.Duration(1+r.IntN(12)) * time.Minute) }},
		{Name: "a manager's deadline comes", Weight: 40, Do: stepDeadline},
		{Name: "a write will go wrong", Weight: 25, Do: stepFault},
		{Name: "a manager restarts", Weight: 2, Do: stepRestart},
		{Name: "both managers are down for hours", Weight: 2, Do: stepDowntime},
		{Name: "a manager's clock jumps", Weight: 3, Do: stepClock},
		{Name: "a node fails or heals", Weight: 4, Do: stepNode},
		{Name: "subscribe", Weight: 12, Do: stepSubscribe},
		{Name: "approve every plan", Weight: 10, Only: Setting{Approves: true}, Do: stepApprove},
		{Name: "publish a version", Weight: 4, Do: stepPublish},
		{Name: "a Pod or a Deployment is deleted", Weight: 3, Do: stepDeleteWorkload},
		{Name: "an administrator deletes", Weight: 8, Only: Setting{Deletes: true}, Do: stepDelete},
		{
			Name:   "an OperatorGroup comes back",
			Weight: 4,
			Only:   Setting{Deletes: true},
			Do:     func(h *History, r Choices) { h.createGroup(tenants[r.IntN(len(tenants))]) },
		},
		{Name: "the OLMConfig changes", Weight: 4, Do: stepConfig},
		{Name: "a namespace comes or goes", Weight: 5, Do: stepNamespace},
		{Name: "an OperatorGroup has other targets", Weight: 3, Do: stepTargets},
		{Name: "the certificates near their end", Weight: 2, Do: stepYears},
		{Name: "the certificates of called operators near their end", Weight: 12, Only: Setting{Serves: true}, Do: stepYears},
		{Name: "who calls operators may be changed, or not", Weight: 12, Only: Setting{Serves: true}, Do: stepPolicy},
		{Name: "a manager works for a while", Weight: 60, Only: Setting{Serves: true}, Do: stepBusy},
		{Name: "a certificate is lost or spoilt", Weight: 8, Only: Setting{Serves: true, Spoils: true}, Do: stepSpoilCertificate},
		{Name: "the issuer fails or works", Weight: 3, Do: stepIssuer},
		{Name: "an operator says whether it may be upgraded", Weight: 6, Do: stepCondition},
		{Name: "an administrator overrides it", Weight: 4, Do: stepOverride},
		{Name: "somebody spoils something", Weight: 40, Only: Setting{Spoils: true}, Do: stepSpoil},
		{Name: "an attack", Weight: 12, Only: Setting{Attacks: true}, Do: stepAttack},
	}
}

// has reports whether a history has all of another setting.
func (s Setting) has(some Setting) bool {
	return (s.Approves || !some.Approves) && (s.Deletes || !some.Deletes) && (s.Attacks || !some.Attacks) &&
		(s.Spoils || !some.Spoils) && (s.Serves || !some.Serves) && (s.Races || !some.Races) &&
		(s.Separates || !some.Separates)
}

func pick[T any](r Choices, from []T) T { return from[r.IntN(len(from))] }

// maxLag is how long a cache may lag behind. csv/sweep deletes an object ten minutes after its creation if the cache
// does not contain its owner, and a clock may be ahead by ClockTolerance.
const maxLag = 8 * time.Minute

// advance lets time pass. A cache that lagged behind for maxLag catches up.
func (h *History) advance(d time.Duration) {
	d = beforeTheEnd(h, d)
	for _, m := range h.managers {
		if len(m.view.Behind()) == 0 {
			m.current = h.Cluster.Now()
		}
	}
	h.Figures.Simulated += d
	h.Cluster.Advance(d)
	for _, m := range h.managers {
		if !m.down && h.Cluster.Now().Sub(m.current) >= maxLag {
			m.view.Sync()
			m.current = h.Cluster.Now()
		}
	}
}

func stepWork(h *History, r Choices) {
	if m := pick(r, h.managers); !m.down {
		m.work(r.IntN)
	}
}

// stepBusy: a manager does much while nothing else happens, with a cache that takes in some events.
func stepBusy(h *History, r Choices) {
	m := pick(r, h.managers)
	for range 1 + r.IntN(40) {
		if m.down || h.problem != nil {
			return
		}
		if behind := m.behind(); len(behind) > 0 && r.IntN(2) == 0 {
			m.view.Next(pick(r, behind))
		}
		m.work(r.IntN)
		h.check()
	}
}

func stepEvent(h *History, r Choices) {
	m := pick(r, h.managers)
	if behind := m.behind(); len(behind) > 0 {
		m.view.Next(pick(r, behind))
	}
}

func stepSync(h *History, r Choices) { pick(r, h.managers).sync() }

func stepDeadline(h *History, r Choices) {
	if at, ok := pick(r, h.managers).nextTimer(); ok && at.After(h.Cluster.Now()) && at.Sub(h.Cluster.Now()) < time.Hour {
		h.advance(at.Sub(h.Cluster.Now()))
	}
}

var faultModes = []fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}

func stepFault(h *History, r Choices) {
	m := pick(r, h.managers)
	m.faults = append(m.faults, writeFault{after: r.IntN(3), mode: pick(r, faultModes)})
}

func stepRestart(h *History, r Choices) { pick(r, h.managers).start() }

// stepDowntime: while both managers are away the cluster goes on. When they are back, one of the first writes fails
// once.
func stepDowntime(h *History, r Choices) {
	h.Figures.Downtimes++
	d := beforeTheEnd(h, time.Duration(1+r.IntN(8))*time.Hour)
	h.Figures.Simulated += d
	for _, m := range h.managers {
		m.down = true
	}
	h.must(h.Cluster.RunFor(d))
	for _, m := range h.managers {
		m.down = false
		m.start()
	}
	m := pick(r, h.managers)
	m.faults = []writeFault{{after: r.IntN(2), mode: fake.FailWithoutEffect}}
}

func stepClock(h *History, r Choices) {
	h.Figures.ClockJumps++
	jumps := []time.Duration{0, 0, time.Second, -time.Second, 5 * time.Minute, -5 * time.Minute, time.Hour, -time.Hour}
	if h.Races {
		jumps = []time.Duration{0, -ClockTolerance / 2, -10 * time.Second, 10 * time.Second, ClockTolerance / 2}
	}
	pick(r, h.managers).skew = pick(r, jumps)
}

func stepNode(h *History, r Choices) {
	h.Figures.NodeFailures++
	node := pick(r, []string{"a", "b"})
	if r.IntN(2) == 0 {
		h.must(h.Cluster.Node(node).Fail())
	} else {
		h.must(h.Cluster.Node(node).Heal())
	}
}

func stepSubscribe(h *History, r Choices) {
	ns := pick(r, tenants)
	name := pick(r, wanted[ns])
	_ = h.Cluster.Create(&v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: "olm", InstallPlanApproval: pick(r, []v1alpha1.Approval{v1alpha1.ApprovalAutomatic, v1alpha1.ApprovalManual})},
	})
}

// listed is the objects of one type in the namespaces of the tenants.
func listed[T olmcore.Object](h *History) (all []T) {
	for _, o := range h.Cluster.Objects() {
		if typed, ok := o.(T); ok && slices.Contains(tenants, o.GetNamespace()) {
			all = append(all, typed)
		}
	}
	return all
}

func stepApprove(h *History, _ Choices) {
	for _, o := range h.Cluster.Objects() {
		if p, ok := o.(*v1alpha1.InstallPlan); ok && !p.Spec.Approved {
			h.Figures.Approvals++
			h.must(fake.Edit(h.Cluster, p.Namespace, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
		}
	}
}

func stepDeleteWorkload(h *History, r Choices) {
	var all []olmcore.Object
	for _, o := range h.Cluster.Objects() {
		kind := olmcore.GVKOf(o).Kind
		if (kind == "Pod" || kind == "Deployment") && o.GetNamespace() != victim {
			all = append(all, o)
		}
	}
	if len(all) > 0 {
		_ = h.Cluster.Delete(olmcore.RefOf(pick(r, all)).Unversioned())
	}
}

func stepDelete(h *History, r Choices) {
	var all []olmcore.Object
	switch r.IntN(6) {
	case 0:
		all = objects(listed[*v1alpha1.Subscription](h))
	case 1, 2:
		all = objects(listed[*v1alpha1.InstallPlan](h))
	case 3, 4:
		all = objects(listed[*v1alpha1.ClusterServiceVersion](h))
	case 5:
		all = objects(listed[*operatorsv1.OperatorGroup](h))
	}
	if len(all) > 0 {
		deleteAsUser(h, pick(r, all))
	}
}

// deleteAsUser deletes an object, whatever it has become.
func deleteAsUser(h *History, o olmcore.Object) {
	h.Figures.Deletions++
	h.say("  %s", olmcore.KeyOf(o))
	switch o := o.(type) {
	case *v1alpha1.Subscription:
		h.races.unsubscribed[o.Namespace+"/"+o.Spec.Package] = true
	case *v1alpha1.InstallPlan, *v1alpha1.ClusterServiceVersion:
		h.races.disturbed[o.GetNamespace()] = true
	}
	_ = h.Cluster.Delete(olmcore.RefOf(o).Unversioned())
}

func objects[T olmcore.Object](typed []T) []olmcore.Object {
	all := make([]olmcore.Object, len(typed))
	for i, o := range typed {
		all[i] = o
	}
	return all
}
