// SPDX-License-Identifier: Apache-2.0

package olmcore

import "slices"

// Graph is a state graph: every edge that a state machine can take, in the order of a life. No other edge occurs.
type Graph[S ~string] []Edge[S]

// Edge is one edge of a Graph.
type Edge[S ~string] struct {
	From, To S
	// By names the rule that takes it, in the words of the package; may be empty.
	By string
}

// Allows reports whether a state may follow another at once.
func (g Graph[S]) Allows(from, to S) bool {
	return slices.ContainsFunc(g, func(e Edge[S]) bool { return e.From == from && e.To == to })
}
