// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions; package catalog documents them.
const (
	ReasonObjectMissing  = "ObjectMissing"
	ReasonObjectDiffers  = "ObjectDiffers"
	ReasonBudgetObsolete = "BudgetObsolete"
)

// OfOthers reports whether an object is unmanaged or owned by another, and must not be touched. One that was made for a
// CatalogSource of this name, or for OLM, and has no other owner is the catalog's.
func OfOthers(cs *v1alpha1.CatalogSource, o olmcore.Object) bool {
	owners := o.GetOwnerReferences()
	switch {
	case olmcore.OwnedBy(o, cs.UID):
		return false
	case len(owners) == 0:
		return o.GetLabels()[olmcore.LabelManaged] != "true"
	}
	return slices.ContainsFunc(owners, func(ref metav1.OwnerReference) bool {
		return ref.Kind != v1alpha1.CatalogSourceKind || ref.Name != cs.Name || !strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/")
	})
}

// removal returns the objects in the order in which they are removed, nil for what is not there.
func (o *Objects) removal() [8]olmcore.Object {
	return [...]olmcore.Object{
		orNil(o.Service), orNil(o.ServerPolicy), orNil(o.UnpackPolicy), orNil(o.Budget),
		orNil(o.Account), orNil(o.OtherAccount), orNil(o.Role), orNil(o.RoleBinding),
	}
}

func orNil[T any, O object[T]](o O) olmcore.Object {
	if o == nil {
		return nil
	}
	return o
}

// Taken returns the name of the first needed object that must not be touched; empty for none. A ServiceAccount of others
// is used as it is.
func (r *Registry) Taken() string {
	needed := r.Needed.removal()
	for i, o := range r.Observed.removal() {
		if o != nil && needed[i] != nil && o != olmcore.Object(r.Observed.Account) && OfOthers(r.Source, o) {
			return o.GetName()
		}
	}
	return ""
}

// Leftovers returns the objects of the CatalogSource that exist and are not needed.
func (r *Registry) Leftovers() (list []olmcore.Object) {
	needed := r.Needed.removal()
	for i, o := range r.Observed.removal() {
		if o != nil && needed[i] == nil && olmcore.OwnedBy(o, r.Source.UID) && o.GetDeletionTimestamp() == nil {
			list = append(list, o)
		}
	}
	return list
}

// Unread says which kinds were not read: none of their objects is made.
type Unread struct{ NetworkPolicies, Roles, RoleBindings, Budgets bool }

