// SPDX-License-Identifier: Apache-2.0

// Package backend decides about the Deployments of a ClusterServiceVersion that the API server calls, for webhooks or
// APIs: their certificates, in which order one follows another, and what they need besides.
package backend

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Names returns the Deployments of a CSV that the API server calls, sorted: those that owned APIServices and webhook
// descriptions name and that its strategy has.
func Names(c *owned.CSV) []string {
	declared := owned.Deployments(c)
	var names []string
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		names = append(names, d.DeploymentName)
	}
	for i := range c.Spec.WebhookDefinitions {
		names = append(names, c.Spec.WebhookDefinitions[i].DeploymentName)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !declared.Has(name) })
}

// ServiceName is the name of the Service of a Deployment, from which the names of all other objects derive.
//
// Differs: OLM keeps the dots of a Deployment's name in the names of objects, which the API server refuses for Services.
func ServiceName(deployment string) string {
	return strings.ReplaceAll(deployment, ".", "-") + "-service"
}

// Client is a place at which the API server calls a Service of the CSV's namespace, and the authorities that it trusts
// there.
type Client struct {
	Service string
	Bundle  []byte
}

// Source is what is decided from.
type Source struct {
	CSV *owned.CSV
	// Account writes what is installed; nil: the controller.
	Account *corev1.ObjectReference
	Now     time.Time
	Objects *serving.Objects
	// Deployments are the live ones of the namespace.
	Deployments []*appsv1.Deployment
	// Clients are all that call the Services, of this CSV or of another version of its namespace.
	Clients []Client
	Issued  []certificate.Issued
}

// Plan is what is to be done about all of them.
type Plan struct {
	// Requests are for the certificates without which nothing can be installed.
	Requests []certificate.Request
	// Install writes what is missing or other than it should be, in order. Certificates follow each other over several
	// passes.
	Install []olmcore.Action
	// Settle writes what is wanted once the operator runs: what was only needed while a certificate followed another goes.
	Settle []olmcore.Action
	// Renew says why a certificate must be replaced, empty when none must.
	Renew string
	// RenewAt is when the next one has to be, zero when there is none.
	RenewAt time.Time
	// Problem names an object that is another's and in the way; empty for none.
	Problem string

	backends map[string]served // by Deployment
}

// served is what is known of one Deployment.
type served struct {
	trust, retired []byte
	hash           string
}

// Of decides about the Deployments of a CSV.
func Of(s Source) Plan { return Plan{} }

// Trust returns the bundle that a client of a Deployment shall have which has the given one now, nil where it has none;
// nil while there is no certificate. A bundle loses no authority that is still in use.
func (p Plan) Trust(deployment string, have []byte) []byte { return nil }

// Ready reports whether a Deployment has a certificate.
func (p Plan) Ready(deployment string) bool { return p.backends[deployment].hash != "" }

// Hash returns the hash of the authority that signed the certificate of a Deployment, as the annotation olmcahash has it;
// empty while there is none.
func (p Plan) Hash(deployment string) string { return p.backends[deployment].hash }

// Mount puts the certificate of a Deployment into its spec: volumes, mounts, the hash of its authority, and a
// ServiceAccount. It does nothing for a Deployment that serves nothing.
func (p Plan) Mount(deployment string, spec *appsv1.DeploymentSpec) {}
