// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// problems returns what keeps steps from being applied, the one that decides
// first: what was found by looking, and what the API server answered to the
// last try. Of several the one of the lowest step comes first; what can never
// pass comes before everything else.
func (e *evaluation) problems() []problem {
	in, start := e.d.in, e.plan.Status.StartTime.Time
	install := start.Add(or(in.Config.InstallTimeout, DefaultInstallTimeout))
	var found []problem
	for i := range e.verdicts {
		switch v := &e.verdicts[i]; v.outcome {
		case invalid:
			found = append(found, problem{step: i, reason: ReasonStepRefused, message: v.message})
		case blocked:
			found = append(found, problem{step: i, reason: ReasonStepRefused, message: v.message, deadline: install})
		}
	}
	for _, t := range e.order {
		last, ran := in.LastRun[t.key]
		if t.satisfied || e.verdicts[t.steps[0]].refused() {
			continue
		}
		if ran && last.Class == olmcore.ClassNone && t.observed == nil && e.plan.Status.Plan[t.steps[0]].Status == v1alpha1.StepStatusNotPresent {
			e.d.diagnose(olmcore.Info, ReasonStepNotVisible, stepPath(t.steps[0]), "%s was created and is not visible", t.key)
		}
		p := problem{step: t.steps[0], reason: ReasonStepFailed, message: explain(t, last.Message)}
		switch last.Class {
		case olmcore.ClassNone, olmcore.Conflict:
			continue // what was read was behind; it is decided anew
		case olmcore.Forbidden:
			p.endless = true
		case olmcore.Transient, olmcore.Webhook:
			p.deadline = start.Add(or(in.Config.TransientTimeout, DefaultTransientTimeout))
		default:
			p.deadline = install
		}
		found = append(found, p)
	}
	for i := range found {
		found[i].message = clip(found[i].message)
	}
	slices.SortStableFunc(found, func(a, b problem) int {
		never := func(p problem) int {
			if p.deadline.IsZero() && !p.endless {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(never(a), never(b)), cmp.Compare(a.step, b.step))
	})
	return found
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