// Repair returns the actions that make the observed objects the needed ones: what is missing is made, what differs is
// updated in place. Objects of others are left alone.
func (r *Registry) Repair() (actions []olmcore.Action) {
	observed, needed, unread := &r.Observed, &r.Needed, r.Unread
	add := func(action olmcore.Action) {
		if action != nil {
			actions = append(actions, action)
		}
	}
	if !r.AccountShared {
		secrets := pullSecrets
		if FromConfigMap(r.Source) { // its server's image needs none: what there is, others added
			secrets.fits = func(_, _ *corev1.ServiceAccount) bool { return true }
		}
		add(repair(r.Source, observed.Account, needed.Account, false, secrets, "label, owner or pull secrets differ"))
	}
	rules := field(func(o *rbacv1.Role) *[]rbacv1.PolicyRule { return &o.Rules })
	add(repair(r.Source, observed.Role, needed.Role, unread.Roles, rules, "label, owner or rules differ"))
	subjects := field(func(o *rbacv1.RoleBinding) *[]rbacv1.Subject { return &o.Subjects })
	binding := repair(r.Source, observed.RoleBinding, needed.RoleBinding, unread.RoleBindings, subjects, "label, owner or subjects differ")
	if have, want := observed.RoleBinding, needed.RoleBinding; have != nil && want != nil && have.RoleRef != want.RoleRef &&
		have.DeletionTimestamp == nil && !OfOthers(r.Source, have) { // the API server does not change a roleRef
		binding = olmcore.DeleteOf(have, olmcore.Cause{Reason: ReasonObjectDiffers, Message: "it refers to another role and is made anew"})
	}
	add(binding)
	policy := field(func(o *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicySpec { return &o.Spec })
	add(repair(r.Source, observed.ServerPolicy, needed.ServerPolicy, unread.NetworkPolicies, policy, "labels, owner or spec differ"))
	add(repair(r.Source, observed.UnpackPolicy, needed.UnpackPolicy, unread.NetworkPolicies, policy, "labels, owner or spec differ"))
	add(repair(r.Source, observed.Service, needed.Service, false, portsAndSelector, "labels, owner or spec differ"))
	if b := observed.Budget; needed.Budget == nil && b != nil && b.DeletionTimestamp == nil && olmcore.OwnedBy(b, r.Source.UID) {
		add(olmcore.DeleteOf(b, olmcore.Cause{Reason: ReasonBudgetObsolete, Message: "one replica needs no budget"}))
	}
	budget := field(func(o *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudgetSpec { return &o.Spec })
	add(repair(r.Source, observed.Budget, needed.Budget, unread.Budgets, budget, "label, owner or spec differ"))
	return actions
}

// object is a typed API object.
type object[T any] interface {
	*T
	olmcore.Object
	DeepCopy() *T
}

// content is what the catalog asks for of a kind of object; what the API server fills in is its own.
type content[O any] struct {
	fits func(observed, needed O) bool
	set  func(into, needed O)
}

// field is the content that is one field.
func field[O, F any](of func(O) *F) content[O] {
	return content[O]{
		fits: func(observed, needed O) bool {
			// Most are the same to the last bit, which shows much sooner than that they mean the same.
			return reflect.DeepEqual(of(observed), of(needed)) || equality.Semantic.DeepEqual(of(observed), of(needed))
		},
		set: func(into, needed O) { *of(into) = *of(needed) },
	}
}

// repair returns the action that makes one observed object the needed one; nil for none. Either object may be nil.
func repair[T any, O object[T]](cs *v1alpha1.CatalogSource, observed, needed O, unread bool, content content[O], what string) olmcore.Action {
	switch {
	case needed == nil, observed == nil && unread:
		return nil
	case observed == nil:
		return olmcore.CreateOf(needed, olmcore.Cause{Reason: ReasonObjectMissing, Message: "the catalog needs it"})
	case observed.GetDeletionTimestamp() != nil || OfOthers(cs, observed):
		return nil
	}
	labels, relabelled := olmcore.MergeLabels(observed.GetLabels(), needed.GetLabels())
	owned, fits := olmcore.OwnedBy(observed, cs.UID), content.fits(observed, needed)
	if !relabelled && owned && fits {
		return nil
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
	return olmcore.UpdateOf(observed, after, olmcore.Cause{Reason: ReasonObjectDiffers, Message: what})
}

// pullSecrets are the content of a ServiceAccount.
var pullSecrets = content[*corev1.ServiceAccount]{
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

// ServesAsInOLM reports whether the objects are those that OLM takes for a healthy registry: the ones that were read
// exist, and the NetworkPolicies have their specs.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
func (r *Registry) ServesAsInOLM() bool {
	observed, needed := &r.Observed, &r.Needed
	policy := func(have, want *networkingv1.NetworkPolicy) bool {
		return have == nil && r.Unread.NetworkPolicies || have != nil && equality.Semantic.DeepEqual(have.Spec, want.Spec)
	}
	return observed.Account != nil && observed.Service != nil &&
		policy(observed.ServerPolicy, needed.ServerPolicy) && policy(observed.UnpackPolicy, needed.UnpackPolicy) &&
		(needed.Role == nil || observed.Role != nil || r.Unread.Roles) &&
		(needed.RoleBinding == nil || observed.RoleBinding != nil || r.Unread.RoleBindings)
}
