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

// unreadPace is how often lists are asked for again that were not read, conflictPace how often an object of another is
// looked at that is in the way.
const (
	unreadPace   = 5 * time.Second
	conflictPace = time.Minute
)

// Reconcile decides about the roles and bindings that one ClusterServiceVersion needs where its operator watches, and
// about the ClusterRoles for the APIs that it provides. In a namespace with several OperatorGroups or none, or with one
// whose targets are not computed yet, what was granted stays as it is. An Outcome with nothing but a Checkpoint, or a
// time, means that nothing is to be done. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, ensureRBACInTargetNamespace and
// ensureClusterRolesForCSV.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(&in), nil })
}

// Assess returns all Diagnostics about a ClusterServiceVersion: those of Reconcile, and those that Reconcile reports only
// together with writes, such as ReasonAPINotRecorded and ReasonRoleNotLifted. Call it once after a start to report them
// also if nothing is written. The error is the *olmcore.InputError of Reconcile.
func Assess(in Input) ([]olmcore.Diagnostic, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	res, explained := assess(&in)
	return append(res.Diagnostics, explained...), nil
}

// decide returns what is to be done. An operator at rest stays at rest where an API of it gets no ClusterRoles.
func decide(in *Input) olmcore.Result {
	res, explained := assess(in)
	if len(res.Actions) > 0 {
		res.Diagnostics = append(res.Diagnostics, explained...)
	}
	return res
}

// assess returns what is to be done, and why more is not.
func assess(in *Input) (res olmcore.Result, explained []olmcore.Diagnostic) {
	c := in.ClusterServiceVersion
	if !isDecided(c) {
		return res, nil
	}
	grants, sound := grantsOf(c)
	where := scopeOf(c, in.OperatorGroups.Items)
	apis := providedAPIs(c)
	if !sound { // package csv says what is wrong with the spec; it holds nothing that the group takes away
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
	explained = unlifted(in, where)
	if where.known {
		explained = append(explained, unprovenAdopted(in, observed, grants, where)...)
	}
	if more := unreadToProvide(in, apis); len(more) > 0 {
		unread = append(unread, more...)
	} else {
		provided, unprovided := provide(in, apis)
		next.desired, explained = append(next.desired, provided...), append(explained, unprovided...)
	}
	return next.result(in, observed, unread), explained
}

// isDecided reports whether a ClusterServiceVersion is an original one whose permissions and APIs are decided about.
// Nothing could be labelled as belonging to a name that is no value of a label.
func isDecided(c *v1alpha1.ClusterServiceVersion) bool {
	return c.DeletionTimestamp == nil && !c.IsCopied() && owned.IsLabelValue(c.Name)
}

// result turns a plan into actions, and says what was not read.
func (p plan) result(in *Input, observed index, unread []string) (res olmcore.Result) {
	res.Diagnostics = p.said
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
	holdRefused(in, &res)
	return res
}

// unreadToLift names the lists that were not read and that decide where the permissions hold.
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

// unreadToApprove names the lists that were not read and that decide whether permissions may be granted that were not
// granted before.
func unreadToApprove(in *Input, open []grant) []string {
	if len(open) == 0 {
		return nil
	}
	return append(read.Missing(in.InstallPlans, "InstallPlans"), read.Missing(in.Namespaces, "Namespaces")...)
}

// unreadToProvide names the lists that were not read and that decide about the ClusterRoles for APIs.
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

// holdRefused takes out the writes that the API server refused a short while ago, and says so.
func holdRefused(in *Input, res *olmcore.Result) {
	refused.Hold(res, in.LastRun, in.Now, func(verb olmcore.Verb, target olmcore.Ref, message string) {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonRefused, target, "",
			"the API server refuses to %s it: %s", verb, message))
	})
}

// scope is where the permissions of a ClusterServiceVersion hold besides its own namespace: in the whole cluster, in
// namespaces, or nowhere.
type scope struct {
	// known is false where nothing can be said about it.
	known      bool
	cluster    bool
	namespaces []string
	// limit says why they do not hold in the whole cluster, empty if they do.
	limit string
}

// scopeOf follows the targets of the only OperatorGroup of the namespace. An operator that does not support them, or
// that was stopped for its APIs, gets nothing elsewhere.
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
		s.limit = "ClusterServiceVersion " + c.Name + " is stopped because of the APIs that it provides"
		return s
	case group.Unsupported(c, targets) != "":
		s.limit = "ClusterServiceVersion " + c.Name + " does not support the targets of OperatorGroup " + g.Name
		return s
	case !targets.All():
		s.limit = "OperatorGroup " + g.Name + " does not target all namespaces"
	}
	s.cluster = targets.All()
	s.namespaces = slices.DeleteFunc(targets.Named(), func(n string) bool { return n == c.Namespace })
	return s
}

// maxNamespaces is how many namespaces a scope names at most.
const maxNamespaces = 5

// String describes the scope in words.
func (s scope) String() string {
	switch n := len(s.namespaces); {
	case s.cluster:
		return "all namespaces"
	case n > maxNamespaces:
		return fmt.Sprintf("namespaces %s and %d more", strings.Join(s.namespaces[:maxNamespaces], ", "), n-maxNamespaces)
	}
	return group.Targets(s.namespaces).String()
}
