// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Decision contains the changes of the Subscription that the caller decided on after Observe.
type Decision struct {
	// Reference is the desired status.installPlanRef. It is nil if the Subscription should reference no InstallPlan.
	Reference *corev1.ObjectReference
	// ChangesState means that status.state should change.
	ChangesState bool
}

// Report is the result of Snapshot.Report.
type Report struct {
	// Shown is the stage that the conditions of the Subscription should show. If Shown is StageUnverified or StageUnknown,
	// the conditions are not changed.
	Shown Stage
	// History is the history for the next call, if the caller keeps histories.
	History History
	// Result contains the Transitions, the Diagnostics and the time until the next call. A caller that keeps no histories
	// must drop the Result unless it writes the status. Otherwise, the next call would report the same Transitions again.
	Result olmcore.Result
}

// Report returns the stage that the conditions should show, the transitions that led to the observed stage, and the
// history for the next call.
func (s *Snapshot) Report(p *Past, seen *Seen, d Decision) Report {
	// 1. The stage that the conditions should show.
	r := s.publish(p, seen, d)
	// 2. The transitions, unless the stage is not known.
	switch {
	case seen.Stage == StageUnverified:
		return r
	case s.KeepsHistories:
		return s.reportSinceHistory(p, seen, d, r)
	}
	return s.reportSinceStatus(p, seen, d, r)
}

func (s *Snapshot) publish(p *Past, seen *Seen, d Decision) Report {
	shown, isDecided, recheck := s.stageToShow(p, &seen.State, d)
	r := Report{Shown: shown, History: p.History.with(seen.Unconfirmed), Result: olmcore.Result{RequeueAfter: recheck}}
	if s.KeepsHistories && isDecided && r.History.Published != shown {
		r.History.Published, r.History.PublishedAt = shown, stored(s.Now)
	}
	return r
}

// reportSinceHistory reports all transitions since the last call. The transitions of a new InstallPlan are only
// reported after its reference was written, because the write may fail.
func (s *Snapshot) reportSinceHistory(p *Past, seen *Seen, d Decision, r Report) Report {
	from := p.recordedPosition(&seen.State)
	if p.Remembers {
		from = p.History.position()
	}
	switch {
	case p.Moved(d.Reference) && d.Reference != nil:
		if !p.Remembers {
			r.History = r.History.startAt(from)
		}
		return r
	case p.Remembers && s.isUnchanged(seen, from):
		return s.reportMessage(p, seen, r)
	}
	t := s.reconstruct(p, seen, from)
	r.Result.Transitions, r.Result.Diagnostics = t.transitions, t.gaps
	r.History = s.remember(r.History, seen, t.transitions)
	return s.reportMessage(p, seen, r)
}

// reportSinceStatus reports the transitions that the observed status does not show yet.
func (s *Snapshot) reportSinceStatus(p *Past, seen *Seen, d Decision, r Report) Report {
	from := p.recordedPosition(&seen.State)
	isNew := p.Moved(d.Reference) || d.ChangesState || r.Shown != StageUnverified && r.Shown != from.stage
	if !isNew || endsForgottenPlan(seen, d) {
		return r
	}
	t := s.reconstruct(p, seen, from)
	r.Result.Transitions, r.Result.Diagnostics = t.transitions, t.gaps
	return r
}

// stageToShow returns the stage that the conditions should show. isDecided is false if they stay as they are,
// perhaps only for the returned time.
func (s *Snapshot) stageToShow(p *Past, state *State, d Decision) (shown Stage, isDecided bool, recheck time.Duration) {
	switch {
	case d.Reference == nil || state.Invalid:
		return StageNoPlan, true, 0
	case state.Stage == StageUnverified:
		return StageUnverified, false, 0
	}
	if left := s.untilOwnWriteIsVisible(p, d.Reference); left > 0 {
		return StageUnverified, false, left
	}
	return state.Stage, state.Stage != StageUnknown, 0
}

// untilOwnWriteIsVisible returns for how long the conditions may still be those from before the last call's write,
// because of a stale cache. 0: they are not.
func (s *Snapshot) untilOwnWriteIsVisible(p *Past, ref *corev1.ObjectReference) time.Duration {
	h := &p.History
	switch {
	case !p.Remembers || s.Live || h.Published == "" || !h.isAbout(ref.UID, ref.Name):
		return 0
	case p.Shown == "" || p.Shown == h.Published || p.Shown == StageUnknown || h.PublishedAt.After(s.Now):
		return 0
	}
	return max(0, Recheck-elapsed(h.PublishedAt, s.Now))
}

