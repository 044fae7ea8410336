// SPDX-License-Identifier: Apache-2.0

package resolution

import "math/bits"

// ruleKey names a rule inside one call: a kind and the numbers of what it is
// about.
type ruleKey struct {
	kind ruleID
	a, b int32
}

type ruleID uint8

const (
	ruleSubscription ruleID = iota // a: Subscription
	ruleImpossible                 // a: Subscription
	ruleRequires                   // a: Subscription
	ruleKeeps                      // a: Subscription
	ruleCSV                        // a: node
	ruleBundle                     // a: node, b: its requirement
	ruleReplaces                   // a: node, b: node of the CSV it replaces
	rulePackage                    // a: package
	ruleAPI                        // a: API
	ruleName                       // a: name
	ruleBlocked                    // a: node
)

// ruleTable numbers the rules that conflicts were made of. owner is the
// Subscription that a rule serves, for the order in which rules are given up.
type ruleTable struct {
	ids   map[ruleKey]int32
	keys  []ruleKey
	owner []int32
}

func (t *ruleTable) id(key ruleKey, owner int32) int32 {
	if id, ok := t.ids[key]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = map[ruleKey]int32{}
	}
	id := int32(len(t.keys))
	t.ids[key] = id
	t.keys = append(t.keys, key)
	t.owner = append(t.owner, owner)
	return id
}

// bitset is a set of small numbers.
type bitset []uint64

func (s *bitset) add(i int32) {
	for int(i>>6) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

func (s bitset) has(i int32) bool { return int(i>>6) < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

func (s bitset) remove(i int32) {
	if int(i>>6) < len(s) {
		s[i>>6] &^= 1 << (i & 63)
	}
}

func (s *bitset) addAll(other bitset) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for i, word := range other {
		(*s)[i] |= word
	}
}

func (s *bitset) clear() {
	clear(*s)
	*s = (*s)[:0]
}

// max returns the largest member, -1 when there is none.
func (s bitset) max() int32 {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 0 {
			return int32(i*64 + bits.Len64(s[i]) - 1)
		}
	}
	return -1
}

// members returns the members in ascending order.
func (s bitset) members() []int32 {
	var list []int32
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, int32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return list
}
