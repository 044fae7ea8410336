// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// minTries is how often a write must fail in a row before a plan fails of it: one
// answer after downtime says little.
const minTries = 3

// problems returns what keeps steps from being applied, the one that decides
// first: what was found by looking, and what the API server answered to the
// last tries. Of several the one of the lowest step comes first; what can never
// pass comes before everything else.
func (e *evaluation) problems() []problem {
	var found []problem
	for i := range e.verdicts {
		switch v := &e.verdicts[i]; v.outcome {
		case invalid:
			found = append(found, problem{step: i, reason: ReasonStepRefused, message: v.message, hopeless: true})
		case blocked:
			found = append(found, problem{step: i, reason: ReasonStepRefused, message: v.message, deadline: e.d.refusedUntil(v.deadline)})
		}
	}
	for _, t := range e.order {
		last, ran := e.d.in.LastRun[t.key]
		if t.satisfied || e.verdicts[t.steps[0]].refused() {
			continue
		}
		if ran && last.Class == olmcore.ClassNone && t.observed == nil && e.plan.Status.Plan[t.steps[0]].Status == v1alpha1.StepStatusNotPresent {
			e.d.diagnose(olmcore.Info, ReasonStepNotVisible, stepPath(t.steps[0]), "%s was created and is not visible", t.key)
		}
		if last.Class == olmcore.ClassNone || last.Class == olmcore.Conflict {
			continue // what was read was behind; it is decided anew
		}
		found = append(found, e.failure(t, last))
	}
	for i := range found {
		found[i].message = clip(found[i].message)
	}
	slices.SortStableFunc(found, func(a, b problem) int {
		never := func(p problem) int {
			if p.hopeless {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(never(a), never(b)), cmp.Compare(a.step, b.step))
	})
	return found
}

// failure is the problem of a target that could not be written. Its time counts
// from the first failure of the present series, so that downtime costs none. Where
// the answers change all the time it counts from the first of all of them, and is
// that of trouble that passes.
func (e *evaluation) failure(t *target, last olmcore.LastResult) problem {
	p := problem{step: t.steps[0], reason: ReasonStepFailed, message: explain(t, last.Message)}
	started := e.plan.Status.StartTime.Time
	after := func(since time.Time, timeout time.Duration) time.Time {
		if since.Before(started) {
			since = started
		}
		return since.Add(timeout)
	}
	p.endless = last.Class == olmcore.Forbidden || last.Count < minTries
	p.deadline = after(last.First, or(e.d.in.Config.InstallTimeout, DefaultInstallTimeout))
	if p.passes = last.Class == olmcore.Transient || last.Class == olmcore.Webhook; p.passes {
		p.deadline = after(last.First, e.d.transientTimeout())
	}
	if last.Tries > max(last.Count, minTries) && last.Class != olmcore.Forbidden {
		if mixed := after(last.Since, e.d.transientTimeout()); p.endless || mixed.Before(p.deadline) {
			p.endless, p.passes, p.deadline = false, true, mixed
		}
	}
	p.known = last.Count != minTries && (last.Tries > 1 || last.Class == olmcore.Forbidden && last.Tries > 0) &&
		strings.HasPrefix(e.plan.Status.Message, retryingPrefix+explain(t, ""))
	return p
}

// refusedUntil is when the plan fails of a step that is refused: at deadline or,
// where that is zero, InstallTimeout after status.startTime. What is refused is not
// tried, so no outcome counts its time. Where the refusal is new or was not watched
// when the time was over, its time starts anew once, and condition Retrying keeps
// the new start.
func (d *decision) refusedUntil(deadline time.Time) time.Time {
	status := &d.in.InstallPlan.Status
	timeout := or(d.in.Config.InstallTimeout, DefaultInstallTimeout)
	if c := conditionOf(status, ConditionRetrying); c != nil && c.LastTransitionTime != nil {
		return c.LastTransitionTime.Add(timeout)
	}
	if deadline.IsZero() {
		deadline = status.StartTime.Add(timeout)
	}
	known := strings.HasPrefix(status.Message, retryingPrefix) || strings.HasPrefix(status.Message, waitingPrefix)
	watched := d.in.Now.Before(deadline.Add(max(timeout, 2*d.retryInterval())))
	if d.in.Now.Before(deadline) || known && watched {
		return deadline
	}
	d.anew = true
	return d.in.Now.Add(timeout)
}

// maxMessage bounds what is stored in a status; names and the texts of an API
// server may have any length.
const maxMessage = 8 << 10

func clip(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + " ..."
}

// explain is the text of an API error as OLM words it.
func explain(t *target, message string) string {
	name, update := t.key.Name, t.observed != nil
	switch t.kind.gvk.Kind {
	case kindCRD:
		if update {
			return fmt.Sprintf("error updating CRD %q: %s", name, message)
		}
		return message
	case "Secret":
		if t.kind.createOnly {
			return fmt.Sprintf("error creating secret %s - %s", name, message)
		}
		return fmt.Sprintf("error updating secret: %s: %s", name, message)
	case "Service", "ConfigMap":
		return fmt.Sprintf("error updating %s %s: %s", t.kind.word, name, message)
	}
	verb := "creating"
	if update {
		verb = "updating"
	}
	word := t.kind.word
	if t.kind.generic {
		word = "unstructured object"
	}
	return fmt.Sprintf("error %s %s %s: %s", verb, word, name, message)
}
