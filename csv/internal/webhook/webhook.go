// SPDX-License-Identifier: Apache-2.0

// Package webhook installs the webhooks that a ClusterServiceVersion describes: the admission configurations, and the
// conversions of its CRDs.
package webhook

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions of this package.
const (
	// ReasonInstall means that a webhook is created or updated to match its description in the ClusterServiceVersion.
	// Nothing to do.
	ReasonInstall = "Install"
	// ReasonTrust means that the caBundle of a webhook is updated during a certificate rotation. It is also the reason if
	// the namespaceSelector is updated because the OperatorGroup changed. Nothing to do.
	ReasonTrust = "Trust"
	// ReasonRemovedFromSpec means that a webhook is removed because the ClusterServiceVersion no longer describes it.
	// Nothing to do.
	ReasonRemovedFromSpec = "RemovedFromSpec"
)

// Reasons of the Diagnostics of this package.
const (
	// ReasonRulesKept means that an existing webhook configuration keeps rules that a new configuration would not get. The
	// cause is that the OperatorGroup does not select all namespaces. The next version of the operator gets narrower rules
	// or is rejected. Before you upgrade, give the operator an OperatorGroup that selects all namespaces, or run the
	// command in the message.
	ReasonRulesKept = "WebhookRulesKept"
	// ReasonRulesNarrowed means that a webhook is not called for custom resources of a cluster-scoped CRD, although the
	// ClusterServiceVersion lists the CRD as owned. The cause is that the OperatorGroup does not select all namespaces,
	// and no InstallPlan recorded that the CRD belongs to this operator alone. Give the operator an OperatorGroup that
	// selects all namespaces, or run the command in the message.
	ReasonRulesNarrowed = "WebhookRulesNarrowed"
	// ReasonConversionKept means that a CRD calls the operator for conversions, but no InstallPlan recorded that the CRD
	// was installed with the operator. Only the caBundle of its conversion is updated, even if the next version of the
	// operator needs another conversion. To allow changes, let a cluster administrator run the command in the message.
	ReasonConversionKept = "ConversionKept"
)

// Source contains the observed objects from which this package computes the health and the writes of webhooks.
type Source struct {
	model.Operator
	// Backends is the backend.Plan of the CSV. If Backends is nil, no Deployment has a certificate.
	Backends interface {
		// Trust returns the caBundle that a client of a Deployment should have. have is its current caBundle, or nil. The
		// result is nil while no client should be created.
		Trust(deployment string, have []byte) []byte
	}
}

// Clients returns a backend.Client for each webhook that calls a Deployment of this CSV. The webhooks belong to this
// version or to another version of its namespace. If Install has not created a webhook yet, its client is Missing.
// Trust updates the caBundles of exactly these webhooks, because a certificate is rotated only after all clients trust
// it. Backends need not be set.
func (s Source) Clients() []backend.Client {
	f := factsOf(s)
	var clients []backend.Client
	for _, o := range f.all {
		for _, config := range f.calls(o) {
			clients = append(clients, backend.Client{Service: config.Service.Name, Bundle: config.CABundle})
		}
	}
	for _, crd := range f.converted() {
		config := clientConfig(crd)
		clients = append(clients, backend.Client{Service: config.Service.Name, Bundle: config.CABundle})
	}
	for i := range s.CSV.Spec.WebhookDefinitions {
		if w := &s.CSV.Spec.WebhookDefinitions[i]; f.isMissing(w) {
			clients = append(clients, backend.Client{Service: backend.ServiceName(w.DeploymentName), Missing: true})
		}
	}
	return clients
}

// isMissing reports whether Install has not created the webhook or conversion of a description yet.
func (f *facts) isMissing(w *description) bool {
	if w.Type == v1alpha1.ConversionWebhook {
		return slices.ContainsFunc(w.ConversionCRDs, func(name string) bool {
			crd := f.crds[name]
			config := clientConfig(crd)
			isOpen := config == nil || len(config.CABundle) == 0 || f.callsPredecessor(crd)
			return crd != nil && f.source.notOurs(crd) == "" && !f.calledBy(config) && isOpen
		})
	}
	calls := func(o olmcore.Object) bool { return len(f.calls(o)) > 0 }
	return kindOf(w) != "" && !slices.ContainsFunc(f.made[originOf(w)], calls)
}

// State is the health of the webhooks of a CSV.
type State string

// States of webhooks.
const (
	Installed   State = "Installed"   // Installed means that all webhooks are up to date.
	Missing     State = "Missing"     // Missing means that a webhook does not exist or is not up to date.
	Waiting     State = "Waiting"     // Waiting means that a missing webhook waits for the certificate rollout.
	Failing     State = "Failing"     // Failing means that a webhook cannot be installed.
	NotObserved State = "NotObserved" // NotObserved means that a list was not read.
)

// Health returns Installed if all webhooks are up to date. Otherwise it usually returns the State of the first webhook
// that is not up to date. For Failing and NotObserved it also returns the reason.
//
// As in OLM, an admission webhook is up to date if the hash of its description matches. A conversion webhook is up to
// date if its CRDs have the strategy Webhook. The caBundle of a webhook that calls the CSV must also contain an
// authority of the Deployment.
func (s Source) Health() (State, string) {
	f := factsOf(s)
	if unread := f.unread(); unread != "" {
		return NotObserved, unread
	}
	if problem := unlabelled(f.own); problem != "" {
		return Failing, problem
	}
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		converts := w.Type == v1alpha1.ConversionWebhook
		switch {
		case converts && f.converts(w) || !converts && f.admits(w):
		case f.isMissing(w) && f.bundle(backend.ServiceName(w.DeploymentName), nil) == nil:
			return Waiting, ""
		case converts:
			return Failing, "conversionWebhook not ready"
		default:
			return Missing, ""
		}
	}
	return Installed, ""
}

// Install returns the writes that create or update the webhooks, including the writes of Trust. If a check such as
// Problem fails, Install returns the problem and no writes. Install creates a webhook only once Backends has a
// certificate for it.
func (s Source) Install() (actions []olmcore.Action, problem string) {
	f := factsOf(s)
	if unread := f.unread(); unread != "" {
		return nil, "not read: " + unread
	}
	if problem = problemOf(f); problem != "" {
		return nil, problem // the spec may have changed since it was judged
	}
	admissions, problem := f.admissions()
	if problem != "" {
		return nil, problem
	}
	conversions, problem := f.conversions()
	if problem != "" {
		return nil, problem
	}
	actions = slices.Concat(conversions, admissions)
	written := targets(actions)
	for _, a := range f.trust() {
		if _, ref, _ := a.Describe(); !written.Has(ref.Key()) {
			actions = append(actions, a)
		}
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return actions, ""
}
