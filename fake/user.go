// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Create creates objects as a person with kubectl would; it stops at the first error. A status is dropped where it is a
// subresource: use Load, or UpdateStatus, to set one. The objects are copied.
func (c *Cluster) Create(objects ...olmcore.Object) error {
	for _, o := range objects {
		if err := c.create(o); err != nil {
			return err
		}
	}
	return nil
}

// Update replaces an object but for its status. A UID or resourceVersion in it is a precondition.
func (c *Cluster) Update(o olmcore.Object) error {
	t, next, err := c.received(o)
	if err != nil {
		return err
	}
	_, current, err := c.store.Current(olmcore.RefOf(next))
	if err != nil {
		return err
	}
	return c.replace(t, current, next)
}

// UpdateStatus replaces an object's status. A UID or resourceVersion in it is a precondition.
func (c *Cluster) UpdateStatus(o olmcore.Object) error {
	t, next, err := c.received(o)
	if err != nil {
		return err
	}
	_, current, err := c.currentStatus(olmcore.RefOf(next))
	if err != nil {
		return err
	}
	return c.writeStatus(t, current, next)
}

// Delete deletes an object. UID and resourceVersion of the reference are
// preconditions, as are those in options, of which at most one may be given.
func (c *Cluster) Delete(target olmcore.Ref, options ...metav1.DeleteOptions) error {
	var grace *int64
	var policy metav1.DeletionPropagation
	for _, o := range options {
		grace = o.GracePeriodSeconds
		if o.PropagationPolicy != nil {
			policy = *o.PropagationPolicy
		}
		if p := o.Preconditions; p != nil {
			if p.UID != nil {
				target.UID = *p.UID
			}
			if p.ResourceVersion != nil {
				target.ResourceVersion = *p.ResourceVersion
			}
		}
	}
	return c.delete(target, grace, policy)
}

// Edit changes one object: change gets a copy, and what it did to spec, metadata and status is stored, in up to two
// writes.
func (c *Cluster) Edit(key olmcore.Key, change func(olmcore.Object)) error {
	t := c.store.Table(store.GroupKindOf(key))
	current := c.store.Find(key)
	if current == nil {
		return c.notFound(key)
	}
	next := current.DeepCopyObject().(olmcore.Object)
	change(next)
	next, err := t.Kind.Canonical(next)
	if err != nil {
		return err
	}
	status := next.DeepCopyObject().(olmcore.Object)
	changed := t.Kind.HasStatus && !t.Kind.SameStatus(current, next)
	if err := c.replace(t, current, next); err != nil {
		return err
	}
	if current = c.store.Find(key); current != nil && changed {
		return c.writeStatus(t, current, status)
	}
	return nil
}

// Patch applies a JSON merge patch to one object: what it says of the status to
// the status, the rest to the rest, in up to two writes.
func (c *Cluster) Patch(key olmcore.Key, patch []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(patch, &fields); err != nil {
		return apierrors.NewBadRequest("the patch is not a JSON object: " + err.Error())
	}
	status, hasStatus := fields["status"]
	t := c.store.Table(store.GroupKindOf(key))
	if hasStatus && t != nil && t.Kind.HasStatus {
		delete(fields, "status")
	}
	if err := c.patch(key, olmcore.VerbUpdate, fields); err != nil || !hasStatus || !t.Kind.HasStatus {
		return err
	}
	return c.patch(key, olmcore.VerbUpdateStatus, map[string]json.RawMessage{"status": status})
}

func (c *Cluster) patch(key olmcore.Key, verb olmcore.Verb, fields map[string]json.RawMessage) error {
	current := c.store.Find(key)
	if current == nil {
		return c.notFound(key)
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	a, err := decode.Action(olmcore.Record{Verb: verb, Target: olmcore.RefOf(current), Patch: data}, current)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return c.perform(a)
}

func (c *Cluster) notFound(key olmcore.Key) error {
	return apierrors.NewNotFound(
		c.store.Resource(olmcore.Ref{APIVersion: store.GroupKindOf(key).WithVersion("v1").GroupVersion().String(), Kind: key.Kind}),
		key.Name,
	)
}

// Edit changes one object of a Go type that the library knows: change gets a
// copy, and what it did to spec, metadata and status is stored.
//
//	err := fake.Edit(c, "ns", "plan", func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
func Edit[T olmcore.Object](c *Cluster, namespace, name string, change func(T)) error {
	var zero T
	gvk := olmcore.GVKOf(zero)
	var mismatch error
	err := c.Edit(olmcore.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}, func(o olmcore.Object) {
		if typed, ok := o.(T); ok {
			change(typed)
		} else {
			mismatch = fmt.Errorf("%s is a %T, not a %T", olmcore.KeyOf(o), o, zero)
		}
	})
	if mismatch != nil {
		return mismatch
	}
	return err
}

// Find returns the stored object of type T, shared and not to be changed; the zero T, nil, when there is none.
func Find[T olmcore.Object](c *Cluster, namespace, name string) T {
	var zero T
	return store.Get[T](c.store, olmcore.GVKOf(zero).GroupKind(), namespace, name)
}
