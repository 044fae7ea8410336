// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"context"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads what Reconcile looks at. A CSV that does not exist is an error for
// which apierrors.IsNotFound holds, and one that was not read an error for which
// errors.Is(err, olmcore.ErrNotRead) does. A list that was not read is incomplete;
// any other read that failed is an error too, never an empty list. Now, KubernetesVersion, ServedAPIs, LastRun, Judged and Checkpoint
// are the caller's to fill in.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about a ClusterServiceVersion")
	}
	if c == nil {
		return Input{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "clusterserviceversions"}, key.Name)
	}
	g := gatherer{ctx: ctx, r: r, in: Input{ClusterServiceVersion: c, Config: config}}
	for _, read := range []func(){
		g.groups, g.definitions, g.deployments, g.neighbours, g.subscriptions, g.apiServices, g.permissions, g.grants,
	} {
		if read(); g.err != nil {
			return Input{}, g.err
		}
	}
	g.in.Deletion, err = cleanup.Gather(ctx, r, g.in.ofCleanup())
	return g.in, err
}

type gatherer struct {
	ctx context.Context
	r   olmcore.Reader
	in  Input
	err error
}

// list reads the objects of a kind; after the first error it reads nothing more.
// What was not read is an incomplete list.
func list[T olmcore.Object](g *gatherer, namespace string, selector labels.Selector) (found olmcore.Observed[T]) {
	if g.err == nil {
		found, g.err = olmcore.Observe[T](g.ctx, g.r, namespace, selector)
	}
	return found
}

// named reads objects by name, in the order of names, each once.
func named[T olmcore.Object](g *gatherer, namespace string, names []string) (found olmcore.Observed[T]) {
	if g.err == nil {
		found, g.err = olmcore.ObserveNamed[T](g.ctx, g.r, namespace, names...)
	}
	return found
}

// only returns what of a list a test is true for.
func only[T any](list olmcore.Observed[T], keep func(T) bool) olmcore.Observed[T] {
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(o T) bool { return !keep(o) })
	return list
}

func (g *gatherer) groups() {
	c := g.in.ClusterServiceVersion
	g.in.OperatorGroups = list[*operatorsv1.OperatorGroup](g, c.Namespace, nil)
	g.in.OtherGroups, g.in.Rivals = olmcore.Found[*operatorsv1.OperatorGroup](), olmcore.Found[*v1alpha1.ClusterServiceVersion]()
	if providedCount(c) == 0 {
		return
	}
	ours := providedAPIs(c)
	g.in.OtherGroups = only(g.groupsNaming(ours), func(o *operatorsv1.OperatorGroup) bool {
		return o.Namespace != c.Namespace && slices.ContainsFunc(ours, func(a api) bool { return a.isListed(groupAPIs(o)) })
	})
	seen := map[string]bool{}
	for _, o := range g.in.OtherGroups.Items {
		if seen[o.Namespace] {
			continue
		}
		seen[o.Namespace] = true
		rivals := only(g.providersIn(o.Namespace, c), func(r *version) bool { return !isCopied(r) && providesSame(c, r) })
		g.in.Rivals.Complete = g.in.Rivals.Complete && rivals.Complete
		g.in.Rivals.Items = append(g.in.Rivals.Items, rivals.Items...)
	}
}

func (g *gatherer) definitions() {
	var names []string
	spec := &g.in.ClusterServiceVersion.Spec.CustomResourceDefinitions
	for _, l := range [...][]v1alpha1.CRDDescription{spec.Owned, spec.Required} {
		for i := range l {
			names = append(names, l[i].Name)
		}
	}
	g.in.CustomResourceDefinitions = named[*apiextensionsv1.CustomResourceDefinition](g, "", names)
}

func (g *gatherer) deployments() {
	c := g.in.ClusterServiceVersion
	var names []string
	for i := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Name)
	}
	found := named[*appsv1.Deployment](g, c.Namespace, names)
	if isLabelValue(c.Name) {
		owned := list[*appsv1.Deployment](g, c.Namespace, ownerSelector(c))
		found.Complete = found.Complete && owned.Complete
		declared := map[string]bool{}
		for _, name := range names {
			declared[name] = true
		}
		for _, d := range owned.Items {
			if !declared[d.Name] {
				found.Items = append(found.Items, d)
			}
		}
	}
	g.in.Deployments = found
}

