// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Reconcile. The caller sets Now, KubernetesVersion, ServedAPIs, LastRun, Judged, Issued,
// Inspected and Checkpoint. If the CSV does not exist, apierrors.IsNotFound reports true for the error. If the Reader
// does not read CSVs, errors.Is(err, olmcore.ErrNotRead) is true. A list of another kind that the Reader does not read
// is incomplete in the Input. Any other failed read is an error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about a ClusterServiceVersion")
	}
	if c == nil {
		return Input{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "clusterserviceversions"}, key.Name)
	}
	in := Input{ClusterServiceVersion: c, Config: config}
	if c.IsCopied() {
		return in, nil // no list matters to a copy
	}
	reads := read.From(ctx, r)
	in.OperatorGroups = read.List[*operatorsv1.OperatorGroup](reads, c.Namespace, nil)
	in.OtherGroups, in.OtherProviders = readOtherGroups(reads, c, &in)
	requirements.gather(reads, &in)
	in.Deployments = readDeployments(reads, c)
	gatherServices(reads, &in)
	in.Neighbours = readNeighbours(reads, &in)
	in.OperatorConditions = read.Named[*operatorsv2.OperatorCondition](reads, c.Namespace, []string{c.Spec.Replaces})
	in.Subscriptions = read.Indexed(reads, c.Namespace, []olmcore.Term{model.OwnerTerm(c)}, addTerms(model.SubscriptionTerms))
	if c.Status.Phase == v1alpha1.CSVPhaseInstallReady || isRefused(c) {
		in.Grants = readGrants(reads, &in)
	}
	if err := reads.Err(); err != nil {
		return Input{}, err
	}
	in.Deletion, err = cleanup.Gather(ctx, r, in.ofCleanup())
	if err != nil {
		return Input{}, err
	}
	return in, nil
}

// readOtherGroups reads the OperatorGroups of other namespaces that list an API of the CSV and share a target namespace
// with its own group. It also reads the CSVs of their namespaces that provide an API of the CSV.
func readOtherGroups(
	r *read.Reads, c *version, in *Input,
) (groups olmcore.Observed[*operatorsv1.OperatorGroup], providers olmcore.Observed[*version]) {
	provided := model.APITerms(model.ProvidedAPIs(c))
	own, _ := model.OnlyGroup(in.OperatorGroups.Items, c.Namespace)
	if len(provided) == 0 || own == nil {
		return olmcore.Found[*operatorsv1.OperatorGroup](), olmcore.Found[*version]()
	}
	groups = read.Only(read.Indexed(r, "", provided, addTerms(termsOfGroup)), func(g *operatorsv1.OperatorGroup) bool {
		return g.Namespace != c.Namespace && model.GroupsIntersect(own, g)
	})
	var lists []olmcore.Observed[*version]
	for _, g := range groups.Items {
		lists = append(lists, read.Only(read.Indexed(r, g.Namespace, provided, termsOf), func(o *version) bool { return !o.IsCopied() }))
	}
	return groups, read.Join(lists...)
}

// readDeployments reads the Deployments of the install strategy, and those with the owner labels of the CSV.
func readDeployments(r *read.Reads, c *version) olmcore.Observed[*appsv1.Deployment] {
	var names []string
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, d.Name)
	}
	found := read.Named[*appsv1.Deployment](r, c.Namespace, names)
	if !model.IsLabelValue(c.Name) {
		return found
	}
	return read.Join(found, read.List[*appsv1.Deployment](r, c.Namespace, labels.SelectorFromSet(model.OwnerOf(c).Labels())))
}

// addTerms returns a function that adds the terms of an object, for use with an index.
func addTerms[T olmcore.Object](terms func(T) []olmcore.Term) func(o T, add func(olmcore.Term)) {
	return func(o T, add func(olmcore.Term)) { addAll(add, terms(o)) }
}

// Kinds of terms that only the neighbours of a CSV have.
const (
	termName       = "name"
	termReplaces   = "replaces"
	termDeployment = "deployment"
)

// termsOf adds the terms by which a CSV is found as a neighbour of others.
func termsOf(c *version, add func(olmcore.Term)) {
	add(olmcore.Term{Of: termName, Value: c.Name})
	if c.Spec.Replaces != "" {
		add(olmcore.Term{Of: termReplaces, Value: c.Spec.Replaces})
	}
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		add(olmcore.Term{Of: termDeployment, Value: d.Name})
	}
	addAll(add, model.CRDTerms(c.Spec.CustomResourceDefinitions.Owned))
	relatedGroups.needed(c, add)
}

