// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// writeStatus updates the status of the OperatorGroup. With the update it reports a missing ServiceAccount.
func writeStatus(f *facts) olmcore.Result {
	status := desiredStatus(f)
	if equality.Semantic.DeepEqual(status, f.group.Status) {
		return olmcore.Result{}
	}
	after := f.group.DeepCopy()
	after.Status = status
	res := olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateStatusOf(f.group, after, olmcore.Cause{
		Reason: ReasonStatusChanged, Message: "the targets, the ServiceAccount or the conditions changed",
	})}}
	if f.account.missing != "" {
		res.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonServiceAccountMissing, olmcore.RefOf(f.group),
			"spec.serviceAccountName", "%s", f.account.missing)}
	}
	return res
}

// desiredStatus returns the status that the OperatorGroup should have.
func desiredStatus(f *facts) operatorsv1.OperatorGroupStatus {
	status := *f.group.Status.DeepCopy()
	desired := desiredTargets(f.in)
	have, computed := model.TargetsOf(f.group)
	if !computed || !slices.Equal(have, desired) {
		status.Namespaces, status.LastUpdated = desired, new(olmcore.Timestamp(f.in.Now))
	}
	if f.in.Siblings.Complete {
		hasOthers := slices.ContainsFunc(f.in.Siblings.Items, func(s *operatorsv1.OperatorGroup) bool {
			return s.Namespace == f.group.Namespace && s.Name != f.group.Name
		})
		status.Conditions = withCondition(status.Conditions, hasOthers, metav1.Condition{
			Type: operatorsv1.MutlipleOperatorGroupCondition, Reason: operatorsv1.MultipleOperatorGroupsReason,
			Message: "Multiple OperatorGroup found in the same namespace", LastTransitionTime: olmcore.Timestamp(f.in.Now),
		})
	}
	if f.account.awaited == 0 && !f.account.unread {
		status.Conditions = withCondition(status.Conditions, f.account.missing != "", metav1.Condition{
			Type: operatorsv1.OperatorGroupServiceAccountCondition, Reason: operatorsv1.OperatorGroupServiceAccountReason,
			Message: f.account.missing, LastTransitionTime: olmcore.Timestamp(f.in.Now),
		})
		status.ServiceAccountRef = f.account.reference(status.ServiceAccountRef)
	}
	return status
}

// withCondition returns conditions in which a condition is True, or absent if isTrue is false.
func withCondition(conditions []metav1.Condition, isTrue bool, c metav1.Condition) []metav1.Condition {
	if !isTrue {
		meta.RemoveStatusCondition(&conditions, c.Type)
		return conditions
	}
	c.Status = metav1.ConditionTrue
	meta.SetStatusCondition(&conditions, c)
	return conditions
}

// selectsByLabel reports whether the targets of an OperatorGroup depend on the labels of namespaces.
func selectsByLabel(g *operatorsv1.OperatorGroup) bool {
	s := g.Spec.Selector
	return len(g.Spec.TargetNamespaces) == 0 && s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// desiredTargets returns the namespaces that the spec selects. It returns none if the selector is invalid.
func desiredTargets(in *Input) (names model.Targets) {
	spec := &in.OperatorGroup.Spec
	switch {
	case len(spec.TargetNamespaces) > 0:
		return slices.Compact(slices.Sorted(slices.Values(spec.TargetNamespaces)))
	case !selectsByLabel(in.OperatorGroup):
		return model.Targets{metav1.NamespaceAll}
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return nil
	}
	for _, n := range in.Namespaces.Items {
		if selector.Matches(labels.Set(n.Labels)) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}
