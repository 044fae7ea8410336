// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"maps"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Deletion of an Input whose other lists are already set. It returns the zero Deletion if the
// ClusterServiceVersion is not being deleted or has no cleanup finalizer. If the Reader does not read a kind
// (olmcore.ErrNotRead), the list of that kind is incomplete in the Deletion. Gather returns the error of any other
// failed read.
func Gather(ctx context.Context, r olmcore.Reader, in Input) (Deletion, error) {
	c := in.ClusterServiceVersion
	if c.DeletionTimestamp == nil || !slices.Contains(c.Finalizers, Finalizer) {
		return Deletion{}, nil
	}
	reads := read.From(ctx, r)
	reach := reachOf(&in)
	labelled := labels.SelectorFromSet(labels.Set{olmcore.LabelCopiedFrom: model.OriginalKey(c).Namespace})
	in.Deletion = Deletion{
		Namespaces: readNamespaces(reads, c, reach),
		Peers: read.Only(
			read.Indexed(reads, metav1.NamespaceAll, model.CRDTerms(c.Spec.CustomResourceDefinitions.Owned), termsOf), usesCRDsOf(c),
		),
		Copies: read.Only(
			read.List[*model.CSV](reads, metav1.NamespaceAll, labelled), func(o *model.CSV) bool { return isCopyOf(o, c) },
		),
		ClusterObjects: olmcore.Found[olmcore.Object](),
		WellKnown:      readWellKnown(reads, c),
	}
	if model.IsLabelValue(c.Name) {
		in.Deletion.ClusterObjects, in.Deletion.Unread = read.Owned(reads, read.ClusterKinds(in.Config.ClusterKinds), ofAnyOwner)
		in.Deletion.ClusterObjects = read.Only(in.Deletion.ClusterObjects, func(o olmcore.Object) bool {
			return model.OwnerOf(c).Owns(o.GetLabels()) || isCoOwned(o, c)
		})
	}
	readSharers(reads, c, &in.Deletion)
	if err := reads.Err(); err != nil {
		return Deletion{}, err
	}
	// The operands that Reconcile would request.
	f := factsOf(&in)
	for _, kind := range findOperands(f).ask {
		var lists []olmcore.Observed[olmcore.Object]
		for _, namespace := range f.reach { // the empty namespace stands for all
			lists = append(lists, read.Kind(reads, kind, namespace, nil))
		}
		if reads.Refused() {
			in.Refused = append(in.Refused, kind.GroupKind())
			continue
		}
		if in.Operands == nil {
			in.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{}
		}
		in.Operands[kind.GroupKind()] = read.Join(lists...)
	}
	if err := reads.Err(); err != nil {
		return Deletion{}, err
	}
	return in.Deletion, nil
}

// ofAnyOwner selects the objects with an owner label. A record of co-owners cannot be selected by label.
var ofAnyOwner = labels.NewSelector().Add(*hasOwner)

var hasOwner, _ = labels.NewRequirement(olmcore.LabelOwnerKind, selection.Exists, nil)

// readSharers reads the CSVs that need the objects which the cleanup would delete, and the InstallPlans and
// OperatorGroups that show which CSVs these are. The InstallPlans of all namespaces are read only if there are such
// objects.
func readSharers(reads *read.Reads, c *model.CSV, d *Deletion) {
	d.Sharers = olmcore.Found[*v1alpha1.ClusterServiceVersion]()
	d.InstallPlans = olmcore.Found[*v1alpha1.InstallPlan]()
	d.SharerGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	keys := deletedKeys(d.ClusterObjects.Items)
	if len(keys) == 0 {
		return
	}
	// 1. InstallPlans with a step for one of the objects, and those that install an owner.
	d.InstallPlans = read.Only(read.List[*v1alpha1.InstallPlan](reads, metav1.NamespaceAll, nil), func(p *v1alpha1.InstallPlan) bool {
		installs := func(o olmcore.Object) bool { return isCoOwned(o, c) && installsOwner(p, o) }
		return len(resolvingSharers(p, keys)) > 0 || slices.ContainsFunc(d.ClusterObjects.Items, installs)
	})
	// 2. The OperatorGroups of their namespaces.
	namespaces := sets.New[string]()
	for _, p := range d.InstallPlans.Items {
		namespaces.Insert(p.Namespace)
	}
	for _, namespace := range sets.List(namespaces) {
		d.SharerGroups = read.Join(d.SharerGroups, read.List[*operatorsv1.OperatorGroup](reads, namespace, nil))
	}
	// 3. The CSVs that the objects and the plans name.
	sharers := recordedSharers(c, d.ClusterObjects.Items)
	for _, p := range d.InstallPlans.Items {
		sharers[p.Namespace] = append(sharers[p.Namespace], resolvingSharers(p, keys)...)
	}
	for _, namespace := range slices.Sorted(maps.Keys(sharers)) {
		d.Sharers = read.Join(d.Sharers, read.Named[*v1alpha1.ClusterServiceVersion](reads, namespace, sharers[namespace]))
	}
	d.Sharers = read.Only(d.Sharers, func(o *model.CSV) bool { return !o.IsCopied() && o.UID != c.UID })
}

