// SPDX-License-Identifier: Apache-2.0

// Package late keeps the values that were asked for last, in bounded memory.
package late

// Values are values by their keys: at least Many that were asked for last once there are as many, at most twice as
// many. The zero value keeps none. It is not safe for concurrent use.
type Values[K comparable, V any] struct {
	Many        int
	now, before map[K]V
}

// Get returns the value of a key, if it is kept.
func (l *Values[K, V]) Get(key K) (value V, ok bool) {
	if value, ok = l.now[key]; ok {
		return value, true
	}
	if value, ok = l.before[key]; ok {
		l.Put(key, value)
	}
	return value, ok
}

// Put keeps a value.
func (l *Values[K, V]) Put(key K, value V) {
	if l.now == nil || len(l.now) >= l.Many {
		l.now, l.before = map[K]V{}, l.now
	}
	l.now[key] = value
}

// Forget forgets all values.
func (l *Values[K, V]) Forget() { l.now, l.before = nil, nil }
