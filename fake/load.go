// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// Load puts whole objects into the cluster as they are, with status, UID and resourceVersion, as read from a real one;
// what is missing is assigned (UID, resourceVersion, creationTimestamp, generation where the kind has one, the type of
// a Secret). An object of the same kind, namespace and name is replaced. Nothing is validated or defaulted, and
// deletionTimestamps stay.
//
// The dump may be incomplete: kinds without a CRD are served from then on, an owner that was not loaded counts as
// existing, a missing Namespace is created, an object without the namespace that its kind needs goes to "default",
// Nodes keep the state their Ready condition shows, and Pods and Deployments that were failing go on failing until they
// are replaced.
func (c *Cluster) Load(objects ...olmcore.Object) error {
	for i, o := range objects {
		if store.IsNil(o) {
			return &olmcore.InputError{Field: fmt.Sprintf("objects[%d]", i), Problem: "is nil"}
		}
		gvk := olmcore.GVKOf(o)
		switch {
		case gvk.Kind == "" || gvk.Version == "":
			return &olmcore.InputError{Field: fmt.Sprintf("objects[%d].kind", i), Problem: "is empty, or apiVersion is"}
		case o.GetName() == "":
			return &olmcore.InputError{Field: fmt.Sprintf("objects[%d].metadata.name", i), Problem: "is empty"}
		}
		c.store.CountPast(o)
	}
	for stage := range 3 {
		for _, o := range objects {
			if loadStage(o) != stage {
				continue
			}
			if err := c.load(o); err != nil {
				return fmt.Errorf("%s: %w", olmcore.KeyOf(o), err)
			}
		}
	}
	return nil
}

// loadStage puts CRDs first, which say in which version their instances are stored, and Namespaces before what is in
// them.
func loadStage(o olmcore.Object) int {
	switch olmcore.GVKOf(o).GroupKind() {
	case store.CRDKind:
		return 0
	case store.NamespaceKind:
		return 1
	}
	return 2
}

func (c *Cluster) load(o olmcore.Object) error {
	c.store.Serve(olmcore.GVKOf(o), o.GetNamespace() != "")
	t, next, err := c.incoming(o)
	if err != nil {
		return err
	}
	switch {
	case !t.Kind.Namespaced:
		next.SetNamespace("")
	case next.GetNamespace() == "":
		next.SetNamespace(metav1.NamespaceDefault)
	}
	if next.GetUID() == "" {
		next.SetUID(c.store.NextUID())
	}
	if next.GetCreationTimestamp().Time.IsZero() {
		next.SetCreationTimestamp(olmcore.Timestamp(c.Now()))
	}
	if t.Kind.HasGeneration && next.GetGeneration() == 0 {
		next.SetGeneration(1)
	}
	if secret, is := next.(*corev1.Secret); is {
		setZero(&secret.Type, corev1.SecretTypeOpaque)
	}
	if err := c.loadNamespaceOf(t.Kind, next); err != nil {
		return err
	}
	current := t.Get(next.GetNamespace(), next.GetName())
	if current != nil && current.GetUID() != next.GetUID() {
		c.store.Commit(t, current, nil)
		current = nil
	}
	c.collector.Load(next)
	c.loadState(next)
	if next.GetResourceVersion() == "" {
		c.store.Commit(t, current, next)
	} else {
		c.store.Install(t, current, next)
	}
	return nil
}

func (c *Cluster) loadNamespaceOf(k *store.Kind, o olmcore.Object) error {
	if !k.Namespaced || c.store.Table(store.NamespaceKind).Get("", o.GetNamespace()) != nil {
		return nil
	}
	namespace := &corev1.Namespace{}
	namespace.Name = o.GetNamespace()
	return c.create(namespace)
}

// loadState derives what the simulation must know from what the object shows.
func (c *Cluster) loadState(o olmcore.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		c.nodes.Load(o)
	case *corev1.Pod:
		c.nodes.LoadPod(o)
	case *appsv1.Deployment:
		c.deployments.Load(o)
	}
}
