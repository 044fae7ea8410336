// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

// othersHold is how long objects of no special kind hold a CSV.
const othersHold = time.Minute

// remove deletes one object, or says why it waits or leaves it. patience limits
// how long the object holds the CSV; 0 is without limit.
func (k *cleaner) remove(o olmcore.Object, operand bool, patience time.Duration) {
	ref := olmcore.RefOf(o)
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		waited := since(deleted, k.in.Now)
		limit := patience
		if stuck := orDefault(k.in.Config.Cleanup.StuckHold, DefaultStuckHold); !operand && (limit == 0 || stuck < limit) {
			limit = stuck
		}
		if limit > 0 && waited >= limit {
			k.skip(ref, "still Terminating")
			return
		}
		if limit > 0 {
			k.requeueAfter(limit - waited)
		}
		k.pending = append(k.pending, pendingObject{ref: ref, why: terminating(o), operand: operand})
		return
	}
	a := olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonCleanup, Message: "ClusterServiceVersion " + k.c.Name + " is being deleted"})
	a.PropagationPolicy = metav1.DeletePropagationBackground
	k.try(a, pendingObject{ref: ref, why: "deleting", operand: operand}, patience)
}

func terminating(o olmcore.Object) string {
	if f := o.GetFinalizers(); len(f) > 0 {
		return "Terminating, held by " + strings.Join(slices.Sorted(slices.Values(f)), ", ")
	}
	return "Terminating"
}

// try adds the write that an object waits for. The outcome of the last try says
// whether it counts as done, is left behind, or has to pause.
func (k *cleaner) try(a olmcore.Action, p pendingObject, patience time.Duration) {
	last, tried := k.in.LastRun[p.ref.Key()]
	if !tried || last.Class == olmcore.ClassNone || last.Last.Before(k.c.DeletionTimestamp.Time) {
		k.actions, k.pending = append(k.actions, cleanupAction{Action: a}), append(k.pending, p)
		return
	}
	pause := min(time.Minute, time.Second<<min(6, max(0, last.Count-1)))
	limit := patience
	switch last.Class {
	case olmcore.Gone, olmcore.NoMatch:
		return
	case olmcore.Conflict:
		p.why, pause = "changed meanwhile", time.Second
	case olmcore.Invalid:
		k.giveUp(a, "the API server refuses to change it: "+last.Message)
		return
	case olmcore.Forbidden, olmcore.Webhook:
		p.why, p.blocked = "refused: "+last.Message, true
		if hold := orDefault(k.in.Config.Cleanup.ForbiddenHold, DefaultForbiddenHold); limit == 0 || hold < limit {
			limit = hold
		}
		if p.operand && last.Class == olmcore.Webhook {
			limit = 0
		}
	default:
		p.why = "failed: " + last.Message
	}
	left := pause - max(0, k.in.Now.Sub(last.Last))
	if limit > 0 {
		if last.Last.Sub(last.First) >= limit {
			k.giveUp(a, p.why)
			return
		}
		// After an outage, too, the last try comes when the time is over.
		left = min(left, limit-k.in.Now.Sub(last.First))
	}
	k.requeueAfter(left)
	k.actions, k.pending = append(k.actions, cleanupAction{a, left > 0}), append(k.pending, p)
}

func (k *cleaner) giveUp(a olmcore.Action, why string) {
	_, target, _ := a.Describe()
	k.skip(target, why)
	k.givenUp = append(k.givenUp, a)
}

// isOurs reports whether an object belongs to this very CSV: its owner labels
// name it, nothing names another incarnation or another CSV, and it is not
// younger than the deletion, as an object of the next installation would be.
func (k *cleaner) isOurs(o olmcore.Object) bool {
	if !incarnationOf(k.c).Owns(o.GetLabels()) || k.isYounger(o) || !isCleanedByLabel(olmcore.KeyOf(o)) {
		return false
	}
	if ownedByOtherCSV(o.GetOwnerReferences(), k.c.UID) {
		k.skip(olmcore.RefOf(o), "owned by another ClusterServiceVersion")
		return false
	}
	return true
}

// isCleanedByLabel reports whether owner labels are enough to delete an object:
// they are where no tenant writes. In a namespace anybody may label an object as
// belonging to a CSV of another.
func isCleanedByLabel(key olmcore.Key) bool {
	return key.Namespace == "" || key.Namespace == kubeSystem && key.Group == rbacv1.GroupName && key.Kind == "RoleBinding"
}

