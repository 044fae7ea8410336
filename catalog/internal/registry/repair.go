// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions; package catalog documents them.
const (
	ReasonObjectMissing  = "ObjectMissing"
	ReasonObjectDiffers  = "ObjectDiffers"
	ReasonBudgetObsolete = "BudgetObsolete"
)

// Claim is whose an object is.
type Claim int

const (
	// ClaimOwn: it has an owner reference to the CatalogSource.
	ClaimOwn Claim = iota
	// ClaimLost: it was made for a CatalogSource of this name, or for OLM, and has
	// no other owner.
	ClaimLost
	// ClaimOther: it is unmanaged or owned by another, and must not be touched.
	ClaimOther
)

// ClaimOf returns whose an object is.
func ClaimOf(cs *v1alpha1.CatalogSource, o olmcore.Object) Claim {
	owners := o.GetOwnerReferences()
	switch {
	case olmcore.OwnedBy(o, cs.UID):
		return ClaimOwn
	case len(owners) == 0 && o.GetLabels()[olmcore.LabelManaged] != "true":
		return ClaimOther
	}
	for _, ref := range owners {
		if ref.Kind != v1alpha1.CatalogSourceKind || ref.Name != cs.Name || !strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/") {
			return ClaimOther
		}
	}
	return ClaimLost
}

// All returns the objects that are there, in the order in which they are removed.
func (o Objects) All() (list []olmcore.Object) {
	add(&list, o.Service)
	add(&list, o.ServerPolicy)
	add(&list, o.UnpackPolicy)
	add(&list, o.Budget)
	add(&list, o.Account)
	add(&list, o.OtherAccount)
	add(&list, o.Role)
	add(&list, o.RoleBinding)
	return list
}

func add[T any, O object[T]](list *[]olmcore.Object, o O) {
	if o != nil {
		*list = append(*list, o)
	}
}

// Taken returns the name of the first needed object that must not be touched; empty for
// none. A ServiceAccount of others is used as it is.
func Taken(cs *v1alpha1.CatalogSource, observed, needed Objects) string {
	needed.Account = nil
	names := namesOf(needed)
	for _, o := range observed.All() {
		if names[olmcore.KeyOf(o)] && ClaimOf(cs, o) == ClaimOther {
			return o.GetName()
		}
	}
	return ""
}

func namesOf(o Objects) map[olmcore.Key]bool {
	names := map[olmcore.Key]bool{}
	for _, object := range o.All() {
		names[olmcore.KeyOf(object)] = true
	}
	return names
}

// Leftovers returns the objects of the CatalogSource that exist and are not needed.
func Leftovers(cs *v1alpha1.CatalogSource, observed, needed Objects) []olmcore.Object {
	names := namesOf(needed)
	return slices.DeleteFunc(observed.All(), func(o olmcore.Object) bool {
		return names[olmcore.KeyOf(o)] || !olmcore.OwnedBy(o, cs.UID) || o.GetDeletionTimestamp() != nil
	})
}

// Unread says which kinds were not read: none of their objects is made.
type Unread struct{ NetworkPolicies, Roles, RoleBindings, Budgets bool }

