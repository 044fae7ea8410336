// SPDX-License-Identifier: Apache-2.0

// Package admission calls the admission and conversion webhooks of a simulated cluster.
package admission

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/crds"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// Call is a call of the API server to a webhook: whether a write is allowed, or how objects look in another version.
// The objects are copies.
type Call struct {
	// Name is the name of the webhook. For a conversion it is the name of the CRD.
	Name string
	// Client is the address of the webhook.
	Client admissionregistrationv1.WebhookClientConfig

	// Operation is the operation of the write. It is empty for a conversion.
	Operation admissionregistrationv1.OperationType
	// Subresource is "status" or empty.
	Subresource string
	// Old is the stored object, or nil for a CREATE. New is the object to be stored, or nil for a DELETE.
	Old, New olmcore.Object

	// Version is the version to convert Objects to. It is empty for a write.
	Version string
	Objects []olmcore.Object
}

// Relabelled returns the objects of a conversion with the requested version, and no other change.
func (call Call) Relabelled() []olmcore.Object {
	for _, o := range call.Objects {
		o.GetObjectKind().SetGroupVersionKind(olmcore.GVKOf(o).GroupKind().WithVersion(call.Version))
	}
	return call.Objects
}

// Answer is the answer of a webhook. The zero value allows a write without a change.
type Answer struct {
	// Denied is the reason for which a write is rejected. Empty means that the write is allowed.
	Denied string
	// New is the object as a mutating webhook changes it. Nil means no change.
	New olmcore.Object
	// Objects are the converted objects, in the order of the call.
	Objects []olmcore.Object
}

// Webhooks calls the webhooks of a cluster.
type Webhooks struct {
	store *store.Store
	// function returns the function that answers calls, or nil if no webhook is called.
	function func() func(Call) (Answer, error)
}

// New returns the webhooks of the configurations in a store. function returns the function that answers calls, or nil
// if no webhook is called.
func New(s *store.Store, function func() func(Call) (Answer, error)) *Webhooks {
	return &Webhooks{s, function}
}

// Write is a write that needs the admission of webhooks.
type Write struct {
	Kind        *store.Kind
	Operation   admissionregistrationv1.OperationType
	Subresource string
	Old, Next   olmcore.Object
}

// object returns the object of the write.
func (w *Write) object() olmcore.Object {
	if w.Next == nil {
		return w.Old
	}
	return w.Next
}

// Any reports whether any webhook is configured. If not, a write costs nothing more.
func (c *Webhooks) Any() bool { return c.has(store.MutatingKind) || c.has(store.ValidatingKind) }

func (c *Webhooks) has(kind schema.GroupKind) bool {
	return c.function() != nil && c.store.Table(kind).Count() > 0
}

// Mutate returns the object of a write with the changes of the mutating webhooks.
func (c *Webhooks) Mutate(w Write) (olmcore.Object, error) {
	if !c.has(store.MutatingKind) {
		return w.Next, nil
	}
	for _, o := range c.store.Table(store.MutatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks {
			answer, err := c.ask(w, admissionregistrationv1.ValidatingWebhook{ // it has all relevant fields
				Name: hook.Name, ClientConfig: hook.ClientConfig, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
				NamespaceSelector: hook.NamespaceSelector, ObjectSelector: hook.ObjectSelector,
			})
			if err != nil {
				return nil, err
			}
			if answer.New == nil || w.Next == nil {
				continue
			}
			next, err := w.Kind.Canonical(answer.New)
			if err != nil {
				return nil, err
			}
			next.SetNamespace(w.Next.GetNamespace())
			next.SetName(w.Next.GetName())
			store.KeepServerMetadata(next, w.Next)
			w.Next = next
		}
	}
	return w.Next, nil
}

