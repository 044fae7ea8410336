// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// Safety watches a cluster for what must never happen, whatever fails. Call Check after every step; it compares with
// what it saw before. The zero value with Cluster set is ready.
type Safety struct {
	Cluster *fake.Cluster
	// Ignore selects whole objects that are not looked at; an entry with a Path selects none.
	Ignore []Ignore

	plans map[types.UID]*v1alpha1.InstallPlan
	csvs  map[types.UID]*v1alpha1.ClusterServiceVersion
	// doomed are the ClusterRoles and ClusterRoleBindings that each CSV had when its deletion was seen first.
	doomed map[types.UID][]olmcore.Object
}

// Check returns what must never happen and did since the last call:
//
//   - an InstallPlan lost the owner reference to a Subscription that still exists,
//   - an InstallPlan lost a component label,
//   - an InstallPlan left Complete, or is installed without approval,
//   - a ClusterServiceVersion is gone and left a ClusterRole or ClusterRoleBinding behind that was its own when it was
//     deleted. An object that another manager creates in the minute before the deletion, or after it, is left to the sweep: the
//     cache of the manager that cleans up may not show it.
func (s *Safety) Check() error {
	if err := ignored(s.Ignore).validate(); err != nil {
		return err
	}
	plans, planErr := s.checkPlans()
	csvs, csvErr := s.checkCSVs()
	s.plans, s.csvs = plans, csvs
	return errors.Join(planErr, csvErr)
}

func (s *Safety) checkPlans() (map[types.UID]*v1alpha1.InstallPlan, error) {
	found, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), s.Cluster, "", nil)
	if err != nil {
		return nil, err
	}
	next := make(map[types.UID]*v1alpha1.InstallPlan, len(found))
	var broken []error
	for _, p := range found {
		if ignored(s.Ignore).whole(olmcore.KeyOf(p)) {
			continue
		}
		next[p.UID] = p
		before := s.plans[p.UID]
		if before == nil || before == p {
			continue
		}
		for _, ref := range before.OwnerReferences {
			if !olmcore.OwnedBy(p, ref.UID) && isSubscriptionOf(s.Cluster, p.Namespace, ref) {
				broken = append(broken, fmt.Errorf("InstallPlan %s/%s lost its owner %s %s", p.Namespace, p.Name, ref.Kind, ref.Name))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(before.Labels)) {
			if _, kept := p.Labels[key]; !kept && strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
				broken = append(broken, fmt.Errorf("InstallPlan %s/%s lost its label %s", p.Namespace, p.Name, key))
			}
		}
		from, to := before.Status.Phase, p.Status.Phase
		if from == v1alpha1.InstallPlanPhaseComplete && to != from {
			broken = append(broken, fmt.Errorf("InstallPlan %s/%s went from Complete to %q", p.Namespace, p.Name, to))
		}
		if from != to && to == v1alpha1.InstallPlanPhaseInstalling && !p.Spec.Approved {
			broken = append(broken, fmt.Errorf("InstallPlan %s/%s is installed without approval", p.Namespace, p.Name))
		}
	}
	return next, errors.Join(broken...)
}

// isSubscriptionOf reports whether an owner reference leads to a Subscription of the namespace that exists. Any other
// owner in another namespace, as a tenant may name one, is taken away by the garbage collector.
func isSubscriptionOf(c *fake.Cluster, namespace string, ref metav1.OwnerReference) bool {
	o := fake.Find[*v1alpha1.Subscription](c, namespace, ref.Name)
	return o != nil && ref.Kind == v1alpha1.SubscriptionKind && o.UID == ref.UID
}

func (s *Safety) checkCSVs() (map[types.UID]*v1alpha1.ClusterServiceVersion, error) {
	found, err := olmcore.List[*v1alpha1.ClusterServiceVersion](context.Background(), s.Cluster, "", nil)
	if err != nil {
		return nil, err
	}
	next := make(map[types.UID]*v1alpha1.ClusterServiceVersion, len(found))
	for _, c := range found {
		if ignored(s.Ignore).whole(olmcore.KeyOf(c)) {
			continue
		}
		next[c.UID] = c
	}
	doomed := map[types.UID][]olmcore.Object{}
	for uid, c := range next {
		if before, seen := s.doomed[uid]; seen {
			doomed[uid] = before
		} else if c.DeletionTimestamp != nil {
			doomed[uid] = visible(clusterRBAC(s.Cluster, c), c.DeletionTimestamp.Time)
		}
	}
	var broken []error
	for uid, c := range s.csvs {
		if next[uid] != nil {
			continue
		}
		left := s.doomed[uid]
		if !slices.Contains(c.Finalizers, "operators.coreos.com/csv-cleanup") && c.DeletionTimestamp == nil {
			left = clusterRBAC(s.Cluster, c) // it went at once
		}
		for _, o := range left {
			if o = stillThere(s.Cluster, o); o != nil && !ignored(s.Ignore).whole(olmcore.KeyOf(o)) && ownerOf(c).Owns(o.GetLabels()) {
				broken = append(broken, fmt.Errorf("ClusterServiceVersion %s/%s is gone and left %s behind", c.Namespace, c.Name, olmcore.KeyOf(o)))
			}
		}
	}
	s.doomed = doomed
	slices.SortFunc(broken, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return next, errors.Join(broken...)
}

// clusterRBAC returns the ClusterRoles and ClusterRoleBindings of a CSV.
func clusterRBAC(cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) (own []olmcore.Object) {
	for _, o := range cluster.Objects() {
		switch o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			if ownerOf(c).Owns(o.GetLabels()) {
				own = append(own, o)
			}
		}
	}
	return own
}

// cacheLag is how old an object has to be so that the cache of every manager shows it.
const cacheLag = time.Minute

// visible returns the objects that were created at least cacheLag before a time.
func visible(objects []olmcore.Object, at time.Time) []olmcore.Object {
	return slices.DeleteFunc(objects, func(o olmcore.Object) bool { return o.GetCreationTimestamp().Add(cacheLag).After(at) })
}

// stillThere returns an object as it is now, nil when it is gone.
func stillThere(c *fake.Cluster, o olmcore.Object) olmcore.Object {
	now, err := c.Get(context.Background(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
	if err != nil || now.GetUID() != o.GetUID() {
		return nil
	}
	return now
}

func ownerOf(c *v1alpha1.ClusterServiceVersion) olmcore.Owner {
	return olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name, UID: c.UID}
}
