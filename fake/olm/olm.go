// SPDX-License-Identifier: Apache-2.0

// Package olm puts the controllers of package controllers into a fake cluster, and plays the gRPC clients of
// CatalogSources. It is also the shortest complete example of embedding the library. Package chaos lets such a world
// live through what goes wrong.
package olm

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// OLM is the controllers of one fake cluster. The zero value works:
// nothing is resolved then. It must not be copied after Controllers.
type OLM struct {
	// Options may be changed between rounds. Connection and Issuer are played here, unless they are set.
	controllers.Options
	// Disconnected: no catalog is dialed; what catalog asks for in this way stays unanswered.
	Disconnected bool

	set     *controllers.Set
	clients map[types.NamespacedName]*catalog.Connection
}

// Controllers returns the controllers for a fake.Driver, with an empty memory.
func (o *OLM) Controllers() []fake.Controller {
	if o.Connection == nil && !o.Disconnected {
		o.Connection = o.connection
	}
	if o.Issuer == nil {
		o.Issuer = fake.Issuer{}
	}
	o.clients = map[types.NamespacedName]*catalog.Connection{}
	o.set = controllers.New(&o.Options)
	all := make([]fake.Controller, len(o.set.Controllers))
	for i, c := range o.set.Controllers {
		all[i] = fake.Controller{Name: c.Name, Kind: c.Kinds[0].GroupKind(), Reconcile: c.Reconcile, Keys: func(r olmcore.Reader) []types.NamespacedName {
			keys, err := c.Keys(context.Background(), r)
			if err != nil {
				return nil // what cannot be listed is not reconciled in this round
			}
			return keys
		}}
	}
	return all
}

// Forget drops all memory, as a restart of the controllers does.
func (o *OLM) Forget() {
	o.set.Forget()
	clear(o.clients)
}

// CatalogsChanged makes every namespace resolve again when it is reconciled next.
func (o *OLM) CatalogsChanged() { o.set.CatalogsChanged() }

// connection plays the gRPC client: it is connected while a Pod that the Service
// selects is ready, and knows its state at once.
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
