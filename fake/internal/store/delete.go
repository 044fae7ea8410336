// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Delete deletes an object as the API server does, without webhooks.
func (s *Store) Delete(target olmcore.Ref, grace *int64, policy metav1.DeletionPropagation) error {
	t, current, err := s.Deletable(target)
	if err != nil {
		return err
	}
	if grace != nil && *grace < 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds is %d, which is negative", *grace))
	}
	next := Shallow(current)
	next.SetFinalizers(propagationFinalizers(t.Kind, current, policy))
	changed := !slices.Equal(next.GetFinalizers(), current.GetFinalizers())
	if s.setDeleting(t.Kind, next, graceOf(current, grace)) {
		changed = true
	}
	if Finished(t.Kind, next) {
		s.Commit(t, current, nil)
		return nil
	}
	if changed {
		s.Commit(t, current, next)
	}
	return nil
}

// Deletable is Current with the API server's message for a delete whose resourceVersion does not match.
func (s *Store) Deletable(target olmcore.Ref) (*Table, olmcore.Object, error) {
	version := target.ResourceVersion
	t, o, err := s.Current(target.Unversioned())
	if err == nil && version != "" && version != o.GetResourceVersion() {
		err = apierrors.NewConflict(t.Kind.GroupResource(), target.Name, errPrecondition("ResourceVersion", version, o.GetResourceVersion()))
	}
	return t, o, err
}

// propagationFinalizers returns the finalizers that an object has once its deletion was asked for.
func propagationFinalizers(k *Kind, o olmcore.Object, policy metav1.DeletionPropagation) []string {
	finalizers := o.GetFinalizers()
	if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok && crd.DeletionTimestamp == nil {
		finalizers = with(finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	switch policy {
	case metav1.DeletePropagationOrphan:
		return with(without(finalizers, metav1.FinalizerDeleteDependents), metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		return with(without(finalizers, metav1.FinalizerOrphanDependents), metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationBackground:
		return without(without(finalizers, metav1.FinalizerOrphanDependents), metav1.FinalizerDeleteDependents)
	}
	return finalizers
}

// graceOf returns the seconds that a deletion leaves an object. Only Pods that a kubelet may be running have any.
func graceOf(o olmcore.Object, asked *int64) int64 {
	pod, ok := o.(*corev1.Pod)
	switch {
	case !ok, pod.Spec.NodeName == "", terminated(pod):
		return 0
	case asked != nil:
		return *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return max(0, *pod.Spec.TerminationGracePeriodSeconds)
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// setDeleting marks an object as being deleted and reports whether that changed
// it. A deletion that runs already is only ever shortened.
func (s *Store) setDeleting(k *Kind, o olmcore.Object, grace int64) bool {
	was := o.GetDeletionTimestamp()
	if was == nil {
		o.SetDeletionTimestamp(new(olmcore.Timestamp(s.now().Add(time.Duration(grace) * time.Second))))
		o.SetDeletionGracePeriodSeconds(&grace)
		if k.HasGeneration {
			o.SetGeneration(o.GetGeneration() + 1)
		}
		if namespace, ok := o.(*corev1.Namespace); ok {
			namespace.Status.Phase = corev1.NamespaceTerminating
		}
		return true
	}
	old := o.GetDeletionGracePeriodSeconds()
	if old == nil || *old <= grace {
		return false
	}
	o.SetDeletionTimestamp(new(metav1.NewTime(was.Add(time.Duration(grace-*old) * time.Second))))
	o.SetDeletionGracePeriodSeconds(&grace)
	return true
}

func terminated(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func with(list []string, entry string) []string {
	if slices.Contains(list, entry) {
		return list
	}
	return append(slices.Clip(list), entry)
}

func without(list []string, entry string) []string {
	if !slices.Contains(list, entry) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == entry })
}

// Finished reports whether an object is being deleted and neither a finalizer nor a grace period delays its removal.
func Finished(k *Kind, o olmcore.Object) bool {
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 || k.GroupKind() == NamespaceKind {
		return false
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// DropFinalizer removes one finalizer, and the object if it was the last one.
func (s *Store) DropFinalizer(t *Table, o olmcore.Object, finalizer string) {
	next := Shallow(o)
	next.SetFinalizers(without(o.GetFinalizers(), finalizer))
	if Finished(t.Kind, next) {
		s.Commit(t, o, nil)
		return
	}
	s.Commit(t, o, next)
}
