// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// Scope is which part of a problem is to be solved: Subscriptions that failed are left out, and what they have
// installed stays. Its zero value is the whole.
type Scope struct {
	failed map[*Subscription]bool
	kept   map[*content.Entry]*Subscription
	waived map[RuleKey]bool
}

// Failed reports whether a Subscription is left out.
func (s *Scope) Failed(sub *Subscription) bool { return s.failed[sub] }

// Kept returns the Subscription for which an existing operator must stay although that Subscription failed, nil when it
// stays for no such reason.
func (s *Scope) Kept(e *content.Entry) *Subscription { return s.kept[e] }

// Waived reports whether a rule is given up.
func (s *Scope) Waived(key RuleKey) bool { return s.waived[key] }

// Freestanding reports whether an existing operator must be in every solution.
func (s *Scope) Freestanding(c *CSV) bool {
	return !c.LeftOut && (len(c.Owners) == 0 || s.kept[c.Entry] != nil)
}

// SideBySide reports whether both exist already and at least one of them is only kept because its Subscription failed:
// whatever they have in common, it is no reason to stop the others.
func (s *Scope) SideBySide(a, b *Node) bool {
	if len(s.kept) == 0 || a.Source != ExistingSource || b.Source != ExistingSource {
		return false
	}
	return s.kept[a.Entry] != nil || s.kept[b.Entry] != nil
}

// LeaveOut takes a Subscription out; what it has installed must stay.
func (s *Scope) LeaveOut(sub *Subscription) {
	if s.failed == nil {
		s.failed, s.kept = map[*Subscription]bool{}, map[*content.Entry]*Subscription{}
	}
	s.failed[sub] = true
	c := sub.Current
	if c == nil || c.LeftOut || s.kept[c.Entry] != nil {
		return
	}
	if !slices.ContainsFunc(c.Owners, func(other *Subscription) bool { return !s.failed[other] }) {
		s.kept[c.Entry] = sub
	}
}

// Waive gives rules up.
func (s *Scope) Waive(keys ...RuleKey) {
	if s.waived == nil {
		s.waived = map[RuleKey]bool{}
	}
	for _, key := range keys {
		s.waived[key] = true
	}
}

// Changes counts the operators that must stay and the rules that are given up.
func (s *Scope) Changes() int { return len(s.kept) + len(s.waived) }
