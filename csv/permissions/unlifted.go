// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// maxUnlifted is the number of Roles and RoleBindings that a Diagnostic names at most.
const maxUnlifted = 5

// unlifted reports the Roles and RoleBindings in the operator's namespace that claim to belong to the CSV, by its owner
// labels or an owner reference, although no InstallPlan created them. OLM also grants those with the labels where the
// operator watches. Every user who may write Roles in the namespace may write these labels, so they are granted nowhere
// else. Objects of a list that was not read are not reported.
func unlifted(f *facts) []olmcore.Diagnostic {
	planned, err := olmcore.PermissionObjects(f.csv)
	if err != nil || !f.scope.known || !f.scope.cluster && len(f.scope.namespaces) == 0 {
		return nil
	}
	names := sets.New[string]()
	for _, o := range planned {
		names.Insert(o.GetName())
	}
	found := slices.Concat(
		namesOfManual(f.csv, "Role", f.in.Roles, names),
		namesOfManual(f.csv, "RoleBinding", f.in.RoleBindings, names))
	if len(found) == 0 {
		return nil
	}
	message := notLifted(found, f.csv.Namespace, f.scope)
	return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Info, ReasonRoleNotLifted, olmcore.RefOf(f.csv), "", "%s", message)}
}

// namesOfManual returns the kind and name of each object that claims to belong to a CSV and that no InstallPlan
// created. planned contains the names of those that InstallPlans create.
func namesOfManual[O olmcore.Object](
	c *v1alpha1.ClusterServiceVersion, kind string, list olmcore.Observed[O], planned sets.Set[string],
) []string {
	if !list.Complete {
		return nil
	}
	var found []string
	for _, o := range list.Items {
		isManual := o.GetNamespace() == c.Namespace && o.GetDeletionTimestamp() == nil && o.GetLabels()[olmcore.LabelCopiedFrom] == "" &&
			isClaimedFor(c, o) && !isInstalledFor(c, o) && !planned.Has(o.GetName())
		if isManual {
			found = append(found, kind+" "+o.GetName())
		}
	}
	return found
}

// isClaimedFor reports whether the owner labels or an owner reference of a Role or RoleBinding name a CSV.
func isClaimedFor(c *v1alpha1.ClusterServiceVersion, o metav1.Object) bool {
	return model.OwnerOf(c).Owns(o.GetLabels()) || olmcore.OwnedBy(o, c.UID)
}

// isInstalledFor reports whether an InstallPlan or a controller created a Role or RoleBinding for a CSV. Both set the
// CSV as an owner and add the label olm.managed.
func isInstalledFor(c *v1alpha1.ClusterServiceVersion, o metav1.Object) bool {
	return olmcore.OwnedBy(o, c.UID) && o.GetLabels()[olmcore.LabelManaged] == "true"
}

// notLifted returns the message about Roles and RoleBindings that are granted in one namespace only.
func notLifted(found []string, namespace string, where scope) string {
	slices.Sort(found)
	found = slices.Compact(found)
	them := "them"
	if len(found) == 1 {
		them = "it"
	}
	if more := len(found) - maxUnlifted; more > 0 {
		found = append(found[:maxUnlifted], fmt.Sprintf("%d more", more))
	}
	watched, advice := "all namespaces", "Create a ClusterRole and a ClusterRoleBinding with the same rules and subjects"
	if !where.cluster {
		watched = "other namespaces"
		advice = "Create a Role and a RoleBinding with the same rules and subjects in each namespace that the OperatorGroup targets"
	}
	return fmt.Sprintf("the operator has no permission from %s outside namespace %s, although it watches %s: no InstallPlan created %s. %s",
		strings.Join(found, ", "), namespace, watched, them, advice)
}
