// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// GroupInput is everything Group looks at. Group writes to none of it.
type GroupInput struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// OperatorGroup is the group to reconcile. Required.
	OperatorGroup *operatorsv1.OperatorGroup
	// Siblings are the other OperatorGroups of its namespace.
	Siblings olmcore.Observed[*operatorsv1.OperatorGroup]
	// Namespaces are those that the group's targets or selector name, those of its
	// status, and those with its label. More of them do no harm. A group with a
	// selector waits for them.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// ClusterServiceVersions are those of the namespace.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ClusterRoles are those named like the group's own, or with its owner labels.
	ClusterRoles olmcore.Observed[*rbacv1.ClusterRole]
	// ServiceAccounts are those of the namespace that spec.serviceAccountName names:
	// one at most. More of them do no harm.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
}

// Group decides about one OperatorGroup: the target namespaces in its status,
// its ServiceAccount, and its conditions; the label with its UID on the targets;
// the ClusterRoles that aggregate what its operators provide; and the annotation
// that lists those APIs, from which it takes what nobody provides any more.
// Without it no CSV of the namespace is installed, because nobody knows what its
// operator watches. What a list that was not read would decide stays as it is.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go.
// Differs: the targets are sorted, and a change of targets keeps the
// ServiceAccount. What a deleted group leaves is for Sweep.
func Group(in GroupInput) (olmcore.Result, error) {
	if err := in.validate(); err != nil {
		return olmcore.Result{}, err
	}
	g := in.OperatorGroup
	var res olmcore.Result
	if g.DeletionTimestamp != nil {
		return res, nil
	}
	if len(g.Spec.TargetNamespaces) == 0 && !isEveryNamespace(g.Spec.Selector) && !in.Namespaces.Complete {
		res.Diagnostics = []olmcore.Diagnostic{{
			Severity: olmcore.Warning, Reason: ReasonNotObserved, Target: olmcore.RefOf(g),
			Message: "the list of Namespaces was not read, so nothing is decided",
		}}
		res.RequeueAfter = 5 * time.Second
		return res, nil
	}
	if slices.Contains(g.Spec.TargetNamespaces, metav1.NamespaceAll) {
		res.Diagnostics = []olmcore.Diagnostic{{
			Severity: olmcore.Error, Reason: ReasonInvalidTargets, Target: olmcore.RefOf(g), Path: "spec.targetNamespaces",
			Message: fmt.Sprintf("TargetNamespaces cannot contain NamespaceAll: %v", g.Spec.TargetNamespaces),
		}}
		return res, nil
	}
	account, known := in.account()
	switch left := in.accountAwaited(); {
	case left > 0:
		res.RequeueAfter = left
	case !known:
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnostic{
			Severity: olmcore.Warning, Reason: ReasonNotObserved, Target: olmcore.RefOf(g), Path: "spec.serviceAccountName",
			Message: "the list of ServiceAccounts was not read, so nothing is decided about ServiceAccount " + g.Spec.ServiceAccountName,
		})
		res.RequeueAfter = 5 * time.Second
	}
	if d := in.unread(); d != nil {
		res.Diagnostics = append(res.Diagnostics, *d)
		res.Requeue(5 * time.Second)
	}
	if a := account; a != nil && a.Labels[olmcore.LabelManaged] != "true" {
		after := a.DeepCopy()
		after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{olmcore.LabelManaged: "true"})
		res.Actions = append(res.Actions, olmcore.UpdateOf(a, after, olmcore.Cause{
			Reason: ReasonGroupChanged, Message: "OperatorGroup " + g.Name + " installs as this ServiceAccount",
		}))
	}
	if !in.status(&res) {
		if a := in.pruned(); a != nil {
			res.Actions = append(res.Actions, a)
		}
	}
	res.Actions = append(res.Actions, in.namespaceLabels()...)
	res.Actions = append(res.Actions, in.roles()...)
	return res, nil
}

