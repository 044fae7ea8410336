// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// Missed returns the Subscriptions that a rule of Audit counts in with a plan although
// they are not near it.
func Missed(in Input) ([]string, error) {
	var v view
	if err := v.fill(&in); err != nil {
		return nil, err
	}
	a := audit{v: &v}
	a.index()
	var missed []string
	for _, p := range v.plans {
		near := a.near(p)
		for _, s := range v.subs {
			_, labelled := p.Labels[a.key(s)]
			counts := refersTo(s, p) || v.contributes(s, p) || olmcore.OwnedBy(p, s.UID) || labelled
			if counts && !slices.Contains(near, s) {
				missed = append(missed, p.Name+" "+s.Name)
			}
		}
	}
	return missed, nil
}
