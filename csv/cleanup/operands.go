// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// findOperands returns the instances of the CRDs that only this ClusterServiceVersion owns. They are deleted while the
// operator, its webhooks and its permissions still exist, so that the operator can finish their deletion.
func findOperands(f *facts) (all found) {
	if !f.c.Spec.Cleanup.Enabled || f.mode != ModeUninstall || f.override != "" {
		return all
	}
	all.unread = slices.Concat(
		read.Missing(f.in.Subscriptions, "Subscriptions"),
		read.Missing(f.in.OperatorGroups, "OperatorGroups"),
		read.Missing(f.in.Peers, "ClusterServiceVersions of all namespaces"),
		read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions"),
		read.Missing(f.in.Deployments, "Deployments"),
	)
	if len(all.unread) > 0 {
		return all
	}
	if s := subscribedBy(f); s != "" {
		all.skipped = append(all.skipped, skip(olmcore.RefOf(f.c), "operands are kept: Subscription "+s+" has this version installed"))
		return all
	}
	kinds, left := operandKinds(f)
	all.skipped = left
	for _, kind := range kinds {
		answer := f.in.Operands[kind.GroupKind()]
		switch {
		case slices.Contains(f.in.Refused, kind.GroupKind()):
			all.unread = append(all.unread, kind.GroupKind().String()+" (the controller needs the permissions list and delete; "+
				"to skip the operands, set the annotation "+AnnotationCleanup+"="+OverrideSkipOperands+")")
		case !answer.Complete:
			all.ask = append(all.ask, kind)
		}
		for _, o := range answer.Items {
			if f.reach.Contains(o.GetNamespace()) && !f.terminating[o.GetNamespace()] {
				all.addOperand(f, o)
			}
		}
	}
	if len(all.ask)+len(all.unread) > 0 {
		all.targets = nil
		return all
	}
	slices.SortFunc(all.targets, compareByGroup)
	all.requeue = max(0, f.in.Config.OperandTimeout-f.age)
	return all
}

// subscribedBy returns the name of the first live Subscription that has installed the ClusterServiceVersion or is about
// to. It is empty if there is none.
func subscribedBy(f *facts) (name string) {
	for _, s := range f.in.Subscriptions.Items {
		if s.DeletionTimestamp == nil && model.IsInstalledBy(f.c, s) && (name == "" || s.Name < name) {
			name = s.Name
		}
	}
	return name
}

func (all *found) addOperand(f *facts, o olmcore.Object) {
	_, kept := o.GetAnnotations()[AnnotationKeep]
	live := o.GetDeletionTimestamp() == nil
	switch timeout := f.in.Config.OperandTimeout; {
	case timeout > 0 && f.age >= timeout:
		all.skipped = append(all.skipped, skip(olmcore.RefOf(o), "not deleted before the timeout for operands"))
	case kept && live:
		all.skipped = append(all.skipped, skip(olmcore.RefOf(o), "kept by annotation"))
	case live && len(o.GetFinalizers()) > 0 && !isOperatorRunning(f):
		all.targets = append(all.targets, target{ref: olmcore.RefOf(o), why: "operator not running", blocked: true})
	default:
		all.targets = append(all.targets, deletionOf(f, o))
	}
}

// isOperatorRunning reports whether the operator can remove the finalizers of its operands. Without the operator, a
// deleted operand with finalizers stays Terminating.
func isOperatorRunning(f *facts) bool {
	return !slices.Contains(f.c.Finalizers, metav1.FinalizerDeleteDependents) &&
		slices.ContainsFunc(f.in.Deployments.Items, func(d *appsv1.Deployment) bool {
			return d.DeletionTimestamp == nil && model.OwnsDeployment(f.c, d) && deployment.IsAvailable(d)
		})
}

// operandKinds returns the kinds whose instances are deleted, and Diagnostics about the others.
func operandKinds(f *facts) (kinds []schema.GroupVersionKind, left []olmcore.Diagnostic) {
	names := sets.List(model.OwnedCRDNames(f.c))
	annotated, ok := model.AnnotatedTargets(f.c)
	if len(names) > 0 && !ok {
		left = append(left, skip(olmcore.RefOf(f.c), "operands are kept: annotation olm.targetNamespaces is absent"))
	} else if len(names) > 0 && !f.reach.All() && slices.ContainsFunc(annotated, func(n string) bool { return !f.reach.Contains(n) }) {
		left = append(left, skip(olmcore.RefOf(f.c), "operands are kept outside of "+f.reach.String()+
			": no OperatorGroup of this ClusterServiceVersion selects every namespace in its annotation olm.targetNamespaces"))
	}
	for _, name := range names {
		crd, exists := model.Find(f.in.CustomResourceDefinitions.Items, "", name)
		if !exists {
			continue
		}
		kind, why := operandGVK(crd), whyOperandsStay(f, crd)
		switch {
		case why != "":
		case crd.Spec.Scope == apiextensionsv1.ClusterScoped && !f.reach.All():
			why = "operands are kept: the kind is cluster-scoped, and no OperatorGroup confirms that the operator watches all namespaces"
		case len(f.reach) == 0:
			continue // reported once for all kinds
		case kind.Version == "":
			why = "operands are kept: no version is served"
		default:
			kinds = append(kinds, kind)
			continue
		}
		left = append(left, skip(olmcore.RefOf(crd), why))
	}
	return kinds, left
}

// whyOperandsStay returns why the instances of a CRD are not deleted. It is empty if they are.
func whyOperandsStay(f *facts, crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.DeletionTimestamp != nil {
		return "operands are deleted with the CRD, which is being deleted"
	}
	for _, p := range f.peers {
		if model.DescribesCRD(p.Spec.CustomResourceDefinitions.Owned, crd.Name) {
			return "operands are kept: owned by " + p.Namespace + "/" + p.Name + " too"
		}
		if model.DescribesCRD(p.Spec.CustomResourceDefinitions.Required, crd.Name) {
			return "operands are kept: required by " + p.Namespace + "/" + p.Name
		}
	}
	if !model.IsInstalledWith(f.c, crd) {
		return "operands are kept: " + notInstalledByThisCSV
	}
	return ""
}

// operandGVK returns the kind of a CRD in its storage version, if that is served, or else in the first served version.
// The version is empty if none is served.
func operandGVK(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	for _, v := range crd.Spec.Versions {
		if v.Served && (gvk.Version == "" || v.Storage) {
			gvk.Version = v.Name
		}
	}
	return gvk
}
