// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// api is a group version that a CSV owns. One APIService serves all its kinds.
type api struct {
	name, group, version string
	deployment           string
	port                 int32
	kinds                []schema.GroupVersionKind
	live                 *apiregistrationv1.APIService // nil if it does not exist
}

// service returns the name of the Service that serves the API.
func (a *api) service() string { return ServiceName(a.deployment) }

// apisOf returns the group versions that a CSV owns, sorted by name. If a group version is described several times, the
// first description counts.
func apisOf(c *model.CSV, live []*apiregistrationv1.APIService) []*api {
	found, known := model.IndexByName(live, ""), map[string]*api{}
	for i := range c.Spec.APIServiceDefinitions.Owned {
		d := &c.Spec.APIServiceDefinitions.Owned[i]
		name := d.GetName()
		a := known[name]
		if a == nil {
			a = &api{
				name: name, group: d.Group, version: d.Version,
				deployment: d.DeploymentName, port: port(d.ContainerPort), live: found[name],
			}
			known[name] = a
		}
		a.kinds = append(a.kinds, schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind})
	}
	return slices.SortedFunc(maps.Values(known), func(a, b *api) int { return strings.Compare(a.name, b.name) })
}

// apis returns the owned group versions whose description names a Deployment. All other names are derived from it. The
// zero Source has none.
func (s Clients) apis() []*api {
	if s.CSV == nil {
		return nil
	}
	return slices.DeleteFunc(apisOf(s.CSV, s.APIServices), func(a *api) bool { return a.deployment == "" })
}

// ProblemOfAPIServices returns a message about the first invalid description of an owned APIService, or an empty
// string if all are valid. A description without a Deployment is not reported here, because it is an unmet
// requirement.
//
// Differs: OLM does not check the descriptions, and the API server rejects the APIService. This library checks them
// before it writes.
func ProblemOfAPIServices(c *model.CSV) string {
	first := map[string]*v1alpha1.APIServiceDescription{}
	for i := range c.Spec.APIServiceDefinitions.Owned {
		d := &c.Spec.APIServiceDefinitions.Owned[i]
		if problem := syntaxProblem(i, d); problem != "" {
			return problem
		}
		before, known := first[d.GetName()]
		if known && (before.DeploymentName != d.DeploymentName || port(before.ContainerPort) != port(d.ContainerPort)) {
			return fmt.Sprintf("APIService %s is described twice: port %d of deployment %q, and port %d of deployment %q",
				d.GetName(), port(before.ContainerPort), before.DeploymentName, port(d.ContainerPort), d.DeploymentName)
		}
		if !known {
			first[d.GetName()] = d
		}
	}
	return ""
}

// syntaxProblem returns why the API server would reject a description. It is empty if the description is valid.
func syntaxProblem(i int, d *v1alpha1.APIServiceDescription) string {
	field := fmt.Sprintf("apiservicedefinitions.owned[%d]", i)
	switch {
	case d.Group != "" && len(validation.IsDNS1123Subdomain(d.Group)) > 0:
		return fmt.Sprintf("%s: group %q is not a DNS subdomain", field, d.Group)
	case model.IsBuiltInAPIGroup(d.Group):
		return fmt.Sprintf("%s: group %q belongs to Kubernetes or OLM; its APIs cannot be owned", field, d.Group)
	case len(validation.IsDNS1035Label(d.Version)) > 0:
		return fmt.Sprintf("%s: version %q is not a DNS label", field, d.Version)
	case len(d.GetName()) > validation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("%s: the name of the APIService has %d characters; at most %d are possible",
			field, len(d.GetName()), validation.DNS1123SubdomainMaxLength)
	case d.Name != "" && len(validation.IsDNS1123Subdomain(d.Name)) > 0:
		return fmt.Sprintf("%s: name %q is not a valid resource name", field, d.Name)
	case d.ContainerPort < 0 || d.ContainerPort > 65535:
		return fmt.Sprintf("APIService %s: containerPort %d is outside 1-65535", d.GetName(), d.ContainerPort)
	}
	return ""
}