func (k *cleaner) isYounger(o olmcore.Object) bool {
	created := o.GetCreationTimestamp()
	return created.After(k.c.DeletionTimestamp.Time)
}

// ours returns the observed objects with our labels that pass a filter, sorted.
func (k *cleaner) ours(pass func(olmcore.Key) bool) []olmcore.Object {
	var found []olmcore.Object
	if len(k.c.Name) > maxLabelValue {
		return nil
	}
	if !k.in.Deletion.ClusterObjects.Complete {
		k.missing(ownedObjects(k.in.Deletion.Unread))
		return nil
	}
	for _, o := range k.in.Deletion.ClusterObjects.Items {
		if pass(olmcore.KeyOf(o)) && k.isOurs(o) {
			found = append(found, o)
		}
	}
	sortObjects(found)
	return found
}

func sortObjects(list []olmcore.Object) {
	slices.SortFunc(list, func(a, b olmcore.Object) int { return olmcore.RefOf(a).Compare(olmcore.RefOf(b)) })
}

// ownedObjects is the name of the list of objects with owner labels, with the kinds
// that it lacks.
func ownedObjects(unread []schema.GroupKind) string {
	name := "objects with owner labels"
	for i, kind := range unread {
		separator := ", "
		if i == 0 {
			separator = " of kind "
		}
		name += separator + kind.Kind
	}
	return name
}

func (k *cleaner) missing(list string) {
	if !slices.Contains(k.unobserved, list) {
		k.unobserved = append(k.unobserved, list)
	}
}

func (k *cleaner) admission() {
	for _, o := range k.ours(isAdmission) {
		k.remove(o, false, 0)
	}
}

func isAdmission(key olmcore.Key) bool {
	return key.Group == admissionregistrationv1.GroupName && strings.HasSuffix(key.Kind, "WebhookConfiguration")
}

// peers are the other live CSVs that were observed.
func (k *cleaner) peers() []*version {
	var found []*version
	for _, list := range [...][]*version{k.in.Deletion.Peers.Items, k.in.Neighbours.Items} {
		for _, p := range list {
			if p.DeletionTimestamp == nil && !isCopied(p) && (p.Name != k.c.Name || p.Namespace != k.c.Namespace) {
				found = append(found, p)
			}
		}
	}
	slices.SortFunc(found, func(a, b *version) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return found
}

func (k *cleaner) apiServices() {
	for _, o := range k.ours(isAPIService) {
		if k.superseded && k.isServiceClaimed(o.GetName()) {
			k.skip(olmcore.RefOf(o), "a newer version provides it too, and takes it over")
			continue
		}
		k.remove(o, false, 0)
	}
}

// isServiceClaimed reports whether a live CSV of the namespace owns an APIService.
func (k *cleaner) isServiceClaimed(name string) bool {
	for _, p := range k.peers() {
		owned := p.Spec.APIServiceDefinitions.Owned
		for i := range owned {
			if p.Namespace == k.c.Namespace && owned[i].GetName() == name {
				return true
			}
		}
	}
	return false
}

func isAPIService(key olmcore.Key) bool {
	return key.Group == apiregistrationv1.GroupName && key.Kind == "APIService"
}

// workload stops the operator before its permissions go, but only when there are
// permissions to take away: everything in the namespace goes with the CSV.
func (k *cleaner) workload() {
	if k.gone || len(k.rbacObjects()) == 0 {
		return
	}
	if !k.in.Deployments.Complete {
		k.missing("Deployments")
		return
	}
	drain := orDefault(k.in.Config.Cleanup.Drain, DefaultDrain)
	for _, d := range k.in.Deployments.Items {
		if !isOwnDeployment(k.c, d) || d.DeletionTimestamp != nil && since(d.DeletionTimestamp, k.in.Now) >= drain {
			continue
		}
		before := len(k.actions)
		k.remove(d, false, drain)
		if len(k.actions) > before {
			k.actions[before].Action = deleteDeployment(d, olmcore.Cause{
				Reason: ReasonCleanup, Message: "the operator stops before its permissions go",
			})
		}
	}
	slices.SortFunc(k.actions, func(a, b cleanupAction) int { return byTarget(a.Action, b.Action) })
	slices.SortFunc(k.pending, func(a, b pendingObject) int { return a.ref.Compare(b.ref) })
}

func (k *cleaner) rbac() {
	for _, o := range k.rbacObjects() {
		k.remove(o, false, 0)
	}
}

// rbacObjects are the permissions outside the namespace, bindings first.
func (k *cleaner) rbacObjects() []olmcore.Object {
	found := k.ours(func(key olmcore.Key) bool { return key.Group == rbacv1.GroupName })
	found = append(found, k.wellKnown()...)
	isRole := func(o olmcore.Object) int {
		if strings.HasSuffix(olmcore.KeyOf(o).Kind, "Binding") {
			return 0
		}
		return 1
	}
	sortObjects(found)
	found = slices.CompactFunc(found, func(a, b olmcore.Object) bool { return olmcore.KeyOf(a) == olmcore.KeyOf(b) })
	slices.SortStableFunc(found, func(a, b olmcore.Object) int { return isRole(a) - isRole(b) })
	return found
}

// wellKnown are the bindings for serving certificates, which OLM does not label
// as ours: the name derives from one of our Deployments, and all subjects are
// ServiceAccounts of our namespace.
func (k *cleaner) wellKnown() []olmcore.Object {
	if !k.in.Deletion.WellKnown.Complete {
		if len(k.c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) > 0 {
			k.missing("ClusterRoleBindings and RoleBindings for serving certificates")
		}
		return nil
	}
	var found []olmcore.Object
	for _, o := range k.in.Deletion.WellKnown.Items {
		var subjects []rbacv1.Subject
		suffix := ""
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects, suffix = b.Subjects, suffixAuthDelegator
		case *rbacv1.RoleBinding:
			if b.Namespace == kubeSystem {
				subjects, suffix = b.Subjects, suffixAuthReader
			}
		}
		if suffix != "" && k.isWellKnown(o, suffix, subjects) {
			found = append(found, o)
		}
	}
	return found
}

