// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

type csvsByName map[string]*v1alpha1.ClusterServiceVersion

// versions contains the ClusterServiceVersions of a namespace. A Subscription follows the versions that its
// status.currentCSV and status.installedCSV name.
type versions struct {
	csvs      csvsByName
	followers map[string]int // the number of Subscriptions that follow a version
	// unfollowed contains the CSVs that no Subscription follows, except copied CSVs and those that are being deleted.
	unfollowed csvsByName
	// successors contains unfollowed CSVs by the name of the CSV that they replace. Of several, the first one by name
	// counts.
	successors csvsByName
	replaced   map[string]bool // the names of the CSVs that another one, which is no copied CSV, replaces
}

func versionsOf(csvs csvsByName, subs []*v1alpha1.Subscription) versions {
	v := versions{
		csvs: csvs, followers: map[string]int{}, unfollowed: csvsByName{}, successors: csvsByName{}, replaced: map[string]bool{},
	}
	for _, s := range subs {
		for _, csv := range followedBy(s) {
			v.followers[csv]++
		}
	}
	for name, c := range csvs {
		v.replaced[c.Spec.Replaces] = v.replaced[c.Spec.Replaces] || !c.IsCopied()
		if v.followers[name] > 0 || c.DeletionTimestamp != nil || c.IsCopied() {
			continue
		}
		v.unfollowed[name] = c
		first := v.successors[c.Spec.Replaces]
		if c.Spec.Replaces != "" && (first == nil || name < first.Name) {
			v.successors[c.Spec.Replaces] = c
		}
	}
	return v
}

// followedBy returns the versions that a Subscription follows, each once.
func followedBy(s *v1alpha1.Subscription) []string {
	if s.Status.CurrentCSV == s.Status.InstalledCSV {
		return []string{s.Status.CurrentCSV}
	}
	return []string{s.Status.CurrentCSV, s.Status.InstalledCSV}
}

// isOfPackage reports whether a CSV is a version of a package.
func isOfPackage(c *v1alpha1.ClusterServiceVersion, pkg string) bool {
	return slices.Contains(olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties]), pkg)
}

// isUnfollowed reports whether a version of a package exists that no Subscription follows. A version that is being
// replaced does not count, because it will be deleted.
func (v *versions) isUnfollowed(name, pkg string) bool {
	c := v.unfollowed[name]
	return c != nil && !v.replaced[name] && isOfPackage(c, pkg)
}

// canBeFollowed reports whether a Subscription can follow a version: the version stays, and no other Subscription
// follows it.
func (v *versions) canBeFollowed(c *v1alpha1.ClusterServiceVersion, s *v1alpha1.Subscription) bool {
	isReplaced := c.Status.Phase == v1alpha1.CSVPhaseReplacing || c.Status.Phase == v1alpha1.CSVPhaseDeleting || v.replaced[c.Name]
	if c.IsCopied() || c.DeletionTimestamp != nil || isReplaced {
		return false
	}
	others := v.followers[c.Name]
	if slices.Contains(followedBy(s), c.Name) {
		others--
	}
	return others == 0
}

// orSuccessor returns the name of a CSV, or of the CSV that replaced it, or "" if neither exists.
func (v *versions) orSuccessor(csv string) string {
	if csv == "" {
		return ""
	}
	c := v.csvs[csv]
	if c == nil {
		c = v.successors[csv]
	}
	if c == nil || c.IsCopied() {
		return ""
	}
	return c.Name
}

// predecessor returns the name of the CSV that another one replaces, or "" if it does not exist or will not stay.
func (v *versions) predecessor(c *v1alpha1.ClusterServiceVersion) string {
	old := v.csvs[c.Spec.Replaces]
	if old == nil || old.IsCopied() || old.DeletionTimestamp != nil {
		return ""
	}
	return old.Name
}