// readNeighbours reads the CSVs of the namespace that the decision about this CSV can depend on. It uses an index, so
// the cost does not depend on the number of other CSVs. A neighbour has a name, an API, a CRD or a Deployment in common
// with the CSV, or is named by one of its objects. Deployments of the install strategies are considered in addition to
// existing Deployments, because a cleanup deletes Deployments before it needs the owners of the bindings for serving
// certificates.
func readNeighbours(r *read.Reads, in *Input) olmcore.Observed[*version] {
	c := in.ClusterServiceVersion
	var terms []olmcore.Term
	termsOf(c, func(t olmcore.Term) { terms = append(terms, t) })
	for _, d := range in.Deployments.Items {
		if owner, ok := olmcore.OwnerOf(d.Labels); ok {
			terms = append(terms, olmcore.Term{Of: termName, Value: owner.Name})
		}
	}
	for _, secret := range in.Serving.Secrets.Items {
		for _, owner := range secret.OwnerReferences {
			if model.IsCSVReference(owner) {
				terms = append(terms, olmcore.Term{Of: termName, Value: owner.Name})
			}
		}
	}
	for _, crd := range slices.Concat(in.CustomResourceDefinitions.Items, in.GroupDefinitions.Items) {
		for _, noted := range model.InstalledAlongside(crd) {
			terms = append(terms, olmcore.Term{Of: termName, Value: noted.Name})
		}
	}
	// CSVs that spec.replaces connects with this one, directly or through others, in both directions.
	found := map[string]bool{c.Name: true, c.Spec.Replaces: true}
	for queue := []string{c.Name, c.Spec.Replaces}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == "" {
			continue
		}
		links := []olmcore.Term{{Of: termName, Value: queue[0]}, {Of: termReplaces, Value: queue[0]}}
		terms = append(terms, links...)
		for _, o := range read.Indexed(r, c.Namespace, links, termsOf).Items {
			for _, name := range []string{o.Name, o.Spec.Replaces} {
				if !found[name] {
					found[name], queue = true, append(queue, name)
				}
			}
		}
	}
	return read.Only(read.Indexed(r, c.Namespace, terms, termsOf), func(o *version) bool { return model.IsNeighbour(c, o) })
}

// readGrants reads the objects that the permissions of the installing account depend on.
func readGrants(r *read.Reads, in *Input) olmcore.Observed[olmcore.Ref] {
	c := in.ClusterServiceVersion
	installer := rbac.Account{Namespace: c.Namespace}
	if g, _ := model.OnlyGroup(in.OperatorGroups.Items, c.Namespace); g != nil {
		installer.Name = g.Spec.ServiceAccountName
	}
	bindings := read.List[*rbacv1.RoleBinding](r, c.Namespace, nil)
	global := read.Only(read.List[*rbacv1.ClusterRoleBinding](r, "", nil), func(b *rbacv1.ClusterRoleBinding) bool {
		return installer.Name != "" && installer.IsBound(b.Subjects, "")
	})
	var clusterRoles []string
	for _, b := range bindings.Items {
		if b.RoleRef.Kind == "ClusterRole" {
			clusterRoles = append(clusterRoles, b.RoleRef.Name)
		}
	}
	for _, b := range global.Items {
		clusterRoles = append(clusterRoles, b.RoleRef.Name)
	}
	grants := olmcore.Observed[olmcore.Ref]{Complete: true}
	addRefs(&grants, bindings)
	addRefs(&grants, global)
	addRefs(&grants, read.List[*rbacv1.Role](r, c.Namespace, nil))
	addRefs(&grants, read.List[*corev1.ServiceAccount](r, c.Namespace, nil))
	addRefs(&grants, read.Named[*rbacv1.ClusterRole](r, "", clusterRoles))
	return grants
}

// addRefs adds references to the objects of a list. refs is incomplete if the list is.
func addRefs[T olmcore.Object](refs *olmcore.Observed[olmcore.Ref], list olmcore.Observed[T]) {
	refs.Complete = refs.Complete && list.Complete
	for _, o := range list.Items {
		refs.Items = append(refs.Items, olmcore.RefOf(o))
	}
}
