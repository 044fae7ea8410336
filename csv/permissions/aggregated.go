// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/olmcore"
)

// toUsers is part of the labels that aggregate rules into the ClusterRoles of users.
const toUsers = "/aggregate-to-"

// Aggregates reports whether the rules of a ClusterRole depend on the labels of other ClusterRoles. It ignores
// selectors for the labels that aggregate rules into the ClusterRoles of users, such as
// rbac.authorization.k8s.io/aggregate-to-admin. The role may be nil.
func Aggregates(r *rbacv1.ClusterRole) bool { return len(selectorsOf(r)) > 0 }

// selectorsOf returns the label selectors of a ClusterRole that aggregates, without those for users.
func selectorsOf(r *rbacv1.ClusterRole) (all []labels.Selector) {
	if r == nil || r.AggregationRule == nil {
		return nil
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		s := &r.AggregationRule.ClusterRoleSelectors[i]
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err == nil && !selector.Empty() && !ofUsers(s) {
			all = append(all, selector)
		}
	}
	return all
}

// ofUsers reports whether a selector selects by a label that aggregates rules into the ClusterRoles of users.
func ofUsers(s *metav1.LabelSelector) bool {
	for key := range s.MatchLabels {
		if strings.Contains(key, toUsers) {
			return true
		}
	}
	return false
}

// aggregatedBy returns the rules that each ClusterRole for which Aggregates is true gets from other ClusterRoles in
// objects. The key is the name of the ClusterRole.
func aggregatedBy(objects []olmcore.Object) map[string][]rbacv1.PolicyRule {
	selectors, roles := map[string][]labels.Selector{}, []*rbacv1.ClusterRole{}
	for _, o := range objects {
		r, is := o.(*rbacv1.ClusterRole)
		if is && r != nil {
			roles = append(roles, r)
			if s := selectorsOf(r); len(s) > 0 {
				selectors[r.Name] = s
			}
		}
	}
	all := make(map[string][]rbacv1.PolicyRule, len(selectors))
	for name := range selectors {
		met := map[string]bool{name: true}
		for open := []string{name}; len(open) > 0; open = open[1:] {
			for _, r := range roles {
				if met[r.Name] || !slices.ContainsFunc(selectors[open[0]], func(s labels.Selector) bool { return s.Matches(labels.Set(r.Labels)) }) {
					continue
				}
				met[r.Name] = true
				if r.AggregationRule == nil {
					all[name] = append(all[name], r.Rules...)
				} else {
					open = append(open, r.Name)
				}
			}
		}
	}
	return all
}
