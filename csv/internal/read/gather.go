// SPDX-License-Identifier: Apache-2.0

// Package read contains the reads of the Gather functions below csv. After the first error, nothing more is read. A
// list of a kind that the Reader does not read is incomplete, which is not an error.
package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// Reads performs the reads of one call of Gather. After the first error, nothing more is read.
type Reads struct {
	ctx     context.Context
	reader  olmcore.Reader
	indexed olmcore.IndexedReader // of reader
	err     error
}

// From returns the Reads for one call of Gather, which use the Reader r.
func From(ctx context.Context, r olmcore.Reader) *Reads {
	return &Reads{ctx: ctx, reader: r, indexed: olmcore.Indexed(r)}
}

// Err returns the first error, or nil if there was none.
func (r *Reads) Err() error { return r.err }

// Refused reports whether the API server rejected a read as forbidden. It clears this error, so that later reads are
// performed.
func (r *Reads) Refused() bool {
	refused := olmcore.Classify(r.err) == olmcore.Forbidden
	if refused {
		r.err = nil
	}
	return refused
}

// List reads the objects of a namespace that match a selector. An empty namespace means all namespaces. A nil selector
// matches all objects.
func List[T olmcore.Object](r *Reads, namespace string, selector labels.Selector) (found olmcore.Observed[T]) {
	if r.err == nil {
		found, r.err = olmcore.Observe[T](r.ctx, r.reader, namespace, selector)
	}
	return found
}

// Named reads the objects with the given names, in the order of names and without duplicates. Objects that do not exist
// are omitted.
func Named[T olmcore.Object](r *Reads, namespace string, names []string) (found olmcore.Observed[T]) {
	if r.err == nil {
		found, r.err = olmcore.ObserveNamed[T](r.ctx, r.reader, namespace, names...)
	}
	return found
}

// In reads the object with the given name in each of the namespaces. Objects that do not exist are omitted.
func In[T olmcore.Object](r *Reads, namespaces []string, name string) olmcore.Observed[T] {
	found := olmcore.Observed[T]{Complete: true, Items: make([]T, 0, len(namespaces))}
	gvk := olmcore.GVKOf(*new(T))
	for _, namespace := range namespaces {
		if r.err != nil {
			return olmcore.Observed[T]{}
		}
		o, err := olmcore.Fitting(olmcore.GetKind(r.ctx, r.reader, gvk, namespace, name))
		switch object, is := o.(T); {
		case errors.Is(err, olmcore.ErrNotRead):
			return olmcore.Observed[T]{}
		case err == nil && is:
			found.Items = append(found.Items, object)
		case !apierrors.IsNotFound(err):
			r.err = cmp.Or(err, fmt.Errorf("read %s: got %T", olmcore.Key{Kind: gvk.Kind, Namespace: namespace, Name: name}, o))
		}
	}
	return found
}

// Kind reads the objects of a kind that the cluster may not serve. Like List, it selects them by namespace and
// selector. If the cluster does not serve the kind, the list is empty and complete.
func Kind(r *Reads, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) olmcore.Observed[olmcore.Object] {
	if r.err != nil {
		return olmcore.Observed[olmcore.Object]{}
	}
	found, err := olmcore.ObserveKind(r.ctx, r.reader, gvk, namespace, selector)
	if meta.IsNoMatchError(err) || olmcore.Classify(err) == olmcore.NoMatch {
		return olmcore.Found[olmcore.Object]()
	}
	r.err = err
	return found
}

// Only returns the items of a list for which keep returns true.
func Only[T any](list olmcore.Observed[T], keep func(T) bool) olmcore.Observed[T] {
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(o T) bool { return !keep(o) })
	return list
}

// Join returns all items of the lists without duplicates. If one of the lists is incomplete, it returns the zero list,
// which is incomplete too.
func Join[T olmcore.Object](lists ...olmcore.Observed[T]) olmcore.Observed[T] {
	joined, seen := olmcore.Found[T](), map[olmcore.Key]bool{}
	for _, list := range lists {
		if !list.Complete {
			return olmcore.Observed[T]{}
		}
		for _, o := range list.Items {
			if key := olmcore.KeyOf(o); !seen[key] {
				seen[key], joined.Items = true, append(joined.Items, o)
			}
		}
	}
	return joined
}

// Indexed returns the objects of a namespace that have at least one of the index terms in by. An empty namespace means
// all namespaces. All calls for the same kind and namespace must pass the same termsOf, because they share one index.
func Indexed[T olmcore.Object](
	r *Reads, namespace string, by []olmcore.Term, termsOf func(o T, add func(olmcore.Term)),
) (found olmcore.Observed[T]) {
	if r.err != nil {
		return found
	}
	termsOfObject := func(o olmcore.Object, add func(olmcore.Term)) {
		if object, is := o.(T); is {
			termsOf(object, add)
		}
	}
	lookup := olmcore.Lookup{Kind: olmcore.GVKOf(*new(T)), Namespace: namespace, Key: "csv", TermsOf: termsOfObject}
	objects, err := r.indexed.Find(r.ctx, r.reader, lookup, by...)
	if err != nil && !errors.Is(err, olmcore.ErrNotRead) {
		r.err = err
	}
	found.Complete = err == nil
	for _, o := range objects {
		found.Items = append(found.Items, o.(T))
	}
	return found
}

// Missing returns a slice that contains name if the list is incomplete, or nil if the list is complete.
func Missing[T any](list olmcore.Observed[T], name string) []string {
	if list.Complete {
		return nil
	}
	return []string{name}
}

