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
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/csv/internal/requirement"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at. A CSV that does not exist is an error for
// which apierrors.IsNotFound holds, and one that was not read an error for which
// errors.Is(err, olmcore.ErrNotRead) does. A list that was not read is incomplete;
// any other read that failed is an error too, never an empty list. Now,
// KubernetesVersion, ServedAPIs, LastRun, Judged and Checkpoint are the caller's to
// fill in.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about a ClusterServiceVersion")
	}
	if c == nil {
		return Input{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "clusterserviceversions"}, key.Name)
	}
	reads := read.From(ctx, r)
	in := Input{ClusterServiceVersion: c, Config: config}
	in.OperatorGroups = read.List[*operatorsv1.OperatorGroup](reads, c.Namespace, nil)
	in.OtherGroups, in.OtherProviders = readOtherGroups(reads, c)
	in.setNeeds(requirement.All.Gather(reads, c))
	in.Deployments = readDeployments(reads, c)
	in.Neighbours = readNeighbours(reads, &in)
	in.OperatorConditions = read.Named[*operatorsv2.OperatorCondition](reads, c.Namespace, []string{c.Spec.Replaces})
	in.Subscriptions = readSubscriptions(reads, c)
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

// readOtherGroups reads the OperatorGroups of other namespaces that list an API which
// the CSV provides, and the CSVs of their namespaces that provide one.
func readOtherGroups(r *read.Reads, c *version) (groups olmcore.Observed[*operatorsv1.OperatorGroup], providers olmcore.Observed[*version]) {
	provided := group.Provided(c)
	if len(provided) == 0 {
		return olmcore.Found[*operatorsv1.OperatorGroup](), olmcore.Found[*version]()
	}
	ours, terms := sets.New(provided...), make([]string, len(provided))
	for i, a := range provided {
		terms[i] = a.String()
	}
	all := read.Indexed(r, "", terms, func(o *operatorsv1.OperatorGroup) []string {
		var names []string
		for _, a := range group.Parse(group.Annotation(o)) {
			names = append(names, a.String())
		}
		return names
	})
	groups = read.Only(all, func(o *operatorsv1.OperatorGroup) bool {
		return o.Namespace != c.Namespace && slices.ContainsFunc(group.Parse(group.Annotation(o)), ours.Has)
	})
	var lists []olmcore.Observed[*version]
	seen, provides := map[string]bool{}, group.SharesAPI(c)
	for _, g := range groups.Items {
		if !seen[g.Namespace] {
			seen[g.Namespace] = true
			lists = append(lists, read.Only(read.Indexed(r, g.Namespace, apiTerms(c), termsOfVersion), func(o *version) bool {
				return !o.IsCopied() && provides(o)
			}))
		}
	}
	return groups, read.Join(lists...)
}

func readDeployments(r *read.Reads, c *version) olmcore.Observed[*appsv1.Deployment] {
	var names []string
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, d.Name)
	}
	found := read.Named[*appsv1.Deployment](r, c.Namespace, names)
	if !owned.IsLabelValue(c.Name) {
		return found
	}
	labelled := read.List[*appsv1.Deployment](r, c.Namespace, labels.SelectorFromSet(owned.By(c).Labels()))
	declared := owned.Deployments(c)
	return read.Join(found, read.Only(labelled, func(d *appsv1.Deployment) bool { return !declared.Has(d.Name) }))
}

func readSubscriptions(r *read.Reads, c *version) olmcore.Observed[*v1alpha1.Subscription] {
	all := read.Indexed(r, c.Namespace, []string{c.Name}, func(s *v1alpha1.Subscription) []string {
		return []string{s.Status.InstalledCSV, s.Status.CurrentCSV}
	})
	return read.Only(all, func(s *v1alpha1.Subscription) bool { return owned.IsInstalledBy(c, s) })
}

