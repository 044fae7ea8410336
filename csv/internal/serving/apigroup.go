// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/apigroup"
	"github.com/olmcore/olm/olmcore"
)

// PackageGroup is the API group of OLM's package server. It is reserved, as is every other API group of OLM.
const PackageGroup = "packages." + v1alpha1.GroupName

// claims determines which other owners have a claim to the API groups of a CSV.
type claims struct{ source Clients }

// NeedsClaims reports whether Refusal depends on the other objects of an API group. This is the case if an owned
// APIService does not exist yet, or exists but may not be taken over.
func NeedsClaims(s Clients) bool {
	c := claims{source: s}
	return slices.ContainsFunc(c.source.apis(), func(a *api) bool { return !c.isHeld(a) })
}

// isHeld reports whether the APIService exists and belongs to this CSV, or may be adopted by it. The owner labels are
// the proof, because tenants cannot write them. Such an APIService stays, whatever else exists in its group.
func (s claims) isHeld(a *api) bool { return a.live != nil && s.source.isAdoptable(a.live) }

// Refusal returns a message about the first new APIService that must not be created, or an empty string if all may be
// created. The message contains the reason, and explains how a cluster administrator can allow the APIService.
//
// Differs: OLM creates an APIService in any API group. This library checks whether the CSV may use the group.
func Refusal(s Clients) string {
	c := claims{source: s}
	for _, a := range s.apis() {
		if c.isHeld(a) {
			continue
		}
		if why, allow := c.refused(a); why != "" {
			return fmt.Sprintf("APIService %s is not created: %s. %s", a.name, why, allow)
		}
	}
	return ""
}

// Shared returns a message for each existing APIService of this CSV that is kept, although Refusal would reject a new
// one. The message contains the reason.
func Shared(s Clients) []string {
	c := claims{source: s}
	var shared []string
	for _, a := range s.apis() {
		if !c.isHeld(a) {
			continue
		}
		if why, _ := c.refused(a); why != "" {
			shared = append(shared, fmt.Sprintf("APIService %s exists and stays, but it would not be created today: %s", a.name, why))
		}
	}
	return shared
}

// refused explains why this CSV may not serve a version of an API group, and what a cluster administrator can do.
func (s claims) refused(a *api) (why, allow string) {
	if why, allow = s.reserved(a); why != "" {
		return why, allow
	}
	obstacles := s.obstacles(a)
	if len(obstacles) == 0 {
		return "", ""
	}
	return obstacles[0].Reason, apigroup.Advice(s.source.CSV.Namespace, obstacles)
}

// reserved returns why an API group is reserved for OLM, and what a cluster administrator can do. why is empty if the
// group is not reserved. All groups below OLM's own group are reserved, because clients such as kubectl and consoles
// trust their content. The group of the package server may be served from the namespaces that the configuration names.
func (s claims) reserved(a *api) (why, allow string) {
	switch {
	case !strings.HasSuffix(a.group, "."+v1alpha1.GroupName):
		return "", ""
	case a.group != PackageGroup:
		return fmt.Sprintf("API group %s is reserved for OLM", a.group), "Use another group."
	case slices.Contains(s.source.PackageServerNamespaces, s.source.CSV.Namespace):
		return "", ""
	}
	return fmt.Sprintf("API group %s is reserved for the package server of OLM", a.group),
		fmt.Sprintf("To allow it, add namespace %s to csv.packageServerNamespaces in the configuration.", s.source.CSV.Namespace)
}

