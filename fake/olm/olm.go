// SPDX-License-Identifier: Apache-2.0

// Package olm runs the controllers of package controllers in a fake cluster, with simulated gRPC clients of
// CatalogSources. It is also the shortest complete example of embedding the library. Package chaos runs such a cluster
// through failures.
package olm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore/controller"
)

// OLM contains the controllers of one fake cluster. The zero value works, but resolves no Subscriptions. It must not be
// copied after Controllers.
type OLM struct {
	// Options may be changed between rounds. Connection and Issuer are simulated unless they are set.
	controllers.Options
	// Disconnected is true if no catalog is dialed.
	Disconnected bool

	set     *controllers.Set
	clients map[types.NamespacedName]*catalog.Connection
}

// Controllers returns the controllers for a fake.Driver, with an empty memory. Controllers of yours can be appended.
func (o *OLM) Controllers() []controller.Controller {
	if o.Connection == nil && !o.Disconnected {
		o.Connection = o.connection
	}
	if o.Issuer == nil {
		o.Issuer = Issuer{}
	}
	o.clients = map[types.NamespacedName]*catalog.Connection{}
	o.set = controllers.New(&o.Options)
	return o.set.Controllers
}

// Forget drops the memory of all controllers, as a restart does.
func (o *OLM) Forget() {
	o.set.Forget()
	clear(o.clients)
}

// CatalogsChanged makes the next reconcile of every namespace resolve it again.
func (o *OLM) CatalogsChanged() { o.set.CatalogsChanged() }

// connection returns the state of a simulated gRPC client. It is connected while a Pod that the Service selects is
// ready, and changes its state without delay.
func (o *OLM) connection(in catalog.Input, address string) *catalog.Connection {
	key := types.NamespacedName{Namespace: in.CatalogSource.Namespace, Name: in.CatalogSource.Name}
	if address == "" {
		delete(o.clients, key)
		return nil
	}
	next := catalog.Connection{Address: address, State: "CONNECTING", LastTransition: in.Now}
	if c := o.clients[key]; c != nil && c.Address == address {
		next = *c
	}
	state := "TRANSIENT_FAILURE"
	for _, pod := range in.Pods.Items {
		if pod.Labels["olm.catalogSource"] == key.Name && isReady(pod) {
			state = "READY"
		}
	}
	if next.State != state {
		next.State, next.LastTransition = state, in.Now
		if state == "READY" {
			next.LastConnect = in.Now
		}
	}
	o.clients[key] = &next
	return &next
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
