// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
)

// OriginalKey returns the key of the original of a copied CSV. The label olm.copiedFrom contains the namespace of the
// original, and both have the same name. For an object without the label, such as an original, OriginalKey returns the
// object's own key.
func OriginalKey(c metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(c.GetLabels()[olmcore.LabelCopiedFrom], c.GetNamespace()), Name: c.GetName()}
}

// IsCopyOf reports whether c is a copy of the CSV with the given key, according to the label olm.copiedFrom of c.
func IsCopyOf(key types.NamespacedName, c metav1.Object) bool {
	return c.GetNamespace() != key.Namespace && OriginalKey(c) == key
}

// CopyTargets returns the namespaces that the operator of an original watches. g is the only OperatorGroup of the
// namespace, or nil. ok is false if the CSV has no copies, in these cases:
//   - The CSV is a copy itself, or is being deleted.
//   - The status of the CSV does not allow copies.
//   - g is nil or has no targets, or the annotations of the CSV do not match g.
func CopyTargets(c *CSV, g *operatorsv1.OperatorGroup) (t Targets, ok bool) {
	if c.DeletionTimestamp != nil || c.IsCopied() || c.IsUncopiable() || g == nil || !IsMemberOf(c, g) {
		return nil, false
	}
	noted, annotated := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	t, computed := TargetsOf(g)
	return t, computed && annotated && len(t) > 0 && noted == strings.Join(t, ",")
}

// OLMConfigName is the name of the only OLMConfig that has an effect.
const OLMConfigName = "cluster"

// CopyToggle determines which namespaces have copies of an operator that watches all namespaces. The options come from
// the OLMConfig and the caller.
type CopyToggle struct {
	// Disabled is true if operators that watch all namespaces have copies only in the namespaces of Protected.
	Disabled  bool
	Protected []string
}

// CopyToggleOf returns the CopyToggle for an OLMConfig and a list of protected namespaces. config may be nil.
func CopyToggleOf(config *operatorsv1.OLMConfig, protected []string) CopyToggle {
	return CopyToggle{Disabled: !config.CopiedCSVsAreEnabled(), Protected: protected}
}

// Keeps reports whether a target namespace may have a copy. global is true if the operator watches all namespaces.
func (t CopyToggle) Keeps(global bool, namespace string) bool {
	return !t.Disabled || !global || slices.Contains(t.Protected, namespace)
}

// Namespaces returns the sorted names of the namespaces that should have a copy. all contains the existing namespaces.
// own is the namespace of the original. Terminating namespaces are omitted.
func (t CopyToggle) Namespaces(own string, targets Targets, all []*corev1.Namespace) []string {
	global := targets.All()
	watched := sets.New(targets...)
	var names []string
	for _, n := range all {
		if n.Name != own && (global || watched.Has(n.Name)) && !IsTerminating(n) && t.Keeps(global, n.Name) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// IsTerminating reports whether a namespace is being deleted. Nothing can be created in it, and its objects are deleted
// with it.
func IsTerminating(n *corev1.Namespace) bool {
	return n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating
}
