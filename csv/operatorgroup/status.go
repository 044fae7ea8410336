// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// desiredStatus returns the status that the group should have, and whether it differs from the one that it has.
func desiredStatus(in *Input, a account) (operatorsv1.OperatorGroupStatus, bool) {
	g := in.OperatorGroup
	status := *g.Status.DeepCopy()
	setWhile := func(on bool, condition, reason, message string) {
		if !on {
			meta.RemoveStatusCondition(&status.Conditions, condition)
			return
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: olmcore.Timestamp(in.Now), Reason: reason, Message: message,
		})
	}
	desired := desiredTargets(in)
	have, computed := group.TargetsOf(g)
	if !computed || !slices.Equal(have, desired) {
		status.Namespaces, status.LastUpdated = desired, new(olmcore.Timestamp(in.Now))
	}
	if in.Siblings.Complete {
		crowded := slices.ContainsFunc(in.Siblings.Items, func(s *operatorsv1.OperatorGroup) bool {
			return s.Namespace == g.Namespace && s.Name != g.Name
		})
		setWhile(crowded, operatorsv1.MutlipleOperatorGroupCondition, operatorsv1.MultipleOperatorGroupsReason, "Multiple OperatorGroup found in the same namespace")
	}
	if a.awaited == 0 && !a.unread {
		setWhile(a.missing != "", operatorsv1.OperatorGroupServiceAccountCondition, operatorsv1.OperatorGroupServiceAccountReason, a.missing)
		status.ServiceAccountRef = a.reference(status.ServiceAccountRef)
	}
	return status, !equality.Semantic.DeepEqual(status, g.Status)
}

// selectsByLabel reports whether the targets depend on the labels of namespaces.
func selectsByLabel(g *operatorsv1.OperatorGroup) bool {
	s := g.Spec.Selector
	return len(g.Spec.TargetNamespaces) == 0 && s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// desiredTargets are the namespaces that the spec selects; none when its selector is invalid.
func desiredTargets(in *Input) (names group.Targets) {
	spec := &in.OperatorGroup.Spec
	switch {
	case len(spec.TargetNamespaces) > 0:
		return slices.Compact(slices.Sorted(slices.Values(spec.TargetNamespaces)))
	case !selectsByLabel(in.OperatorGroup):
		return group.Targets{metav1.NamespaceAll}
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

// accountGrace is how long the ServiceAccount of a new group may be missing from a stale cache before that is reported:
// both usually come with one kubectl apply.
const accountGrace = 10 * time.Second

// account is what is known of the ServiceAccount that a group prescribes for what is installed in its namespace; zero
// when it prescribes none.
type account struct {
	found   *corev1.ServiceAccount
	unread  bool
	missing string        // says that it does not exist
	awaited time.Duration // how long it may still be missing from a stale cache
}

func accountOf(in *Input) account {
	g := in.OperatorGroup
	if g.Spec.ServiceAccountName == "" {
		return account{}
	}
	found, exists := owned.Find(in.ServiceAccounts.Items, g.Namespace, g.Spec.ServiceAccountName)
	age := in.Now.Sub(g.CreationTimestamp.Time)
	switch {
	case exists:
		return account{found: found}
	case !in.ServiceAccounts.Complete:
		return account{unread: true}
	case g.Status.ServiceAccountRef == nil && age >= 0 && age < accountGrace:
		return account{awaited: accountGrace - age}
	}
	return account{missing: "ServiceAccount " + g.Spec.ServiceAccountName + " not found"}
}

// label returns the write that lets caches which select by this label hold the account.
func (a account) label(g *operatorsv1.OperatorGroup) []olmcore.Action {
	if a.found == nil || a.found.Labels[olmcore.LabelManaged] == "true" {
		return nil
	}
	after := a.found.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{olmcore.LabelManaged: "true"})
	return []olmcore.Action{olmcore.UpdateOf(a.found, after, olmcore.Cause{
		Reason: ReasonGroupChanged, Message: "OperatorGroup " + g.Name + " installs as this ServiceAccount",
	})}
}

// reference returns the reference to the account for the status: the one that it holds when that means the same
// account, as its resourceVersion ages and the reference does not.
func (a account) reference(have *corev1.ObjectReference) *corev1.ObjectReference {
	switch s := a.found; {
	case s == nil:
		return nil
	case have != nil && have.Kind == "ServiceAccount" && have.Namespace == s.Namespace && have.Name == s.Name && have.UID == s.UID:
		return have
	default:
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: s.Namespace, Name: s.Name, UID: s.UID}
	}
}
