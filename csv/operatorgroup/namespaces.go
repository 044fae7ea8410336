// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// labelNamespaces adds a label with the UID of the OperatorGroup to the namespaces that its status lists, so that
// webhooks can select them. It removes the label from other namespaces. A group that targets all namespaces needs none.
func labelNamespaces(f *facts) olmcore.Result {
	watched, computed := model.TargetsOf(f.group)
	if !f.in.Namespaces.Complete || !computed || f.group.UID == "" {
		return olmcore.Result{}
	}
	key := model.GroupLabelPrefix + string(f.group.UID)
	watches := sets.New(watched...)
	var actions []olmcore.Action
	for _, n := range f.in.Namespaces.Items {
		actions = append(actions, labelNamespace(f.group, n, key, watches.Has(n.Name))...)
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return olmcore.Result{Actions: actions}
}

// labelNamespace adds the label with a key to a namespace that the OperatorGroup watches, and removes it from others.
func labelNamespace(g *operatorsv1.OperatorGroup, n *corev1.Namespace, key string, isWatched bool) []olmcore.Action {
	_, hasLabel := n.Labels[key]
	if hasLabel == isWatched || n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating {
		return nil
	}
	after := n.DeepCopy()
	why := " watches it"
	if isWatched {
		after.Labels, _ = olmcore.MergeMaps(after.Labels, map[string]string{key: ""})
	} else {
		delete(after.Labels, key)
		why = " does not watch it any more"
	}
	return []olmcore.Action{olmcore.UpdateOf(n, after, olmcore.Cause{
		Reason: ReasonGroupChanged, Message: "OperatorGroup " + g.Namespace + "/" + g.Name + why,
	})}
}
