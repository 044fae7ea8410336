// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/olmcore/olm/olmcore"
)

func (v *view) sortCSVs(in *Input) (err error) {
	sorted, last := true, ""
	for i, c := range in.ClusterServiceVersions {
		if c == nil {
			return badItem("ClusterServiceVersions", i, "is nil")
		}
		if c.Name == "" || c.Namespace != in.Namespace {
			return badMeta("ClusterServiceVersions", i, c.Name, c.Namespace, in.Namespace)
		}
		sorted = sorted && (i == 0 || last < c.Name)
		last = c.Name
	}
	if v.csvs = in.ClusterServiceVersions; sorted {
		return nil
	}
	v.csvs, err = sortedByName("ClusterServiceVersions", in.ClusterServiceVersions)
	return err
}

// sortedByName returns a copy of a list in order.
func sortedByName[T olmcore.Object](field string, list []T) ([]T, error) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i := range list[1:] {
		if list[i].GetName() == list[i+1].GetName() {
			return nil, &olmcore.InputError{Field: field, Problem: "holds " + list[i].GetName() + " twice"}
		}
	}
	return list, nil
}

func badItem(field string, i int, problem string) error {
	return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: problem}
}

func badMeta(field string, i int, name, namespace, want string) error {
	if name == "" {
		return badItem(field, i, "has no name")
	}
	return badItem(field, i, fmt.Sprintf("is in namespace %q, not %q", namespace, want))
}

// The searches are written out: a generic one calls through a dictionary, and
// they are most of what a converged Subscription costs.

func (v *view) plan(name string) *v1alpha1.InstallPlan {
	if len(v.plans) <= 8 { // the usual number: comparing for equality is quicker than for order
		for _, p := range v.plans {
			if p.Name == name {
				return p
			}
		}
		return nil
	}
	low, high := 0, len(v.plans)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if v.plans[mid].Name < name {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(v.plans) && v.plans[low].Name == name {
		return v.plans[low]
	}
	return nil
}

func (v *view) csv(name string) *v1alpha1.ClusterServiceVersion {
	// Subscriptions and CSVs are often named alike, so that the next one asked for
	// follows the last one found.
	for i := v.lastCSV; i < min(v.lastCSV+2, len(v.csvs)); i++ {
		if v.csvs[i].Name == name {
			v.lastCSV = i
			return v.csvs[i]
		}
	}
	low, high := 0, len(v.csvs)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if v.csvs[mid].Name < name {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(v.csvs) && v.csvs[low].Name == name {
		v.lastCSV = low
		return v.csvs[low]
	}
	return nil
}

func (v *view) subscription(name string) *v1alpha1.Subscription {
	i, found := slices.BinarySearchFunc(v.subs, name, func(s *v1alpha1.Subscription, name string) int {
		return strings.Compare(s.Name, name)
	})
	if !found {
		return nil
	}
	return v.subs[i]
}

// isCopied reports whether a CSV is a copy of another namespace's: any of the
// three marks is enough, because old copies lack some of them.
func isCopied(c *v1alpha1.ClusterServiceVersion) bool {
	if c.Status.Reason == v1alpha1.CSVReasonCopied {
		return true
	}
	if _, copied := c.Labels[olmcore.LabelCopiedFrom]; copied {
		return true
	}
	operatorNamespace, annotated := c.Annotations["olm.operatorNamespace"]
	return annotated && operatorNamespace != c.Namespace
}

// inOrder returns the window with the versions of each plan in the order in which they
// were written, which the resourceVersions tell. What cannot be compared stays where it
// arrived; times order nothing, because clocks are set back.
func inOrder(list []Observation) []Observation {
	var slots []int
	for i := range list {
		if _, ok := compareVersions(list[i].Plan.ResourceVersion, list[i].Plan.ResourceVersion); ok {
			slots = append(slots, i)
		}
	}
	slices.SortStableFunc(slots, func(i, j int) int { return compareIdentities(list[i].Plan, list[j].Plan) })
	out := slices.Clone(list)
	for start := 0; start < len(slots); {
		end := start + 1
		for end < len(slots) && compareIdentities(list[slots[start]].Plan, list[slots[end]].Plan) == 0 {
			end++
		}
		versions := make([]Observation, 0, end-start)
		for _, i := range slots[start:end] {
			versions = append(versions, list[i])
		}
		slices.SortStableFunc(versions, func(a, b Observation) int {
			order, _ := compareVersions(a.Plan.ResourceVersion, b.Plan.ResourceVersion)
			return order
		})
		for i, o := range versions {
			out[slots[start+i]] = o
		}
		start = end
	}
	return out
}

// compareIdentities is 0 for two versions of one plan.
func compareIdentities(a, b *v1alpha1.InstallPlan) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
}

// compareVersions compares two resourceVersions of InstallPlans; ok is false where that
// cannot be done.
func compareVersions(a, b string) (order int, ok bool) {
	if a == "" || b == "" {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// isOlderVersion reports whether a resourceVersion is older than another one for certain.
func isOlderVersion(a, b string) bool {
	order, ok := compareVersions(a, b)
	return ok && order < 0
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
