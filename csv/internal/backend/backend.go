// SPDX-License-Identifier: Apache-2.0

// Package backend manages the Deployments of a ClusterServiceVersion that the API server calls for webhooks or APIs. It
// creates their Services and permissions, requests their certificates, and rotates them.
package backend

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Client is a place where the API server calls a Service of the CSV's namespace, with the authorities that it trusts
// there.
type Client struct {
	Service string
	Bundle  []byte
	// Missing is true if the CSV describes the client and it does not exist. While the operator serves, a certificate
	// is rotated only if all clients exist. A client that is being created may not trust the next certificate.
	Missing bool
}

// Source contains the data for Of.
type Source struct {
	CSV *owned.CSV
	// Account is the ServiceAccount that objects are installed with. Nil means the controller.
	Account *corev1.ObjectReference
	Now     time.Time
	Objects *serving.Objects
	// Deployments contains the live Deployments of the namespace.
	Deployments []*appsv1.Deployment
	// Neighbours contains other CSVs of the namespace. Their objects are not taken over, unless the CSV is in
	// Relatives: the CSVs that it replaces or that replace it.
	Neighbours []*owned.CSV
	Relatives  sets.Set[*owned.CSV]
	// Clients contains all clients of the Services, of this CSV and of other versions of its namespace.
	Clients []Client
	Issued  []certificate.Issued
	// Memory is Plan.Memory of an earlier call. Optional.
	Memory *certificate.Memory
}

// Plan contains the requests and writes for all Deployments of a CSV that the API server calls.
type Plan struct {
	// Requests contains the certificates that must be issued before anything can be installed.
	Requests []certificate.Request
	// Install contains the writes of missing or differing objects, in order. A certificate rotation takes several
	// calls.
	Install []olmcore.Action
	// Settle contains the writes to make once the operator runs. They remove what was needed only during a certificate
	// rotation.
	Settle []olmcore.Action
	// Renew is the reason why a certificate must be replaced, or empty if none must.
	Renew string
	// RenewAt is the time at which the next certificate must be replaced, or zero if there is none.
	RenewAt time.Time
	// Wait is the shortest time until a certificate that waits for the caches of API servers may be used. It is 0 if
	// none waits.
	Wait time.Duration
	// Memory contains the cached results of this call for the next call.
	Memory *certificate.Memory
	// Problem is the reason why nothing may be written, such as an object of another owner. It is empty if there is
	// none.
	Problem string

	backends map[string]*rotation // by Deployment
}

// Of returns the requests and writes for the Deployments of a CSV that the API server calls.
//
// The Secret of a Deployment is the only record of the progress of a rotation. Every write of it requires the
// resourceVersion that was read. A rotation has these steps:
//
//  1. The issued certificate is stored in the Secret beside the current one, as the next certificate.
//  2. All clients are updated to trust the next certificate too (Trust).
//  3. After TrustGrace, the next certificate becomes the current one. The authority of the old one is kept as a previous
//     authority. Pods may mount the files at any time, so they serve with either certificate from now on.
//  4. The Deployment is rolled out with the hash of the new authority (Mount).
//  5. Once all Pods are of that rollout, the previous authorities retire (Settle), and clients drop them.
//
// A client loses an authority only if the Secret, as read, lists it as retired. An authority stays retired, because
// Pods do not mount older files again. So a caller with a stale Secret removes nothing that another caller added. A CSV
// creates new clients only after it owns the Secret. From then on no other version rotates the certificate.
//
// One case cannot be excluded, because no write spans two objects. A user may delete a client that is created again
// from a Secret that was read before the rotation. Such a client does not trust the next certificate until the
// following call.
func Of(s Source) (p Plan) {
	names := Names(s.CSV)
	s.Memory = s.Memory.Next()
	p.Memory = s.Memory
	p.backends = make(map[string]*rotation, len(names))
	services := map[string]string{}
	var secrets, objects, settle []olmcore.Action
	for _, name := range names {
		r := s.rotationOf(name)
		p.backends[name] = r
		if other, taken := services[ServiceName(name)]; taken {
			p.Problem = cmp.Or(p.Problem, fmt.Sprintf("deployments %s and %s have the same service %s", other, name, ServiceName(name)))
		}
		services[ServiceName(name)] = name
		p.Renew = cmp.Or(p.Renew, r.renew())
		if at := r.health.RenewAt; !at.IsZero() && (p.RenewAt.IsZero() || at.Before(p.RenewAt)) {
			p.RenewAt = at
		}
		if wait := r.waits(); wait > 0 && (p.Wait == 0 || wait < p.Wait) {
			p.Wait = wait
		}
		if request, needed := r.request(); needed && !r.isIssued {
			p.Requests = append(p.Requests, request)
		}
		around := s.objectsOf(name)
		p.Problem = cmp.Or(p.Problem, r.obstacle(), around.problem)
		objects = append(objects, around.actions...)
		if a := r.install(); a != nil {
			secrets = append(secrets, a)
		} else if a := r.settle(); a != nil {
			settle = append(settle, a)
		}
	}
	if p.Problem != "" {
		p.Requests = nil
		return p
	}
	p.Install, p.Settle = secrets, settle
	if len(p.Requests) == 0 { // never a part of an installation
		p.Install = append(p.Install, objects...)
	}
	return p
}

// Trust returns the caBundle that a client of a Deployment should have. have is its present caBundle, nil if it has
// none. An authority that is still in use is never removed. If the result is nil, a client without a caBundle must not
// be created yet.
func (p Plan) Trust(deployment string, have []byte) []byte {
	r := p.backends[deployment]
	switch {
	case r == nil || r.secret == nil || !isClaimable(r.secret):
		return have
	case len(have) == 0 && !r.mayMakeClients():
		return nil
	}
	if want, known := r.wanted[string(have)]; known {
		return want
	}
	return r.bundle(have, r.Now)
}

// Ready reports whether a Deployment has a certificate.
func (p Plan) Ready(deployment string) bool { return p.Hash(deployment) != "" }

// Hash returns the hash of the authority that signed the certificate of a Deployment, for the annotation olmcahash. It
// is empty if there is no certificate.
func (p Plan) Hash(deployment string) string {
	if r := p.backends[deployment]; r != nil {
		return certificate.Hash(r.current.CAPEM)
	}
	return ""
}
