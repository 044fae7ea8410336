// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// isOurs reports whether an object belongs to this very ClusterServiceVersion: its owner
// labels name it, nothing names another incarnation or another ClusterServiceVersion, and
// it is not younger than the deletion, as an object of the next installation would be. One
// that another owns is left behind.
func (f *facts) isOurs(o olmcore.Object) (ours bool, left []skipped) {
	switch {
	case !owned.ByIncarnation(f.c).Owns(o.GetLabels()) || f.isYounger(o) || !countsByLabel(olmcore.KeyOf(o)):
		return false, nil
	case owned.ByAnother(o.GetOwnerReferences(), f.c.UID):
		return false, []skipped{skip(o, "owned by another ClusterServiceVersion")}
	}
	return true, nil
}

// countsByLabel reports whether owner labels are enough to delete an object: they are
// where no tenant writes. In a namespace anybody may label an object as belonging to a
// ClusterServiceVersion of another.
func countsByLabel(key olmcore.Key) bool {
	return key.Namespace == metav1.NamespaceAll ||
		key.Namespace == metav1.NamespaceSystem && key.Group == rbacv1.GroupName && key.Kind == "RoleBinding"
}

func (f *facts) isYounger(o olmcore.Object) bool {
	created := o.GetCreationTimestamp()
	return created.After(f.c.DeletionTimestamp.Time)
}

// labelled returns the objects of the ClusterServiceVersion by its owner labels that pass
// a filter, sorted.
func labelled(f *facts, pass func(olmcore.Key) bool) (objects []olmcore.Object, all found) {
	if !owned.IsLabelValue(f.c.Name) {
		return nil, found{}
	}
	if !f.in.Deletion.ClusterObjects.Complete {
		return nil, found{unread: []string{read.OwnedList(f.in.Deletion.Unread)}}
	}
	for _, o := range f.in.Deletion.ClusterObjects.Items {
		if !pass(olmcore.KeyOf(o)) {
			continue
		}
		ours, left := f.isOurs(o)
		all.skipped = append(all.skipped, left...)
		if ours {
			objects = append(objects, o)
		}
	}
	sortObjects(objects)
	return objects, all
}

func sortObjects(list []olmcore.Object) {
	slices.SortFunc(list, func(a, b olmcore.Object) int { return olmcore.RefOf(a).Compare(olmcore.RefOf(b)) })
}

// leaveAll returns everything that is known to belong to the ClusterServiceVersion.
func leaveAll(f *facts, why string) (all []skipped) {
	for _, o := range f.in.Deletion.ClusterObjects.Items {
		ours, left := f.isOurs(o)
		all = append(all, left...)
		if ours {
			all = append(all, skip(o, why))
		}
	}
	return all
}

func isAdmission(key olmcore.Key) bool {
	return key.Group == admissionregistrationv1.GroupName && strings.HasSuffix(key.Kind, "WebhookConfiguration")
}

func isAPIService(key olmcore.Key) bool {
	return key.Group == apiregistrationv1.GroupName && key.Kind == "APIService"
}

func isRBAC(key olmcore.Key) bool { return key.Group == rbacv1.GroupName }

// isOther leaves out CRDs and namespaces, which are never deleted, whatever their labels
// say.
func isOther(key olmcore.Key) bool {
	return key.Namespace == metav1.NamespaceAll && !isRBAC(key) && !isAdmission(key) && !isAPIService(key) &&
		key.Kind != "CustomResourceDefinition" && key.Kind != "Namespace"
}

func findAdmission(f *facts) found {
	objects, all := labelled(f, isAdmission)
	all.targets = deletionsOf(f, objects)
	return all
}

func findAPIServices(f *facts) found {
	objects, all := labelled(f, isAPIService)
	for _, o := range objects {
		providesIt := func(p *owned.CSV) bool {
			return slices.ContainsFunc(p.Spec.APIServiceDefinitions.Owned, func(d v1alpha1.APIServiceDescription) bool { return d.GetName() == o.GetName() })
		}
		if f.superseded && f.hasNeighbour(providesIt) {
			all.skipped = append(all.skipped, skip(o, "a newer version provides it too, and takes it over"))
			continue
		}
		all.targets = append(all.targets, deletionOf(f, o))
	}
	return all
}

// findWorkload returns the Deployments, so that the operator stops before its permissions
// go, but only when there are permissions to take away: everything in the namespace goes
// with the ClusterServiceVersion.
func findWorkload(f *facts) found {
	if f.namespaceGone {
		return found{}
	}
	permissions, all := rbacObjects(f)
	if len(permissions) == 0 {
		return all
	}
	if !f.in.Deployments.Complete {
		all.unread = append(all.unread, "Deployments")
		return all
	}
	for _, d := range f.in.Deployments.Items {
		if !owned.Deployment(f.c, d) || d.DeletionTimestamp != nil && f.in.Now.Sub(d.DeletionTimestamp.Time) >= drain {
			continue
		}
		t := deletionOf(f, d)
		if t.write != nil {
			t.write = deployment.Delete(d, olmcore.Cause{Reason: ReasonCleanup, Message: "the operator stops before its permissions go"})
		}
		all.targets = append(all.targets, t)
	}
	slices.SortFunc(all.targets, func(a, b target) int { return a.ref.Compare(b.ref) })
	return all
}