// Repair returns the actions that make the observed objects the needed ones: what is
// missing is made, what differs is updated in place. Objects of others are left alone.
func (r Registry) Repair(observed, needed Objects, unread Unread) (actions []olmcore.Action) {
	secrets := accountSecrets
	if FromConfigMap(r.Source) { // its server's image needs none: what there is, others added
		secrets.fits = func(_, _ *corev1.ServiceAccount) bool { return true }
	}
	if !r.AccountShared {
		actions = repair(actions, r, observed.Account, needed.Account, false, secrets, "label, owner or pull secrets differ")
	}
	rules := part(func(o *rbacv1.Role) *[]rbacv1.PolicyRule { return &o.Rules })
	actions = repair(actions, r, observed.Role, needed.Role, unread.Roles, rules, "label, owner or rules differ")
	if action := replaceBinding(r.Source, observed.RoleBinding, needed.RoleBinding); action != nil {
		actions = append(actions, action)
	} else {
		subjects := part(func(o *rbacv1.RoleBinding) *[]rbacv1.Subject { return &o.Subjects })
		actions = repair(actions, r, observed.RoleBinding, needed.RoleBinding, unread.RoleBindings, subjects, "label, owner or subjects differ")
	}
	policy := part(func(o *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicySpec { return &o.Spec })
	actions = repair(actions, r, observed.ServerPolicy, needed.ServerPolicy, unread.NetworkPolicies, policy, "labels, owner or spec differ")
	actions = repair(actions, r, observed.UnpackPolicy, needed.UnpackPolicy, unread.NetworkPolicies, policy, "labels, owner or spec differ")
	actions = repair(actions, r, observed.Service, needed.Service, false, portsAndSelector, "labels, owner or spec differ")
	if b := observed.Budget; needed.Budget == nil && b != nil && b.DeletionTimestamp == nil && olmcore.OwnedBy(b, r.Source.UID) {
		actions = append(actions, olmcore.DeleteOf(b, olmcore.Cause{Reason: ReasonBudgetObsolete, Message: "one replica needs no budget"}))
	}
	budget := part(func(o *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudgetSpec { return &o.Spec })
	return repair(actions, r, observed.Budget, needed.Budget, unread.Budgets, budget, "label, owner or spec differ")
}

// object is a typed API object.
type object[T any] interface {
	*T
	olmcore.Object
	DeepCopy() *T
}

// content is what the catalog asks for of a kind of object; what the API server fills in
// is its own.
type content[O any] struct {
	fits func(observed, needed O) bool
	set  func(into, needed O)
}

// part is the content that is one field.
func part[O, F any](field func(O) *F) content[O] {
	return content[O]{
		fits: func(observed, needed O) bool { return equality.Semantic.DeepEqual(*field(observed), *field(needed)) },
		set:  func(into, needed O) { *field(into) = *field(needed) },
	}
}

// repair appends the action that makes one observed object the needed one; either may
// be nil.
func repair[T any, O object[T]](actions []olmcore.Action, r Registry, observed, needed O, unread bool, content content[O], what string) []olmcore.Action {
	switch {
	case needed == nil, observed == nil && unread:
		return actions
	case observed == nil:
		return append(actions, olmcore.CreateOf(needed, olmcore.Cause{Reason: ReasonObjectMissing, Message: "the catalog needs it"}))
	case observed.GetDeletionTimestamp() != nil || ClaimOf(r.Source, observed) == ClaimOther:
		return actions
	}
	labels, relabelled := olmcore.MergeLabels(observed.GetLabels(), needed.GetLabels())
	owned, fits := olmcore.OwnedBy(observed, r.Source.UID), content.fits(observed, needed)
	if !relabelled && owned && fits {
		return actions
	}
	after := O(observed.DeepCopy())
	after.SetLabels(labels)
	if !owned {
		owners, _ := olmcore.RepairOwnerReferences(after.GetOwnerReferences(), needed.GetOwnerReferences())
		after.SetOwnerReferences(owners)
	}
	if !fits {
		content.set(after, needed)
	}
	return append(actions, olmcore.UpdateOf(observed, after, olmcore.Cause{Reason: ReasonObjectDiffers, Message: what}))
}

// replaceBinding deletes a RoleBinding with another roleRef, which the API server does not
// change.
func replaceBinding(cs *v1alpha1.CatalogSource, observed, needed *rbacv1.RoleBinding) olmcore.Action {
	if observed == nil || needed == nil || observed.DeletionTimestamp != nil || ClaimOf(cs, observed) == ClaimOther || observed.RoleRef == needed.RoleRef {
		return nil
	}
	return olmcore.DeleteOf(observed, olmcore.Cause{Reason: ReasonObjectDiffers, Message: "it refers to another role and is made anew"})
}

// accountSecrets are the content of a ServiceAccount.
var accountSecrets = content[*corev1.ServiceAccount]{
	fits: func(observed, needed *corev1.ServiceAccount) bool {
		return slices.Equal(observed.ImagePullSecrets, needed.ImagePullSecrets)
	},
	set: func(into, needed *corev1.ServiceAccount) {
		into.ImagePullSecrets = needed.ImagePullSecrets
		delete(into.Annotations, keyPullSecrets)
		into.Annotations, _ = olmcore.MergeLabels(into.Annotations, needed.Annotations)
	},
}

// portsAndSelector are the content of a Service.
var portsAndSelector = content[*corev1.Service]{
	fits: func(observed, needed *corev1.Service) bool {
		ports := slices.Clone(observed.Spec.Ports)
		for i, p := range ports {
			ports[i] = corev1.ServicePort{Name: p.Name, Port: p.Port, TargetPort: p.TargetPort}
			if cmp.Or(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
				ports[i].Protocol = p.Protocol
			}
		}
		return slices.Equal(ports, needed.Spec.Ports) && maps.Equal(observed.Spec.Selector, needed.Spec.Selector)
	},
	set: func(into, needed *corev1.Service) {
		into.Spec.Ports, into.Spec.Selector = needed.Spec.Ports, needed.Spec.Selector
	},
}

// ServesAsInOLM reports whether the objects are those that OLM takes for a healthy
// registry: the ones that were read exist, and the NetworkPolicies have their specs.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
func ServesAsInOLM(observed, needed Objects, unread Unread) bool {
	policy := func(have, want *networkingv1.NetworkPolicy) bool {
		return have == nil && unread.NetworkPolicies || have != nil && equality.Semantic.DeepEqual(have.Spec, want.Spec)
	}
	return observed.Account != nil && observed.Service != nil &&
		policy(observed.ServerPolicy, needed.ServerPolicy) && policy(observed.UnpackPolicy, needed.UnpackPolicy) &&
		(needed.Role == nil || observed.Role != nil || unread.Roles) &&
		(needed.RoleBinding == nil || observed.RoleBinding != nil || unread.RoleBindings)
}
