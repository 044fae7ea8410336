// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/csv/internal/refused"
	"github.com/olmcore/olm/olmcore"
)

const (
	// unreadPace is the time after which lists that were not read are requested again.
	unreadPace = 5 * time.Second
	// conflictPace is the time after which an object of another owner with a needed name is read again.
	conflictPace = time.Minute
)

// Reconcile returns the writes that grant the permissions of one ClusterServiceVersion where its operator watches. It
// also returns the writes of the ClusterRoles for the APIs that the ClusterServiceVersion provides. Grants stay as they
// are if the namespace has no OperatorGroup or several, or if the targets of the OperatorGroup are not computed yet.
// There is nothing to do if the Outcome contains only a Checkpoint or RequeueAfter. The error is an
// *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, ensureRBACInTargetNamespace and
// ensureClusterRolesForCSV.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(&in), nil })
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
func decide(in *Input) olmcore.Result {
	res, lasting := assess(in)
	if len(res.Actions) > 0 {
		res.Diagnostics = append(res.Diagnostics, lasting...)
	}
	return res
}

// assess returns the Result of Reconcile without the lasting Diagnostics, and these. They report permissions that stay
// although a new operator would not get them, and APIs and Roles that are not granted elsewhere.
func assess(in *Input) (res olmcore.Result, lasting []olmcore.Diagnostic) {
	c := in.ClusterServiceVersion
	if !isDecided(c) {
		return res, nil
	}
	grants, sound := grantsOf(c)
	where := scopeOf(c, in.OperatorGroups.Items)
	apis := providedAPIs(c)
	if !sound { // package csv reports the error of the spec. Only what the group withdraws is deleted
		where.known, apis = where.known && !where.cluster && len(where.namespaces) == 0, nil
	}
	observed := newIndex(in)
	var next plan
	unread := unreadToLift(in, grants, where)
	if len(unread) == 0 && where.known {
		open := needProof(in, observed, grants, where)
		if unread = unreadToApprove(in, open); len(unread) == 0 {
			next = lift(in, observed, grants, where, approve(in, open, where))
		}
	}
	lasting = unlifted(in, where)
	if where.known {
		lasting = append(lasting, unprovenAdopted(in, observed, grants, where)...)
	}
	if more := unreadToProvide(in, apis); len(more) > 0 {
		unread = append(unread, more...)
	} else {
		provided, unprovided := provide(in, apis)
		next.desired, lasting = append(next.desired, provided...), append(lasting, unprovided...)
	}
	return next.result(in, observed, unread), lasting
}

// isDecided reports whether Reconcile decides about a ClusterServiceVersion. It is not a copy, is not being deleted,
// and its name can be the value of an owner label.
func isDecided(c *v1alpha1.ClusterServiceVersion) bool {
	return c.DeletionTimestamp == nil && !c.IsCopied() && owned.IsLabelValue(c.Name)
}

// result returns the actions and Diagnostics of a plan. unread names the lists that were not read.
func (p plan) result(in *Input, observed index, unread []string) (res olmcore.Result) {
	res.Diagnostics = p.diagnostics
	if len(unread) > 0 {
		slices.Sort(unread)
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(in.ClusterServiceVersion), "",
			"what these lists would decide stays as it is, as they were not read: %s", strings.Join(slices.Compact(unread), ", ")))
		res.Requeue(unreadPace)
	}
	for _, d := range p.desired {
		d.compare(observed, &res)
	}
	res.Actions = append(res.Actions, p.removals...)
	return holdRejected(in, res)
}

// unreadToLift returns the names of the unread lists that decide where the permissions hold.
func unreadToLift(in *Input, grants []grant, where scope) []string {
	unread := read.Missing(in.OperatorGroups, "OperatorGroups")
	if where.known {
		unread = append(unread, read.Missing(in.ClusterRoles, "ClusterRoles")...)
		unread = append(unread, read.Missing(in.ClusterRoleBindings, "ClusterRoleBindings")...)
	}
	if len(where.namespaces) > 0 {
		unread = append(unread, read.Missing(in.Copies, "copies of the ClusterServiceVersion")...)
	}
	if where.cluster && len(grants) > 0 || len(where.namespaces) > 0 {
		unread = append(unread, slices.Concat(
			read.Missing(in.ServiceAccounts, "ServiceAccounts"), read.Missing(in.Roles, "Roles"), read.Missing(in.RoleBindings, "RoleBindings"),
		)...)
	}
	return unread
}

