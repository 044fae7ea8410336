// SPDX-License-Identifier: Apache-2.0

// Package apigroup contains the rules about API groups that several operators want to serve: which APIServices keep an
// operator from adding to a group, and how a cluster administrator shares a group with the operators of a namespace.
package apigroup

import (
	"fmt"
	"strings"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// labelAutomanaged is on the APIServices that the API server creates itself.
	labelAutomanaged = "kube-aggregator.kubernetes.io/automanaged"
	// followsCRDs is the value of labelAutomanaged on the APIServices of CustomResourceDefinitions. Those of the groups
	// that are built into the API server have another value.
	followsCRDs = "true"
	// maxNamed is how many objects one message names.
	maxNamed = 10
)

// Contains reports whether an APIService is of a group, by its spec or its name.
func Contains(group string, service *apiregistrationv1.APIService) bool {
	_, named, _ := strings.Cut(service.Name, ".")
	return service.Spec.Group == group || named == group
}

// FollowsDefinitions reports whether an APIService is one that the API server creates for the versions of
// CustomResourceDefinitions. Such an APIService belongs to no operator.
func FollowsDefinitions(service *apiregistrationv1.APIService) bool {
	return service.Labels[labelAutomanaged] == followsCRDs
}

// IsSharedWith reports whether a cluster administrator shared the API group of an object with the operators of a
// namespace.
func IsSharedWith(o olmcore.Object, namespace string) bool {
	for name := range strings.SplitSeq(o.GetAnnotations()[olmcore.AnnotationAPIGroupSharedWith], ",") {
		if strings.TrimSpace(name) == namespace {
			return true
		}
	}
	return false
}

// Obstacle is an object of an API group that keeps an operator from adding to the group.
type Obstacle struct {
	Object olmcore.Object
	// Resource is the kind of the object, as kubectl spells it.
	Resource string
	// Reason is a sentence without its period.
	Reason string
}

// sharedWith returns the value of the annotation with which an administrator shares the group of the object.
func (o Obstacle) sharedWith() string {
	return o.Object.GetAnnotations()[olmcore.AnnotationAPIGroupSharedWith]
}

// Advice returns a sentence with the command with which a cluster administrator shares the objects of one or more
// obstacles with a namespace. The objects stay shared with the namespaces that they name. One command therefore covers
// only the objects with the same value.
func Advice(namespace string, obstacles []Obstacle) string {
	value := obstacles[0].sharedWith()
	var names []string
	for _, o := range obstacles {
		if o.sharedWith() == value && len(names) < maxNamed {
			names = append(names, o.Resource+"/"+o.Object.GetName())
		}
	}
	return fmt.Sprintf("To allow it, a cluster administrator can run: kubectl annotate --overwrite %s %s=%s",
		strings.Join(names, " "), olmcore.AnnotationAPIGroupSharedWith, strings.TrimPrefix(value+","+namespace, ","))
}
