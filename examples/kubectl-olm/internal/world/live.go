// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Cluster is what is read from an API server.
type Cluster struct {
	Config *rest.Config
	// Namespace is the one that is asked about, empty for all.
	Namespace string
	// Kinds are those that the command looks at, in the order in which they are read: an object before those that it
	// refers to, so that these are not older.
	Kinds []schema.GroupVersionKind
	// Progress hears what is being read.
	Progress func(what string)
	Clock    func() time.Time
}

// PageSize is how many objects are asked for at a time.
const PageSize = 500

// Connect connects to an API server at the pace of kubectl.
func Connect(config *rest.Config) (*olmdynamic.Cluster, error) {
	return olmdynamic.New(paced(config))
}

func paced(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 300
	return config
}

// Load reads the cluster page by page. A kind that may not be read, or that is not served, is one of World.Unread. Any
// other read that fails is the error.
func (c Cluster) Load(ctx context.Context) (*World, error) {
	connected, err := Connect(c.Config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(paced(c.Config))
	if err != nil {
		return nil, err
	}
	r := reader{Cluster: c, client: client, mapper: connected.Mapper, unread: map[schema.GroupKind]string{}}
	for _, gvk := range c.Kinds {
		if err := r.kind(ctx, gvk); err != nil {
			return nil, err
		}
	}
	w, err := New(r.read, r.scopes, c.Clock())
	if err != nil {
		return nil, err
	}
	w.Live, w.Namespace, w.Unread, w.Problems = true, c.Namespace, r.unread, r.problems
	return w, nil
}

// reader is a Cluster that is being read.
type reader struct {
	Cluster
	client dynamic.Interface
	mapper meta.RESTMapper

	read   []decode.Object
	scopes []olmcore.Scope
	unread map[schema.GroupKind]string
	// problems name the objects that do not fit their kind.
	problems []string
}

// kind reads all objects of a kind that the namespace is concerned with.
func (r *reader) kind(ctx context.Context, gvk schema.GroupVersionKind) error {
	namespaces := []string{r.Namespace}
	if gvk.Kind == v1alpha1.CatalogSourceKind {
		namespaces = []string{""}
	}
	err := r.list(ctx, gvk, namespaces[0])
	if gvk.Kind == v1alpha1.CatalogSourceKind && r.Namespace != "" && apierrors.IsForbidden(err) {
		for _, namespace := range r.catalogNamespaces() {
			if err = r.list(ctx, gvk, namespace); err != nil {
				break
			}
		}
	}
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		r.unread[gvk.GroupKind()] = "the API server says " + err.Error()
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		r.unread[gvk.GroupKind()] = "the API server does not serve them"
	default:
		return fmt.Errorf("list %s: %w", Resource(gvk.GroupKind()), err)
	}
	return nil
}

// catalogNamespaces are the namespaces of the catalogs that the Subscriptions name, beside their own.
func (r *reader) catalogNamespaces() []string {
	all := []string{r.Namespace}
	for _, o := range r.read {
		if s, is := o.Object.(*v1alpha1.Subscription); is && s.Spec != nil && s.Spec.CatalogSourceNamespace != "" {
			all = append(all, s.Spec.CatalogSourceNamespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// list reads the objects of a kind in a namespace, "" for all. Those of an error do not count.
func (r *reader) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string) error {
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = r.client.Resource(mapping.Resource)
	if namespace != "" && mapping.Scope.Name() != meta.RESTScopeNameRoot {
		resource = r.client.Resource(mapping.Resource).Namespace(namespace)
	} else {
		namespace = ""
	}
	var found []decode.Object
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.List(ctx, options)
	})
	pages.PageSize = PageSize
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if len(found)%PageSize == 0 {
			r.Progress(fmt.Sprintf("%s (%d)", Resource(gvk.GroupKind()), len(found)))
		}
		u, is := o.(*unstructured.Unstructured)
		if !is {
			return errors.New("the answer has an object of no kind")
		}
		u.SetManagedFields(nil) // nothing looks at them, and they are large
		typed, err := decode.Typed(u)
		if err != nil { // one object that a tenant wrote must not hide the others
			r.problems = append(r.problems, fmt.Sprintf("%s is left out: %v", olmcore.KeyOf(u), err))
			return nil
		}
		found = append(found, decode.Object{Object: typed, File: "cluster", Document: len(r.read) + len(found) + 1})
		return nil
	})
	if err != nil {
		return err
	}
	r.read = append(r.read, found...)
	r.scopes = append(r.scopes, olmcore.Scope{Kind: gvk.GroupKind(), Namespace: namespace})
	return nil
}
