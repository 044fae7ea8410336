// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	if t.kind.status && t.kind.role != roleNode {
		t.kind.clearStatus(next)
	}
	keepServerMetadata(next, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: next.GetName(), Namespace: next.GetNamespace(), CreationTimestamp: olmcore.Timestamp(c.now),
	}})
	if t.kind.generation {
		next.SetGeneration(1)
	}
	t.kind.applyDefaults(next)
	w := write{kind: t.kind, operation: admissionregistrationv1.Create, next: next}
	if w.next, err = c.mutate(w); err != nil {
		return err
	}
	if w.next != next {
		next = w.next
		t.kind.applyDefaults(next)
	}
	if err := c.validate(t.kind, next, nil); err != nil {
		return err
	}
	if err := c.admitNamespace(t.kind, next); err != nil {
		return err
	}
	if err := c.validated(w); err != nil {
		return err
	}
	if t.kind.terminating {
		return apierrors.NewMethodNotSupported(t.kind.groupResource(), "create")
	}
	if t.get(next.GetNamespace(), next.GetName()) != nil {
		return apierrors.NewAlreadyExists(t.kind.groupResource(), next.GetName())
	}
	if err := c.admitPod(next); err != nil {
		return err
	}
	next.SetUID(c.nextUID())
	c.assign(next)
	c.commit(t, nil, next)
	return nil
}

// incoming finds the table of an object and copies the object into the form that is stored.
func (c *Cluster) incoming(o olmcore.Object) (*table, olmcore.Object, error) {
	if isNil(o) {
		return nil, nil, &olmcore.InputError{Field: "object", Problem: "is nil"}
	}
	t, err := c.table(olmcore.GVKOf(o))
	if err != nil {
		return nil, nil, err
	}
	next, err := t.kind.canonical(o)
	return t, next, err
}

// received is incoming for what a person or a controller writes, in whatever version.
func (c *Cluster) received(o olmcore.Object) (*table, olmcore.Object, error) {
	if isNil(o) {
		return c.incoming(o)
	}
	if t, err := c.table(olmcore.GVKOf(o)); err == nil && c.converts(t.kind, olmcore.GVKOf(o).Version) {
		converted, err := c.convert(t.kind, []olmcore.Object{o}, t.kind.gvk.Version)
		if err != nil {
			return nil, nil, err
		}
		o = converted[0]
	}
	return c.incoming(o)
}

func (c *Cluster) admitNamespace(k *kind, o olmcore.Object) error {
	if !k.namespaced {
		return nil
	}
	name := o.GetNamespace()
	namespace := lookup[*corev1.Namespace](c, namespaceKind, "", name)
	if namespace == nil {
		if c.AutoCreateNamespaces {
			return c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return apierrors.NewNotFound(c.tables[namespaceKind].kind.groupResource(), name)
	}
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	err := apierrors.NewForbidden(k.groupResource(), o.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + name + " is being terminated", Field: "metadata.namespace",
	})
	return err
}

func (c *Cluster) nextUID() types.UID {
	for {
		c.lastUID++
		if uid := types.UID(formatCounter(c.lastUID)); c.uids[uid] == nil {
			return uid
		}
	}
}

