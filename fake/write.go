// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/admission"
	"github.com/olmcore/olm/fake/internal/crds"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// create is the API server's POST.
func (c *Cluster) create(o olmcore.Object) error {
	t, next, err := c.received(o)
	if err != nil {
		return err
	}
	if version := next.GetResourceVersion(); version != "" && version != "0" { // 0 stands for no version
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
			Message: "resourceVersion should not be set on objects to be created"}}
	}
	if next.GetName() == "" && next.GetGenerateName() != "" {
		c.lastName++
		next.SetName(fmt.Sprintf("%s%05d", next.GetGenerateName(), c.lastName))
	}
	if t.Kind.HasStatus && t.Kind.GroupKind() != store.NodeKind {
		t.Kind.ClearStatus(next)
	}
	store.KeepServerMetadata(next, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: next.GetName(), Namespace: next.GetNamespace(), CreationTimestamp: olmcore.Timestamp(c.Now()),
	}})
	if t.Kind.HasGeneration {
		next.SetGeneration(1)
	}
	t.Kind.ApplyDefaults(next)
	w := admission.Write{Kind: t.Kind, Operation: admissionregistrationv1.Create, Next: next}
	if w.Next, err = c.webhooks.Mutate(w); err != nil {
		return err
	}
	if w.Next != next {
		next = w.Next
		t.Kind.ApplyDefaults(next)
	}
	if err := c.validate(t.Kind, next, nil); err != nil {
		return err
	}
	if err := c.admitNamespace(t.Kind, next); err != nil {
		return err
	}
	if err := c.webhooks.Validate(w); err != nil {
		return err
	}
	if t.Kind.Terminating {
		return apierrors.NewMethodNotSupported(t.Kind.GroupResource(), "create")
	}
	if t.Get(next.GetNamespace(), next.GetName()) != nil {
		return apierrors.NewAlreadyExists(t.Kind.GroupResource(), next.GetName())
	}
	if err := c.admitPod(next); err != nil {
		return err
	}
	next.SetUID(c.store.NextUID())
	c.assign(next)
	c.store.Commit(t, nil, next)
	return nil
}

// incoming finds the table of an object and copies the object into the form that is stored.
func (c *Cluster) incoming(o olmcore.Object) (*store.Table, olmcore.Object, error) {
	if store.IsNil(o) {
		return nil, nil, &olmcore.InputError{Field: "object", Problem: "is nil"}
	}
	t, err := c.store.Served(olmcore.GVKOf(o))
	if err != nil {
		return nil, nil, err
	}
	next, err := t.Kind.Canonical(o)
	return t, next, err
}

// received is incoming for what a person or a controller writes, in whatever version.
func (c *Cluster) received(o olmcore.Object) (*store.Table, olmcore.Object, error) {
	if store.IsNil(o) {
		return c.incoming(o)
	}
	if t, err := c.store.Served(olmcore.GVKOf(o)); err == nil && c.webhooks.Converts(t.Kind, olmcore.GVKOf(o).Version) {
		converted, err := c.webhooks.Convert(t.Kind, []olmcore.Object{o}, t.Kind.GVK.Version)
		if err != nil {
			return nil, nil, err
		}
		o = converted[0]
	}
	return c.incoming(o)
}

func (c *Cluster) admitNamespace(k *store.Kind, o olmcore.Object) error {
	if !k.Namespaced {
		return nil
	}
	name := o.GetNamespace()
	namespace := store.Get[*corev1.Namespace](c.store, store.NamespaceKind, "", name)
	if namespace == nil {
		if c.AutoCreateNamespaces {
			return c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return apierrors.NewNotFound(c.store.Table(store.NamespaceKind).Kind.GroupResource(), name)
	}
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	err := apierrors.NewForbidden(k.GroupResource(), o.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + name + " is being terminated", Field: "metadata.namespace",
	})
	return err
}

