// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"crypto/sha256"
	"math/big"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

const roleNamePrefix = "olm.og."

// roleName returns the name of a ClusterRole of an OperatorGroup, as OLM computes it. It is valid if the name of the
// group is a valid label value.
func roleName(g *operatorsv1.OperatorGroup, suffix string) string {
	sum := sha256.Sum224([]byte(g.Namespace + "/" + g.Name + "/" + suffix))
	tail := "." + suffix + "-" + new(big.Int).SetBytes(sum[:]).Text(62)
	return roleNamePrefix + g.Name + tail
}

// writeClusterRoles creates and updates the ClusterRoles of the OperatorGroup. They select by label the ClusterRoles
// that exist for each API.
func writeClusterRoles(f *facts) olmcore.Result {
	if !model.IsLabelValue(f.group.Name) {
		return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
			olmcore.Diagnose(olmcore.Warning, ReasonGroupNameTooLong, olmcore.RefOf(f.group), "metadata.name",
				"no ClusterRoles are created for the OperatorGroup: its name has %d characters, and a label value has at most %d",
				len(f.group.Name), validation.LabelValueMaxLength),
		}}
	}
	if !f.in.ClusterRoles.Complete || !f.in.ClusterServiceVersions.Complete {
		return olmcore.Result{}
	}
	apis := model.ListedAPIs(f.group)
	for _, c := range f.members {
		apis = append(apis, model.ProvidedAPIs(c)...)
	}
	var actions []olmcore.Action
	for _, suffix := range model.GroupRoleSuffixes() {
		actions = append(actions, writeClusterRole(f, apis, suffix)...)
	}
	return olmcore.Result{Actions: actions}
}

// writeClusterRole creates or updates the ClusterRole of one suffix.
func writeClusterRole(f *facts, apis []model.API, suffix string) []olmcore.Action {
	desired := desiredRole(f.group, apis, suffix)
	have, exists := model.Find(f.in.ClusterRoles.Items, "", desired.Name)
	switch {
	case !exists:
		return []olmcore.Action{olmcore.CreateOf(desired, olmcore.Cause{
			Reason: ReasonGroupChanged, Message: "OperatorGroup " + f.group.Name + " has no ClusterRole for " + suffix,
		})}
	case have.DeletionTimestamp != nil:
		return nil
	}
	labels, relabelled := olmcore.MergeMaps(have.Labels, desired.Labels)
	after := have.DeepCopy()
	after.Labels, after.AggregationRule = labels, desired.AggregationRule
	if desired.AggregationRule == nil {
		after.Rules = nil // without an aggregationRule, the API server does not remove the aggregated rules
	}
	if !relabelled && equality.Semantic.DeepEqual(have.AggregationRule, after.AggregationRule) && len(have.Rules) == len(after.Rules) {
		return nil
	}
	return []olmcore.Action{olmcore.UpdateOf(have, after, olmcore.Cause{
		Reason:  ReasonGroupChanged,
		Message: "the ClusterRole does not match the APIs that the operators of OperatorGroup " + f.group.Name + " provide",
	})}
}

// desiredRole returns the ClusterRole of an OperatorGroup that aggregates the permissions on APIs.
func desiredRole(g *operatorsv1.OperatorGroup, apis []model.API, suffix string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: roleName(g, suffix), Labels: model.OwnerOfGroup(g).Labels()},
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
