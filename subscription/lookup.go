// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

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

// sortedObservations returns the window, oldest first. What ties is put into some
// fixed order, so that the order of the list never matters.
func sortedObservations(list []Observation) []Observation {
	order := func(a, b Observation) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Plan.Name, b.Plan.Name), strings.Compare(string(a.Plan.UID), string(b.Plan.UID)),
			compareVersions(a.Plan.ResourceVersion, b.Plan.ResourceVersion), cmp.Compare(a.Plan.Generation, b.Plan.Generation),
			installedAt(a.Plan).Compare(installedAt(b.Plan)), strings.Compare(string(a.Plan.Status.Phase), string(b.Plan.Status.Phase)),
			compareBools(a.Deleted, b.Deleted))
	}
	if slices.IsSortedFunc(list, order) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, order)
	return list
}

// compareVersions orders resourceVersions as the numbers that they are.
func compareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
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
