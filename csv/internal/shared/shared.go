// SPDX-License-Identifier: Apache-2.0

// Package shared finds the ClusterServiceVersions that need a cluster-scoped object besides the one that its owner
// labels name.
package shared

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Sources is what tells who needs an object.
type Sources struct {
	ClusterServiceVersions []*v1alpha1.ClusterServiceVersion
	InstallPlans           []*v1alpha1.InstallPlan
	OperatorGroups         []*operatorsv1.OperatorGroup
}

// Index finds the co-owners of objects.
type Index struct {
	live    map[types.NamespacedName]*v1alpha1.ClusterServiceVersion
	planned map[olmcore.Key][]types.NamespacedName
}

// NewIndex returns the Index of some Sources. A step counts that was applied, in a plan that runs as the controller: a
// user who can write such a plan can write the object itself. Where the OperatorGroup prescribes an account, only what
// is recorded on the object counts, which the account must have been allowed to write.
func NewIndex(s Sources) *Index {
	x := &Index{map[types.NamespacedName]*v1alpha1.ClusterServiceVersion{}, map[olmcore.Key][]types.NamespacedName{}}
	for _, c := range s.ClusterServiceVersions {
		if c.DeletionTimestamp == nil && !c.IsCopied() {
			x.live[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c
		}
	}
	groups := map[string][]*operatorsv1.OperatorGroup{}
	for _, g := range s.OperatorGroups {
		groups[g.Namespace] = append(groups[g.Namespace], g)
	}
	for _, p := range s.InstallPlans {
		if !runsAsController(p, groups[p.Namespace]) {
			continue
		}
		for _, step := range p.Status.Plan {
			if key, ok := KeyOf(step); ok {
				x.planned[key] = append(x.planned[key], types.NamespacedName{Namespace: p.Namespace, Name: step.Resolving})
			}
		}
	}
	return x
}

// KeyOf returns the cluster-scoped object that a step describes, if it is one, and whether the step was applied for a
// ClusterServiceVersion. The key of a namespaced object is that of none.
func KeyOf(step *v1alpha1.Step) (key olmcore.Key, applied bool) {
	if step == nil || step.Resolving == "" || step.Status != v1alpha1.StepStatusCreated && step.Status != v1alpha1.StepStatusPresent {
		return key, false
	}
	return olmcore.Key{Group: step.Resource.Group, Kind: step.Resource.Kind, Name: step.Resource.Name}, true
}

func runsAsController(p *v1alpha1.InstallPlan, groups []*operatorsv1.OperatorGroup) bool {
	g, _ := group.Alone(groups, p.Namespace)
	return g != nil && g.Spec.ServiceAccountName == "" && g.Status.ServiceAccountRef == nil && p.Status.AttenuatedServiceAccountRef == nil
}

// NextOwnerOf returns the ClusterServiceVersion that should be the owner of an object once its owner is gone, nil for
// none: the first, by namespace and name, that is not being deleted.
func (x *Index) NextOwnerOf(o olmcore.Object) *v1alpha1.ClusterServiceVersion {
	if o.GetNamespace() != metav1.NamespaceAll {
		return nil
	}
	var candidates []*v1alpha1.ClusterServiceVersion
	add := func(key types.NamespacedName, uid types.UID) {
		c := x.live[key]
		if c == nil || uid != "" && c.UID != uid {
			return
		}
		if owned.IsLabelValue(c.Name) && !owned.By(c).Owns(o.GetLabels()) && grantsTo(o, c.Namespace) {
			candidates = append(candidates, c)
		}
	}
	for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
		add(types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, owner.UID)
	}
	for _, key := range x.planned[olmcore.KeyOf(o)] {
		add(key, "")
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(a, b *v1alpha1.ClusterServiceVersion) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// grantsTo reports whether an object concerns a namespace. Only a ClusterRoleBinding whose subjects are all
// ServiceAccounts of other owners' namespaces does not: an account of that name that is created again would get the
// rights of the deleted operator. ServiceAccounts of a namespace without an owner, such as those of a monitoring
// system, belong to no operator.
func grantsTo(o olmcore.Object, namespace string) bool {
	binding, ok := o.(*rbacv1.ClusterRoleBinding)
	if !ok || len(binding.Subjects) == 0 {
		return true
	}
	others := sets.New[string]()
	if owner, labelled := olmcore.OwnerOf(o.GetLabels()); labelled {
		others.Insert(owner.Namespace)
	}
	for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
		others.Insert(owner.Namespace)
	}
	others.Delete(namespace)
	return slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind || !others.Has(s.Namespace)
	})
}

// HandedOver returns a copy of an object whose owner labels name its next owner, which is no co-owner any more.
func HandedOver(o olmcore.Object, nextOwner *v1alpha1.ClusterServiceVersion) olmcore.Object {
	after := o.DeepCopyObject().(olmcore.Object)
	labels, _ := olmcore.MergeLabels(o.GetLabels(), owned.ByIncarnation(nextOwner).Labels())
	after.SetLabels(labels)
	others := slices.DeleteFunc(olmcore.CoOwners(o.GetAnnotations()), func(owner olmcore.Owner) bool {
		return owner.Namespace == nextOwner.Namespace && owner.Name == nextOwner.Name
	})
	after.SetAnnotations(olmcore.SetCoOwners(o.GetAnnotations(), others))
	return after
}
