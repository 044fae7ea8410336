// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Ignore names what a law does not count. With a Path it is a field in which the end states of two runs may differ.
// Without one it is whole objects: their states are not compared, what controllers do to them is done and not counted,
// and Safety does not look at them.
//
//	invariant.Ignore{Kind: schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}}    // heartbeats
//	invariant.Ignore{Kind: podKind, Path: []string{"spec", "nodeName"}}                      // where a Pod landed
//	invariant.Ignore{Path: []string{"status", "conditions"}, Unordered: true}                // an order is chance
//	invariant.CreatedOrPresent()                                                             // a step's outcome is
type Ignore struct {
	// Kind, Namespace and Name select objects; each that is empty selects all. Name is a pattern of path.Match, as
	// "lease-*".
	Kind            schema.GroupKind
	Namespace, Name string
	// Path leads to a field, key by key; "*" is every entry of a list or map. A field that is not there is no error.
	Path []string
	// Equal are texts at Path that count as the same, as patterns of path.Match, where "" is also a field that is not
	// there. No Equal means that whatever stands there does not count.
	Equal []string
	// Unordered: of the list at Path only the order does not count.
	Unordered bool
}

// CreatedOrPresent ignores whether a step of an InstallPlan made its object or found it there, which cannot be told
// after the write of the plan's status was lost.
func CreatedOrPresent() Ignore {
	return Ignore{
		Kind:  schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.InstallPlanKind},
		Path:  []string{"status", "plan", "*", "status"},
		Equal: []string{string(v1alpha1.StepStatusCreated), string(v1alpha1.StepStatusPresent)},
	}
}

// ignored are all that a law does not count.
type ignored []Ignore

func (all ignored) validate() error {
	for i, g := range all {
		for _, pattern := range append([]string{g.Name}, g.Equal...) {
			if _, err := path.Match(pattern, ""); err != nil {
				return &olmcore.InputError{Field: fmt.Sprintf("Ignore[%d]", i), Problem: fmt.Sprintf("has no pattern of path.Match: %q", pattern)}
			}
		}
		if len(g.Path) == 0 && (g.Unordered || len(g.Equal) > 0) {
			return &olmcore.InputError{Field: fmt.Sprintf("Ignore[%d].Path", i), Problem: "is empty: Equal and Unordered are about a field"}
		}
	}
	return nil
}

func (g Ignore) selects(key olmcore.Key) bool {
	named, _ := path.Match(g.Name, key.Name)
	return (g.Kind.Empty() || g.Kind == schema.GroupKind{Group: key.Group, Kind: key.Kind}) &&
		(g.Namespace == "" || g.Namespace == key.Namespace) && (g.Name == "" || named)
}

// whole reports whether an object does not count at all.
func (all ignored) whole(key olmcore.Key) bool {
	return slices.ContainsFunc(all, func(g Ignore) bool { return len(g.Path) == 0 && g.selects(key) })
}

// counted returns those of some actions that count.
func (all ignored) counted(actions []olmcore.Action) []olmcore.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a olmcore.Action) bool {
		_, target, _ := a.Describe()
		return all.whole(target.Key())
	})
}

// fields takes from an object what does not count.
func (all ignored) fields(key olmcore.Key, object map[string]any) {
	for _, g := range all {
		if len(g.Path) > 0 && g.selects(key) {
			g.cut(object, g.Path)
		}
	}
}

// cut returns a value as it counts; keep is false when it does not.
func (g Ignore) cut(value any, steps []string) (counts any, keep bool) {
	if len(steps) == 0 {
		return g.end(value)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, entry := range v {
			if steps[0] != "*" && steps[0] != key {
				continue
			}
			if next, keep := g.cut(entry, steps[1:]); keep {
				v[key] = next
			} else {
				delete(v, key)
			}
		}
	case []any:
		if steps[0] != "*" {
			return v, true
		}
		rest := v[:0]
		for _, entry := range v {
			if next, keep := g.cut(entry, steps[1:]); keep {
				rest = append(rest, next)
			}
		}
		return rest, true
	}
	return value, true
}

func (g Ignore) end(value any) (counts any, keep bool) {
	switch v := value.(type) {
	case []any:
		if g.Unordered {
			slices.SortFunc(v, func(a, b any) int { return strings.Compare(text(a), text(b)) })
			return v, true
		}
	case string:
		if slices.ContainsFunc(g.Equal, func(pattern string) bool { same, _ := path.Match(pattern, v); return same }) {
			return g.Equal[0], !slices.Contains(g.Equal, "")
		}
	}
	return value, g.Unordered || len(g.Equal) > 0
}

func text(v any) string {
	data, _ := json.Marshal(v) // of what came from JSON
	return string(data)
}