// unread names the lists that were not read and what stays as it is for want of them;
// nil when all were.
func (in *GroupInput) unread() *olmcore.Diagnostic {
	var lists []string
	for _, list := range [...]struct {
		complete bool
		name     string
	}{
		{in.Siblings.Complete, "OperatorGroups (the condition for several in one namespace)"},
		{in.Namespaces.Complete, "Namespaces (their labels)"},
		{in.ClusterServiceVersions.Complete, "ClusterServiceVersions (provided APIs)"},
		{in.ClusterRoles.Complete, "ClusterRoles (those that aggregate the rights on provided APIs)"},
	} {
		if !list.complete {
			lists = append(lists, list.name)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	return &olmcore.Diagnostic{
		Severity: olmcore.Warning, Reason: ReasonNotObserved, Target: olmcore.RefOf(in.OperatorGroup),
		Message: "what these lists would decide stays as it is, as they were not read: " + strings.Join(lists, ", "),
	}
}

func (in *GroupInput) validate() error {
	g := in.OperatorGroup
	switch {
	case g == nil:
		return &olmcore.InputError{Field: "OperatorGroup", Problem: "is nil"}
	case g.Name == "":
		return &olmcore.InputError{Field: "OperatorGroup.metadata.name", Problem: "is empty"}
	case g.Namespace == "":
		return &olmcore.InputError{Field: "OperatorGroup.metadata.namespace", Problem: "is empty"}
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return cmp.Or(
		sound("Siblings", in.Siblings.Items), sound("Namespaces", in.Namespaces.Items),
		sound("ClusterServiceVersions", in.ClusterServiceVersions.Items), sound("ClusterRoles", in.ClusterRoles.Items),
		sound("ServiceAccounts", in.ServiceAccounts.Items),
	)
}

// status adds the status write that is due, and reports whether one is.
func (in *GroupInput) status(res *olmcore.Result) bool {
	g := in.OperatorGroup
	moved := !in.targetsAreSettled()
	account, known := in.account()
	conditions, said := in.conditions()
	if !moved && !said && (!known || refersTo(g.Status.ServiceAccountRef, account)) {
		return false
	}
	after := g.DeepCopy()
	after.Status.Conditions = conditions
	if known && !refersTo(after.Status.ServiceAccountRef, account) {
		after.Status.ServiceAccountRef = referenceTo(account)
	}
	if moved {
		at := olmcore.Timestamp(in.Now)
		after.Status.Namespaces, after.Status.LastUpdated = in.targets(), &at
	}
	res.Actions = append(res.Actions, olmcore.UpdateStatusOf(g, after, olmcore.Cause{
		Reason: ReasonStatusChanged, Message: "the targets, the ServiceAccount or the conditions changed",
	}))
	if known && account == nil && g.Spec.ServiceAccountName != "" {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnostic{
			Severity: olmcore.Warning, Reason: ReasonServiceAccountMissing, Target: olmcore.RefOf(g), Path: "spec.serviceAccountName",
			Message: "ServiceAccount " + g.Spec.ServiceAccountName + " not found",
		})
	}
	return true
}

func (in *GroupInput) targets() targets {
	spec := &in.OperatorGroup.Spec
	switch {
	case len(spec.TargetNamespaces) > 0:
		names := slices.Sorted(slices.Values(spec.TargetNamespaces))
		return slices.Compact(names)
	case isEveryNamespace(spec.Selector):
		return targets{metav1.NamespaceAll}
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return nil
	}
	var names targets
	for _, n := range in.Namespaces.Items {
		if selector.Matches(labels.Set(n.Labels)) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isEveryNamespace(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// accountGrace is how long the ServiceAccount of a new group may be missing from a
// stale cache before that is reported: both usually come with one kubectl apply.
const accountGrace = 10 * time.Second

// accountAwaited is what is left of accountGrace for an account that was not found.
func (in *GroupInput) accountAwaited() time.Duration {
	g := in.OperatorGroup
	age := in.Now.Sub(g.CreationTimestamp.Time)
	if g.Spec.ServiceAccountName == "" || g.Status.ServiceAccountRef != nil || !in.ServiceAccounts.Complete || age < 0 || age >= accountGrace ||
		indexNamed(in.ServiceAccounts.Items, g.Namespace, g.Spec.ServiceAccountName) >= 0 {
		return 0
	}
	return accountGrace - age
}

// account is the ServiceAccount that the group prescribes, nil when it prescribes
// none or that one does not exist; known is false when that was not read, or may
// be due to a stale cache.
func (in *GroupInput) account() (a *corev1.ServiceAccount, known bool) {
	g := in.OperatorGroup
	if g.Spec.ServiceAccountName == "" {
		return nil, true
	}
	if i := indexNamed(in.ServiceAccounts.Items, g.Namespace, g.Spec.ServiceAccountName); i >= 0 {
		return in.ServiceAccounts.Items[i], true
	}
	return nil, in.ServiceAccounts.Complete && in.accountAwaited() == 0
}

func referenceTo(a *corev1.ServiceAccount) *corev1.ObjectReference {
	if a == nil {
		return nil
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ServiceAccount", Namespace: a.Namespace, Name: a.Name, UID: a.UID,
	}
}

// refersTo leaves the resourceVersion out: it ages with every change of the
// account, and the reference does not.
func refersTo(have *corev1.ObjectReference, a *corev1.ServiceAccount) bool {
	if have == nil || a == nil {
		return have == nil && a == nil
	}
	return have.Kind == "ServiceAccount" && have.Namespace == a.Namespace && have.Name == a.Name && have.UID == a.UID
}

func (in *GroupInput) conditions() (list []metav1.Condition, changed bool) {
	g := in.OperatorGroup
	list = g.Status.Conditions
	if in.Siblings.Complete {
		crowded := slices.ContainsFunc(in.Siblings.Items, func(s *operatorsv1.OperatorGroup) bool {
			return s.Namespace == g.Namespace && s.Name != g.Name
		})
		list, changed = toggle(list, crowded, in.Now, metav1.Condition{
			Type: operatorsv1.MutlipleOperatorGroupCondition, Reason: operatorsv1.MultipleOperatorGroupsReason,
			Message: "Multiple OperatorGroup found in the same namespace",
		})
	}
	missing := metav1.Condition{Type: operatorsv1.OperatorGroupServiceAccountCondition, Reason: operatorsv1.OperatorGroupServiceAccountReason}
	account, known := in.account()
	if !known {
		return list, changed
	}
	lacking := g.Spec.ServiceAccountName != "" && account == nil
	if lacking {
		missing.Message = "ServiceAccount " + g.Spec.ServiceAccountName + " not found"
	}
	list, also := toggle(list, lacking, in.Now, missing)
	return list, changed || also
}

// toggle keeps a condition that exists only while it is true.
func toggle(list []metav1.Condition, on bool, now time.Time, c metav1.Condition) ([]metav1.Condition, bool) {
	if on {
		c.Status = metav1.ConditionTrue
		return olmcore.SetCondition(list, c, now)
	}
	if meta.FindStatusCondition(list, c.Type) == nil {
		return list, false
	}
	return slices.DeleteFunc(slices.Clone(list), func(have metav1.Condition) bool { return have.Type == c.Type }), true
}

// GroupAffected returns the keys of the OperatorGroups for which o's addition,
// change or deletion can change what Group does, as Affected does for CSVs.
func GroupAffected(o olmcore.Object) []types.NamespacedName {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		var keys []types.NamespacedName
		if owner, ok := olmcore.OwnerOf(o.Labels); ok && owner.Kind == operatorsv1.OperatorGroupKind {
			keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
		}
		if len(keys) == 0 && isGroupRoleName(o.Name) {
			return []types.NamespacedName{{}} // its labels were taken off
		}
		return keys
	case *operatorsv1.OperatorGroup, *corev1.ServiceAccount, *v1alpha1.ClusterServiceVersion:
		if strings.TrimSpace(o.GetNamespace()) == "" {
			return nil
		}
		return []types.NamespacedName{{Namespace: o.GetNamespace()}}
	case *corev1.Namespace:
		return []types.NamespacedName{{}}
	}
	return nil
}
