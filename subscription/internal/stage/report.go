// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Publish decides which stage the conditions are to show, and remembers it. ref is what
// the Subscription is to refer to.
func (p *InstallPlans) Publish(s PlanState, ref *corev1.ObjectReference) PlanState {
	switch {
	case ref == nil || s.Invalid:
		s.Shown = NoPlan
		if ref == s.sub.Status.InstallPlanRef && showsPlan(s.sub.Status.Conditions) {
			s.report(olmcore.Info, ReasonConditionWithoutRef, "status.conditions", "an InstallPlan condition was left without a reference")
		}
	case s.Stage == Unverified, s.Memory.Known && p.lacksOwnWrite(&s, ref):
		s.Shown = Unverified
		return s
	case s.Stage == Unknown:
		s.Shown = Unknown
		return s
	default:
		s.Shown = s.Stage
	}
	if h := &s.Memory.After; s.Memory.Kept && h.Published != s.Shown {
		h.Published, h.PublishedAt = s.Shown, instant(p.Now)
	}
	return s
}

func showsPlan(conditions []v1alpha1.SubscriptionCondition) bool {
	for i := range conditions {
		if IsAboutPlan(conditions[i].Type) {
			return true
		}
	}
	return false
}

// lacksOwnWrite reports whether the conditions still show what they did before the last
// call changed them: a cache that has not seen that write yet.
func (p *InstallPlans) lacksOwnWrite(s *PlanState, ref *corev1.ObjectReference) bool {
	h := &s.Memory.Before
	if p.Live || h.Published == "" || !h.isAbout(ref.UID, ref.Name) {
		return false
	}
	shown, _, ok := Shown(s.sub.Status.Conditions)
	if !ok || shown == h.Published || shown == Unknown || h.PublishedAt.After(p.Now) {
		return false
	}
	left := Recheck - Since(h.PublishedAt, p.Now)
	s.Requeue(left)
	return left > 0
}

// origin is where a chain of transitions starts.
type origin struct {
	stage    Stage
	at       time.Time
	uid      types.UID
	name     string
	lastDone time.Time
	knows    bool
}

// recorded returns what the status says of the plan's stage, or the history when the
// status says nothing. A condition that is older than the plan is about another one.
func (s *PlanState) recorded() origin {
	status, h := &s.sub.Status, &s.Memory.Before
	ref := status.InstallPlanRef
	if ref == nil || s.Invalid {
		return origin{stage: NoPlan}
	}
	from := origin{stage: NoPlan, uid: ref.UID, name: ref.Name}
	stage, since, ok := Shown(status.Conditions)
	switch {
	case ok && s.Plan != nil && !since.IsZero() && since.Before(s.Plan.CreationTimestamp.Time):
	case ok:
		from.stage, from.at = stage, since
	case s.Memory.Known && h.Published != "" && h.isAbout(ref.UID, ref.Name):
		from.stage, from.at = h.Published, h.PublishedAt
	case status.State == v1alpha1.SubscriptionStateAtLatest:
		from.stage, from.at = Complete, status.LastUpdated.Time
	}
	return from
}

// known returns where the last report of transitions ended.
func (s *PlanState) known() origin {
	if !s.Memory.Known {
		return s.recorded()
	}
	h := &s.Memory.Before
	return origin{stage: h.LastStage, at: h.LastAt, uid: h.PlanUID, name: h.PlanName, lastDone: h.LastInstalledUpdate, knows: true}
}

// Written is what the status write of this call changes.
type Written struct {
	Any, Reference, State bool
	// Cleared: the Subscription refers to no plan any more.
	Cleared bool
}

// Report returns the transitions of the plan's stage, and the PlanState with what is
// remembered of them: all that are new to a caller who remembers, else those up to what
// the status is made to show by this very result. To a caller who remembers, a plan is
// reported once it is seen to be referred to: the write of the reference may be lost, and
// a cache be stale.
func (p *InstallPlans) Report(s PlanState, w Written) (PlanState, []olmcore.Transition) {
	from := s.known()
	m := &s.Memory
	isNew := w.Reference || w.State || s.Shown != Unverified && s.Shown != s.recorded().stage
	switch {
	case s.Stage == Unverified, !m.Kept && !(w.Any && isNew):
		return s, nil
	case m.Kept && w.Reference && !w.Cleared:
		if h := &m.After; !m.Known {
			h.LastStage, h.LastAt, h.PlanUID, h.PlanName = from.stage, instant(from.at), from.uid, from.name
		}
		return s, nil
	case m.Known && p.isQuiet(&s, from):
		p.reportMessage(&s, nil)
		return s, nil
	case !m.Kept && w.Cleared && s.Stage != NoPlan && s.Stage != Missing:
		return s, nil // the end of the plan that is forgotten was shown before
	}
	c := p.path(&s, from)
	s.Diagnostics = append(s.Diagnostics, c.gaps...)
	if m.Kept {
		p.remember(&s, &c)
		p.reportMessage(&s, c.list)
	}
	return s, c.list
}

// isQuiet reports whether nothing happened since the last report: then the memory
// stays as it is, whatever was written to the plan meanwhile.
func (p *InstallPlans) isQuiet(s *PlanState, from origin) bool {
	switch {
	case from.stage != s.Stage || len(p.Window.list) > 0:
		return false
	case from.stage == NoPlan:
		return true
	}
	return from.uid == s.UID && from.name == s.Name && (s.Plan == nil || InstalledAt(s.Plan).Equal(from.lastDone))
}