// replace stores next, which the cluster owns, as the new main part of current: everything but a status that is a
// subresource. Nothing happens when nothing changes.
func (c *Cluster) replace(t *store.Table, current, next olmcore.Object) error {
	t.Kind.Keep(next, current)
	w := admission.Write{Kind: t.Kind, Operation: admissionregistrationv1.Update, Old: current, Next: next}
	mutated, err := c.webhooks.Mutate(w)
	if err != nil {
		return err
	}
	if mutated != next {
		next = mutated
		t.Kind.Keep(next, current)
	}
	sameSpec := t.Kind.SameSpec(current, next)
	if !sameSpec {
		// What a writer left out and the defaults fill in again is no change.
		t.Kind.ApplyDefaults(next)
		sameSpec = t.Kind.SameSpec(current, next)
	}
	if err := c.validate(t.Kind, next, current); err != nil {
		return err
	}
	w.Next = next
	if err := c.webhooks.Validate(w); err != nil {
		return err
	}
	if sameSpec && store.SameMetadata(current, next) {
		return nil
	}
	if crd, ok := next.(*apiextensionsv1.CustomResourceDefinition); ok && !sameSpec {
		crds.StoreVersion(crd)
	}
	if !sameSpec && t.Kind.HasGeneration {
		next.SetGeneration(current.GetGeneration() + 1)
	}
	if store.Finished(t.Kind, next) {
		c.store.Commit(t, current, nil)
		return nil
	}
	c.store.Commit(t, current, next)
	return nil
}

// currentStatus is current for a write to the status: first of all the subresource must be there.
func (c *Cluster) currentStatus(target olmcore.Ref) (*store.Table, olmcore.Object, error) {
	if t, err := c.store.Served(target.GVK()); err == nil && !t.Kind.HasStatus {
		return nil, nil, apierrors.NewNotFound(t.Kind.GroupResource(), "")
	}
	return c.store.Changeable(target)
}

// writeStatus is replaceStatus for a write of a person or a controller.
func (c *Cluster) writeStatus(t *store.Table, current, from olmcore.Object) error {
	if c.webhooks.Any() {
		w := admission.Write{
			Kind:        t.Kind,
			Operation:   admissionregistrationv1.Update,
			Subresource: "status",
			Old:         current,
			Next:        t.Kind.WithStatus(current, from),
		}
		if err := c.webhooks.Admit(w); err != nil {
			return err
		}
	}
	c.store.ReplaceStatus(t, current, from)
	return nil
}

// update is PATCH with the difference of two versions of an object.
func (c *Cluster) update(a olmcore.Update) error {
	t, current, err := c.store.Changeable(a.Target)
	if err != nil {
		return err
	}
	if store.IsNil(a.Before) || store.IsNil(a.After) {
		return &olmcore.InputError{Field: "before and after", Problem: "must both be set"}
	}
	if t.Kind.SameVersion(current, a.Before, a.After) {
		next, err := t.Kind.Canonical(a.After)
		if err != nil {
			return err
		}
		return c.replace(t, current, next)
	}
	after, err := store.DeepCopy(a.After)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if b, ok := store.StatusValue(a.Before); ok {
		store.SetStatusValue(after, b)
	}
	a.After = after
	next, err := patched(t.Kind, a, current)
	if err != nil {
		return err
	}
	return c.replace(t, current, next)
}

func (c *Cluster) updateStatus(a olmcore.UpdateStatus) error {
	t, current, err := c.currentStatus(a.Target)
	if err != nil {
		return err
	}
	if store.IsNil(a.Before) || store.IsNil(a.After) {
		return &olmcore.InputError{Field: "before and after", Problem: "must both be set"}
	}
	if t.Kind.SameVersion(current, a.Before, a.After) {
		next := a.After
		if !t.Kind.IsTyped() {
			if next, err = t.Kind.Canonical(a.After); err != nil {
				return err
			}
		}
		return c.writeStatus(t, current, next)
	}
	after, err := store.DeepCopy(a.Before)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if s, ok := store.StatusValue(a.After); ok {
		store.SetStatusValue(after, s)
	}
	a.After = after
	next, err := patched(t.Kind, a, current)
	if err != nil {
		return err
	}
	return c.writeStatus(t, current, next)
}

// patched applies an action's merge patch to the stored object.
func patched(k *store.Kind, a olmcore.Action, current olmcore.Object) (olmcore.Object, error) {
	record, err := olmcore.RecordOf(a)
	if err != nil {
		return nil, err
	}
	applied, err := decode.Action(record, current)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	switch applied := applied.(type) {
	case olmcore.Update:
		return k.Canonical(applied.After)
	case olmcore.UpdateStatus:
		return k.Canonical(applied.After)
	default:
		return nil, &olmcore.InputError{Field: "action", Problem: "is no update"}
	}
}