// current returns the stored object that a write means, once the preconditions hold.
func (c *Cluster) current(target olmcore.Ref) (*table, olmcore.Object, error) {
	t, err := c.table(target.GVK())
	if err != nil {
		return nil, nil, err
	}
	o := t.get(target.Namespace, target.Name)
	if o == nil {
		return nil, nil, apierrors.NewNotFound(t.kind.groupResource(), target.Name)
	}
	if target.UID != "" && target.UID != o.GetUID() {
		return nil, nil, apierrors.NewConflict(t.kind.groupResource(), target.Name,
			errPrecondition("UID", string(target.UID), string(o.GetUID())))
	}
	if target.ResourceVersion != "" && target.ResourceVersion != o.GetResourceVersion() {
		return nil, nil, apierrors.NewConflict(t.kind.groupResource(), target.Name, errModified)
	}
	return t, o, nil
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// replace stores next, which the cluster owns, as the new main part of current: everything but a status that is a
// subresource. Nothing happens when nothing changes.
func (c *Cluster) replace(t *table, current, next olmcore.Object) error {
	t.kind.keep(next, current)
	w := write{kind: t.kind, operation: admissionregistrationv1.Update, old: current, next: next}
	mutated, err := c.mutate(w)
	if err != nil {
		return err
	}
	if mutated != next {
		next = mutated
		t.kind.keep(next, current)
	}
	sameSpec := t.kind.sameSpec(current, next)
	if !sameSpec {
		// What a writer left out and the defaults fill in again is no change.
		t.kind.applyDefaults(next)
		sameSpec = t.kind.sameSpec(current, next)
	}
	if err := c.validate(t.kind, next, current); err != nil {
		return err
	}
	w.next = next
	if err := c.validated(w); err != nil {
		return err
	}
	if sameSpec && sameMetadata(current, next) {
		return nil
	}
	if crd, ok := next.(*customResourceDefinition); ok && !sameSpec {
		storeVersion(crd)
	}
	if !sameSpec && t.kind.generation {
		next.SetGeneration(current.GetGeneration() + 1)
	}
	if c.finished(t.kind, next) {
		c.commit(t, current, nil)
		return nil
	}
	c.commit(t, current, next)
	return nil
}

// keep gives the next version of an object what an update does not change.
func (k *kind) keep(next, current olmcore.Object) {
	keepServerMetadata(next, current)
	if k.status {
		k.setStatus(next, current)
	}
	keepAllocated(next, current)
}

// finished reports whether nothing holds an object that is being deleted.
func (c *Cluster) finished(k *kind, o olmcore.Object) bool {
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 || k.role == roleNamespace {
		return false
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// currentStatus is current for a write to the status: first of all the subresource must be there.
func (c *Cluster) currentStatus(target olmcore.Ref) (*table, olmcore.Object, error) {
	if t, err := c.table(target.GVK()); err == nil && !t.kind.status {
		return nil, nil, apierrors.NewNotFound(t.kind.groupResource(), "")
	}
	return c.changeable(target)
}

// writeStatus is replaceStatus for a write of a person or a controller.
func (c *Cluster) writeStatus(t *table, current, from olmcore.Object) error {
	if c.asksWebhooks(mutatingKind) || c.asksWebhooks(validatingKind) {
		w := write{kind: t.kind, operation: admissionregistrationv1.Update, subresource: "status", old: current, next: t.kind.withStatus(current, from)}
		if err := c.admit(w); err != nil {
			return err
		}
	}
	c.replaceStatus(t, current, from)
	return nil
}

// replaceStatus stores current with the status of from, for a kind that has a status.
func (c *Cluster) replaceStatus(t *table, current, from olmcore.Object) {
	if !t.kind.sameStatus(current, from) {
		c.commit(t, current, t.kind.withStatus(current, from))
	}
}

// changeable is current for an update: there, a UID is no precondition but a field that cannot be changed.
func (c *Cluster) changeable(target olmcore.Ref) (*table, olmcore.Object, error) {
	uid := target.UID
	target.UID = ""
	t, o, err := c.current(target)
	if err == nil && uid != "" && uid != o.GetUID() {
		err = apierrors.NewInvalid(t.kind.groupKind(), target.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
	}
	return t, o, err
}

// update is PATCH with the difference of two versions of an object.
func (c *Cluster) update(a olmcore.Update) error {
	t, current, err := c.changeable(a.Target)
	if err != nil {
		return err
	}
	if isNil(a.Before) || isNil(a.After) {
		return &olmcore.InputError{Field: "before and after", Problem: "must both be set"}
	}
	if t.kind.sameVersion(current, a.Before, a.After) {
		next, err := t.kind.canonical(a.After)
		if err != nil {
			return err
		}
		return c.replace(t, current, next)
	}
	after, err := deepCopy(a.After)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if b, ok := statusValue(a.Before); ok {
		setStatusValue(after, b)
	}
	a.After = after
	next, err := patched(t.kind, a, current)
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
	if isNil(a.Before) || isNil(a.After) {
		return &olmcore.InputError{Field: "before and after", Problem: "must both be set"}
	}
	if t.kind.sameVersion(current, a.Before, a.After) {
		next := a.After
		if t.kind.goType == nil {
			if next, err = t.kind.canonical(a.After); err != nil {
				return err
			}
		}
		return c.writeStatus(t, current, next)
	}
	after, err := deepCopy(a.Before)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if s, ok := statusValue(a.After); ok {
		setStatusValue(after, s)
	}
	a.After = after
	next, err := patched(t.kind, a, current)
	if err != nil {
		return err
	}
	return c.writeStatus(t, current, next)
}

// sameVersion reports whether before is the stored version itself, so that the
// patched object is after: no need to compute a patch.
func (k *kind) sameVersion(current, before, after olmcore.Object) bool {
	if k.goType != nil {
		return k.isTyped(before) && k.isTyped(after) &&
			(before == current || before.GetUID() == current.GetUID() && before.GetResourceVersion() == current.GetResourceVersion())
	}
	_, ok := after.(*unstructured.Unstructured)
	return ok && before == current
}

// patched applies an action's merge patch to the stored object.
func patched(k *kind, a olmcore.Action, current olmcore.Object) (olmcore.Object, error) {
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
		return k.canonical(applied.After)
	case olmcore.UpdateStatus:
		return k.canonical(applied.After)
	default:
		return nil, &olmcore.InputError{Field: "action", Problem: "is no update"}
	}
}

// errPrecondition has the API server's words.
func errPrecondition(field, want, have string) error {
	return fmt.Errorf("%s: %s in precondition: %s, %s in object meta: %s", "Precondition failed", field, want, field, have)
}
