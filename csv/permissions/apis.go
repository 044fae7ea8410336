// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// providedAPI is an API that a CSV owns. A CustomResourceDefinition or an APIService serves it.
type providedAPI struct {
	model.API
	// crd is the name of its CustomResourceDefinition, service the name of its APIService. One of them is empty.
	crd, service string
	resource     string
	// path is the field of the CSV that describes it.
	path string
}

// base returns the prefix of the names of its ClusterRoles.
func (a providedAPI) base() string {
	if a.crd != "" {
		return a.crd + "-" + a.Version
	}
	return a.resource + "-" + a.Version
}

// providedAPIs returns the APIs that a CSV owns, without duplicates. It returns none if the CSV is not Succeeded.
func providedAPIs(c *v1alpha1.ClusterServiceVersion) []providedAPI {
	if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		return nil
	}
	var all []providedAPI
	known := sets.New[string]()
	add := func(a providedAPI) {
		if a.Kind != "" && a.Version != "" && a.Group != "" && a.resource != "" && !known.Has(a.base()) {
			known.Insert(a.base())
			all = append(all, a)
		}
	}
	for _, d := range c.Spec.CustomResourceDefinitions.Owned {
		plural, suffix, _ := strings.Cut(d.Name, ".")
		add(providedAPI{model.API{Kind: d.Kind, Version: d.Version, Group: suffix}, d.Name, "", plural, "spec.customresourcedefinitions.owned"})
	}
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		add(providedAPI{model.API{Kind: d.Kind, Version: d.Version, Group: d.Group}, "", d.GetName(), d.Name, "spec.apiservicedefinitions.owned"})
	}
	return all
}

// verbs contains the verbs that the ClusterRoles for an API allow, by suffix.
var verbs = map[string][]string{
	"admin": {"*"}, "edit": {"create", "update", "patch", "delete"}, "view": {"get", "list", "watch"},
}

// crdView is the suffix of the ClusterRole that allows reading the CustomResourceDefinition of an API.
const crdView = "crdview"

// roleSuffixes returns the name suffixes of all ClusterRoles for an API.
func roleSuffixes() []string { return append(model.GroupRoleSuffixes(), crdView) }

// roleNames returns the names of the ClusterRoles for an API.
func (a providedAPI) roleNames() []string {
	var names []string
	for _, suffix := range roleSuffixes() {
		if suffix != crdView || a.crd != "" {
			names = append(names, a.base()+"-"+suffix)
		}
	}
	return names
}

// provide returns the ClusterRoles for the APIs, and Diagnostics about APIs that get none. The ClusterRoles are
// aggregated into the roles admin, edit and view of all users, and into those of OperatorGroups. So they are created
// only for APIs that belong to the CSV. The CustomResourceDefinition or APIService owns them, so they are deleted with
// it, and not with the CSV. If a list was not read that it depends on, provide returns only the names of the unread
// lists.
func provide(f *facts) (roles []desired, without []olmcore.Diagnostic, unread []string) {
	if unread = unreadToProvide(f); len(unread) > 0 {
		return nil, nil, unread
	}
	for _, a := range f.apis {
		server, problem := a.server(f)
		if problem != "" {
			without = append(without, olmcore.Diagnose(olmcore.Info, ReasonAPINotRecorded, olmcore.RefOf(f.csv), a.path,
				"no ClusterRoles are created for %s: %s", a, problem))
		}
		if server != nil {
			roles = append(roles, a.roles(server)...)
		}
	}
	return roles, without, nil
}

// unreadToProvide returns the names of the unread lists that decide about the ClusterRoles for APIs.
func unreadToProvide(f *facts) (unread []string) {
	if len(f.apis) > 0 {
		unread = read.Missing(f.in.ClusterRoles, "ClusterRoles")
	}
	if slices.ContainsFunc(f.apis, func(a providedAPI) bool { return a.crd != "" }) {
		unread = append(unread, read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions")...)
	}
	if slices.ContainsFunc(f.apis, func(a providedAPI) bool { return a.service != "" }) {
		unread = append(unread, read.Missing(f.in.APIServices, "APIServices")...)
	}
	return unread
}

// server returns the object that serves an API, or nil if it does not exist. problem is the reason why no ClusterRoles
// may be created for the API, for example because its object may belong to another owner. It is empty if they may.
func (a providedAPI) server(f *facts) (server olmcore.Object, problem string) {
	if a.crd != "" {
		return a.definition(f)
	}
	if len(validation.IsDNS1123Label(a.resource)) > 0 {
		return nil, "its name is not a valid resource name"
	}
	for _, service := range f.in.APIServices.Items {
		switch {
		case !a.isOfGroup(service):
		case !model.OwnerOf(f.csv).Owns(service.Labels):
			return nil, "APIService " + service.Name + " of its API group does not belong to this ClusterServiceVersion"
		case service.Name == a.service && service.DeletionTimestamp == nil:
			server = service
		}
	}
	return server, ""
}

// definition returns the CustomResourceDefinition that serves an API, as server does.
func (a providedAPI) definition(f *facts) (server olmcore.Object, problem string) {
	crd, exists := model.Find(f.in.CustomResourceDefinitions.Items, "", a.crd)
	isVersion := func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == a.Version }
	switch {
	case !exists || crd.DeletionTimestamp != nil || !slices.ContainsFunc(crd.Spec.Versions, isVersion):
		return nil, "" // a requirement that is not met
	case isReserved(a.Group):
		return nil, "its API group belongs to Kubernetes or OLM"
	case !model.IsInstalledWith(f.csv, crd):
		return nil, "CustomResourceDefinition " + a.crd + " has no record that an InstallPlan installed it with this ClusterServiceVersion"
	}
	return crd, ""
}

// isOfGroup reports whether an APIService is of the group of an API, by its spec or its name.
func (a providedAPI) isOfGroup(service *apiregistrationv1.APIService) bool {
	return a.service != "" && (service.Spec.Group == a.Group || service.Name == a.service)
}

// isReserved reports whether an API group belongs to Kubernetes or OLM. ClusterRoles for it could give all users
// permissions that Kubernetes does not give them.
func isReserved(name string) bool { return model.IsBuiltInAPIGroup(name) || name == "metrics.k8s.io" }

// roles returns the ClusterRoles for an API. server owns them.
func (a providedAPI) roles(server olmcore.Object) []desired {
	var list []desired
	add := func(name, suffix string, rule rbacv1.PolicyRule) {
		label := a.AggregateLabel(suffix)
		role := &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{
				Name: a.base() + "-" + name, OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(server)},
				Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + suffix: "true", label: "true", olmcore.LabelManaged: "true"},
			},
			Rules: []rbacv1.PolicyRule{rule},
		}
		list = append(list, desired{
			object: role, created: true,
			isOurs: func(have metav1.Object) bool { return have.GetLabels()[label] == "true" },
			why:    olmcore.Cause{Reason: ReasonProvidedAPI, Message: "the ClusterServiceVersion provides " + a.String()},
		})
	}
	for _, suffix := range model.GroupRoleSuffixes() {
		add(suffix, suffix, rbacv1.PolicyRule{Verbs: verbs[suffix], APIGroups: []string{a.Group}, Resources: []string{a.resource}})
	}
	if a.crd != "" {
		add(crdView, "view", rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: []string{apiextensionsv1.GroupName},
			Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{a.crd},
		})
	}
	return list
}
