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
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of one CatalogSource. The caller sets Now, ResolvedDigest, Jitter, Connection, LastRun and
// Checkpoint.
//
// If the CatalogSource does not exist, apierrors.IsNotFound(err) is true. If the Reader did not read a required list
// or object, errors.Is(err, olmcore.ErrNotRead) is true. Optional lists that were not read are incomplete in the
// Input.
//
// Gather lists the Pods of the namespace, all Subscriptions and all Nodes, so the Reader should be a cache. If it has
// an index by owner, as olmcore.Snapshot has, Gather only reads the Pods of this CatalogSource.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	in := Input{Config: config}
	// 1. The CatalogSource, and the Namespace, which the Pods of some CatalogSources do not depend on.
	o, err := olmcore.GetKind(ctx, r, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind), key.Namespace, key.Name)
	if err != nil {
		return Input{}, inputs.Needed(err, "everything about a CatalogSource")
	}
	cs, ok := o.(*v1alpha1.CatalogSource)
	if !ok {
		return Input{}, &olmcore.InputError{Field: "Reader", Problem: "returns a CatalogSource that is not a *v1alpha1.CatalogSource"}
	}
	in.CatalogSource = cs
	config, _ = config.effective(cs)
	in.Namespace, err = olmcore.Get[*corev1.Namespace](ctx, r, "", cs.Namespace)
	if err != nil && (securityContext(cs) == "" || !errors.Is(err, olmcore.ErrNotRead)) {
		return Input{}, inputs.Needed(err, "the security context of the catalog's Pods")
	}
	// 2. Pods and Nodes.
	in.Pods, err = gatherPods(ctx, r, cs, config.Replicas)
	if err != nil {
		return Input{}, inputs.Needed(err, "whether the catalog serves")
	}
	if !config.IgnoreNodes {
		in.Nodes, err = olmcore.Observe[*corev1.Node](ctx, r, "", nil)
		if err != nil {
			return Input{}, err
		}
	}
	// 3. The objects with the names that the CatalogSource uses, whatever its source type, so that nothing is left
	// behind when the type changes.
	if cs.Spec.ConfigMap != "" {
		in.ConfigMap, err = olmcore.Get[*corev1.ConfigMap](ctx, r, cs.Namespace, cs.Spec.ConfigMap)
		if err != nil {
			return Input{}, inputs.Needed(err, "what the catalog's Pods are made from")
		}
	}
	name := cs.Name
	service := registry.ServiceName(name)
	err = cmp.Or(
		gatherNamed(ctx, r, cs, &in.Services, inputs.Required, service),
		gatherNamed(ctx, r, cs, &in.ServiceAccounts, inputs.Required, name, name+registry.SuffixAccount),
		gatherNamed(ctx, r, cs, &in.NetworkPolicies, inputs.Optional, name+registry.SuffixServerPolicy, name+registry.SuffixUnpackPolicy),
		gatherNamed(ctx, r, cs, &in.Roles, inputs.Optional, name+registry.SuffixRole),
		gatherNamed(ctx, r, cs, &in.RoleBindings, inputs.Optional, name+registry.SuffixBinding),
		gatherNamed(ctx, r, cs, &in.PodDisruptionBudgets, inputs.Optional, service),
	)
	if err != nil {
		return Input{}, inputs.Needed(err, "what the catalog's Pods are made from")
	}
	// 4. The namespaces to notify.
	if key.Namespace == config.GlobalCatalogNamespace {
		in.Subscribers, err = gatherSubscribers(ctx, r, key)
	}
	return in, err
}

// gatherNamed reads the objects of one kind with the names that a CatalogSource uses.
func gatherNamed[O olmcore.Object](
	ctx context.Context, r olmcore.Reader, cs *v1alpha1.CatalogSource, list *olmcore.Observed[O], need inputs.Need, names ...string,
) (err error) {
	*list, err = olmcore.ObserveNamed[O](ctx, r, cs.Namespace, names...)
	if err == nil && need == inputs.Required && !list.Complete {
		_, err = olmcore.Get[O](ctx, r, cs.Namespace, names[0]) // the error says what was not read
	}
	return err
}

// gatherPods reads the Pods with the labels of the catalog, those that it owns, and those that occupy the names of
// its next Pods.
func gatherPods(ctx context.Context, r olmcore.Reader, cs *v1alpha1.CatalogSource, replicas int) (olmcore.Observed[*corev1.Pod], error) {
	found := podSet{source: cs, pods: map[string]*corev1.Pod{}}
	enough := false
	if index, ok := r.(ownerIndex); ok {
		// The cost does not grow with the number of Pods in the namespace.
		for _, label := range []string{registry.LabelServing, registry.LabelCandidate} {
			pods, err := olmcore.List[*corev1.Pod](ctx, r, cs.Namespace, labels.SelectorFromSet(labels.Set{label: cs.Name}))
			if err != nil {
				return olmcore.Observed[*corev1.Pod]{}, err
			}
			found.add(pods...)
		}
		for _, o := range index.Owned(cs.UID) {
			if pod, isPod := o.(*corev1.Pod); isPod {
				found.add(pod)
			}
		}
		enough = found.serving() >= replicas
	}
	if !enough { // Pods will be created, and their names must be free
		pods, err := olmcore.List[*corev1.Pod](ctx, r, cs.Namespace, nil)
		if err != nil {
			return olmcore.Observed[*corev1.Pod]{}, err
		}
		found.add(pods...)
	}
	byName := func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }
	return olmcore.Found(slices.SortedFunc(maps.Values(found.pods), byName)...), nil
}

