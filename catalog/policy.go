// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/olmcore"
)

// dns are the ports that unpacking needs besides everything that is not closed.
var dns = [...]struct {
	protocol corev1.Protocol
	port     int32
}{{corev1.ProtocolTCP, 53}, {corev1.ProtocolUDP, 53}, {corev1.ProtocolTCP, 5353}, {corev1.ProtocolUDP, 5353}}

// policySpec returns the desired spec of one of the two NetworkPolicies: the
// registry answers on its port and asks nobody, unless it reads a ConfigMap; bundle
// unpacking asks everybody and is asked by none.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, DesiredGRPCServerNetworkPolicy and
// DesiredUnpackBundlesNetworkPolicy.
func policySpec(cs *v1alpha1.CatalogSource, which int) networkingv1.NetworkPolicySpec {
	port := func(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
	}
	spec := networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
	}
	if which == policyServer {
		spec.PodSelector.MatchLabels = servingLabels(cs.Name)
		spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, grpcPort)}}}
		if !fromConfigMap(cs) {
			return spec
		}
	} else {
		spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: labelBundleUnpack, Operator: metav1.LabelSelectorOpExists},
			{Key: olmcore.LabelManaged, Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
		}
	}
	named := networkingv1.NetworkPolicyEgressRule{}
	for _, d := range dns {
		named.Ports = append(named.Ports, port(d.protocol, d.port))
	}
	spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}, named}
	return spec
}

// policyFits reports whether a spec is policySpec, without building it.
func policyFits(s *networkingv1.NetworkPolicySpec, cs *v1alpha1.CatalogSource, which int) bool {
	if len(s.PolicyTypes) != 2 || s.PolicyTypes[0] != networkingv1.PolicyTypeIngress || s.PolicyTypes[1] != networkingv1.PolicyTypeEgress {
		return false
	}
	labels, expressions := s.PodSelector.MatchLabels, s.PodSelector.MatchExpressions
	if which == policyServer {
		return len(labels) == 2 && labels[labelServing] == cs.Name && labels[olmcore.LabelManaged] == "true" && len(expressions) == 0 &&
			(len(s.Egress) == 0 && !fromConfigMap(cs) || asksAnybody(s.Egress) && fromConfigMap(cs)) && len(s.Ingress) == 1 && len(s.Ingress[0].From) == 0 && len(s.Ingress[0].Ports) == 1 &&
			isPort(&s.Ingress[0].Ports[0], corev1.ProtocolTCP, grpcPort)
	}
	if len(labels) != 0 || len(expressions) != 2 || len(s.Ingress) != 0 {
		return false
	}
	ref, managed := &expressions[0], &expressions[1]
	return ref.Key == labelBundleUnpack && ref.Operator == metav1.LabelSelectorOpExists && len(ref.Values) == 0 &&
		managed.Key == olmcore.LabelManaged && managed.Operator == metav1.LabelSelectorOpIn && only(managed.Values, "true") &&
		asksAnybody(s.Egress)
}

// asksAnybody reports whether rules are those of a Pod that needs the network.
func asksAnybody(egress []networkingv1.NetworkPolicyEgressRule) bool {
	if len(egress) != 2 {
		return false
	}
	all, named := &egress[0], &egress[1]
	if len(all.To) != 0 || len(all.Ports) != 0 || len(named.To) != 0 || len(named.Ports) != len(dns) {
		return false
	}
	for i := range dns {
		if !isPort(&named.Ports[i], dns[i].protocol, dns[i].port) {
			return false
		}
	}
	return true
}

func isPort(p *networkingv1.NetworkPolicyPort, protocol corev1.Protocol, number int32) bool {
	return p.Protocol != nil && *p.Protocol == protocol && p.EndPort == nil && p.Port != nil && p.Port.Type == intstr.Int && p.Port.IntVal == number
}
