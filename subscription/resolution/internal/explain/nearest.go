// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strings"
)

// nearest returns at most three of some names that a mistyped one may stand for, the most alike first: those of which
// it is a part or that are a part of it, and those that few letters tell apart.
func nearest(wrong string, names []string) []string {
	if wrong == "" {
		return nil
	}
	wrong = strings.ToLower(wrong)
	far := map[string]int{}
	var near []string
	for _, name := range names {
		lower := strings.ToLower(name)
		d := distance(wrong, lower)
		if d <= len(wrong)/4 || strings.Contains(lower, wrong) || strings.Contains(wrong, lower) {
			far[name] = d
			near = append(near, name)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	return near[:min(len(near), maxNamed)]
}

// distance is how many letters must be changed, added, left out or swapped with the next one to make one text of
// another. Texts whose lengths differ a lot are as far apart as these.
func distance(a, b string) int {
	if d := len(a) - len(b); d > len(a)/4 || -d > len(a)/4 {
		return max(len(a), len(b))
	}
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
			d := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// meant says which names a mistyped one may stand for, "" when none is alike.
func meant(wrong string, names []string) string {
	if near := nearest(wrong, names); len(near) > 0 {
		return " Did you mean " + enumerate(near, " or ") + "?"
	}
	return ""
}
