// SPDX-License-Identifier: Apache-2.0

// Package copied finds the original of a copied ClusterServiceVersion, and the namespaces that should have copies of an
// original. These are the namespaces that its operator watches.
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

// Home returns the key of the original of a copied CSV. The label olm.copiedFrom contains the namespace of the
// original, and both have the same name. For an object without the label, such as an original, Home returns the
// object's own key.
func Home(c metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(c.GetLabels()[olmcore.LabelCopiedFrom], c.GetNamespace()), Name: c.GetName()}
}

// From reports whether c is a copy of the CSV with the given key, according to the label olm.copiedFrom of c.
func From(key types.NamespacedName, c metav1.Object) bool {
	return c.GetNamespace() != key.Namespace && Home(c) == key
}

// Targets returns the namespaces that the operator of an original watches. g is the only OperatorGroup of the
// namespace, or nil. ok is false if the CSV has no copies, in these cases:
//   - The CSV is a copy itself, or is being deleted.
//   - The status of the CSV does not allow copies.
//   - g is nil or has no targets, or the annotations of the CSV do not match g.
func Targets(c *owned.CSV, g *operatorsv1.OperatorGroup) (t group.Targets, ok bool) {
	if c.DeletionTimestamp != nil || c.IsCopied() || c.IsUncopiable() || g == nil || !group.IsMember(c, g) {
		return nil, false
	}
	noted, annotated := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	t, computed := group.TargetsOf(g)
	return t, computed && annotated && len(t) > 0 && noted == strings.Join(t, ",")
}

// ConfigName is the name of the only OLMConfig that has an effect.
const ConfigName = "cluster"

// Toggle determines which namespaces have copies of an operator that watches all namespaces. The options come from the
// OLMConfig and the caller.
type Toggle struct {
	// Disabled is true if operators that watch all namespaces have copies only in the namespaces of Protected.
	Disabled  bool
	Protected []string
}

// ToggleOf returns the Toggle for an OLMConfig and a list of protected namespaces. config may be nil.
func ToggleOf(config *operatorsv1.OLMConfig, protected []string) Toggle {
	return Toggle{Disabled: !config.CopiedCSVsAreEnabled(), Protected: protected}
}

// Keeps reports whether a target namespace may have a copy. global is true if the operator watches all namespaces.
func (t Toggle) Keeps(global bool, namespace string) bool {
	return !t.Disabled || !global || slices.Contains(t.Protected, namespace)
}

// Namespaces returns the sorted names of the namespaces that should have a copy. all contains the existing namespaces.
// own is the namespace of the original. Terminating namespaces are omitted.
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

// IsLeaving reports whether a namespace is being deleted. Nothing can be created in it, and its objects are deleted
// with it.
func IsLeaving(n *corev1.Namespace) bool {
	return n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating
}
