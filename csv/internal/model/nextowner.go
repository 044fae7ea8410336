// SPDX-License-Identifier: Apache-2.0

package model

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

	"github.com/olmcore/olm/olmcore"
)

// OwnerSources contains the observed objects from which IndexNextOwners finds out which ClusterServiceVersions need an
// object.
type OwnerSources struct {
	ClusterServiceVersions []*v1alpha1.ClusterServiceVersion
	InstallPlans           []*v1alpha1.InstallPlan
	OperatorGroups         []*operatorsv1.OperatorGroup
}

// NextOwners finds the ClusterServiceVersion that should own an object once the current owner of the object is deleted.
type NextOwners struct {
	live    map[types.NamespacedName]*v1alpha1.ClusterServiceVersion
	planned map[olmcore.Key][]types.NamespacedName
}

// IndexNextOwners returns the NextOwners of s. A ClusterServiceVersion needs an object if the object records the
// ClusterServiceVersion as a co-owner, or if an InstallPlan applied a step with the object for the
// ClusterServiceVersion. The steps of InstallPlans that run as a ServiceAccount are ignored.
func IndexNextOwners(s OwnerSources) *NextOwners {
	x := &NextOwners{map[types.NamespacedName]*v1alpha1.ClusterServiceVersion{}, map[olmcore.Key][]types.NamespacedName{}}
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
			if key, ok := StepKey(step); ok {
				x.planned[key] = append(x.planned[key], types.NamespacedName{Namespace: p.Namespace, Name: step.Resolving})
			}
		}
	}
	return x
}

// StepKey returns the key of the object in a step, without a namespace. So the key matches only cluster-scoped objects.
// If the step was not applied, or belongs to no ClusterServiceVersion, applied is false and the key is empty.
func StepKey(step *v1alpha1.Step) (key olmcore.Key, applied bool) {
	if step == nil || step.Resolving == "" || step.Status != v1alpha1.StepStatusCreated && step.Status != v1alpha1.StepStatusPresent {
		return key, false
	}
	return olmcore.Key{Group: step.Resource.Group, Kind: step.Resource.Kind, Name: step.Resource.Name}, true
}

func runsAsController(p *v1alpha1.InstallPlan, groups []*operatorsv1.OperatorGroup) bool {
	g, _ := OnlyGroup(groups, p.Namespace)
	return g != nil && g.Spec.ServiceAccountName == "" && g.Status.ServiceAccountRef == nil && p.Status.AttenuatedServiceAccountRef == nil
}

// NextOwnerOf returns the ClusterServiceVersion that should own a cluster-scoped object once its owner is deleted. This
// is the first ClusterServiceVersion, by namespace and name, that needs the object and is not being deleted.
// NextOwnerOf returns nil if there is none, or if the object is namespaced.
func (x *NextOwners) NextOwnerOf(o olmcore.Object) *v1alpha1.ClusterServiceVersion {
	if o.GetNamespace() != metav1.NamespaceAll {
		return nil
	}
	var candidates []*v1alpha1.ClusterServiceVersion
	add := func(key types.NamespacedName, uid types.UID) {
		c := x.live[key]
		if c == nil || uid != "" && c.UID != uid {
			return
		}
		if IsLabelValue(c.Name) && !OwnerOf(c).Owns(o.GetLabels()) && grantsTo(o, c.Namespace) {
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

// grantsTo reports whether an object may be needed by an operator of a namespace. It returns false for a
// ClusterRoleBinding whose subjects are all ServiceAccounts in the namespaces of other owners. Such a ServiceAccount
// could be created again, and would then have the permissions of the deleted operator. ServiceAccounts in other
// namespaces, such as those of a monitoring system, belong to no operator.
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

// HandedOver returns a copy of o with owner labels that name nextOwner. The copy does not list nextOwner as a co-owner.
func HandedOver(o olmcore.Object, nextOwner *v1alpha1.ClusterServiceVersion) olmcore.Object {
	after := o.DeepCopyObject().(olmcore.Object)
	labels, _ := olmcore.MergeMaps(o.GetLabels(), OwnerWithUID(nextOwner).Labels())
	after.SetLabels(labels)
	others := slices.DeleteFunc(olmcore.CoOwners(o.GetAnnotations()), func(owner olmcore.Owner) bool {
		return owner.Namespace == nextOwner.Namespace && owner.Name == nextOwner.Name
	})
	after.SetAnnotations(olmcore.SetCoOwners(o.GetAnnotations(), others))
	return after
}
