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

// services are what the API server calls of an operator: webhooks and APIs, and the certificates of the Deployments
// behind them. The zero value is that of an operator that it does not call, and of the phases before its installation.
type services struct {
	certificates backend.Plan
	webhooks     webhook.Source
	apis         apiservice.Source
}

// isCalled reports whether the API server calls the operator.
func isCalled(c *version) bool {
	return len(c.Spec.WebhookDefinitions) > 0 || len(c.Spec.APIServiceDefinitions.Owned) > 0
}

// wasCalled reports whether something is left that the API server called the operator with, or may be.
func wasCalled(f *facts) bool {
	converts := func(crd *apiextensionsv1.CustomResourceDefinition) bool { return owned.IsConverter(f.csv, crd) }
	return len(f.Serving.ValidatingWebhookConfigurations.Items)+len(f.Serving.MutatingWebhookConfigurations.Items)+len(f.APIServices.Items) > 0 ||
		slices.ContainsFunc(f.CustomResourceDefinitions.Items, converts)
}

func servicesOf(f *facts) services {
	isKept := mayKeepCertificates(f)
	if !isCalled(f.csv) && !wasCalled(f) || f.isLeaving() && !isKept {
		return services{}
	}
	account, _ := olmcore.AccountOf(f.group)
	s := services{
		apis: apiservice.Source{
			CSV: f.csv, Account: account, IsConfined: f.group != nil && f.group.Spec.ServiceAccountName != "",
			Now: f.Now, Neighbours: f.Neighbours.Items, Relatives: f.Relatives,
			APIServices: f.APIServices.Items, Definitions: f.GroupDefinitions.Items, Objects: &f.Serving,
			PackageServerNamespaces: f.Config.packageServerNamespaces(),
			Deployments:             f.Deployments.Items, ServiceAccounts: f.ServiceAccounts.Items, ServedAPIs: f.ServedAPIs,
			Config: deployment.ConfigOf(f.csv, f.Subscriptions.Items),
		},
		webhooks: webhook.Source{
			CSV: f.csv, Group: f.group, Account: account, Objects: &f.Serving, CRDs: f.CustomResourceDefinitions.Items,
			UnreadCRDs: read.Missing(f.CustomResourceDefinitions, "CustomResourceDefinitions"),
		},
	}
	if !slices.Contains(running, f.phase) && !isKept {
		return s
	}
	clients := append(s.webhooks.Clients(), apiservice.Clients(f.csv, f.APIServices.Items)...)
	if isKept { // a waiting version creates no clients, so it does not wait for missing ones
		clients = slices.DeleteFunc(clients, func(c backend.Client) bool { return c.Missing })
	}
	s.certificates = backend.Of(backend.Source{
		CSV: f.csv, Account: account, Now: f.Now, Objects: &f.Serving, Deployments: f.Deployments.Items, Issued: f.Issued, Memory: f.Inspected,
		Neighbours: f.Neighbours.Items, Relatives: f.Relatives, Clients: clients,
	})
	s.apis.Backends, s.webhooks.Backends, s.apis.Memory = s.certificates, s.certificates, s.certificates.Memory
	return s
}

// mount puts the certificate of a Deployment into its spec, if it serves with one, and reports whether it has that.
func (f *facts) mount(name string, spec *appsv1.DeploymentSpec) bool {
	if !isCalled(f.csv) || !slices.Contains(backend.Names(f.csv), name) {
		return true
	}
	f.certificates.Mount(name, spec)
	return f.certificates.Ready(name)
}

// servicesUnread waits for what the API server calls. A Pending CSV needs only to know whose its APIServices are.
func servicesUnread(f *facts) (decision, bool) {
	var lists []string
	if len(f.csv.Spec.APIServiceDefinitions.Owned) > 0 {
		lists = read.Missing(f.APIServices, "APIServices")
	}
	if apiservice.NeedsClaims(f.apis) {
		lists = append(lists, read.Missing(f.GroupDefinitions, "CustomResourceDefinitions of the owned API groups")...)
	}
	if isCalled(f.csv) && f.phase != v1alpha1.CSVPhasePending {
		lists = append(lists, servingUnread(f)...)
	}
	if len(f.csv.Spec.WebhookDefinitions) > 0 && f.phase != v1alpha1.CSVPhasePending {
		lists = append(lists, read.Missing(f.CustomResourceDefinitions, "CustomResourceDefinitions")...)
	}
	d, unread := f.unread(len(lists) == 0, strings.Join(lists[:min(1, len(lists))], ""))
	if f.phase == v1alpha1.CSVPhasePending {
		d = reporting(d)
	}
	return d, unread
}

