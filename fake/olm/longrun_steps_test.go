// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"math/rand/v2"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// stepKind is something that may happen in a history. only says in which histories; with the zero value it
// happens in all.
type stepKind struct {
	name   string
	weight int
	only   setting
	do     func(h *history, r *rand.Rand)
}

var stepKinds = []stepKind{
	{name: "a manager works", weight: 400, do: (*history).stepWork},
	{name: "a cache takes in an event", weight: 120, do: (*history).stepEvent},
	{name: "a cache is synced", weight: 120, do: (*history).stepSync},
	{name: "the cluster does one thing", weight: 150, do: func(h *history, _ *rand.Rand) { h.cluster.Step() }},
	{name: "the cluster settles", weight: 30, do: func(h *history, _ *rand.Rand) { h.must(h.cluster.Settle()) }},
	{name: "seconds pass", weight: 70, do: func(h *history, r *rand.Rand) { h.advance(time.Duration(1+r.IntN(20)) * time.Second) }},
	{name: "minutes pass", weight: 12, do: func(h *history, r *rand.Rand) { h.advance(time.Duration(1+r.IntN(12)) * time.Minute) }},
	{name: "a manager's deadline comes", weight: 40, do: (*history).stepDeadline},
	{name: "a write will go wrong", weight: 25, do: (*history).stepFault},
	{name: "a manager restarts", weight: 2, do: (*history).stepRestart},
	{name: "both managers are down for hours", weight: 2, do: (*history).stepDowntime},
	{name: "a manager's clock jumps", weight: 3, do: (*history).stepClock},
	{name: "a node fails or heals", weight: 4, do: (*history).stepNode},
	{name: "subscribe", weight: 12, do: (*history).stepSubscribe},
	{name: "approve every plan", weight: 10, do: (*history).stepApprove},
	{name: "publish a version", weight: 4, do: (*history).stepPublish},
	{name: "a Pod or a Deployment is deleted", weight: 3, do: (*history).stepDeleteWorkload},
	{name: "an administrator deletes", weight: 8, only: setting{deletes: true}, do: (*history).stepDelete},
	{name: "an OperatorGroup comes back", weight: 4, only: setting{deletes: true}, do: func(h *history, r *rand.Rand) { h.createGroup(tenants[r.IntN(len(tenants))]) }},
	{name: "the OLMConfig changes", weight: 4, do: (*history).stepConfig},
	{name: "a namespace comes or goes", weight: 5, do: (*history).stepNamespace},
	{name: "an OperatorGroup has other targets", weight: 3, do: (*history).stepTargets},
	{name: "the certificates near their end", weight: 2, do: (*history).stepYears},
	{name: "the certificates of called operators near their end", weight: 12, only: setting{serves: true}, do: (*history).stepYears},
	{name: "who calls operators may be changed, or not", weight: 12, only: setting{serves: true}, do: (*history).stepPolicy},
	{name: "a manager works for a while", weight: 60, only: setting{serves: true}, do: (*history).stepBusy},
	{name: "a certificate is lost or spoilt", weight: 8, only: setting{serves: true, spoils: true}, do: (*history).stepSpoilCertificate},
	{name: "the issuer fails or works", weight: 3, do: (*history).stepIssuer},
	{name: "an operator says whether it may be upgraded", weight: 6, do: (*history).stepCondition},
	{name: "an administrator overrides it", weight: 4, do: (*history).stepOverride},
	{name: "somebody spoils something", weight: 40, only: setting{spoils: true}, do: (*history).stepSpoil},
	{name: "an attack", weight: 12, only: setting{attacks: true}, do: (*history).stepAttack},
}

// step is one thing that happens, with the choices in it.
type step struct {
	kind *stepKind
	seed uint64
}

func drawSteps(r *rand.Rand, n int, of setting) []step {
	var kinds []*stepKind
	total := 0
	for i := range stepKinds {
		if k := &stepKinds[i]; of.has(k.only) {
			kinds, total = append(kinds, k), total+k.weight
		}
	}
	steps := make([]step, n)
	for i := range steps {
		at, k := r.IntN(total), 0
		for at >= kinds[k].weight {
			at -= kinds[k].weight
			k++
		}
		steps[i] = step{kinds[k], r.Uint64()}
	}
	return steps
}

