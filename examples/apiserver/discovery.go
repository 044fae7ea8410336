// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/olmcore/olm/olmcore"
)

// Version is what the server says it is.
const Version = "v1.36.2"

// review answers a SelfSubjectAccessReview.
func (s *Server) review(body io.Reader) (any, error) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(body).Decode(&review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	what := review.Spec.ResourceAttributes
	if what == nil {
		return nil, apierrors.NewBadRequest("spec.resourceAttributes is missing")
	}
	review.Status.Allowed = s.Allowed == nil || s.Allowed(*what)
	return review, nil
}

func labelsOf(o olmcore.Object) labels.Set { return o.GetLabels() }

// discovery answers what clients ask to learn which kinds there are.
func (s *Server) discovery(path []string) (answer any, ok bool) {
	switch {
	case len(path) == 1 && path[0] == "version":
		return version.Info{Major: "1", Minor: "36", GitVersion: Version}, true
	case len(path) == 1 && path[0] == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case len(path) == 1 && path[0] == "apis":
		return s.groups(), true
	case len(path) == 2 && path[0] == "api":
		return s.resources(schema.GroupVersion{Version: path[1]})
	case len(path) == 2 && path[0] == "apis":
		groups := s.groups().Groups
		i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == path[1] })
		if i < 0 {
			return nil, false
		}
		return groups[i], true
	case len(path) == 3 && path[0] == "apis":
		return s.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	}
	return nil, false
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range s.cluster.Discovery().Kinds() {
		if k.Group == "" {
			continue
		}
		if n := len(list.Groups); n == 0 || list.Groups[n-1].Name != k.Group {
			list.Groups = append(list.Groups, metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: k.Group})
		}
		g := &list.Groups[len(list.Groups)-1]
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		if !slices.Contains(g.Versions, v) {
			g.Versions = append(g.Versions, v)
			g.PreferredVersion = g.Versions[0]
		}
	}
	return list
}

func (s *Server) resources(gv schema.GroupVersion) (answer any, ok bool) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	for _, k := range s.cluster.Discovery().Kinds() {
		if k.GroupVersion() != gv {
			continue
		}
		r := metav1.APIResource{Name: k.Resource, SingularName: strings.ToLower(k.Kind), Kind: k.Kind, Namespaced: k.Namespaced, Verbs: verbs}
		list.APIResources = append(list.APIResources, r)
		if k.Status {
			r.Name, r.Verbs = k.Resource+"/status", metav1.Verbs{"get", "patch", "update"}
			list.APIResources = append(list.APIResources, r)
		}
	}
	return list, len(list.APIResources) > 0
}
