// SPDX-License-Identifier: Apache-2.0

// Package olmdynamic runs the library with client-go's dynamic client: no scheme, no generated clients, no cache. Reads
// come from the API server, writes are what a Record says.
package olmdynamic

import (
	"context"
	"fmt"
	"strconv"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Cluster is an olmcore.Reader and an olmcore.Executor over an API server.
type Cluster struct {
	// Version is the API server's gitVersion, as it was when connected.
	Version string
	// Mapper knows the resources of kinds; one that can be reset is, when a kind is not known.
	Mapper meta.RESTMapper
	// FieldManager and FieldValidation (Ignore, Warn or Strict) go with each write;
	// empty: the API server's defaults.
	FieldManager, FieldValidation string

	config *rest.Config
	client dynamic.Interface
	// texts asks for what is not decoded.
	texts    rest.Interface
	unserved unserved
}

// New connects to an API server. All clients share the rate limit of config. The error says what to do about a
// certificate that ended or that is not trusted, and about credentials that the server does not know.
func New(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(config.Burst, 1))
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	texts, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := d.ServerVersion()
	if err != nil {
		return nil, unreachable(config, err, time.Now())
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return &Cluster{Version: version.GitVersion, Mapper: mapper, config: config, client: client, texts: texts}, nil
}

// Get implements olmcore.Reader.
func (c *Cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	u, err := asked(c, gvk, func(mapping *meta.RESTMapping) (*unstructured.Unstructured, error) {
		u, err := resourceOf(c.client, mapping, namespace).Get(ctx, name, metav1.GetOptions{})
		isNowhere := namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if isNowhere && olmcore.Classify(err) == olmcore.NoMatch {
			// The API server has no path to such an object, and answers as if it did not serve the kind.
			err = apierrors.NewNotFound(mapping.Resource.GroupResource(), name)
		}
		return u, err
	})
	if err != nil {
		return nil, err
	}
	return decode.Typed(u)
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
	list, err := asked(c, gvk, func(mapping *meta.RESTMapping) (*unstructured.UnstructuredList, error) {
		return resourceOf(c.client, mapping, namespace).List(ctx, options)
	})
	if err != nil {
		return nil, err
	}
	return decode.Items(list)
}

// ListPage returns a list of objects of a kind, of all namespaces, as the text that the API server answers with: at
// most limit of them, from where the page before said, "" for the first. crvalidation.Live reads custom resources so.
func (c *Cluster) ListPage(ctx context.Context, gvk schema.GroupVersionKind, limit int, from string) ([]byte, error) {
	return asked(c, gvk, func(mapping *meta.RESTMapping) ([]byte, error) {
		path := []string{"apis", gvk.Group, gvk.Version, mapping.Resource.Resource}
		if gvk.Group == "" {
			path = []string{"api", gvk.Version, mapping.Resource.Resource}
		}
		answer := c.texts.Get().AbsPath(path...).Param("limit", strconv.Itoa(limit)).Param("continue", from).Do(ctx)
		if err := answer.Error(); err != nil {
			return nil, err
		}
		return answer.Raw()
	})
}

// Allowed asks whether this process may do something: a value for controllers.Preflight.
func (c *Cluster) Allowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	u := &unstructured.Unstructured{}
	var err error
	if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(review); err != nil {
		return false, err
	}
	u.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	u, err = c.client.Resource(authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(u.Object, "status", "allowed")
	return allowed, err
}

// Do implements olmcore.Executor.
func (c *Cluster) Do(ctx context.Context, a olmcore.Action) error {
	r, err := olmcore.RecordOf(a)
	if err != nil {
		return err
	}
	return c.Run(ctx, r)
}

// Run runs a Record of this process, or one that was read from a file. It sends updates as merge patches, with UID and
// resourceVersion as preconditions.
func (c *Cluster) Run(ctx context.Context, r olmcore.Record) error {
	gvk := r.Target.GVK()
	client, err := c.as(r.As)
	if err != nil {
		return err
	}
	mapping, err := c.mapping(gvk) // a kind that was not served when it was read is looked up again for a write
	if err != nil {
		return err
	}
	defer c.changed(gvk.GroupKind(), r.Target.Name)
	if err := write(ctx, resourceOf(client, mapping, r.Target.Namespace), r, c.FieldManager, c.FieldValidation); err != nil {
		return err
	}
	c.unserved.learn(gvk, nil, 0) // an accepted write shows that the kind is served
	return nil
}

// write sends the request of a Record.
func write(ctx context.Context, resource dynamic.ResourceInterface, r olmcore.Record, fieldManager, fieldValidation string) error {
	switch r.Verb {
	case olmcore.VerbCreate:
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(r.Object); err != nil {
			return err
		}
		_, err := resource.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: fieldValidation})
		return err
	case olmcore.VerbUpdate, olmcore.VerbUpdateStatus:
		patch, err := r.ConditionalPatch()
		if err != nil {
			return err
		}
		var subresources []string
		if r.Verb == olmcore.VerbUpdateStatus {
			subresources = []string{"status"}
		}
		options := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: fieldValidation}
		_, err = resource.Patch(ctx, r.Target.Name, types.MergePatchType, patch, options, subresources...)
		return err
	case olmcore.VerbDelete:
		return resource.Delete(ctx, r.Target.Name, *r.DeleteOptions)
	default:
		return fmt.Errorf("unknown verb %q", r.Verb)
	}
}

// as returns the client that writes as a ServiceAccount, by impersonation. Clients
// are cheap: those of one config share their connections.
func (c *Cluster) as(account *corev1.ObjectReference) (dynamic.Interface, error) {
	if account == nil {
		return c.client, nil
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = "system:serviceaccount:" + account.Namespace + ":" + account.Name
	return dynamic.NewForConfig(config)
}

func resourceOf(client dynamic.Interface, mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource)
	}
	return client.Resource(mapping.Resource).Namespace(namespace)
}

// mapping says what a kind is called in paths.
func (c *Cluster) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		meta.MaybeResetRESTMapper(c.Mapper) // it may be new
		mapping, err = c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	return mapping, err
}
