// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strconv"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/olmcore"
)

func (v *view) budget() *policyv1.PodDisruptionBudget {
	for _, o := range v.in.PodDisruptionBudgets.Items {
		if o.Namespace == v.cs.Namespace && dashedEqual(o.Name, v.cs.Name) {
			return o
		}
	}
	return nil
}

func (v *view) wantsBudget() bool {
	return v.runsPods() && v.set.replicas >= 2 && !v.in.Config.NoPodDisruptionBudget
}

// budgetAction keeps voluntary disruptions from taking more than one replica at a
// time. minAvailable must be a number: the Pods' owner has no scale, so that the
// disruption controller forbids everything for percentages and for maxUnavailable.
func (v *view) budgetAction() olmcore.Action {
	have := v.budget()
	if !v.wantsBudget() {
		if have == nil || have.DeletionTimestamp != nil || !owns(v.cs.UID, have.OwnerReferences) {
			return nil
		}
		return olmcore.DeleteOf(have, olmcore.Cause{Reason: ReasonBudgetObsolete, Message: "one replica needs no budget"})
	}
	want := func() policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(int32(v.set.replicas - 1))), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			Selector: &metav1.LabelSelector{MatchLabels: servingLabels(v.cs.Name)},
		}
	}
	if have == nil && !v.in.PodDisruptionBudgets.Complete {
		return nil
	}
	if have == nil {
		return missing(&policyv1.PodDisruptionBudget{ObjectMeta: v.meta(serviceName(v.cs.Name)), Spec: want()})
	}
	fits := v.budgetFits(&have.Spec)
	if v.untouchable(&have.ObjectMeta) || fits && v.settled(&have.ObjectMeta) {
		return nil
	}
	after := have.DeepCopy()
	v.settle(&after.ObjectMeta)
	if !fits {
		after.Spec = want()
	}
	return differs(have, after, "label, owner or spec differ")
}

func (v *view) budgetFits(s *policyv1.PodDisruptionBudgetSpec) bool {
	return s.MinAvailable != nil && *s.MinAvailable == intstr.FromInt32(int32(v.set.replicas-1)) && s.MaxUnavailable == nil &&
		s.UnhealthyPodEvictionPolicy != nil && *s.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow &&
		s.Selector != nil && len(s.Selector.MatchExpressions) == 0 && len(s.Selector.MatchLabels) == 2 &&
		s.Selector.MatchLabels[labelServing] == v.cs.Name && s.Selector.MatchLabels[olmcore.LabelManaged] == "true"
}

// replicasSpread says whether the replicas are on as many nodes as can be.
func (v *view) replicasSpread(b []byte) condition {
	c := condition{kind: ConditionReplicasSpread, status: metav1.ConditionTrue, reason: ReasonSpread}
	switch {
	case v.set.replicas < 2 || !v.runsPods():
		return condition{kind: ConditionReplicasSpread}
	case !v.in.Nodes.Complete:
		c.status, c.reason, c.message = metav1.ConditionUnknown, ReasonNodesUnknown, append(b, "the nodes were not read"...)
		return c
	}
	nodes, pods := v.spreadOf()
	if nodes < pods {
		usable := 0
		for _, n := range v.in.Nodes.Items {
			if v.schedulable(n) {
				usable++
			}
		}
		if nodes < min(v.set.replicas, usable) {
			c.status, c.reason = metav1.ConditionFalse, ReasonCoLocated
		}
	}
	b = append(strconv.AppendInt(append(b, "registry pods: "...), int64(pods), 10), ", nodes: "...)
	c.message = strconv.AppendInt(b, int64(nodes), 10)
	return c
}

// spreadOf counts the Pods that serve or will, and the nodes that they are on.
func (v *view) spreadOf() (nodes, pods int) {
	counted := func(p *podFacts) bool { return p.role == roleServing && p.live() && p.pod.Spec.NodeName != "" }
	for i := range v.pods {
		if !counted(&v.pods[i]) {
			continue
		}
		pods++
		first := true
		for j := range i {
			first = first && !(counted(&v.pods[j]) && v.pods[j].pod.Spec.NodeName == v.pods[i].pod.Spec.NodeName)
		}
		if first {
			nodes++
		}
	}
	return nodes, pods
}
