// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// delete is a DELETE of a person or a controller.
func (c *Cluster) delete(target olmcore.Ref, grace *int64, policy metav1.DeletionPropagation) error {
	if c.asksWebhooks(mutatingKind) || c.asksWebhooks(validatingKind) {
		t, current, err := c.deletable(target)
		if err == nil {
			err = c.admit(write{kind: t.kind, operation: admissionregistrationv1.Delete, old: current})
		}
		if err != nil {
			return err
		}
	}
	return c.remove(target, grace, policy)
}

// remove is the API server's DELETE. Those of the simulation come here without webhooks.
func (c *Cluster) remove(target olmcore.Ref, grace *int64, policy metav1.DeletionPropagation) error {
	t, current, err := c.deletable(target)
	if err != nil {
		return err
	}
	if grace != nil && *grace < 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds is %d, which is negative", *grace))
	}
	next := shallow(current)
	next.SetFinalizers(propagationFinalizers(t.kind, current, policy))
	changed := !slices.Equal(next.GetFinalizers(), current.GetFinalizers())
	if c.setDeleting(t.kind, next, graceOf(current, grace)) {
		changed = true
	}
	if c.finished(t.kind, next) {
		c.commit(t, current, nil)
		return nil
	}
	if changed {
		c.commit(t, current, next)
	}
	return nil
}

// deletable is current with the API server's message for a delete whose resourceVersion does not match.
func (c *Cluster) deletable(target olmcore.Ref) (*table, olmcore.Object, error) {
	version := target.ResourceVersion
	t, o, err := c.current(target.Unversioned())
	if err == nil && version != "" && version != o.GetResourceVersion() {
		err = apierrors.NewConflict(t.kind.groupResource(), target.Name, errPrecondition("ResourceVersion", version, o.GetResourceVersion()))
	}
	return t, o, err
}

// propagationFinalizers returns the finalizers that an object has once its deletion was asked for.
func propagationFinalizers(k *kind, o olmcore.Object, policy metav1.DeletionPropagation) []string {
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
func (c *Cluster) setDeleting(k *kind, o olmcore.Object, grace int64) bool {
	was := o.GetDeletionTimestamp()
	if was == nil {
		o.SetDeletionTimestamp(new(olmcore.Timestamp(c.Now().Add(time.Duration(grace) * time.Second))))
		o.SetDeletionGracePeriodSeconds(&grace)
		if k.generation {
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
