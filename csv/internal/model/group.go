// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Targets is the set of namespaces that an operator watches. It contains sorted names, or one empty name for all
// namespaces. An empty set means no namespace, never all namespaces.
type Targets []string

// All reports whether the operator watches all namespaces.
func (t Targets) All() bool { return len(t) == 1 && t[0] == metav1.NamespaceAll }

// Contains reports whether the operator watches a namespace.
func (t Targets) Contains(namespace string) bool { return t.All() || slices.Contains(t, namespace) }

// Named returns the names of the targets, sorted and without duplicates. The empty name, which means all namespaces, is
// omitted.
func (t Targets) Named() Targets {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(t)), func(n string) bool { return n == metav1.NamespaceAll })
	return slices.Compact(names)
}

// String describes the targets in words, for example "all namespaces". Messages use it.
func (t Targets) String() string {
	switch {
	case t.All():
		return "all namespaces"
	case len(t) == 0:
		return "no namespace"
	case len(t) == 1:
		return "namespace " + t[0]
	}
	return "namespaces " + strings.Join(t, ", ")
}

// TargetsOf returns the targets in the status of an OperatorGroup. computed is false if the status has not been written
// yet.
func TargetsOf(g *operatorsv1.OperatorGroup) (t Targets, computed bool) {
	t = slices.Clone(g.Status.Namespaces)
	slices.Sort(t)
	return t, len(t) > 0 || g.Status.LastUpdated != nil
}

// AnnotatedTargets returns the targets in the annotation olm.targetNamespaces of a CSV. ok is false if the annotation
// does not exist, for example because the OperatorGroup selects no namespace.
func AnnotatedTargets(c *CSV) (t Targets, ok bool) {
	value, ok := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !ok {
		return nil, false
	}
	return strings.Split(value, ","), true
}

// OnlyGroup returns the only OperatorGroup of a namespace. It returns nil if the namespace has no OperatorGroup or
// several. count is the number of OperatorGroups in the namespace.
func OnlyGroup(groups []*operatorsv1.OperatorGroup, namespace string) (g *operatorsv1.OperatorGroup, count int) {
	for _, item := range groups {
		if item.Namespace == namespace {
			g, count = item, count+1
		}
	}
	if count != 1 {
		return nil, count
	}
	return g, 1
}

// IsMemberOf reports whether the annotations of a CSV name the OperatorGroup g.
func IsMemberOf(c *CSV, g *operatorsv1.OperatorGroup) bool {
	return c.Annotations[operatorsv1.OperatorGroupAnnotationKey] == g.Name &&
		c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey] == g.Namespace
}

// watches reports whether a namespace is a group's own or one of its targets.
func watches(g *operatorsv1.OperatorGroup, namespace string) bool {
	return namespace == g.Namespace || Targets(g.Status.Namespaces).Contains(namespace)
}

// GroupsIntersect reports whether two OperatorGroups watch a common namespace. GroupsIntersect treats the namespace of
// an OperatorGroup as watched, even if that namespace is not a target.
func GroupsIntersect(a, b *operatorsv1.OperatorGroup) bool {
	return Targets(a.Status.Namespaces).All() || watches(b, a.Namespace) ||
		slices.ContainsFunc(a.Status.Namespaces, func(namespace string) bool { return watches(b, namespace) })
}

// UnsupportedTargets returns a message if the install modes of a CSV do not allow the operator to watch the targets of
// its OperatorGroup. Otherwise it returns an empty string.
//
// Source: operator-framework/api pkg/operators/v1alpha1, InstallModeSet.Supports.
func UnsupportedTargets(c *CSV, t Targets) string {
	supports := func(mode v1alpha1.InstallModeType) bool {
		i := slices.IndexFunc(c.Spec.InstallModes, func(m v1alpha1.InstallMode) bool { return m.Type == mode })
		return i >= 0 && c.Spec.InstallModes[i].Supported
	}
	switch {
	case len(t) == 0:
		return "operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces"
	case len(t) > 1 && !supports(v1alpha1.InstallModeTypeMultiNamespace):
		return unsupported(v1alpha1.InstallModeTypeMultiNamespace, fmt.Sprintf("%d namespaces", len(t)))
	case t.All() && !supports(v1alpha1.InstallModeTypeAllNamespaces):
		return unsupported(v1alpha1.InstallModeTypeAllNamespaces, "all namespaces")
	case len(t) == 1 && !t.All() && t[0] != c.Namespace && !supports(v1alpha1.InstallModeTypeSingleNamespace):
		return unsupported(v1alpha1.InstallModeTypeSingleNamespace, "one namespace")
	}
	return unsupportedNamespace(c, t, supports(v1alpha1.InstallModeTypeOwnNamespace))
}

// unsupportedNamespace returns why one of the targets cannot be watched, although their number is supported.
func unsupportedNamespace(c *CSV, t Targets, supportsOwn bool) string {
	for _, namespace := range t {
		switch {
		case namespace == c.Namespace && !supportsOwn:
			return unsupported(v1alpha1.InstallModeTypeOwnNamespace, "own namespace")
		case namespace == metav1.NamespaceAll && len(t) > 1:
			return "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"
		}
	}
	return ""
}

func unsupported(mode v1alpha1.InstallModeType, what string) string {
	return fmt.Sprintf("%s InstallModeType not supported, cannot configure to watch %s", mode, what)
}
