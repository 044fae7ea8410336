// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
func gatherCallers(r *read.Reads, in *Input, called []string) {
	c, s := in.ClusterServiceVersion, &in.Serving
	var services, groups []olmcore.Term
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		services, groups = append(services, model.APIServiceTerm(d.GetName())), append(groups, model.APIGroupTerm(d.Group))
	}
	owner := []olmcore.Term{model.OwnerTerm(c)}
	in.APIServices = read.Join(in.APIServices,
		read.Indexed(r, "", slices.Concat(owner, services, groups), addLabelledTerms(termsOfAPIService)))
	in.GroupDefinitions = olmcore.Found[*apiextensionsv1.CustomResourceDefinition]()
	if len(groups) > 0 {
		in.GroupDefinitions = read.Indexed(r, "", groups, addTerms(termsOfCRD))
	}
	validating, mutating := internalserving.ConfigurationNames(c)
	terms := slices.Concat(owner, callerTerms(c, called, slices.Concat(validating, mutating)))
	s.ValidatingWebhookConfigurations = read.Indexed(r, "", terms, addLabelledTerms(termsOfValidatingCaller))
	s.MutatingWebhookConfigurations = read.Indexed(r, "", terms, addLabelledTerms(termsOfMutatingCaller))
}

// addLabelledTerms returns a function that adds the terms of an object, and that of the CSV that its owner labels name.
func addLabelledTerms[T olmcore.Object](terms func(T) []olmcore.Term) func(o T, add func(olmcore.Term)) {
	return func(o T, add func(olmcore.Term)) {
		addAll(add, terms(o))
		if owner, labelled := model.LabelledOwner(o); labelled {
			add(model.KeyTerm(owner))
		}
	}
}

// Kinds of the terms by which webhook configurations are indexed: the name of the object, and the Services that it
// calls.
const (
	termCaller  = "caller"
	termService = "service"
)

// callerTerms returns the terms of the webhook configurations that call an operator.
func callerTerms(c *version, services, names []string) (terms []olmcore.Term) {
	for _, name := range services {
		terms = append(terms, olmcore.Term{Of: termService, Value: c.Namespace + "/" + name})
	}
	for _, name := range names {
		terms = append(terms, olmcore.Term{Of: termCaller, Value: name})
	}
	return terms
}

func termsOfValidatingCaller(w *admissionregistrationv1.ValidatingWebhookConfiguration) []olmcore.Term {
	terms := []olmcore.Term{{Of: termCaller, Value: w.Name}}
	for i := range w.Webhooks {
		terms = appendService(terms, &w.Webhooks[i].ClientConfig)
	}
	return terms
}

func termsOfMutatingCaller(w *admissionregistrationv1.MutatingWebhookConfiguration) []olmcore.Term {
	terms := []olmcore.Term{{Of: termCaller, Value: w.Name}}
	for i := range w.Webhooks {
		terms = appendService(terms, &w.Webhooks[i].ClientConfig)
	}
	return terms
}

// appendService appends the term of the Service that a webhook calls.
func appendService(terms []olmcore.Term, client *admissionregistrationv1.WebhookClientConfig) []olmcore.Term {
	if client.Service == nil {
		return terms
	}
	return append(terms, olmcore.Term{Of: termService, Value: client.Service.Namespace + "/" + client.Service.Name})
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
