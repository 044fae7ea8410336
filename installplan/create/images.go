// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// referenceBytes is about the size of a step that refers to an unpacked bundle.
const referenceBytes = 640

// fromImages returns the names of the operators whose objects come from their unpacked bundle image: those that the catalog
// describes by an image alone, and, while the steps of the others do not fit into one InstallPlan, those with the largest steps that
// have an image, too. The steps of an unpacked bundle only refer to its ConfigMap.
//
// Differs: OLM unpacks every bundle that has an image.
func fromImages(operators []olmcore.Operator, namespace string, config installplan.Config) map[string]bool {
	names := map[string]bool{}
	type size struct {
		name  string
		bytes int
	}
	var movable []size
	total := 0
	for _, o := range operators {
		if o.Bundle.Image != "" && len(o.Bundle.Objects) == 0 {
			names[o.Name] = true
			continue
		}
		steps, err := bundle.Steps(o, namespace, bundle.Literal)
		if err != nil {
			continue // which is reported where the plan is made
		}
		data, _ := json.Marshal(steps) // strings always encode
		if total += len(data); o.Bundle.Image != "" {
			movable = append(movable, size{o.Name, len(data) - len(steps)*referenceBytes})
		}
	}
	slices.SortFunc(movable, func(a, b size) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.name, b.name)) })
	for _, o := range movable {
		if total <= cmp.Or(config.MaxStatusBytes, installplan.DefaultMaxStatusBytes) {
			break
		}
		names[o.name] = true
		total -= o.bytes
	}
	return names
}
