// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of one CatalogSource. It does not set Now, ResolvedDigest,
// Jitter, Connection, PodHash and LastRun, which only the caller knows. A CatalogSource
// that does not exist is an error for which apierrors.IsNotFound holds. So are, with
// errors.Is(err, olmcore.ErrNotRead), objects that r did not read and without which
// nothing can be decided; of others the Input has an Observed that is not complete.
//
// It reads the Pods and Subscriptions of whole namespaces and all Nodes: let r
// be a cache. A Reader that can tell what an owner owns, as olmcore.Snapshot can,
// is asked for the Pods of this CatalogSource alone.
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
	if err = in.gatherNamespace(ctx, r); err != nil {
		return Input{}, err
	}
	if err = in.gatherPods(ctx, r, key); err != nil {
		return Input{}, olmcore.Needed(err, "whether the catalog serves")
	}
	if !config.IgnoreNodes {
		if in.Nodes, err = olmcore.Observe[*corev1.Node](ctx, r, "", nil); err != nil {
			return Input{}, err
		}
	}
	if err = in.gatherNamed(ctx, r, key); err != nil {
		return Input{}, olmcore.Needed(err, "what the catalog's Pods are made from")
	}
	if key.Namespace == resolveSettings(&config, cs).global {
		in.Subscribers, err = subscribers(ctx, r, key)
	}
	return in, err
}

// gatherNamespace reads the Namespace, without which the Pods of some CatalogSources can
// be told, too.
func (in *Input) gatherNamespace(ctx context.Context, r olmcore.Reader) (err error) {
	cs := in.CatalogSource
	in.Namespace, err = olmcore.Get[*corev1.Namespace](ctx, r, "", cs.Namespace)
	if c := cs.Spec.GrpcPodConfig; c != nil && c.SecurityContextConfig != "" && errors.Is(err, olmcore.ErrNotRead) {
		return nil
	}
	return olmcore.Needed(err, "the security context of the catalog's Pods")
}

// ownerIndex is what a Reader may have besides, as olmcore.Snapshot does: then the
// cost of a CatalogSource does not grow with the Pods of its namespace.
type ownerIndex interface {
	Owned(uid types.UID) []olmcore.Object
}

// gatherPods reads the Pods with the catalog's labels, those that it owns whatever
// their labels, and those that may have the names of its next ones.
func (in *Input) gatherPods(ctx context.Context, r olmcore.Reader, key types.NamespacedName) error {
	serving := 0
	add := func(pod *corev1.Pod) {
		role := roleOf(pod, key.Name)
		if role == roleServing {
			serving++
		}
		if pod.Namespace == key.Namespace && (role != roleNone || olmcore.OwnedBy(pod, in.CatalogSource.UID) || isPodName(pod.Name, key.Name)) {
			in.Pods = append(in.Pods, pod)
		}
	}
	all := func() error {
		pods, err := olmcore.List[*corev1.Pod](ctx, r, key.Namespace, nil)
		for _, pod := range pods {
			add(pod)
		}
		return err
	}
	index, ok := r.(ownerIndex)
	if !ok {
		return all()
	}
	for _, label := range [...]string{labelServing, labelCandidate} {
		pods, err := olmcore.List[*corev1.Pod](ctx, r, key.Namespace, labels.SelectorFromSet(labels.Set{label: key.Name}))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			add(pod)
		}
	}
	for _, o := range index.Owned(in.CatalogSource.UID) {
		if pod, ok := o.(*corev1.Pod); ok {
			add(pod)
		}
	}
	if serving < resolveSettings(&in.Config, in.CatalogSource).replicas {
		// Some will be made: their names must be free.
		if err := all(); err != nil {
			return err
		}
	}
	slices.SortFunc(in.Pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	in.Pods = slices.Compact(in.Pods)
	return nil
}

func (in *Input) gatherNamed(ctx context.Context, r olmcore.Reader, key types.NamespacedName) error {
	service, err := olmcore.Get[*corev1.Service](ctx, r, key.Namespace, serviceName(key.Name))
	if err != nil {
		return err
	}
	if service != nil {
		in.Services = append(in.Services, service)
	}
	account, err := olmcore.Get[*corev1.ServiceAccount](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	if account != nil {
		in.ServiceAccounts = append(in.ServiceAccounts, account)
	}
	if err = in.gatherAround(ctx, r, key); err != nil {
		return err
	}
	return nil
}

// gatherAround reads what only some CatalogSources have: what ConfigMaps need, and
// what several replicas need. It is read for all, so that nothing is left behind
// when one changes.
func (in *Input) gatherAround(ctx context.Context, r olmcore.Reader, key types.NamespacedName) error {
	account, err := olmcore.Get[*corev1.ServiceAccount](ctx, r, key.Namespace, key.Name+accountSuffix)
	if err != nil {
		return err
	}
	if account != nil {
		in.ServiceAccounts = append(in.ServiceAccounts, account)
	}
	if in.NetworkPolicies, err = olmcore.ObserveNamed[*networkingv1.NetworkPolicy](ctx, r, key.Namespace, policyName(key.Name, policyServer), policyName(key.Name, policyUnpack)); err != nil {
		return err
	}
	if in.Roles, err = olmcore.ObserveNamed[*rbacv1.Role](ctx, r, key.Namespace, key.Name+roleSuffix); err != nil {
		return err
	}
	if in.RoleBindings, err = olmcore.ObserveNamed[*rbacv1.RoleBinding](ctx, r, key.Namespace, key.Name+bindingSuffix); err != nil {
		return err
	}
	if in.PodDisruptionBudgets, err = olmcore.ObserveNamed[*policyv1.PodDisruptionBudget](ctx, r, key.Namespace, serviceName(key.Name)); err != nil {
		return err
	}
	if name := in.CatalogSource.Spec.ConfigMap; name != "" {
		in.ConfigMap, err = olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, name)
	}
	return err
}

// subscribers lists the other namespaces with a Subscription to a CatalogSource, as far
// as they were read.
func subscribers(ctx context.Context, r olmcore.Reader, key types.NamespacedName) (namespaces []string, err error) {
	all, err := olmcore.Observe[*v1alpha1.Subscription](ctx, r, "", nil)
	for _, s := range all.Items {
		if s.Spec == nil || s.Spec.CatalogSource != key.Name || s.Spec.CatalogSourceNamespace != key.Namespace || s.Namespace == key.Namespace {
			continue
		}
		if n := len(namespaces); n == 0 || namespaces[n-1] != s.Namespace {
			namespaces = append(namespaces, s.Namespace)
		}
	}
	return namespaces, err
}
