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
	"github.com/olmcore/olm/olmcore"
)

// desiredStatus returns the status that the group should have, and whether it differs
// from the one that it has.
func desiredStatus(in *Input, a account) (operatorsv1.OperatorGroupStatus, bool) {
	g := in.OperatorGroup
	status := *g.Status.DeepCopy()
	desired := desiredTargets(in)
	if have, computed := group.TargetsOf(g); !computed || !slices.Equal(have, desired) {
		at := olmcore.Timestamp(in.Now)
		status.Namespaces, status.LastUpdated = desired, &at
	}
	if in.Siblings.Complete {
		crowded := slices.ContainsFunc(in.Siblings.Items, func(s *operatorsv1.OperatorGroup) bool {
			return s.Namespace == g.Namespace && s.Name != g.Name
		})
		setWhile(crowded, &status.Conditions, in.Now, metav1.Condition{
			Type: operatorsv1.MutlipleOperatorGroupCondition, Reason: operatorsv1.MultipleOperatorGroupsReason,
			Message: "Multiple OperatorGroup found in the same namespace",
		})
	}
	if a.known {
		setWhile(a.isMissing(), &status.Conditions, in.Now, metav1.Condition{
			Type: operatorsv1.OperatorGroupServiceAccountCondition, Reason: operatorsv1.OperatorGroupServiceAccountReason,
			Message: a.missingMessage(),
		})
		status.ServiceAccountRef = a.reference(status.ServiceAccountRef)
	}
	return status, !equality.Semantic.DeepEqual(status, g.Status)
}

// setWhile keeps a condition that exists only while it is true.
func setWhile(on bool, list *[]metav1.Condition, now time.Time, c metav1.Condition) {
	if !on {
		meta.RemoveStatusCondition(list, c.Type)
		return
	}
	c.Status, c.LastTransitionTime = metav1.ConditionTrue, olmcore.Timestamp(now)
	meta.SetStatusCondition(list, c)
}

// selectsByLabel reports whether the targets depend on the labels of namespaces.
func selectsByLabel(g *operatorsv1.OperatorGroup) bool {
	s := g.Spec.Selector
	return len(g.Spec.TargetNamespaces) == 0 && s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// desiredTargets are the namespaces that the spec selects; none when its selector is
// invalid.
func desiredTargets(in *Input) group.Targets {
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
	var names group.Targets
	for _, n := range in.Namespaces.Items {
		if selector.Matches(labels.Set(n.Labels)) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// accountGrace is how long the ServiceAccount of a new group may be missing from a stale
// cache before that is reported: both usually come with one kubectl apply.
const accountGrace = 10 * time.Second

// account is the ServiceAccount that a group prescribes for what is installed in its
// namespace.
type account struct {
	name  string                 // empty: none is prescribed
	found *corev1.ServiceAccount // nil: none is prescribed, or it does not exist
	// known: what was found can be relied on. Else it was not read, or awaited is how
	// long it may still be missing from a stale cache.
	known   bool
	awaited time.Duration
}

func accountOf(in *Input) account {
	g := in.OperatorGroup
	a := account{name: g.Spec.ServiceAccountName}
	if a.name == "" {
		a.known = true
		return a
	}
	i := slices.IndexFunc(in.ServiceAccounts.Items, func(s *corev1.ServiceAccount) bool { return s.Name == a.name && s.Namespace == g.Namespace })
	if i >= 0 {
		a.found, a.known = in.ServiceAccounts.Items[i], true
		return a
	}
	age := in.Now.Sub(g.CreationTimestamp.Time)
	if in.ServiceAccounts.Complete && g.Status.ServiceAccountRef == nil && age >= 0 && age < accountGrace {
		a.awaited = accountGrace - age
	}
	a.known = in.ServiceAccounts.Complete && a.awaited == 0
	return a
}

func (a account) isMissing() bool { return a.known && a.name != "" && a.found == nil }

func (a account) missingMessage() string { return "ServiceAccount " + a.name + " not found" }

// say adds when to look again for an account that is not known.
func (a account) say(in *Input, res *olmcore.Result) {
	switch {
	case a.awaited > 0:
		res.RequeueAfter = a.awaited
	case !a.known:
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(in.OperatorGroup), "spec.serviceAccountName",
			"the list of ServiceAccounts was not read, so nothing is decided about ServiceAccount %s", a.name))
		res.RequeueAfter = unreadPace
	}
}

// label returns the write that lets caches which select by this label hold the account.
func (a account) label(in *Input) []olmcore.Action {
	if a.found == nil || a.found.Labels[olmcore.LabelManaged] == "true" {
		return nil
	}
	after := a.found.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{olmcore.LabelManaged: "true"})
	return []olmcore.Action{olmcore.UpdateOf(a.found, after, olmcore.Cause{
		Reason: ReasonGroupChanged, Message: "OperatorGroup " + in.OperatorGroup.Name + " installs as this ServiceAccount",
	})}
}

// reference returns the reference to the account for the status: the one that it holds
// when that means the same account, as its resourceVersion ages and the reference does
// not.
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
