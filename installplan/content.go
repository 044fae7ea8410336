// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// contentHash identifies what a plan installs: the namespace, the versions and
// the steps, whatever their order. Who owns the plan, who must approve it and how
// far it is are no part of it.
func contentHash(namespace string, steps []*v1alpha1.Step) string {
	type content struct {
		Group           string `json:"group"`
		Kind            string `json:"kind"`
		Manifest        string `json:"manifest"`
		Name            string `json:"name"`
		SourceName      string `json:"sourceName"`
		SourceNamespace string `json:"sourceNamespace"`
		Version         string `json:"version"`
	}
	names := csvNames(steps)
	slices.Sort(names)
	contents := make([]content, len(steps))
	for i, s := range steps {
		r := s.Resource
		contents[i] = content{r.Group, r.Kind, r.Manifest, r.Name, r.CatalogSource, r.CatalogSourceNamespace, r.Version}
	}
	slices.SortFunc(contents, func(a, b content) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Manifest, b.Manifest), strings.Compare(a.SourceName, b.SourceName),
			strings.Compare(a.SourceNamespace, b.SourceNamespace))
	})
	// Keys are in alphabetical order, so this is canonical. Strings always encode.
	data, _ := olmcore.CanonicalJSON(struct {
		CSVs      []string  `json:"csvs"`
		Lookups   []content `json:"lookups"`
		Namespace string    `json:"namespace"`
		Steps     []content `json:"steps"`
	}{names, []content{}, namespace, contents})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// csvNames returns the ClusterServiceVersions of steps, in their order and each
// once; never nil, as the API requires the list.
func csvNames(steps []*v1alpha1.Step) []string {
	names := []string{}
	for _, s := range steps {
		if s.Resource.Kind == kindCSV && !slices.Contains(names, s.Resource.Name) {
			names = append(names, s.Resource.Name)
		}
	}
	return names
}

func catalogsOf(steps []*v1alpha1.Step) []string {
	names := []string{}
	for _, s := range steps {
		if s.Resource.CatalogSource != "" {
			names = append(names, s.Resource.CatalogSource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tooLarge says which steps make the plan exceed the bounds of one object; empty
// when it fits.
func (c *creation) tooLarge() string {
	limit := or(c.in.Config.MaxStatusBytes, DefaultMaxStatusBytes)
	if steps := or(c.in.Config.MaxSteps, DefaultMaxSteps); len(c.steps) > steps {
		return fmt.Sprintf("the plan would have %d steps, more than %d", len(c.steps), steps)
	}
	type part struct {
		name string
		size int
	}
	var parts []part
	total := 0
	for _, s := range c.steps {
		data, _ := json.Marshal(s)
		parts = append(parts, part{s.Resource.Kind + " " + s.Resource.Name, len(data)})
		total += len(data)
	}
	for i := range c.lookups {
		data, _ := json.Marshal(&c.lookups[i])
		parts = append(parts, part{"bundle " + c.lookups[i].Identifier, len(data)})
		total += len(data)
	}
	if total <= limit {
		return ""
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.size, a.size) })
	var largest []string
	for _, p := range parts[:min(3, len(parts))] {
		largest = append(largest, fmt.Sprintf("%s (%d bytes)", p.name, p.size))
	}
	return fmt.Sprintf("the plan's steps take %d bytes, more than %d; the largest are %s", total, limit, strings.Join(largest, ", "))
}
