// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/fake/internal/store"
)

// budgetAgainst returns the name of a PodDisruptionBudget that forbids the eviction of a Pod, or the empty string if
// none does.
func budgetAgainst(s *store.Store, pod *corev1.Pod) string {
	for _, o := range s.Table(store.PDBKind).List(pod.Namespace) {
		if budget := o.(*policyv1.PodDisruptionBudget); matches(budget.Spec.Selector, pod.Labels) && disruptionsAllowed(s, budget) <= 0 {
			return budget.Name
		}
	}
	return ""
}

// disruptionsAllowed returns how many Pods of a budget may be evicted now.
func disruptionsAllowed(s *store.Store, budget *policyv1.PodDisruptionBudget) int {
	total, healthy := 0, 0
	for _, o := range s.Table(store.PodKind).List(budget.Namespace) {
		pod := o.(*corev1.Pod)
		if !matches(budget.Spec.Selector, pod.Labels) || terminated(pod) {
			continue
		}
		total++
		if podReady(pod) && pod.DeletionTimestamp == nil {
			healthy++
		}
	}
	needed := 0
	switch {
	case budget.Spec.MinAvailable != nil:
		needed = scaled(*budget.Spec.MinAvailable, total)
	case budget.Spec.MaxUnavailable != nil:
		needed = total - scaled(*budget.Spec.MaxUnavailable, total)
	}
	return healthy - needed
}

func scaled(v intstr.IntOrString, total int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, total, true)
	if err != nil {
		return total
	}
	return n
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return false
	}
	selected, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && selected.Matches(labels.Set(set))
}
