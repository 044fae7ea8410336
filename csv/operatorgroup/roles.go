// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"crypto/sha256"
	"math/big"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

const roleNamePrefix = "olm.og."

// roleName returns the name that OLM gives. It is valid if the name of the group is a label value.
func roleName(g *operatorsv1.OperatorGroup, suffix string) string {
	sum := sha256.Sum224([]byte(g.Namespace + "/" + g.Name + "/" + suffix))
	tail := "." + suffix + "-" + new(big.Int).SetBytes(sum[:]).Text(62)
	return roleNamePrefix + g.Name + tail
}

// clusterRoles returns the writes that bring the aggregated ClusterRoles about. They select by label the roles that
// exist for each API.
func clusterRoles(in *Input) []olmcore.Action {
	if !in.ClusterRoles.Complete || !in.ClusterServiceVersions.Complete {
		return nil
	}
	g := in.OperatorGroup
	apis := group.Listed(g)
	for _, c := range in.ClusterServiceVersions.Items {
		if isMember(in, c) {
			apis = append(apis, group.Provided(c)...)
		}
	}
	var actions []olmcore.Action
	for _, suffix := range group.RoleSuffixes() {
		desired := desiredRole(g, apis, suffix)
		have, exists := owned.Find(in.ClusterRoles.Items, "", desired.Name)
		switch {
		case !exists:
			actions = append(actions, olmcore.CreateOf(desired, olmcore.Cause{
				Reason: ReasonGroupChanged, Message: "OperatorGroup " + g.Name + " has no role for " + suffix,
			}))
			continue
		case have.DeletionTimestamp != nil:
			continue
		}
		labels, relabelled := olmcore.MergeLabels(have.Labels, desired.Labels)
		after := have.DeepCopy()
		after.Labels, after.AggregationRule = labels, desired.AggregationRule
		if desired.AggregationRule == nil {
			after.Rules = nil // what was aggregated last: the API server's controller takes nothing away any more
		}
		if !relabelled && equality.Semantic.DeepEqual(have.AggregationRule, after.AggregationRule) && len(have.Rules) == len(after.Rules) {
			continue
		}
		actions = append(actions, olmcore.UpdateOf(have, after, olmcore.Cause{
			Reason: ReasonGroupChanged, Message: "the role does not follow what the operators of OperatorGroup " + g.Name + " provide",
		}))
	}
	return actions
}

func desiredRole(g *operatorsv1.OperatorGroup, apis []group.API, suffix string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: roleName(g, suffix), Labels: owned.ByGroup(g).Labels()},
	}
	role.Labels[olmcore.LabelManaged] = "true"
	keys := make([]string, 0, len(apis))
	for _, a := range apis {
		keys = append(keys, a.AggregateLabel(suffix))
	}
	slices.Sort(keys)
	var selectors []metav1.LabelSelector
	for _, key := range slices.Compact(keys) {
		selectors = append(selectors, metav1.LabelSelector{MatchLabels: map[string]string{key: "true"}})
	}
	if len(selectors) > 0 {
		role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: selectors}
	}
	return role
}

// namespaceLabels marks the namespaces that the group's status lists with its UID, so that webhooks can select them,
// and takes the mark off others. A group that watches all needs none.
func namespaceLabels(in *Input) []olmcore.Action {
	g := in.OperatorGroup
	watched, computed := group.TargetsOf(g)
	if !in.Namespaces.Complete || !computed || g.UID == "" {
		return nil
	}
	key := owned.GroupLabelPrefix + string(g.UID)
	watches := sets.New(watched...)
	var actions []olmcore.Action
	for _, n := range in.Namespaces.Items {
		_, marked := n.Labels[key]
		if marked == watches.Has(n.Name) || n.DeletionTimestamp != nil || n.Status.Phase == corev1.NamespaceTerminating {
			continue
		}
		after := n.DeepCopy()
		why := " watches it"
		if marked {
			delete(after.Labels, key)
			why = " does not watch it any more"
		} else {
			after.Labels, _ = olmcore.MergeLabels(after.Labels, map[string]string{key: ""})
		}
		actions = append(actions, olmcore.UpdateOf(n, after, olmcore.Cause{
			Reason: ReasonGroupChanged, Message: "OperatorGroup " + g.Namespace + "/" + g.Name + why,
		}))
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}
