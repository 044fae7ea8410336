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
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/olmcore"
)

// Objects are the objects around the Pods of a catalog, observed or needed; nil: it does not exist, or is not needed.
type Objects struct {
	Account *corev1.ServiceAccount
	// OtherAccount is the ServiceAccount of another source type.
	OtherAccount               *corev1.ServiceAccount
	Role                       *rbacv1.Role
	RoleBinding                *rbacv1.RoleBinding
	ServerPolicy, UnpackPolicy *networkingv1.NetworkPolicy
	Service                    *corev1.Service
	Budget                     *policyv1.PodDisruptionBudget
}

func (r *Registry) objects() Objects {
	name := r.Source.Name
	o := Objects{
		Account:      &corev1.ServiceAccount{ObjectMeta: r.meta(name, managed()), ImagePullSecrets: slices.Clone(r.pullSecrets)},
		Service:      &corev1.Service{ObjectMeta: r.meta(ServiceName(name), managed()), Spec: r.serviceSpec()},
		ServerPolicy: &networkingv1.NetworkPolicy{ObjectMeta: r.meta(name+SuffixServerPolicy, servingLabels(name)), Spec: r.serverPolicySpec()},
		UnpackPolicy: &networkingv1.NetworkPolicy{ObjectMeta: r.meta(name+SuffixUnpackPolicy, servingLabels(name)), Spec: unpackPolicySpec()},
	}
	o.Service.Labels[labelServiceHash], _ = olmcore.Hash(o.Service.Spec)
	if FromConfigMap(r.Source) {
		o.Account.Name = name + SuffixAccount
		o.Role = &rbacv1.Role{ObjectMeta: r.meta(name+SuffixRole, managed()), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{r.Source.Spec.ConfigMap}, Verbs: []string{"get"},
		}}}
		o.RoleBinding = &rbacv1.RoleBinding{
			ObjectMeta: r.meta(name+SuffixBinding, managed()),
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name + SuffixAccount, Namespace: r.Source.Namespace}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name + SuffixRole},
		}
	} else {
		owner := &o.Account.OwnerReferences[0]
		owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
		if ours := ownPullSecrets(r.Source); len(ours) > 0 {
			o.Account.Annotations = map[string]string{keyPullSecrets: strings.Join(ours, ",")}
		}
	}
	if r.Replicas >= 2 {
		// It keeps voluntary disruptions from taking more than one replica at a time. minAvailable must be a number: the
		// Pods' owner has no scale, so that the disruption controller forbids everything for percentages and maxUnavailable.
		o.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: r.meta(ServiceName(name), managed()), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(int32(r.Replicas - 1))), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			Selector: &metav1.LabelSelector{MatchLabels: servingLabels(name)},
		}}
	}
	return o
}

func managed() map[string]string { return map[string]string{olmcore.LabelManaged: "true"} }

func (r *Registry) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: r.Source.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(r.Source)},
	}
}

func ownPullSecrets(cs *v1alpha1.CatalogSource) (names []string) {
	for _, name := range cs.Spec.Secrets {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// accountSecrets returns the pull secrets of the ServiceAccount: those of spec.secrets, and those that others added to the
// observed one. An annotation remembers which entries are the catalog's, so that they go when they leave the spec.
func (r *Registry) accountSecrets(account *corev1.ServiceAccount) (secrets []corev1.LocalObjectReference) {
	if FromConfigMap(r.Source) {
		return nil
	}
	ours := ownPullSecrets(r.Source)
	if account != nil {
		secrets = slices.Clone(account.ImagePullSecrets)
		if r.AccountShared {
			return secrets
		}
		before := strings.Split(account.Annotations[keyPullSecrets], ",")
		secrets = slices.DeleteFunc(secrets, func(s corev1.LocalObjectReference) bool {
			return s.Name != "" && slices.Contains(before, s.Name) && !slices.Contains(ours, s.Name)
		})
	}
	for _, name := range ours {
		if s := (corev1.LocalObjectReference{Name: name}); !slices.Contains(secrets, s) {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

func (r *Registry) serviceSpec() corev1.ServiceSpec {
	spec := corev1.ServiceSpec{
		Ports:    []corev1.ServicePort{{Name: GRPC, Port: port, TargetPort: intstr.FromInt32(port)}},
		Selector: servingLabels(r.Source.Name),
	}
	if FromConfigMap(r.Source) {
		delete(spec.Selector, olmcore.LabelManaged)
	}
	return spec
}

// serverPolicySpec lets the registry answer on its port and open no connection, unless it reads a ConfigMap.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, DesiredGRPCServerNetworkPolicy.
func (r *Registry) serverPolicySpec() networkingv1.NetworkPolicySpec {
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: servingLabels(r.Source.Name)},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{policyPort(corev1.ProtocolTCP, port)}}},
	}
	if FromConfigMap(r.Source) {
		spec.Egress = connectAnywhere()
	}
	return spec
}

// unpackPolicySpec lets the Pods that unpack bundles connect to everything and be reached by nothing.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, DesiredUnpackBundlesNetworkPolicy.
func unpackPolicySpec() networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: labelBundleUnpack, Operator: metav1.LabelSelectorOpExists},
			{Key: olmcore.LabelManaged, Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
		}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Egress:      connectAnywhere(),
	}
}

// connectAnywhere lists, as OLM does, the ports of DNS besides everything.
func connectAnywhere() []networkingv1.NetworkPolicyEgressRule {
	return []networkingv1.NetworkPolicyEgressRule{{}, {Ports: []networkingv1.NetworkPolicyPort{
		policyPort(corev1.ProtocolTCP, 53), policyPort(corev1.ProtocolUDP, 53),
		policyPort(corev1.ProtocolTCP, 5353), policyPort(corev1.ProtocolUDP, 5353),
	}}}
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}

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
