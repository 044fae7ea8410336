// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// wantsOperands reports whether instances of owned CRDs are to be deleted at
// all. It needs nothing but the CSV and its mode.
func (k *cleaner) wantsOperands() bool {
	return k.c.Spec.Cleanup.Enabled && k.mode() == ModeUninstall && k.override == ""
}

// operands deletes the instances of the CRDs that this CSV alone owns, while the
// operator, its webhooks and its permissions are still there to finish them.
func (k *cleaner) operands() {
	if !k.wantsOperands() || !k.operandsObserved() {
		return
	}
	if s := k.subscribed(); s != "" {
		k.skip(olmcore.RefOf(k.c), "operands stay: Subscription "+s+" has this version installed")
		return
	}
	kinds := k.operandKinds()
	var instances []olmcore.Object
	for _, kind := range kinds {
		answer := k.in.Deletion.Operands[kind.gvk.GroupKind()]
		if !answer.Complete {
			k.need = append(k.need, kind.gvk)
			continue
		}
		for _, o := range answer.Items {
			if kind.covers(k, o) {
				instances = append(instances, o)
			}
		}
	}
	if len(k.need) > 0 {
		return
	}
	k.deleteOperands(instances)
}

func (k *cleaner) operandsObserved() bool {
	if !k.in.Subscriptions.Complete {
		k.missing("Subscriptions")
	}
	if !k.in.OperatorGroups.Complete {
		k.missing("OperatorGroups")
	}
	if !k.in.Deletion.Peers.Complete {
		k.missing("ClusterServiceVersions of all namespaces")
	}
	if !k.in.CustomResourceDefinitions.Complete {
		k.missing("CustomResourceDefinitions")
	}
	if !k.in.Deployments.Complete {
		k.missing("Deployments")
	}
	return len(k.unobserved) == 0
}

func (k *cleaner) subscribed() string {
	if k.in.Config.Cleanup.DeleteOperandsWhileSubscribed {
		return ""
	}
	name := ""
	for _, s := range k.in.Subscriptions.Items {
		if s.DeletionTimestamp == nil && isInstalledBy(k.c, s) && (name == "" || s.Name < name) {
			name = s.Name
		}
	}
	return name
}

// operandKind is one kind whose instances are to go, and where.
type operandKind struct {
	gvk     schema.GroupVersionKind
	cluster bool
	targets targets
	// shared are the targets of other CSVs that own the kind too.
	shared []targets
}

func (o operandKind) covers(k *cleaner, instance olmcore.Object) bool {
	namespace := instance.GetNamespace()
	if o.cluster || namespace == "" {
		return o.cluster
	}
	return o.targets.contains(namespace) && !k.isTerminating(namespace) &&
		!slices.ContainsFunc(o.shared, func(t targets) bool { return t.contains(namespace) })
}

// operandKinds selects the CRDs, and notes why others are left out.
func (k *cleaner) operandKinds() []operandKind {
	names := make([]string, 0, len(k.c.Spec.CustomResourceDefinitions.Owned))
	for i := range k.c.Spec.CustomResourceDefinitions.Owned {
		names = append(names, k.c.Spec.CustomResourceDefinitions.Owned[i].Name)
	}
	slices.Sort(names)
	watched := reach(k.in)
	if len(names) > 0 {
		k.sayUnreached(watched)
	}
	var kinds []operandKind
	for _, name := range slices.Compact(names) {
		i := indexNamed(k.in.CustomResourceDefinitions.Items, "", name)
		if i < 0 {
			continue
		}
		crd := k.in.CustomResourceDefinitions.Items[i]
		kind := operandKind{gvk: operandGVK(crd), cluster: crd.Spec.Scope == apiextensionsv1.ClusterScoped, targets: watched}
		why, shared := k.spares(crd)
		kind.shared = shared
		switch {
		case why != "":
		case !cameWith(k.c, crd):
			why = "operands stay: " + notInstalledByThisCSV
		case kind.cluster && !watched.all():
			why = "operands stay: the kind is cluster-scoped and no OperatorGroup of all namespaces confirms that this operator watches them all"
		case len(watched) == 0:
			continue // said once for all kinds
		case kind.gvk.Version == "":
			why = "operands stay: no version is served"
		default:
			kinds = append(kinds, kind)
			continue
		}
		k.skip(olmcore.RefOf(crd), why)
	}
	return kinds
}

