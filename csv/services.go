// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

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
	_, confirmed := olmcore.AccountOf(f.group)
	return (f.phase == v1alpha1.CSVPhasePending || isReplacing) && isCalled(f.csv) && f.group != nil && confirmed && specError(f.csv) == ""
}

// observeServices returns the plan for what an operator serves, or the zero value in the phases that do not depend on
// it.
func observeServices(f *facts) internalserving.Plan {
	renews := mayRenewCertificates(f)
	isUsed := isCalled(f.csv) || wasCalled(f.in)
	switch {
	case !isUsed || f.isLeaving() && !renews:
		return internalserving.Plan{}
	case renews: // a version that waits creates no clients
		return internalserving.PlanOf(f.operator, internalserving.ForRenewal)
	case slices.Contains(running, f.phase):
		return internalserving.PlanOf(f.operator, internalserving.ForInstallation)
	}
	return internalserving.PlanOf(f.operator, internalserving.ForChecks)
}

// deployments returns the Deployments of the operator. They mount the certificates.
func (f *facts) deployments() deployment.Source {
	return deployment.Source{Operator: f.operator, Mount: func(name string, spec *appsv1.DeploymentSpec) bool {
		if !isCalled(f.csv) || !slices.Contains(internalserving.DeploymentNames(f.csv), name) {
			return true
		}
		f.services.Certificates.Mount(name, spec)
		return f.services.Certificates.Ready(name)
	}}
}

// keptDiagnostics returns the Diagnostics about webhooks, conversions and APIServices that exist and would not be
// created today. A version that is being replaced has none.
func keptDiagnostics(f *facts) []olmcore.Diagnostic {
	if f.isLeaving() {
		return nil
	}
	diagnostics := f.services.Clients.Diagnostics()
	for _, why := range internalserving.Shared(f.services.Clients) {
		shared := olmcore.Diagnose(olmcore.Warning, ReasonAPIGroupShared, olmcore.RefOf(f.csv), ownedAPIServicesPath, "%s", why)
		diagnostics = append(diagnostics, shared)
	}
	return diagnostics
}

// ownedAPIServicesPath is the field that describes the owned APIServices.
const ownedAPIServicesPath = "spec.apiservicedefinitions.owned"

// needsRepair reports whether a Succeeded CSV would be installed again because of its certificates or APIServices.
func needsRepair(f *facts) bool {
	problem, _ := f.services.Clients.Issue()
	return f.services.Certificates.Renew != "" || problem != ""
}