// readNeighbours keeps, of the CSVs of the namespace, those that matter to this one, so
// that a decision costs the same beside a thousand others.
func readNeighbours(r *read.Reads, in *Input) olmcore.Observed[*version] {
	c := in.ClusterServiceVersion
	terms := termsOfVersion(c)
	owners, alongside := map[olmcore.Owner]bool{}, map[types.NamespacedName]bool{}
	for _, d := range in.Deployments.Items {
		if owner, ok := olmcore.OwnerOf(d.Labels); ok {
			owner.UID = ""
			owners[owner] = true
			terms = append(terms, termName+owner.Name)
		}
	}
	for _, crd := range in.CustomResourceDefinitions.Items {
		for _, noted := range owned.Alongside(crd) {
			alongside[noted] = true
			terms = append(terms, termName+noted.Name)
		}
	}
	if r.IsIndexed() {
		terms = append(terms, readChainTerms(r, c)...)
	}
	others := read.Only(read.Indexed(r, c.Namespace, terms, termsOfVersion), func(o *version) bool { return chain.IsNeighbour(c, o) })
	connected, crds, deployments, provides := connectedNames(c, others.Items), owned.OwnedCRDs(c), owned.Deployments(c), group.SharesAPI(c)
	return read.Only(others, func(o *version) bool {
		return connected[o.Name] || owners[owned.By(o)] || alongside[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] ||
			owned.DescribesAny(o.Spec.CustomResourceDefinitions.Owned, crds) || provides(o) ||
			// The strategies count too, not the live Deployments alone: a cleanup has deleted those
			// when it asks whose bindings for serving certificates are.
			owned.Deployments(o).Intersection(deployments).Len() > 0
	})
}

// connectedNames returns the names that are connected with c by spec.replaces, in
// either direction and however far, its own among them.
func connectedNames(c *version, others []*version) map[string]bool {
	next := map[string][]string{} // which names which, both ways
	for _, o := range others {
		if r := o.Spec.Replaces; r != "" {
			next[r], next[o.Name] = append(next[r], o.Name), append(next[o.Name], r)
		}
	}
	return reachable(c, func(name string) []string { return next[name] })
}

// reachable returns the names that spec.replaces connects with c, given the direct
// connections of a name.
func reachable(c *version, connections func(name string) []string) map[string]bool {
	found := map[string]bool{c.Name: true, c.Spec.Replaces: true}
	for queue := []string{c.Name, c.Spec.Replaces}; len(queue) > 0; queue = queue[1:] {
		for _, name := range connections(queue[0]) {
			if !found[name] {
				found[name], queue = true, append(queue, name)
			}
		}
	}
	return found
}

// readChainTerms returns the terms of the CSVs that spec.replaces connects with c.
func readChainTerms(r *read.Reads, c *version) []string {
	var terms []string
	reachable(c, func(name string) []string {
		if name == "" {
			return nil
		}
		terms = append(terms, termName+name)
		var names []string
		for _, o := range read.Indexed(r, c.Namespace, []string{termName + name}, termsOfVersion).Items {
			names = append(names, o.Name)
			if o.Spec.Replaces != "" {
				names = append(names, o.Spec.Replaces)
			}
		}
		return names
	})
	return terms
}

// Terms of CSVs: what stands in front of a name says of what it is one.
const (
	termName       = "name/" // its own name, and that of the CSV which it replaces
	termDeployment = "deployment/"
	termCRD        = "crd/"
	termAPI        = "api/"
)

func termsOfVersion(c *version) []string {
	terms := []string{termName + c.Name}
	if c.Spec.Replaces != "" {
		terms = append(terms, termName+c.Spec.Replaces)
	}
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		terms = append(terms, termDeployment+d.Name)
	}
	for _, d := range c.Spec.CustomResourceDefinitions.Owned {
		terms = append(terms, termCRD+d.Name)
	}
	return append(terms, apiTerms(c)...)
}

func apiTerms(c *version) []string {
	var terms []string
	for _, a := range group.Provided(c) {
		terms = append(terms, termAPI+a.String())
	}
	return terms
}

// readGrants reads what the rights of the account that installs depend on.
func readGrants(r *read.Reads, in *Input) olmcore.Observed[olmcore.Ref] {
	c := in.ClusterServiceVersion
	installer := rbac.Account{Namespace: c.Namespace}
	if g, _ := group.Alone(in.OperatorGroups.Items, c.Namespace); g != nil {
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

func addRefs[T olmcore.Object](refs *olmcore.Observed[olmcore.Ref], list olmcore.Observed[T]) {
	refs.Complete = refs.Complete && list.Complete
	for _, o := range list.Items {
		refs.Items = append(refs.Items, olmcore.RefOf(o))
	}
}
