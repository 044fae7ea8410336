// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

// gatherServices reads the objects that webhooks and owned APIServices need. The requirements and Deployments must have
// been read before.
func gatherServices(r *read.Reads, in *Input) {
	c := in.ClusterServiceVersion
	if !isCalled(c) {
		gatherCallers(r, in, nil) // objects that an earlier spec described
		return
	}
	var services, secrets, delegators, readers, accounts []string
	called := internalserving.DeploymentNames(c)
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if slices.Contains(called, d.Name) {
			services, secrets = append(services, internalserving.ServiceName(d.Name)), append(secrets, internalserving.CertificateName(d.Name))
			delegators = append(delegators, internalserving.DelegatorNames(d.Name, c.Namespace)...)
			readers = append(readers, internalserving.ReaderNames(d.Name, c.Namespace)...)
			accounts = append(accounts, internalserving.AccountName(&d.Spec))
		}
	}
	in.ServiceAccounts = read.Join(in.ServiceAccounts, read.Named[*corev1.ServiceAccount](r, c.Namespace, accounts))
	for _, legacy := range internalserving.LegacyNamesOf(c) {
		services, secrets = append(services, legacy.Service), append(secrets, legacy.Certificate)
		delegators, readers = append(delegators, legacy.Delegator), append(readers, legacy.Reader)
	}
	s := &in.Serving
	s.Services = read.Named[*corev1.Service](r, c.Namespace, services)
	s.Secrets = read.Named[*corev1.Secret](r, c.Namespace, secrets)
	s.Roles = read.Named[*rbacv1.Role](r, c.Namespace, secrets)
	s.RoleBindings = read.Join(
		read.Named[*rbacv1.RoleBinding](r, c.Namespace, secrets),
		read.Named[*rbacv1.RoleBinding](r, metav1.NamespaceSystem, readers))
	s.ClusterRoleBindings = read.Named[*rbacv1.ClusterRoleBinding](r, "", delegators)
	gatherCallers(r, in, services)
	s.Pods = readDisrupted(r, in)
}

// gatherCallers reads the objects through which the API server calls the operator: those with the names or owner labels
// of the operator, and webhook configurations that call its Services.
func gatherCallers(r *read.Reads, in *Input, services []string) {
	c, s := in.ClusterServiceVersion, &in.Serving
	var owns []string
	var groups []read.Term
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		owns, groups = append(owns, d.GetName()), append(groups, read.Term{Of: termGroup, Value: d.Group})
	}
	in.APIServices = read.Join(in.APIServices, read.Indexed(r, "", append(callerTerms(c, nil, owns), groups...), termsOfAPIService))
	in.GroupDefinitions = olmcore.Found[*apiextensionsv1.CustomResourceDefinition]()
	if len(groups) > 0 {
		in.GroupDefinitions = read.Indexed(r, "", groups, termsOfDefinition)
	}
	validating, mutating := internalserving.ConfigurationNames(c)
	terms := callerTerms(c, services, slices.Concat(validating, mutating))
	s.ValidatingWebhookConfigurations = read.Indexed(r, "", terms, termsOfValidatingWebhooks)
	s.MutatingWebhookConfigurations = read.Indexed(r, "", terms, termsOfMutatingWebhooks)
}

func termsOfValidatingWebhooks(w *admissionregistrationv1.ValidatingWebhookConfiguration, add func(read.Term)) {
	termsOfCaller(w, add)
	for i := range w.Webhooks {
		termsOfClient(&w.Webhooks[i].ClientConfig, add)
	}
}

func termsOfMutatingWebhooks(w *admissionregistrationv1.MutatingWebhookConfiguration, add func(read.Term)) {
	termsOfCaller(w, add)
	for i := range w.Webhooks {
		termsOfClient(&w.Webhooks[i].ClientConfig, add)
	}
}

// Kinds of the terms by which the callers of an operator are indexed: the name of the object, the owner in its labels,
// the Service that it calls, and the group of its API.
const (
	termCaller  = "caller"
	termOwner   = "owner"
	termService = "service"
	termGroup   = "group"
)

func termsOfAPIService(a *apiregistrationv1.APIService, add func(read.Term)) {
	termsOfCaller(a, add)
	add(read.Term{Of: termGroup, Value: a.Spec.Group})
}

func termsOfDefinition(crd *apiextensionsv1.CustomResourceDefinition, add func(read.Term)) {
	add(read.Term{Of: termGroup, Value: crd.Spec.Group})
}

// callerTerms returns the terms of the objects that call an operator.
func callerTerms(c *version, services, names []string) []read.Term {
	terms := []read.Term{{Of: termOwner, Value: c.Namespace + "/" + c.Name}}
	for _, name := range services {
		terms = append(terms, read.Term{Of: termService, Value: c.Namespace + "/" + name})
	}
	for _, name := range names {
		terms = append(terms, read.Term{Of: termCaller, Value: name})
	}
	return terms
}

func termsOfCaller(o olmcore.Object, add func(read.Term)) {
	add(read.Term{Of: termCaller, Value: o.GetName()})
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	if ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		add(read.Term{Of: termOwner, Value: owner.Namespace + "/" + owner.Name})
	}
}

func termsOfClient(client *admissionregistrationv1.WebhookClientConfig, add func(read.Term)) {
	if client.Service != nil {
		add(read.Term{Of: termService, Value: client.Service.Namespace + "/" + client.Service.Name})
	}
}

// readDisrupted reads the Pods of the Deployments behind owned APIServices that are not available.
func readDisrupted(r *read.Reads, in *Input) olmcore.Observed[*corev1.Pod] {
	c := in.ClusterServiceVersion
	pods := olmcore.Found[*corev1.Pod]()
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		service, exists := model.Find(in.APIServices.Items, "", d.GetName())
		behind, deployed := model.Find(in.Deployments.Items, c.Namespace, d.DeploymentName)
		if !exists || isAvailable(service) || !deployed {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(behind.Spec.Selector); err == nil {
			pods = read.Join(pods, read.List[*corev1.Pod](r, c.Namespace, selector))
		}
	}
	return pods
}