// isAdoptable reports whether an APIService belongs to the CSV, or may be adopted from another version. The version
// that the CSV replaces keeps the APIService for it, even if that version has been deleted. An APIService of a version
// that is Replacing or Deleting may be adopted too.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/apiservices.go, IsAPIServiceAdoptable.
// Differs: only versions of the same namespace are considered. In each upgrade, the old version is Replacing for a
// while. Otherwise a user who can write CSVs in another namespace could take over the API in that time. The replaced
// version is considered even if it no longer exists.
func (s Clients) isAdoptable(service *apiregistrationv1.APIService) bool {
	owner, ok := olmcore.OwnerOf(service.Labels)
	switch {
	case !ok || owner.Kind != v1alpha1.ClusterServiceVersionKind || owner.Namespace != s.CSV.Namespace:
		return false
	case owner.Name == s.CSV.Name:
		return true
	}
	current, exists := model.Find(s.Neighbours, owner.Namespace, owner.Name)
	if !exists {
		return owner.Name == s.CSV.Spec.Replaces
	}
	return !current.IsCopied() &&
		(owner.Name == s.CSV.Spec.Replaces ||
			current.Status.Phase == v1alpha1.CSVPhaseReplacing || current.Status.Phase == v1alpha1.CSVPhaseDeleting)
}

// Conflict returns a message about the first owned APIService that exists but may not be taken over. It returns an
// empty string if there is none. If the APIService belongs to another owner, the message names that owner.
func (s Clients) Conflict() string {
	for _, a := range s.apis() {
		if a.live == nil || s.isAdoptable(a.live) {
			continue
		}
		owner, ok := olmcore.OwnerOf(a.live.Labels)
		switch {
		case !ok:
			return fmt.Sprintf("APIService %s exists and is not managed by an operator", a.name)
		case owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == s.CSV.Namespace && !s.hasNeighbour(owner.Name):
			return fmt.Sprintf("APIService %s was left behind by ClusterServiceVersion %s/%s, which does not exist",
				a.name, owner.Namespace, owner.Name)
		}
		return fmt.Sprintf("APIService %s belongs to %s %s/%s", a.name, owner.Kind, owner.Namespace, owner.Name)
	}
	return ""
}

func (s Clients) hasNeighbour(name string) bool {
	_, exists := model.Find(s.Neighbours, s.CSV.Namespace, name)
	return exists
}

// isOfNamespace reports whether the owner labels of a live APIService name a ClusterServiceVersion of a namespace.
func (a *api) isOfNamespace(namespace string) bool {
	owner, ok := olmcore.OwnerOf(a.live.Labels)
	return ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == namespace
}

// existingAPIs returns the owned APIServices that belong to a version of the namespace. They may call a Service of this
// version or of another one.
func existingAPIs(f *facts) (services []olmcore.Object) {
	for _, a := range f.apis {
		if a.live != nil && a.live.DeletionTimestamp == nil && a.isOfNamespace(f.source.CSV.Namespace) {
			services = append(services, a.live)
		}
	}
	return services
}

// missingAPIs returns the Services of the owned APIServices that do not exist, or that are being deleted and belong to
// a version of the namespace.
func missingAPIs(f *facts) (services []string) {
	for _, a := range f.apis {
		if a.live == nil || a.live.DeletionTimestamp != nil && a.isOfNamespace(f.source.CSV.Namespace) {
			services = append(services, a.service())
		}
	}
	return services
}

// mayUpdateAPI reports whether the caBundle of an owned APIService may be updated: the APIService calls the Service of
// its description, and belongs to this CSV or may be adopted.
func mayUpdateAPI(f *facts, o olmcore.Object) bool {
	i := slices.IndexFunc(f.apis, func(a *api) bool { return a.live == o })
	return i >= 0 && f.apis[i].calls(f.source.CSV.Namespace) && f.source.isAdoptable(f.apis[i].live)
}
