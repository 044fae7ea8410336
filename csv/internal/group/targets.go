// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/owned"
)

// Targets is a set of namespaces that an operator watches: sorted names, or one empty name for all. Empty is none,
// which is never the same as all.
type Targets []string

// All reports whether the targets are all namespaces.
func (t Targets) All() bool { return len(t) == 1 && t[0] == metav1.NamespaceAll }

// Contains reports whether a namespace is a target.
func (t Targets) Contains(namespace string) bool { return t.All() || slices.Contains(t, namespace) }

// Named returns the targets that have a name, each once: a list that holds the empty name beside others selects no more
// than the others.
func (t Targets) Named() Targets {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(t)), func(n string) bool { return n == metav1.NamespaceAll })
	return slices.Compact(names)
}

// String describes the targets in words.
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

// TargetsOf returns the targets that a group's status holds; computed is false when they have not been computed yet.
func TargetsOf(g *operatorsv1.OperatorGroup) (t Targets, computed bool) {
	t = slices.Clone(g.Status.Namespaces)
	slices.Sort(t)
	return t, len(t) > 0 || g.Status.LastUpdated != nil
}

// AnnotatedTargets returns the targets that the annotation of a CSV says; ok is false when it is absent, as it is for a
// group that selects nothing.
func AnnotatedTargets(c *owned.CSV) (t Targets, ok bool) {
	value, ok := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !ok {
		return nil, false
	}
	return strings.Split(value, ","), true
}

// Alone returns the OperatorGroup of a namespace when it is the only one, else nil, and how many the namespace has.
func Alone(groups []*operatorsv1.OperatorGroup, namespace string) (g *operatorsv1.OperatorGroup, count int) {
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

// IsMember reports whether the annotations of a CSV name a group.
func IsMember(c *owned.CSV, g *operatorsv1.OperatorGroup) bool {
	return c.Annotations[operatorsv1.OperatorGroupAnnotationKey] == g.Name &&
		c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey] == g.Namespace
}

// watches reports whether a namespace is a group's own or one of its targets.
func watches(g *operatorsv1.OperatorGroup, namespace string) bool {
	return namespace == g.Namespace || Targets(g.Status.Namespaces).Contains(namespace)
}

// intersect reports whether two groups watch one namespace.
func intersect(a, b *operatorsv1.OperatorGroup) bool {
	return Targets(a.Status.Namespaces).All() || watches(b, a.Namespace) ||
		slices.ContainsFunc(a.Status.Namespaces, func(namespace string) bool { return watches(b, namespace) })
}

// Unsupported says why the install modes of a CSV do not allow it to watch the targets of its group; empty when they
// do.
//
// Source: operator-framework/api pkg/operators/v1alpha1, InstallModeSet.Supports.
func Unsupported(c *owned.CSV, t Targets) string {
	supports := func(mode v1alpha1.InstallModeType) bool {
		i := slices.IndexFunc(c.Spec.InstallModes, func(m v1alpha1.InstallMode) bool { return m.Type == mode })
		return i >= 0 && c.Spec.InstallModes[i].Supported
	}
	unsupported := func(mode v1alpha1.InstallModeType, what string) string {
		return fmt.Sprintf("%s InstallModeType not supported, cannot configure to watch %s", mode, what)
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
	for _, namespace := range t {
		if namespace == c.Namespace && !supports(v1alpha1.InstallModeTypeOwnNamespace) {
			return unsupported(v1alpha1.InstallModeTypeOwnNamespace, "own namespace")
		}
		if namespace == metav1.NamespaceAll && len(t) > 1 {
			return "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"
		}
	}
	return ""
}
