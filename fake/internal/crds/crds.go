// SPDX-License-Identifier: Apache-2.0

// Package crds serves the kinds of CustomResourceDefinitions and simulates their controller.
package crds

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/defaults"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

type customResourceDefinition = apiextensionsv1.CustomResourceDefinition

// Controller establishes CRDs and deletes their objects.
type Controller struct {
	store *store.Store
	queue *workqueue.Queue
}

// New returns the controller of a store.
func New(s *store.Store, q *workqueue.Queue) *Controller { return &Controller{s, q} }

// Observe serves the kind of a CRD, or stops to serve it, after a change of the CRD, and queues the CRD.
func (c *Controller) Observe(key olmcore.Key, current, next olmcore.Object) {
	c.serve(current, next)
	c.queue.Add(workqueue.CRDs, key)
}

// serve serves the kind of an established CRD.
func (c *Controller) serve(current, next olmcore.Object) {
	before, _ := current.(*customResourceDefinition)
	after, _ := next.(*customResourceDefinition)
	if after == nil || !established(after) {
		if before != nil && established(before) {
			c.unserve(before)
		}
		return
	}
	storage := storageVersion(after)
	if storage == nil {
		return
	}
	gk := schema.GroupKind{Group: after.Spec.Group, Kind: after.Spec.Names.Kind}
	t := c.store.Table(gk)
	if t != nil && !t.Kind.Custom {
		return // a CRD of OLM, whose kind is always served
	}
	var versions []string
	for _, v := range after.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	k := store.NewKind(gk.WithVersion(storage.Name), versions, after.Spec.Scope == apiextensionsv1.NamespaceScoped)
	k.Resource, k.Custom, k.HasGeneration = after.Spec.Names.Plural, true, true
	k.HasStatus = storage.Subresources != nil && storage.Subresources.Status != nil
	k.Terminating = after.DeletionTimestamp != nil
	k.Conversion = ConversionOf(after)
	if storage.Schema != nil {
		k.Defaults = defaults.SchemaOf(storage.Schema.OpenAPIV3Schema)
	}
	c.setKind(t, k)
}

// setKind serves a kind, in the table that has its objects, if there is one.
func (c *Controller) setKind(t *store.Table, k *store.Kind) {
	if t == nil {
		c.store.AddTable(store.NewTable(k))
		return
	}
	restore := t.Kind.GVK != k.GVK
	t.Kind = k
	if restore {
		c.restore(t)
	}
}

// restore converts stored objects to a new storage version, as reading and writing them would.
func (c *Controller) restore(t *store.Table) {
	for _, o := range slices.Clone(t.List("")) {
		next := store.Shallow(o)
		next.GetObjectKind().SetGroupVersionKind(t.Kind.GVK)
		c.store.Install(t, o, next)
	}
}

// unserve stops to serve a kind, and removes all its objects.
func (c *Controller) unserve(crd *customResourceDefinition) {
	gk := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	t := c.store.Table(gk)
	if t == nil || !t.Kind.Custom {
		return
	}
	for _, o := range slices.Clone(t.List("")) {
		c.store.Commit(t, o, nil)
	}
	c.store.RemoveTable(gk)
}

// ObserveRemoved queues the CRD of a kind after an object of the kind was removed.
func (c *Controller) ObserveRemoved(k *store.Kind) {
	name := k.Resource + "." + k.GVK.Group
	if c.store.Table(store.CRDKind).Get("", name) != nil {
		c.queue.Add(workqueue.CRDs, crdKey(name))
	}
}

func crdKey(name string) olmcore.Key {
	return olmcore.Key{Group: store.CRDKind.Group, Kind: store.CRDKind.Kind, Name: name}
}

