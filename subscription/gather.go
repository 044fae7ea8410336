// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"context"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// namespacedKinds are the kinds in a CSV's namespace that get its component
// labels; clusterKinds, and in other namespaces spreadKinds, carry owner labels
// instead of references.
// olmKinds and crdKind carry the labels too, by rules of their own.
var (
	olmKinds = []schema.GroupVersionKind{
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind),
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind),
		v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind),
	}
	crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

	namespacedKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
	clusterKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	}
	spreadKinds = []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
)

// Gather reads everything that an Input of one namespace holds, apart from what
// only the caller knows: Now, Resolution, Live, Observations, Histories and
// LastRun stay empty. A failed read is an error. A namespace without
// Subscriptions is none: Reconcile has nothing to say about it.
//
// Without the Subscriptions, InstallPlans, ClusterServiceVersions and OperatorGroups of
// the namespace nothing can be decided: where they were not read the error is an
// olmcore.ErrNotRead that says what is unknown. The objects of an operator are read once
// its CSV carries a component label, and kinds of them that were not read are left out;
// Config.SkipComponents leaves all of them out.
func Gather(ctx context.Context, r olmcore.Reader, namespace string, config Config) (Input, error) {
	in := Input{Namespace: namespace, Config: config}
	var err error
	if in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil); err != nil {
		return Input{}, olmcore.Needed(err, "which operators are wanted")
	}
	if in.InstallPlans, err = olmcore.List[*v1alpha1.InstallPlan](ctx, r, namespace, nil); err != nil {
		return Input{}, olmcore.Needed(err, "what the Subscriptions wait for")
	}
	if in.OperatorGroups, err = olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil); err != nil {
		return Input{}, olmcore.Needed(err, "whether the namespace can be resolved")
	}
	names := csvNames(in.Subscriptions)
	for _, name := range names {
		c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, namespace, name)
		if err != nil {
			return Input{}, olmcore.Needed(err, "what is installed")
		}
		if c != nil {
			in.ClusterServiceVersions = append(in.ClusterServiceVersions, c)
		}
	}
	if len(in.ClusterServiceVersions) < len(names) {
		if err := gatherReplacements(ctx, r, &in); err != nil {
			return Input{}, err
		}
	}
	if config.SkipComponents {
		return in, nil
	}
	if in.Components, err = components(ctx, r, namespace, in.ClusterServiceVersions); err != nil {
		return Input{}, err
	}
	return in, nil
}

