// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// targets is a set of namespaces that an operator watches: sorted names, or one
// empty name for all. Empty is none, which is never the same as all.
type targets []string

func (t targets) all() bool { return len(t) == 1 && t[0] == metav1.NamespaceAll }

func (t targets) contains(namespace string) bool { return t.all() || slices.Contains(t, namespace) }

// groupTargets reads the targets that the group's status holds; ok is false when
// nobody has computed them yet.
func groupTargets(g *operatorsv1.OperatorGroup) (t targets, ok bool) {
	names := g.Status.Namespaces
	if !slices.IsSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	return targets(names), len(names) > 0 || g.Status.LastUpdated != nil
}

// annotatedTargets reads a CSV's annotation; ok is false when it is absent.
func annotatedTargets(c *version) (t targets, ok bool) {
	value, ok := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !ok {
		return nil, false
	}
	return strings.Split(value, ","), true
}

// isMember reports whether the annotations of a CSV name a group.
func isMember(c *version, g *operatorsv1.OperatorGroup) bool {
	return c.Annotations[operatorsv1.OperatorGroupAnnotationKey] == g.Name &&
		c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey] == g.Namespace
}

// named are the namespaces that have a name, each once: a list that holds the
// empty name beside others selects no more than the others.
func (t targets) named() targets {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(t)), func(n string) bool { return n == metav1.NamespaceAll })
	return slices.Compact(names)
}

func (t targets) String() string {
	switch {
	case t.all():
		return "all namespaces"
	case len(t) == 0:
		return "no namespace"
	case len(t) == 1:
		return "namespace " + t[0]
	}
	return "namespaces " + strings.Join(t, ", ")
}

// isWritten reports whether the annotation says just these targets. None is said
// by having no annotation.
func (t targets) isWritten(c *version) bool {
	value, ok := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !ok || len(t) == 0 {
		return !ok && len(t) == 0
	}
	for i, name := range t {
		if i > 0 {
			if value, ok = strings.CutPrefix(value, ","); !ok {
				return false
			}
		}
		if value, ok = strings.CutPrefix(value, name); !ok {
			return false
		}
	}
	return value == ""
}

// modes are the install modes that a CSV supports.
type modes []v1alpha1.InstallMode

func (m modes) duplicate() bool {
	for i := range m {
		for j := range m[:i] {
			if m[i].Type == m[j].Type {
				return true
			}
		}
	}
	return false
}

func (m modes) supports(t v1alpha1.InstallModeType) bool {
	for i := range m {
		if m[i].Type == t {
			return m[i].Supported
		}
	}
	return false
}

// check says why the modes do not allow to watch the targets from a namespace;
// empty when they do.
//
// Source: operator-framework/api pkg/operators/v1alpha1, InstallModeSet.Supports.
func (m modes) check(own string, t targets) string {
	unsupported := func(mode v1alpha1.InstallModeType, what string) string {
		return fmt.Sprintf("%s InstallModeType not supported, cannot configure to watch %s", mode, what)
	}
	switch {
	case len(t) == 0:
		return "operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces"
	case len(t) > 1 && !m.supports(v1alpha1.InstallModeTypeMultiNamespace):
		return unsupported(v1alpha1.InstallModeTypeMultiNamespace, fmt.Sprintf("%d namespaces", len(t)))
	case len(t) == 1 && t[0] == metav1.NamespaceAll && !m.supports(v1alpha1.InstallModeTypeAllNamespaces):
		return unsupported(v1alpha1.InstallModeTypeAllNamespaces, "all namespaces")
	case len(t) == 1 && t[0] != metav1.NamespaceAll && t[0] != own && !m.supports(v1alpha1.InstallModeTypeSingleNamespace):
		return unsupported(v1alpha1.InstallModeTypeSingleNamespace, "one namespace")
	}
	for _, namespace := range t {
		if namespace == own && !m.supports(v1alpha1.InstallModeTypeOwnNamespace) {
			return unsupported(v1alpha1.InstallModeTypeOwnNamespace, "own namespace")
		}
		if namespace == metav1.NamespaceAll && len(t) > 1 {
			return "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"
		}
	}
	return ""
}
