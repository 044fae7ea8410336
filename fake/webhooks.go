// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workloads"
	"github.com/olmcore/olm/olmcore"
)

// WebhookCall is what the API server asks a webhook: whether a write may be made, or how objects look in another
// version. Its objects are the webhook's own.
type WebhookCall struct {
	// Name is the webhook's; that of a conversion is the CRD's.
	Name string
	// Client says where the webhook is.
	Client admissionregistrationv1.WebhookClientConfig

	// Operation is the write; empty for a conversion.
	Operation admissionregistrationv1.OperationType
	// Subresource is "status" or empty.
	Subresource string
	// Old is the object as it is, nil for a CREATE. New is the object as it is to be, nil for a DELETE.
	Old, New olmcore.Object

	// Version is the one to convert Objects to; empty for a write.
	Version string
	Objects []olmcore.Object
}

// Relabelled returns the objects of a conversion with the version that is asked for, and no other change.
func (call WebhookCall) Relabelled() []olmcore.Object {
	for _, o := range call.Objects {
		o.GetObjectKind().SetGroupVersionKind(olmcore.GVKOf(o).GroupKind().WithVersion(call.Version))
	}
	return call.Objects
}

// WebhookAnswer is what a webhook answers. The zero value lets a write pass as it is.
type WebhookAnswer struct {
	// Denied says why a write is refused; empty: it is not.
	Denied string
	// New is what a mutating webhook makes of the object; nil: it stays as it is.
	New olmcore.Object
	// Objects are the converted ones, in the order of the call's.
	Objects []olmcore.Object
}

// write is one that admission webhooks are asked about.
type write struct {
	kind        *store.Kind
	operation   admissionregistrationv1.OperationType
	subresource string
	old, next   olmcore.Object
}

// object is the one that the write is about.
func (w *write) object() olmcore.Object {
	if w.next == nil {
		return w.old
	}
	return w.next
}

// asksWebhooks reports whether there are any: without, a write costs nothing more.
func (c *Cluster) asksWebhooks(kind schema.GroupKind) bool {
	return c.Webhooks != nil && c.store.Table(kind).Count() > 0
}

// mutate returns the object of a write as the mutating webhooks want it.
func (c *Cluster) mutate(w write) (olmcore.Object, error) {
	if !c.asksWebhooks(store.MutatingKind) {
		return w.next, nil
	}
	for _, o := range c.store.Table(store.MutatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks {
			answer, err := c.ask(w, admissionregistrationv1.ValidatingWebhook{ // which has all of the fields that count
				Name: hook.Name, ClientConfig: hook.ClientConfig, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
				NamespaceSelector: hook.NamespaceSelector, ObjectSelector: hook.ObjectSelector,
			})
			if err != nil {
				return nil, err
			}
			if answer.New == nil || w.next == nil {
				continue
			}
			next, err := w.kind.Canonical(answer.New)
			if err != nil {
				return nil, err
			}
			next.SetNamespace(w.next.GetNamespace())
			next.SetName(w.next.GetName())
			store.KeepServerMetadata(next, w.next)
			w.next = next
		}
	}
	return w.next, nil
}

// validated asks the validating webhooks about a write.
func (c *Cluster) validated(w write) error {
	if !c.asksWebhooks(store.ValidatingKind) {
		return nil
	}
	for _, o := range c.store.Table(store.ValidatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks {
			if _, err := c.ask(w, hook); err != nil {
				return err
			}
		}
	}
	return nil
}

// admit is mutate and validated for writes whose object no webhook can change.
func (c *Cluster) admit(w write) error {
	if _, err := c.mutate(w); err != nil {
		return err
	}
	return c.validated(w)
}

// ask calls one webhook, when it is for the write.
func (c *Cluster) ask(w write, hook admissionregistrationv1.ValidatingWebhook) (WebhookAnswer, error) {
	matches, err := c.matchesWrite(w, hook)
	if err != nil {
		return WebhookAnswer{}, apierrors.NewInternalError(err)
	}
	if !matches {
		return WebhookAnswer{}, nil
	}
	call := WebhookCall{Name: hook.Name, Client: hook.ClientConfig, Operation: w.operation, Subresource: w.subresource, Old: own(w.old), New: own(w.next)}
	answer, err := c.Webhooks(call)
	switch {
	case err != nil && hook.FailurePolicy != nil && *hook.FailurePolicy == admissionregistrationv1.Ignore:
		return WebhookAnswer{}, nil
	case err != nil:
		return WebhookAnswer{}, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: %w", hook.Name, err))
	case answer.Denied != "":
		return WebhookAnswer{}, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("admission webhook %q denied the request: %s", hook.Name, answer.Denied),
		}}
	}
	return answer, nil
}