const (
	kubeSystem          = "kube-system"
	suffixAuthDelegator = "-system:auth-delegator"
	suffixAuthReader    = "-auth-reader"
)

func (k *cleaner) isWellKnown(o olmcore.Object, suffix string, subjects []rbacv1.Subject) bool {
	foreign := func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != k.c.Namespace
	}
	_, labelled := olmcore.OwnerOf(o.GetLabels())
	if o.GetLabels()[olmcore.LabelManaged] != "true" || labelled && !incarnationOf(k.c).Owns(o.GetLabels()) || k.isYounger(o) ||
		len(subjects) == 0 || slices.ContainsFunc(subjects, foreign) {
		return false
	}
	specs := k.c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		name := specs[i].Name
		if o.GetName() != serviceName(name)+suffix && o.GetName() != name+"-service"+suffix {
			continue
		}
		return !slices.ContainsFunc(k.peers(), func(p *version) bool {
			return p.Namespace == k.c.Namespace && declaresDeployment(p, name)
		})
	}
	return false
}

// others deletes what else is cluster-scoped and ours, and the copies in other
// namespaces. CRDs and namespaces are never deleted, whatever their labels say.
func (k *cleaner) others() {
	rest := k.ours(func(key olmcore.Key) bool {
		return key.Namespace == "" && key.Group != rbacv1.GroupName && !isAdmission(key) && !isAPIService(key) &&
			key.Kind != "CustomResourceDefinition" && key.Kind != "Namespace"
	})
	for _, o := range rest {
		k.remove(o, false, othersHold)
	}
	k.copies()
}

// copies deletes what was copied into other namespaces. A copy on its way out is
// not waited for: nothing will change it. Nor is one that was made long after the
// deletion: whoever may write the namespace could hold this one for ever.
func (k *cleaner) copies() {
	if !k.in.Deletion.Copies.Complete {
		k.missing("copies of the ClusterServiceVersion")
		return
	}
	var found []olmcore.Object
	for _, o := range k.in.Deletion.Copies.Items {
		if o.DeletionTimestamp != nil || !isCopyOf(o, k.c) {
			continue
		}
		if o.CreationTimestamp.After(k.c.DeletionTimestamp.Add(othersHold)) {
			k.skip(olmcore.RefOf(o), "made after the deletion")
			continue
		}
		found = append(found, o)
	}
	sortObjects(found)
	for _, o := range found {
		k.remove(o, false, othersHold)
	}
}

func isCopyOf(o, c *version) bool {
	return isCopied(o) && o.Name == c.Name && o.Namespace != c.Namespace && o.Labels[v1alpha1.CopiedLabelKey] == c.Namespace
}
