// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/internal/simulation"
)

// Candidates returns the versions that the Subscription has had, newest first, as its versions and the plans of its
// namespace tell: what to ask Of about. The error is one for which apierrors.IsNotFound holds when it is not among the
// objects.
func Candidates(in Input) ([]string, error) {
	w, err := worldOf(simulation.StateOf(in.Objects), in.Namespace, in.Subscription)
	if err != nil {
		return nil, err
	}
	all := []string{}
	add := func(name string) {
		if name != "" && !w.others[name] && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	head := ""
	for i, c := range w.line("") {
		if i == 0 {
			head = c.Name
		} else {
			add(c.Name)
		}
		add(c.Spec.Replaces)
	}
	for _, name := range w.plannedVersions() {
		if name != head {
			add(name)
		}
	}
	return all, nil
}

// plannedVersions returns the versions of the package that Complete plans installed, those of the newest plan first.
func (w world) plannedVersions() (names []string) {
	plans := slices.SortedFunc(maps.Values(w.plans), func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, p := range plans {
		if p.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
			continue
		}
		for _, s := range p.Status.Plan {
			if s != nil && s.Resource.Kind == v1alpha1.ClusterServiceVersionKind && isOfPackage(s.Resource.Manifest, w.sub.Spec.Package) {
				names = append(names, s.Resource.Name)
			}
		}
	}
	return names
}

// isOfPackage reports whether a manifest is that of a version of a package.
func isOfPackage(manifest, name string) bool {
	var version v1alpha1.ClusterServiceVersion
	err := json.Unmarshal([]byte(manifest), &version)
	return err == nil && slices.Contains(olmcore.PackagesOf(version.Annotations[olmcore.AnnotationProperties]), name)
}
