// SPDX-License-Identifier: Apache-2.0

// Package webhook decides about the webhooks that a ClusterServiceVersion describes: the configurations for admission,
// and the conversion of its CRDs.
package webhook

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/observed"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions of this package.
const (
	// ReasonInstall: a webhook is not as the ClusterServiceVersion describes it.
	ReasonInstall = "Install"
	// ReasonTrust: a webhook does not trust the certificate of the Deployment that it calls, or selects other
	// namespaces than its OperatorGroup.
	ReasonTrust = "Trust"
	// ReasonRemovedFromSpec: a webhook is described no more.
	ReasonRemovedFromSpec = "RemovedFromSpec"
)

// Reasons of the Diagnostics of this package.
const (
	// ReasonRulesKept means that a webhook configuration keeps rules that a new one would not get, because its
	// OperatorGroup does not select all namespaces. The next version of the operator gets narrower rules or is refused.
	// Before you upgrade it, give the operator an OperatorGroup that selects all namespaces, or run the command of the
	// message.
	ReasonRulesKept = "WebhookRulesKept"
	// ReasonRulesNarrowed means that a webhook is not called for custom resources of a cluster-scoped CRD, although the
	// ClusterServiceVersion lists the CRD as owned. Its OperatorGroup does not select all namespaces, and no
	// InstallPlan recorded that the CRD came with this operator alone. Give the operator an OperatorGroup that selects
	// all namespaces, or run the command of the message.
	ReasonRulesNarrowed = "WebhookRulesNarrowed"
	// ReasonConversionKept means that a CRD calls the operator for conversions although no InstallPlan recorded the
	// CRD. Its conversion is not changed, also if the next version of the operator needs that. A cluster administrator
	// runs the command of the message to allow it.
	ReasonConversionKept = "ConversionKept"
)

// Source is what the decisions about webhooks depend on.
type Source struct {
	observed.Operator
	// Backends is a backend.Plan. If it is nil, no Deployment has a certificate.
	Backends interface {
		// Trust returns the bundle that a client of a Deployment should have. have is its current bundle, nil if it has
		// none. The result is nil while no client should be created.
		Trust(deployment string, have []byte) []byte
	}
}

// Clients returns the webhooks that call the Deployments of this CSV, of this and of other versions of its namespace,
// and those that Install has yet to make. They are those whose bundles Trust keeps, and no others: a certificate
// follows another only once all of them trust it. It needs no Backends.
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

// isMissing reports whether Install has yet to make the API server call what a description says.
func (f *facts) isMissing(w *description) bool {
	if w.Type == v1alpha1.ConversionWebhook {
		return slices.ContainsFunc(w.ConversionCRDs, func(name string) bool {
			crd := f.crds[name]
			config := clientConfig(crd)
			isOpen := config == nil || len(config.CABundle) == 0 || f.callsPredecessor(crd)
			return crd != nil && f.notOurs(crd) == "" && !f.calledBy(config) && isOpen
		})
	}
	calls := func(o olmcore.Object) bool { return len(f.calls(o)) > 0 }
	return kindOf(w) != "" && !slices.ContainsFunc(f.made[originOf(w)], calls)
}

// State is how the webhooks of a CSV fare.
type State string

// States.
const (
	Installed   State = "Installed"   // all are as they should be
	Missing     State = "Missing"     // one does not exist, or was made from something else
	Waiting     State = "Waiting"     // one does not exist, and no new client may use the certificate before the rollout has ended
	Failing     State = "Failing"     // something is in the way
	NotObserved State = "NotObserved" // a list was not read
)

// Health returns how the webhooks fare, and of Failing and NotObserved why. The first description that is not right
// decides. An admission webhook counts by the hash of its description, a conversion by its strategy, as in OLM, and
// both by whether the API server trusts something there that the Deployment may answer with.
func (s Source) Health() (State, string) {
	f := factsOf(s)
	if unread := f.unread(); unread != "" {
		return NotObserved, unread
	}
	if problem := unlabelled(f.own); problem != "" {
		return Failing, problem
	}
	for i := range f.CSV.Spec.WebhookDefinitions {
		w := &f.CSV.Spec.WebhookDefinitions[i]
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

// Install returns what brings the webhooks about, all checks first, that of Problem among them, and why that is not
// possible; empty when it is. While Backends say so none is made, and Health is Missing or Failing. It does what Trust
// does, too.
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
