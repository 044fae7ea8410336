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

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/ownerrefs"
	"github.com/olmcore/olm/olmcore"
)

// plan contains the desired roles and bindings, the deletions, and the Diagnostics of a Result.
type plan struct {
	desired     []desired
	removals    []olmcore.Action
	diagnostics []olmcore.Diagnostic
}

// and returns a plan with the parts of all plans.
func (p plan) and(others ...plan) plan {
	// Clipped slices are copied by append, so no other plan shares them.
	p.desired = slices.Clip(p.desired)
	p.removals = slices.Clip(p.removals)
	p.diagnostics = slices.Clip(p.diagnostics)
	for _, o := range others {
		p.desired = append(p.desired, o.desired...)
		p.removals = append(p.removals, o.removals...)
		p.diagnostics = append(p.diagnostics, o.diagnostics...)
	}
	return p
}

// withRecord returns a plan in which a record takes the place of another desired state of the same ClusterRole.
func (p plan) withRecord(record desired) plan {
	isOther := func(d desired) bool { return olmcore.KeyOf(d.object) == olmcore.KeyOf(record.object) }
	p.desired = append(slices.DeleteFunc(slices.Clone(p.desired), isOther), record)
	return p
}

// desired is the desired state of a role or binding.
type desired struct {
	object olmcore.Object
	// isOurs reports whether an existing object of this name may be updated.
	isOurs func(metav1.Object) bool
	// created is true if a missing object is created. Otherwise only an existing object is updated.
	created bool
	// kept is true if an existing object is not updated.
	kept bool
	// recreated is true if an existing object with another roleRef is deleted, so that it can be created again. A
	// roleRef is immutable.
	recreated bool
	// limited is true if the annotation of a record that names an account is corrected.
	limited bool
	// as is the ServiceAccount that writes the object, or nil for the controller.
	as  *corev1.ObjectReference
	why olmcore.Cause
}

// index contains the observed roles and bindings.
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

// result returns the Result of a plan. unread contains the names of the lists that were not read.
func (p plan) result(f *facts, unread []string) olmcore.Result {
	parts := []olmcore.Result{
		read.NotRead(unread, olmcore.RefOf(f.csv), "", "dependent roles and bindings stay as they are"),
	}
	for _, d := range p.desired {
		parts = append(parts, d.write(f.observed))
	}
	parts = append(parts, olmcore.Result{Actions: p.removals})
	return olmcore.Result{Diagnostics: p.diagnostics}.And(parts...)
}

// write returns the write that leads to the desired state, or a Diagnostic about an object of another owner.
func (d desired) write(observed index) olmcore.Result {
	have := observed[olmcore.KeyOf(d.object)]
	switch {
	case have == nil && d.created:
		return act(olmcore.Create{Target: olmcore.RefOf(d.object), Object: d.object, Cause: d.why, As: d.as})
	case have == nil:
		return olmcore.Result{}
	case !d.isOurs(have):
		return d.reportConflict(have)
	case have.GetDeletionTimestamp() != nil: // it is created again once it is deleted
		return olmcore.Result{}
	case contentOf(have).RoleRef == contentOf(d.object).RoleRef:
		return d.update(have)
	case d.recreated:
		remove := olmcore.DeleteOf(have, olmcore.Cause{Reason: d.why.Reason, Message: "it references another role than the permission"})
		remove.As = d.as
		return act(remove)
	}
	return olmcore.Result{}
}

// act returns a Result with one action.
func act(a olmcore.Action) olmcore.Result { return olmcore.Result{Actions: []olmcore.Action{a}} }

// reportConflict reports an object of another owner that has the name of the desired object.
func (d desired) reportConflict(have olmcore.Object) olmcore.Result {
	return olmcore.Result{RequeueAfter: conflictPace, Diagnostics: []olmcore.Diagnostic{
		olmcore.Diagnose(olmcore.Warning, ReasonNameConflict, olmcore.RefOf(have), "",
			"this object is not managed by the library, but an object with its name is needed: %s. Rename or delete this object",
			d.why.Message),
	}}
}

