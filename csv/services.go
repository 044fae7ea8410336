// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/apiservice"
	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/csv/internal/webhook"
	"github.com/olmcore/olm/olmcore"
)

// services contains what the API server calls of an operator: its webhooks and APIs, and the certificates of the
// Deployments that serve them. The zero value is that of an operator that is not called.
type services struct {
	isObserved   bool
	certificates backend.Plan
	webhooks     webhook.Source
	apis         apiservice.Source
}

// isCalled reports whether the spec of a CSV describes webhooks or APIs.
func isCalled(c *version) bool {
	return len(c.Spec.WebhookDefinitions) > 0 || len(c.Spec.APIServiceDefinitions.Owned) > 0
}

// wasCalled reports whether objects may exist that make the API server call the operator.
func wasCalled(in *Input) bool {
	converts := func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return owned.IsConverter(in.ClusterServiceVersion, crd)
	}
	callers := len(in.Serving.ValidatingWebhookConfigurations.Items) + len(in.Serving.MutatingWebhookConfigurations.Items) +
		len(in.APIServices.Items)
	return callers > 0 || slices.ContainsFunc(in.CustomResourceDefinitions.Items, converts)
}

func observeServices(f *facts) services {
	renews := mayRenewCertificates(f)
	isUsed := isCalled(f.csv) || wasCalled(f.in)
	if !isUsed || f.isLeaving() && !renews {
		return services{}
	}
	s := services{isObserved: true, apis: apiServiceSource(f), webhooks: webhookSource(f)}
	if !slices.Contains(running, f.phase) && !renews {
		return s
	}
	clients := append(s.webhooks.Clients(), apiservice.Clients(f.csv, f.in.APIServices.Items)...)
	if renews { // a version that waits creates no clients, so it does not wait for missing ones
		clients = slices.DeleteFunc(clients, func(c backend.Client) bool { return c.Missing })
	}
	s.certificates = backend.Of(certificateSource(f, clients))
	s.webhooks.Backends, s.apis.Backends = s.certificates, s.certificates
	s.apis.Memory = s.certificates.Memory
	return s
}

func apiServiceSource(f *facts) apiservice.Source {
	account, _ := olmcore.AccountOf(f.group)
	return apiservice.Source{
		CSV:                     f.csv,
		Account:                 account,
		IsConfined:              f.group != nil && f.group.Spec.ServiceAccountName != "",
		Now:                     f.now,
		Neighbours:              f.in.Neighbours.Items,
		Relatives:               f.chain.Relatives,
		APIServices:             f.in.APIServices.Items,
		Definitions:             f.in.GroupDefinitions.Items,
		Objects:                 &f.in.Serving,
		PackageServerNamespaces: f.in.Config.packageServerNamespaces(),
		Deployments:             f.in.Deployments.Items,
		ServiceAccounts:         f.in.ServiceAccounts.Items,
		ServedAPIs:              f.in.ServedAPIs,
		Config:                  deployment.ConfigOf(f.csv, f.in.Subscriptions.Items),
	}
}

func webhookSource(f *facts) webhook.Source {
	account, _ := olmcore.AccountOf(f.group)
	return webhook.Source{
		CSV:        f.csv,
		Group:      f.group,
		Account:    account,
		Objects:    &f.in.Serving,
		CRDs:       f.in.CustomResourceDefinitions.Items,
		UnreadCRDs: read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions"),
	}
}

func certificateSource(f *facts, clients []backend.Client) backend.Source {
	account, _ := olmcore.AccountOf(f.group)
	return backend.Source{
		CSV:         f.csv,
		Account:     account,
		Now:         f.now,
		Objects:     &f.in.Serving,
		Deployments: f.in.Deployments.Items,
		Neighbours:  f.in.Neighbours.Items,
		Relatives:   f.chain.Relatives,
		Clients:     clients,
		Issued:      f.in.Issued,
		Memory:      f.in.Inspected,
	}
}

func deploymentSource(f *facts) deployment.Source {
	return deployment.Source{
		CSV:                 f.csv,
		Config:              deployment.ConfigOf(f.csv, f.in.Subscriptions.Items),
		ProxyEnv:            f.in.Config.ProxyEnv,
		ExcludedAnnotations: f.in.Config.ExcludedAnnotations,
		Mount: func(name string, spec *appsv1.DeploymentSpec) bool {
			if !isCalled(f.csv) || !slices.Contains(backend.Names(f.csv), name) {
				return true
			}
			f.services.certificates.Mount(name, spec)
			return f.services.certificates.Ready(name)
		},
	}
}

// unreadServing returns the names of the unread lists that a CSV with webhooks or APIServices needs.
func unreadServing(in *Input) []string {
	s := &in.Serving
	return slices.Concat(
		read.Missing(in.ServiceAccounts, "ServiceAccounts"),
		read.Missing(s.Services, "Services"), read.Missing(s.Secrets, "Secrets"), read.Missing(s.Roles, "Roles"),
		read.Missing(s.RoleBindings, "RoleBindings"), read.Missing(s.ClusterRoleBindings, "ClusterRoleBindings"),
		read.Missing(s.ValidatingWebhookConfigurations, "ValidatingWebhookConfigurations"),
		read.Missing(s.MutatingWebhookConfigurations, "MutatingWebhookConfigurations"))
}

// keptDiagnostics returns the Diagnostics about webhooks, conversions and APIServices that exist and would not be
// created today. A version that is being replaced has none.
func keptDiagnostics(f *facts) []olmcore.Diagnostic {
	if f.isLeaving() {
		return nil
	}
	diagnostics := f.services.webhooks.Diagnostics()
	for _, why := range apiservice.Shared(f.services.apis) {
		shared := olmcore.Diagnose(olmcore.Warning, ReasonAPIGroupShared, olmcore.RefOf(f.csv), ownedAPIServicesPath, "%s", why)
		diagnostics = append(diagnostics, shared)
	}
	return diagnostics
}

// ownedAPIServicesPath is the field that describes the owned APIServices.
const ownedAPIServicesPath = "spec.apiservicedefinitions.owned"

// trust returns the actions that keep existing webhooks and APIServices trusting the certificates of the operator.
func (s services) trust() []olmcore.Action {
	if !s.isObserved {
		return nil
	}
	return slices.Concat(s.apis.Trust(), s.webhooks.Trust())
}

// needsRepair reports whether a Succeeded CSV would be installed again because of its certificates or APIServices.
func (s services) needsRepair() bool {
	problem, _ := s.apis.Issue()
	return s.certificates.Renew != "" || problem != ""
}