// ownerIndex is a Reader that finds objects by the UID of their owner, as olmcore.Snapshot does.
type ownerIndex interface {
	Owned(uid types.UID) []olmcore.Object
}

// podSet contains the Pods that concern a CatalogSource, by name.
type podSet struct {
	source *v1alpha1.CatalogSource
	pods   map[string]*corev1.Pod
}

func (s podSet) add(pods ...*corev1.Pod) {
	for _, pod := range pods {
		belongs := roleOf(pod, s.source.Name) != roleNone || olmcore.OwnedBy(pod, s.source.UID)
		concerns := belongs || registry.IsPodName(pod.Name, s.source.Name)
		if pod.Namespace == s.source.Namespace && concerns {
			s.pods[pod.Name] = pod
		}
	}
}

func (s podSet) serving() (count int) {
	for _, pod := range s.pods {
		if roleOf(pod, s.source.Name) == roleServing {
			count++
		}
	}
	return count
}

// gatherSubscribers returns the other namespaces with a Subscription to a CatalogSource, as far as Subscriptions were
// read.
func gatherSubscribers(ctx context.Context, r olmcore.Reader, key types.NamespacedName) (namespaces []string, err error) {
	all, err := olmcore.Observe[*v1alpha1.Subscription](ctx, r, "", nil)
	for _, s := range all.Items {
		subscribes := s.Spec != nil && s.Spec.CatalogSource == key.Name && s.Spec.CatalogSourceNamespace == key.Namespace
		if subscribes && s.Namespace != key.Namespace {
			namespaces = append(namespaces, s.Namespace)
		}
	}
	return slices.Compact(namespaces), err
}

// Affected returns the CatalogSources to reconcile after an object was created, updated or deleted. After an update,
// call it for the old and the new object. A key without a Name stands for every CatalogSource of its Namespace, and the
// zero key stands for all CatalogSources. See olmcore.ExpandKeys. Affected returns nil for objects on which no
// CatalogSource depends.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return nil // no object
	}
	name := o.GetName()
	switch o := o.(type) {
	case *corev1.Node:
		return []types.NamespacedName{{}}
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: name}}
	case *corev1.ConfigMap:
		return allOfNamespace(o) // any CatalogSource may reference it
	case *v1alpha1.CatalogSource:
		return []types.NamespacedName{{Namespace: o.Namespace, Name: name}}
	case *v1alpha1.Subscription:
		return catalogSourceOfSubscription(o)
	case *corev1.Pod:
		return catalogSourcesOfPod(o)
	case *corev1.Service, *policyv1.PodDisruptionBudget:
		return catalogSourcesOfService(o)
	case *corev1.ServiceAccount:
		return catalogSourcesOf(o, name, cutSuffix(name, registry.SuffixAccount))
	case *rbacv1.Role:
		return catalogSourcesOf(o, cutSuffix(name, registry.SuffixRole))
	case *rbacv1.RoleBinding:
		return catalogSourcesOf(o, cutSuffix(name, registry.SuffixBinding))
	case *networkingv1.NetworkPolicy:
		return catalogSourcesOf(o, cutSuffix(name, registry.SuffixServerPolicy), cutSuffix(name, registry.SuffixUnpackPolicy))
	}
	return nil
}

func allOfNamespace(o olmcore.Object) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: o.GetNamespace()}}
}

// catalogSourcesOfPod returns the CatalogSources of a Pod by its owners, labels and name.
func catalogSourcesOfPod(pod *corev1.Pod) []types.NamespacedName {
	source, cut := registry.SourceOfPodName(pod.Name)
	if cut {
		return allOfNamespace(pod) // it may be any CatalogSource whose name begins with source
	}
	return catalogSourcesOf(pod, source, pod.Labels[registry.LabelServing], pod.Labels[registry.LabelCandidate])
}

// catalogSourcesOfService returns the CatalogSources of an object with the name of a Service.
func catalogSourcesOfService(o olmcore.Object) []types.NamespacedName {
	if strings.Contains(o.GetName(), "-") {
		return allOfNamespace(o) // a dash may stand for a dot in the name of the CatalogSource
	}
	return catalogSourcesOf(o, o.GetName())
}

func catalogSourceOfSubscription(s *v1alpha1.Subscription) []types.NamespacedName {
	if s.Spec == nil || s.Spec.CatalogSource == "" || s.Spec.CatalogSourceNamespace == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: s.Spec.CatalogSourceNamespace, Name: s.Spec.CatalogSource}}
}

// cutSuffix returns a name without a suffix. It is empty for a name without the suffix.
func cutSuffix(name, suffix string) string {
	if before, found := strings.CutSuffix(name, suffix); found {
		return before
	}
	return ""
}

// catalogSourcesOf returns the CatalogSources that own an object, and those with the given names, sorted. Names may
// be empty.
func catalogSourcesOf(o olmcore.Object, names ...string) (keys []types.NamespacedName) {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == v1alpha1.CatalogSourceKind && strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/") {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			keys = append(keys, types.NamespacedName{Namespace: o.GetNamespace(), Name: name})
		}
	}
	return keys
}
