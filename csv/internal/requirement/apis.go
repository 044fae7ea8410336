// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// requiredAPIServices are the APIs of APIServices that others provide.
var requiredAPIServices = Requirement{
	Name: "RequiredAPIServices",
	Gather: func(r *read.Reads, o *Observed) {
		var names []string
		for _, d := range o.CSV.Spec.APIServiceDefinitions.Required {
			names = append(names, d.GetName())
		}
		o.APIServices = read.Named[*apiregistrationv1.APIService](r, "", names)
	},
	Unread:   func(o *Observed) string { return unless(o.APIServices.Complete, "APIServices") },
	Judge:    judgeRequiredAPIServices,
	Concerns: concernEvery[*apiregistrationv1.APIService],
}

// ownedAPIServices are the APIs that the operator itself serves: its strategy has to have the Deployment that does.
var ownedAPIServices = Requirement{Name: "OwnedAPIServices", Judge: judgeOwnedAPIServices}

// nativeAPIs are kinds of the cluster, spec.nativeAPIs.
var nativeAPIs = Requirement{Name: "NativeAPIs", Judge: judgeNativeAPIs}

func apiService(name string) v1alpha1.RequirementStatus {
	return v1alpha1.RequirementStatus{Group: apiregistrationv1.GroupName, Version: "v1", Kind: "APIService", Name: name}
}

// judgeRequiredAPIServices has one entry for each name that the CSV does not own.
func judgeRequiredAPIServices(o *Observed) []v1alpha1.RequirementStatus {
	definitions := &o.CSV.Spec.APIServiceDefinitions
	var report []v1alpha1.RequirementStatus
	for _, d := range definitions.Required {
		r := apiService(d.GetName())
		known := slices.ContainsFunc(definitions.Owned, func(own v1alpha1.APIServiceDescription) bool { return own.GetName() == r.Name }) ||
			slices.ContainsFunc(report, func(before v1alpha1.RequirementStatus) bool { return before.Name == r.Name })
		if known {
			continue
		}
		service, exists := owned.Find(o.APIServices.Items, "", r.Name)
		r.Status = notPresent
		switch {
		case o.ServedAPIs.Complete && !slices.Contains(o.ServedAPIs.Items, schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}):
			r.Message = fmt.Sprintf("kind %s is not served by %s", d.Kind, r.Name)
		case !exists:
			r.Message = fmt.Sprintf("APIService %s not found", r.Name)
		case !isAvailable(service):
			r.Message = fmt.Sprintf("APIService %s is not available", r.Name)
		default:
			r.Status, r.UUID = present, string(service.UID)
		}
		report = append(report, r)
	}
	slices.SortFunc(report, byName)
	return report
}

func isAvailable(service *apiregistrationv1.APIService) bool {
	return slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
		return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
	})
}

// judgeOwnedAPIServices has one entry for each group version. It can hold several kinds, of which the worst counts.
func judgeOwnedAPIServices(o *Observed) []v1alpha1.RequirementStatus {
	served, declared := map[string]bool{}, owned.Deployments(o.CSV) // by name
	for _, d := range o.CSV.Spec.APIServiceDefinitions.Owned {
		before, known := served[d.GetName()]
		served[d.GetName()] = declared.Has(d.DeploymentName) && (before || !known)
	}
	var report []v1alpha1.RequirementStatus
	for name, found := range served {
		r := apiService(name)
		if r.Status = deploymentFound; !found {
			r.Status = deploymentNotFound
		}
		report = append(report, r)
	}
	slices.SortFunc(report, byName)
	return report
}

// judgeNativeAPIs has the entries in the order of the spec.
func judgeNativeAPIs(o *Observed) []v1alpha1.RequirementStatus {
	var report []v1alpha1.RequirementStatus
	for _, api := range o.CSV.Spec.NativeAPIs {
		gvk := schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind}
		r := v1alpha1.RequirementStatus{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: gvk.Version + "." + gvk.Group,
			Status: notPresent, Message: "Native API does not exist",
		}
		switch {
		case o.ServedAPIs.Complete && slices.Contains(o.ServedAPIs.Items, gvk), !o.ServedAPIs.Complete && slices.Contains(kubernetesKinds, gvk):
			r.Status, r.Message = present, "Native API exists"
		case !o.ServedAPIs.Complete:
			r.Message = fmt.Sprintf("API discovery for %s failed", gvk.GroupVersion())
		}
		report = append(report, r)
	}
	return report
}

// kubernetesKinds are those that every cluster which runs this library serves, because the library itself works with
// them.
var kubernetesKinds = func() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, k := range olmcore.Kinds() {
		switch k.Group {
		case "", "apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io":
			kinds = append(kinds, k.GroupVersionKind)
		}
	}
	return kinds
}()
