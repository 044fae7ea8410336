// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func apiServiceRequirement(d *v1alpha1.APIServiceDescription) v1alpha1.RequirementStatus {
	return v1alpha1.RequirementStatus{
		Group: apiregistrationv1.GroupName, Version: "v1", Kind: "APIService", Name: d.Version + "." + d.Group,
	}
}

func requiredAPIServices(in *Input) []v1alpha1.RequirementStatus {
	definitions := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
	var all []v1alpha1.RequirementStatus
	for i := range definitions.Required {
		d := &definitions.Required[i]
		r := apiServiceRequirement(d)
		sameName := func(s v1alpha1.RequirementStatus) bool { return s.Name == r.Name }
		owned := slices.ContainsFunc(definitions.Owned, func(o v1alpha1.APIServiceDescription) bool { return o.GetName() == r.Name })
		if !owned && !slices.ContainsFunc(all, sameName) {
			r.Status, r.Message, r.UUID = judgeAPIService(in, d, r.Name)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, byName)
	return all
}

func judgeAPIService(in *Input, d *v1alpha1.APIServiceDescription, name string) (v1alpha1.StatusReason, string, string) {
	gvk := schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}
	if in.ServedAPIs.Complete && !slices.Contains(in.ServedAPIs.Items, gvk) {
		return reqNotPresent, fmt.Sprintf("kind %s is not served by %s", d.Kind, name), ""
	}
	i := indexNamed(in.APIServices.Items, "", name)
	if i < 0 {
		return reqNotPresent, fmt.Sprintf("APIService %s not found", name), ""
	}
	service := in.APIServices.Items[i]
	for _, c := range service.Status.Conditions {
		if c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue {
			return reqPresent, "", string(service.UID)
		}
	}
	return reqNotPresent, fmt.Sprintf("APIService %s is not available", name), ""
}

func ownedAPIServices(in *Input) []v1alpha1.RequirementStatus {
	spec := &in.ClusterServiceVersion.Spec
	var all []v1alpha1.RequirementStatus
	for i := range spec.APIServiceDefinitions.Owned {
		d := &spec.APIServiceDefinitions.Owned[i]
		r := apiServiceRequirement(d)
		r.Status = reqDeploymentNotFound
		if declaresDeployment(in.ClusterServiceVersion, d.DeploymentName) {
			r.Status = reqDeploymentFound
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.RequirementStatus) int {
		return cmp.Or(byName(a, b), strings.Compare(string(a.Status), string(b.Status)))
	})
	// One group version can hold several kinds; the worst of them counts.
	worst := all[:0]
	for _, r := range all {
		if n := len(worst); n > 0 && worst[n-1].Name == r.Name {
			worst[n-1] = r
			continue
		}
		worst = append(worst, r)
	}
	return worst
}

func declaresDeployment(c *version, name string) bool {
	specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		if specs[i].Name == name {
			return true
		}
	}
	return false
}

func nativeAPIs(in *Input) []v1alpha1.RequirementStatus {
	var all []v1alpha1.RequirementStatus
	for _, api := range in.ClusterServiceVersion.Spec.NativeAPIs {
		gvk := schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind}
		r := v1alpha1.RequirementStatus{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: gvk.Version + "." + gvk.Group}
		switch {
		case nativeServed(in, gvk):
			r.Status, r.Message = reqPresent, "Native API exists"
		case in.ServedAPIs.Complete:
			r.Status, r.Message = reqNotPresent, "Native API does not exist"
		default:
			r.Status, r.Message = reqNotPresent, fmt.Sprintf("API discovery for %s failed", gvk.GroupVersion())
		}
		all = append(all, r)
	}
	return all
}

func nativeServed(in *Input, gvk schema.GroupVersionKind) bool {
	if in.ServedAPIs.Complete {
		return slices.Contains(in.ServedAPIs.Items, gvk)
	}
	return isKubernetesKind(gvk)
}

// isKubernetesKind reports whether a kind is one that every cluster which runs
// this library serves, because the library itself works with it.
func isKubernetesKind(gvk schema.GroupVersionKind) bool {
	if gvk.Version != "v1" {
		return false
	}
	switch gvk.Group {
	case "":
		switch gvk.Kind {
		case "ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount":
			return true
		}
	case "apps":
		return gvk.Kind == "Deployment" || gvk.Kind == "ReplicaSet"
	case "batch":
		return gvk.Kind == "Job"
	case "rbac.authorization.k8s.io":
		switch gvk.Kind {
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			return true
		}
	case "apiextensions.k8s.io":
		return gvk.Kind == "CustomResourceDefinition"
	}
	return false
}
