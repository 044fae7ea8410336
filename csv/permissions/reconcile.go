// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// conflictPace is the time after which an object of another owner with a needed name is read again.
const conflictPace = time.Minute

// Reconcile returns the writes that grant the permissions of one ClusterServiceVersion where its operator watches. It
// also returns the writes of the ClusterRoles for the APIs that the ClusterServiceVersion provides. Grants stay as they
// are if the namespace has no OperatorGroup or several, or if the targets of the OperatorGroup are not computed yet.
// There is nothing to do if the Outcome contains only a Checkpoint or RequeueAfter. The error is an
// *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, ensureRBACInTargetNamespace and
// ensureClusterRolesForCSV.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (olmcore.Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in), nil })
}

// Assess returns all Diagnostics about a ClusterServiceVersion. They include those that Reconcile returns only together
// with writes, such as ReasonAPINotRecorded and ReasonRoleNotLifted. Call it once after a start, so that they are
// reported even if nothing is written. The error is the *olmcore.InputError of Reconcile.
func Assess(in Input) ([]olmcore.Diagnostic, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	res, explained := assess(&in)
	return append(res.Diagnostics, explained...), nil
}

// HasTargets reports whether the namespace has exactly one OperatorGroup, and its targets are computed. Otherwise
// Reconcile does not change the grants of the permissions, and Assess does not report them.
func (in *Input) HasTargets() bool {
	return scopeOf(in.ClusterServiceVersion, in.OperatorGroups.Items).known
}

// decide returns the Result of Reconcile. Without an action it contains no lasting Diagnostics, so that an operator at
// rest gets a Checkpoint.
func decide(in Input) olmcore.Result {
	res, lasting := assess(&in)
	if len(res.Actions) == 0 {
		return res
	}
	return res.And(olmcore.Result{Diagnostics: lasting})
}

// assess returns the Result of Reconcile without the lasting Diagnostics, and these. They report permissions that stay
// although a new operator would not get them, and APIs and Roles that are not granted elsewhere.
func assess(in *Input) (res olmcore.Result, lasting []olmcore.Diagnostic) {
	if !isDecided(in.ClusterServiceVersion) {
		return olmcore.Result{}, nil
	}
	f := observe(in)
	grants, unreadGrants := decideGrants(f)
	roles, unprovided, unreadRoles := provide(f)
	unread := slices.Compact(slices.Sorted(slices.Values(slices.Concat(unreadGrants, unreadRoles))))
	res = grants.and(plan{desired: roles}).result(f, unread)
	return holdRejected(f, res), slices.Concat(unlifted(f), unprovenAdopted(f), unprovided)
}

// isDecided reports whether Reconcile decides about a ClusterServiceVersion. It is not a copy, is not being deleted,
// and its name can be the value of an owner label.
func isDecided(c *v1alpha1.ClusterServiceVersion) bool {
	return c.DeletionTimestamp == nil && !c.IsCopied() && model.IsLabelValue(c.Name)
}

// decideGrants returns the plan for the permissions of a CSV. If a list was not read that decides about them, it
// returns an empty plan and the names of the unread lists.
func decideGrants(f *facts) (next plan, unread []string) {
	unread = unreadToLift(f)
	if len(unread) > 0 || !f.scope.known {
		return plan{}, unread
	}
	open := needProof(f)
	if unread = unreadToApprove(f, open); len(unread) > 0 {
		return plan{}, unread
	}
	return lift(f, approve(f, open)), nil
}

// unreadToLift returns the names of the unread lists that decide where the permissions hold.
func unreadToLift(f *facts) []string {
	unread := read.Missing(f.in.OperatorGroups, "OperatorGroups")
	if f.scope.known {
		unread = append(unread, read.Missing(f.in.ClusterRoles, "ClusterRoles")...)
		unread = append(unread, read.Missing(f.in.ClusterRoleBindings, "ClusterRoleBindings")...)
	}
	if len(f.scope.namespaces) > 0 {
		unread = append(unread, read.Missing(f.in.Copies, "copies of the ClusterServiceVersion")...)
	}
	if f.scope.cluster && len(f.grants) > 0 || len(f.scope.namespaces) > 0 {
		unread = append(unread, slices.Concat(
			read.Missing(f.in.ServiceAccounts, "ServiceAccounts"),
			read.Missing(f.in.Roles, "Roles"),
			read.Missing(f.in.RoleBindings, "RoleBindings"),
		)...)
	}
	return unread
}

// unreadToApprove returns the names of the unread lists that may prove permissions.
func unreadToApprove(f *facts, open []grant) []string {
	if len(open) == 0 {
		return nil
	}
	return append(read.Missing(f.in.InstallPlans, "InstallPlans"), read.Missing(f.in.Namespaces, "Namespaces")...)
}

// holdRejected returns the Result without the writes that the API server rejected a short time ago, and with
// Diagnostics about them.
func holdRejected(f *facts, res olmcore.Result) olmcore.Result {
	due, rejected := model.DueWrites(res.Actions, f.in.LastRun, f.in.Now)
	res.Actions = due
	var reports []olmcore.Result
	for _, w := range rejected {
		reports = append(reports, olmcore.Result{RequeueAfter: w.RetryIn, Diagnostics: []olmcore.Diagnostic{
			olmcore.Diagnose(olmcore.Warning, ReasonRefused, w.Target, "",
				"the API server rejected the last write (%s): %s", w.Verb, w.Message),
		}})
	}
	return res.And(reports...)
}
