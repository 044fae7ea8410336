// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"reflect"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/subscription"
)

// The requests, as they are printed: what an embedder would have to do.
type (
	connectRequest struct {
		Connect string `json:"connect"` // host:port
	}
	dropRequest struct {
		Disconnect bool `json:"disconnect"`
	}
	resolveRequest struct {
		Resolve struct {
			Reason        string   `json:"reason"`
			Subscriptions []string `json:"subscriptions"`
		} `json:"resolve"`
	}
	issueRequest struct {
		Issue struct {
			Deployment string   `json:"deployment"`
			Hosts      []string `json:"hosts"`
		} `json:"issue"`
	}
	judgeRequest struct {
		Judge struct {
			CustomResourceDefinition string   `json:"customResourceDefinition"`
			Versions                 []string `json:"versions"`
		} `json:"judge"`
	}
	listRequest struct {
		List struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		} `json:"list"`
	}
)

// asked files a request under the objects that it is for.
func (r *runner) asked(controller string, key types.NamespacedName, request any) {
	switch request := request.(type) {
	case catalog.ConnectionRequest:
		found := r.result(v1alpha1.CatalogSourceKind, key)
		if request.Verb == catalog.ConnectionConnect {
			found.asks(connectRequest{Connect: request.Address})
		} else {
			found.asks(dropRequest{Disconnect: true})
		}
	case *subscription.ResolveRequest:
		if len(r.catalogs.Content) > 0 {
			return // it is answered
		}
		var wish resolveRequest
		wish.Resolve.Reason = request.Reason
		for _, s := range request.Subscriptions {
			wish.Resolve.Subscriptions = append(wish.Resolve.Subscriptions, s.Name)
		}
		for _, s := range request.Subscriptions {
			found := r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: key.Namespace, Name: s.Name})
			found.asks(wish)
		}
	case serving.Request:
		var wish issueRequest
		wish.Issue.Deployment, wish.Issue.Hosts = request.Deployment, request.Hosts
		found := r.result(kindOf[controller], key)
		found.asks(wish)
		r.issued = true
	case installplan.SchemaChange:
		var wish judgeRequest
		wish.Judge.CustomResourceDefinition, wish.Judge.Versions = request.Before.Name, request.Versions
		found := r.result(kindOf[controller], key)
		found.asks(wish)
	case schema.GroupVersionKind:
		var wish listRequest
		wish.List.APIVersion, wish.List.Kind = request.ToAPIVersionAndKind()
		found := r.result(kindOf[controller], key)
		found.asks(wish)
	}
}

// asks adds a request that was not made yet.
func (r *Result) asks(wish any) {
	if !slices.ContainsFunc(r.Requests, func(made any) bool { return reflect.DeepEqual(made, wish) }) {
		r.Requests = append(r.Requests, wish)
	}
}
