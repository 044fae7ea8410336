// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. Gather fills all fields except Now and
// Checkpoint. Lists may contain more objects than their comments name.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// Key is the namespace and name of the ClusterServiceVersion and its OperatorCondition. Required.
	Key types.NamespacedName
	// ClusterServiceVersions contains the ClusterServiceVersion with the key, which may be a copy, or nothing if it
	// does not exist.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// OperatorConditions contains the OperatorCondition with the key, or nothing if it does not exist.
	OperatorConditions olmcore.Observed[*operatorsv2.OperatorCondition]
	// Roles and RoleBindings contain the Role and the RoleBinding with the key.
	Roles        olmcore.Observed[*rbacv1.Role]
	RoleBindings olmcore.Observed[*rbacv1.RoleBinding]
	// Deployments contains the Deployments of the namespace that spec.deployments of the OperatorCondition names.
	Deployments olmcore.Observed[*appsv1.Deployment]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this key. Nil is always correct, but makes the call
	// slower.
	Checkpoint *olmcore.Checkpoint
}

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Optional, inputs.Writable)
	inputs.VisitList(v, "OperatorConditions", &in.OperatorConditions, inputs.Optional, inputs.Writable)
	inputs.VisitList(v, "Roles", &in.Roles, inputs.Optional, inputs.Writable)
	inputs.VisitList(v, "RoleBindings", &in.RoleBindings, inputs.Optional, inputs.Writable)
	inputs.VisitList(v, "Deployments", &in.Deployments, inputs.Optional, inputs.Writable)
}

func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverValue(&c, in.Key.Namespace)
	checkpoint.CoverValue(&c, in.Key.Name)
	return c
}

func (in *Input) validate() error {
	switch {
	case in.Key.Name == "":
		return &olmcore.InputError{Field: "Key.Name", Problem: "is empty"}
	case in.Key.Namespace == "":
		return &olmcore.InputError{Field: "Key.Namespace", Problem: "is empty"}
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
