// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requirementsMet gives the verdict of requirements without the report: that is
// what a Succeeded CSV costs on every call.
func requirementsMet(in *Input) bool {
	return kubernetesMet(in.ClusterServiceVersion.Spec.MinKubeVersion, in.KubernetesVersion) &&
		crdsMet(in) && apisMet(in) && permissionsMet(in)
}

func crdsMet(in *Input) bool {
	definitions := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
	for i := range definitions.Owned {
		if !crdMet(in, &definitions.Owned[i], i, true) {
			return false
		}
	}
	for i := range definitions.Required {
		d := &definitions.Required[i]
		if !describes(definitions.Owned, d.Name) && !crdMet(in, d, len(definitions.Owned)+i, false) {
			return false
		}
	}
	return true
}

func describes(list []v1alpha1.CRDDescription, name string) bool {
	for i := range list {
		if list[i].Name == name {
			return true
		}
	}
	return false
}

// crdMet looks at position at first: Gather lists the definitions in the order
// of the spec.
func crdMet(in *Input, d *v1alpha1.CRDDescription, at int, owned bool) bool {
	items := in.CustomResourceDefinitions.Items
	if at >= len(items) || items[at].Name != d.Name {
		if at = indexNamed(items, "", d.Name); at < 0 {
			return false
		}
	}
	crd := items[at]
	return crd.DeletionTimestamp == nil && serves(crd, d.Version) && isEstablished(crd) &&
		!(owned && cameBefore(in, crd))
}

func cameBefore(in *Input, crd *apiextensionsv1.CustomResourceDefinition) bool {
	self := in.ClusterServiceVersion
	noted := false
	for key, value := range crd.Annotations {
		if strings.HasPrefix(key, alongsidePrefix) {
			namespace, name, _ := strings.Cut(value, "/")
			if name == self.Name && namespace == self.Namespace {
				return false
			}
			noted = true
		}
	}
	return noted && len(installedAlongside(in, crd)) > 0
}

func apisMet(in *Input) bool {
	spec := &in.ClusterServiceVersion.Spec
	for i := range spec.APIServiceDefinitions.Owned {
		if !declaresDeployment(in.ClusterServiceVersion, spec.APIServiceDefinitions.Owned[i].DeploymentName) {
			return false
		}
	}
	for _, api := range spec.NativeAPIs {
		if !nativeServed(in, schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind}) {
			return false
		}
	}
	return len(spec.APIServiceDefinitions.Required) == 0 ||
		!slices.ContainsFunc(requiredAPIServices(in), func(r v1alpha1.RequirementStatus) bool { return !isMet(r.Status) })
}

// reportIsCurrent reports whether a stored report can be that of a CSV whose
// requirements are met: it may not show anything unmet.
func reportIsCurrent(s *v1alpha1.ClusterServiceVersionStatus) bool {
	for i := range s.RequirementStatus {
		if !isMet(s.RequirementStatus[i].Status) {
			return false
		}
	}
	return true
}