// endsForgottenPlan reports whether the Subscription stops referencing an InstallPlan that exists. The conditions
// showed its last stage before.
func endsForgottenPlan(seen *Seen, d Decision) bool {
	return d.Reference == nil && seen.Stage != StageNoPlan && seen.Stage != StageMissing
}

// isUnchanged reports whether nothing happened since the last report.
func (s *Snapshot) isUnchanged(seen *Seen, from position) bool {
	if from.stage != seen.Stage || len(s.Window.observations) > 0 {
		return false
	}
	if seen.Stage == StageNoPlan {
		return true
	}
	isSame := from.planUID == seen.UID && from.planName == seen.Name
	return isSame && (seen.Plan == nil || relation.InstalledAt(seen.Plan).Equal(from.installedAt))
}

// reportMessage reports a new status.message of the InstallPlan, which no condition shows.
func (s *Snapshot) reportMessage(p *Past, seen *Seen, r Report) Report {
	if seen.Plan == nil {
		return r
	}
	message := seen.Plan.Status.Message
	digest := hash(message)
	if digest == r.History.LastMessage {
		return r
	}
	r.History.LastMessage = digest
	n := len(r.Result.Transitions)
	isReported := n > 0 && r.Result.Transitions[n-1].Message == message
	if message != "" && !isReported {
		r.Result = p.diagnose(r.Result, olmcore.Info, ReasonPlanMessage, "status.installPlanRef",
			"InstallPlan %s: %s", seen.Plan.Name, message)
	}
	return r
}

// hash returns a hash of a message. It is 0 if the message is empty.
func hash(message string) uint32 {
	if message == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(message)) // never fails
	return h.Sum32()
}

// position returns where the last report ended.
func (h *History) position() position {
	return position{
		stage: h.LastStage, since: h.LastAt, planUID: h.PlanUID, planName: h.PlanName,
		installedAt: h.LastInstalledUpdate, knowsInstalledAt: true,
	}
}

// startAt returns the history of a caller that remembered nothing so far. The next report starts at the position.
func (h History) startAt(at position) History {
	h.LastStage, h.LastAt = at.stage, stored(at.since)
	h.PlanUID, h.PlanName = at.planUID, at.planName
	return h
}

// remember returns the history after some transitions were reported.
func (s *Snapshot) remember(h History, seen *Seen, reported []olmcore.Transition) History {
	// 1. The last stage.
	n := len(reported)
	if n > 0 || h.LastStage == "" {
		h.Seq += int64(n)
		h.LastAt = stored(olmcore.Timestamp(s.Now).Time)
		if n > 0 && reported[n-1].Bound == olmcore.Exact {
			h.LastAt = stored(reported[n-1].At.Time)
		}
	}
	isOldVersion := seen.Plan != nil && h.LastStage == seen.Stage && isOlderVersion(seen.Plan.ResourceVersion, h.LastVersion)
	h.LastStage = seen.Stage

	// 2. Which InstallPlan it describes.
	if seen.Stage == StageNoPlan || !h.isAbout(seen.UID, seen.Name) {
		h.LastVersion, h.LastMessage = "", 0
		h.LastObserved = time.Time{}
	}
	h.PlanUID, h.PlanName = seen.UID, seen.Name
	if seen.Stage == StageNoPlan { // UID and name are empty
		h.LastInstalledUpdate = time.Time{}
		return h
	}
	// 3. Up to which version everything is known.
	until := s.observedUntil(&h, seen)
	if until.After(h.LastObserved) {
		h.LastObserved = stored(until)
	}
	if seen.Plan == nil {
		return h.withVersionOf(s.Window.last(seen.UID, seen.Name))
	}
	h.LastInstalledUpdate = stored(relation.InstalledAt(seen.Plan))
	if !isOldVersion {
		h.LastVersion = seen.Plan.ResourceVersion
	}
	return h
}

// withVersionOf returns the history after an Observation was used of an InstallPlan that is not visible. last is nil if
// there was none.
func (h History) withVersionOf(last *Observation) History {
	if last != nil && isOlderVersion(h.LastVersion, last.Plan.ResourceVersion) {
		h.LastVersion = last.Plan.ResourceVersion
	}
	return h
}

// observedUntil returns the time up to which Observations of the InstallPlan are known: that of the newest one, or
// now if the list is newer. It is zero if there was never an Observation.
func (s *Snapshot) observedUntil(h *History, seen *Seen) time.Time {
	last, listed := s.Window.last(seen.UID, seen.Name), s.Plans[seen.Name]
	if last == nil {
		if h.LastObserved.IsZero() || listed == nil {
			return time.Time{}
		}
		return s.Now
	}
	if listed != nil && !s.Window.contains(listed) && !isStale(listed, last.Plan) {
		return s.Now
	}
	return last.At
}