// servingUnread returns the names of the unread lists that a CSV with webhooks or APIServices needs.
func servingUnread(f *facts) []string {
	s := &f.Serving
	return slices.Concat(
		read.Missing(f.ServiceAccounts, "ServiceAccounts"),
		read.Missing(s.Services, "Services"), read.Missing(s.Secrets, "Secrets"), read.Missing(s.Roles, "Roles"),
		read.Missing(s.RoleBindings, "RoleBindings"), read.Missing(s.ClusterRoleBindings, "ClusterRoleBindings"),
		read.Missing(s.ValidatingWebhookConfigurations, "ValidatingWebhookConfigurations"),
		read.Missing(s.MutatingWebhookConfigurations, "MutatingWebhookConfigurations"))
}

// certificatePace is how soon a certificate that was not issued is asked for again.
const certificatePace = 10 * time.Second

// keptDiagnostics returns the Diagnostics about webhooks, conversions and APIServices that exist and would not be
// created today. A version that is replaced has none.
func keptDiagnostics(f *facts) []olmcore.Diagnostic {
	if f.isLeaving() {
		return nil
	}
	return slices.Concat(f.webhooks.Diagnostics(), sharedGroups(f))
}

// trust returns what makes all that exists and calls the operator trust its certificates, and nothing else.
func (f *facts) trust() []olmcore.Action {
	if f.webhooks.CSV == nil {
		return nil
	}
	return slices.Concat(f.apis.Trust(), f.webhooks.Trust())
}

// updateBundles returns the updates of the caBundles of what exists and calls the operator.
func updateBundles(f *facts) []olmcore.Action {
	return slices.Concat(apiservice.UpdateBundles(f.apis), webhook.UpdateBundles(f.webhooks))
}

// installation is what is left to do until all of the operator is installed: its certificates and who trusts them
// first, then the Deployments, then who calls them.
func (f *facts) installation() deployment.Installation {
	source, tries := f.source(), triesOf(f)
	account, _ := olmcore.AccountOf(f.group)
	if !isCalled(f.csv) {
		return source.Install(f.Deployments.Items, account, tries)
	}
	if f.certificates.Problem != "" {
		return deployment.Installation{Failure: f.certificates.Problem}
	}
	if len(f.certificates.Requests) > 0 {
		if held := tries.Held(); held.Failure != "" {
			return held
		}
		return deployment.Installation{RequeueAfter: certificatePace}
	}
	if todo := deployment.Judge(slices.Concat(f.certificates.Install, f.trust()), tries); !todo.Done() {
		return todo
	}
	if slices.ContainsFunc(backend.Names(f.csv), func(name string) bool { return !f.certificates.Ready(name) }) {
		return deployment.Installation{RequeueAfter: soonest(certificatePace, f.certificates.Wait)} // what has to go is on its way
	}
	if todo := source.Install(f.Deployments.Items, account, tries); !todo.Done() {
		return todo
	}
	configurations, problem := f.webhooks.Install()
	if problem != "" {
		return deployment.Installation{Failure: problem}
	}
	todo := deployment.Judge(append(f.apis.Install(), configurations...), tries)
	if todo.Done() && f.certificates.Renew != "" {
		todo.RequeueAfter = soonest(certificatePace, f.certificates.Wait) // it follows once all who call the operator are observed
	}
	return todo
}

// certificatesMissing says to the caller what nothing is installed without.
func (f *facts) certificatesMissing() []olmcore.Diagnostic {
	return certificatesNeeded(f.csv, f.certificates.Requests, "nothing is installed until certificates are issued for the deployments %s")
}

// certificatesNeeded returns the Diagnostic for some requests, nil for none. format contains one %s for
// the names of the Deployments.
func certificatesNeeded(c *version, requests []certificate.Request, format string) []olmcore.Diagnostic {
	var names []string
	for _, r := range requests {
		names = append(names, r.Deployment)
	}
	if len(names) == 0 {
		return nil
	}
	needed := olmcore.Diagnose(olmcore.Info, ReasonCertificatesNeeded, olmcore.RefOf(c), "", format, strings.Join(names, ", "))
	return []olmcore.Diagnostic{needed}
}

// apiServiceIssue leaves Succeeded when what was made for an owned APIService is not as it was.
func apiServiceIssue(f *facts) (decision, bool) {
	problem, _ := f.apis.Issue()
	return fail(v1alpha1.CSVReasonAPIServiceResourceIssue, problem), problem != ""
}

