// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/apiservice"
	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/webhook"
	"github.com/olmcore/olm/internal/installer"
	"github.com/olmcore/olm/olmcore"
)

// services contains the webhooks and APIs of an operator, which the API server calls, and the certificates of the
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

// wasCalled reports whether objects may exist through which the API server calls the operator.
func wasCalled(in *Input) bool {
	converts := func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return model.IsConverter(in.ClusterServiceVersion, crd)
	}
	callers := len(in.Serving.ValidatingWebhookConfigurations.Items) + len(in.Serving.MutatingWebhookConfigurations.Items) +
		len(in.APIServices.Items)
	return callers > 0 || slices.ContainsFunc(in.CustomResourceDefinitions.Items, converts)
}

// mayRenewCertificates reports whether the CSV is Pending or Replacing and its Pods may still serve. It is false while
// the account of the OperatorGroup is not confirmed, because then it is unknown which account may write.
func mayRenewCertificates(f *facts) bool {
	isReplacing := f.phase == v1alpha1.CSVPhaseReplacing && f.chain.Successor != nil && !f.chain.Followed
	_, confirmed := installer.AccountOf(f.group)
	return (f.phase == v1alpha1.CSVPhasePending || isReplacing) && isCalled(f.csv) && f.group != nil && confirmed && specError(f.csv) == ""
}

// observeServices returns the services of an operator, or the zero value in the phases that do not depend on them.
func observeServices(f *facts) services {
	renews := mayRenewCertificates(f)
	isUsed := isCalled(f.csv) || wasCalled(f.in)
	if !isUsed || f.isLeaving() && !renews {
		return services{}
	}
	s := services{isObserved: true, apis: apiservice.Source{Operator: f.operator}, webhooks: webhook.Source{Operator: f.operator}}
	if !slices.Contains(running, f.phase) && !renews {
		return s
	}
	clients := append(s.webhooks.Clients(), apiservice.Clients(f.csv, f.in.APIServices.Items)...)
	if renews { // a version that waits creates no clients, so it does not wait for missing ones
		clients = slices.DeleteFunc(clients, func(c backend.Client) bool { return c.Missing })
	}
	s.certificates = backend.Of(backend.Source{Operator: f.operator, Clients: clients})
	s.webhooks.Backends, s.apis.Backends = s.certificates, s.certificates
	s.apis.Memory = s.certificates.Memory
	return s
}

// deployments returns the Deployments of the operator. They mount the certificates.
func (f *facts) deployments() deployment.Source {
	return deployment.Source{Operator: f.operator, Mount: func(name string, spec *appsv1.DeploymentSpec) bool {
		if !isCalled(f.csv) || !slices.Contains(backend.Names(f.csv), name) {
			return true
		}
		f.services.certificates.Mount(name, spec)
		return f.services.certificates.Ready(name)
	}}
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
