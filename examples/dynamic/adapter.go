// SPDX-License-Identifier: Apache-2.0

// Package olmdynamic runs the library with client-go's dynamic client: no scheme,
// no generated clients, no cache. Reads come from the API server, writes are what a
// Record says.
package olmdynamic

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/olmcore/olm/olmcore"
)

// Cluster is an olmcore.Reader and an olmcore.Executor over an API server.
type Cluster struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
	// Config is what the clients of ServiceAccounts are made from; nil refuses
	// actions that are to run as one.
	Config *rest.Config
}

// New connects to an API server.
func New(config *rest.Config) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Client: client, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d)), Config: config}, nil
}

// Get implements olmcore.Reader.
func (c *Cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	client, err := c.resource(c.Client, gvk, namespace)
	if err != nil {
		return nil, err
	}
	u, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return typed(u)
}

// List implements olmcore.Reader.
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	var options metav1.ListOptions
	if selector != nil {
		if _, some := selector.Requirements(); !some {
			return nil, nil // on the wire it would look like one that takes everything
		}
		options.LabelSelector = selector.String()
	}
	client, err := c.resource(c.Client, gvk, namespace)
	if err != nil {
		return nil, err
	}
	list, err := client.List(ctx, options)
	if err != nil {
		return nil, err
	}
	objects := make([]olmcore.Object, len(list.Items))
	for i := range list.Items {
		if objects[i], err = typed(&list.Items[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(objects, func(a, b olmcore.Object) int { return olmcore.KeyOf(a).Compare(olmcore.KeyOf(b)) })
	return objects, nil
}

// typed turns a map into the API type where the library has one.
func typed(u *unstructured.Unstructured) (olmcore.Object, error) {
	o := olmcore.NewObject(u.GroupVersionKind())
	if _, untyped := o.(*unstructured.Unstructured); untyped {
		return u, nil
	}
	return o, olmcore.FromMap(u.Object, o)
}

// Do implements olmcore.Executor.
func (c *Cluster) Do(ctx context.Context, a olmcore.Action) error {
	r, err := olmcore.RecordOf(a)
	if err != nil {
		return err
	}
	return c.Run(ctx, r)
}

// Run runs a Record, be it of this process or read from a file.
func (c *Cluster) Run(ctx context.Context, r olmcore.Record) error {
	as, err := c.as(r)
	if err != nil {
		return err
	}
	client, err := c.resource(as, r.Target.GVK(), r.Target.Namespace)
	if err != nil {
		return err
	}
	switch r.Verb {
	case olmcore.VerbCreate:
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(r.Object); err != nil {
			return err
		}
		_, err = client.Create(ctx, u, metav1.CreateOptions{})
	case olmcore.VerbUpdate, olmcore.VerbUpdateStatus:
		var patch []byte
		if patch, err = r.ConditionalPatch(); err != nil {
			return err
		}
		var subresources []string
		if r.Verb == olmcore.VerbUpdateStatus {
			subresources = []string{"status"}
		}
		_, err = client.Patch(ctx, r.Target.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	case olmcore.VerbDelete:
		err = client.Delete(ctx, r.Target.Name, *r.DeleteOptions)
	default:
		err = fmt.Errorf("unknown verb %q", r.Verb)
	}
	return err
}

// as returns the client of a Record's ServiceAccount.
func (c *Cluster) as(r olmcore.Record) (dynamic.Interface, error) {
	if r.As == nil {
		return c.Client, nil
	}
	user := strings.Join([]string{"system:serviceaccount", r.As.Namespace, r.As.Name}, ":")
	if c.Config == nil {
		return nil, fmt.Errorf("cannot act as %s", user)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = user
	return dynamic.NewForConfig(config)
}

func (c *Cluster) resource(client dynamic.Interface, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource), nil
	}
	return client.Resource(mapping.Resource).Namespace(namespace), nil
}