// csvNames returns the CSVs that the Subscriptions name, sorted.
func csvNames(subs []*v1alpha1.Subscription) []string {
	names := make([]string, 0, len(subs))
	for _, s := range subs {
		for _, name := range [...]string{s.Status.CurrentCSV, s.Status.InstalledCSV} {
			if name != "" {
				names = append(names, name)
			}
		}
		if s.Spec != nil && s.Spec.StartingCSV != "" && s.Annotations[annotationGeneratedBy] != "" {
			names = append(names, s.Spec.StartingCSV)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// gatherReplacements adds the CSVs that replace a version which is gone. Their names are
// not known, so that all CSVs are looked at, which is seldom needed.
func gatherReplacements(ctx context.Context, r olmcore.Reader, in *Input) error {
	gone := goneVersions(in)
	if len(gone) == 0 {
		return nil
	}
	all, err := olmcore.List[*v1alpha1.ClusterServiceVersion](ctx, r, in.Namespace, nil)
	if err != nil {
		return olmcore.Needed(err, "what replaced the versions that are gone")
	}
	read := ownersIndex(in.ClusterServiceVersions).byName
	for _, c := range all {
		if gone[c.Spec.Replaces] && read[c.Name] == nil {
			in.ClusterServiceVersions = append(in.ClusterServiceVersions, c)
		}
	}
	return nil
}

// goneVersions returns the versions that Subscriptions follow, whose plan is over or gone,
// and that are not there.
func goneVersions(in *Input) map[string]bool {
	there, underWay := map[string]bool{}, map[string]bool{}
	for _, c := range in.ClusterServiceVersions {
		there[c.Name] = true
	}
	for _, p := range in.InstallPlans {
		underWay[p.Name] = !isTerminal(p)
	}
	gone := map[string]bool{}
	for _, s := range in.Subscriptions {
		version, plan := s.Status.CurrentCSV, s.Annotations[annotationGeneratedBy]
		if ref := s.Status.InstallPlanRef; ref != nil {
			plan = ref.Name
		} else if s.Spec != nil && plan != "" {
			version = s.Spec.StartingCSV
		}
		if version != "" && !there[version] && !underWay[plan] {
			gone[version] = true
		}
	}
	return gone
}

func components(ctx context.Context, r olmcore.Reader, namespace string, csvs []*v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	csvs = slices.DeleteFunc(slices.Clone(csvs), func(c *v1alpha1.ClusterServiceVersion) bool { return isCopied(c) || !isLabelled(c) })
	if len(csvs) == 0 {
		return nil, nil
	}
	owners := ownersIndex(csvs)
	var found []olmcore.Object
	for _, kind := range namespacedKinds {
		objects, err := olmcore.ObserveKind(ctx, r, kind, namespace, nil)
		if err != nil {
			return nil, err
		}
		for _, o := range objects.Items {
			if owners.own(o) {
				found = append(found, o)
			}
		}
	}
	owned, err := labels.NewRequirement(olmcore.LabelOwnerNamespace, selection.Equals, []string{namespace})
	if err != nil {
		return nil, &olmcore.InputError{Field: "namespace", Problem: "is no label value: " + err.Error()}
	}
	for _, kind := range slices.Concat(clusterKinds, spreadKinds) {
		objects, err := olmcore.ObserveKind(ctx, r, kind, "", labels.NewSelector().Add(*owned))
		if err != nil {
			return nil, err
		}
		for _, o := range objects.Items {
			if o.GetNamespace() == namespace {
				continue // found already
			}
			if owners.own(o) {
				found = append(found, o)
			}
		}
	}
	crds, err := ownedCRDs(ctx, r, csvs)
	return append(found, crds...), err
}

func ownedCRDs(ctx context.Context, r olmcore.Reader, csvs []*v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	var names []string
	for _, c := range csvs {
		for i := range c.Spec.CustomResourceDefinitions.Owned {
			names = append(names, c.Spec.CustomResourceDefinitions.Owned[i].Name)
		}
	}
	slices.Sort(names)
	crds, err := olmcore.ObserveNamed[*apiextensionsv1.CustomResourceDefinition](ctx, r, "", names...)
	if err != nil {
		return nil, err
	}
	var found []olmcore.Object
	for _, crd := range crds.Items {
		found = append(found, crd)
	}
	return found, nil
}

func isLabelled(c *v1alpha1.ClusterServiceVersion) bool {
	for key := range c.Labels {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
			return true
		}
	}
	return false
}

// owners are CSVs of one namespace, by name and by UID.
type owners struct {
	byName map[string]*v1alpha1.ClusterServiceVersion
	byUID  map[types.UID]*v1alpha1.ClusterServiceVersion
}

func ownersIndex(csvs []*v1alpha1.ClusterServiceVersion) owners {
	index := owners{byName: map[string]*v1alpha1.ClusterServiceVersion{}, byUID: map[types.UID]*v1alpha1.ClusterServiceVersion{}}
	for _, c := range csvs {
		index.byName[c.Name], index.byUID[c.UID] = c, c
	}
	return index
}

// own reports whether an object belongs to one of them.
func (index owners) own(o olmcore.Object) bool {
	for _, r := range o.GetOwnerReferences() {
		if c := index.byUID[r.UID]; c != nil && belongsTo(o, c) {
			return true
		}
	}
	named, _ := olmcore.OwnerOf(o.GetLabels())
	c := index.byName[named.Name]
	return c != nil && belongsTo(o, c)
}

// belongsTo reports whether a CSV owns an object, by reference or by labels.
func belongsTo(o olmcore.Object, c *v1alpha1.ClusterServiceVersion) bool {
	if olmcore.OwnedBy(o, c.UID) {
		return true
	}
	owner := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	return owner.Owns(o.GetLabels())
}

// GatherCatalogs reads the CatalogSources that a namespace is resolved from: its
// own, and those of the global catalog namespace, whose name may be empty for
// none. Probes and Entries are the caller's to add. A failed read is an error; where
// they were not read an olmcore.ErrNotRead, with which Input.Catalogs stays nil.
func GatherCatalogs(ctx context.Context, r olmcore.Reader, namespace, global string) (*Catalogs, error) {
	own, err := olmcore.List[*v1alpha1.CatalogSource](ctx, r, namespace, nil)
	if err != nil {
		return nil, olmcore.Needed(err, "what can be installed")
	}
	c := &Catalogs{Sources: own}
	if global != "" && global != namespace {
		all, err := olmcore.List[*v1alpha1.CatalogSource](ctx, r, global, nil)
		if err != nil {
			return nil, olmcore.Needed(err, "what can be installed")
		}
		c.Sources = append(slices.Clone(own), all...)
	}
	slices.SortFunc(c.Sources, func(a, b *v1alpha1.CatalogSource) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return c, nil
}

// GatherOperator reads what carries one component label, and the Operator object
// of its name. A failed read is an error, and so is a kind that was not read: its status
// would lack what is there.
func GatherOperator(ctx context.Context, r olmcore.Reader, name string) (OperatorInput, error) {
	in := OperatorInput{Name: name}
	var err error
	if in.Operator, err = olmcore.Get[*operatorsv1.Operator](ctx, r, "", name); err != nil {
		return OperatorInput{}, olmcore.Needed(err, "everything about an Operator")
	}
	labelled, err := labels.NewRequirement(olmcore.ComponentLabelPrefix+name, selection.Exists, nil)
	if err != nil {
		return in, nil // Operator says so
	}
	for _, kinds := range [...][]schema.GroupVersionKind{olmKinds, namespacedKinds, clusterKinds, {crdKind}} {
		for _, kind := range kinds {
			objects, err := olmcore.ListKind(ctx, r, kind, "", labels.NewSelector().Add(*labelled))
			if err != nil {
				return OperatorInput{}, olmcore.Needed(err, "what belongs to an operator")
			}
			in.Components = append(in.Components, objects...)
		}
	}
	return in, nil
}
