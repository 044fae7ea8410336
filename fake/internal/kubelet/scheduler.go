// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// scheduler selects nodes for Pods.
type scheduler struct {
	store         *store.Store
	takesEveryPod func() bool
}

// best returns the node with the best score that fits a Pod, or nil.
func (s *scheduler) best(pod *corev1.Pod, nodes []olmcore.Object) *corev1.Node {
	var best *corev1.Node
	var bestScore [2]int
	for _, o := range nodes {
		node := o.(*corev1.Node)
		if !s.fits(pod, node) {
			continue
		}
		score := [2]int{preference(pod, node), -s.similarPods(pod, node)}
		if best == nil || score[0] > bestScore[0] || score[0] == bestScore[0] && score[1] > bestScore[1] {
			best, bestScore = node, score
		}
	}
	return best
}

// fits reports whether a node passes the filters of the scheduler.
func (s *scheduler) fits(pod *corev1.Pod, node *corev1.Node) bool {
	return s.takesEveryPod() || offers(&pod.Spec, node) && s.spreads(pod, node)
}

// offers reports whether a node may run a Pod of a spec, regardless of other Pods.
func offers(spec *corev1.PodSpec, node *corev1.Node) bool {
	if !isReady(node) || node.Spec.Unschedulable || node.DeletionTimestamp != nil {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(&t, taint) }) {
			return false
		}
	}
	for key, value := range spec.NodeSelector {
		if have, ok := node.Labels[key]; !ok || have != value {
			return false
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return true
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required == nil || slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return termMatches(term, node)
	})
}

// spreads checks required anti-affinity and spread constraints by host name.
func (s *scheduler) spreads(pod *corev1.Pod, node *corev1.Node) bool {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey == corev1.LabelHostname && s.countPods(pod, node, term.LabelSelector) > 0 {
				return false
			}
		}
	}
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule || constraint.TopologyKey != corev1.LabelHostname {
			continue
		}
		least := -1
		for _, o := range s.store.Table(store.NodeKind).List("") {
			if other := o.(*corev1.Node); offers(&pod.Spec, other) {
				if n := s.countPods(pod, other, constraint.LabelSelector); least < 0 || n < least {
					least = n
				}
			}
		}
		if s.countPods(pod, node, constraint.LabelSelector)+1-max(least, 0) > int(constraint.MaxSkew) {
			return false
		}
	}
	return true
}

// preference sums the weights of the node affinity that a node satisfies.
func preference(pod *corev1.Pod, node *corev1.Node) int {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return 0
	}
	sum := 0
	for _, p := range pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		if termMatches(p.Preference, node) {
			sum += int(p.Weight)
		}
	}
	return sum
}

// similarPods counts the Pods on a node that the Pod should be spread from: those that its soft constraints select, or
// those with the same labels if it has none.
func (s *scheduler) similarPods(pod *corev1.Pod, node *corev1.Node) int {
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.TopologyKey == corev1.LabelHostname {
			return s.countPods(pod, node, constraint.LabelSelector)
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, p := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if p.PodAffinityTerm.TopologyKey == corev1.LabelHostname {
				return s.countPods(pod, node, p.PodAffinityTerm.LabelSelector)
			}
		}
	}
	return s.count(pod, node, func(other *corev1.Pod) bool { return maps.Equal(other.Labels, pod.Labels) })
}

func (s *scheduler) countPods(pod *corev1.Pod, node *corev1.Node, selector *metav1.LabelSelector) int {
	return s.count(pod, node, func(other *corev1.Pod) bool { return matches(selector, other.Labels) })
}

func (s *scheduler) count(pod *corev1.Pod, node *corev1.Node, similar func(*corev1.Pod) bool) (n int) {
	for _, o := range s.store.Table(store.PodKind).List(pod.Namespace) {
		other := o.(*corev1.Pod)
		if other.Spec.NodeName == node.Name && other.DeletionTimestamp == nil && !terminated(other) && similar(other) {
			n++
		}
	}
	return n
}

func termMatches(term corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return false
	}
	for _, r := range term.MatchExpressions {
		value, ok := node.Labels[r.Key]
		if !requirementMatches(r, value, ok) {
			return false
		}
	}
	for _, r := range term.MatchFields {
		if r.Key != metav1.ObjectNameField || !requirementMatches(r, node.Name, true) {
			return false
		}
	}
	return true
}

func requirementMatches(r corev1.NodeSelectorRequirement, value string, exists bool) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return exists && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !exists || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return exists
	case corev1.NodeSelectorOpDoesNotExist:
		return !exists
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if !exists || len(r.Values) != 1 {
			return false
		}
		have, err1 := strconv.Atoi(value)
		want, err2 := strconv.Atoi(r.Values[0])
		return err1 == nil && err2 == nil &&
			(r.Operator == corev1.NodeSelectorOpGt && have > want || r.Operator == corev1.NodeSelectorOpLt && have < want)
	}
	return false
}

// fitsAny reports whether any node may run Pods of a spec.
func (s *scheduler) fitsAny(spec *corev1.PodSpec) bool {
	return s.takesEveryPod() || slices.ContainsFunc(s.store.Table(store.NodeKind).List(""), func(o olmcore.Object) bool {
		return offers(spec, o.(*corev1.Node))
	})
}
