// SPDX-License-Identifier: Apache-2.0

package packageserver

import (
	"context"
	"errors"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore/decode"
)

// Follow keeps the content's CatalogSources those of a cluster until ctx is done, and returns once it knows them all,
// or with the error of ctx. The client needs list and watch of catalogsources in all namespaces.
func (c *Content) Follow(ctx context.Context, client dynamic.Interface) error {
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := informers.ForResource(v1alpha1.SchemeGroupVersion.WithResource("catalogsources")).Informer()
	if err := informer.SetTransform(controllers.Transform); err != nil {
		return err
	}
	known, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.changed,
		UpdateFunc: func(_, o any) { c.changed(o) },
		DeleteFunc: func(o any) {
			name, err := cache.DeletionHandlingObjectToName(o)
			if err != nil {
				return
			}
			c.Forget(types.NamespacedName(name))
			if c.Changed != nil {
				c.Changed(&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
			}
		},
	})
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), known.HasSynced) {
		return errors.Join(ctx.Err(), errors.New("the CatalogSources were not listed"))
	}
	return nil
}

// changed takes a CatalogSource as a map: the decoder of its Go type panics on some that an API server stores.
func (c *Content) changed(o any) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	typed, err := decode.Typed(u)
	source, ok := typed.(*v1alpha1.CatalogSource)
	if err != nil || !ok { // its name is enough to show its packages
		source = &v1alpha1.CatalogSource{}
		source.Namespace, source.Name, source.CreationTimestamp = u.GetNamespace(), u.GetName(), u.GetCreationTimestamp()
	}
	c.Know(source)
	if c.Changed != nil {
		c.Changed(source)
	}
}
