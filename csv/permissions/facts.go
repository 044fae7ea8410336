// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/installer"
)

// facts contains the classified objects of an Input, for a CSV that isDecided. observe fills it once. Afterwards it is
// read-only.
type facts struct {
	in  *Input // as the caller passed it
	csv *v1alpha1.ClusterServiceVersion
	// grants contains the permissions for the namespace of the operator. scope is where else they should hold.
	grants []grant
	scope  scope
	// apis contains the APIs that the CSV provides.
	apis []providedAPI
	// group is the only OperatorGroup of the namespace, or nil.
	group *operatorsv1.OperatorGroup
	// account is the ServiceAccount that the writes of grants use, or nil if they use the identity of the controller.
	// isConfirmed is false while the status of the group does not confirm the account.
	account     *corev1.ObjectReference
	isConfirmed bool
	// observed contains the observed roles and bindings.
	observed index
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	grants, isSound := grantsOf(in.ClusterServiceVersion)
	f := observeGrants(in, grants)
	if !isSound { // package csv reports the error of the spec. Grants are only withdrawn
		f.scope.known = f.scope.known && !f.scope.cluster && len(f.scope.namespaces) == 0
		f.apis = nil
	}
	return f
}

// observeGrants returns the facts of an Input whose permissions are known.
func observeGrants(in *Input, grants []grant) *facts {
	c := in.ClusterServiceVersion
	f := &facts{
		in: in, csv: c, grants: grants, apis: providedAPIs(c), scope: scopeOf(c, in.OperatorGroups.Items), observed: newIndex(in),
	}
	f.group, _ = model.OnlyGroup(in.OperatorGroups.Items, c.Namespace)
	f.account, f.isConfirmed = installer.AccountOf(f.group)
	return f
}

// accountName returns the name of the ServiceAccount that limits what is granted now, or an empty name if the
// OperatorGroup names none.
func (f *facts) accountName() string {
	if f.group == nil {
		return ""
	}
	return f.group.Spec.ServiceAccountName
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
	g, _ := model.OnlyGroup(groups, c.Namespace)
	if g == nil {
		return scope{}
	}
	targets, computed := model.TargetsOf(g)
	if !computed {
		return scope{}
	}
	s := scope{known: true}
	switch {
	case model.IsShutOut(c):
		s.reason = "ClusterServiceVersion " + c.Name + " is stopped because of the APIs that it provides"
		return s
	case model.UnsupportedTargets(c, targets) != "":
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
	return model.Targets(s.namespaces).String()
}