func findRBAC(f *facts) found {
	objects, all := rbacObjects(f)
	all.targets = deletionsOf(f, objects)
	return all
}

// rbacObjects are the permissions outside the namespace, bindings first.
func rbacObjects(f *facts) ([]olmcore.Object, found) {
	objects, all := labelled(f, isRBAC)
	switch {
	case f.in.Deletion.WellKnown.Complete:
		objects = append(objects, servingBindings(f)...)
	case len(f.c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) > 0:
		all.unread = append(all.unread, "ClusterRoleBindings and RoleBindings for serving certificates")
	}
	sortObjects(objects)
	objects = slices.CompactFunc(objects, func(a, b olmcore.Object) bool { return olmcore.KeyOf(a) == olmcore.KeyOf(b) })
	isRole := func(o olmcore.Object) bool { return !strings.HasSuffix(olmcore.KeyOf(o).Kind, "Binding") }
	roles := slices.DeleteFunc(slices.Clone(objects), func(o olmcore.Object) bool { return !isRole(o) })
	return append(slices.DeleteFunc(objects, isRole), roles...), all
}

const (
	suffixAuthDelegator = "-system:auth-delegator"
	suffixAuthReader    = "-auth-reader"
)

// servingBindings are the bindings for serving certificates, which OLM does not label: the
// name derives from a Deployment of the strategy, and all subjects are ServiceAccounts of
// the namespace.
func servingBindings(f *facts) (bindings []olmcore.Object) {
	for _, o := range f.in.Deletion.WellKnown.Items {
		ours := false
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			ours = isServingBinding(f, o, suffixAuthDelegator, b.Subjects)
		case *rbacv1.RoleBinding:
			ours = b.Namespace == metav1.NamespaceSystem && isServingBinding(f, o, suffixAuthReader, b.Subjects)
		}
		if ours {
			bindings = append(bindings, o)
		}
	}
	return bindings
}

func isServingBinding(f *facts, o olmcore.Object, suffix string, subjects []rbacv1.Subject) bool {
	isOfAnother := func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != f.c.Namespace
	}
	_, hasOwner := olmcore.OwnerOf(o.GetLabels())
	if o.GetLabels()[olmcore.LabelManaged] != "true" || hasOwner && !owned.ByIncarnation(f.c).Owns(o.GetLabels()) || f.isYounger(o) ||
		len(subjects) == 0 || slices.ContainsFunc(subjects, isOfAnother) {
		return false
	}
	for _, spec := range f.c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if service, isService := strings.CutSuffix(o.GetName(), suffix); isService && slices.Contains(serviceNames(spec.Name), service) {
			return !f.hasNeighbour(func(p *owned.CSV) bool { return owned.Deployments(p).Has(spec.Name) })
		}
	}
	return false
}

// serviceName is OLM's name for the Service of a Deployment that serves webhooks or an API.
func serviceName(deployment string) string {
	return strings.ReplaceAll(deployment, ".", "-") + "-service"
}

// serviceNames are the names that such a Service can have: with the dots of the
// Deployment's name, too.
func serviceNames(deployment string) []string {
	return []string{serviceName(deployment), deployment + "-service"}
}

func findOthers(f *facts) found {
	objects, all := labelled(f, isOther)
	copies, left := findCopies(f)
	if !f.in.Deletion.Copies.Complete {
		all.unread = append(all.unread, "copies of the ClusterServiceVersion")
	}
	all.skipped = append(all.skipped, left...)
	all.targets = append(deletionsOf(f, objects), deletionsOf(f, copies)...)
	return all
}

// findCopies returns what was copied into other namespaces. A copy on its way out is not
// waited for: nothing will change it. Nor is one that was made long after the deletion:
// whoever may write the namespace could hold this one for ever.
func findCopies(f *facts) (copies []olmcore.Object, left []skipped) {
	for _, o := range f.in.Deletion.Copies.Items {
		switch {
		case o.DeletionTimestamp != nil || !isCopyOf(o, f.c):
		case o.CreationTimestamp.After(f.c.DeletionTimestamp.Add(othersHold)):
			left = append(left, skip(o, "made after the deletion"))
		default:
			copies = append(copies, o)
		}
	}
	sortObjects(copies)
	return copies, left
}

func isCopyOf(o, c *owned.CSV) bool {
	return o.IsCopied() && o.Name == c.Name && o.Namespace != c.Namespace && o.Labels[olmcore.LabelCopiedFrom] == c.Namespace
}
