// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of one CatalogSource. It does not set Now, ResolvedDigest, Jitter, Connection, LastRun and
// Checkpoint, which only the caller knows. A CatalogSource that does not exist is an error for which apierrors.IsNotFound
// holds. So are, with errors.Is(err, olmcore.ErrNotRead), objects that r did not read and without which nothing can be
// decided; of others the Input has an Observed that is not complete.
//
// It reads the Pods and Subscriptions of whole namespaces and all Nodes: let r be a cache. A Reader with an index by owner,
// as olmcore.Snapshot, is asked for the Pods of this CatalogSource alone.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	in := Input{Config: config}
	o, err := olmcore.GetKind(ctx, r, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind), key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about a CatalogSource")
	}
	cs, ok := o.(*v1alpha1.CatalogSource)
	if !ok {
		return Input{}, &olmcore.InputError{Field: "Reader", Problem: "returns CatalogSources as another type"}
	}
	in.CatalogSource = cs
	config, _ = config.applied(cs)
	if in.Namespace, err = olmcore.Get[*corev1.Namespace](ctx, r, "", cs.Namespace); err != nil {
		// The Pods of some CatalogSources do not depend on it.
		if securityContext(cs) == "" || !errors.Is(err, olmcore.ErrNotRead) {
			return Input{}, olmcore.Needed(err, "the security context of the catalog's Pods")
		}
	}
	if err = in.gatherPods(ctx, r, config.Replicas); err != nil {
		return Input{}, olmcore.Needed(err, "whether the catalog serves")
	}
	if !config.IgnoreNodes {
		if in.Nodes, err = olmcore.Observe[*corev1.Node](ctx, r, "", nil); err != nil {
			return Input{}, err
		}
	}
	if err = in.gatherNamed(ctx, r); err != nil {
		return Input{}, olmcore.Needed(err, "what the catalog's Pods are made from")
	}
	if key.Namespace == config.GlobalCatalogNamespace {
		in.Subscribers, err = subscribers(ctx, r, key)
	}
	return in, err
}

// gatherPods reads the Pods with the catalog's labels, those that it owns whatever their labels, and those that may have the
// names of its next ones.
func (in *Input) gatherPods(ctx context.Context, r olmcore.Reader, replicas int) error {
	cs, serving := in.CatalogSource, 0
	found := map[string]*corev1.Pod{}
	add := func(pod *corev1.Pod) {
		role := roleOf(pod, cs.Name)
		if pod.Namespace != cs.Namespace || role == roleNone && !olmcore.OwnedBy(pod, cs.UID) && !registry.IsPodName(pod.Name, cs.Name) {
			return
		}
		serving += one(role == roleServing && found[pod.Name] == nil)
		found[pod.Name] = pod
	}
	list := func(selector labels.Selector) error {
		pods, err := olmcore.List[*corev1.Pod](ctx, r, cs.Namespace, selector)
		for _, pod := range pods {
			add(pod)
		}
		return err
	}
	// What a Reader may have besides, as olmcore.Snapshot does: then the cost does not grow with the Pods of the namespace.
	index, ok := r.(interface {
		Owned(uid types.UID) []olmcore.Object
	})
	if ok {
		for _, label := range []string{registry.LabelServing, registry.LabelCandidate} {
			if err := list(labels.SelectorFromSet(labels.Set{label: cs.Name})); err != nil {
				return err
			}
		}
		for _, o := range index.Owned(cs.UID) {
			if pod, isPod := o.(*corev1.Pod); isPod {
				add(pod)
			}
		}
	}
	if !ok || serving < replicas { // some will be made: their names must be free
		if err := list(nil); err != nil {
			return err
		}
	}
	in.Pods = olmcore.Found(slices.SortedFunc(maps.Values(found), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })...)
	return nil
}

