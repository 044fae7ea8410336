// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// watched reads from watches, and from the API server what is not watched.
type watched struct {
	cache  cache.Cache
	scheme *runtime.Scheme
	kinds  controllers.Watched
	live   olmcore.Reader
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, decode.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// Get implements olmcore.Reader.
func (w *watched) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if !w.kinds.Holds(gvk, namespace) {
		return w.live.Get(ctx, gvk, namespace, name)
	}
	o := decode.Blank(gvk)
	if err := w.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		return nil, err
	}
	return decode.Typed(o)
}

// List implements olmcore.Reader.
func (w *watched) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if !w.kinds.Holds(gvk, namespace) {
		return w.live.List(ctx, gvk, namespace, selector)
	}
	options := []client.ListOption{client.InNamespace(namespace)}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	list := decode.BlankList(w.scheme, gvk)
	if err := w.cache.List(ctx, list, options...); err != nil {
		return nil, err
	}
	return decode.Items(list)
}
