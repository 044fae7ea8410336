// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. Gather fills all but Now, LastRun and
// Checkpoint.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// Key is the namespace and name of the original, which need not exist. Required.
	Key    types.NamespacedName
	Config Config
	// LastRun is the adapter's memory of its last Run; optional. Without it a write that the API server refuses is
	// repeated at the adapter's pace.
	LastRun olmcore.LastResults
	// Sources is the ClusterServiceVersion of that key, or none where it does not exist. More of them do no harm.
	Sources olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// OperatorGroups are those of its namespace. More of them do no harm.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Copies are the ClusterServiceVersions of its name in other namespaces, whole or slim: those whose label
	// olm.copiedFrom names its namespace, and those in the namespaces that its operator watches. More of them do no
	// harm.
	Copies olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Namespaces are those that its operator watches, and those of Copies. More of them do no harm.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// OLMConfigs is the one named cluster, or none where it does not exist. More of them do no harm. It matters to an
	// operator that watches all namespaces.
	OLMConfigs olmcore.Observed[*operatorsv1.OLMConfig]
	// Events is the one with the name that EventName returns, or none where it does not exist. It matters where the
	// OLMConfig says whether copies are disabled.
	Events olmcore.Observed[*corev1.Event]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this key; nil is always right.
	Checkpoint *olmcore.Checkpoint
}

// Config tunes the decisions. The zero value behaves as OLM does.
type Config struct {
	// ProtectedNamespaces keep their copies of operators that watch all namespaces where the OLMConfig disables them.
	ProtectedNamespaces []string `json:"protectedNamespaces,omitempty"`
}

// Outcome is a Result and what Reconcile asks its caller to keep.
type Outcome = olmcore.Outcome

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "Sources", &in.Sources, olmcore.Optional)
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Optional)
	olmcore.VisitList(v, "Copies", &in.Copies, olmcore.Optional)
	olmcore.VisitList(v, "Namespaces", &in.Namespaces, olmcore.Optional)
	olmcore.VisitList(v, "OLMConfigs", &in.OLMConfigs, olmcore.Optional)
	olmcore.VisitList(v, "Events", &in.Events, olmcore.Optional)
}

func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	lists := olmcore.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	olmcore.CoverValue(&c, in.Key.Namespace)
	olmcore.CoverValue(&c, in.Key.Name)
	olmcore.CoverValues(&c, in.Config.ProtectedNamespaces)
	olmcore.CoverMap(&c, in.LastRun)
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
	lists := olmcore.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
