// SPDX-License-Identifier: Apache-2.0

package chaos

// optionSteps are the steps of a history with Separates: an administrator changes the option SeparatePlans, and the
// managers restart with it one after the other.
func optionSteps() []Step {
	all := []Step{
		{Name: "the option SeparatePlans changes, and a manager restarts", Weight: 3, Do: stepOption},
		{Name: "the managers with the old option restart", Weight: 15, Do: func(h *History, _ Choices) { h.endRollout() }},
	}
	for i := range all {
		all[i].Only.Separates = true
	}
	return all
}

// stepOption changes the option SeparatePlans. One manager restarts with it at once. The other one keeps the old value
// until it restarts.
func stepOption(h *History, r Choices) {
	h.isSeparate = !h.isSeparate
	h.Figures.OptionChanges++
	h.say("  SeparatePlans: %t", h.isSeparate)
	pick(r, h.managers).start()
}

// endRollout restarts the managers that run with the old value of the option SeparatePlans.
func (h *History) endRollout() {
	for _, m := range h.managers {
		if m.isSeparate != h.isSeparate {
			m.start()
		}
	}
}