// deletedKeys returns the keys of the cluster-scoped objects that a stage of the cleanup would delete.
func deletedKeys(objects []olmcore.Object) sets.Set[olmcore.Key] {
	keys := sets.New[olmcore.Key]()
	for _, o := range objects {
		key := olmcore.KeyOf(o)
		if key.Namespace == metav1.NamespaceAll && stageOf(key) != "" && o.GetDeletionTimestamp() == nil {
			keys.Insert(key)
		}
	}
	return keys
}

// recordedSharers returns the names of the co-owners of objects, and of the owners of objects that record c as a
// co-owner, by namespace.
func recordedSharers(c *model.CSV, objects []olmcore.Object) map[string][]string {
	sharers := map[string][]string{}
	for _, o := range objects {
		for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
			sharers[owner.Namespace] = append(sharers[owner.Namespace], owner.Name)
		}
		owner, ok := olmcore.OwnerOf(o.GetLabels())
		if ok && isCoOwned(o, c) {
			sharers[owner.Namespace] = append(sharers[owner.Namespace], owner.Name)
		}
	}
	return sharers
}

// resolvingSharers returns the names of the CSVs for which an InstallPlan installed one of the objects.
func resolvingSharers(p *v1alpha1.InstallPlan, keys sets.Set[olmcore.Key]) (names []string) {
	for _, step := range p.Status.Plan {
		key, applied := model.StepKey(step)
		if applied && keys.Has(key) {
			names = append(names, step.Resolving)
		}
	}
	return names
}

// readNamespaces reads the namespace of the CSV, and those in which operands may be deleted.
func readNamespaces(reads *read.Reads, c *model.CSV, reach model.Targets) olmcore.Observed[*corev1.Namespace] {
	if reach.All() {
		return read.List[*corev1.Namespace](reads, metav1.NamespaceAll, nil)
	}
	return read.Named[*corev1.Namespace](reads, "", append([]string{c.Namespace}, reach...))
}

// termsOf adds the terms by which an original is found: the CRDs that it owns or requires.
func termsOf(c *model.CSV, add func(olmcore.Term)) {
	if c.IsCopied() {
		return
	}
	for _, term := range model.CRDTerms(slices.Concat(c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required)) {
		add(term)
	}
}

// usesCRDsOf returns the test for other originals that own or require a CRD which c owns.
func usesCRDsOf(c *model.CSV) func(*model.CSV) bool {
	ours := model.OwnedCRDNames(c)
	return func(o *model.CSV) bool {
		theirs := &o.Spec.CustomResourceDefinitions
		return !o.IsCopied() && o.UID != c.UID && (model.DescribesAnyCRD(theirs.Owned, ours) || model.DescribesAnyCRD(theirs.Required, ours))
	}
}

func readWellKnown(reads *read.Reads, c *model.CSV) olmcore.Observed[olmcore.Object] {
	var delegators, readers, services []string
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		services = append(services, d.GetName())
	}
	for _, b := range servingBindings(c) {
		if b.key.Namespace == "" {
			delegators = append(delegators, b.key.Name)
		} else {
			readers = append(readers, b.key.Name)
		}
	}
	return read.Join(
		untyped(read.Named[*rbacv1.ClusterRoleBinding](reads, "", delegators)),
		untyped(read.Named[*rbacv1.RoleBinding](reads, metav1.NamespaceSystem, readers)),
		untyped(read.Named[*apiregistrationv1.APIService](reads, "", services)),
	)
}

func untyped[T olmcore.Object](list olmcore.Observed[T]) olmcore.Observed[olmcore.Object] {
	objects := olmcore.Observed[olmcore.Object]{Complete: list.Complete}
	for _, o := range list.Items {
		objects.Items = append(objects.Items, o)
	}
	return objects
}
