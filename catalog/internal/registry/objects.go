// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/olmcore"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
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

// objects returns the objects that are needed.
func (r *Registry) objects() Objects {
	name := r.Source.Name
	o := Objects{
		Account:      r.account(),
		Service:      &corev1.Service{ObjectMeta: r.meta(ServiceName(name), managed()), Spec: r.serviceSpec()},
		ServerPolicy: &networkingv1.NetworkPolicy{ObjectMeta: r.meta(name+SuffixServerPolicy, servingLabels(name)), Spec: r.serverPolicySpec()},
		UnpackPolicy: &networkingv1.NetworkPolicy{ObjectMeta: r.meta(name+SuffixUnpackPolicy, servingLabels(name)), Spec: unpackPolicySpec()},
	}
	o.Service.Labels[labelServiceHash], _ = olmcore.Hash(o.Service.Spec)
	if FromConfigMap(r.Source) {
		o.Role = &rbacv1.Role{ObjectMeta: r.meta(name+SuffixRole, managed()), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{r.Source.Spec.ConfigMap}, Verbs: []string{"get"},
		}}}
		o.RoleBinding = &rbacv1.RoleBinding{
			ObjectMeta: r.meta(name+SuffixBinding, managed()),
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name + SuffixAccount, Namespace: r.Source.Namespace}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name + SuffixRole},
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

func (r *Registry) account() *corev1.ServiceAccount {
	if FromConfigMap(r.Source) {
		return &corev1.ServiceAccount{ObjectMeta: r.meta(r.Source.Name+SuffixAccount, managed())}
	}
	account := &corev1.ServiceAccount{
		ObjectMeta:       r.meta(r.Source.Name, managed()),
		ImagePullSecrets: slices.Clone(r.pullSecrets),
	}
	owner := &account.OwnerReferences[0]
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	if ours := ownPullSecrets(r.Source); len(ours) > 0 {
		account.Annotations = map[string]string{keyPullSecrets: strings.Join(ours, ",")}
	}
	return account
}

// ownPullSecrets are those of spec.secrets.
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
