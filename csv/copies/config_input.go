// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// ConfigInput contains all data that ReconcileConfig uses. ReconcileConfig does not change it. GatherConfig fills all
// fields except Now and Checkpoint.
type ConfigInput struct {
	// Now is the time of this call. Required.
	Now time.Time
	// OLMConfig is the object to reconcile, with a name. Required.
	OLMConfig *operatorsv1.OLMConfig
	Config    Config
	// ClusterServiceVersions, OperatorGroups and Namespaces contain all objects of the cluster. Copied CSVs may be
	// slim: see Slim.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	OperatorGroups         olmcore.Observed[*operatorsv1.OperatorGroup]
	Namespaces             olmcore.Observed[*corev1.Namespace]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this OLMConfig. Nil is always correct, but makes the call
	// slower.
	Checkpoint *olmcore.Checkpoint
}

// lists names every list of the ConfigInput once. To add a list, add a field and a row.
func (in *ConfigInput) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Optional)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional)
	inputs.VisitList(v, "Namespaces", &in.Namespaces, inputs.Optional)
}

func (in *ConfigInput) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverObject(&c, in.OLMConfig)
	checkpoint.CoverValues(&c, in.Config.ProtectedNamespaces)
	return c
}

func (in *ConfigInput) validate() error {
	switch {
	case in.OLMConfig == nil:
		return &olmcore.InputError{Field: "OLMConfig", Problem: "is nil"}
	case in.OLMConfig.Name == "":
		return &olmcore.InputError{Field: "OLMConfig.metadata.name", Problem: "is empty"}
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
