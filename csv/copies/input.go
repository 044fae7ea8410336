// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. Gather fills all fields except Now,
// LastRun and Checkpoint. Lists may contain more objects than their comments name.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// Key is the namespace and name of the original, which may not exist any more. Required.
	Key    types.NamespacedName
	Config Config
	// LastRun contains the results of the caller's last olmcore.Run. Optional. If LastRun is nil, a write that the API
	// server rejected is retried without backoff.
	LastRun olmcore.LastResults
	// Sources contains the ClusterServiceVersion with the key, or nothing if it does not exist.
	Sources olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// OperatorGroups contains the OperatorGroups of the original's namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Copies contains ClusterServiceVersions with the name of the original in other namespaces. They may be whole or slim.
	// The list contains:
	//  - those whose label olm.copiedFrom contains the namespace of the original
	//  - those in the namespaces that the operator of the original watches
	Copies olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Namespaces contains the namespaces that the operator watches, and the namespaces of Copies.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// OLMConfigs contains the OLMConfig named cluster, or nothing if it does not exist. The OLMConfig has an effect only
	// if the operator watches all namespaces.
	OLMConfigs olmcore.Observed[*operatorsv1.OLMConfig]
	// Events contains the Event with the name EventName, or nothing if it does not exist. The list is used only if the
	// OLMConfig sets features.disableCopiedCSVs.
	Events olmcore.Observed[*corev1.Event]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this key. Nil is always correct, but makes the call
	// slower.
	Checkpoint *olmcore.Checkpoint
}

// Config contains the options of Reconcile. The zero value behaves as OLM does.
type Config struct {
	// ProtectedNamespaces contains namespaces that always get copies, even if the OLMConfig disables the copies of
	// operators that watch all namespaces.
	ProtectedNamespaces []string `json:"protectedNamespaces,omitempty"`
}

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "Sources", &in.Sources, inputs.Optional)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional)
	inputs.VisitList(v, "Copies", &in.Copies, inputs.Optional)
	inputs.VisitList(v, "Namespaces", &in.Namespaces, inputs.Optional)
	inputs.VisitList(v, "OLMConfigs", &in.OLMConfigs, inputs.Optional)
	inputs.VisitList(v, "Events", &in.Events, inputs.Optional)
}

func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverValue(&c, in.Key.Namespace)
	checkpoint.CoverValue(&c, in.Key.Name)
	checkpoint.CoverValues(&c, in.Config.ProtectedNamespaces)
	checkpoint.CoverMap(&c, in.LastRun)
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
