// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// maxUnlifted is how many Roles and RoleBindings a Diagnostic names at most.
const maxUnlifted = 5

// unlifted reports the Roles and RoleBindings in the operator's namespace that carry the owner labels of the CSV,
// although its InstallPlan did not create them. OLM also grants them where the operator watches. Everyone who may write
// Roles in the namespace may write these labels, so they are granted nowhere else.
func unlifted(in *Input, where scope) []olmcore.Diagnostic {
	c := in.ClusterServiceVersion
	planned, err := olmcore.PermissionObjects(c)
	if err != nil || !where.known || !where.cluster && len(where.namespaces) == 0 {
		return nil
	}
	names := sets.New[string]()
	for _, o := range planned {
		names.Insert(o.GetName())
	}
	isByHand := func(o metav1.Object) bool {
		return o.GetNamespace() == c.Namespace && o.GetDeletionTimestamp() == nil && o.GetLabels()[olmcore.LabelCopiedFrom] == "" &&
			owned.By(c).Owns(o.GetLabels()) && !olmcore.OwnedBy(o, c.UID) && !names.Has(o.GetName())
	}
	var found []string
	for _, r := range in.Roles.Items {
		if isByHand(r) {
			found = append(found, "Role "+r.Name)
		}
	}
	for _, b := range in.RoleBindings.Items {
		if isByHand(b) {
			found = append(found, "RoleBinding "+b.Name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if more := len(found) - maxUnlifted; more > 0 {
		found = append(found[:maxUnlifted], fmt.Sprintf("%d more", more))
	}
	target := "in all namespaces"
	const pattern = "%s: granted in namespace %s only, and not %s, because the InstallPlan of this ClusterServiceVersion did not create them"
	if !where.cluster {
		target = "in the namespaces that its OperatorGroup targets"
	}
	return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Info, ReasonRoleNotLifted, olmcore.RefOf(c), "",
		pattern, strings.Join(found, ", "), c.Namespace, target)}
}
