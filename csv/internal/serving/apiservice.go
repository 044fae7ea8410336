// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/observed"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Source contains the observed objects from which this package computes the health and the writes of APIServices.
type APIServices struct {
	observed.Operator
	// Backends is the backend.Certificates of the CSV. If Backends is nil, no Deployment has a certificate.
	Backends interface {
		// Trust returns the caBundle that a client of a Deployment should have. have is its current caBundle, or nil. The
		// result is nil if there is no certificate.
		Trust(deployment string, have []byte) []byte
	}
}

// trust returns the caBundle that a client of an API's Deployment should have. have is its current caBundle. The result
// is empty if there is no certificate.
func (s APIServices) trust(a *api, have []byte) []byte {
	if s.Backends == nil {
		return nil
	}
	return s.Backends.Trust(a.deployment, have)
}

// defaultPort is the port of an APIService whose description contains none.
const defaultAPIPort = 443

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
func apisOf(c *owned.CSV, live []*apiregistrationv1.APIService) []*api {
	found, known := owned.ByName(live, ""), map[string]*api{}
	for i := range c.Spec.APIServiceDefinitions.Owned {
		d := &c.Spec.APIServiceDefinitions.Owned[i]
		name := d.GetName()
		a := known[name]
		if a == nil {
			a = &api{
				name: name, group: d.Group, version: d.Version,
				deployment: d.DeploymentName, port: portOf(d), live: found[name],
			}
			known[name] = a
		}
		a.kinds = append(a.kinds, schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind})
	}
	return slices.SortedFunc(maps.Values(known), func(a, b *api) int { return strings.Compare(a.name, b.name) })
}

func portOf(d *v1alpha1.APIServiceDescription) int32 { return cmp.Or(d.ContainerPort, defaultAPIPort) }

// apis returns the owned group versions whose description names a Deployment. All other names are derived from it. The
// zero Source has none.
func (s APIServices) apis() []*api {
	if s.CSV == nil {
		return nil
	}
	return slices.DeleteFunc(apisOf(s.CSV, s.APIServices), func(a *api) bool { return a.deployment == "" })
}

// Problem returns a message about the first invalid description of an owned APIService, or an empty string if all are
// valid. A description without a Deployment is not reported here, because it is an unmet requirement.
//
// Differs: OLM does not check the descriptions, and the API server rejects the APIService. This library checks them
// before it writes.
func ProblemOfAPIServices(c *owned.CSV) string {
	first := map[string]*v1alpha1.APIServiceDescription{}
	for i := range c.Spec.APIServiceDefinitions.Owned {
		d := &c.Spec.APIServiceDefinitions.Owned[i]
		if problem := syntaxProblem(i, d); problem != "" {
			return problem
		}
		before, known := first[d.GetName()]
		if known && (before.DeploymentName != d.DeploymentName || portOf(before) != portOf(d)) {
			return fmt.Sprintf("APIService %s is described twice: port %d of deployment %q, and port %d of deployment %q",
				d.GetName(), portOf(before), before.DeploymentName, portOf(d), d.DeploymentName)
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
	case group.IsBuiltIn(d.Group):
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
func (s APIServices) isAdoptable(service *apiregistrationv1.APIService) bool {
	owner, ok := olmcore.OwnerOf(service.Labels)
	switch {
	case !ok || owner.Kind != v1alpha1.ClusterServiceVersionKind || owner.Namespace != s.CSV.Namespace:
		return false
	case owner.Name == s.CSV.Name:
		return true
	}
	current, exists := owned.Find(s.Neighbours, owner.Namespace, owner.Name)
	if !exists {
		return owner.Name == s.CSV.Spec.Replaces
	}
	return !current.IsCopied() &&
		(owner.Name == s.CSV.Spec.Replaces ||
			current.Status.Phase == v1alpha1.CSVPhaseReplacing || current.Status.Phase == v1alpha1.CSVPhaseDeleting)
}

// Conflict returns a message about the first owned APIService that exists but may not be taken over. It returns an
// empty string if there is none. If the APIService belongs to another owner, the message names that owner.
func (s APIServices) Conflict() string {
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

func (s APIServices) hasNeighbour(name string) bool {
	_, exists := owned.Find(s.Neighbours, s.CSV.Namespace, name)
	return exists
}

// Clients returns a backend.Client for each owned APIService that a certificate rotation must wait for. An existing
// APIService may call a Service of this version or of another version in the namespace. If the APIService does not
// exist or is being deleted, its client is Missing. An APIService is omitted if it belongs to another owner, calls no
// Service of the namespace, or does not verify certificates.
func ClientsOfAPIServices(c *owned.CSV, services []*apiregistrationv1.APIService) []Client {
	var clients []Client
	for _, a := range apisOf(c, services) {
		if a.deployment == "" {
			continue
		}
		if a.live == nil {
			clients = append(clients, Client{Service: a.service(), Missing: true})
			continue
		}
		owner, ok := olmcore.OwnerOf(a.live.Labels)
		isOurs := ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == c.Namespace
		ref := a.live.Spec.Service
		switch {
		case !isOurs:
		case a.live.DeletionTimestamp != nil:
			clients = append(clients, Client{Service: a.service(), Missing: true})
		case ref != nil && ref.Namespace == c.Namespace && !a.live.Spec.InsecureSkipTLSVerify:
			clients = append(clients, Client{Service: ref.Name, Bundle: a.live.Spec.CABundle})
		}
	}
	return clients
}
