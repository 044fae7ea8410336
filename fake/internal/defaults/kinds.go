// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

// defaultOthers fills the fields of kinds that run nothing.
func defaultOthers(o olmcore.Object) {
	switch o := o.(type) {
	case *networkingv1.NetworkPolicy:
		defaultNetworkPolicy(&o.Spec)
	case *rbacv1.RoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefault(&w.FailurePolicy, admissionregistrationv1.Fail)
			defaultWebhook(&w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.ClientConfig.Service, w.Rules)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefault(&w.FailurePolicy, admissionregistrationv1.Fail)
			setDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
			defaultWebhook(&w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.ClientConfig.Service, w.Rules)
		}
	case *apiregistrationv1.APIService:
		if o.Spec.Service != nil {
			setDefault(&o.Spec.Service.Port, 443)
		}
	}
}

func defaultNetworkPolicy(spec *networkingv1.NetworkPolicySpec) {
	ports := func(list []networkingv1.NetworkPolicyPort) {
		for i := range list {
			setDefault(&list[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for i := range spec.Ingress {
		ports(spec.Ingress[i].Ports)
	}
	for i := range spec.Egress {
		ports(spec.Egress[i].Ports)
	}
	if len(spec.PolicyTypes) == 0 {
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setZero(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].Kind == rbacv1.UserKind || subjects[i].Kind == rbacv1.GroupKind {
			setZero(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func defaultWebhook(match **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, timeout **int32,
	service *admissionregistrationv1.ServiceReference, rules []admissionregistrationv1.RuleWithOperations) {
	setDefault(match, admissionregistrationv1.Equivalent)
	setDefault(namespaces, metav1.LabelSelector{})
	setDefault(objects, metav1.LabelSelector{})
	setDefault(timeout, 10)
	if service != nil {
		setDefault(&service.Port, 443)
	}
	for i := range rules {
		setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func defaultJob(spec *batchv1.JobSpec) {
	setDefault(&spec.Parallelism, 1)
	setDefault(&spec.Completions, 1)
	setDefault(&spec.BackoffLimit, 6)
	setDefault(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setDefault(&spec.ManualSelector, false)
	setDefault(&spec.Suspend, false)
	policy := batchv1.TerminatingOrFailed
	if spec.PodFailurePolicy != nil {
		policy = batchv1.Failed
	}
	setDefault(&spec.PodReplacementPolicy, policy)
	PodSpec(&spec.Template.Spec)
}

// SelectPods sets the selector of a new Job, and the labels of its Pods that it selects.
func SelectPods(job *batchv1.Job) {
	if manual := job.Spec.ManualSelector; manual != nil && *manual {
		return
	}
	own := map[string]string{
		"controller-uid": string(job.UID), "job-name": job.Name,
		batchv1.ControllerUidLabel: string(job.UID), batchv1.JobNameLabel: job.Name,
	}
	labels := maps.Clone(job.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, own)
	job.Spec.Template.Labels = labels
	if len(job.Labels) == 0 {
		job.Labels = maps.Clone(labels) // those of the template stand in for missing ones
	}
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}
}
