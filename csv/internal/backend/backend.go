// SPDX-License-Identifier: Apache-2.0

// Package backend decides about the Deployments of a ClusterServiceVersion that the API server calls, for webhooks or
// APIs: their certificates, in which order one follows another, and what they need besides.
package backend

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Client is a place at which the API server calls a Service of the CSV's namespace, and the authorities that it trusts
// there.
type Client struct {
	Service string
	Bundle  []byte
	// Missing: the CSV describes it, and it does not exist. While the operator serves, a certificate follows another only
	// once all its clients exist: one that is being made may not know the next.
	Missing bool
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
	// Problem says what is in the way, such as an object that is another's; empty for none. Nothing is written then.
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

// Trust returns the bundle that a client of a Deployment shall have which has the given one now, nil where it has none. A
// bundle loses no authority that is still in use. Nil: a client that has none is not to be made yet.
func (p Plan) Trust(deployment string, have []byte) []byte { return nil }

// Ready reports whether a Deployment has a certificate.
func (p Plan) Ready(deployment string) bool { return p.backends[deployment].hash != "" }

// Hash returns the hash of the authority that signed the certificate of a Deployment, as the annotation olmcahash has it;
// empty while there is none.
func (p Plan) Hash(deployment string) string { return p.backends[deployment].hash }

// Mount puts the certificate of a Deployment into its spec: volumes, mounts, the hash of its authority, and a
// ServiceAccount. It does nothing for a Deployment that serves nothing.
func (p Plan) Mount(deployment string, spec *appsv1.DeploymentSpec) {}
