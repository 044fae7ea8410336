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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of one CatalogSource. It does not set Now, ResolvedDigest,
// Jitter, Connection, LastRun and Checkpoint, which only the caller knows. A CatalogSource
// that does not exist is an error for which apierrors.IsNotFound holds. So are, with
// errors.Is(err, olmcore.ErrNotRead), objects that r did not read and without which
// nothing can be decided; of others the Input has an Observed that is not complete.
//
// It reads the Pods and Subscriptions of whole namespaces and all Nodes: let r
// be a cache. A Reader with an index by owner, as olmcore.Snapshot,
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
	if err = in.gatherPods(ctx, r); err != nil {
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
	if key.Namespace == config.settings(cs).global {
		in.Subscribers, err = subscribers(ctx, r, key)
	}
	return in, err
}

// gatherNamespace reads the Namespace. The Pods of some CatalogSources do not depend on it.
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
func (in *Input) gatherPods(ctx context.Context, r olmcore.Reader) error {
	cs, serving := in.CatalogSource, 0
	found := map[string]*corev1.Pod{}
	add := func(list []*corev1.Pod) {
		for _, pod := range list {
			role := pods.RoleOf(pod, cs.Name)
			if pod.Namespace != cs.Namespace || role == pods.RoleNone && !olmcore.OwnedBy(pod, cs.UID) && !registry.IsPodName(pod.Name, cs.Name) {
				continue
			}
			if role == pods.RoleServing && found[pod.Name] == nil {
				serving++
			}
			found[pod.Name] = pod
		}
	}
	index, ok := r.(ownerIndex)
	if ok {
		for _, label := range []string{registry.LabelServing, registry.LabelCandidate} {
			list, err := olmcore.List[*corev1.Pod](ctx, r, cs.Namespace, labels.SelectorFromSet(labels.Set{label: cs.Name}))
			if err != nil {
				return err
			}
			add(list)
		}
		for _, o := range index.Owned(cs.UID) {
			if pod, isPod := o.(*corev1.Pod); isPod {
				add([]*corev1.Pod{pod})
			}
		}
	}
	if !ok || serving < in.Config.settings(cs).replicas {
		// Some will be made: their names must be free.
		list, err := olmcore.List[*corev1.Pod](ctx, r, cs.Namespace, nil)
		if err != nil {
			return err
		}
		add(list)
	}
	in.Pods = olmcore.Found(slices.SortedFunc(maps.Values(found), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })...)
	return nil
}

// gatherNamed reads what may have the names that a CatalogSource uses, whatever its type,
// so that nothing is left behind when that changes.
func (in *Input) gatherNamed(ctx context.Context, r olmcore.Reader) (err error) {
	cs := in.CatalogSource
	service := registry.ServiceName(cs.Name)
	if cs.Spec.ConfigMap != "" {
		in.ConfigMap, err = olmcore.Get[*corev1.ConfigMap](ctx, r, cs.Namespace, cs.Spec.ConfigMap)
	}
	return cmp.Or(err,
		need(ctx, r, &in.Services, cs.Namespace, service),
		need(ctx, r, &in.ServiceAccounts, cs.Namespace, cs.Name, cs.Name+registry.SuffixAccount),
		observeNamed(ctx, r, &in.NetworkPolicies, cs.Namespace, cs.Name+registry.SuffixServerPolicy, cs.Name+registry.SuffixUnpackPolicy),
		observeNamed(ctx, r, &in.Roles, cs.Namespace, cs.Name+registry.SuffixRole),
		observeNamed(ctx, r, &in.RoleBindings, cs.Namespace, cs.Name+registry.SuffixBinding),
		observeNamed(ctx, r, &in.PodDisruptionBudgets, cs.Namespace, service),
	)
}

func observeNamed[T olmcore.Object](ctx context.Context, r olmcore.Reader, into *olmcore.Observed[T], namespace string, names ...string) (err error) {
	*into, err = olmcore.ObserveNamed[T](ctx, r, namespace, names...)
	return err
}

// need is observeNamed for objects without which nothing can be decided.
func need[T olmcore.Object](ctx context.Context, r olmcore.Reader, into *olmcore.Observed[T], namespace string, names ...string) error {
	err := observeNamed(ctx, r, into, namespace, names...)
	if err == nil && !into.Complete {
		_, err = olmcore.Get[T](ctx, r, namespace, names[0]) // the error says what was not read
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
