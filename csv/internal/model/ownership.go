// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// OwnerOf returns the olmcore.Owner that the owner labels of a CSV's objects contain. Its UID is empty.
func OwnerOf(c *CSV) olmcore.Owner {
	return olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name}
}

// LabelledOwner returns the key of the CSV that the owner labels of an object name. ok is false if they name none.
func LabelledOwner(o metav1.Object) (key types.NamespacedName, ok bool) {
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	return types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, ok && owner.Kind == v1alpha1.ClusterServiceVersionKind
}

// OwnerOfGroup returns an olmcore.Owner for an OperatorGroup, without a UID. The owner labels of objects of the
// OperatorGroup name this owner.
func OwnerOfGroup(g *operatorsv1.OperatorGroup) olmcore.Owner {
	return olmcore.Owner{Kind: operatorsv1.OperatorGroupKind, Namespace: g.Namespace, Name: g.Name}
}

// GroupLabelPrefix is the prefix of a label key on the namespaces that an OperatorGroup watches. The UID of the
// OperatorGroup follows it.
const GroupLabelPrefix = olmcore.LabelGroupPrefix

// OwnerWithUID returns an olmcore.Owner for a CSV, with its UID. Unlike the result of OwnerOf, this owner does not own
// objects whose labels contain the UID of another CSV.
func OwnerWithUID(c *CSV) olmcore.Owner {
	owner := OwnerOf(c)
	owner.UID = c.UID
	return owner
}

// IsCoOwner reports whether an object records a CSV as a co-owner. A record without a UID matches by namespace and
// name.
func IsCoOwner(c *CSV, o olmcore.Object) bool {
	return slices.ContainsFunc(olmcore.CoOwners(o.GetAnnotations()), func(co olmcore.Owner) bool {
		return co.Namespace == c.Namespace && co.Name == c.Name && (co.UID == "" || co.UID == c.UID)
	})
}

// IsCSVReference reports whether an owner reference names a CSV, in any API version.
func IsCSVReference(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return r.Kind == v1alpha1.ClusterServiceVersionKind && group == v1alpha1.GroupName
}

// IsOwnedByAnother reports whether a list of owner references names at least one CSV, but nothing with the given UID.
func IsOwnedByAnother(owners []metav1.OwnerReference, uid types.UID) bool {
	return slices.ContainsFunc(owners, IsCSVReference) &&
		!slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// OwnsDeployment reports whether a Deployment belongs to a CSV, by its labels and its owner reference.
func OwnsDeployment(c *CSV, d *appsv1.Deployment) bool {
	return d.Namespace == c.Namespace && OwnerOf(c).Owns(d.Labels) && olmcore.OwnedBy(d, c.UID)
}