func ownerSelector(c *version) labels.Selector {
	return labels.SelectorFromSet(ownerOf(c).Labels())
}

// neighbours keeps, of the CSVs of the namespace, those that matter to this one,
// so that a decision costs the same beside a thousand others.
func (g *gatherer) neighbours() {
	c := g.in.ClusterServiceVersion
	all := g.near(c, g.toldOf())
	others := only(all, func(o *version) bool { return o.Name != c.Name && !isCopied(o) }).Items
	sharesDeployment := g.sharesDeployment()
	matters := func(o *version) bool {
		return ownsSameCRD(c, o) || providesSame(c, o) || sharesDeployment(o) || g.cameAlongside(o)
	}
	line := lineOf(c, others)
	g.in.Neighbours = olmcore.Observed[*version]{
		Complete: all.Complete, Items: slices.DeleteFunc(others, func(o *version) bool { return !line[o.Name] && !matters(o) }),
	}
	g.in.OperatorConditions = named[*operatorsv2.OperatorCondition](g, c.Namespace, []string{c.Spec.Replaces})
}

// lineOf returns the names that are connected with c by spec.replaces, in either
// direction and however far, its own among them.
func lineOf(c *version, others []*version) map[string]bool {
	line := map[string]bool{c.Name: true, c.Spec.Replaces: true}
	touches := func(o *version) bool {
		r := o.Spec.Replaces
		return o.Name == c.Spec.Replaces || r == c.Name || r != "" && r == c.Spec.Replaces
	}
	if !slices.ContainsFunc(others, touches) {
		return line
	}
	next := map[string][]string{} // who names whom, both ways
	for _, o := range others {
		if r := o.Spec.Replaces; r != "" {
			next[r], next[o.Name] = append(next[r], o.Name), append(next[o.Name], r)
		}
	}
	for queue := []string{c.Name, c.Spec.Replaces}; len(queue) > 0; queue = queue[1:] {
		for _, name := range next[queue[0]] {
			if !line[name] {
				line[name], queue = true, append(queue, name)
			}
		}
	}
	return line
}

// sharesDeployment returns the test for CSVs that have a Deployment in common with
// this one. It compares with the strategy too: a clean-up has deleted the live
// Deployments when it asks whose bindings for serving certificates are.
func (g *gatherer) sharesDeployment() func(o *version) bool {
	declared, owners := map[string]bool{}, map[olmcore.Owner]bool{}
	for _, spec := range g.in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		declared[spec.Name] = true
	}
	for _, d := range g.in.Deployments.Items {
		if owner, ok := olmcore.OwnerOf(d.Labels); ok {
			owner.UID = ""
			owners[owner] = true
		}
	}
	return func(o *version) bool {
		return owners[ownerOf(o)] || slices.ContainsFunc(o.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(d v1alpha1.StrategyDeploymentSpec) bool {
			return declared[d.Name]
		})
	}
}

