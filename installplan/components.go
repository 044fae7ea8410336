// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// labelComponents puts the component labels on an object that is made: those of the
// Subscriptions whose versions it is made for, and on a Subscription its own package's.
// They go into this write, so that no other one has to bring them while package csv is
// at work on the same object; what exists already is package subscription's.
func (e *evaluation) labelComponents(t *target, want map[string]any, labels map[string]any) {
	add := func(pkg string) {
		if key, err := olmcore.ComponentLabelKey(pkg, e.plan.Namespace); err == nil && pkg != "" {
			labels[key] = ""
		}
	}
	if t.kind.gvk.Kind == kindSubscription {
		spec, _ := want["spec"].(map[string]any)
		pkg, _ := spec["name"].(string)
		add(pkg)
		return
	}
	versions := t.operators()
	if t.kind.gvk.Kind == kindCSV {
		versions = []string{t.key.Name}
	}
	for _, version := range versions {
		for _, s := range e.d.in.Subscriptions {
			if s != nil && s.Spec != nil && s.Status.CurrentCSV == version {
				add(s.Spec.Package)
			}
		}
		add(e.dependency(version))
	}
}

// dependency returns the package of a version whose Subscription the plan makes, empty
// for others.
func (e *evaluation) dependency(version string) string {
	for _, s := range e.plan.Status.Plan {
		if s == nil || s.Resource.Kind != v1alpha1.SubscriptionKind || s.Resolving != version {
			continue
		}
		if m, err := parseManifest(s.Resource.Manifest); err == nil {
			spec, _ := m.object["spec"].(map[string]any)
			pkg, _ := spec["name"].(string)
			return pkg
		}
	}
	return ""
}