// gatherNamed reads what may have the names that a CatalogSource uses, whatever its type, so that nothing is left behind when
// that changes.
func (in *Input) gatherNamed(ctx context.Context, r olmcore.Reader) (err error) {
	cs := in.CatalogSource
	service := registry.ServiceName(cs.Name)
	if cs.Spec.ConfigMap != "" {
		in.ConfigMap, err = olmcore.Get[*corev1.ConfigMap](ctx, r, cs.Namespace, cs.Spec.ConfigMap)
	}
	return cmp.Or(err,
		observeNamed(ctx, r, &in.Services, true, cs.Namespace, service),
		observeNamed(ctx, r, &in.ServiceAccounts, true, cs.Namespace, cs.Name, cs.Name+registry.SuffixAccount),
		observeNamed(ctx, r, &in.NetworkPolicies, false, cs.Namespace, cs.Name+registry.SuffixServerPolicy, cs.Name+registry.SuffixUnpackPolicy),
		observeNamed(ctx, r, &in.Roles, false, cs.Namespace, cs.Name+registry.SuffixRole),
		observeNamed(ctx, r, &in.RoleBindings, false, cs.Namespace, cs.Name+registry.SuffixBinding),
		observeNamed(ctx, r, &in.PodDisruptionBudgets, false, cs.Namespace, service),
	)
}

// observeNamed reads objects of some names. needed: without them nothing can be decided.
func observeNamed[T olmcore.Object](ctx context.Context, r olmcore.Reader, into *olmcore.Observed[T], needed bool, namespace string, names ...string) (err error) {
	*into, err = olmcore.ObserveNamed[T](ctx, r, namespace, names...)
	if err == nil && needed && !into.Complete {
		_, err = olmcore.Get[T](ctx, r, namespace, names[0]) // the error says what was not read
	}
	return err
}

// subscribers lists the other namespaces with a Subscription to a CatalogSource, as far as they were read.
func subscribers(ctx context.Context, r olmcore.Reader, key types.NamespacedName) (namespaces []string, err error) {
	all, err := olmcore.Observe[*v1alpha1.Subscription](ctx, r, "", nil)
	for _, s := range all.Items {
		if s.Spec != nil && s.Spec.CatalogSource == key.Name && s.Spec.CatalogSourceNamespace == key.Namespace && s.Namespace != key.Namespace {
			namespaces = append(namespaces, s.Namespace)
		}
	}
	return slices.Compact(namespaces), err
}

// Affected returns the CatalogSources to reconcile when an object was added, changed or deleted; of a change, ask for the old
// object and the new one. An empty Name stands for every CatalogSource of the Namespace, the zero key for all; see
// olmcore.ExpandKeys. It is nil for objects that do not matter.
func Affected(o olmcore.Object) (keys []types.NamespacedName) {
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return nil // no object
	}
	namespace := o.GetNamespace()
	switch o := o.(type) {
	case *v1alpha1.CatalogSource:
		return []types.NamespacedName{{Namespace: namespace, Name: o.Name}}
	case *corev1.Node:
		return []types.NamespacedName{{}}
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: o.Name}}
	case *corev1.ConfigMap:
		return []types.NamespacedName{{Namespace: namespace}} // any CatalogSource may name it
	case *v1alpha1.Subscription:
		if o.Spec == nil || o.Spec.CatalogSource == "" || o.Spec.CatalogSourceNamespace == "" {
			return nil
		}
		return []types.NamespacedName{{Namespace: o.Spec.CatalogSourceNamespace, Name: o.Spec.CatalogSource}}
	}
	names, all := affectedNames(o)
	switch {
	case all:
		return []types.NamespacedName{{Namespace: namespace}}
	case names == nil:
		return nil
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == v1alpha1.CatalogSourceKind && strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/") {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return keys
}

// affectedNames returns the CatalogSources that an object of a registry belongs to by its name or labels; some may be empty,
// and it is nil for objects of other kinds. all: it may be any.
func affectedNames(o olmcore.Object) (names []string, all bool) {
	without := func(suffix string) string {
		if name, found := strings.CutSuffix(o.GetName(), suffix); found {
			return name
		}
		return ""
	}
	switch o := o.(type) {
	case *corev1.Service, *policyv1.PodDisruptionBudget:
		return []string{o.GetName()}, strings.Contains(o.GetName(), "-") // any dash may stand for a dot
	case *corev1.Pod:
		source, cut := registry.SourceOfPodName(o.Name)
		return []string{o.Labels[registry.LabelServing], o.Labels[registry.LabelCandidate], source}, cut // any name may begin so
	case *corev1.ServiceAccount:
		return []string{o.Name, without(registry.SuffixAccount)}, false
	case *rbacv1.Role:
		return []string{without(registry.SuffixRole)}, false
	case *rbacv1.RoleBinding:
		return []string{without(registry.SuffixBinding)}, false
	case *networkingv1.NetworkPolicy:
		return []string{without(registry.SuffixServerPolicy), without(registry.SuffixUnpackPolicy)}, false
	}
	return nil, false
}
