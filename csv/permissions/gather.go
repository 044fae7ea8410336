// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Reconcile. The caller sets Now, LastRun and Checkpoint. If the ClusterServiceVersion does
// not exist, apierrors.IsNotFound reports true for the error. If the Reader does not read a kind (olmcore.ErrNotRead),
// the list of that kind is incomplete in the Input. Gather returns the error of any other failed read.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName) (Input, error) {
	c, err := olmcore.Require[*v1alpha1.ClusterServiceVersion](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, inputs.Needed(err, "everything about a ClusterServiceVersion")
	}
	in := Input{ClusterServiceVersion: c}
	if !isDecided(c) {
		return in, nil
	}
	grants, _ := grantsOf(c)
	reads := read.From(ctx, r)
	in.OperatorGroups = read.List[*operatorsv1.OperatorGroup](reads, c.Namespace, nil)
	where := scopeOf(c, in.OperatorGroups.Items)
	apis := providedAPIs(c)
	gatherRoles(reads, &in, grants, where)
	gatherClusterRoles(reads, &in, grants, where, apis)
	gatherServers(reads, &in, apis)
	gatherProof(reads, &in, grants, where)
	if err := reads.Err(); err != nil {
		return Input{}, err
	}
	return in, nil
}

// gatherRoles reads the objects of the operator's namespace and of the target namespaces. It reads none if the
// OperatorGroup targets no other namespace.
func gatherRoles(reads *read.Reads, in *Input, grants []grant, where scope) {
	c := in.ClusterServiceVersion
	in.Copies, in.ServiceAccounts = olmcore.Found[*v1alpha1.ClusterServiceVersion](), olmcore.Found[*corev1.ServiceAccount]()
	in.Roles, in.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	if !where.cluster && len(where.namespaces) == 0 {
		return
	}
	names, accounts := namesAndAccounts(grants)
	in.ServiceAccounts = read.Named[*corev1.ServiceAccount](reads, c.Namespace, accounts)
	copies := []olmcore.Observed[*v1alpha1.ClusterServiceVersion]{in.Copies}
	roles := []olmcore.Observed[*rbacv1.Role]{
		read.Named[*rbacv1.Role](reads, c.Namespace, names), claimed[*rbacv1.Role](reads, c),
	}
	bindings := []olmcore.Observed[*rbacv1.RoleBinding]{
		read.Named[*rbacv1.RoleBinding](reads, c.Namespace, names), claimed[*rbacv1.RoleBinding](reads, c),
	}
	for _, namespace := range where.namespaces {
		owner := model.OwnerOf(c)
		owner.Namespace = namespace
		ours := owner.Labels()
		ours[olmcore.LabelCopiedFrom] = c.Namespace
		selector := labels.SelectorFromSet(ours)
		copies = append(copies, read.Named[*v1alpha1.ClusterServiceVersion](reads, namespace, []string{c.Name}))
		roles = append(roles, read.Named[*rbacv1.Role](reads, namespace, names), read.List[*rbacv1.Role](reads, namespace, selector))
		bindings = append(bindings,
			read.Named[*rbacv1.RoleBinding](reads, namespace, names), read.List[*rbacv1.RoleBinding](reads, namespace, selector))
	}
	original := model.OriginalKey(c)
	in.Copies = read.Only(read.Join(copies...), func(o *model.CSV) bool { return model.IsCopyOf(original, o) })
	in.Roles, in.RoleBindings = read.Join(roles...), read.Join(bindings...)
}

// claimed reads the objects in the namespace of a CSV whose labels or owners claim that they belong to it.
func claimed[T olmcore.Object](reads *read.Reads, c *v1alpha1.ClusterServiceVersion) olmcore.Observed[T] {
	return read.Only(read.List[T](reads, c.Namespace, nil), func(o T) bool { return isClaimedFor(c, o) })
}

