// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

// DefaultClusterKinds returns the kinds of cluster-scoped objects that a clean-up
// looks for by owner labels.
func DefaultClusterKinds() []schema.GroupVersionKind {
	console := func(version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "console.openshift.io", Version: version, Kind: kind}
	}
	return []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
		schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		console("v1", "ConsoleCLIDownload"), console("v1", "ConsoleLink"),
		console("v1", "ConsoleQuickStart"), console("v1", "ConsoleYAMLSample"),
	}
}

// deletion reads what only the clean-up needs.
func (g *gatherer) deletion() {
	c := g.in.ClusterServiceVersion
	if c.DeletionTimestamp == nil || !slices.Contains(c.Finalizers, Finalizer) {
		return
	}
	d := &g.in.Deletion
	watched := reach(&g.in)
	d.Namespaces = only(list[*corev1.Namespace](g, "", nil), func(n *corev1.Namespace) bool {
		return watched.all() || n.Name == c.Namespace || watched.contains(n.Name)
	})
	all := list[*v1alpha1.ClusterServiceVersion](g, "", nil)
	d.Peers = only(all, func(o *version) bool { return usesCRDsOf(c, o) })
	d.Copies = only(all, func(o *version) bool { return isCopyOf(o, c) })
	d.ClusterObjects, d.Unread = g.clusterObjects()
	d.WellKnown = g.wellKnown()
	g.operands()
}

// usesCRDsOf reports whether another original CSV owns or requires a CRD that c
// owns.
func usesCRDsOf(c, o *version) bool {
	if isCopied(o) || o.UID == c.UID {
		return false
	}
	owned := c.Spec.CustomResourceDefinitions.Owned
	for i := range owned {
		theirs := &o.Spec.CustomResourceDefinitions
		if describes(theirs.Owned, owned[i].Name) || describes(theirs.Required, owned[i].Name) {
			return true
		}
	}
	return false
}

func (g *gatherer) clusterObjects() (found olmcore.Observed[olmcore.Object], unread []schema.GroupKind) {
	c := g.in.ClusterServiceVersion
	if !isLabelValue(c.Name) {
		return olmcore.Found[olmcore.Object](), nil
	}
	return g.ownedObjects(ownerSelector(c))
}

// ownedObjects reads the objects outside the namespaces, and the RoleBindings of
// kube-system, that a selector of owner labels selects, and returns the kinds that
// were not read.
func (g *gatherer) ownedObjects(selector labels.Selector) (found olmcore.Observed[olmcore.Object], unread []schema.GroupKind) {
	found = olmcore.Found[olmcore.Object]()
	read := func(gvk schema.GroupVersionKind, namespace string) {
		one := olmcore.Found[olmcore.Object]()
		if g.addObjects(&one, gvk, namespace, selector); !one.Complete {
			unread = append(unread, gvk.GroupKind())
		}
		found.Complete, found.Items = found.Complete && one.Complete, append(found.Items, one.Items...)
	}
	for _, gvk := range g.clusterKinds() {
		read(gvk, "")
	}
	read(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), kubeSystem)
	return found, unread
}

// clusterKinds are the kinds of cluster-scoped objects to look for, each once.
func (g *gatherer) clusterKinds() []schema.GroupVersionKind {
	kinds := DefaultClusterKinds()
	for _, gvk := range g.in.Config.Cleanup.ClusterKinds {
		if !slices.Contains(kinds, gvk) {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// addObjects adds the objects of a kind that the cluster may not serve: then there
// are none.
func (g *gatherer) addObjects(found *olmcore.Observed[olmcore.Object], gvk schema.GroupVersionKind, namespace string, selector labels.Selector) {
	if g.err != nil {
		return
	}
	list, err := olmcore.ObserveKind(g.ctx, g.r, gvk, namespace, selector)
	if meta.IsNoMatchError(err) || olmcore.Classify(err) == olmcore.NoMatch {
		return
	}
	g.err = err
	found.Complete = found.Complete && list.Complete
	found.Items = append(found.Items, list.Items...)
}

func (g *gatherer) wellKnown() olmcore.Observed[olmcore.Object] {
	found := olmcore.Found[olmcore.Object]()
	var delegators, readers []string
	specs := g.in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		for _, service := range [...]string{serviceName(specs[i].Name), specs[i].Name + "-service"} {
			delegators = append(delegators, service+suffixAuthDelegator)
			readers = append(readers, service+suffixAuthReader)
		}
	}
	addTyped(&found, named[*rbacv1.ClusterRoleBinding](g, "", delegators))
	addTyped(&found, named[*rbacv1.RoleBinding](g, kubeSystem, readers))
	return found
}

func addTyped[T olmcore.Object](found *olmcore.Observed[olmcore.Object], list olmcore.Observed[T]) {
	found.Complete = found.Complete && list.Complete
	for _, o := range list.Items {
		found.Items = append(found.Items, o)
	}
}

// operands answers beforehand what Reconcile would ask for.
func (g *gatherer) operands() {
	if g.err != nil || !g.in.ClusterServiceVersion.Spec.Cleanup.Enabled {
		return
	}
	in := g.in
	k := cleaner{in: &in, c: in.ClusterServiceVersion, line: chainOf(&in)}
	k.readOverride()
	k.readMode()
	if !k.wantsOperands() || k.subscribed() != "" {
		return
	}
	g.in.Deletion.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{}
	for _, kind := range k.operandKinds() {
		found := olmcore.Found[olmcore.Object]()
		if kind.cluster || kind.targets.all() {
			g.addObjects(&found, kind.gvk, "", nil)
		} else {
			for _, namespace := range kind.targets {
				g.addObjects(&found, kind.gvk, namespace, nil)
			}
		}
		g.in.Deletion.Operands[kind.gvk.GroupKind()] = found
	}
}