// apiServicesReinstalled leaves Failed when installing again mends what was made for the owned APIServices.
func apiServicesReinstalled(f *facts) (decision, bool) {
	problem, mendable := f.apis.Issue()
	if problem == "" {
		return decision{}, false
	}
	if !mendable {
		return f.retry(f.stay()), true
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonAPIServiceResourcesNeedReinstall, problem), true
}

// certificatesDue installs again when a certificate must be replaced.
func certificatesDue(f *facts) (decision, bool) {
	if f.certificates.Renew == "" {
		return decision{}, false
	}
	message := "CSV owns resources that require a cert refresh"
	if f.phase == v1alpha1.CSVPhaseFailed {
		message = "owned APIServices need cert refresh"
	}
	return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsCertRotation, message), true
}

// needsRepair reports whether a Succeeded CSV would be installed again for the sake of its certificates or APIServices.
func (s services) needsRepair() bool {
	problem, _ := s.apis.Issue()
	return s.certificates.Renew != "" || problem != ""
}

// disruptedPace is how often an APIService is looked at whose Pods are on their way.
const disruptedPace = 10 * time.Second

// health judges all parts of the operator. What of it needs time, or does not exist, leads to a phase and a reason;
// what is outdated, or can only be mended by installing it again, back to the installation.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, updateInstallStatus.
// Differs: what is missing while the CSV is Installing is installed again at once, not after the timeout.
func (f *facts) health(to phase, reason v1alpha1.ConditionReason) (decision, deployment.State) {
	state, why := f.source().Health(f.Deployments.Items)
	if !isCalled(f.csv) || state == deployment.Incomputable || state == deployment.TimedOut {
		return judged(state, why, to, reason), state
	}
	apis := f.apis.Health()
	if apis == apiservice.Disrupted {
		return f.waitFor(min(disruptedPace, f.apis.DisruptedFor())), state
	}
	absent := to
	if to == v1alpha1.CSVPhaseInstalling {
		absent = v1alpha1.CSVPhaseInstallReady
	}
	isRunning := state == deployment.Healthy || state == deployment.Waiting
	switch webhooks, problem := f.webhooks.Health(); {
	case apis == apiservice.NotUpdated:
		return move(absent, reason, apisMissing), deployment.Missing
	case webhooks == webhook.Failing:
		return move(v1alpha1.CSVPhaseInstallReady, reason, "Webhook install failed: "+problem), deployment.Outdated
	case webhooks == webhook.Missing:
		return move(absent, reason, webhooksMissing), deployment.Missing
	case state == deployment.Healthy && len(f.certificates.Install) > 0:
		_, target, _ := f.certificates.Install[0].Describe()
		return move(v1alpha1.CSVPhaseInstallReady, reason, fmt.Sprintf("installing: %s %s is not as it should be", target.Kind, target.Name)), deployment.Outdated
	// Last, as these may be for want of what the others write.
	case webhooks == webhook.Waiting && isRunning:
		return move(to, reason, webhooksMissing), deployment.Waiting
	case apis == apiservice.NotServed && isRunning:
		return move(to, reason, apisMissing), deployment.Waiting
	}
	return judged(state, why, to, reason), state
}

const (
	apisMissing     = "apiServices not installed"
	webhooksMissing = "webhooks not installed"
)

// settled is what is still to be written once all of the operator is well.
func (f *facts) settled() []olmcore.Action {
	return slices.Concat(deployment.Removals(f.csv, f.Deployments.Items), f.certificates.Settle)
}

// untilRenewal looks again when the replacement of the next certificate begins. When the CSV leaves Failed,
// it also updates status.certsRotateAt.
func (f *facts) untilRenewal(d decision) decision {
	if f.phase == v1alpha1.CSVPhaseFailed && d.Phase == v1alpha1.CSVPhaseSucceeded {
		d.renewAt = renewal(f.csv.Status.CertsRotateAt, f.certificates.RenewAt)
	}
	if at := f.certificates.RenewAt; !at.IsZero() {
		d.RequeueAfter = soonest(d.RequeueAfter, untilRenewalBegins(at, f.Now))
	}
	return d
}

// untilRenewalBegins returns the time until the renewal may begin: until the certificate is due on every clock within
// olmcore.ClockTolerance.
func untilRenewalBegins(at, now time.Time) time.Duration {
	return max(time.Second, at.Add(olmcore.ClockTolerance).Sub(now))
}

// soonest returns the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
