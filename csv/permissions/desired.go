// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// plan is what should be, what must go, and what is said about it.
type plan struct {
	desired  []desired
	removals []olmcore.Action
	said     []olmcore.Diagnostic
}

// desired is a role or binding as it should be.
type desired struct {
	object olmcore.Object
	// isOurs reports whether one of this name may be written over.
	isOurs func(metav1.Object) bool
	// created: it is made where it does not exist; else only one that exists is kept in this form.
	created bool
	// kept: one that exists is not written to.
	kept bool
	// recreated: one with another roleRef, which cannot be changed, is deleted to be made again.
	recreated bool
	// limited: the account that the annotation of a record names is corrected.
	limited bool
	// as is whom it is written as, nil for the controller.
	as  *corev1.ObjectReference
	why olmcore.Cause
}

// index is the observed roles and bindings.
type index map[olmcore.Key]olmcore.Object

func newIndex(in *Input) index {
	x := make(index, len(in.Roles.Items)+len(in.RoleBindings.Items)+len(in.ClusterRoles.Items)+len(in.ClusterRoleBindings.Items))
	add(x, in.Roles.Items)
	add(x, in.RoleBindings.Items)
	add(x, in.ClusterRoles.Items)
	add(x, in.ClusterRoleBindings.Items)
	return x
}

func add[T olmcore.Object](x index, items []T) {
	for _, o := range items {
		x[olmcore.KeyOf(o)] = o
	}
}

// compare adds the write that brings the object about, or says what is in the way.
func (d desired) compare(x index, res *olmcore.Result) {
	have := x[olmcore.KeyOf(d.object)]
	switch {
	case have == nil:
		if d.created {
			res.Actions = append(res.Actions, olmcore.Create{Target: olmcore.RefOf(d.object), Object: d.object, Cause: d.why, As: d.as})
		}
	case !d.isOurs(have):
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNameConflict, olmcore.RefOf(have), "",
			"it is not managed by the library and is left alone: %s", d.why.Message))
		res.Requeue(conflictPace)
	case have.GetDeletionTimestamp() != nil: // the next one is made once it is gone
	case contentOf(have).RoleRef != contentOf(d.object).RoleRef: // which cannot be changed
		if d.recreated {
			remove := olmcore.DeleteOf(have, olmcore.Cause{Reason: d.why.Reason, Message: "it binds another role than that of the permission"})
			remove.As = d.as
			res.Actions = append(res.Actions, remove)
		}
	case d.kept:
	default:
		if after, changed := d.over(have); changed {
			u := olmcore.UpdateOf(have, after, d.why)
			u.As = d.as
			res.Actions = append(res.Actions, u)
		}
	}
}

// isMet reports whether an object of the name is there and says what it should: only then it may be bound.
func (d desired) isMet(x index) bool {
	have := x[olmcore.KeyOf(d.object)]
	return have != nil && have.GetDeletionTimestamp() == nil && equality.Semantic.DeepEqual(contentOf(have), contentOf(d.object))
}

// isAnothers reports whether there is an object of the name that is not ours.
func (d desired) isAnothers(x index) bool {
	have := x[olmcore.KeyOf(d.object)]
	return have != nil && !d.isOurs(have)
}

// over returns an observed object in the desired form, and whether that changes it. What others added to its labels,
// annotations and owners stays; the labels that what OLM made lacks are no reason to write it.
func (d desired) over(have olmcore.Object) (after olmcore.Object, changed bool) {
	labels, _ := olmcore.MergeLabels(have.GetLabels(), d.object.GetLabels())
	_, relabelled := olmcore.MergeLabels(have.GetLabels(), withoutMarks(have, d.object.GetLabels()))
	owners, reowned := repairOwners(have.GetOwnerReferences(), d.object.GetOwnerReferences())
	want, account := contentOf(d.object), d.object.GetAnnotations()[annotationLimit]
	isSame := equality.Semantic.DeepEqual(contentOf(have), want)
	relimited := d.limited && have.GetAnnotations()[annotationLimit] != account
	if !relabelled && !reowned && !relimited && isSame {
		return have, false
	}
	after = have.DeepCopyObject().(olmcore.Object)
	after.SetLabels(labels)
	after.SetOwnerReferences(owners)
	want.into(after)
	if relimited || !isSame { // a ClusterRole with rules needs no limit: the API server checked the account's rights
		limit(after, account)
	}
	return after, true
}

// withoutMarks are the labels that a cluster-scoped object must have which OLM made: it has neither of the two that this
// library adds. One that has either is ours, and has both.
func withoutMarks(have olmcore.Object, labels map[string]string) map[string]string {
	_, isOurs := have.GetLabels()[olmcore.LabelOwnerUID]
	if _, from := have.GetLabels()[olmcore.LabelCopiedFrom]; isOurs || from || have.GetNamespace() != "" {
		return labels
	}
	labels = maps.Clone(labels)
	delete(labels, olmcore.LabelOwnerUID)
	delete(labels, olmcore.LabelCopiedFrom)
	return labels
}

// repairOwners is olmcore.RepairOwnerReferences that also replaces references whose kind is written in another case,
// which OLM writes and no client resolves. The case alone is no change: one of an owner that exists, by its UID, is
// replaced together with another change.
func repairOwners(have, want []metav1.OwnerReference) (repaired []metav1.OwnerReference, changed bool) {
	isMisspelt := func(r, w metav1.OwnerReference) bool {
		return r.Kind != w.Kind && strings.EqualFold(r.Kind, w.Kind) && r.Name == w.Name
	}
	respelt := slices.Clone(have)
	for i, r := range respelt {
		isIt := func(w metav1.OwnerReference) bool { return isMisspelt(r, w) }
		if wanted := slices.IndexFunc(want, isIt); wanted >= 0 {
			respelt[i].Kind = want[wanted].Kind
		}
	}
	return olmcore.RepairOwnerReferences(respelt, want)
}

// content is what a role or binding says, besides its metadata.
type content struct {
	Rules      []rbacv1.PolicyRule
	Aggregated *rbacv1.AggregationRule
	RoleRef    rbacv1.RoleRef
	Subjects   []rbacv1.Subject
}

func contentOf(o olmcore.Object) content {
	switch o := o.(type) {
	case *rbacv1.Role:
		return content{Rules: o.Rules}
	case *rbacv1.ClusterRole:
		return content{Rules: o.Rules, Aggregated: o.AggregationRule}
	case *rbacv1.RoleBinding:
		return content{RoleRef: o.RoleRef, Subjects: o.Subjects}
	case *rbacv1.ClusterRoleBinding:
		return content{RoleRef: o.RoleRef, Subjects: o.Subjects}
	}
	return content{}
}

// into makes an object say this.
func (c content) into(o olmcore.Object) {
	switch o := o.(type) {
	case *rbacv1.Role:
		o.Rules = c.Rules
	case *rbacv1.ClusterRole:
		o.Rules, o.AggregationRule = c.Rules, c.Aggregated
	case *rbacv1.RoleBinding:
		o.Subjects = c.Subjects
	case *rbacv1.ClusterRoleBinding:
		o.Subjects = c.Subjects
	}
}