// update returns the update of an existing object, or an empty Result if it does not change.
func (d desired) update(have olmcore.Object) olmcore.Result {
	if d.kept {
		return olmcore.Result{}
	}
	after, changed := d.applyTo(have)
	if !changed {
		return olmcore.Result{}
	}
	update := olmcore.UpdateOf(have, after, d.why)
	update.As = d.as
	return act(update)
}

// isObserved reports whether the object exists with the desired content. A role is bound only then.
func (d desired) isObserved(x index) bool {
	have := x[olmcore.KeyOf(d.object)]
	return have != nil && have.GetDeletionTimestamp() == nil && equality.Semantic.DeepEqual(contentOf(have), contentOf(d.object))
}

// isOwnedByAnother reports whether an object of this name exists that may not be updated.
func (d desired) isOwnedByAnother(x index) bool {
	have := x[olmcore.KeyOf(d.object)]
	return have != nil && !d.isOurs(have)
}

// applyTo returns a copy of an observed object in the desired state, and whether it differs from the observed object.
// Labels, annotations and owners that others added stay. An object of OLM is not updated for the labels that only the
// library adds.
func (d desired) applyTo(have olmcore.Object) (after olmcore.Object, changed bool) {
	labels, _ := olmcore.MergeMaps(have.GetLabels(), d.object.GetLabels())
	_, relabelled := olmcore.MergeMaps(have.GetLabels(), withoutMarks(have, d.object.GetLabels()))
	owners, reowned := repairOwners(have.GetOwnerReferences(), d.object.GetOwnerReferences())
	content, account := contentOf(d.object), d.object.GetAnnotations()[annotationLimit]
	isSame := equality.Semantic.DeepEqual(contentOf(have), content)
	relimited := d.limited && have.GetAnnotations()[annotationLimit] != account
	if !relabelled && !reowned && !relimited && isSame {
		return have, false
	}
	after = have.DeepCopyObject().(olmcore.Object)
	after.SetLabels(labels)
	after.SetOwnerReferences(owners)
	content.copyTo(after)
	if relimited || !isSame { // a ClusterRole with rules needs no limit: the API server checked the account's rights
		setAccountLimit(after, account)
	}
	return after, true
}

// withoutMarks returns the labels that an observed object must have. A cluster-scoped object that has neither of the
// two labels which only the library adds was created by OLM, and does not need them. An object with one of them needs
// both.
func withoutMarks(have olmcore.Object, labels map[string]string) map[string]string {
	_, isOurs := have.GetLabels()[olmcore.LabelOwnerUID]
	_, from := have.GetLabels()[olmcore.LabelCopiedFrom]
	if isOurs || from || have.GetNamespace() != "" {
		return labels
	}
	labels = maps.Clone(labels)
	delete(labels, olmcore.LabelOwnerUID)
	delete(labels, olmcore.LabelCopiedFrom)
	return labels
}

// repairOwners is like ownerrefs.Repair. It also replaces references whose kind is written in another
// case, as OLM writes them and no client resolves them. The case alone is not a change: such a reference with the right
// UID is replaced together with another change only.
func repairOwners(have, want []metav1.OwnerReference) (repaired []metav1.OwnerReference, changed bool) {
	isMisspelt := func(r, w metav1.OwnerReference) bool {
		return r.Kind != w.Kind && strings.EqualFold(r.Kind, w.Kind) && r.Name == w.Name
	}
	respelt := slices.Clone(have)
	for i, r := range respelt {
		isSame := func(w metav1.OwnerReference) bool { return isMisspelt(r, w) }
		if n := slices.IndexFunc(want, isSame); n >= 0 {
			respelt[i].Kind = want[n].Kind
		}
	}
	return ownerrefs.Repair(respelt, want)
}

// content contains the fields of a role or binding other than its metadata.
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

// copyTo writes the content to an object.
func (c content) copyTo(o olmcore.Object) {
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