// Validate returns an error if a validating webhook rejects a write.
func (c *Webhooks) Validate(w Write) error {
	if !c.has(store.ValidatingKind) {
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

// Admit is Mutate and Validate for writes whose object no webhook can change.
func (c *Webhooks) Admit(w Write) error {
	if _, err := c.Mutate(w); err != nil {
		return err
	}
	return c.Validate(w)
}

// ask calls one webhook, if it matches the write.
func (c *Webhooks) ask(w Write, hook admissionregistrationv1.ValidatingWebhook) (Answer, error) {
	matches, err := c.matchesWrite(w, hook)
	if err != nil {
		return Answer{}, apierrors.NewInternalError(err)
	}
	if !matches {
		return Answer{}, nil
	}
	call := Call{Name: hook.Name, Client: hook.ClientConfig,
		Operation: w.Operation, Subresource: w.Subresource, Old: own(w.Old), New: own(w.Next)}
	answer, err := c.function()(call)
	switch {
	case err != nil && hook.FailurePolicy != nil && *hook.FailurePolicy == admissionregistrationv1.Ignore:
		return Answer{}, nil
	case err != nil:
		return Answer{}, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: %w", hook.Name, err))
	case answer.Denied != "":
		return Answer{}, &apierrors.StatusError{ErrStatus: metav1.Status{
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

// matchesWrite reports whether a webhook matches a write.
func (c *Webhooks) matchesWrite(w Write, hook admissionregistrationv1.ValidatingWebhook) (bool, error) {
	if w.Kind.GVK.Group == admissionregistrationv1.GroupName || !slices.ContainsFunc(hook.Rules, w.isOf) {
		return false, nil // a webhook could refuse its own removal
	}
	objects, err := metav1.LabelSelectorAsSelector(orEverything(hook.ObjectSelector))
	if err != nil {
		return false, err
	}
	if !selects(objects, w.Old) && !selects(objects, w.Next) {
		return false, nil
	}
	namespaces, err := metav1.LabelSelectorAsSelector(orEverything(hook.NamespaceSelector))
	if err != nil || namespaces.Empty() {
		return err == nil, err
	}
	switch {
	case w.Kind.GroupKind() == store.NamespaceKind:
		return selects(namespaces, w.object()), nil
	case !w.Kind.Namespaced:
		return true, nil
	}
	namespace := store.Get[*corev1.Namespace](c.store, store.NamespaceKind, "", w.object().GetNamespace())
	return namespace != nil && selects(namespaces, namespace), nil
}

// orEverything returns the selector that selects everything if s is nil.
func orEverything(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

func selects(s labels.Selector, o olmcore.Object) bool {
	return o != nil && s.Matches(labels.Set(o.GetLabels()))
}

// isOf reports whether a rule matches a write. All served versions of a resource are equivalent.
func (w *Write) isOf(rule admissionregistrationv1.RuleWithOperations) bool {
	resource, all := w.Kind.Resource, "*"
	if w.Subresource != "" {
		resource, all = resource+"/"+w.Subresource, "*/"+w.Subresource
	}
	return namesAny(rule.Operations, w.Operation, admissionregistrationv1.OperationAll) &&
		namesAny(rule.APIGroups, w.Kind.GVK.Group, "*") &&
		(slices.Contains(rule.APIVersions, "*") || namesAny(rule.APIVersions, w.Kind.Versions...)) &&
		namesAny(rule.Resources, resource, all, w.Kind.Resource+"/*", "*/*") && w.inScope(rule.Scope)
}

func (w *Write) inScope(scope *admissionregistrationv1.ScopeType) bool {
	return scope == nil || *scope == admissionregistrationv1.AllScopes ||
		(*scope == admissionregistrationv1.NamespacedScope) == w.Kind.Namespaced
}

func namesAny[T comparable](list []T, names ...T) bool {
	return slices.ContainsFunc(names, func(name T) bool { return slices.Contains(list, name) })
}

// Converts reports whether a webhook converts between a version and the stored one.
func (c *Webhooks) Converts(k *store.Kind, version string) bool {
	return c.function() != nil && k.Conversion != nil && version != "" && version != k.GVK.Version
}

// Convert calls the conversion webhook of a kind for objects in another version.
func (c *Webhooks) Convert(k *store.Kind, objects []olmcore.Object, version string) ([]olmcore.Object, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	call := Call{Name: k.Resource + "." + k.GVK.Group, Client: crds.ConversionClient(k.Conversion), Version: version}
	for _, o := range objects {
		call.Objects = append(call.Objects, own(o))
	}
	answer, err := c.function()(call)
	if err == nil && len(answer.Objects) != len(objects) {
		err = fmt.Errorf("webhook returned %d objects, expected %d", len(answer.Objects), len(objects))
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: %w", olmcore.GVKOf(objects[0]), err))
	}
	return answer.Objects, nil
}
