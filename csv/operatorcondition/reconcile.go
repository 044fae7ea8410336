// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of this package's Causes: why an action is asked for.
const (
	// ReasonCSVChanged: the OperatorCondition follows its ClusterServiceVersion. Nothing to do.
	ReasonCSVChanged = "CSVChanged"
	// ReasonConditionChanged: the Role and the RoleBinding follow the OperatorCondition. Nothing to do.
	ReasonConditionChanged = "ConditionChanged"
	// ReasonStatusChanged: status.conditions follow spec.conditions. Nothing to do.
	ReasonStatusChanged = owned.ReasonStatusChanged
	// ReasonVariableMissing: a container of an operator does not know the name of its OperatorCondition. Nothing to do.
	ReasonVariableMissing = "VariableMissing"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved: a list was not read, and what it would decide stays as it is. Give the caller access to the
	// kind that it names.
	ReasonNotObserved = "NotObserved"
	// ReasonNameConflict: the OperatorCondition, Role or RoleBinding of the name that is needed is unmanaged or owned
	// by another, and is left alone. Delete it or give it another name.
	ReasonNameConflict = "NameConflict"
	// ReasonInvalidServiceAccount: an OperatorCondition lists what cannot be the name of a ServiceAccount, which gets
	// nothing. Correct it, or the permissions of the ClusterServiceVersion that it follows.
	ReasonInvalidServiceAccount = "InvalidServiceAccount"
)

// unreadPace is how often a key is looked at again whose lists were not read.
const unreadPace = 5 * time.Second

// Reconcile decides about one OperatorCondition. It makes one for a ClusterServiceVersion that is neither a copy nor
// being deleted, and lets its accounts and Deployments follow the install strategy; one that another object controls
// stays as it is. The accounts get a Role and a RoleBinding for this object alone. What the operator writes into
// spec.conditions is copied to status.conditions with the generation that it was seen at, without which nothing relies
// on it. And the containers of the listed Deployments, when they are the ClusterServiceVersion's, get the name of the
// object. What a list that was not read would decide stays as it is. An Outcome with nothing but a Checkpoint means
// that nothing is to be done. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators, OperatorConditionReconciler and
// OperatorConditionGeneratorReconciler.
// Differs: an account is listed once. A condition is copied also when only its reason or message changed. A Deployment
// that does not exist is no error. A RoleBinding exists only with a Role that is the OperatorCondition's.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in), nil })
}

// facts is what is known of a key.
type facts struct {
	*Input
	// csv is the ClusterServiceVersion that the OperatorCondition is for, nil for none: it is no copy.
	csv *v1alpha1.ClusterServiceVersion
	// condition is the OperatorCondition, nil for none.
	condition *operatorsv2.OperatorCondition
}

func observe(in *Input) *facts {
	f := &facts{Input: in}
	if c, ok := owned.Find(in.ClusterServiceVersions.Items, in.Key.Namespace, in.Key.Name); ok && !c.IsCopied() {
		f.csv = c
	}
	f.condition, _ = owned.Find(in.OperatorConditions.Items, in.Key.Namespace, in.Key.Name)
	return f
}

// part is what one topic asks for and says.
type part struct {
	actions     []olmcore.Action
	diagnostics []olmcore.Diagnostic
}

// parts is the table of what is decided about an OperatorCondition that exists.
var parts = [...]func(*facts) part{content, rights, variables}

func decide(in Input) (res olmcore.Result) {
	f := observe(&in)
	if unread := f.unread(); len(unread) > 0 {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, f.target(), "",
			"what these lists would decide stays as it is, as they were not read: %s", strings.Join(unread, ", ")))
		res.Requeue(unreadPace)
	}
	switch {
	case !in.OperatorConditions.Complete:
		return res
	case f.condition == nil && f.isWanted():
		res.Actions = []olmcore.Action{f.create()}
		return res
	case f.condition == nil || f.condition.DeletionTimestamp != nil:
		return res // what belongs to it goes with it
	}
	for _, decidePart := range parts {
		p := decidePart(f)
		res.Actions = append(res.Actions, p.actions...)
		res.Diagnostics = append(res.Diagnostics, p.diagnostics...)
	}
	return res
}

// unread names the lists that were not read and matter.
func (f *facts) unread() []string {
	unread := slices.Concat(
		read.Missing(f.ClusterServiceVersions, "ClusterServiceVersions (accounts and Deployments)"),
		read.Missing(f.OperatorConditions, "OperatorConditions (everything)"),
	)
	if f.condition == nil {
		return unread
	}
	return slices.Concat(unread,
		read.Missing(f.Roles, "Roles (the rights of the operator)"),
		read.Missing(f.RoleBindings, "RoleBindings (the rights of the operator)"),
		read.Missing(f.Deployments, "Deployments (their variable "+variable+")"),
	)
}

// target is what is said something about.
func (f *facts) target() olmcore.Ref {
	if f.condition != nil {
		return olmcore.RefOf(f.condition)
	}
	ref := olmcore.RefOf(&operatorsv2.OperatorCondition{})
	ref.Namespace, ref.Name = f.Key.Namespace, f.Key.Name
	return ref
}

func (f *facts) conflict(o olmcore.Object, format string, args ...any) olmcore.Diagnostic {
	return olmcore.Diagnose(olmcore.Warning, ReasonNameConflict, olmcore.RefOf(o), "", format, args...)
}