var consoleGroup = schema.GroupVersion{Group: "console.openshift.io", Version: "v1"}

// clusterKinds is the table of the cluster-scoped kinds whose objects are found by owner labels. To add a kind, add a
// row.
var clusterKinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
	schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
	consoleGroup.WithKind("ConsoleCLIDownload"),
	consoleGroup.WithKind("ConsoleLink"),
	consoleGroup.WithKind("ConsolePlugin"),
	consoleGroup.WithKind("ConsoleQuickStart"),
	consoleGroup.WithKind("ConsoleYAMLSample"),
}

// ClusterKinds returns the cluster-scoped kinds whose objects are found by owner labels, followed by the kinds in more,
// without duplicates.
func ClusterKinds(more []schema.GroupVersionKind) []schema.GroupVersionKind {
	kinds := slices.Clone(clusterKinds)
	for _, gvk := range more {
		if !slices.Contains(kinds, gvk) {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// Owned reads the objects whose owner labels match a selector. It reads cluster-scoped objects of the given kinds, and
// RoleBindings in kube-system. unread contains the kinds that were not read.
func Owned(
	r *Reads, kinds []schema.GroupVersionKind, selector labels.Selector,
) (found olmcore.Observed[olmcore.Object], unread []schema.GroupKind) {
	found = olmcore.Found[olmcore.Object]()
	add := func(gvk schema.GroupVersionKind, namespace string) {
		list := Kind(r, gvk, namespace, selector)
		if !list.Complete {
			found.Complete, unread = false, append(unread, gvk.GroupKind())
			return
		}
		found.Items = append(found.Items, list.Items...)
	}
	for _, gvk := range kinds {
		add(gvk, metav1.NamespaceAll)
	}
	add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), metav1.NamespaceSystem)
	return found, unread
}

// OwnedList describes the list that Owned reads, for use in messages. The description names the kinds that were not
// read.
func OwnedList(unread []schema.GroupKind) string {
	if len(unread) == 0 {
		return "objects with owner labels"
	}
	var kinds []string
	for _, kind := range unread {
		kinds = append(kinds, kind.Kind)
	}
	return "objects with owner labels of kind " + strings.Join(kinds, ", ")
}

// ValidateMixed returns an *olmcore.InputError if an item in a list of several kinds is nil or has no kind. Otherwise
// it returns nil.
func ValidateMixed(field string, list olmcore.Observed[olmcore.Object]) error {
	for i, o := range list.Items {
		if olmcore.RefOf(o).Kind == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: "is nil or has no kind"}
		}
	}
	return nil
}

// RoleBindings reads the RoleBindings of a namespace that may bind one of the accounts or have one of the names.
// accounts contains the names of ServiceAccounts of the namespace.
func RoleBindings(r *Reads, namespace string, accounts, names []string) olmcore.Observed[*rbacv1.RoleBinding] {
	return Indexed(r, namespace, bindingTerms(namespace, accounts, names), func(b *rbacv1.RoleBinding, add func(olmcore.Term)) {
		termsOfBinding(b.Name, b.Namespace, b.Subjects, add)
	})
}

// ClusterRoleBindings reads the ClusterRoleBindings that may bind one of the accounts or have one of the names.
// accounts contains the names of ServiceAccounts of the namespace.
func ClusterRoleBindings(r *Reads, namespace string, accounts, names []string) olmcore.Observed[*rbacv1.ClusterRoleBinding] {
	return Indexed(r, "", bindingTerms(namespace, accounts, names), func(b *rbacv1.ClusterRoleBinding, add func(olmcore.Term)) {
		termsOfBinding(b.Name, "", b.Subjects, add)
	})
}

// ClusterRoles reads the ClusterRoles with the given names. If Kubernetes has not aggregated the rules of such a
// ClusterRole yet, the function also reads the ClusterRoles that its aggregationRule selects.
func ClusterRoles(r *Reads, names []string) olmcore.Observed[*rbacv1.ClusterRole] {
	found := Named[*rbacv1.ClusterRole](r, "", names)
	for _, role := range found.Items {
		for _, selector := range rbac.Selectors(role) {
			found = Join(found, List[*rbacv1.ClusterRole](r, "", selector))
		}
	}
	return found
}

// Terms of bindings: their own names, and the names of subjects that may include a ServiceAccount.
const (
	termBinding = "name"
	termSubject = "subject"
)

// bindingTerms returns the terms of the bindings that may bind ServiceAccounts of a namespace, or that have a name.
func bindingTerms(namespace string, accounts, names []string) []olmcore.Term {
	terms := []olmcore.Term{
		{Of: termSubject, Value: rbac.GroupAll}, {Of: termSubject, Value: rbac.GroupAll + ":" + namespace},
		{Of: termSubject, Value: rbac.GroupAuthenticated},
	}
	for _, name := range accounts {
		terms = append(terms, olmcore.Term{Of: termSubject, Value: rbac.UserPrefix + namespace + ":" + name})
	}
	for _, name := range names {
		terms = append(terms, olmcore.Term{Of: termBinding, Value: name})
	}
	return terms
}

// termsOfBinding calls add with each term of a binding.
func termsOfBinding(name, namespace string, subjects []rbacv1.Subject, add func(olmcore.Term)) {
	add(olmcore.Term{Of: termBinding, Value: name})
	for _, s := range subjects {
		user := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			user = rbac.UserPrefix + cmp.Or(s.Namespace, namespace) + ":" + s.Name
		}
		add(olmcore.Term{Of: termSubject, Value: user})
	}
}
