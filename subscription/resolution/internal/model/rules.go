// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"
	"slices"
)

// RuleKey names a rule inside one call: a kind and the numbers of what it is about.
type RuleKey struct {
	Kind RuleID
	A, B int32
}

// RuleID is the kind of a RuleKey.
type RuleID uint8

// Kinds of rules, with what A and B are.
const (
	RuleSubscription RuleID = iota + 1 // A: Subscription
	RuleImpossible                     // A: Subscription
	RuleRequires                       // A: Subscription
	RuleKeeps                          // A: Subscription, B: the node that it keeps
	RuleDemanded                       // A: Subscription, B: the node that it is to have; part of no conflict
	RuleCSV                            // A: node
	RuleBundle                         // A: node, B: its requirement
	RuleReplaces                       // A: node, B: node of the CSV that it replaces
	RuleGroup                          // A: group
	RuleBlocked                        // A: node
)

// RuleTable numbers the rules that conflicts were made of.
type RuleTable struct {
	ids map[RuleKey]int32
	// Keys are the rules by number, Owners the Subscriptions, or after them the existing CSVs, that they serve: the order
	// in which rules are given up.
	Keys   []RuleKey
	Owners []int32
}

// ID returns the number of a rule, a new one with this owner when it has none.
func (t *RuleTable) ID(key RuleKey, owner int32) int32 {
	id, ok := t.ids[key]
	if !ok {
		if t.ids == nil {
			t.ids = map[RuleKey]int32{}
		}
		id = int32(len(t.Keys))
		t.ids[key], t.Keys, t.Owners = id, append(t.Keys, key), append(t.Owners, owner)
	}
	return id
}

// Known returns the number of a rule that has one.
func (t *RuleTable) Known(key RuleKey) (id int32, ok bool) {
	id, ok = t.ids[key]
	return id, ok
}

// Bitset is a set of small numbers.
type Bitset []uint64

// SetOf returns the set of some numbers; it is never nil.
func SetOf(members ...int32) Bitset {
	s := Bitset{0}
	for _, i := range members {
		s.Add(i)
	}
	return s
}

// Add adds a number.
func (s *Bitset) Add(i int32) {
	for int(i>>6) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

// Has reports whether a number is in the set.
func (s Bitset) Has(i int32) bool { return int(i>>6) < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

// Remove takes a number out.
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

// Clear empties the set.
func (s *Bitset) Clear() {
	clear(*s)
	*s = (*s)[:0]
}

// In reports whether all members are in another set.
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

// All calls yield for each member, in ascending order, until it returns false.
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
