// SPDX-License-Identifier: Apache-2.0

package preview

import "fmt"

// Undo says whether there is a way back once the plan is done, as far as the cluster tells: package rollback says how.
type Undo struct {
	Possible bool `json:"possible"`
	// Because says why not, or what the way back costs.
	Because []string `json:"because"`
}

// undoOf looks at what a way back would have to take back.
func undoOf(p Preview) Undo {
	u := Undo{Possible: true, Because: []string{}}
	no := func(format string, args ...any) {
		u.Possible = false
		u.Because = append(u.Because, fmt.Sprintf(format, args...))
	}
	for _, d := range p.CustomResourceDefinitions {
		switch {
		case d.Change == Created:
			u.Because = append(u.Because, fmt.Sprintf("CustomResourceDefinition %s and its custom resources stay when the operator goes", d.Name))
		case d.Change == Deleted:
			no("the custom resources of %s are deleted", d.Name)
		case d.noReturn:
			no("custom resources of %s are stored as %s from then on, which the version before does not read", d.Name, d.StorageAfter)
		case len(d.back) > 0:
			u.Because = append(u.Because, fmt.Sprintf("custom resources of %s lose what they have in %s by then", d.Name, d.back[0]))
		}
	}
	for _, v := range p.Versions {
		if v.Replaces == "" {
			u.Because = append(u.Because, fmt.Sprintf("%s replaces nothing: the way back is to uninstall it", v.Name))
		}
	}
	return u
}