func own(o olmcore.Object) olmcore.Object {
	if o == nil {
		return nil
	}
	return o.DeepCopyObject().(olmcore.Object)
}

// matchesWrite reports whether a webhook is to be asked about a write.
func (c *Cluster) matchesWrite(w write, hook admissionregistrationv1.ValidatingWebhook) (bool, error) {
	if w.kind.GVK.Group == admissionregistrationv1.GroupName || !slices.ContainsFunc(hook.Rules, w.isOf) {
		return false, nil // a webhook could refuse its own removal
	}
	objects, err := metav1.LabelSelectorAsSelector(orEverything(hook.ObjectSelector))
	if err != nil {
		return false, err
	}
	if !selects(objects, w.old) && !selects(objects, w.next) {
		return false, nil
	}
	namespaces, err := metav1.LabelSelectorAsSelector(orEverything(hook.NamespaceSelector))
	if err != nil || namespaces.Empty() {
		return err == nil, err
	}
	switch {
	case w.kind.GroupKind() == store.NamespaceKind:
		return selects(namespaces, w.object()), nil
	case !w.kind.Namespaced:
		return true, nil
	}
	namespace := store.Get[*corev1.Namespace](c.store, store.NamespaceKind, "", w.object().GetNamespace())
	return namespace != nil && selects(namespaces, namespace), nil
}

// orEverything returns the selector that none stands for: it selects everything.
func orEverything(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

func selects(s labels.Selector, o olmcore.Object) bool {
	return o != nil && s.Matches(labels.Set(o.GetLabels()))
}

// isOf reports whether a rule is about a write. All served versions of a resource are equivalent.
func (w *write) isOf(rule admissionregistrationv1.RuleWithOperations) bool {
	resource, all := w.kind.Resource, "*"
	if w.subresource != "" {
		resource, all = resource+"/"+w.subresource, "*/"+w.subresource
	}
	return namesAny(rule.Operations, w.operation, admissionregistrationv1.OperationAll) &&
		namesAny(rule.APIGroups, w.kind.GVK.Group, "*") &&
		(slices.Contains(rule.APIVersions, "*") || namesAny(rule.APIVersions, w.kind.Versions...)) &&
		namesAny(rule.Resources, resource, all, w.kind.Resource+"/*", "*/*") && w.inScope(rule.Scope)
}

func (w *write) inScope(scope *admissionregistrationv1.ScopeType) bool {
	return scope == nil || *scope == admissionregistrationv1.AllScopes || (*scope == admissionregistrationv1.NamespacedScope) == w.kind.Namespaced
}

func namesAny[T comparable](list []T, names ...T) bool {
	return slices.ContainsFunc(names, func(name T) bool { return slices.Contains(list, name) })
}

// converts reports whether a webhook converts between a version and the stored one; otherwise nothing else changes.
func (c *Cluster) converts(k *store.Kind, version string) bool {
	return c.Webhooks != nil && k.Conversion != nil && version != "" && version != k.GVK.Version
}

// convert asks the conversion webhook of a kind for objects in another version.
func (c *Cluster) convert(k *store.Kind, objects []olmcore.Object, version string) ([]olmcore.Object, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	call := WebhookCall{Name: k.Resource + "." + k.GVK.Group, Client: workloads.ConversionClient(k.Conversion), Version: version}
	for _, o := range objects {
		call.Objects = append(call.Objects, own(o))
	}
	answer, err := c.Webhooks(call)
	if err == nil && len(answer.Objects) != len(objects) {
		err = fmt.Errorf("webhook returned %d objects, expected %d", len(answer.Objects), len(objects))
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: %w", olmcore.GVKOf(objects[0]), err))
	}
	return answer.Objects, nil
}
