// SPDX-License-Identifier: Apache-2.0

package catalog

import corev1 "k8s.io/api/core/v1"

// healthy reports whether Subscriptions may count on the catalog: it serves, or
// starts for the first time and is not late.
func (v *view) healthy(state State) bool {
	switch state {
	case StateServing, StateUpdating:
		return true
	case StateStarting:
		for i := range v.pods {
			if v.pods[i].late {
				return false
			}
		}
		return true
	}
	return false
}

// unreadKind is a kind that was not read, and what does not happen without it.
type unreadKind struct{ name, unknown string }

// unread lists the kinds that matter for the CatalogSource and were not read.
func (v *view) unread() (list []unreadKind) {
	add := func(read bool, name, unknown string) {
		if !read {
			list = append(list, unreadKind{name, unknown})
		}
	}
	in := v.in
	add(in.Nodes.Complete || in.Config.IgnoreNodes, "Node", "Pods of nodes that fail are replaced once Kubernetes has evicted them")
	add(in.NetworkPolicies.Complete, "NetworkPolicy", "none is made or repaired")
	if v.mode == modeConfigMap {
		add(in.Roles.Complete, "Role", "none is made or repaired")
		add(in.RoleBindings.Complete, "RoleBinding", "none is made or repaired")
	}
	add(in.PodDisruptionBudgets.Complete || !v.wantsBudget(), "PodDisruptionBudget", "none is made or repaired")
	return list
}

// upstreamHealthy is what OLM would say: nothing about readiness, nodes or
// connections.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
// Differs: it deletes nothing, and the label of the ServiceAccount does not matter.
func (v *view) upstreamHealthy() bool {
	if v.mode == modeAddress {
		return true
	}
	if !v.runsPods() || v.account() == nil || v.service() == nil {
		return false
	}
	for which := range v.policyAt {
		if o := v.policy(which); o == nil && v.in.NetworkPolicies.Complete || o != nil && !policyFits(&o.Spec, v.cs, which) {
			return false
		}
	}
	if v.mode == modeConfigMap && (v.role() == nil && v.in.Roles.Complete || v.roleBinding() == nil && v.in.RoleBindings.Complete ||
		v.wantedReference() != v.cs.Status.ConfigMapResource) {
		return false
	}
	for i := range v.pods {
		p := v.pods[i].pod
		if v.pods[i].role == roleServing && v.current(p) && podCondition(p, corev1.DisruptionTarget) != corev1.ConditionTrue {
			return true
		}
	}
	return false
}