// gatherClusterRoles reads the ClusterRoles and ClusterRoleBindings that may have been lifted, all others that grant
// the ServiceAccounts permissions in the cluster, and the ClusterRoles for APIs.
func gatherClusterRoles(reads *read.Reads, in *Input, grants []grant, where scope, apis []providedAPI) {
	c := in.ClusterServiceVersion
	names, accounts := namesAndAccounts(grants)
	ours := labels.SelectorFromSet(model.OwnerOf(c).Labels())
	in.ClusterRoleBindings = read.Join(
		read.Named[*rbacv1.ClusterRoleBinding](reads, "", names), read.List[*rbacv1.ClusterRoleBinding](reads, "", ours))
	if len(accounts) > 0 && (where.cluster || len(where.namespaces) > 0) {
		bound := read.ClusterRoleBindings(reads, c.Namespace, accounts, nil)
		in.ClusterRoleBindings = read.Join(in.ClusterRoleBindings, bound)
		for _, b := range bound.Items {
			names = append(names, b.RoleRef.Name)
		}
	}
	for _, a := range apis {
		names = append(names, a.roleNames()...)
	}
	in.ClusterRoles = read.Join(read.ClusterRoles(reads, names), read.List[*rbacv1.ClusterRole](reads, "", ours))
}

// gatherServers reads the CustomResourceDefinitions and APIServices that serve the APIs.
func gatherServers(reads *read.Reads, in *Input, apis []providedAPI) {
	var definitions []string
	groups := map[string]bool{}
	for _, a := range apis {
		if a.crd != "" {
			definitions = append(definitions, a.crd)
		} else {
			groups[a.Group] = true
		}
	}
	in.CustomResourceDefinitions = read.Named[*apiextensionsv1.CustomResourceDefinition](reads, "", definitions)
	in.APIServices = olmcore.Found[*apiregistrationv1.APIService]()
	if len(groups) > 0 {
		all := read.List[*apiregistrationv1.APIService](reads, metav1.NamespaceAll, nil)
		in.APIServices = read.Only(all, func(s *apiregistrationv1.APIService) bool { return groups[s.Spec.Group] })
	}
}

// namesAndAccounts returns the names of the Roles and of the ServiceAccounts of permissions.
func namesAndAccounts(grants []grant) (names, accounts []string) {
	for _, g := range grants {
		names, accounts = append(names, g.role.Name), append(accounts, g.account.Name)
	}
	return names, accounts
}

// gatherProof reads the objects that may prove permissions which would be granted for the first time. For an operator
// at rest it reads nothing, unless OLM granted the permissions. Then it reads the InstallPlans, which Assess needs.
func gatherProof(reads *read.Reads, in *Input, grants []grant, where scope) {
	if !where.known || reads.Err() != nil {
		return
	}
	f := observeGrants(in, grants)
	if len(needProof(f)) == 0 {
		if len(adopted(f)) > 0 {
			gatherPlans(reads, in)
		}
		return
	}
	if replaced := replacedBy(in.ClusterServiceVersion); replaced != nil {
		theirs := read.List[*rbacv1.ClusterRole](reads, "", labels.SelectorFromSet(model.OwnerOf(replaced).Labels()))
		in.ClusterRoles = read.Join(in.ClusterRoles, theirs)
		if reads.Err() != nil || len(needProof(observeGrants(in, grants))) == 0 {
			return
		}
	}
	gatherPlans(reads, in)
}

// gatherPlans reads the InstallPlans with a step for the CSV, and its Namespace.
func gatherPlans(reads *read.Reads, in *Input) {
	c := in.ClusterServiceVersion
	plans := read.List[*v1alpha1.InstallPlan](reads, c.Namespace, nil)
	in.InstallPlans = read.Only(plans, func(p *v1alpha1.InstallPlan) bool {
		return slices.ContainsFunc(p.Status.Plan, func(s *v1alpha1.Step) bool { return s != nil && s.Resolving == c.Name })
	})
	in.Namespaces = read.Named[*corev1.Namespace](reads, "", []string{c.Namespace})
}