// Run accepts the names of a CRD, establishes it, or deletes its objects.
func (c *Controller) Run(key olmcore.Key) {
	crd := store.Get[*customResourceDefinition](c.store, store.CRDKind, "", key.Name)
	if crd == nil {
		return
	}
	if crd.DeletionTimestamp != nil {
		c.terminate(crd)
		return
	}
	next := crd.DeepCopy()
	status := &next.Status
	switch {
	case c.nameTaken(crd):
		setCondition(c.queue.Now(), status, apiextensionsv1.NamesAccepted, false, "KindConflict", "the kind is already in use")
		setCondition(c.queue.Now(), status, apiextensionsv1.Established, established(crd), "NotAccepted", "not all names are accepted")
	case !hasCondition(crd, apiextensionsv1.NamesAccepted):
		status.AcceptedNames = next.Spec.Names
		setCondition(c.queue.Now(), status, apiextensionsv1.NamesAccepted, true, "NoConflicts", "no conflicts found")
		setCondition(c.queue.Now(), status, apiextensionsv1.Established, false, "Installing", "the initial names have been accepted")
	default:
		status.AcceptedNames = next.Spec.Names
		setCondition(c.queue.Now(), status, apiextensionsv1.Established, true, "InitialNamesAccepted", "the initial names have been accepted")
	}
	c.store.ReplaceStatus(c.store.Table(store.CRDKind), crd, next)
}

// StoreVersion records the version in which objects are stored from now on.
func StoreVersion(crd *customResourceDefinition) {
	if v := storageVersion(crd); v != nil {
		if !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(slices.Clip(crd.Status.StoredVersions), v.Name)
		}
	}
}

// nameTaken reports whether another CRD of the group serves the kind, or the kind is builtin under another plural.
func (c *Controller) nameTaken(crd *customResourceDefinition) bool {
	for _, o := range c.store.Table(store.CRDKind).List("") {
		other := o.(*customResourceDefinition)
		if other.Name != crd.Name && other.Spec.Group == crd.Spec.Group && other.Spec.Names.Kind == crd.Spec.Names.Kind && established(other) {
			return true
		}
	}
	return false
}

// terminate deletes the objects of a CRD, and removes the CRD when none is left.
func (c *Controller) terminate(crd *customResourceDefinition) {
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	t := c.store.Table(store.CRDKind)
	if !hasCondition(crd, apiextensionsv1.Terminating) {
		next := crd.DeepCopy()
		setCondition(c.queue.Now(), &next.Status, apiextensionsv1.Terminating, true,
			"InstanceDeletionInProgress", "CustomResource deletion is in progress")
		c.store.ReplaceStatus(t, crd, next)
		return
	}
	instances := c.store.Table(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind})
	if instances != nil && instances.Kind.Custom && instances.Count() > 0 {
		for _, o := range instances.List("") {
			if o.GetDeletionTimestamp() == nil {
				c.queue.Add(workqueue.CRDs, crdKey(crd.Name))
				// A delete is rejected only if the object changed, which queues it again.
				_ = c.store.Delete(olmcore.RefOf(o), nil, metav1.DeletePropagationBackground)
				return
			}
		}
		return
	}
	c.store.DropFinalizer(t, crd, apiextensionsv1.CustomResourceCleanupFinalizer)
}

func setCondition(
	now time.Time,
	s *apiextensionsv1.CustomResourceDefinitionStatus,
	kind apiextensionsv1.CustomResourceDefinitionConditionType,
	is bool,
	reason, message string,
) {
	want := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: kind, Status: store.ConditionStatus[apiextensionsv1.ConditionStatus](is), Reason: reason, Message: message,
		LastTransitionTime: olmcore.Timestamp(now),
	}
	for i, have := range s.Conditions {
		if have.Type != kind {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		s.Conditions[i] = want
		return
	}
	s.Conditions = append(s.Conditions, want)
}

func established(crd *customResourceDefinition) bool {
	return hasCondition(crd, apiextensionsv1.Established)
}

func hasCondition(crd *customResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == kind && c.Status == apiextensionsv1.ConditionTrue
	})
}

func storageVersion(crd *customResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}
