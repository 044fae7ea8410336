// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// Scope selects the part of a Problem to solve. It excludes Subscriptions that failed, but their installed operators
// must remain. It also excludes the rules for which Waive was called. The zero value selects the whole Problem.
type Scope struct {
	failed map[*Subscription]bool
	kept   map[*content.Entry]*Subscription
	waived map[RuleKey]bool
}

// Failed reports whether a Subscription is left out because it failed.
func (s *Scope) Failed(sub *Subscription) bool { return s.failed[sub] }

// Kept returns the failed Subscription of the installed operator e, if e must remain because that Subscription failed.
// Otherwise, it returns nil.
func (s *Scope) Kept(e *content.Entry) *Subscription { return s.kept[e] }

// Waived reports whether the search ignores a rule because Waive was called for it.
func (s *Scope) Waived(key RuleKey) bool { return s.waived[key] }

// Freestanding reports whether an existing operator must be part of every solution.
func (s *Scope) Freestanding(c *CSV) bool {
	return !c.LeftOut && (len(c.Owners) == 0 || s.kept[c.Entry] != nil)
}

// SideBySide reports whether a conflict between a and b is ignored. This is the case if both are existing operators,
// and at least one of them remains only because its Subscription failed.
func (s *Scope) SideBySide(a, b *Node) bool {
	if len(s.kept) == 0 || a.Source != ExistingSource || b.Source != ExistingSource {
		return false
	}
	return s.kept[a.Entry] != nil || s.kept[b.Entry] != nil
}

// LeaveOut marks a Subscription as failed. Its installed operator must remain.
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

// Waive makes the search ignore the given rules.
func (s *Scope) Waive(keys ...RuleKey) {
	if s.waived == nil {
		s.waived = map[RuleKey]bool{}
	}
	for _, key := range keys {
		s.waived[key] = true
	}
}

// Changes returns the number of operators that must remain because of failed Subscriptions, plus the number of rules
// that the search ignores because Waive was called for them.
func (s *Scope) Changes() int { return len(s.kept) + len(s.waived) }
