// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
)

// customResourceDefinitions are the CRDs that a CSV owns or requires.
var customResourceDefinitions = requirement{
	name: "CustomResourceDefinitions",
	gather: func(r *read.Reads, in *Input) {
		var names []string
		for _, d := range slices.Concat(in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned, in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Required) {
			names = append(names, d.Name)
		}
		in.CustomResourceDefinitions = read.Named[*apiextensionsv1.CustomResourceDefinition](r, "", names)
	},
	unread: func(in *Input) []string {
		return read.Missing(in.CustomResourceDefinitions, "CustomResourceDefinitions")
	},
	judge:    judgeDefinitions,
	concerns: concernEvery[*apiextensionsv1.CustomResourceDefinition],
	// The CRD of an upgrade is applied before the new version is installed, and may have dropped the old one.
	takenBy: func(in *Input, _ *version, r v1alpha1.RequirementStatus) bool {
		return strings.HasPrefix(r.Message, versionNotServed) && owned.Describes(in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned, r.Name)
	},
}

const versionNotServed = "CRD version not served"

// judgeDefinitions has one entry for each name, sorted. Of a CRD that is owned and required the owned descriptions
// count.
func judgeDefinitions(in *Input) []v1alpha1.RequirementStatus {
	definitions := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
	versions := map[string][]string{} // by CRD
	isOwned := map[string]bool{}
	for _, d := range definitions.Owned {
		versions[d.Name], isOwned[d.Name] = append(versions[d.Name], d.Version), true
	}
	for _, d := range definitions.Required {
		if !isOwned[d.Name] {
			versions[d.Name] = append(versions[d.Name], d.Version)
		}
	}
	found := owned.ByName(in.CustomResourceDefinitions.Items, "")
	report := make([]v1alpha1.RequirementStatus, 0, len(versions))
	for name, described := range versions {
		r := v1alpha1.RequirementStatus{Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Name: name}
		crd := found[name]
		r.Status, r.Message = judgeDefinition(in, crd, described, isOwned[name])
		if r.Status == present {
			r.UUID = string(crd.UID)
		}
		report = append(report, r)
	}
	slices.SortFunc(report, byName)
	return report
}

func judgeDefinition(in *Input, crd *apiextensionsv1.CustomResourceDefinition, described []string, isOwned bool) (v1alpha1.StatusReason, string) {
	switch {
	case crd == nil:
		return notPresent, "CRD is not present"
	case crd.DeletionTimestamp != nil:
		return notAvailable, "CRD is being deleted"
	}
	if others := installedAlongside(in, crd); isOwned && len(others) > 0 {
		return notSatisfied, "CRD installed alongside other CSV(s): " + strings.Join(others, ", ")
	}
	unserved := slices.DeleteFunc(slices.Clone(described), func(version string) bool { return serves(crd, version) })
	slices.Sort(unserved)
	switch {
	case len(unserved) > 0 && len(described) > 1:
		return notPresent, versionNotServed + ": " + strings.Join(slices.Compact(unserved), ", ")
	case len(unserved) > 0:
		return notPresent, versionNotServed
	case !isTrue(crd, apiextensionsv1.Established) || !isTrue(crd, apiextensionsv1.NamesAccepted):
		return notAvailable, "CRD is present but the Established condition is False (not available)"
	}
	return present, "CRD is present and Established condition is true"
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
}

func isTrue(crd *apiextensionsv1.CustomResourceDefinition, condition apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == condition && c.Status == apiextensionsv1.ConditionTrue
	})
}

// installedAlongside returns the older versions of this CSV that a CRD came with, as long as it did not come with this
// one too: the CRD of the new version has not been applied yet. They are those that spec.replaces leads to through CSVs
// that the CRD notes and that exist.
func installedAlongside(in *Input, crd *apiextensionsv1.CustomResourceDefinition) []string {
	noted := map[string]*version{}
	for _, key := range owned.Alongside(crd) {
		if key.Namespace != in.ClusterServiceVersion.Namespace {
			continue
		}
		if key.Name == in.ClusterServiceVersion.Name {
			return nil
		}
		if other, ok := owned.Find(in.Neighbours.Items, key.Namespace, key.Name); ok && !other.IsCopied() {
			noted[key.Name] = other
		}
	}
	var reached []string
	for other := noted[in.ClusterServiceVersion.Spec.Replaces]; other != nil && !slices.Contains(reached, other.Name); other = noted[other.Spec.Replaces] {
		reached = append(reached, other.Name)
	}
	slices.Sort(reached)
	return reached
}
