// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of this package's Causes.
const (
	// ReasonCSVChanged means that the OperatorCondition is created or updated to match its ClusterServiceVersion.
	// Nothing to do.
	ReasonCSVChanged = "CSVChanged"
	// ReasonConditionChanged means that the Role or RoleBinding is written to match the OperatorCondition. Nothing to
	// do.
	ReasonConditionChanged = "ConditionChanged"
	// ReasonStatusChanged means that spec.conditions is copied to status.conditions. Nothing to do.
	ReasonStatusChanged = model.ReasonStatusChanged
	// ReasonVariableMissing means that a container of an operator gets the missing variable OPERATOR_CONDITION_NAME.
	// Nothing to do.
	ReasonVariableMissing = "VariableMissing"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read, so the objects and fields that depend on it stay as they are.
	// Give the caller access to the kind in the message.
	ReasonNotObserved = read.ReasonNotObserved
	// ReasonNameConflict means that an OperatorCondition, Role or RoleBinding with the needed name is unmanaged or owned
	// by another object. The object is not changed. Delete or rename the object.
	ReasonNameConflict = "NameConflict"
	// ReasonInvalidServiceAccount means that spec.serviceAccounts of an OperatorCondition contains an invalid
	// ServiceAccount name. That name gets no permissions. Correct the permissions of the ClusterServiceVersion, or the
	// OperatorCondition if it has no ClusterServiceVersion.
	ReasonInvalidServiceAccount = "InvalidServiceAccount"
)

// Reconcile returns the writes for one OperatorCondition:
//   - It creates the OperatorCondition of a ClusterServiceVersion that is neither a copy nor being deleted.
//   - It updates the ServiceAccounts and Deployments in the spec to match the install strategy, unless another
//     object controls the OperatorCondition.
//   - It creates a Role and a RoleBinding that give the ServiceAccounts access to the OperatorCondition.
//   - It copies spec.conditions to status.conditions with the observed generation, which upgrades depend on.
//   - It sets the name of the OperatorCondition in the containers of those Deployments in the spec that belong to the
//     ClusterServiceVersion.
//
// If a list was not read, the objects and fields that depend on it stay as they are. There is nothing to do if the
// Outcome contains only a Checkpoint. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators, OperatorConditionReconciler and
// OperatorConditionGeneratorReconciler.
// Differs: this library lists a ServiceAccount only once. It also copies a condition if only the reason or message
// changed. It ignores Deployments that do not exist. It creates a RoleBinding only if the Role belongs to the
// OperatorCondition.
func Reconcile(in Input) (olmcore.Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in), nil })
}

// facts contains the objects of a key. It is read-only once observe has filled it.
type facts struct {
	in *Input // as the caller passed it
	// csv is the ClusterServiceVersion of the OperatorCondition. It is nil if none exists, or only a copy.
	csv *v1alpha1.ClusterServiceVersion
	// condition is the OperatorCondition. It is nil if none exists.
	condition *operatorsv2.OperatorCondition
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	f := &facts{in: in}
	c, ok := model.Find(in.ClusterServiceVersions.Items, in.Key.Namespace, in.Key.Name)
	if ok && !c.IsCopied() {
		f.csv = c
	}
	f.condition, _ = model.Find(in.OperatorConditions.Items, in.Key.Namespace, in.Key.Name)
	return f
}

func decide(in Input) olmcore.Result {
	f := observe(&in)
	unread := read.NotRead(f.unread(), f.target(), "", "dependent objects and fields stay as they are")
	switch {
	case !in.OperatorConditions.Complete:
		return unread
	case f.condition == nil && f.isWanted():
		return unread.And(create(f))
	case f.condition == nil || f.condition.DeletionTimestamp != nil:
		return unread // the garbage collector deletes its dependents
	}
	return unread.And(content(f), rights(f), variables(f))
}

// unread returns the names of the needed lists that were not read.
func (f *facts) unread() []string {
	unread := slices.Concat(
		read.Missing(f.in.ClusterServiceVersions, "ClusterServiceVersions (ServiceAccounts and Deployments)"),
		read.Missing(f.in.OperatorConditions, "OperatorConditions (all objects)"),
	)
	if f.condition == nil {
		return unread
	}
	return slices.Concat(unread,
		read.Missing(f.in.Roles, "Roles (the permissions of the operator)"),
		read.Missing(f.in.RoleBindings, "RoleBindings (the permissions of the operator)"),
		read.Missing(f.in.Deployments, "Deployments (their variable "+variable+")"),
	)
}

// target returns the reference for Diagnostics about unread lists.
func (f *facts) target() olmcore.Ref {
	if f.condition != nil {
		return olmcore.RefOf(f.condition)
	}
	ref := olmcore.RefOf(&operatorsv2.OperatorCondition{})
	ref.Namespace, ref.Name = f.in.Key.Namespace, f.in.Key.Name
	return ref
}

// write returns a Result with actions.
func write(actions ...olmcore.Action) olmcore.Result { return olmcore.Result{Actions: actions} }

// reportConflict returns a Result that reports an object of another owner.
func reportConflict(o olmcore.Object, format string, args ...any) olmcore.Result {
	conflict := olmcore.Diagnose(olmcore.Warning, ReasonNameConflict, olmcore.RefOf(o), "", format, args...)
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{conflict}}
}