// obstacles returns the objects that a cluster administrator must share with the namespace first,
// CustomResourceDefinitions before APIServices.
func (s claims) obstacles(a *api) []apigroup.Obstacle {
	var found []apigroup.Obstacle
	isServed := slices.ContainsFunc(s.source.APIServices, func(other *apiregistrationv1.APIService) bool {
		return apigroup.Contains(a.group, other) && s.source.isAdoptable(other)
	})
	for _, crd := range s.source.Definitions {
		if crd.Spec.Group != a.group {
			continue
		}
		if why := s.ownedElsewhere(crd, isServed); why != "" {
			found = append(found, apigroup.Obstacle{Object: crd, Resource: "customresourcedefinition", Reason: why})
		}
	}
	for _, other := range s.source.APIServices {
		if !apigroup.Contains(a.group, other) || other.Name == a.name || apigroup.FollowsDefinitions(other) || s.isOfChain(other) {
			continue
		}
		why := fmt.Sprintf("APIService %s of the same group does not belong to this operator", other.Name)
		found = append(found, apigroup.Obstacle{Object: other, Resource: "apiservice", Reason: why})
	}
	found = slices.DeleteFunc(found, func(o apigroup.Obstacle) bool { return apigroup.IsSharedWith(o.Object, s.source.CSV.Namespace) })
	slices.SortFunc(found, func(x, y apigroup.Obstacle) int {
		return cmp.Or(-strings.Compare(x.Resource, y.Resource), strings.Compare(x.Object.GetName(), y.Object.GetName()))
	})
	return found
}

// isOfChain reports whether an APIService belongs to this CSV or to another version of its upgrade chain.
func (s claims) isOfChain(service *apiregistrationv1.APIService) bool {
	if s.source.isAdoptable(service) {
		return true
	}
	owner, ok := olmcore.OwnerOf(service.Labels)
	return ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == s.source.CSV.Namespace && s.isRelative(owner.Name)
}

// isRelative reports whether a version of the same upgrade chain exists under a name.
func (s claims) isRelative(name string) bool {
	other, exists := model.Find(s.source.Neighbours, s.source.CSV.Namespace, name)
	return exists && !other.IsCopied() && s.source.Relatives.Has(other)
}

// ownedElsewhere explains why a CustomResourceDefinition does not belong to this CSV alone. It is empty if it does. The
// author of a CSV decides which definitions it lists as owned. So an InstallPlan must have recorded the definition for
// the CSV, or for the version that it replaces. An InstallPlan also records a later CSV with the same definition. So if
// the definition is recorded for other CSVs too, the CSV must already serve the group, or its namespace must have been
// recorded first.
func (s claims) ownedElsewhere(crd *apiextensionsv1.CustomResourceDefinition, isServed bool) string {
	if !s.isInstalledWith(s.source.CSV, crd) && !s.isInstalledWith(s.predecessor(), crd) {
		return fmt.Sprintf("CustomResourceDefinition %s of the same group was not installed with this operator", crd.Name)
	}
	if isServed {
		return ""
	}
	other := model.ConflictingOwner(crd, s.source.CSV.Namespace, s.source.IsConfined)
	if other.Name == "" {
		other = s.neighbourOf(crd)
	}
	if other.Name == "" {
		return ""
	}
	return fmt.Sprintf("CustomResourceDefinition %s of the same group was also installed with ClusterServiceVersion %s", crd.Name, other)
}

// neighbourOf returns a CSV of another operator of the namespace with which a CustomResourceDefinition was installed
// too. Of several, it returns the first by name. It returns the zero value if there is none.
func (s claims) neighbourOf(crd *apiextensionsv1.CustomResourceDefinition) (other types.NamespacedName) {
	for _, key := range model.InstalledAlongside(crd) {
		isAnother := key.Namespace == s.source.CSV.Namespace && key.Name != s.source.CSV.Name &&
			!s.isRelative(key.Name) && s.source.hasNeighbour(key.Name)
		if isAnother && (other.Name == "" || key.Name < other.Name) {
			other = key
		}
	}
	return other
}

// isInstalledWith reports whether a CSV lists a CustomResourceDefinition as owned, and an InstallPlan recorded the
// definition for it.
func (s claims) isInstalledWith(c *model.CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return c != nil && model.DescribesCRD(c.Spec.CustomResourceDefinitions.Owned, crd.Name) && model.IsInstalledWith(c, crd)
}

// predecessor returns the version that the CSV replaces, or nil if it does not exist in the namespace.
func (s claims) predecessor() *model.CSV {
	p, exists := model.Find(s.source.Neighbours, s.source.CSV.Namespace, s.source.CSV.Spec.Replaces)
	if !exists || p.IsCopied() {
		return nil
	}
	return p
}