// notInstalledByThisCSV is why a CRD that the CSV merely names is left alone: who
// may write a CSV may name any.
const notInstalledByThisCSV = "no InstallPlan recorded on the CRD that it came with this ClusterServiceVersion"

// sayUnreached says once which of the annotated targets nothing confirms.
func (k *cleaner) sayUnreached(reached targets) {
	annotated, ok := annotatedTargets(k.c)
	switch {
	case !ok:
		k.skip(olmcore.RefOf(k.c), "operands stay: annotation olm.targetNamespaces is absent")
	case !reached.all() && slices.ContainsFunc(annotated, func(n string) bool { return !reached.contains(n) }):
		k.skip(olmcore.RefOf(k.c), "operands stay outside of "+reached.String()+": no OperatorGroup of this ClusterServiceVersion selects what its annotation olm.targetNamespaces names")
	}
}

// spares says why the instances of a CRD stay, or in which targets of other
// operators they do.
func (k *cleaner) spares(crd *apiextensionsv1.CustomResourceDefinition) (why string, shared []targets) {
	if crd.DeletionTimestamp != nil {
		return "operands go with the CRD, which is being deleted", nil
	}
	for _, p := range k.peers() {
		if describes(p.Spec.CustomResourceDefinitions.Owned, crd.Name) {
			watched, known := annotatedTargets(p)
			if !k.in.Config.Cleanup.AllowDisjointTenants || !known || crd.Spec.Scope == apiextensionsv1.ClusterScoped {
				return "operands stay: owned by " + p.Namespace + "/" + p.Name + " too", nil
			}
			shared = append(shared, watched)
		}
		if !k.in.Config.Cleanup.IgnoreRequirers && describes(p.Spec.CustomResourceDefinitions.Required, crd.Name) {
			return "operands stay: required by " + p.Namespace + "/" + p.Name, nil
		}
	}
	return "", shared
}

// operandGVK prefers the storage version; the version is empty when none is
// served.
func operandGVK(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Served && (gvk.Version == "" || v.Storage) {
			gvk.Version = v.Name
		}
	}
	return gvk
}

func (k *cleaner) deleteOperands(instances []olmcore.Object) {
	slices.SortFunc(instances, func(a, b olmcore.Object) int {
		x, y := olmcore.KeyOf(a), olmcore.KeyOf(b)
		if c := strings.Compare(x.Group, y.Group); c != 0 {
			return c
		}
		return x.Compare(y)
	})
	timeout := k.in.Config.Cleanup.OperandTimeout
	running := k.isOperatorRunning()
	batch := orDefault(k.in.Config.Cleanup.OperandBatch, DefaultOperandBatch)
	for _, o := range instances {
		ref := olmcore.RefOf(o)
		_, kept := o.GetAnnotations()[k.key(annotationKeep)]
		switch {
		case timeout > 0 && k.elapsed() >= timeout:
			k.skip(ref, "still there when the time for operands was over")
		case kept && o.GetDeletionTimestamp() == nil:
			k.skip(ref, "kept by annotation")
		case o.GetDeletionTimestamp() == nil && len(o.GetFinalizers()) > 0 && !running:
			k.pending = append(k.pending, pendingObject{ref: ref, why: "operator not running", operand: true, blocked: true})
		case o.GetDeletionTimestamp() == nil && len(k.actions) >= batch:
			k.pending = append(k.pending, pendingObject{ref: ref, why: "queued", operand: true})
		default:
			k.remove(o, true, 0)
		}
	}
	if timeout > 0 && len(k.pending) > 0 {
		k.requeueAfter(timeout - k.elapsed())
	}
}

// isOperatorRunning reports whether somebody is there to finish the operands:
// deleting one that has finalizers would otherwise leave it Terminating for ever.
func (k *cleaner) isOperatorRunning() bool {
	if slices.Contains(k.c.Finalizers, metav1.FinalizerDeleteDependents) {
		return false
	}
	return slices.ContainsFunc(k.in.Deployments.Items, func(d *appsv1.Deployment) bool {
		return d.DeletionTimestamp == nil && isOwnDeployment(k.c, d) && isAvailable(d)
	})
}
