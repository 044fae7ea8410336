// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/olmcore"
)

func crdRequirements(in *Input) []v1alpha1.RequirementStatus {
	definitions := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
	var all []v1alpha1.RequirementStatus
	add := func(list []v1alpha1.CRDDescription, owned bool) {
		for i := range list {
			if slices.ContainsFunc(all, func(r v1alpha1.RequirementStatus) bool { return r.Name == list[i].Name }) {
				continue
			}
			all = append(all, crdRequirement(in, list, i, owned))
		}
	}
	add(definitions.Owned, true)
	add(definitions.Required, false)
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b v1alpha1.RequirementStatus) int { return strings.Compare(a.Name, b.Name) }

// crdRequirement judges all descriptions in list that have the name of entry i.
func crdRequirement(in *Input, list []v1alpha1.CRDDescription, i int, owned bool) v1alpha1.RequirementStatus {
	r := v1alpha1.RequirementStatus{
		Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Name: list[i].Name,
	}
	at := indexNamed(in.CustomResourceDefinitions.Items, "", r.Name)
	if at < 0 {
		r.Status, r.Message = reqNotPresent, "CRD is not present"
		return r
	}
	crd := in.CustomResourceDefinitions.Items[at]
	if crd.DeletionTimestamp != nil {
		r.Status, r.Message = reqNotAvailable, "CRD is being deleted"
		return r
	}
	if others := installedAlongside(in, crd); owned && len(others) > 0 {
		r.Status, r.Message = reqNotSatisfied, "CRD installed alongside other CSV(s): "+strings.Join(others, ", ")
		return r
	}
	var unserved []string
	described := 0
	for j := range list {
		if list[j].Name != r.Name {
			continue
		}
		described++
		if !serves(crd, list[j].Version) && !slices.Contains(unserved, list[j].Version) {
			unserved = append(unserved, list[j].Version)
		}
	}
	switch {
	case len(unserved) > 0 && described > 1:
		slices.Sort(unserved)
		r.Status, r.Message = reqNotPresent, crdVersionNotServed+": "+strings.Join(unserved, ", ")
	case len(unserved) > 0:
		r.Status, r.Message = reqNotPresent, crdVersionNotServed
	case !isEstablished(crd):
		r.Status, r.Message = reqNotAvailable, "CRD is present but the Established condition is False (not available)"
	default:
		r.Status, r.Message, r.UUID = reqPresent, "CRD is present and Established condition is true", string(crd.UID)
	}
	return r
}

// kindMismatches names the descriptions whose CRD has another kind. They count
// all the same: OLM compares name and version alone.
func (m *machine) kindMismatches() []olmcore.Diagnostic {
	var said []olmcore.Diagnostic
	check := func(list []v1alpha1.CRDDescription, path string) {
		for i, d := range list {
			at := indexNamed(m.in.CustomResourceDefinitions.Items, "", d.Name)
			if at < 0 || m.in.CustomResourceDefinitions.Items[at].Spec.Names.Kind == d.Kind {
				continue
			}
			said = append(said, olmcore.Diagnostic{
				Severity: olmcore.Warning, Reason: ReasonCRDKindMismatch, Target: olmcore.RefOf(m.c()), Path: fmt.Sprintf("spec.customresourcedefinitions.%s[%d].kind", path, i),
				Message: fmt.Sprintf("the kind of CRD %s is %s, not %s", d.Name, m.in.CustomResourceDefinitions.Items[at].Spec.Names.Kind, d.Kind),
			})
		}
	}
	check(m.c().Spec.CustomResourceDefinitions.Owned, "owned")
	check(m.c().Spec.CustomResourceDefinitions.Required, "required")
	return said
}

const crdVersionNotServed = "CRD version not served"

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == version && v.Served {
			return true
		}
	}
	return false
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	established, accepted := false, false
	for i := range crd.Status.Conditions {
		c := &crd.Status.Conditions[i]
		established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		accepted = accepted || c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionTrue
	}
	return established && accepted
}

const alongsidePrefix = "operatorframework.io/installed-alongside-"

// cameWith reports whether an InstallPlan recorded on a CRD that it came with this
// very CSV. CRDs are the administrator's: what they carry is believed, other than
// what a CSV says about itself.
func cameWith(c *version, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for key, value := range crd.Annotations {
		if strings.HasPrefix(key, alongsidePrefix) && value == c.Namespace+"/"+c.Name {
			return true
		}
	}
	return incarnationOf(c).Owns(crd.Labels)
}

// installedAlongside returns the older versions of this CSV that a CRD came
// with, as long as it did not come with this one too: the new version's CRD has
// not been applied yet.
func installedAlongside(in *Input, crd *apiextensionsv1.CustomResourceDefinition) []string {
	self := in.ClusterServiceVersion
	var kept []string
	for key, value := range crd.Annotations {
		if !strings.HasPrefix(key, alongsidePrefix) {
			continue
		}
		namespace, name, ok := strings.Cut(value, "/")
		switch {
		case !ok || namespace != self.Namespace || strings.Contains(name, "/"):
		case name == self.Name:
			return nil
		case indexNamed(in.Neighbours.Items, self.Namespace, name) >= 0:
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	return ancestorsAmong(in, kept)
}

// ancestorsAmong walks from the CSV along spec.replaces through kept names.
func ancestorsAmong(in *Input, kept []string) []string {
	var reached []string
	for name := in.ClusterServiceVersion.Spec.Replaces; slices.Contains(kept, name) && !slices.Contains(reached, name); {
		reached = append(reached, name)
		i := indexNamed(in.Neighbours.Items, in.ClusterServiceVersion.Namespace, name)
		if isCopied(in.Neighbours.Items[i]) {
			reached = reached[:len(reached)-1]
			break
		}
		name = in.Neighbours.Items[i].Spec.Replaces
	}
	slices.Sort(reached)
	return reached
}
