// SPDX-License-Identifier: Apache-2.0

// Package spelling finds the name that was meant where another one is written.
package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the name that is most like another, of several the first in order; empty when none is near, which of
// a short name is one edit away, and of any name at most two, or a third of it. A name that differs in case alone comes
// first.
func Nearest(name string, known []string) string {
	best, least := "", max(min(3, len(name)/2+1), len(name)/3+1) // of a short name one change makes another
	names := slices.Clone(known)
	slices.Sort(names)
	for _, candidate := range names {
		if strings.EqualFold(name, candidate) {
			return candidate
		}
		if max(len(candidate)-len(name), len(name)-len(candidate)) >= least {
			continue
		}
		if d := Edits(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Similar returns at most limit of some names that may be meant where name is written, the most similar first. A name
// is similar if one contains the other, or if at most a quarter of the letters differ. Case does not matter.
func Similar(name string, known []string, limit int) []string {
	if name == "" {
		return nil
	}
	name = strings.ToLower(name)
	edits := func(other string) int {
		d := len(name) - len(other)
		if d > len(name)/4 || -d > len(name)/4 {
			return max(len(name), len(other))
		}
		return Edits(name, strings.ToLower(other))
	}
	similar := slices.DeleteFunc(slices.Clone(known), func(other string) bool {
		lower := strings.ToLower(other)
		return other == "" || !strings.Contains(lower, name) && !strings.Contains(name, lower) && edits(other) > len(name)/4
	})
	slices.SortStableFunc(similar, func(a, b string) int { return cmp.Compare(edits(a), edits(b)) })
	return similar[:min(len(similar), limit)]
}

// Edits is how many bytes have to be changed, added, left out or exchanged with the next to make one name the other.
func Edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
