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
		if o := v.policy(which); o == nil || !policyFits(&o.Spec, v.cs, which) {
			return false
		}
	}
	if v.mode == modeConfigMap && (v.role() == nil || v.roleBinding() == nil || v.wantedReference() != v.cs.Status.ConfigMapResource) {
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
