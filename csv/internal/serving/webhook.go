// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/observed"
	"github.com/olmcore/olm/olmcore"
)

// Source contains the observed objects from which this package computes the health and the writes of webhooks.
type Webhooks struct {
	observed.Operator
	// Backends is the backend.Certificates of the CSV. If Backends is nil, no Deployment has a certificate.
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
func (s Webhooks) Clients() []Client {
	f := factsOf(s)
	var clients []Client
	for _, o := range f.all {
		for _, config := range f.calls(o) {
			clients = append(clients, Client{Service: config.Service.Name, Bundle: config.CABundle})
		}
	}
	for _, crd := range f.converted() {
		config := clientConfig(crd)
		clients = append(clients, Client{Service: config.Service.Name, Bundle: config.CABundle})
	}
	for i := range s.CSV.Spec.WebhookDefinitions {
		if w := &s.CSV.Spec.WebhookDefinitions[i]; f.isMissing(w) {
			clients = append(clients, Client{Service: ServiceName(w.DeploymentName), Missing: true})
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
type WebhookState string

// States of webhooks.
const (
	Installed   WebhookState = "Installed"   // Installed means that all webhooks are up to date.
	Missing     WebhookState = "Missing"     // Missing means that a webhook does not exist or is not up to date.
	Waiting     WebhookState = "Waiting"     // Waiting means that a missing webhook waits for the certificate rollout.
	Failing     WebhookState = "Failing"     // Failing means that a webhook cannot be installed.
	NotObserved WebhookState = "NotObserved" // NotObserved means that a list was not read.
)

// Health returns Installed if all webhooks are up to date. Otherwise it usually returns the State of the first webhook
// that is not up to date. For Failing and NotObserved it also returns the reason.
//
// As in OLM, an admission webhook is up to date if the hash of its description matches. A conversion webhook is up to
// date if its CRDs have the strategy Webhook. The caBundle of a webhook that calls the CSV must also contain an
// authority of the Deployment.
func (s Webhooks) Health() (WebhookState, string) {
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
		case f.isMissing(w) && f.bundle(ServiceName(w.DeploymentName), nil) == nil:
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
func (s Webhooks) Install() (actions []olmcore.Action, problem string) {
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
