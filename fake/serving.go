// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"github.com/olmcore/olm/fake/internal/admission"
	"github.com/olmcore/olm/fake/internal/workloads"
)

// WebhookCall is a call of the API server to a webhook: whether a write is allowed, or how objects look in another
// version. The objects are copies.
type WebhookCall = admission.Call

// WebhookAnswer is the answer of a webhook. The zero value allows a write without a change.
type WebhookAnswer = admission.Answer

// Serving simulates the servers of the cluster's webhooks and APIServices: the workloads behind their Services.
type Serving struct{ cluster *Cluster }

// Serving returns the servers of webhooks and APIServices.
func (c *Cluster) Serving() Serving { return Serving{c} }

// Webhooks returns a function for Cluster.Webhooks that makes the workloads of the cluster answer. A call reaches its
// webhook if the Service exists, has the port and selects running Pods, and if the caBundle verifies the certificate of
// these Pods for the name <service>.<namespace>.svc at the current time. Otherwise it fails as on a real cluster.
// A call that reaches its webhook gets the result of answer. If answer is nil, every write is allowed, and converted
// objects only get the requested version.
//
// Pods serve with the Secret with tls.crt and tls.key that their template mounts. Of several Secrets, the one whose
// name ends in -service-cert is used. A program may read the files once or whenever they change, so both the content
// at the time when the Pods of this template started and the present content must verify. Webhooks with a URL are
// always reached.
func (s Serving) Webhooks(answer func(WebhookCall) WebhookAnswer) func(WebhookCall) (WebhookAnswer, error) {
	if answer == nil {
		answer = func(call WebhookCall) WebhookAnswer { return WebhookAnswer{Objects: call.Relabelled()} }
	}
	return func(call WebhookCall) (WebhookAnswer, error) {
		if err := s.cluster.servers.Reach(workloads.AddressOf(call.Client)); err != nil {
			return WebhookAnswer{}, err
		}
		return answer(call), nil
	}
}

// Check calls every Service that the webhook configurations, CRDs and APIServices of the cluster reference, as Webhooks
// does, and joins the errors. It returns nil if all of them would answer now.
func (s Serving) Check() error { return s.cluster.servers.Check() }