// unreadToApprove returns the names of the unread lists that may prove permissions.
func unreadToApprove(in *Input, open []grant) []string {
	if len(open) == 0 {
		return nil
	}
	return append(read.Missing(in.InstallPlans, "InstallPlans"), read.Missing(in.Namespaces, "Namespaces")...)
}

// unreadToProvide returns the names of the unread lists that decide about the ClusterRoles for APIs.
func unreadToProvide(in *Input, apis []providedAPI) (unread []string) {
	if len(apis) > 0 {
		unread = read.Missing(in.ClusterRoles, "ClusterRoles")
	}
	if slices.ContainsFunc(apis, func(a providedAPI) bool { return a.crd != "" }) {
		unread = append(unread, read.Missing(in.CustomResourceDefinitions, "CustomResourceDefinitions")...)
	}
	if slices.ContainsFunc(apis, func(a providedAPI) bool { return a.service != "" }) {
		unread = append(unread, read.Missing(in.APIServices, "APIServices")...)
	}
	return unread
}

// holdRejected returns the Result without the writes that the API server rejected a short time ago, and with
// Diagnostics about them.
func holdRejected(in *Input, res olmcore.Result) olmcore.Result {
	due, rejected := refused.Due(res.Actions, in.LastRun, in.Now)
	res.Actions = due
	for _, w := range rejected {
		res.Requeue(w.RetryIn)
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonRefused, w.Target, "",
			"the API server refuses to %s it: %s", w.Verb, w.Message))
	}
	return res
}

// scope is where the permissions of a ClusterServiceVersion hold in addition to its own namespace: in the whole
// cluster, in namespaces, or nowhere.
type scope struct {
	// known is false if the targets of the OperatorGroup are not known.
	known bool
	// cluster is true for the whole cluster. Otherwise namespaces contains the target namespaces.
	cluster    bool
	namespaces []string
	// reason says why the permissions do not hold in the whole cluster. It is empty if they do.
	reason string
}

// scopeOf returns the scope that the only OperatorGroup of the namespace gives. It is empty for an operator that does
// not support the targets of the group, and for one that was stopped because of its APIs.
func scopeOf(c *v1alpha1.ClusterServiceVersion, groups []*operatorsv1.OperatorGroup) scope {
	g, _ := group.Alone(groups, c.Namespace)
	if g == nil {
		return scope{}
	}
	targets, computed := group.TargetsOf(g)
	if !computed {
		return scope{}
	}
	s := scope{known: true}
	switch {
	case group.IsShutOut(c):
		s.reason = "ClusterServiceVersion " + c.Name + " is stopped because of the APIs that it provides"
		return s
	case group.Unsupported(c, targets) != "":
		s.reason = "ClusterServiceVersion " + c.Name + " does not support the targets of OperatorGroup " + g.Name
		return s
	case !targets.All():
		s.reason = "OperatorGroup " + g.Name + " does not target all namespaces"
	}
	s.cluster = targets.All()
	s.namespaces = slices.DeleteFunc(targets.Named(), func(n string) bool { return n == c.Namespace })
	return s
}

// maxNamespaces is the number of namespaces that a scope names at most.
const maxNamespaces = 5

// String returns the scope in words, for messages.
func (s scope) String() string {
	switch n := len(s.namespaces); {
	case s.cluster:
		return "all namespaces"
	case n > maxNamespaces:
		return fmt.Sprintf("namespaces %s and %d more", strings.Join(s.namespaces[:maxNamespaces], ", "), n-maxNamespaces)
	}
	return group.Targets(s.namespaces).String()
}