// has reports whether a history has all of another setting.
func (s setting) has(some setting) bool {
	return (s.deletes || !some.deletes) && (s.attacks || !some.attacks) && (s.spoils || !some.spoils) && (s.serves || !some.serves)
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (h *history) advance(d time.Duration) {
	d = h.beforeTheEnd(d)
	h.figures.Simulated += d
	h.cluster.Advance(d)
}

func (h *history) stepWork(r *rand.Rand) {
	if m := pick(r, h.managers); !m.down {
		m.work(r.IntN)
	}
}

// stepBusy: a manager does much while nothing else happens, with a cache that takes in some events.
func (h *history) stepBusy(r *rand.Rand) {
	m := pick(r, h.managers)
	for range 1 + r.IntN(40) {
		if m.down || h.problem != nil {
			return
		}
		if behind := m.view.Behind(); len(behind) > 0 && r.IntN(2) == 0 {
			m.view.Next(pick(r, behind))
		}
		m.work(r.IntN)
		h.check()
	}
}

func (h *history) stepEvent(r *rand.Rand) {
	m := pick(r, h.managers)
	if behind := m.view.Behind(); len(behind) > 0 {
		m.view.Next(pick(r, behind))
	}
}

func (h *history) stepSync(r *rand.Rand) { pick(r, h.managers).view.Sync() }

func (h *history) stepDeadline(r *rand.Rand) {
	if at, ok := pick(r, h.managers).nextTimer(); ok && at.After(h.cluster.Now()) && at.Sub(h.cluster.Now()) < time.Hour {
		h.advance(at.Sub(h.cluster.Now()))
	}
}

func (h *history) stepFault(r *rand.Rand) {
	m := pick(r, h.managers)
	m.faults = append(m.faults, writeFault{after: r.IntN(3), mode: pick(r, faultModes)})
}

func (h *history) stepRestart(r *rand.Rand) { pick(r, h.managers).start() }

// stepDowntime: while both managers are away the cluster goes on. When they are back, one of the first writes fails once.
func (h *history) stepDowntime(r *rand.Rand) {
	h.figures.Downtimes++
	d := h.beforeTheEnd(time.Duration(1+r.IntN(8)) * time.Hour)
	h.figures.Simulated += d
	for _, m := range h.managers {
		m.down = true
	}
	h.must(h.cluster.RunFor(d))
	for _, m := range h.managers {
		m.down = false
		m.start()
	}
	m := pick(r, h.managers)
	m.faults = []writeFault{{after: r.IntN(2), mode: fake.FailWithoutEffect}}
}

func (h *history) stepClock(r *rand.Rand) {
	h.figures.ClockJumps++
	jumps := []time.Duration{0, 0, time.Second, -time.Second, 5 * time.Minute, -5 * time.Minute, time.Hour, -time.Hour}
	pick(r, h.managers).skew = pick(r, jumps)
}

func (h *history) stepNode(r *rand.Rand) {
	h.figures.NodeFailures++
	node := pick(r, []string{"a", "b"})
	if r.IntN(2) == 0 {
		h.must(h.cluster.FailNode(node))
	} else {
		h.must(h.cluster.HealNode(node))
	}
}

func (h *history) stepSubscribe(r *rand.Rand) {
	ns := pick(r, tenants)
	name := pick(r, wanted[ns])
	_ = h.cluster.Create(&v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: "olm", InstallPlanApproval: pick(r, []v1alpha1.Approval{v1alpha1.ApprovalAutomatic, v1alpha1.ApprovalManual})},
	})
}

// listed is the objects of one type in the namespaces of the tenants.
func listed[T olmcore.Object](h *history) (all []T) {
	for _, o := range h.cluster.Objects() {
		if typed, ok := o.(T); ok && slices.Contains(tenants, o.GetNamespace()) {
			all = append(all, typed)
		}
	}
	return all
}

func (h *history) stepApprove(*rand.Rand) {
	for _, o := range h.cluster.Objects() {
		if p, ok := o.(*v1alpha1.InstallPlan); ok && !p.Spec.Approved {
			h.figures.Approvals++
			h.must(fake.Edit(h.cluster, p.Namespace, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
		}
	}
}

const maxVersions = 6

func (h *history) stepPublish(r *rand.Rand) {
	name := pick(r, packages)
	if h.heads[name] == maxVersions {
		return
	}
	h.figures.Published++
	h.heads[name]++
	h.build()
	for _, m := range h.managers {
		m.set.CatalogsChanged()
		m.resync()
	}
}

func (h *history) stepDeleteWorkload(r *rand.Rand) {
	var all []olmcore.Object
	for _, o := range h.cluster.Objects() {
		kind := olmcore.GVKOf(o).Kind
		if (kind == "Pod" || kind == "Deployment") && o.GetNamespace() != victim {
			all = append(all, o)
		}
	}
	if len(all) > 0 {
		_ = h.cluster.Delete(olmcore.RefOf(pick(r, all)).Unversioned())
	}
}

func (h *history) stepDelete(r *rand.Rand) {
	var all []olmcore.Object
	switch r.IntN(6) {
	case 0:
		all = add(all, listed[*v1alpha1.Subscription](h))
	case 1, 2:
		all = add(all, listed[*v1alpha1.InstallPlan](h))
	case 3, 4:
		all = add(all, listed[*v1alpha1.ClusterServiceVersion](h))
	case 5:
		all = add(all, listed[*operatorsv1.OperatorGroup](h))
	}
	if len(all) > 0 {
		h.figures.Deletions++
		_ = h.cluster.Delete(olmcore.RefOf(pick(r, all)).Unversioned())
	}
}