// reportMessage reports, to a caller who remembers, that the plan itself has something
// new to say; the conditions do not show status.message.
func (p *InstallPlans) reportMessage(s *PlanState, reported []olmcore.Transition) {
	if s.Plan == nil || digest(s.Plan.Status.Message) == s.Memory.After.LastMessage {
		return
	}
	message := s.Plan.Status.Message
	s.Memory.After.LastMessage = digest(message)
	if n := len(reported); message != "" && (n == 0 || reported[n-1].Message != message) {
		s.report(olmcore.Info, ReasonPlanMessage, "status.installPlanRef", "InstallPlan %s: %s", s.Plan.Name, message)
	}
}

// path reconstructs what happened to the plan since origin: every version that a watch
// delivered, then the one that is there now, and between them what must have happened.
func (p *InstallPlans) path(s *PlanState, from origin) chain {
	c := chain{
		target: olmcore.RefOf(s.sub).Unversioned(), now: p.Now, from: from.stage, fromAt: from.at,
		installedAt: from.lastDone, knows: from.knows, remembers: from.knows,
	}
	if s.Stage == NoPlan {
		c.watch(p.news(s, from.uid, from.name, &c))
		c.replace(ReasonReferenceCleared)
		return c
	}
	if !same(from.uid, from.name, s.UID, s.Name) {
		c.watch(p.news(s, from.uid, from.name, &c))
		if left := p.ByName[from.name]; left != nil && from.uid != "" && left.UID == from.uid {
			c.lastWords(left)
		}
		c.replace(ReasonPlanReplaced)
	}
	c.watch(p.news(s, s.UID, s.Name, &c))
	if s.Stage == Missing {
		c.vanish(s.Proven)
	} else {
		c.reach(s.Stage, s.Plan, p.Now)
	}
	return c
}

// news returns the observations of a plan that the chain does not know yet: those from
// the first one on that is news. A window that begins before the chain does, as one may
// that was read by another way than the plan itself, is entered where it shows the
// chain's stage.
func (p *InstallPlans) news(s *PlanState, uid types.UID, name string, c *chain) []Observation {
	if name == "" {
		return nil
	}
	var list []Observation
	for i := range p.Window.list {
		if o := &p.Window.list[i]; p.Window.shows(o, uid, name) && (len(list) > 0 || c.isNews(o, &s.Memory.Before)) {
			list = append(list, *o)
		}
	}
	if len(list) == 0 || c.from == NoPlan || c.from == Missing || c.from == Unknown {
		return list
	}
	if stage := Of(list[0].Plan); stage == c.from || stage == Unknown || Reachable(c.from, stage) {
		return list
	}
	for i := range list {
		if Of(list[i].Plan) == c.from {
			return list[i:]
		}
	}
	return list
}

// isNews reports whether an observation may show what the chain does not know yet: a
// later version than the last one that was believed. Where the versions cannot be
// compared, the times have to do.
func (c *chain) isNews(o *Observation, h *History) bool {
	remembers := c.remembers && h.isAbout(o.Plan.UID, o.Plan.Name)
	if order, ok := compareVersions(o.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && remembers {
		return order > 0
	}
	if at := InstalledAt(o.Plan); c.remembers && !at.IsZero() && at.Before(c.installedAt) {
		return false
	}
	if remembers && !h.LastObserved.IsZero() {
		return o.At.After(h.LastObserved)
	}
	return !o.At.Before(c.fromAt)
}

// remember notes where the report ends.
func (p *InstallPlans) remember(s *PlanState, c *chain) {
	h := &s.Memory.After
	if n := len(c.list); n > 0 || h.LastStage == "" {
		h.Seq += int64(n)
		h.LastAt = instant(olmcore.Timestamp(p.Now).Time)
		if n > 0 && c.list[n-1].Bound == olmcore.Exact {
			h.LastAt = instant(c.list[n-1].At.Time)
		}
	}
	isOld := s.Plan != nil && h.LastStage == s.Stage && isOlderVersion(s.Plan.ResourceVersion, h.LastVersion)
	h.LastStage = s.Stage
	if s.Stage == NoPlan {
		h.PlanUID, h.PlanName, h.LastInstalledUpdate, h.LastVersion, h.LastObserved, h.LastMessage = "", "", time.Time{}, "", time.Time{}, 0
		return
	}
	if !h.isAbout(s.UID, s.Name) {
		h.LastVersion, h.LastObserved, h.LastMessage = "", time.Time{}, 0
	}
	h.PlanUID, h.PlanName = s.UID, s.Name
	if at := p.lastObserved(s); at.After(h.LastObserved) {
		h.LastObserved = instant(at)
	}
	if s.Plan != nil {
		h.LastInstalledUpdate = instant(InstalledAt(s.Plan))
		if !isOld {
			h.LastVersion = s.Plan.ResourceVersion
		}
	}
}

// lastObserved returns the time up to which observations of the plan are known: that of
// the newest one, or now where the list knows more.
func (p *InstallPlans) lastObserved(s *PlanState) (at time.Time) {
	last, listed := p.Window.last(s.UID, s.Name), p.ByName[s.Name]
	switch {
	case last == nil && s.Memory.After.LastObserved.IsZero():
	case listed != nil && (last == nil || !p.Window.holds(listed) && !isStale(listed, last.Plan)):
		at = p.Now
	case last != nil:
		at = last.At
	}
	return at
}
