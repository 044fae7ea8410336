// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/internal/apigroup"
	"github.com/olmcore/olm/internal/builtin"
	"github.com/olmcore/olm/olmcore"
)

// mayCreate decides whether a plan may create the definition that a step describes. The Outcome is Pending if it may.
func (d definition) mayCreate() Verdict {
	name, group := d.t.Key.Name, d.desired.Spec.Group
	if builtin.IsServed(group) || builtin.IsAggregated(group) {
		return invalid("CustomResourceDefinition %s: a bundle may not define resources in API group %s of Kubernetes or OLM", name, group)
	}
	return d.mayAddToGroup(fmt.Sprintf("CustomResourceDefinition %s is not created", name))
}

// mayServe decides whether a plan may write a definition with the versions of after. Under an account a plan serves no
// further version in an API group that another operator serves. The Outcome is Pending if it may.
func (d definition) mayServe(after *apiextensionsv1.CustomResourceDefinition) Verdict {
	if !d.w.isConfined() {
		return Verdict{}
	}
	for _, version := range after.Spec.Versions {
		old := versionOf(d.have, version.Name)
		if version.Served && (old == nil || !old.Served) {
			return d.mayAddToGroup(fmt.Sprintf("CustomResourceDefinition %s does not get version %s", d.have.Name, version.Name))
		}
	}
	return Verdict{}
}

// mayAddToGroup decides whether a plan may add a version to the API group of a definition. An APIService of another
// operator serves the group elsewhere, and clients, the garbage collector and the namespace controller could prefer the
// new version. A cluster administrator can share the group with the namespace of the plan. The Outcome is Pending if
// there is no obstacle. refusal begins the message.
//
// Differs: OLM adds to any group.
func (d definition) mayAddToGroup(refusal string) Verdict {
	group, namespace := d.desired.Spec.Group, d.w.Plan.Namespace
	if !d.w.APIServices.Complete {
		return waiting("waiting for the APIServices of API group %s, which were not read", group)
	}
	var obstacles []apigroup.Obstacle
	for _, service := range d.w.APIServices.Items {
		owner, isOwned := olmcore.OwnerOf(service.Labels)
		isOurs := isOwned && owner.Kind == kinds.CSV && owner.Namespace == namespace
		isAllowed := isOurs || apigroup.IsSharedWith(service, namespace)
		if isAllowed || !apigroup.Contains(group, service) || apigroup.FollowsDefinitions(service) {
			continue
		}
		reason := fmt.Sprintf("APIService %s of the same group belongs to no operator of namespace %s", service.Name, namespace)
		obstacles = append(obstacles, apigroup.Obstacle{Object: service, Resource: "apiservice", Reason: reason})
	}
	if len(obstacles) == 0 {
		return Verdict{}
	}
	slices.SortFunc(obstacles, func(a, b apigroup.Obstacle) int { return strings.Compare(a.Object.GetName(), b.Object.GetName()) })
	return blocked("%s: %s. %s", refusal, obstacles[0].Reason, apigroup.Advice(namespace, obstacles))
}