// toldOf returns the names of the CSVs that live Deployments and definitions tell of, and
// maybe others.
func (g *gatherer) toldOf() []string {
	var names []string
	for _, d := range g.in.Deployments.Items {
		if owner, ok := olmcore.OwnerOf(d.Labels); ok {
			names = append(names, owner.Name)
		}
	}
	for _, crd := range g.in.CustomResourceDefinitions.Items {
		for key, value := range crd.Annotations {
			if _, name, ok := strings.Cut(value, "/"); ok && strings.HasPrefix(key, alongsidePrefix) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (g *gatherer) cameAlongside(o *version) bool {
	for _, crd := range g.in.CustomResourceDefinitions.Items {
		for key, value := range crd.Annotations {
			if strings.HasPrefix(key, alongsidePrefix) && value == o.Namespace+"/"+o.Name {
				return true
			}
		}
	}
	return false
}

func (g *gatherer) subscriptions() {
	c := g.in.ClusterServiceVersion
	g.in.Subscriptions = only(g.subscriptionsNaming(c.Namespace, c.Name), func(s *v1alpha1.Subscription) bool { return isInstalledBy(c, s) })
}

func (g *gatherer) apiServices() {
	var names []string
	for _, d := range g.in.ClusterServiceVersion.Spec.APIServiceDefinitions.Required {
		names = append(names, d.Version+"."+d.Group)
	}
	g.in.APIServices = named[*apiregistrationv1.APIService](g, "", names)
}

// permissions keeps the bindings of the CSV's ServiceAccounts and the roles that
// they reference.
func (g *gatherer) permissions() {
	c := g.in.ClusterServiceVersion
	var accounts []string
	for _, l := range permissionLists(c) {
		for i := range l {
			accounts = append(accounts, l[i].ServiceAccountName)
		}
	}
	slices.Sort(accounts)
	accounts = slices.Compact(accounts)
	g.in.ServiceAccounts = named[*corev1.ServiceAccount](g, c.Namespace, accounts)
	if len(accounts) == 0 {
		g.in.Roles, g.in.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
		g.in.ClusterRoles, g.in.ClusterRoleBindings = olmcore.Found[*rbacv1.ClusterRole](), olmcore.Found[*rbacv1.ClusterRoleBinding]()
		return
	}
	binds := func(subjects []rbacv1.Subject, namespace string) bool {
		return slices.ContainsFunc(accounts, func(name string) bool {
			return account{c.Namespace, name}.isBound(subjects, namespace)
		})
	}
	// While something is missing, what the InstallPlan made is looked up by name too.
	var planned [2][]string
	if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		for scope, l := range permissionLists(c) {
			for i := range l {
				if name, err := permissionName(c, scope, &l[i]); err == nil {
					planned[scope] = append(planned[scope], name)
				}
			}
		}
	}
	roles, clusterRoles := slices.Clone(planned[0]), slices.Clone(planned[1])
	local := g.localBindingsNaming(c.Namespace, accounts, planned[0])
	for _, b := range local.Items {
		if !binds(b.Subjects, c.Namespace) && !slices.Contains(planned[0], b.Name) {
			continue
		}
		g.in.RoleBindings.Items = append(g.in.RoleBindings.Items, b)
		if b.RoleRef.Kind == "ClusterRole" {
			clusterRoles = append(clusterRoles, b.RoleRef.Name)
		} else {
			roles = append(roles, b.RoleRef.Name)
		}
	}
	global := g.bindingsNaming(c.Namespace, accounts, planned[1])
	for _, b := range global.Items {
		if binds(b.Subjects, "") || slices.Contains(planned[1], b.Name) {
			g.in.ClusterRoleBindings.Items = append(g.in.ClusterRoleBindings.Items, b)
			clusterRoles = append(clusterRoles, b.RoleRef.Name)
		}
	}
	g.in.RoleBindings.Complete, g.in.ClusterRoleBindings.Complete = local.Complete, global.Complete
	g.in.Roles = named[*rbacv1.Role](g, c.Namespace, roles)
	g.in.ClusterRoles = named[*rbacv1.ClusterRole](g, "", clusterRoles)
	g.aggregated()
}

// aggregated adds the roles that an aggregated ClusterRole without rules selects.
func (g *gatherer) aggregated() {
	for _, role := range g.in.ClusterRoles.Items {
		if len(role.Rules) > 0 || role.AggregationRule == nil {
			continue
		}
		for i := range role.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
			if err != nil {
				continue
			}
			parts := list[*rbacv1.ClusterRole](g, "", selector)
			g.in.ClusterRoles.Complete = g.in.ClusterRoles.Complete && parts.Complete
			for _, part := range parts.Items {
				if indexNamed(g.in.ClusterRoles.Items, "", part.Name) < 0 {
					g.in.ClusterRoles.Items = append(g.in.ClusterRoles.Items, part)
				}
			}
		}
	}
}
