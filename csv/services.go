// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/certificate"
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

// waitForServiceLists waits for the lists of objects that webhooks and APIServices need. A Pending CSV needs only those
// that tell which operator owns its APIServices.
func waitForServiceLists(f *facts) (decision, bool) {
	var lists []string
	isPending := f.phase == v1alpha1.CSVPhasePending
	if len(f.csv.Spec.APIServiceDefinitions.Owned) > 0 {
		lists = read.Missing(f.in.APIServices, "APIServices")
	}
	if apiservice.NeedsClaims(f.services.apis) {
		lists = append(lists, read.Missing(f.in.GroupDefinitions, "CustomResourceDefinitions of the owned API groups")...)
	}
	if isCalled(f.csv) && !isPending {
		lists = append(lists, unreadServing(f.in)...)
	}
	if len(f.csv.Spec.WebhookDefinitions) > 0 && !isPending {
		lists = append(lists, read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions")...)
	}
	d, isUnread := waitForList(f, len(lists) == 0, strings.Join(lists[:min(1, len(lists))], ""))
	if isPending {
		d = d.reporting()
	}
	return d, isUnread
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

// certificatePace is how soon a certificate that was not issued is requested again.
const certificatePace = 10 * time.Second

// installation returns what is left to do until the whole operator is installed: first its certificates and the objects
// that must trust them, then the Deployments, then the webhooks and APIServices.
func installation(f *facts) deployment.Installation {
	source := deploymentSource(f)
	tries := triesOf(f)
	account, _ := olmcore.AccountOf(f.group)
	if !isCalled(f.csv) {
		return source.Install(f.in.Deployments.Items, account, tries)
	}
	// 1. Certificates.
	if todo := certificateInstallation(f, tries); !todo.Done() {
		return todo
	}
	// 2. Deployments.
	if todo := source.Install(f.in.Deployments.Items, account, tries); !todo.Done() {
		return todo
	}
	// 3. Webhooks and APIServices.
	configurations, problem := f.services.webhooks.Install()
	if problem != "" {
		return deployment.Installation{Failure: problem}
	}
	todo := deployment.Judge(append(f.services.apis.Install(), configurations...), tries)
	if todo.Done() && f.services.certificates.Renew != "" {
		// The certificate is replaced once all callers are observed.
		todo.RequeueAfter = olmcore.Nearest(certificatePace, f.services.certificates.Wait)
	}
	return todo
}

// certificateInstallation returns what is left to do until every Deployment that is called has a certificate.
func certificateInstallation(f *facts, tries deployment.Tries) deployment.Installation {
	certificates := f.services.certificates
	switch {
	case certificates.Problem != "":
		return deployment.Installation{Failure: certificates.Problem}
	case len(certificates.Requests) > 0:
		if held := tries.Held(); held.Failure != "" {
			return held
		}
		return deployment.Installation{RequeueAfter: certificatePace}
	}
	todo := deployment.Judge(slices.Concat(certificates.Install, f.services.trust()), tries)
	isMissing := func(name string) bool { return !certificates.Ready(name) }
	if todo.Done() && slices.ContainsFunc(backend.Names(f.csv), isMissing) {
		// An object that must be deleted first is being deleted.
		return deployment.Installation{RequeueAfter: olmcore.Nearest(certificatePace, certificates.Wait)}
	}
	return todo
}

// certificatesMissing returns the Diagnostic about certificates without which nothing is installed.
func certificatesMissing(f *facts) []olmcore.Diagnostic {
	const format = "nothing is installed until certificates are issued for the deployments %s"
	return certificatesNeeded(f.csv, f.services.certificates.Requests, format)
}

// certificatesNeeded returns the Diagnostic for some requests, and none if there are no requests. format contains one
// %s for the names of the Deployments.
func certificatesNeeded(c *version, requests []certificate.Request, format string) []olmcore.Diagnostic {
	if len(requests) == 0 {
		return nil
	}
	var names []string
	for _, r := range requests {
		names = append(names, r.Deployment)
	}
	needed := olmcore.Diagnose(olmcore.Info, ReasonCertificatesNeeded, olmcore.RefOf(c), "", format, strings.Join(names, ", "))
	return []olmcore.Diagnostic{needed}
}

// failWithAPIServiceIssue leaves Succeeded if an object that was created for an owned APIService was changed.
func failWithAPIServiceIssue(f *facts) (decision, bool) {
	problem, _ := f.services.apis.Issue()
	return fail(v1alpha1.CSVReasonAPIServiceResourceIssue, problem), problem != ""
}

// reinstallAPIServices leaves Failed if another installation repairs the objects of the owned APIServices.
func reinstallAPIServices(f *facts) (decision, bool) {
	problem, isRepairable := f.services.apis.Issue()
	switch {
	case problem == "":
		return decision{}, false
	case !isRepairable:
		return f.stay().requeue(f.retryIn(f.csv.Status.Phase)), true
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonAPIServiceResourcesNeedReinstall, problem), true
}

// rotateCertificates installs again because a certificate must be replaced.
func rotateCertificates(f *facts) (decision, bool) {
	message := "CSV owns resources that require a cert refresh"
	if f.phase == v1alpha1.CSVPhaseFailed {
		message = "owned APIServices need cert refresh"
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsCertRotation, message), f.services.certificates.Renew != ""
}

// disruptedPace is how often an APIService is examined while Pods of its Deployment start or stop.
const disruptedPace = 10 * time.Second

// health judges all parts of the operator. A part that needs time, or does not exist, leads to the given phase and
// reason. A part that is outdated, or that only an installation repairs, leads back to InstallReady.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, updateInstallStatus.
// Differs: an object that is missing while the CSV is Installing is installed again at once, not after the timeout.
func health(f *facts, to phase, reason v1alpha1.ConditionReason) (decision, deployment.State) {
	state, why := deploymentSource(f).Health(f.in.Deployments.Items)
	if isCalled(f.csv) && state != deployment.Incomputable && state != deployment.TimedOut {
		if d, worse := serviceHealth(f, state, to, reason); worse != "" {
			return d, worse
		}
	}
	return deploymentHealth(state, why, to, reason), state
}

// deploymentHealth returns the decision that follows from the state of the Deployments alone.
func deploymentHealth(state deployment.State, why string, to phase, reason v1alpha1.ConditionReason) decision {
	switch state {
	case deployment.Healthy:
		return move(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors")
	case deployment.Incomputable:
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, why)
	case deployment.TimedOut:
		return fail(v1alpha1.CSVReasonInstallCheckFailed, "install failed: "+why)
	case deployment.Outdated:
		return move(v1alpha1.CSVPhaseInstallReady, reason, "installing: "+why)
	}
	return move(to, reason, "installing: "+why)
}

// serviceHealth returns the decision that follows from webhooks and APIServices, and the state that they give the
// operator. The state is empty if they are at least as healthy as the Deployments.
func serviceHealth(f *facts, state deployment.State, to phase, reason v1alpha1.ConditionReason) (decision, deployment.State) {
	apis := f.services.apis.Health()
	if apis == apiservice.Disrupted {
		return f.stay().requeue(disruptedPace).requeue(f.services.apis.DisruptedFor()), state
	}
	ifMissing := to
	if to == v1alpha1.CSVPhaseInstalling {
		ifMissing = v1alpha1.CSVPhaseInstallReady
	}
	webhooks, problem := f.services.webhooks.Health()
	// 1. An installation repairs these.
	certificates := f.services.certificates.Install
	switch {
	case apis == apiservice.NotUpdated:
		return move(ifMissing, reason, apisMissing), deployment.Missing
	case webhooks == webhook.Failing:
		return move(v1alpha1.CSVPhaseInstallReady, reason, "Webhook install failed: "+problem), deployment.Outdated
	case webhooks == webhook.Missing:
		return move(ifMissing, reason, webhooksMissing), deployment.Missing
	case state == deployment.Healthy && len(certificates) > 0:
		_, target, _ := certificates[0].Describe()
		outdated := fmt.Sprintf("installing: %s %s is not as it should be", target.Kind, target.Name)
		return move(v1alpha1.CSVPhaseInstallReady, reason, outdated), deployment.Outdated
	}
	// 2. These need time, possibly because one of the above is missing.
	if state != deployment.Healthy && state != deployment.Waiting {
		return decision{}, ""
	}
	switch {
	case webhooks == webhook.Waiting:
		return move(to, reason, webhooksMissing), deployment.Waiting
	case apis == apiservice.NotServed:
		return move(to, reason, apisMissing), deployment.Waiting
	}
	return decision{}, ""
}

const (
	apisMissing     = "apiServices not installed"
	webhooksMissing = "webhooks not installed"
)
