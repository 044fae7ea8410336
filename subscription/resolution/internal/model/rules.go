// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"
	"slices"
)

// RuleKey identifies a rule of one resolution. A and B are the numbers of the objects of the rule. The comment of each
// RuleID describes them.
type RuleKey struct {
	Kind RuleID
	A, B int32
}

// RuleID is the kind of a RuleKey.
type RuleID uint8

// These are the kinds of rules. Their comments describe A and B of the RuleKey.
const (
	// RuleSubscription requires that Subscription A is satisfied.
	RuleSubscription RuleID = iota + 1
	// RuleImpossible means that no bundle matches Subscription A.
	RuleImpossible
	// RuleRequires requires one of the candidates of Subscription A.
	RuleRequires
	// RuleKeeps requires that Subscription A keeps node B.
	RuleKeeps
	// RuleDemanded requires that Subscription A gets node B. A reported conflict never contains this rule.
	RuleDemanded
	// RuleCSV requires that node A, an existing ClusterServiceVersion, remains.
	RuleCSV
	// RuleBundle requires that requirement B of node A is met.
	RuleBundle
	// RuleReplaces means that node A and node B exclude each other. A replaces B, an existing ClusterServiceVersion.
	RuleReplaces
	// RuleGroup allows only one operator of group A.
	RuleGroup
	// RuleBlocked means that node A must never be selected.
	RuleBlocked
)

// RuleTable assigns numbers to the rules that are part of conflicts. The zero value is an empty table.
type RuleTable struct {
	ids map[RuleKey]int32
	// Keys contains the rules by number. Owners contains, for each rule, the Index of the Subscription that needs the
	// rule. A higher number stands for an existing ClusterServiceVersion.
	Keys   []RuleKey
	Owners []int32
}

// ID returns the number of a rule. If the table does not contain the rule, ID adds it with the given owner.
func (t *RuleTable) ID(key RuleKey, owner int32) int32 {
	id, ok := t.ids[key]
	if !ok {
		if t.ids == nil {
			t.ids = map[RuleKey]int32{}
		}
		id = int32(len(t.Keys))
		t.ids[key] = id
		t.Keys, t.Owners = append(t.Keys, key), append(t.Owners, owner)
	}
	return id
}

// Known returns the number of a rule. ok is false if the table does not contain the rule.
func (t *RuleTable) Known(key RuleKey) (id int32, ok bool) {
	id, ok = t.ids[key]
	return id, ok
}

// Bitset is a set of small numbers. A nil Bitset is empty.
type Bitset []uint64

// SetOf returns a set of the given numbers. It is never nil.
func SetOf(members ...int32) Bitset {
	s := Bitset{0}
	for _, i := range members {
		s.Add(i)
	}
	return s
}

// Add adds a number to the set.
func (s *Bitset) Add(i int32) {
	for int(i>>6) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

// Has reports whether a number is in the set.
func (s Bitset) Has(i int32) bool { return int(i>>6) < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

// Remove removes a number from the set.
func (s Bitset) Remove(i int32) {
	if int(i>>6) < len(s) {
		s[i>>6] &^= 1 << (i & 63)
	}
}

// AddAll adds all members of another set.
func (s *Bitset) AddAll(other Bitset) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for i, word := range other {
		(*s)[i] |= word
	}
}

// Clear removes all members.
func (s *Bitset) Clear() {
	clear(*s)
	*s = (*s)[:0]
}

// In reports whether s is a subset of other.
func (s Bitset) In(other Bitset) bool {
	for i, word := range s {
		if i < len(other) {
			word &^= other[i]
		}
		if word != 0 {
			return false
		}
	}
	return true
}

// All calls yield for each member in ascending order until yield returns false.
func (s Bitset) All(yield func(int32) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(int32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// Members returns the members in ascending order.
func (s Bitset) Members() []int32 { return slices.Collect(s.All) }
