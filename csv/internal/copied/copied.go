// SPDX-License-Identifier: Apache-2.0

// Package copied tells which ClusterServiceVersions are copies of which original, and where an original's copies shall
// be: in the namespaces that its operator watches, so that their users see it.
package copied

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Home returns the key under which is decided about a ClusterServiceVersion as a copy: the original that its label
// names, or itself without the label. That of an original is itself.
func Home(c metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(c.GetLabels()[olmcore.LabelCopiedFrom], c.GetNamespace()), Name: c.GetName()}
}

// From reports whether the label of a ClusterServiceVersion makes it a copy of the original with a key.
func From(key types.NamespacedName, c metav1.Object) bool {
	return c.GetNamespace() != key.Namespace && Home(c) == key
}

// Targets returns the namespaces that the operator of an original watches; ok is false for a ClusterServiceVersion of
// which no copies are made: a copy, one that is being deleted or that its status keeps from being copied, and one whose
// annotations do not say what the only OperatorGroup of its namespace does.
func Targets(c *owned.CSV, g *operatorsv1.OperatorGroup) (t group.Targets, ok bool) {
	if c.DeletionTimestamp != nil || c.IsCopied() || c.IsUncopiable() || g == nil || !group.IsMember(c, g) {
		return nil, false
	}
	noted, annotated := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	t, computed := group.TargetsOf(g)
	return t, computed && annotated && len(t) > 0 && noted == strings.Join(t, ",")
}

// ConfigName is the name of the OLMConfig that counts.
const ConfigName = "cluster"

// Toggle is what an OLMConfig says about copies of operators that watch all namespaces, and what the caller does.
type Toggle struct {
	// Disabled: there are none, except in the Protected namespaces.
	Disabled  bool
	Protected []string
}

// ToggleOf reads an OLMConfig, which may be nil.
func ToggleOf(config *operatorsv1.OLMConfig, protected []string) Toggle {
	return Toggle{Disabled: !config.CopiedCSVsAreEnabled(), Protected: protected}
}

// Keeps reports whether a copy may be in a namespace that is a target.
func (t Toggle) Keeps(global bool, namespace string) bool {
	return !t.Disabled || !global || slices.Contains(t.Protected, namespace)
}

// Namespaces returns the namespaces in which there shall be copies of an original of the namespace own, sorted.
func (t Toggle) Namespaces(own string, targets group.Targets, all []*corev1.Namespace) []string {
	global := targets.All()
	watched := sets.New(targets...)
	var names []string
	for _, n := range all {
		if n.Name != own && (global || watched.Has(n.Name)) && !IsLeaving(n) && t.Keeps(global, n.Name) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// IsLeaving reports whether a namespace is being deleted: nothing can be created in it, and what is in it goes with it.
func IsLeaving(n *corev1.Namespace) bool {
	return n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating
}
